use aster_runtime::mcp_resource;

/// The number of notes.
#[mcp_resource(uri = "notes://count", tier = Standard)]
fn count() -> usize {
    3
}

fn main() {}
