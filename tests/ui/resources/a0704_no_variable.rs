use aster_runtime::mcp_resource;

/// One note.
#[mcp_resource(uri = "notes://{id}", tier = Standard)]
fn note(id: String, page: u8) -> String {
    id.repeat(page.into())
}

fn main() {}
