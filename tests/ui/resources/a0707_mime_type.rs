use aster_runtime::mcp_resource;

/// Today's notes.
#[mcp_resource(uri = "notes://today", mime_type = "markdown", tier = Standard)]
fn today() -> &'static str {
    "nothing"
}

fn main() {}
