//! One `aster.yaml`: from its bytes to values that are checked, each with its place.
//!
//! Constraint: a problem never ends the reading. What is wrong is noted, and the rest is read, so that one run names
//! everything that has to be mended. No message quotes a value of `command`, `args`, `env` or `cwd`.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use globset::{Glob, GlobMatcher};

use super::expand::Template;
use super::yaml::{self, Mark, Node, Value};
use super::{Destinations, MAX_FILE_BYTES, Problem};
use crate::catalogue::{AnnotationTrust, Pinning};
use crate::gate::egress;
use crate::gate::hooks::{Event, Matcher, OnFailure};
use crate::gate::limits::{Limit, Limits};
use crate::gate::secrets::{self, Incoming, Outgoing, SecretPolicy, Severity};
use crate::id;
use crate::spec::Tier;
use crate::text::one_line;

/// What one file says; `None` is unsaid.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) servers: Vec<Server>,
    pub(super) allow: Option<Vec<String>>,
    pub(super) deny: Vec<String>,
    pub(super) context_tokens: Option<(usize, Mark)>,
    pub(super) inventory_percent: Option<(f64, Mark)>,
    pub(super) search_limit: Option<(usize, Mark)>,
    pub(super) pins: Option<(Pinning, Mark)>,
    pub(super) approval_clients: Option<(Vec<String>, Mark)>,
    pub(super) allow_private: Option<(Vec<String>, Mark)>,
    pub(super) destinations: Destinations,
    pub(super) agents: BTreeMap<String, (Destinations, Mark)>,
    pub(super) agents_at: Option<Mark>,
    pub(super) secrets: Option<(SecretPolicy, Mark)>,
    pub(super) audit: Audit,
    pub(super) hooks: Vec<HookEntry>,
    pub(super) limits: Option<(Limits, Mark)>,
}

/// One entry of a list under `hooks`.
#[derive(Debug)]
pub(super) struct HookEntry {
    pub(super) at: Mark,
    pub(super) event: Event,
    pub(super) command: Text,
    pub(super) args: Vec<Text>,
    pub(super) env: Vec<(String, Text)>,
    pub(super) matcher: Matcher,
    pub(super) timeout: Option<Duration>,
    pub(super) changes: bool,
    pub(super) on_failure: OnFailure,
}

/// The section `audit`.
#[derive(Debug, Default)]
pub(super) struct Audit {
    /// The key that says where, `path`, `sqlite` or `postgres`, and what it says.
    pub(super) place: Option<(&'static str, Text)>,
    pub(super) segment_mib: Option<usize>,
    pub(super) segment_days: Option<usize>,
    pub(super) keep_segments: Option<usize>,
    /// The keys that stand there.
    pub(super) said: Vec<(&'static str, Mark)>,
}

/// One entry of `mcp.servers`.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) at: Mark,
    pub(super) command: Text,
    pub(super) args: Vec<Text>,
    pub(super) env: Vec<(String, Text)>,
    pub(super) cwd: Option<Text>,
    pub(super) disabled: bool,
    pub(super) tier: Option<(Tier, Mark)>,
    pub(super) tiers: Vec<(GlobMatcher, Tier, Mark)>,
    pub(super) annotations: Option<(AnnotationTrust, Mark)>,
    pub(super) url_arguments: Vec<String>,
    pub(super) free_arguments: Option<(Vec<String>, Mark)>,
    pub(super) pins: Option<(Pinning, Mark)>,
    pub(super) startup_timeout: Option<Duration>,
    pub(super) call_timeout: Option<Duration>,
}

/// A text that may have variables in it.
pub(super) struct Text {
    pub(super) raw: String,
    pub(super) template: Template,
    pub(super) at: Mark,
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

/// Reads the bytes of a file.
pub(super) fn read(bytes: &[u8], path: &Path, reserved: &[&str]) -> Result<File, Vec<Problem>> {
    let mut reader = Reader { path, problems: Vec::new() };
    let mut file = File::default();
    if let Some(root) = reader.parse(bytes) {
        reader.root(&root, &mut file, reserved);
    }
    if reader.problems.is_empty() {
        return Ok(file);
    }
    reader.problems.sort_by_key(|problem| (problem.line, problem.column));
    Err(reader.problems)
}

/// Reads a tree of nodes and notes what is wrong with it.
pub(super) struct Reader<'a> {
    pub(super) path: &'a Path,
    pub(super) problems: Vec<Problem>,
}

impl Reader<'_> {
    pub(super) fn problem(&mut self, at: Mark, message: impl Into<String>, help: impl Into<String>) {
        self.problems.push(Problem::new(self.path, at, message, help));
    }

