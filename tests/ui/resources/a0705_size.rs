use aster_runtime::mcp_resource;

/// One note.
#[mcp_resource(uri = "notes://{id}", size = 1024, tier = Standard)]
fn note(id: String) -> String {
    id
}

fn main() {}
