use aster_runtime::{Json, mcp_server, mcp_tool};

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn fetch(page: Option<Nope>, #[arg(default = "a")] query: Strng, pair: (Frst, u8)) -> Result<Json<Nada>, Nix> {
    let _ = (page, query, pair);
    todo!()
}

struct Web;

#[mcp_server]
impl Web {
    /// Fetches a page.
    #[mcp_tool(tier = Standard)]
    fn fetch(&self, #[arg(range(1..))] page: Option<Nope>, query: Strng) -> Vec<Nada> {
        let _ = (page, query);
        todo!()
    }

    /// Searches the web.
    #[mcp_tool(tier = Standard)]
    fn search(query: Q) -> Option<R> {
        let _ = query;
        todo!()
    }
}

#[mcp_server]
mod clock {
    use aster_runtime::mcp_tool;

    /// Fetches a page.
    #[mcp_tool(tier = Standard)]
    fn fetch(page: Option<T>, query: U) -> Vec<V> {
        let _ = (page, query);
        todo!()
    }
}

fn main() {}
