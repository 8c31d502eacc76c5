//! `aster approve`: the calls that wait for a human where `aster mcp serve --approvals` runs.

use std::fs;
use std::io::{self, ErrorKind, IsTerminal};

use aster_runtime::config::approvals;
use aster_runtime::gate::approval::{ApprovalScope, decide};
use aster_runtime::serve::http::approvals::{Client, WaitingCall, WholeCall};
use aster_runtime::text::{one_line, visible};
use serde::Serialize;

use crate::args::{Approve, Scope};
use crate::compose;
use crate::exit::{Exit, Failure};
use crate::render::{self, Output, Report};

pub(crate) async fn run(arguments: &Approve, output: Output) -> Result<Exit, Failure> {
    let waiting = waiting(output).await?;
    let Some(id) = &arguments.id else {
        output.report(&List { waiting: waiting.into_iter().map(|(_, call)| call).collect() })?;
        return Ok(Exit::Success);
    };
    let Some((client, call)) = waiting.into_iter().find(|(_, call)| call.id == *id) else {
        return Err(no_longer(id));
    };
    let answer = match (arguments.yes, arguments.no) {
        (true, _) => Some(scope(arguments.scope, &call)?),
        (_, true) => None,
        _ if !output.is_json() && io::stdin().is_terminal() && io::stderr().is_terminal() => {
            // An unreadable terminal is a no.
            decide(&whole(&client, id).await?.text, call.remembers).unwrap_or(None)
        }
        _ => {
            output.report(&Shown(whole(&client, id).await?))?;
            return Ok(Exit::Success);
        }
    };
    match client.answer(id, answer).await {
        Ok(true) => {}
        Ok(false) => return Err(no_longer(id)),
        Err(error) => {
            return Err(Failure::new(Exit::Failed, format!("the call cannot be answered: {error}")));
        }
    }
    output.report(&Answered { id: call.id, tool: call.tool, approved: answer.is_some(), scope: answer })?;
    Ok(Exit::Success)
}

/// A call with its arguments.
async fn whole(client: &Client, id: &str) -> Result<WholeCall, Failure> {
    match client.whole(id).await {
        Ok(call) => call.ok_or_else(|| no_longer(id)),
        Err(error) => Err(Failure::new(Exit::Failed, format!("the call cannot be looked at: {error}"))),
    }
}

/// All calls that wait, each with the endpoint that it waits at.
async fn waiting(output: Output) -> Result<Vec<(Client, WaitingCall)>, Failure> {
    let folder = compose::approvals_folder()?;
    let published = approvals::published(&folder).map_err(|error| {
        Failure::new(Exit::Failed, format!("the endpoints for approvals cannot be looked up: {error}"))
    })?;
    let mut found = Vec::new();
    let mut running = false;
    for endpoint in published {
        let (path, endpoint) = match endpoint {
            Ok(known) => known,
            Err(why) => {
                output.warn(why);
                continue;
            }
        };
        let client = Client::new(endpoint.address, endpoint.token);
        match client.waiting().await {
            Ok(calls) => {
                running = true;
                found.extend(calls.into_iter().map(|call| (client.clone(), call)));
            }
            // It was killed, and could not take its file with it.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => drop(fs::remove_file(path)),
            Err(error) => output.warn(format_args!("{} cannot be asked: {error}", endpoint.address)),
        }
    }
    if !running {
        output.note("nothing runs that could wait: `aster mcp serve --approvals` lets calls wait");
    }
    Ok(found)
}

fn scope(scope: Option<Scope>, call: &WaitingCall) -> Result<ApprovalScope, Failure> {
    let scope = match scope {
        None | Some(Scope::Once) => ApprovalScope::Once,
        Some(Scope::Arguments) => ApprovalScope::Arguments,
        Some(Scope::Session) => ApprovalScope::Session,
    };
    if scope != ApprovalScope::Once && !call.remembers {
        let message = "whoever calls has not proved who it is, and gets approvals for one call only";
        return Err(Failure::new(Exit::Usage, message).help("leave out `--scope`"));
    }
    Ok(scope)
}

fn no_longer(id: &str) -> Failure {
    Failure::new(Exit::Usage, format!("no call `{}` waits", one_line(id, 64)))
        .help("it may have been answered, or given up; `aster approve` lists those that wait")
}

#[derive(Serialize)]
struct List {
    waiting: Vec<WaitingCall>,
}

impl Report for List {
    fn human(&self) -> String {
        if self.waiting.is_empty() {
            return "no call waits".to_owned();
        }
        let rows = self.waiting.iter().map(|call| {
            [
                visible(&call.id),
                visible(&call.tool),
                one_line(&call.agent, 40),
                one_line(&call.why, 60),
                visible(&call.since),
            ]
        });
        render::table(["Call", "Tool", "Agent", "Why", "Since"], rows)
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Shown(WholeCall);

impl Report for Shown {
    fn human(&self) -> String {
        format!("{}Answer with `aster approve {} --yes`, or `--no`.", self.0.text, visible(&self.0.call.id))
    }
}

#[derive(Serialize)]
struct Answered {
    id: String,
    tool: String,
    approved: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<ApprovalScope>,
}

impl Report for Answered {
    fn human(&self) -> String {
        format!("{}: {}", visible(&self.tool), if self.approved { "approved" } else { "denied" })
    }
}
