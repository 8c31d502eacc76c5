//! A listener of our own, for the command: `/mcp`, `/health`, `/metrics`, and limits on what a connection may cost.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;

use super::guard::ArrivedAt;
use super::{Body, HttpService, Options, Refusal, service};
use crate::host::Host;
use crate::serve::{ServeError, Shape};
use crate::session::Profile;

/// How many headers a request may have, and how many bytes its head.
const MAX_HEADERS: usize = 64;
const MAX_HEAD: usize = 64 * 1024;

/// How many connections beyond the last are told so at a time, and for how long each.
const TURNED_AWAY: usize = 64;
const FAREWELL: Duration = Duration::from_secs(1);

/// How long calls that were cancelled may take to say so.
const CANCELLED: Duration = Duration::from_secs(2);

/// What a command tells its user of a listener that [is nameless](Listener::is_nameless).
pub const NAMELESS: &str = "requests are answered under an IP address of this machine or `localhost`, and under no other \
                            name; name one with `--allow-host NAME`";

/// A host at an address, not yet answering.
#[derive(Debug)]
pub struct Listener {
    host: Host,
    service: HttpService,
    listener: TcpListener,
    address: SocketAddr,
    nameless: bool,
}

/// Listens at an address, where port 0 is any that is free. Closes the host where it cannot.
///
/// # Errors
///
/// Where the profile, the shape or an option cannot be used, where the address cannot be listened at, and where others than
/// this machine could reach it and no token is demanded.
pub async fn bind(
    host: Host,
    profile: Profile,
    shape: Shape,
    options: Options,
    address: SocketAddr,
) -> Result<Listener, ServeError> {
    let bound = try_bind(host.clone(), profile, shape, options, address).await;
    if bound.is_err() {
        host.close().await;
    }
    bound
}

async fn try_bind(
    host: Host,
    profile: Profile,
    shape: Shape,
    mut options: Options,
    address: SocketAddr,
) -> Result<Listener, ServeError> {
    let ip = address.ip().to_canonical();
    if !ip.is_loopback() && options.tokens.is_empty() {
        return Err(ServeError::TokenRequired(address));
    }
    // Of the addresses of loopback, a system may have more than the two whose names are known by themselves.
    let usual = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
    if options.hosts.is_empty() && !usual.contains(&ip) && !ip.is_unspecified() {
        let own = SocketAddr::new(ip, 0).to_string();
        options.hosts = vec![own.trim_end_matches(":0").to_owned()];
    }
    let nameless = options.hosts.is_empty() && ip.is_unspecified();
    let service = service(host.clone(), profile, shape, options)?;
    let bound = |error: io::Error| ServeError::Address { address, error };
    let listener = TcpListener::bind(address).await.map_err(bound)?;
    let address = listener.local_addr().map_err(bound)?;
    Ok(Listener { host, service, listener, address, nameless })
}

impl Listener {
    /// The address, with the port that was free.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a client on this machine connects to.
    #[must_use]
    pub fn url(&self) -> String {
        let mut address = self.address;
        match address.ip() {
            IpAddr::V4(all) if all.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(all) if all.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        format!("http://{address}/mcp")
    }

    /// Whether it answers under addresses alone, the one at which a request arrives and loopback's names: it listens at
    /// all that this machine has, and no [host](Options::allowed_hosts) is named.
    #[must_use]
    pub fn is_nameless(&self) -> bool {
        self.nameless
    }

    /// The service behind it.
    #[must_use]
    pub fn service(&self) -> &HttpService {
        &self.service
    }

    /// Answers until `stop` is cancelled. Then nothing new is taken, streams that only listen end, calls that run may go
    /// on for the [grace](Options::grace) and are cancelled after it, and the host is closed.
    pub async fn serve(self, stop: CancellationToken) {
        let options = self.service.inner.options.clone();
        let room = Arc::new(Semaphore::new(options.max_connections));
        let farewells = Arc::new(Semaphore::new(TURNED_AWAY));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection cannot be accepted");
                    // Where there are too many files open, there still are right away.
                    if !is_of_one_connection(&error) {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                    continue;
                }
            };
            let _ = stream.set_nodelay(true);
            let own = stream.local_addr().ok().filter(|_| self.nameless);
            let arrived_at = own.map(|address| ArrivedAt(address.ip().to_canonical()));
            match Arc::clone(&room).try_acquire_owned() {
                Ok(permit) => {
                    let connection = connection(stream, self.service.clone(), arrived_at);
                    connections.spawn(async move {
                        connection.await;
                        drop(permit);
                    });
                }
                Err(_) => {
                    if let Ok(permit) = Arc::clone(&farewells).try_acquire_owned() {
                        connections.spawn(async move {
                            turn_away(stream).await;
                            drop(permit);
                        });
                    }
                }
            }
        }
        drop(self.listener);
        self.service.stop();
        let all = async { while connections.join_next().await.is_some() {} };
        let mut all = pin!(all);
        if tokio::time::timeout(options.grace, &mut all).await.is_err() {
            self.service.end();
            let _ = tokio::time::timeout(CANCELLED, all).await;
        }
        self.service.close().await;
        self.host.close().await;
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn connection(stream: TcpStream, service: HttpService, arrived_at: Option<ArrivedAt>) {
    let stopping = service.inner.stopping.clone();
    let header_timeout = service.inner.options.header_timeout;
    // Who reads nothing would otherwise hold the connection, and with it a call's place, for ever.
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(service.inner.options.write_timeout));
    let answer = service_fn(move |mut request: Request<Incoming>| {
        let service = service.clone();
        if let Some(arrived_at) = arrived_at {
            request.extensions_mut().insert(arrived_at);
        }
        async move { Ok::<_, Infallible>(route(&service, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_headers(MAX_HEADERS)
        .max_header_size(MAX_HEAD)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(Box::pin(stream)), answer);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

async fn route(service: &HttpService, request: Request<Incoming>) -> Response<Body> {
    match request.uri().path() {
        "/mcp" => service.respond(request).await,
        path => match service.inner.guard.admit(&request) {
            Err(refusal) => refusal.into_response(),
            Ok(page) if path == "/health" && [Method::GET, Method::HEAD].contains(request.method()) => {
                page.readable(service.health())
            }
            Ok(page) if path == "/metrics" && [Method::GET, Method::HEAD].contains(request.method()) => {
                // Whose tools are called how often is for those who may call them.
                match service.inner.guard.check_token(request.headers()) {
                    Ok(_) => page.readable(service.metrics()),
                    Err(refusal) => page.readable(refusal.into_response()),
                }
            }
            Ok(page) => page.readable(
                Refusal::new(StatusCode::NOT_FOUND, "there are /mcp, GET /health and GET /metrics")
                    .into_response(),
            ),
        },
    }
}

/// Says that there is no room, and waits until it has been heard: a connection that is closed with something unread in it
/// is reset, and takes the answer with it.
async fn turn_away(mut stream: TcpStream) {
    const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: 105\r\n\
        retry-after: 1\r\nconnection: close\r\n\r\n\
        {\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,\"message\":\"there are too many connections; try later\"}}";
    let farewell = async {
        let mut rest = [0; 1024];
        // An answer that comes before the question is none to some clients.
        if stream.read(&mut rest).await? == 0 {
            return Ok(());
        }
        stream.write_all(FULL).await?;
        stream.shutdown().await?;
        while stream.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
}
