// One error, and in the words of rustc: it knows which field it is.
use std::cell::RefCell;

use aster_runtime::{mcp_server, mcp_tool};

struct Web {
    pages: RefCell<Vec<String>>,
}

#[mcp_server]
impl Web {
    /// Counts the pages.
    #[mcp_tool(tier = Standard)]
    fn count(&self) -> usize {
        self.pages.borrow().len()
    }
}

fn main() {}
