use aster_runtime::mcp_resource;

/// One note.
#[mcp_resource(uri = "notes://{year}{month}", tier = Standard)]
fn note(year: u16, month: u8) -> String {
    format!("{month}/{year}")
}

fn main() {}
