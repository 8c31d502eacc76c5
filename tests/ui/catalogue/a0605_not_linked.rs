// The lint is rustc's, off by default. Every dependency that it is to pass over is named; `aster_hygiene`, a crate of servers, was
// forgotten.
#![deny(unused_crate_dependencies)]

use {
    aster_macros as _, insta as _, prettyplease as _, proc_macro2 as _, quote as _, regex_syntax as _, rmcp as _,
    schemars as _, serde as _, syn as _,
};

use aster_runtime::mcp_tool;

/// Adds two whole numbers.
#[mcp_tool(tier = Standard)]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

fn main() {}
