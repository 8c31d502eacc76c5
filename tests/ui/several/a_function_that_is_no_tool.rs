use std::rc::Rc;

use aster_runtime::{mcp_server, mcp_tool};

/// Counts pages.
#[mcp_tool(tier = Standard)]
const fn count() -> u32 {
    42
}

/// Counts pages for C.
#[mcp_tool(tier = Standard)]
extern "C" fn count_for_c() -> u32 {
    42
}

/// Stops.
#[mcp_tool(tier = Standard)]
fn stop() -> ! {
    loop {}
}

/// Reads a page.
#[mcp_tool(tier = Standard)]
fn page(path: String) -> String;

/// Reads a page in secret.
#[mcp_tool(tier = Standard)]
fn secret(_path: String) -> String {
    String::new()
}

/// Reads a page as a test.
#[mcp_tool(tier = Standard)]
#[test]
fn checked() {}

struct Web;

#[mcp_server(name = "aster_mcp")]
impl Web {
    /// Reads a page later.
    #[mcp_tool(tier = Standard, name = "page__later")]
    fn later(&self) {}

    /// Reads a page of all.
    #[mcp_tool(tier = Standard)]
    fn shared(self: Rc<Self>) {}

    /// Reads a page and ends.
    #[mcp_tool(tier = Standard)]
    fn taken(self) {}
}

struct Pages<T>(T);

#[mcp_server]
impl<T: Send + Sync> Pages<T> {
    /// Reads the first page.
    #[mcp_tool(tier = Standard)]
    fn first(&self) {}
}

fn main() {
    count();
    count_for_c();
    page(secret(String::new()));
    Web.later();
    Rc::new(Web).shared();
    Web.taken();
    let _ = (Web::SERVER, Pages::<u8>(0).first());
}
