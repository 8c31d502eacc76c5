use aster_runtime::mcp_resource;

/// Today's note.
#[mcp_resource(tier = Standard)]
fn today() -> String {
    String::new()
}

fn main() {}
