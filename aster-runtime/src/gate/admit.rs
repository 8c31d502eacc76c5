//! Admission. [`Admitted`] has a private field and this module makes the only one, at the end of [`admit`]; dispatch
//! takes nothing else. So no call is dispatched that has not passed every check.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::approval::{self, Approval, Cause};
use super::egress::EgressPolicy;
use super::hooks::{self, Heard, Judged};
use super::limits::Slot;
use super::real::real;
use super::rules::{Caller, Facts, Requirement, Rule, Rules, Ruling};
use super::secrets::{Outgoing, Places};
use super::{Check, Denied, Gate};
use crate::call::{By, Proposed};
use crate::catalogue::{Origin, Tool};
use crate::scope::Scope;
use crate::session::Session;
use crate::spec::Tier;
use crate::tool::{ClientLink, JsonObject};

/// A call that has passed the gate: its arguments are those that were checked and approved.
#[derive(Debug)]
pub struct Admitted {
    call: Proposed,
    by: String,
    tier: Tier,
    slot: Slot,
    decided: Decided,
}

impl Admitted {
    /// The call.
    #[must_use]
    pub fn call(&self) -> &Proposed {
        &self.call
    }

    /// By what it was admitted: its tier, a rule, or who approved.
    #[must_use]
    pub fn by(&self) -> &str {
        &self.by
    }

    /// What hooks want the model to be told besides, with the result.
    pub(crate) fn take_context(&mut self) -> Vec<String> {
        std::mem::take(&mut self.decided.judged.context)
    }

    /// The tier of this call: the tool's, or Restricted where a human was asked about it.
    #[must_use]
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Whether it would be admitted by the rules as they are now too, for whoever lets it wait.
    pub(crate) async fn check_same_rules(&self, gate: &Gate) -> Result<(), Denied> {
        self.decided.check_same_rules(gate, &self.call).await
    }

    /// The call, to be sent, and the place that it has while it runs.
    #[must_use]
    pub fn into_call(mut self) -> (Proposed, Slot) {
        self.slot.sent();
        (self.call, self.slot)
    }
}

/// By what a call was decided, but for the call itself.
#[derive(Debug)]
struct Decided {
    rules: Arc<Rules>,
    outgoing: Outgoing,
    ruling: Ruling,
    judged: Judged,
}

/// Admits a call or refuses it. The order is this function's body; `client` is the way back to whoever called, and `heard`
/// takes what the hooks say and make of it.
///
/// # Errors
///
/// The first check that refuses, with what to do instead.
pub async fn admit(
    gate: &Gate,
    scope: &Scope,
    mut call: Proposed,
    client: Option<&Arc<dyn ClientLink>>,
    heard: &mut Heard,
) -> Result<Admitted, Denied> {
    check_scope(scope, &call)?;
    check_arguments(&call)?;
    let judged = hooks::before(&gate.hooks, &mut call, heard, check_arguments).await?;
    let rules = scope.rules();
    let outgoing = outgoing(gate, rules, &call).await;
    // First, so that rules and egress judge what is sent.
    if clean_secrets(gate, outgoing, &mut call)? {
        heard.arguments = Some(call.arguments.clone());
    }
    let ruling = rule(gate, rules, &call).await;
    check_rules(&ruling)?;
    let unheard = matches!(ruling.requirement, Requirement::Ask(_));
    let ruling = hear(ruling, &judged, &call);
    check_egress(gate, &call)?;
    check_secrets(gate, outgoing, &call)?;
    check_budget(&call.session, call.session.exhausted().is_none())?;
    let mut tier = call.tool.tier();
    heard.by = By::rule(ruling.rule.as_deref());
    let by = match (&ruling.requirement, &ruling.rule) {
        (Requirement::Ask(why), place) => {
            tier = Tier::Restricted;
            // Recorded in full, whatever comes of it.
            heard.tier = Some(tier);
            heard.arguments = Some(call.arguments.clone());
            heard.by.hook = judged.ask.as_ref().map(|word| word.hook.as_str().into());
            gate.limits.look(&call)?;
            let cause = Cause { why, asking: &ruling.asking, rules };
            match approval::ask(gate, &call, &cause, client).await {
                Approval::Approved { by, .. } => {
                    heard.by.approver = Some(by.as_str().into());
                    match place {
                        Some(place) => format!("{by}, asked by the rule at {place}"),
                        None => by,
                    }
                }
                Approval::Denied { by, reason } => {
                    heard.by.approver = by.map(Into::into);
                    return Err(Denied::new(Check::Approval, reason));
                }
                Approval::Unasked { .. } => {
                    return Err(Denied::new(Check::Approval, "nobody can be asked"));
                }
            }
        }
        (_, Some(place)) => format!("the rule at {place}"),
        (_, None) => match &judged.allow {
            Some(word) if unheard => {
                heard.by = By::hook(&word.hook);
                word.text.clone()
            }
            _ => format!("tier {tier}"),
        },
    };
    let mut slot = gate.limits.enter(&call).await?;
    let decided = Decided { rules: Arc::clone(rules), outgoing, ruling, judged };
    decided.check_same_rules(gate, &call).await?;
    check_budget(&call.session, slot.take_call(&call.session))?;
    Ok(Admitted { call, by, tier, slot, decided })
}

