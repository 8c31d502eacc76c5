//! An agent's binary in which the compiler knows who may do what: two servers, an agent that is given one group and one
//! tool of another, and a tier that this binary raises. A renamed tool, a group that nobody declared or a lowered tier does
//! not compile; `cargo test --test typed_agent` proves the rest.
//!
//! The model is whoever writes to standard input: a line is what it calls `aster_mcp` with.
//!
//! ```text
//! echo '{"action": "execute", "name": "notes/add", "arguments": {"text": "tea"}}' | cargo run --example typed_agent
//! ```
#![expect(clippy::print_stdout, reason = "the example is to be read")]

use std::io;

use aster_runtime::{Host, NativeCatalogue, agent, catalogue, groups, mcp_server};
use serde_json::Value;

groups! { pub(crate) NOTES, pub(crate) HOUSE }

/// Keeps notes.
#[mcp_server(group = NOTES)]
mod notes {
    use aster_runtime::{Json, mcp_tool};
    use std::sync::Mutex;

    static ALL: Mutex<Vec<String>> = Mutex::new(Vec::new());

    /// Adds a note and returns all of them, oldest first.
    #[mcp_tool(tier = Standard)]
    pub(crate) fn add(
        /// What to remember.
        text: String,
    ) -> Result<Json<Vec<String>>, &'static str> {
        let mut all = ALL.lock().map_err(|_| "the notes are locked for good")?;
        all.push(text);
        Ok(Json(all.clone()))
    }

    /// Throws all notes away, for good.
    #[mcp_tool(tier = Elevated, destructive)]
    pub(crate) fn clear() -> Result<(), &'static str> {
        ALL.lock().map(|mut all| all.clear()).map_err(|_| "the notes are locked for good")
    }
}

/// Runs the house.
#[mcp_server(group = HOUSE)]
mod house {
    /// Tells which windows are open.
    #[aster_runtime::mcp_tool(tier = Standard, read_only)]
    pub(crate) fn windows() -> &'static str {
        "the kitchen's"
    }

    /// Opens the front door to whoever stands there.
    #[aster_runtime::mcp_tool(tier = Restricted)]
    pub(crate) fn open_door() {}
}

const CATALOGUE: NativeCatalogue = catalogue![notes::SERVER, house::SERVER; groups { NOTES, HOUSE }; raise { notes::Tool::Clear => Restricted }];

agent! { CLERK = { groups: [NOTES], tools: [house::Tool::Windows] } }

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let session = Host::builder().catalogue(CATALOGUE).build().await?.session(CLERK.profile())?;
    println!("{}", session.injection().map(|injection| injection.prompt).unwrap_or_default());
    for line in io::stdin().lines() {
        println!("{}", session.call(&serde_json::from_str::<Value>(&line?)?).await.to_text());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    aster_runtime::catalogue_tests!(super::CATALOGUE; agents [super::CLERK]; document "examples/typed_agent.md");
}
