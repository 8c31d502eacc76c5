//! What a native server does not offer at the moment.

use std::sync::atomic::{AtomicBool, Ordering};

use aster_runtime::call::Check;
use aster_runtime::{
    Availability, CallOptions, Host, HostSession, JsonObject, McpServer, Profile, ServerEnv, StartError,
    ToolContext, catalogue, mcp_prompt, mcp_resource, mcp_server, mcp_tool,
};

struct Printer {
    availability: Availability,
    connected: AtomicBool,
}

impl McpServer for Printer {
    async fn start(env: &ServerEnv) -> Result<Self, StartError> {
        env.availability.withhold("print", "no printer is\u{1b} connected");
        env.availability.withhold("no_such_tool", "it was never there");
        Ok(Self { availability: env.availability.clone(), connected: AtomicBool::new(false) })
    }
}

/// Prints.
#[mcp_server]
impl Printer {
    /// Prints a page.
    #[mcp_tool(tier = Standard)]
    fn print() -> &'static str {
        "printed"
    }

    /// Connects the printer.
    #[mcp_tool(tier = Standard)]
    fn connect(&self) -> bool {
        self.availability.offer("print");
        self.connected.swap(true, Ordering::Relaxed)
    }

    /// Switches the printer off.
    #[mcp_tool(tier = Standard)]
    fn switch_off(ctx: &ToolContext) {
        for name in ["print", "queue", "about"] {
            ctx.availability().withhold(name, "the printer is off");
        }
    }

    /// What waits.
    #[mcp_resource(uri = "printer://queue", tier = Standard)]
    fn queue() -> &'static str {
        ""
    }

    /// Asks about printing.
    #[mcp_prompt(tier = Standard)]
    fn about() -> &'static str {
        "How do I print?"
    }
}

async fn call(session: &HostSession, id: &str) -> Option<Check> {
    session.execute(id, JsonObject::new(), CallOptions::default()).await.denied
}

#[tokio::test]
async fn what_is_withheld_is_unknown_until_it_is_offered() {
    let host = Host::builder().catalogue(catalogue![Printer::SERVER]).build().await.unwrap();
    let session = host.session(Profile::new("test")).unwrap();
    let mut told = Vec::new();
    for id in ["printer/nothing", "printer/print"] {
        let refused = session.execute(id, JsonObject::new(), CallOptions::default()).await;
        let text = refused.result.to_text().replace(id, "it");
        // What is like the name depends on the name.
        let (said, similar) = text.split_once(';').unwrap();
        assert!(!similar.contains("`it`"), "{similar}");
        told.push((refused.denied, said.to_owned()));
    }
    assert_eq!(told[0], told[1]);
    let problems: Vec<String> = host.catalogue().problems().iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["printer/print: not offered at the moment: no printer is connected"]);
    assert_eq!(host.catalogue().servers()[0].tools, 2);

    let mut changes = host.changes();
    assert_eq!(call(&session, "printer/connect").await, None);
    changes.changed().await.unwrap();
    assert_eq!(call(&session, "printer/print").await, None);
    assert!(host.catalogue().problems().is_empty());
    // Nothing changes by saying it again.
    changes.mark_unchanged();
    assert_eq!(call(&session, "printer/connect").await, None);
    assert!(!changes.has_changed().unwrap());

    assert_eq!(call(&session, "printer/switch_off").await, None);
    let gone = |catalogue: &aster_runtime::Catalogue| catalogue.problems().len() == 3;
    changes.wait_for(gone).await.unwrap();
    assert_eq!(call(&session, "printer/print").await, Some(Check::Scope));
    assert!(session.view().resources().is_empty() && session.view().prompts().is_empty());
    let read = session.read_resource("printer://queue", CallOptions::default()).await;
    assert_eq!(read.denied, Some(Check::Scope));
}
