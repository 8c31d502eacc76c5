//! A host does not start with names that stand for nothing, nor with a prompt that promises what its agent does not see.

use std::borrow::Cow;
use std::sync::Arc;

use aster_runtime::gate::hooks::{Event, Hook, Matcher, ProgramHook};
use aster_runtime::gate::limits::{Limit, Limits};
use aster_runtime::gate::rules::{Action, Rule, Rules};
use aster_runtime::host::HostBuilder;
use aster_runtime::{Host, JsonObject, Profile, SessionError, ToolId, catalogue, mcp_server};
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
    let no_sit = Some("the profile of `clerk`: `desk/sit` stands for nothing: server `desk` has no `sit`");
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
        (Profile::new("clerk").supervisor([ToolId::new("desk", "sit")]), "", no_sit),
        (Profile::new("clerk").default_arguments(ToolId::new("desk", "sit"), JsonObject::new()), "", no_sit),
        (Profile::new("clerk").allow(["desk/sit"]), "", no_sit),
        (Profile::new("clerk").deny(["desk/sit"]), "", no_sit),
        (
            Profile::new("clerk").deny(["chair/*"]),
            "",
            Some("the profile of `clerk`: `chair/*` stands for nothing: no server is called `chair`"),
        ),
        (Profile::new("clerk").allow(["desk/s*", "*/sit", "desk/{sit,say}"]).deny(["desk/speak"]), "", None),
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
    // Of several, none is there.
    let told = refused(|builder| builder.rules(rules("desk/{sing,sin}"))).await;
    assert_eq!(told.unwrap().lines().count(), 2);
}

#[tokio::test]
async fn a_rule_names_a_group_that_there_can_be() {
    let rules =
        |group: &str| Rules::new([Rule::new(Action::Deny, "permissions.yaml:3").groups([group]).unwrap()]);
    for group in ["desk", "d*", "{desk,office}"] {
        assert_eq!(refused(|builder| builder.rules(rules(group))).await, None, "{group}");
    }
    // It may be that of another host's server, unless the rule is about native tools.
    assert_eq!(refused(|builder| builder.rules(rules("office"))).await, None);
    let of_natives = |groups: &[&str]| {
        let rule = Rule::new(Action::Deny, "permissions.yaml:3").groups(groups.iter().copied()).unwrap();
        Rules::new([rule.native(true)])
    };
    assert_eq!(refused(|builder| builder.rules(of_natives(&["office", "desk"]))).await, None);
    let wrong = Some("the rule at permissions.yaml:3: no tool has the group `office` or `attic`".to_owned());
    assert_eq!(refused(|builder| builder.rules(of_natives(&["office", "attic"]))).await, wrong);
    // A server that is configured and not started has its group all the same.
    let absent =
        |builder: HostBuilder| builder.rules(of_natives(&["office"])).absent_server("chairs", "office");
    assert_eq!(refused(absent).await, None);
}

#[tokio::test]
async fn a_hook_whose_expression_spells_its_tools_out_names_what_there_is() {
    let hook = |matcher: Matcher| Arc::new(ProgramHook::new(Event::PreToolUse, "guard").matcher(matcher));
    for regex in
        ["desk/say", "desk/(say|sing)", "desk/s[ai]y", "desk/.*", "desk/si.*", ".*", "desk/s(ay|hut)"]
    {
        let matcher = Matcher::regex(regex).unwrap();
        assert_eq!(refused(|builder| builder.hook(hook(matcher))).await, None, "{regex}");
    }
    let name = Matcher::regex("desk__say").unwrap().by_name();
    assert_eq!(refused(|builder| builder.hook(hook(name))).await, None);
    let wrong = |tool: &str| {
        format!("the hook `guard`: `desk/{tool}` stands for nothing: server `desk` has no `{tool}`")
    };
    for (regex, told) in [
        ("desk/sing", wrong("sing")),
        ("desk/si(ng)", wrong("sing")),
        ("desk/(sing|sin)", format!("{}\n{}", wrong("sing"), wrong("sin"))),
    ] {
        let matcher = Matcher::regex(regex).unwrap();
        assert_eq!(refused(|builder| builder.hook(hook(matcher))).await, Some(told), "{regex}");
    }
}

#[tokio::test]
async fn a_session_is_of_a_profile_that_names_what_there_is() {
    let host = Host::builder().catalogue(catalogue![desk::SERVER]).absent_server("chairs", "office");
    let host = host.build().await.unwrap();
    for profile in [
        Profile::new("clerk").groups(["desk", "office"]),
        // Of an external server nobody knows yet.
        Profile::new("clerk").tools([ToolId::new("chairs", "sit")]).deny(["chairs/throw", "*/throw"]),
    ] {
        assert!(host.session(profile).is_ok());
    }
    for (profile, told) in [
        (Profile::new("clerk").groups(["of-fice"]), "no tool has the group `of-fice`"),
        (Profile::new("clerk").deny(["desk/shutt"]), "server `desk` has no `shutt`"),
        (Profile::new("clerk").supervisor([ToolId::new("dsk", "say")]), "no server is called `dsk`"),
    ] {
        let error = host.session(profile).unwrap_err();
        assert!(matches!(error, SessionError::DeadNames(_)), "{error}");
        assert!(
            error.to_string().starts_with("the profile of `clerk`: ") && error.to_string().contains(told)
        );
    }
}
