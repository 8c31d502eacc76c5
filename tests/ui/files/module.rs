//! The file of the module in `attribute/a0007_file_module.rs`.

/// Fetches a page.
#[aster_runtime::mcp_tool(tier = Standard)]
fn fetch() {}
