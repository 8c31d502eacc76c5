use aster_runtime::mcp_server;
use aster_runtime::mcp_tool as tool;

struct Web;

#[mcp_server]
impl Web {
    /// Fetches a page.
    #[tool(tier = Standard)]
    fn fetch(&self) {}
}

#[mcp_server]
mod clock {
    use aster_runtime::{mcp_prompt as ask, mcp_tool};

    /// Tells the time.
    #[mcp_tool(tier = Standard)]
    #[cfg_attr(unix, cfg(unix))]
    #[cfg_attr(unix, doc = "In seconds.")]
    fn now(#[cfg_attr(unix, arg(default = 0))] zone: i8) {
        let _ = zone;
    }

    /// Asks for the time.
    #[ask(tier = Standard)]
    fn when() -> &'static str {
        "When?"
    }
}

fn main() {
    let _ = (Web::SERVER, clock::SERVER);
}
