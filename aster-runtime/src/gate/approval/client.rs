//! Approval through the client that called: its user is asked by a form.
//!
//! A client may let its model answer, and whoever speaks the protocol may give itself any name. So only those count that
//! the user has named as clients which show a form to a human, and only on a connection that speaks for the client: one
//! that the user started, or that has proved who it is.

use std::sync::Arc;

use futures_util::future::{BoxFuture, ready};
use serde_json::json;

use super::{Approval, ApprovalRequest, ApprovalScope, Approver};
use crate::text::is_plain;
use crate::tool::{AskError, ClientAnswer, ClientInfo, ClientLink, ClientRequest, Elicitation, Elicited};

/// The setting of `aster.yaml` that names the clients which count.
pub const TRUST: &str = "mcp.approval.clients";

/// How long a question may be, in bytes. A client may cut what it cannot show, and what was cut nobody has approved.
const LONGEST: usize = 32 << 10;

/// Asks the user of the client that called, by a form (MCP, client features, elicitation), where the client is one of those
/// that the user trusts to show it to a human. All others are left to the next approver, if there is one.
///
/// ```
/// use std::sync::Arc;
///
/// use aster_runtime::Host;
/// use aster_runtime::gate::approval::ClientApprover;
///
/// let host = Host::builder().approver(Arc::new(ClientApprover::new(["claude-code"])));
/// # let _ = host;
/// ```
pub struct ClientApprover {
    trusted: Vec<String>,
    next: Option<Arc<dyn Approver>>,
}

impl ClientApprover {
    /// Trusts the clients of these names, letter for letter.
    pub fn new<S: Into<String>>(trusted: impl IntoIterator<Item = S>) -> Self {
        Self { trusted: trusted.into_iter().map(Into::into).collect(), next: None }
    }

    /// Who is asked where the client cannot be.
    #[must_use]
    pub fn or(mut self, next: Arc<dyn Approver>) -> Self {
        self.next = Some(next);
        self
    }

    /// Leaves it to the next, where there is one.
    fn pass_on<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        client: Option<&'a Arc<dyn ClientLink>>,
        hint: Option<String>,
    ) -> BoxFuture<'a, Approval> {
        match &self.next {
            Some(next) => next.ask_through(request, client),
            None => Box::pin(ready(Approval::Unasked { hint })),
        }
    }

    /// Why this client cannot be asked, as what the user can do about it.
    fn missing(&self, client: &ClientInfo) -> Option<String> {
        let name = client.name.as_deref().unwrap_or_default();
        let trusted = self.trusted.iter().any(|trusted| trusted == name);
        match (client.forms, client.vouched) {
            (false, _) => Some("with a client that can show forms (elicitation)".to_owned()),
            (true, false) => Some("with a client that has proved who it is".to_owned()),
            (true, true) if trusted => None,
            (true, true) => {
                // The name is a stranger's, and somebody may copy it.
                let named = if is_plain(name) { name } else { "NAME" };
                Some(format!(
                    "approve it in this client, once the user has marked the client as one that shows questions to a \
                     human: `{TRUST}: [{named}]` in their own aster.yaml"
                ))
            }
        }
    }
}

impl Approver for ClientApprover {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        self.ask_through(request, None)
    }

    fn ask_through<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        client: Option<&'a Arc<dyn ClientLink>>,
    ) -> BoxFuture<'a, Approval> {
        let info = client.map(|client| client.client()).unwrap_or_default();
        match (client, self.missing(&info)) {
            (Some(client), None) => Box::pin(async move {
                let name = info.name.as_deref().unwrap_or_default();
                match ask(request, &**client, name).await {
                    Approval::Unasked { hint } => self.pass_on(request, Some(client), hint).await,
                    clear => clear,
                }
            }),
            (client, hint) => self.pass_on(request, client, hint),
        }
    }
}

/// What the user says. A question that did not reach them is none that they answered with no.
async fn ask(request: &ApprovalRequest, client: &dyn ClientLink, name: &str) -> Approval {
    let by = format!("the user of the client {name}");
    let unasked = |error: AskError| {
        let hint = format!("mend what kept this client from asking: {error}");
        Approval::Unasked { hint: Some(hint) }
    };
    let form = match form(request) {
        Ok(form) => form,
        Err(error) => return unasked(error),
    };
    let answer = client.ask(vec![form]).await.into_iter().next();
    match answer.unwrap_or(Err(AskError::Closed)) {
        Ok(ClientAnswer::Form(Elicited::Accepted(answer))) if answer.get("approve") == Some(&true.into()) => {
            let scope = answer.get("scope").cloned().map_or(Ok(ApprovalScope::Once), serde_json::from_value);
            // What cannot be read was not said.
            let scope = scope.unwrap_or_default();
            Approval::Approved { by, scope }
        }
        Ok(ClientAnswer::Form(Elicited::Accepted(_) | Elicited::Declined)) => Approval::denied_by_user(by),
        Ok(ClientAnswer::Form(Elicited::Cancelled)) => {
            Approval::denied(by, "the user did not decide on the call; nothing was called")
        }
        Ok(_) => unasked(AskError::Invalid("the client answered another question".to_owned())),
        Err(error) => unasked(error),
    }
}

/// What the user is shown: exactly what will be sent. An answer that came with the call is none.
fn form(request: &ApprovalRequest) -> Result<ClientRequest, AskError> {
    let mut schema = json!({
        "type": "object",
        "properties": {
            "approve": {"type": "boolean", "title": "Allow this call", "description": "With exactly these arguments.", "default": false},
        },
        "required": ["approve"],
    });
    if request.remembers {
        schema["properties"]["scope"] = json!({
            "type": "string",
            "title": "For how long",
            "enum": ["once", "arguments", "session"],
            "enumNames": ["This call", "Whenever it has exactly these arguments, in this session", "Whatever its arguments, in this session"],
            "default": "once",
        });
    }
    let message = format!("{request}Allow this call?");
    if message.len() > LONGEST {
        return Err(AskError::Invalid("the call is too long for a client to show it whole".to_owned()));
    }
    Ok(ClientRequest::from(Elicitation::form(message, schema)?.key("approval")).fresh())
}
