use aster_runtime::mcp_server;

struct Web;

#[mcp_server]
impl Web {
    fn fetch() {}
}

fn main() {
    Web::fetch();
    let _ = Web::SERVER;
}
