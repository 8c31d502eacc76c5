//! A whole MCP server: tools that a model calls, resources that a client reads and follows, a prompt that a user chooses.
//!
//! ```text
//! cargo run --example notes_server -- list
//! cargo run --example notes_server -- serve notes   # speaks MCP on standard input and output
//! ```

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use aster_runtime::uri::Template;
use aster_runtime::{
    Json, McpServer, NativeCatalogue, PromptMessage, Resource, ServerEnv, StartError, ToolContext, catalogue,
    mcp_prompt, mcp_resource, mcp_server, mcp_tool,
};

struct Notes {
    all: Mutex<BTreeMap<String, String>>,
}

impl McpServer for Notes {
    async fn start(_: &ServerEnv) -> Result<Self, StartError> {
        let welcome = ("welcome".to_owned(), "Write something down.".to_owned());
        Ok(Self { all: Mutex::new(BTreeMap::from([welcome])) })
    }
}

impl Notes {
    fn get(&self, name: &str) -> Option<String> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

const NOTE: &str = "notes://note/{name}";

/// The URI of a note, whatever characters its name has.
fn uri_of(name: &str) -> String {
    Template::parse(NOTE).map(|template| template.expand(|_| Some(name))).unwrap_or_default()
}

/// Keeps notes.
#[mcp_server]
impl Notes {
    /// Writes a note down, over an older one of its name.
    #[mcp_tool(tier = Standard, idempotent)]
    fn write(
        &self,
        ctx: &ToolContext,
        /// What it is called.
        name: String,
        /// What it says.
        text: String,
    ) {
        let uri = uri_of(&name);
        self.all.lock().unwrap_or_else(PoisonError::into_inner).insert(name, text);
        // Whoever follows the note or the list of them hears of it.
        ctx.resource_updated(&uri);
        ctx.resource_updated("notes://index");
    }

    /// The names of all notes.
    #[mcp_resource(uri = "notes://index", tier = Standard)]
    fn index(&self) -> Json<Vec<String>> {
        Json(self.all.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect())
    }

    /// One note.
    #[mcp_resource(uri = "notes://note/{name}", mime_type = "text/plain", tier = Standard)]
    fn note(&self, name: String) -> Option<String> {
        self.get(&name)
    }

    /// Asks for a better version of a note.
    #[mcp_prompt(tier = Standard, title = "Improve a note")]
    fn improve(
        &self,
        /// What the note is called.
        name: String,
        /// How it should sound.
        #[arg(complete = ["friendly", "formal", "funny"])]
        tone: Option<String>,
    ) -> Result<Vec<PromptMessage>, String> {
        let text = self.get(&name).ok_or_else(|| format!("there is no note `{name}`"))?;
        let tone = tone.unwrap_or_else(|| "clear".to_owned());
        Ok(vec![
            PromptMessage::user(format!("Rewrite this note. Make it {tone}.")),
            PromptMessage::user(Resource::text(uri_of(&name), "text/plain", text)),
        ])
    }
}

const CATALOGUE: NativeCatalogue = catalogue![Notes::SERVER];

aster_runtime::serve_main!(CATALOGUE);
