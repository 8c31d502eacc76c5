//! Tools of every kind, in a crate that knows the runtime as `tools` and has nothing else.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use tools::{
    agent, catalogue, groups, mcp_prompt, mcp_resource, mcp_server, mcp_tool, Json, McpServer,
    NativeCatalogue, ServerEnv, StartError, ToolContext,
};

groups! { pub NOTES }

/// Adds two whole numbers.
///
/// # Arguments
///
/// * `b` - The second summand.
#[mcp_tool(tier = Standard, read_only, crate = tools)]
#[must_use]
pub fn add(
    /// The first summand.
    a: i64,
    #[arg(default = 1, range(0..=10))] b: i64,
) -> i64 {
    a + b
}

/// Why a page has no words.
#[derive(Debug)]
pub struct Empty;

impl fmt::Display for Empty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the page is empty")
    }
}

impl std::error::Error for Empty {}

/// Reads pages, and counts them.
#[derive(Debug, Default)]
pub struct Pages {
    read: AtomicU32,
}

impl McpServer for Pages {
    async fn start(_: &ServerEnv) -> Result<Self, StartError> {
        Ok(Self::default())
    }
}

#[mcp_server(group = NOTES, crate = tools)]
impl Pages {
    /// Counts how often each word stands on a page.
    ///
    /// # Errors
    ///
    /// Where the page is empty.
    #[mcp_tool(tier = Elevated, open_world, timeout = "30s")]
    pub async fn words(
        &self,
        ctx: &ToolContext,
        /// The page's address.
        url: String,
        /// Words to pass over.
        #[arg(default = Vec::new(), length(..=10))]
        without: Vec<String>,
        /// What to say where there is none.
        #[arg(default = "nothing")]
        otherwise: Option<String>,
    ) -> Result<Json<BTreeMap<String, u32>>, Empty> {
        if ctx.is_cancelled() || otherwise.is_none() {
            std::future::ready(()).await;
        }
        self.read.fetch_add(1, Ordering::Relaxed);
        let words = url.split('/').filter(|word| !word.is_empty() && !without.iter().any(|no| no == word));
        let counts: BTreeMap<String, u32> = words.map(|word| (word.to_owned(), 1)).collect();
        if counts.is_empty() {
            return Err(Empty);
        }
        Ok(Json(counts))
    }

    /// How many pages have been read.
    #[mcp_resource(uri = "pages:read", tier = Standard)]
    pub fn read(&self) -> String {
        self.read.load(Ordering::Relaxed).to_string()
    }
}

/// Tells the time.
#[mcp_server(crate = tools)]
pub mod clock {
    use super::tools_of_the_clock;

    /// Tells how many seconds a day has.
    #[tools::mcp_tool(tier = Standard, idempotent)]
    #[must_use]
    pub fn day() -> u32 {
        tools_of_the_clock()
    }
}

fn tools_of_the_clock() -> u32 {
    86_400
}

/// One note.
#[mcp_resource(uri = "notes://{id}", tier = Standard, crate = tools)]
#[must_use]
pub fn note(id: String) -> Option<String> {
    (!id.is_empty()).then_some(id)
}

/// Asks for a review.
#[mcp_prompt(tier = Standard, crate = tools)]
#[must_use]
pub fn review(
    /// How far it is.
    #[arg(complete = ["draft", "final"])]
    state: String,
) -> String {
    format!("Review the {state}.")
}

/// All there is.
pub const CATALOGUE: NativeCatalogue = catalogue![
    add::TOOL, Pages::SERVER, clock::SERVER, note::RESOURCE, review::PROMPT;
    groups { NOTES };
    raise { clock::Tool::Day => Elevated }
];

agent! {
    /// Takes notes.
    pub WRITER = { groups: [NOTES], tools: [add::TOOL, clock::Tool::Day] }
}

#[cfg(test)]
mod tests {
    use super::{add, CATALOGUE, WRITER};

    #[test]
    fn what_is_listed_is_what_is_linked() {
        assert_eq!(CATALOGUE.entries.len(), 5);
        assert!(tools::lint::unlisted(&CATALOGUE).is_empty());
        assert_eq!(add(1, 2), 3);
        assert_eq!(add::TOOL.server, "aster_hygiene");
        assert_eq!(WRITER.name, "writer");
    }
}
