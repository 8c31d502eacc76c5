//! What a native server does not offer at the moment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use aster_runtime::call::Check;
use aster_runtime::search::{Lexical, Ranker};
use aster_runtime::{
    Availability, CallOptions, Host, HostSession, JsonObject, McpServer, Profile, ServerEnv, StartError,
    ToolContext, View, catalogue, mcp_prompt, mcp_resource, mcp_server, mcp_tool,
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

/// What a session sees is made where no lock is held: a slow ranking of what was there before holds up nobody.
#[tokio::test]
async fn what_is_offered_meanwhile_is_seen_before_a_slow_ranking_of_the_rest_is_made() {
    let (begun, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let may_go_on = Mutex::new(may_go_on);
    let sees = |view: &View, name: &str| view.tools().iter().any(|tool| tool.id().tool() == name);
    let make = move |view: &View, _: &dyn Fn() -> Arc<Lexical>| -> Arc<dyn Ranker> {
        if sees(view, "switch_off") && !sees(view, "print") {
            begun.send(()).unwrap();
            may_go_on.lock().unwrap().recv().unwrap();
        }
        Arc::new(Lexical::new(view))
    };
    let host =
        Host::builder().catalogue(catalogue![Printer::SERVER]).ranking(Arc::new(make)).build().await.unwrap();
    let session = Arc::new(host.session(Profile::new("test")).unwrap());
    let view = || {
        let session = Arc::clone(&session);
        std::thread::spawn(move || session.view())
    };
    let slow = view();
    has_begun.recv().unwrap();
    let mut changes = host.changes();
    let other = host.session(Profile::new("other").allow(["printer/connect"])).unwrap();
    assert_eq!(call(&other, "printer/connect").await, None);
    changes.changed().await.unwrap();
    let (seen, is_seen) = mpsc::channel();
    let now = view();
    std::thread::spawn(move || seen.send(now.join().unwrap()));
    let now = is_seen.recv_timeout(Duration::from_secs(30));
    go_on.send(()).unwrap();
    assert!(sees(&now.expect("it waits for nothing"), "print"));
    assert!(!sees(&slow.join().unwrap(), "print"));
    assert!(sees(&session.view(), "print"), "what is outdated does not come back");
}

/// Ten times the same.
macro_rules! ten {
    ($said:literal) => {
        concat!($said, $said, $said, $said, $said, $said, $said, $said, $said, $said)
    };
}

#[mcp_server]
mod press {
    use aster_runtime::{ToolContext, mcp_prompt, mcp_resource, mcp_tool};

    #[doc = ten!("Prints what it is given, page by page, in colour where it can.\n\nIt cuts, folds and staples, too. ")]
    #[mcp_tool(tier = Standard)]
    pub(super) fn print() {}

    /// What waits.
    #[mcp_resource(uri = "press://queue", tier = Standard)]
    pub(super) fn queue() -> &'static str {
        ""
    }

    /// Asks about printing.
    #[mcp_prompt(tier = Standard)]
    pub(super) fn about() -> &'static str {
        "How do I print?"
    }

    /// Says of all what is going on.
    #[mcp_tool(tier = Standard)]
    pub(super) fn tell(ctx: &ToolContext, note: String) {
        for name in ["print", "queue", "about"] {
            ctx.availability().note(name, &note);
        }
    }
}

#[tokio::test]
async fn a_note_stands_at_the_end_of_each_description_and_the_description_gives_way() {
    let host = Host::builder().catalogue(catalogue![press::SERVER]).build().await.unwrap();
    let session = host.session(Profile::new("test")).unwrap();
    let mut changes = host.changes();
    let mut after = async |note: &str| {
        let arguments = serde_json::json!({"note": note}).as_object().cloned().unwrap();
        assert_eq!(session.execute("press/tell", arguments, CallOptions::default()).await.denied, None);
        changes.changed().await.unwrap();
        host.catalogue()
    };
    let length = |text: &str| text.chars().count();
    let before = host.catalogue();
    let print = |catalogue: &aster_runtime::Catalogue| catalogue.tools()[0].clone();
    let (long, short) = (print(&before).description().to_owned(), print(&before).summary().to_owned());
    assert!(length(&long) > 950 && (450..=500).contains(&length(&short)), "{long}");

    let note = "The magenta has run out. ".repeat(7);
    let noted = after(&note).await;
    let note = note.trim_end();
    assert!(print(&noted).summary().ends_with(note), "{}", print(&noted).summary());
    assert!(print(&noted).description().ends_with(note), "{}", print(&noted).description());
    assert!(
        print(&noted)
            .description()
            .starts_with("Prints what it is given, page by page, in colour where it can.\n\nIt")
    );
    assert!(length(print(&noted).summary()) <= 500 && length(print(&noted).description()) <= 1024);
    assert_eq!(print(&noted).digest(), print(&before).digest());
    let (queue, about) = (noted.resources()[0].definition(), noted.prompts()[0].definition());
    assert_eq!(queue["description"], format!("What waits. {note}"));
    assert_eq!(about["description"], format!("Asks about printing. {note}"));
    assert_eq!((&queue["uri"], &about["name"]), (&"press://queue".into(), &"about".into()));

    let again = after("").await;
    assert_eq!((print(&again).description(), print(&again).summary()), (long.as_str(), short.as_str()));
    assert_eq!(again.resources()[0].definition(), before.resources()[0].definition());
    assert_eq!(again.prompts()[0].definition(), before.prompts()[0].definition());
}
