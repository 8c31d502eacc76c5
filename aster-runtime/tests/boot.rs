//! A host does not start with names that stand for nothing, nor with a prompt that promises what its agent does not see.

use std::borrow::Cow;
use std::sync::Arc;

use aster_runtime::gate::hooks::Hook;
use aster_runtime::gate::limits::{Limit, Limits};
use aster_runtime::gate::rules::{Action, Rule, Rules};
use aster_runtime::host::HostBuilder;
use aster_runtime::{Host, Profile, ToolId, catalogue, mcp_server};
use globset::Glob;

/// A desk.
#[mcp_server(name = "desk")]
mod desk {
    use aster_runtime::mcp_tool;

    /// Says what it is told.
    #[mcp_tool(tier = Standard, alias = "speak")]
    pub(crate) fn say(
        /// What to say.
        text: String,
    ) -> String {
        text
    }

    /// Shuts the desk.
    #[mcp_tool(tier = Standard)]
    pub(crate) fn shut() {}
}

/// Why a host does not start, if it does not.
async fn refused(more: impl FnOnce(HostBuilder) -> HostBuilder) -> Option<String> {
    let builder = Host::builder().catalogue(catalogue![desk::SERVER]);
    more(builder).build().await.err().map(|error| error.to_string())
}

struct Looks(&'static str);

impl Hook for Looks {
    fn name(&self) -> Cow<'_, str> {
        "looker".into()
    }

    fn named_tools(&self) -> Vec<String> {
        vec![self.0.to_owned()]
    }
}

#[tokio::test]
async fn a_prompt_promises_only_what_its_agent_sees() {
    let whole = || Profile::new("clerk");
    let limited = || Profile::new("clerk").allow(["desk/say"]);
    for (profile, prompt, wrong) in [
        (
            whole(),
            "Use `desk/say`, or desk__shut. Never and/or; see src/main.rs, 1/2 and https://desk/x.",
            None,
        ),
        (whole(), "desk/* is yours", None),
        (
            whole(),
            "Use desk/shout.",
            Some("the prompt of `clerk`: it speaks of `desk/shout`, and server `desk` has no `shout`"),
        ),
        (limited(), "Use desk/say.", None),
        (Profile::new("clerk").tools([ToolId::new("desk", "speak")]), "Use desk/say, once desk/speak.", None),
        (
            limited(),
            "Then **desk/shut**!",
            Some("the prompt of `clerk`: it promises `desk/shut`, which this agent does not see"),
        ),
        (
            limited(),
            "Then desk__shut.",
            Some("the prompt of `clerk`: it promises `desk__shut`, which this agent does not see"),
        ),
        (
            Profile::new("clerk").groups(["office"]),
            "",
            Some("the profile of `clerk`: no tool has the group `office`"),
        ),
        (
            Profile::new("clerk").tools([ToolId::new("desk", "sit")]),
            "",
            Some("the profile of `clerk`: `desk/sit` stands for nothing: server `desk` has no `sit`"),
        ),
        (
            Profile::new("clerk").tools([ToolId::new("chair", "sit")]),
            "",
            Some("the profile of `clerk`: `chair/sit` stands for nothing: no server is called `chair`"),
        ),
    ] {
        let told = refused(|builder| builder.agent(profile, prompt)).await;
        assert_eq!(told.as_deref(), wrong, "{prompt}");
    }
}

#[tokio::test]
async fn rules_hooks_and_limits_name_what_there_is() {
    let rules =
        |glob: &str| Rules::new([Rule::new(Action::Ask, "permissions.yaml:3").tools([glob]).unwrap()]);
    let limits = |glob: &str| {
        Limits::default().tool(Glob::new(glob).unwrap().compile_matcher(), Limit::default().per_minute(1))
    };
    for glob in ["desk/say", "desk/s*", "*/nothing", "elsewhere/nothing", "desk/{say,sing}", "desk/speak"] {
        assert_eq!(refused(|builder| builder.rules(rules(glob))).await, None, "{glob}");
        assert_eq!(refused(|builder| builder.limits(limits(glob))).await, None, "{glob}");
        let glob: &'static str = glob;
        assert_eq!(refused(|builder| builder.hook(Arc::new(Looks(glob)))).await, None, "{glob}");
    }
    let wrong = "`desk/sing` stands for nothing: server `desk` has no `sing`";
    let told = refused(|builder| builder.rules(rules("desk/sing")).hook(Arc::new(Looks("desk/sing")))).await;
    assert_eq!(
        told.unwrap(),
        format!("the rule at permissions.yaml:3: {wrong}\nthe hook `looker`: {wrong}"),
        "all of them are told at once"
    );
    let told = refused(|builder| builder.limits(limits("desk/sing"))).await;
    assert_eq!(told.unwrap(), format!("the limits: {wrong}"));
}
