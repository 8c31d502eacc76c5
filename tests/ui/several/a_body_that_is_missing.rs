#![forbid(unused_variables)]

use std::fmt::Display;

use aster_runtime::{mcp_server, mcp_tool};

/// Reads a page.
#[mcp_tool(tier = Standard)]
fn page(query: String) -> impl Display;

/// Reads pages.
#[mcp_tool(tier = Standard)]
async fn pages(query: String) -> Vec<impl Display>;

trait Read {
    /// Reads a page.
    #[mcp_tool(tier = Standard)]
    fn page(self, query: String) -> impl Display;
}

unsafe extern "C" {
    /// Reads a page.
    #[mcp_tool(tier = Standard)]
    fn c_page(query: u8) -> u8;
}

struct Web;

#[mcp_server]
impl Web {
    /// Reads a page.
    #[mcp_tool(tier = Standard)]
    fn page(&self, query: String) -> String;
}

#[mcp_server]
mod web {
    use super::mcp_tool;

    /// Reads a page.
    #[mcp_tool(tier = Standard)]
    pub fn page(&self, query: String) -> String {
        self.page(query)
    }
}

fn main() {
    let of_web: String = Web.page(String::new());
    let _ = (web::page(of_web), page::TOOL, Web::SERVER, web::SERVER);
    let _never: u8 = page(String::new());
}