/// What the rules and the tier ask for.
async fn rule(gate: &Gate, rules: &Arc<Rules>, call: &Proposed) -> Ruling {
    asked(gate, rules, call, Rules::decide).await.unwrap_or_else(|| {
        let message = "the rules could not be asked; nothing was called";
        Ruling::new(Requirement::Deny(message.to_owned()))
    })
}

/// What becomes of secrets in the arguments: what a rule says of this call, or the policy of all.
async fn outgoing(gate: &Gate, rules: &Arc<Rules>, call: &Proposed) -> Outgoing {
    if !rules.speak_of_secrets() {
        return gate.secrets.outgoing;
    }
    let said = asked(gate, rules, call, Rules::outgoing).await.unwrap_or(Some(Outgoing::Block));
    said.unwrap_or(gate.secrets.outgoing)
}

/// What the rules say of a call; `None` where they panic.
async fn asked<T: Send + 'static>(
    gate: &Gate,
    rules: &Arc<Rules>,
    call: &Proposed,
    ask: fn(&Rules, &Facts<'_>) -> T,
) -> Option<T> {
    let directory = directory(gate, &call.tool).map(Path::to_owned);
    let said = move |rules: &Rules, call: &Proposed| {
        ask(rules, &facts(&call.session, &call.tool, &call.arguments, directory.as_deref()))
    };
    if !rules.look_at_paths() {
        return Some(said(rules, call));
    }
    // A file system may keep one waiting.
    let (waiting, waited) = (Arc::clone(rules), call.clone());
    tokio::task::spawn_blocking(move || said(&waiting, &waited)).await.ok()
}

/// What the rules make of a call that nobody makes, and all of them that match it.
pub(crate) fn explain(
    gate: &Gate,
    rules: &Rules,
    session: &Session,
    tool: &Tool,
    arguments: &JsonObject,
) -> (Ruling, Vec<Rule>) {
    let facts = facts(session, tool, arguments, directory(gate, tool));
    (rules.decide(&facts), rules.matching(&facts).cloned().collect())
}

/// Where the server of a tool runs, where that is known to be elsewhere.
fn directory<'a>(gate: &'a Gate, tool: &Tool) -> Option<&'a Path> {
    gate.directories.get(tool.id().server()).map(PathBuf::as_path)
}

fn facts<'a>(
    session: &'a Session,
    tool: &'a Tool,
    arguments: &'a JsonObject,
    directory: Option<&'a Path>,
) -> Facts<'a> {
    let caller = Caller { agent: session.agent(), team: session.team() };
    Facts { caller, tool, arguments, directory, real: &real }
}

fn hear(ruling: Ruling, judged: &Judged, call: &Proposed) -> Ruling {
    let ask = judged.ask.as_ref().map(|word| word.text.as_str());
    ruling.heard(&call.tool, ask, judged.allow.is_some())
}

fn check_rules(ruling: &Ruling) -> Result<(), Denied> {
    match &ruling.requirement {
        Requirement::Deny(reason) => {
            Err(Denied::new(Check::Rule, reason.clone()).by(By::rule(ruling.rule.as_deref())))
        }
        Requirement::Run | Requirement::Ask(_) => Ok(()),
    }
}

impl Decided {
    /// A human may take minutes, and a call wait for its place or its server, in which the rules, or where a path leads, may
    /// have changed.
    async fn check_same_rules(&self, gate: &Gate, call: &Proposed) -> Result<(), Denied> {
        let now = Arc::clone(&gate.rules.borrow());
        // Nor may a link lead elsewhere by now.
        if Arc::ptr_eq(&now, &self.rules) && !self.rules.look_at_paths() {
            return Ok(());
        }
        if outgoing(gate, &now, call).await > self.outgoing {
            check_secrets(gate, Outgoing::Block, call)?;
        }
        let now = hear(rule(gate, &now, call).await, &self.judged, call);
        check_rules(&now)?;
        // An answer is one to what was asked then, and none to another rule or another reason.
        let asks = matches!(now.requirement, Requirement::Ask(_));
        if asks && (&now.requirement, &now.asking) != (&self.ruling.requirement, &self.ruling.asking) {
            let message = "the rules changed while the call was decided; nothing was called. Call it again";
            return Err(Denied::new(Check::Changed, message).by(By::rule(now.rule.as_deref())));
        }
        Ok(())
    }
}

