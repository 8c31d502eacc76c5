use aster_runtime::{NativeCatalogue, catalogue, mcp_resource};

/// One note.
#[mcp_resource(uri = "notes://{id}", tier = Standard, server = "notes")]
fn note(id: String) -> String {
    id
}

/// One page.
#[mcp_resource(uri = "notes://{page}", tier = Standard, server = "pages")]
fn page(page: String) -> String {
    page
}

const CATALOGUE: NativeCatalogue = catalogue![note::RESOURCE, page::RESOURCE];

fn main() {
    let _ = CATALOGUE;
}
