use aster_runtime::mcp_tool;

/// Says which character has this number.
#[mcp_tool(tier = Standard)]
fn char(number: u8) -> String {
    char::from(number).to_string()
}

fn main() {}
