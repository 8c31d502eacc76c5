use aster_runtime::mcp_server;

#[mcp_server]
#[path = "../files/module.rs"]
mod web;

fn main() {}
