use aster_runtime::mcp_tool;

#[derive(serde::Deserialize, schemars::JsonSchema)]
enum Kind {
    Page,
}

/// Lists what there is.
#[mcp_tool(tier = Standard)]
fn list(#[arg(default = Kind::Page)] kind: Kind) {
    let Kind::Page = kind;
}

fn main() {}
