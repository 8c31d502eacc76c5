//! Serving over standard input and output, for one client: the process that started this one.

use rmcp::ServiceExt as _;
use rmcp::transport::stdio_pipes;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{FIRST_ANSWER, Server, Shape};
use crate::host::Host;
use crate::scope::FilterError;
use crate::session::Profile;

/// Why serving could not begin, or broke off.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A glob of the profile cannot be used.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// There is no such server in the session's scope.
    #[error("no server `{0}` is known; `aster mcp list` shows them all")]
    UnknownServer(String),
    /// The client never began a session.
    #[error("the client did not begin an MCP session: {0}")]
    Handshake(String),
    /// The serving task failed.
    #[error("serving broke off: {0}")]
    Broken(String),
}

/// Serves one session on standard input and output until the input ends or `stop` is cancelled, then closes the host.
///
/// Nothing else may read or write these streams meanwhile; the log goes to standard error.
///
/// # Errors
///
/// Where the profile or the shape cannot be served, or the client does not speak MCP. An input that ends before a
/// session begins is no error: clients probe.
pub async fn stdio(
    host: Host,
    profile: Profile,
    shape: Shape,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let served = serve(host.clone(), profile, shape, stop).await;
    host.close().await;
    served
}

async fn serve(
    host: Host,
    profile: Profile,
    shape: Shape,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let session = host.session(profile)?;
    if let Shape::Server(name) = &shape
        && !session.view().servers().iter().any(|server| server.name == *name)
    {
        return Err(ServeError::UnknownServer(name.clone()));
    }
    tokio::select! {
        _ = host.settle(FIRST_ANSWER) => {}
        () = stop.cancelled() => return Ok(()),
    }
    let server = Server::new(host, session, shape);
    let _follow = AbortOnDropHandle::new(tokio::spawn(server.clone().follow()));
    match server.serve_with_ct(stdio_pipes(), stop).await {
        Ok(running) => match running.waiting().await {
            Ok(_) => Ok(()),
            Err(error) => Err(ServeError::Broken(error.to_string())),
        },
        Err(
            rmcp::service::ServerInitializeError::ConnectionClosed(_)
            | rmcp::service::ServerInitializeError::Cancelled,
        ) => Ok(()),
        Err(error) => Err(ServeError::Handshake(error.to_string())),
    }
}
