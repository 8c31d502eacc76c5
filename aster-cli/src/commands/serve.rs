//! `aster mcp serve`: the bridge, all tools, or one server, for an MCP client over standard input and output, or for many
//! over HTTP.

use std::sync::Arc;

use aster_runtime::gate::approval::Desk;
use aster_runtime::serve::{self, Interrupt, Parent, ServeError, Shape, http};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::args::{Global, Mode, Serve};
use crate::compose::{self, Start};
use crate::exit::{Exit, Failure};
use crate::render::Output;

/// Who comes with the token of `--token-env`.
const TOKEN_HOLDER: &str = "token";

pub(crate) async fn run(global: &Global, arguments: &Serve, output: Output) -> Result<Exit, Failure> {
    let parent = Parent::current();
    let (shape, start) = match &arguments.name {
        // It is a native one.
        Some(name) => (Shape::Server(name.clone()), Start::For(&[])),
        None if arguments.mode == Mode::Direct => (Shape::Direct, Start::All),
        None => (Shape::Bridge, Start::All),
    };
    let token = arguments.token_env.as_deref().map(token).transpose()?;
    let config = compose::load(global)?;
    let interrupt = Interrupt::listen();
    // A client's process ends with the client; what listens for many outlives who started it.
    if arguments.http.is_none() {
        parent.cancel_at_death(interrupt.stop.clone());
    }
    let desk = arguments.approvals.map(|_| Arc::new(Desk::default()));
    // No agent may come to hold what lets one in, or one that approves.
    let mut tokens: Vec<String> = token.iter().cloned().collect();
    // Both are gone when this function ends: nobody is left who waits.
    let _approvals = match (&desk, arguments.approvals) {
        (Some(desk), Some(address)) => {
            let (approvals, published) = compose::approvals(desk, address).await?;
            tokens.push(approvals.token().to_owned());
            let serving = approvals.serve(CancellationToken::new());
            Some((AbortOnDropHandle::new(tokio::spawn(serving)), published))
        }
        _ => None,
    };
    let (host, profile) =
        compose::serving(global, &config, start, tokens, arguments.provider, desk, output).await?;
    let served = async {
        let Some(address) = arguments.http else {
            return serve::stdio(host, profile, shape, interrupt.stop).await;
        };
        let listener = http::bind(host, profile, shape, options(arguments, token), address).await?;
        announce(&listener, output);
        listener.serve(interrupt.stop).await;
        Ok(())
    };
    let served = tokio::select! {
        served = served => served,
        () = interrupt.now.cancelled() => return Err(compose::interrupted()),
    };
    served.map(|()| Exit::Success).map_err(|error| match error {
        ServeError::UnknownServer(_) | ServeError::Options(_) | ServeError::TokenRequired(_) => {
            Failure::new(Exit::Usage, error.to_string())
        }
        ServeError::Session(_) => Failure::new(Exit::Configuration, error.to_string()),
        _ => Failure::new(Exit::Failed, error.to_string()),
    })
}

fn options(arguments: &Serve, token: Option<String>) -> http::Options {
    let mut options = http::Options::default()
        .allowed_hosts(arguments.hosts.iter().cloned())
        .allowed_origins(arguments.origins.iter().cloned());
    if let Some(token) = token {
        options = options.token(TOKEN_HOLDER, token);
    }
    options
}

fn token(variable: &str) -> Result<String, Failure> {
    match std::env::var(variable) {
        Ok(token) if !token.is_empty() => Ok(token),
        _ => {
            let message = format!("`--token-env {variable}`: there is no token in that environment variable");
            Err(Failure::new(Exit::Usage, message))
        }
    }
}

/// Says where the server is, also with `--quiet`: with port 0 nobody knows otherwise.
fn announce(listener: &http::Listener, output: Output) {
    let url = listener.url();
    let note = listener.is_nameless().then_some(http::NAMELESS);
    if output.is_json() {
        let mut told = json!({"listening": url});
        if let Some(note) = note {
            told["note"] = json!(note);
        }
        return output.tell(told);
    }
    output.tell(format_args!("listening on {url}"));
    if let Some(note) = note {
        output.tell(format_args!("note: {note}"));
    }
}
