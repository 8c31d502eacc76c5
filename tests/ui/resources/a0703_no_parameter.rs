use aster_runtime::mcp_resource;

/// One note.
#[mcp_resource(uri = "notes://{id}", tier = Standard)]
fn note() -> String {
    String::new()
}

fn main() {}
