use aster_runtime::mcp_prompt;

fn count(typed: &str) -> usize {
    typed.len()
}

/// Asks for a review.
#[mcp_prompt(tier = Standard)]
fn review(#[arg(complete = count)] code: String) -> String {
    code
}

fn main() {}
