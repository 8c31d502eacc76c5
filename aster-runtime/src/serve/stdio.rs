//! Serving over a pair of streams for one client: on standard input and output, the process that started this one.

use std::sync::Arc;

use rmcp::ServiceExt as _;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::lines::Input;
use super::raw::Restoring;
use super::{FIRST_ANSWER, ServeError, Server, Service, Shape};
use crate::host::Host;
use crate::session::Profile;

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
    let (input, output) = stdio_pipes();
    let served = over((input, output), host.clone(), profile, shape, stop).await;
    host.close().await;
    served
}

/// The same over any pair of streams, such as the ends of a socket, and without closing the host afterwards.
///
/// Whoever is at the other end counts as a client that the user started, and its word on its name is taken: where an
/// [approver](crate::gate::approval::ClientApprover) asks clients, hand in no stream that others can get at.
///
/// # Errors
///
/// As [`stdio`].
pub async fn over<R, W>(
    (input, output): (R, W),
    host: Host,
    profile: Profile,
    shape: Shape,
    stop: CancellationToken,
) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let ended = stop.child_token();
    let service = Service::new(host.clone(), profile, shape, ended.clone())?;
    tokio::select! {
        _ = host.settle(FIRST_ANSWER) => {}
        () = stop.cancelled() => return Ok(()),
    }
    let _follow = AbortOnDropHandle::new(tokio::spawn(Arc::clone(&service).follow()));
    // The user started the client, which started this; and there is only this one.
    let server = Server::new(Arc::clone(&service), true);
    let (input, unreadable) = Input::new(input, ended);
    let transport = Restoring::new(AsyncRwTransport::new(input, output), unreadable);
    let served = match server.serve_with_ct(transport, stop).await {
        Ok(running) => match running.waiting().await {
            Ok(_) => Ok(()),
            Err(error) => Err(ServeError::Broken(error.to_string())),
        },
        Err(
            rmcp::service::ServerInitializeError::ConnectionClosed(_)
            | rmcp::service::ServerInitializeError::Cancelled,
        ) => Ok(()),
        Err(error) => Err(ServeError::Handshake(error.to_string())),
    };
    service.rounds.close().await;
    served
}
