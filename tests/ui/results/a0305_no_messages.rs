use aster_runtime::mcp_prompt;

/// Asks for a review.
#[mcp_prompt(tier = Standard)]
fn review() -> Option<String> {
    None
}

fn main() {}
