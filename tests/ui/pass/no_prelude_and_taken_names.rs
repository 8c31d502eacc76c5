//! Nothing is in scope but what the user put there, and that has the names of the prelude.
#![no_implicit_prelude]
#![deny(warnings)]
#![expect(missing_docs, reason = "names are all that matters here")]

pub struct Option;
pub struct String;
pub struct Result;
pub struct Vec;
pub struct Box;
#[expect(non_snake_case, reason = "the point of the test")]
pub mod Some {}
#[expect(non_snake_case, reason = "the point of the test")]
pub fn Ok() {}
#[expect(non_snake_case, reason = "the point of the test")]
pub fn None() {}
#[expect(non_snake_case, reason = "the point of the test")]
pub fn Err() {}
pub struct Default;
pub trait Clone {}
pub trait Into {}
pub trait From {}
pub trait Send {}
pub trait Sync {}
pub const CALL: u8 = 0;
#[expect(non_upper_case_globals, reason = "the point of the test")]
mod constants {
    pub const call: u8 = 0;
    pub const state: u8 = 0;
    pub const schema: u8 = 0;
    pub const context: u8 = 0;
    pub const invocation: u8 = 0;
    pub const argument_0: u8 = 0;
}
pub use constants::*;

::aster_runtime::groups! { pub RESEARCH }

/// Adds two whole numbers.
#[::aster_runtime::mcp_tool(tier = Standard, group = RESEARCH)]
pub fn add(a: i64, #[arg(default = 1, range(..=5))] b: i64) -> i64 {
    a + b
}

pub struct Web;

#[::aster_runtime::mcp_server]
impl Web {
    /// Fetches a page.
    #[::aster_runtime::mcp_tool(tier = Elevated, timeout = "2m")]
    async fn fetch(
        &self,
        ctx: &::aster_runtime::ToolContext,
        page: ::std::string::String,
    ) -> ::std::result::Result<::std::string::String, ::std::io::Error> {
        let _ = ctx;
        ::std::result::Result::Ok(page)
    }
}

fn years(_: &str) -> [&'static str; 1] {
    ["2026"]
}

/// One year's notes.
#[::aster_runtime::mcp_resource(uri = "notes://{year}", tier = Standard, mime_type = "text/plain")]
pub fn notes(#[arg(complete = years)] year: u16) -> &'static str {
    let _ = year;
    ""
}

/// Asks for a review.
#[::aster_runtime::mcp_prompt(tier = Standard, group = RESEARCH)]
pub fn review(#[arg(complete = ["a"])] code: ::std::string::String) -> ::std::string::String {
    code
}

/// Takes every option that an argument has.
#[::aster_runtime::mcp_tool(
    tier = Elevated,
    group = RESEARCH,
    title = "Everything",
    alias = "all",
    egress("example.com", "*.example.org"),
    read_only,
    idempotent = false,
    hot
)]
pub fn everything(
    /// A word.
    #[arg(length(1..=9), pattern = "^[a-z]+$", example = "word")]
    word: ::std::string::String,
    #[arg(secret)] token: ::std::string::String,
    #[arg(path)] file: ::std::path::PathBuf,
    #[arg(url)] page: ::std::string::String,
    #[arg(url = false)] template_url: ::std::option::Option<::std::string::String>,
    #[arg(header = "Region")] region: ::std::option::Option<::std::string::String>,
    #[arg(name = "how-many", default = 1, range(1..=5))] count: u8,
    #[arg(default = "later")] when: ::std::string::String,
) -> ::std::string::String {
    let _ = (token, file, page, template_url, region, count, when);
    word
}

/// Selects.
#[::aster_runtime::mcp_tool(tier = Standard)]
pub fn select(#[arg(flatten)] selection: ::aster_runtime::JsonObject) -> u64 {
    selection.len() as u64
}

const SCHEMA: &str = "{}";

/// Counts.
#[::aster_runtime::mcp_tool(tier = Standard, schema = SCHEMA)]
pub fn count(arguments: ::aster_runtime::JsonObject) -> u64 {
    arguments.len() as u64
}

#[::aster_runtime::mcp_server]
pub mod clock {
    /// Tells the time.
    #[::aster_runtime::mcp_tool(tier = Standard)]
    pub fn now() {}

    /// Tells the time as well.
    #[::aster_runtime::mcp_resource(tier = Standard, uri = "clock:now")]
    pub fn time() -> ::std::vec::Vec<u8> {
        ::std::vec::Vec::new()
    }
}

pub const CATALOGUE: ::aster_runtime::NativeCatalogue = ::aster_runtime::catalogue![
    add::TOOL,
    Web::SERVER,
    clock::SERVER,
    notes::RESOURCE,
    review::PROMPT,
    count::TOOL,
    everything::TOOL,
    select::TOOL;
    groups { RESEARCH };
    raise { add::TOOL => Elevated, clock::Tool::Now => Restricted }
];

::aster_runtime::agent! {
    /// Looks things up.
    pub READER = { groups: [RESEARCH], tools: [add::TOOL, WebTool::Fetch] }
}
pub const EMPTY: ::aster_runtime::NativeCatalogue = ::aster_runtime::catalogue![];

fn main() {
    ::std::assert_eq!(CATALOGUE.entries.len(), 8);
    ::std::assert_eq!(CATALOGUE.raises.len(), 2);
    ::std::assert_eq!(READER.name, "reader");
    ::std::assert_eq!(EMPTY.entries.len(), 0);
}