    pub(super) fn parse(&mut self, bytes: &[u8]) -> Option<Node> {
        if bytes.len() > MAX_FILE_BYTES {
            let message = format!("the file is larger than {} KiB", MAX_FILE_BYTES / 1024);
            self.problem(Mark::default(), message, "a configuration of this size is a mistake");
            return None;
        }
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let line = bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count() + 1;
                let at = Mark { line: u32::try_from(line).unwrap_or(u32::MAX), column: 1 };
                self.problem(at, "the text is not UTF-8", "save the file as UTF-8");
                return None;
            }
        };
        match yaml::parse(text) {
            Ok(root) => Some(root),
            Err((at, message)) => {
                let in_flow = message.contains("flow");
                let help = if in_flow { "between brackets, put a text with `${…}` in quotes" } else { "" };
                let message = format!("the text is not valid YAML: {}", one_line(&message, 200));
                self.problem(at, message, help);
                None
            }
        }
    }

    fn root(&mut self, root: &Node, file: &mut File, reserved: &[&str]) {
        for (key, value) in
            self.section(root, "the file", &["mcp", "egress", "secrets", "audit", "hooks", "limits"])
        {
            match key {
                "mcp" => self.mcp(value, file, reserved),
                "hooks" => self.hooks(value, file),
                "limits" => file.limits = Some((self.limits(value), value.at)),
                "egress" => self.egress(value, file),
                "secrets" => file.secrets = Some((self.secrets(value), value.at)),
                _ => self.audit(value, &mut file.audit),
            }
        }
    }

    fn audit(&mut self, node: &Node, audit: &mut Audit) {
        let keys = ["path", "sqlite", "postgres", "segment_mib", "segment_days", "keep_segments"];
        for (key, value) in self.section(node, "`audit`", &keys) {
            let what = format!("`audit.{key}`");
            audit.said.push((key, value.at));
            match key {
                "segment_mib" => audit.segment_mib = self.whole(value, &what, 1, 1 << 20).map(|(n, _)| n),
                "segment_days" => audit.segment_days = self.whole(value, &what, 1, 36_500).map(|(n, _)| n),
                "keep_segments" => {
                    audit.keep_segments = self.whole(value, &what, 0, 1_000_000).map(|(n, _)| n);
                }
                _ => {
                    let place = self.path(value, &what);
                    if let Some((other, _)) = &audit.place {
                        let message = format!("`audit` has both `{other}` and `{key}`");
                        self.problem(
                            value.at,
                            message,
                            "keep one of them: the audit is written to one place",
                        );
                    }
                    audit.place = place.map(|text| (key, text));
                }
            }
        }
    }

    fn egress(&mut self, node: &Node, file: &mut File) {
        let mut lists = Destinations::default();
        for (key, value) in self.section(node, "`egress`", &["allow", "deny", "allow_private", "agents"]) {
            match key {
                "allow" => lists.allow = self.hosts(value, "`egress.allow`", Some("nothing")),
                "deny" => lists.deny = self.hosts(value, "`egress.deny`", None),
                "allow_private" => {
                    file.allow_private = Some((self.hosts(value, "`egress.allow_private`", None), value.at));
                }
                _ => {
                    file.agents_at = Some(value.at);
                    for (agent, value) in self.entries(value, "`egress.agents`") {
                        let at = agent.at;
                        let agent = agent.value.scalar().unwrap_or_default();
                        let what = format!("`egress.agents.{}`", one_line(agent, 64));
                        let mut lists = Destinations::default();
                        for (key, value) in self.section(value, &what, &["allow", "deny"]) {
                            match key {
                                "allow" => {
                                    lists.allow =
                                        self.hosts(value, &format!("`allow` of {what}"), Some("nothing"))
                                }
                                _ => lists.deny = self.hosts(value, &format!("`deny` of {what}"), None),
                            }
                        }
                        file.agents.insert(agent.to_owned(), (lists, at));
                    }
                }
            }
        }
        file.destinations = lists;
    }

    fn secrets(&mut self, node: &Node) -> SecretPolicy {
        let mut policy = SecretPolicy::default();
        for (key, value) in self.section(node, "`secrets`", &["outgoing", "incoming", "least", "except"]) {
            match key {
                "outgoing" => {
                    let choices = [
                        ("block", Outgoing::Block),
                        ("redact", Outgoing::Redact),
                        ("allow", Outgoing::Allow),
                    ];
                    let chosen = self.choice(value, "`secrets.outgoing`", &choices);
                    policy = policy.outgoing(chosen.unwrap_or_default());
                }
                "incoming" => {
                    let choices = [("redact", Incoming::Redact), ("allow", Incoming::Allow)];
                    let chosen = self.choice(value, "`secrets.incoming`", &choices);
                    policy = policy.incoming(chosen.unwrap_or_default());
                }
                "least" => {
                    let choices =
                        [("low", Severity::Low), ("medium", Severity::Medium), ("high", Severity::High)];
                    if let Some(least) = self.choice(value, "`secrets.least`", &choices) {
                        policy = policy.least(least);
                    }
                }
                _ => {
                    let known: Vec<(&str, &str)> = secrets::kinds().map(|kind| (kind, kind)).collect();
                    for item in self.list(value, "`secrets.except`") {
                        let kind = self.choice(item, "an entry of `secrets.except`", &known);
                        policy = policy.clone().except(kind).unwrap_or(policy);
                    }
                }
            }
        }
        policy
    }

    fn mcp(&mut self, node: &Node, file: &mut File, reserved: &[&str]) {
        let keys =
            ["servers", "tools", "pins", "approval", "context_tokens", "inventory_percent", "search_limit"];
        for (key, value) in self.section(node, "`mcp`", &keys) {
            match key {
                "servers" => self.servers(value, file, reserved),
                "tools" => {
                    for (key, value) in self.section(value, "`mcp.tools`", &["allow", "deny"]) {
                        match key {
                            "allow" => file.allow = Some(self.id_globs(value, "`mcp.tools.allow`")),
                            _ => file.deny = self.id_globs(value, "`mcp.tools.deny`"),
                        }
                    }
                }
                "approval" => {
                    for (_, value) in self.section(value, "`mcp.approval`", &["clients"]) {
                        file.approval_clients = Some((self.clients(value), value.at));
                    }
                }
                "pins" => file.pins = self.pinning(value, "`mcp.pins`").map(|pins| (pins, value.at)),
                "context_tokens" => {
                    file.context_tokens = self.whole(value, "`mcp.context_tokens`", 1, 100_000_000);
                }
                "inventory_percent" => {
                    file.inventory_percent = self.percent(value, "`mcp.inventory_percent`")
                }
                _ => file.search_limit = self.whole(value, "`mcp.search_limit`", 1, 20),
            }
        }
    }

    fn servers(&mut self, node: &Node, file: &mut File, reserved: &[&str]) {
        for (key, value) in self.entries(node, "`mcp.servers`") {
            let name = key.value.scalar().unwrap_or_default();
            let shown = one_line(name, 64);
            if let Err(error) = id::check_server_name(name) {
                self.problem(
                    key.at,
                    format!("the server name `{shown}` cannot be used: {error}"),
                    "use letters, digits, `.`, `_` and `-`, starting with a letter or a digit, at most 64",
                );
                continue;
            }
            if reserved.contains(&name) {
                let message = format!("the server name `{shown}` is taken by a native server");
                self.problem(key.at, message, format!("choose another, for example `{shown}-mcp`"));
                continue;
            }
            if let Some(server) = self.server(name, key.at, value) {
                file.servers.push(server);
            }
        }
    }

    fn server(&mut self, name: &str, at: Mark, node: &Node) -> Option<Server> {
        const KEYS: [&str; 13] = [
            "command",
            "args",
            "env",
            "cwd",
            "disabled",
            "tier",
            "tiers",
            "annotations",
            "url_arguments",
            "free_arguments",
            "pins",
            "startup_timeout",
            "call_timeout",
        ];
        let what = format!("server `{name}`");
        let before = self.problems.len();
        let mut command = None;
        let mut has_command = false;
        let mut server = Server {
            name: name.to_owned(),
            at,
            command: Text { raw: String::new(), template: Template::empty(), at },
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
            disabled: false,
            tier: None,
            tiers: Vec::new(),
            annotations: None,
            url_arguments: Vec::new(),
            free_arguments: None,
            pins: None,
            startup_timeout: None,
            call_timeout: None,
        };
        for (key, value) in self.section(node, &what, &KEYS) {
            let what = format!("`{key}` of {what}");
            match key {
                "command" => {
                    has_command = true;
                    command = self.path(value, &what);
                }
                "args" => {
                    for item in self.list(value, &what) {
                        server.args.extend(self.template(item, &format!("an entry of {what}")));
                    }
                }
                "env" => server.env = self.environment(value, &what),
                "cwd" => server.cwd = self.path(value, &what),
                "disabled" => server.disabled = self.switch(value, &what),
                "tier" => server.tier = self.tier(value, &what).map(|tier| (tier, value.at)),
                "tiers" => {
                    for (key, value) in self.entries(value, &what) {
                        let glob = self.glob(key, &what);
                        let tier = self.tier(value, &what);
                        server.tiers.extend(glob.zip(tier).map(|(glob, tier)| (glob, tier, value.at)));
                    }
                }
                "annotations" => {
                    server.annotations = self.annotations(value, &what).map(|trust| (trust, value.at));
                }
                "url_arguments" => server.url_arguments = self.names(value, &what),
                "free_arguments" => server.free_arguments = Some((self.names(value, &what), value.at)),
                "pins" => server.pins = self.pinning(value, &what).map(|pins| (pins, value.at)),
                "startup_timeout" => server.startup_timeout = self.duration(value, &what),
                _ => server.call_timeout = self.duration(value, &what),
            }
        }
        let misspelt =
            self.problems[before..].iter().any(|problem| problem.help == "did you mean `command`?");
        if !has_command && !misspelt && matches!(node.value, Value::Map(_) | Value::Null) {
            let help = "say what to start, for example `command: npx`";
            self.problem(at, format!("{what} has no `command`"), help);
        }
        server.command = command?;
        (self.problems.len() == before).then_some(server)
    }

    fn limits(&mut self, node: &Node) -> Limits {
        let mut limits = Limits::default();
        for (key, value) in
            self.section(node, "`limits`", &["session", "servers", "tools", "waiting", "wait", "result_mib"])
        {
            let what = format!("`limits.{key}`");
            match key {
                "session" => limits = limits.session(self.limit(value, &what)),
                "servers" => {
                    for (name, value) in self.entries(value, &what) {
                        let name = name.value.scalar().unwrap_or_default();
                        let limit = self.limit(value, &format!("{what} of `{}`", one_line(name, 64)));
                        limits = limits.server(name, limit);
                    }
                }
                "tools" => {
                    for (glob, value) in self.entries(value, &what) {
                        let limit = self.limit(value, &what);
                        if let Some(glob) = self.glob(glob, &what) {
                            limits = limits.tool(glob, limit);
                        }
                    }
                }
                "waiting" => {
                    if let Some((calls, _)) = self.whole(value, &what, 0, 100_000) {
                        limits = limits.max_waiting(calls);
                    }
                }
                "result_mib" => {
                    if let Some((number, _)) = self.whole(value, &what, 1, 1024) {
                        limits = limits.max_result(number << 20);
                    }
                }
                _ => {
                    if let Some(wait) = self.duration(value, &what) {
                        limits = limits.max_wait(wait);
                    }
                }
            }
        }
        limits
    }

    fn limit(&mut self, node: &Node, what: &str) -> Limit {
        let mut limit = Limit::default();
        for (key, value) in self.section(node, what, &["concurrent", "per_minute"]) {
            let Some((calls, _)) = self.whole(value, &format!("`{key}` of {what}"), 1, 1_000_000) else {
                continue;
            };
            limit = match key {
                "concurrent" => limit.concurrent(calls),
                _ => limit.per_minute(u32::try_from(calls).unwrap_or(u32::MAX)),
            };
        }
        limit
    }

    fn hooks(&mut self, node: &Node, file: &mut File) {
        let events = [Event::PreToolUse, Event::PostToolUse, Event::PostToolUseFailure];
        for (key, value) in self.section(node, "`hooks`", &events.map(Event::name)) {
            let event = events.into_iter().find(|event| event.name() == key);
            for item in self.list(value, &format!("`hooks.{key}`")) {
                let hook = event.and_then(|event| self.hook(event, item));
                file.hooks.extend(hook);
            }
        }
    }

    fn hook(&mut self, event: Event, node: &Node) -> Option<HookEntry> {
        const KEYS: [&str; 9] =
            ["command", "args", "env", "tools", "regex", "match", "timeout", "changes", "on_failure"];
        let what = format!("a hook of `{}`", event.name());
        let before = self.problems.len();
        let (mut command, mut pattern, mut by_name) = (None, None, false);
        let (mut args, mut env, mut timeout) = (Vec::new(), Vec::new(), None);
        let (mut changes, mut on_failure) = (false, OnFailure::Block);
        for (key, value) in self.section(node, &what, &KEYS) {
            let what = format!("`{key}` of {what}");
            match key {
                "command" => command = self.path(value, &what),
                "args" => {
                    for item in self.list(value, &what) {
                        args.extend(self.template(item, &format!("an entry of {what}")));
                    }
                }
                "env" => env = self.environment(value, &what),
                "tools" | "regex" => {
                    if pattern.is_some() {
                        let help = "leave one of `tools` and `regex` out, or write two hooks";
                        self.problem(value.at, format!("{what} is one matcher too many"), help);
                    }
                    let text = self.scalar(value, &what).unwrap_or_default();
                    let matcher = if key == "tools" { Matcher::glob(text) } else { Matcher::regex(text) };
                    match matcher {
                        Ok(matcher) => pattern = Some(matcher),
                        Err(error) => {
                            self.problem(value.at, format!("{what}: {error}"), "mend it, or leave it out")
                        }
                    }
                }
                "match" => {
                    by_name = self.choice(value, &what, &[("id", false), ("name", true)]).unwrap_or_default();
                }
                "timeout" => timeout = self.duration(value, &what),
                "changes" => changes = self.switch(value, &what),
                _ => {
                    let choices = [("block", OnFailure::Block), ("allow", OnFailure::Allow)];
                    on_failure = self.choice(value, &what, &choices).unwrap_or_default();
                }
            }
        }
        if command.is_none() && self.problems.len() == before {
            self.problem(
                node.at,
                format!("{what} has no `command`"),
                "say what to run, for example `command: ./check`",
            );
        }
        let matcher = pattern.unwrap_or_else(Matcher::all);
        let matcher = if by_name { matcher.by_name() } else { matcher };
        let hook = HookEntry {
            at: node.at,
            event,
            command: command?,
            args,
            env,
            matcher,
            timeout,
            changes,
            on_failure,
        };
        (self.problems.len() == before).then_some(hook)
    }

    /// The entries of a mapping whose keys are fixed. Unknown keys are noted and skipped.
    pub(super) fn section<'n>(
        &mut self,
        node: &'n Node,
        what: &str,
        keys: &[&'static str],
    ) -> Vec<(&'static str, &'n Node)> {
        let mut known = Vec::new();
        for (key, value) in self.entries(node, what) {
            let name = key.value.scalar().unwrap_or_default();
            match keys.iter().find(|&&known| known == name) {
                Some(&key) => known.push((key, value)),
                None => {
                    let message = format!("{what} has no key `{}`", one_line(name, 64));
                    self.problem(key.at, message, suggest(name, keys));
                }
            }
        }
        known
    }

    /// The entries of a mapping, each key once. Nothing at all is an empty mapping.
    pub(super) fn entries<'n>(&mut self, node: &'n Node, what: &str) -> Vec<(&'n Node, &'n Node)> {
        let entries = match &node.value {
            Value::Map(entries) => entries.as_slice(),
            Value::Null => &[],
            other => {
                self.problem(
                    node.at,
                    format!("{what} is {}, not a mapping", other.kind()),
                    "write `key: value` lines",
                );
                &[]
            }
        };
        let mut first: HashMap<&str, u32> = HashMap::new();
        let mut kept = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let Some(name) = key.value.scalar() else {
                self.problem(key.at, format!("a key of {what} is {}, not text", key.value.kind()), "");
                continue;
            };
            if let Some(line) = first.get(name) {
                let message = format!("the key `{}` stands twice in {what}", one_line(name, 64));
                self.problem(key.at, message, format!("keep one of them; the first is on line {line}"));
                continue;
            }
            first.insert(name, key.at.line);
            kept.push((key, value));
        }
        kept
    }

    pub(super) fn list<'n>(&mut self, node: &'n Node, what: &str) -> &'n [Node] {
        match &node.value {
            Value::List(items) => items,
            Value::Null => &[],
            other => {
                self.problem(
                    node.at,
                    format!("{what} is {}, not a list", other.kind()),
                    "write `[a, b]`, or a line `- a` each",
                );
                &[]
            }
        }
    }

    pub(super) fn scalar<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n str> {
        let text = node.value.scalar();
        if text.is_none() {
            let help = match node.value {
                Value::Null => "write a value, or leave the key out",
                _ => "write one text",
            };
            self.problem(node.at, format!("{what} is {}, not text", node.value.kind()), help);
        }
        text
    }

    /// Hosts. Of a list that allows, an empty one would read as no limit at all.
    fn hosts(&mut self, node: &Node, what: &str, empty: Option<&str>) -> Vec<String> {
        let mut hosts = Vec::new();
        let items = self.list(node, what);
        if let Some(allows) = empty.filter(|_| items.is_empty()) {
            self.problem(
                node.at,
                format!("{what} is empty, which would allow {allows}"),
                "list hosts, or leave it out",
            );
        }
        for item in items {
            let Some(text) = self.scalar(item, &format!("an entry of {what}")) else { continue };
            match egress::check_entry(what.trim_matches('`'), text) {
                Ok(()) => hosts.push(text.to_owned()),
                Err(error) => self.problem(item.at, one_line(&error.to_string(), 300), ""),
            }
        }
        hosts
    }

    fn names(&mut self, node: &Node, what: &str) -> Vec<String> {
        let items = self.list(node, what).iter();
        items
            .filter_map(|item| self.scalar(item, &format!("an entry of {what}")).map(str::to_owned))
            .collect()
    }

    fn clients(&mut self, node: &Node) -> Vec<String> {
        let mut clients = Vec::new();
        for item in self.list(node, "`mcp.approval.clients`") {
            let Some(name) = self.scalar(item, "an entry of `mcp.approval.clients`") else { continue };
            if name.trim().is_empty() || one_line(name, 100) != name {
                let help = "write the name that the client gives itself; the audit has it";
                self.problem(item.at, "an entry of `mcp.approval.clients` is no name of a client", help);
                continue;
            }
            clients.push(name.to_owned());
        }
        clients
    }

    fn path(&mut self, node: &Node, what: &str) -> Option<Text> {
        let text = self.template(node, what)?;
        if text.raw.trim().is_empty() {
            self.problem(node.at, format!("{what} is empty"), "write a value, or leave the key out");
            return None;
        }
        if text.raw == "~" || text.raw.starts_with("~/") {
            self.problem(
                node.at,
                format!("{what} starts with `~`, which only a shell knows"),
                "write `${HOME}`",
            );
            return None;
        }
        Some(text)
    }

    fn template(&mut self, node: &Node, what: &str) -> Option<Text> {
        let raw = self.scalar(node, what)?.to_owned();
        if raw.contains('\0') {
            self.problem(node.at, format!("{what} has a NUL character"), "no program can be given one");
            return None;
        }
        match Template::parse(&raw) {
            Ok(template) => Some(Text { raw, template, at: node.at }),
            Err(reason) => {
                let help = "write `${NAME}` or `${NAME:-default}` for a variable, `$$` for a dollar sign";
                self.problem(node.at, format!("{what}: {reason}"), help);
                None
            }
        }
    }

    fn environment(&mut self, node: &Node, what: &str) -> Vec<(String, Text)> {
        let mut variables = Vec::new();
        for (key, value) in self.entries(node, what) {
            let name = key.value.scalar().unwrap_or_default();
            if name.is_empty() || name.contains(['=', '\0']) {
                let message = format!("{what} has the variable name `{}`", one_line(name, 64));
                self.problem(key.at, message, "a name is not empty and has no `=`");
                continue;
            }
            let text = self.template(value, &format!("`{}` in {what}", one_line(name, 64)));
            variables.extend(text.map(|text| (name.to_owned(), text)));
        }
        variables
    }

    fn switch(&mut self, node: &Node, what: &str) -> bool {
        let Value::Bool(on, _) = node.value else {
            self.problem(node.at, format!("{what} is {}, not true or false", node.value.kind()), "");
            return false;
        };
        on
    }

    fn whole(&mut self, node: &Node, what: &str, min: usize, max: usize) -> Option<(usize, Mark)> {
        let number = match &node.value {
            Value::Number(text) => text.parse().ok().filter(|number| (min..=max).contains(number)),
            _ => None,
        };
        if number.is_none() {
            self.problem(node.at, format!("{what} is not a whole number from {min} to {max}"), "");
        }
        number.map(|number| (number, node.at))
    }

    fn percent(&mut self, node: &Node, what: &str) -> Option<(f64, Mark)> {
        let number = match &node.value {
            Value::Number(text) => text.parse().ok().filter(|&number: &f64| number > 0.0 && number <= 100.0),
            _ => None,
        };
        if number.is_none() {
            self.problem(
                node.at,
                format!("{what} is not a number above 0 and at most 100"),
                "for example `1.5`",
            );
        }
        number.map(|number| (number, node.at))
    }

    pub(super) fn tier(&mut self, node: &Node, what: &str) -> Option<Tier> {
        let tiers = [Tier::Standard, Tier::Elevated, Tier::Restricted];
        self.choice(node, what, &tiers.map(|tier| (tier.name(), tier)))
    }

    fn annotations(&mut self, node: &Node, what: &str) -> Option<AnnotationTrust> {
        let choices = [
            ("tighten", AnnotationTrust::Tighten),
            ("ignore", AnnotationTrust::Ignore),
            ("trust", AnnotationTrust::Trust),
        ];
        self.choice(node, what, &choices)
    }

    fn pinning(&mut self, node: &Node, what: &str) -> Option<Pinning> {
        let choices =
            [("off", Pinning::Off), ("trust_first", Pinning::TrustFirst), ("strict", Pinning::Strict)];
        self.choice(node, what, &choices)
    }

    pub(super) fn choice<T: Copy>(
        &mut self,
        node: &Node,
        what: &str,
        choices: &[(&'static str, T)],
    ) -> Option<T> {
        let text = self.scalar(node, what)?;
        let found = choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        if found.is_none() {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            let message = format!("{what} cannot be `{}`", one_line(text, 64));
            self.problem(node.at, message, suggest(text, &names));
        }
        found
    }

    fn duration(&mut self, node: &Node, what: &str) -> Option<Duration> {
        let text = self.scalar(node, what)?;
        let duration = match &node.value {
            Value::Text(text) => text.parse::<jiff::SignedDuration>().ok(),
            _ => None,
        };
        let duration = duration
            .and_then(|duration| Duration::try_from(duration).ok())
            .filter(|duration| !duration.is_zero() && *duration <= Duration::from_secs(24 * 60 * 60));
        if duration.is_none() {
            let message = format!("{what} cannot be `{}`", one_line(text, 64));
            self.problem(
                node.at,
                message,
                "write a number and a unit, for example `30s` or `2m`, at most `24h`",
            );
        }
        duration
    }

    fn glob(&mut self, node: &Node, what: &str) -> Option<GlobMatcher> {
        let text = self.scalar(node, what)?;
        match Glob::new(text) {
            Ok(glob) => Some(glob.compile_matcher()),
            Err(error) => {
                let reason = one_line(&error.kind().to_string(), 300);
                let message = format!("{what} has the bad glob `{}`: {reason}", one_line(text, 128));
                self.problem(node.at, message, "use `*` for any characters, `?` for one, `{a,b}` for either");
                None
            }
        }
    }

    /// Globs over ids. One that no id can match is refused: a deny that never denies is worse than none.
    fn id_globs(&mut self, node: &Node, what: &str) -> Vec<String> {
        let mut globs = Vec::new();
        for item in self.list(node, what) {
            if self.glob(item, what).is_none() {
                continue;
            }
            let text = item.value.scalar().unwrap_or_default();
            if !text.contains(['/', '*', '?', '[', '{']) {
                let shown = one_line(text, 64);
                let message = format!("{what} has `{shown}`, which no id `server/tool` matches");
                self.problem(
                    item.at,
                    message,
                    format!("write `{shown}/*` for a server, `*/{shown}` for a tool"),
                );
                continue;
            }
            globs.push(text.to_owned());
        }
        globs
    }
}

/// "did you mean …" for a near name, else all of them.
fn suggest(name: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&name.to_lowercase(), known), *known))
        .min()
        .filter(|(distance, known)| *distance <= (known.len() / 3).max(1));
    if let Some((_, nearest)) = nearest {
        return format!("did you mean `{nearest}`?");
    }
    let mut list = String::from("known here: ");
    for (at, known) in known.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let _ = write!(list, "{comma}`{known}`");
    }
    list
}