/// The caller resolved the tool in its view; that the session may see it is the gate's to know for itself.
fn check_scope(scope: &Scope, call: &Proposed) -> Result<(), Denied> {
    if scope.shows(&call.tool) {
        return Ok(());
    }
    Err(Denied::new(Check::Scope, format!("no tool `{}` is known", call.tool.id())))
}

fn check_arguments(call: &Proposed) -> Result<(), Denied> {
    Ok(call.tool.check(&call.arguments)?)
}

fn check_budget(session: &Session, left: bool) -> Result<(), Denied> {
    let Some(max) = session.profile().max_calls.filter(|_| !left) else { return Ok(()) };
    Err(Denied::new(
        Check::Budget,
        format!("the session has made all of its {max} calls; nothing was called"),
    ))
}

/// Takes secrets out of the arguments, where they are to be taken out. Says whether the call has other arguments now.
fn clean_secrets(gate: &Gate, outgoing: Outgoing, call: &mut Proposed) -> Result<bool, Denied> {
    if outgoing != Outgoing::Redact {
        return Ok(false);
    }
    let Some((mut arguments, _)) = gate.secrets.redact(&undeclared(call)) else { return Ok(false) };
    for name in call.tool.secret_arguments() {
        if let Some(value) = call.arguments.get(*name) {
            arguments.insert((*name).to_owned(), value.clone());
        }
    }
    call.arguments = arguments;
    check_arguments(call)?;
    Ok(true)
}

/// No secret leaves, where such calls are to be refused.
fn check_secrets(gate: &Gate, outgoing: Outgoing, call: &Proposed) -> Result<(), Denied> {
    if outgoing != Outgoing::Block {
        return Ok(());
    }
    let places = gate.secrets.find(&undeclared(call));
    if places.is_empty() { Ok(()) } else { Err(Denied::new(Check::Secrets, told(&places))) }
}

/// The arguments but for those that a tool declares as secrets, which are there to be given one.
fn undeclared(call: &Proposed) -> Cow<'_, JsonObject> {
    let mut undeclared = Cow::Borrowed(&call.arguments);
    for name in call.tool.secret_arguments() {
        if undeclared.contains_key(*name) {
            undeclared.to_mut().insert((*name).to_owned(), Value::Null);
        }
    }
    undeclared
}

/// Where the secrets are and what they are, never what they say.
fn told(places: &Places) -> String {
    let named: Vec<String> =
        places.listed.iter().take(5).map(|place| format!("`{}` ({})", place.pointer, place.kind)).collect();
    let more = if places.listed.len() > named.len() { ", …" } else { "" };
    format!(
        "the arguments hold what looks like a secret: {}{more}. Nothing was called. Leave it out: a server has its \
         credentials from its configuration. Where it is meant, the user can allow it under `secrets` in aster.yaml",
        named.join(", ")
    )
}

/// The arguments that name a destination: strictly those that a native tool declares as URLs, which it means to connect to,
/// and as another program might read them all that are named or described like one.
fn check_egress(gate: &Gate, call: &Proposed) -> Result<(), Denied> {
    let policy = match call.session.egress() {
        Some(own) => &gate.egress.clone().within(own),
        None => &gate.egress,
    };
    check_declared(policy, call)?;
    for named in call.tool.governed().named(&call.arguments) {
        policy
            .check_named(named.text, named.sort, named.port)
            .map_err(|error| Denied::new(Check::Egress, format!("argument `{}`: {error}", named.pointer)))?;
    }
    Ok(())
}

/// The arguments that a native tool declares as URLs.
fn check_declared(policy: &EgressPolicy, call: &Proposed) -> Result<(), Denied> {
    let Origin::Native(spec) = call.tool.origin() else { return Ok(()) };
    for name in call.tool.url_arguments() {
        let urls = match call.arguments.get(name) {
            Some(Value::Array(urls)) => urls.iter().collect(),
            other => Vec::from_iter(other),
        };
        for url in urls.into_iter().filter_map(Value::as_str) {
            let url = policy
                .parse(url)
                .map_err(|error| Denied::new(Check::Egress, format!("argument `{name}`: {error}")))?;
            if !spec.egress.is_empty() && !EgressPolicy::names(spec.egress, &url) {
                let (host, hosts) = (url.host_str().unwrap_or_default(), spec.egress.join("`, `"));
                let message =
                    format!("argument `{name}`: {host} is refused: this tool takes only URLs of `{hosts}`");
                return Err(Denied::new(Check::Egress, message));
            }
        }
    }
    Ok(())
}
