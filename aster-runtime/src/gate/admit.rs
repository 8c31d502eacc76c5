//! Admission. [`Admitted`] has a private field and this module makes the only one, at the end of [`admit`]; dispatch
//! takes nothing else. So no call is dispatched that has not passed every check.

use std::sync::Arc;

use super::approval::{self, Approval};
use super::egress::EgressPolicy;
use super::hooks::{self, Said};
use super::limits::Slot;
use super::rules::{self, Requirement};
use super::{Check, Denied, Gate};
use crate::call::Proposed;
use crate::catalogue::Origin;
use crate::scope::Scope;
use crate::tool::ClientLink;

/// A call that has passed the gate: its arguments are those that were checked and approved.
#[derive(Debug)]
pub struct Admitted {
    call: Proposed,
    rewritten: bool,
    by: String,
    context: Vec<String>,
    slot: Slot,
}

impl Admitted {
    /// The call.
    #[must_use]
    pub fn call(&self) -> &Proposed {
        &self.call
    }

    /// Whether a hook gave it other arguments.
    #[must_use]
    pub fn is_rewritten(&self) -> bool {
        self.rewritten
    }

    /// By what it was admitted: its tier, or who approved.
    #[must_use]
    pub fn by(&self) -> &str {
        &self.by
    }

    /// What hooks want the model to be told besides, with the result.
    pub(crate) fn take_context(&mut self) -> Vec<String> {
        std::mem::take(&mut self.context)
    }

    /// The place that the call has while it runs.
    pub(crate) fn take_slot(&mut self) -> Slot {
        std::mem::take(&mut self.slot)
    }

    /// The call, to be sent.
    #[must_use]
    pub fn into_call(self) -> Proposed {
        self.call
    }
}

/// Admits a call or refuses it. The order is this function's body; `client` is the way back to whoever called, and `said`
/// takes what the hooks say.
///
/// # Errors
///
/// The first check that refuses, with what to do instead.
pub async fn admit(
    gate: &Gate,
    scope: &Scope,
    mut call: Proposed,
    client: Option<&Arc<dyn ClientLink>>,
    said: &mut Vec<Said>,
) -> Result<Admitted, Denied> {
    check_scope(scope, &call)?;
    check_arguments(&call)?;
    let judged = hooks::before(&gate.hooks, &mut call, said, check_arguments).await?;
    check_egress(gate, &call)?;
    let by = match rules::requirement(&call.tool, judged.ask) {
        Requirement::Run => format!("tier {}", call.tool.tier()),
        Requirement::Ask(why) => match approval::ask(gate, &call, &why, client).await {
            Approval::Approved { by } => by,
            Approval::Denied { reason } => return Err(Denied::new(Check::Approval, reason)),
            Approval::Unasked { .. } => return Err(Denied::new(Check::Approval, "nobody can be asked")),
        },
    };
    let slot = gate.limits.enter(&call).await?;
    Ok(Admitted { call, rewritten: judged.rewritten, by, context: judged.context, slot })
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

/// The arguments of a native tool that name a URL.
fn check_egress(gate: &Gate, call: &Proposed) -> Result<(), Denied> {
    let Origin::Native(spec) = call.tool.origin() else { return Ok(()) };
    for name in call.tool.url_arguments() {
        let urls = match call.arguments.get(name) {
            Some(serde_json::Value::Array(urls)) => urls.iter().collect(),
            other => Vec::from_iter(other),
        };
        for url in urls.into_iter().filter_map(serde_json::Value::as_str) {
            let url = gate
                .egress
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
