use aster_runtime::mcp_resource;

/// A page of a note.
#[mcp_resource(uri = "notes://{id}/{page}", tier = Standard)]
fn page(id: Option<String>, #[arg(default = 1)] page: u8) -> String {
    format!("{id:?} {page}")
}

fn main() {}
