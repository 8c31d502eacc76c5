//! Two servers with groups, tiers and live state, and what an agent that is given one group can see and do.
//!
//! ```text
//! cargo run --example two_servers
//! ```
#![expect(clippy::print_stdout, reason = "the example is to be read")]

use std::error::Error;
use std::sync::Mutex;

use aster_runtime::{Host, Json, Profile, ToolError, catalogue, groups, mcp_server, mcp_tool};
use serde_json::json;

groups! {
    /// Reading and writing notes.
    pub NOTES,
    /// What runs the house.
    pub HOUSE,
}

/// A note.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
struct Note {
    id: usize,
    text: String,
}

/// Notes that are kept as long as the program runs: the state lives in `Self`, behind a lock.
#[derive(Default)]
struct Notes {
    notes: Mutex<Vec<Note>>,
}

/// Keeps notes.
#[mcp_server(name = "notes", group = NOTES)]
impl Notes {
    /// Adds a note and returns it.
    #[mcp_tool(tier = Elevated)]
    fn add(
        &self,
        /// What to remember.
        text: String,
    ) -> Result<Json<Note>, ToolError> {
        let mut notes = self.notes.lock().map_err(|_| ToolError::new("the notes are locked for good"))?;
        let note = Note { id: notes.len() + 1, text };
        notes.push(note.clone());
        Ok(Json(note))
    }

    /// Lists the notes, newest first.
    #[mcp_tool(tier = Standard, read_only)]
    fn list(
        &self,
        /// Only notes that contain this.
        containing: Option<String>,
    ) -> Result<Json<Vec<Note>>, ToolError> {
        let notes = self.notes.lock().map_err(|_| ToolError::new("the notes are locked for good"))?;
        let wanted = |note: &&Note| containing.as_deref().is_none_or(|part| note.text.contains(part));
        Ok(Json(notes.iter().rev().filter(wanted).cloned().collect()))
    }
}

/// Runs the house.
#[mcp_server(name = "house", group = HOUSE)]
mod house {
    use aster_runtime::mcp_tool;

    /// Opens the front door.
    #[mcp_tool(tier = Restricted, destructive)]
    pub(crate) fn open_door() -> &'static str {
        "the door is open"
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let host = Host::builder()
        .catalogue(catalogue![Notes::SERVER, house::SERVER])
        .with_server(Notes::default())
        .build()
        .await?;

    println!("An agent with both groups:");
    let butler = host.session(Profile::new("butler").groups([NOTES.name(), HOUSE.name()]))?;
    for request in [
        json!({"action": "execute", "name": "notes/add", "arguments": {"text": "buy milk"}}),
        json!({"action": "execute", "name": "notes/list", "arguments": {"containing": "milk"}}),
        // Restricted, and nobody to ask: denied, with what to do about it.
        json!({"action": "execute", "name": "house/open_door"}),
    ] {
        println!("  {request}\n  -> {}", butler.call(&request).await.to_text());
    }

    println!("An agent with the notes alone, for whom the house does not exist:");
    let secretary = host.session(Profile::new("secretary").groups([NOTES.name()]))?;
    for request in [
        json!({"action": "search", "query": "open the door"}),
        json!({"action": "execute", "name": "house/open_door"}),
        json!({"action": "execute", "name": "house/no_such_tool"}),
    ] {
        println!("  {request}\n  -> {}", secretary.call(&request).await.to_text());
    }
    Ok(())
}
