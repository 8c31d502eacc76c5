use aster_runtime::mcp_tool;

/// Fetches a page.
/// It goes on about what it does, at a length that nobody who pays for tokens will like to read, once.
/// It goes on about what it does, at a length that nobody who pays for tokens will like to read, twice.
/// It goes on about what it does, at a length that nobody who pays for tokens will like to read, thrice.
/// It goes on about what it does, at a length that nobody who pays for tokens will like to read, again.
/// It goes on about what it does, at a length that nobody who pays for tokens will like to read, and-again.
/// It goes on about what it does, at a length that nobody who pays for tokens will like to read, still.
/// It goes on about what it does, at a length that nobody who pays for tokens will like to read, more.
/// It goes on about what it does, at a length that nobody who pays for tokens will like to read, further.
/// It goes on about what it does, at a length that nobody who pays for tokens will like to read, on-and-on.
/// It goes on about what it does, at a length that nobody who pays for tokens will like to read, so-forth.
/// It goes on about what it does, at a length that nobody who pays for tokens will like to read, without-end.
#[mcp_tool(tier = Standard)]
fn fetch() {}

fn main() {
    let _ = fetch::TOOL;
}
