//! The guarded HTTP client: the only way in which a native server reaches the network by HTTP.
//!
//! A destination is judged three times, and never by its text: its URL before anything else, every address that its
//! name resolves to, and the peer that in the end answered. The connection is made to the very addresses that were
//! judged, so that a name that resolves differently a moment later gains nothing. Each redirect starts again from the
//! beginning.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap,
    HeaderName, HeaderValue, LOCATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use reqwest::{Client, Response, dns, redirect};
use url::{Host, Url};

use FetchErrorKind as Kind;

use crate::gate::egress::{EgressError, EgressPolicy};

/// The most redirects that are followed, whatever a caller asks for.
pub const MAX_REDIRECTS: usize = 5;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What a fetch may cost, and what it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchLimits {
    /// The most bytes of body that are kept, counted after decompression; the rest is not read.
    pub max_bytes: usize,
    /// How long everything together may take, from the first lookup to the last byte.
    pub timeout: Duration,
    /// How many redirects are followed; above [`MAX_REDIRECTS`] is that.
    pub max_redirects: usize,
    /// The media types to ask for and to take from a successful answer: `text/html`, `text/*` or `*/*`.
    /// `application/json` takes `application/ld+json` as well. An answer that names no type is taken.
    pub accept: &'static [&'static str],
}

impl Default for FetchLimits {
    /// 5 MiB, 30 seconds, 5 redirects, any type.
    fn default() -> Self {
        Self {
            max_bytes: 5 * 1024 * 1024,
            timeout: Duration::from_secs(30),
            max_redirects: MAX_REDIRECTS,
            accept: &["*/*"],
        }
    }
}

/// How a request is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Method {
    /// Reads.
    #[default]
    Get,
    /// Reads all but the body.
    Head,
    /// Sends.
    Post,
    /// Replaces.
    Put,
    /// Changes.
    Patch,
    /// Removes.
    Delete,
}

impl Method {
    /// Whether it changes nothing, so that it may be made elsewhere than where the caller meant it to.
    fn only_reads(self) -> bool {
        matches!(self, Self::Get | Self::Head)
    }

    /// What it is after a redirect with this status (fetch standard, HTTP-redirect fetch).
    fn redirected(self, status: u16) -> Self {
        match status {
            303 if self != Self::Head => Self::Get,
            301 | 302 if self == Self::Post => Self::Get,
            _ => self,
        }
    }
}

impl From<Method> for reqwest::Method {
    fn from(method: Method) -> Self {
        match method {
            Method::Get => Self::GET,
            Method::Head => Self::HEAD,
            Method::Post => Self::POST,
            Method::Put => Self::PUT,
            Method::Patch => Self::PATCH,
            Method::Delete => Self::DELETE,
        }
    }
}

/// What is asked of a server.
///
/// ```
/// use aster_runtime::net::{FetchRequest, Method};
///
/// let request = FetchRequest::new(Method::Post, "https://api.example.com/items")
///     .header("authorization", "Bearer …")
///     .header("content-type", "application/json")
///     .body(r#"{"name": "a"}"#);
/// assert!(!format!("{request:?}").contains("Bearer"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct FetchRequest {
    method: Method,
    url: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl FetchRequest {
    /// A request without a body and without headers of its own.
    #[must_use]
    pub fn new(method: Method, url: impl Into<String>) -> Self {
        Self { method, url: url.into(), headers: Vec::new(), body: None }
    }

    /// Adds a header, a credential for instance. It is sent to the URL's own origin (scheme, host and port) and never after a
    /// redirect has left it.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body. Like headers it never leaves the URL's own origin.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }
}

// The URL, the headers and the body may hold secrets.
impl fmt::Debug for FetchRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fetched {
    /// Where the answer came from, after redirects.
    pub url: Url,
    /// The HTTP status.
    pub status: u16,
    /// The `Content-Type` header, where there is a readable one.
    pub content_type: Option<String>,
    /// The body, decompressed.
    pub body: Vec<u8>,
    /// Whether the body went on after [`FetchLimits::max_bytes`].
    pub truncated: bool,
}

/// An HTTP client that reaches only what an [`EgressPolicy`] allows. Cheap to clone.
///
/// It keeps no cookies, sends no referrer, uses no proxy from the environment and asks for no encoding but gzip.
///
/// ```
/// use aster_runtime::gate::egress::EgressPolicy;
/// use aster_runtime::net::{EgressClient, FetchLimits};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let client = EgressClient::new(EgressPolicy::default());
/// let refused = client.get("http://169.254.169.254/latest/meta-data/", &FetchLimits::default()).await;
/// assert!(refused.unwrap_err().to_string().contains("metadata"));
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run()).unwrap();
/// ```
#[derive(Clone)]
pub struct EgressClient {
    /// Made for the first request: reading the system's certificates takes longer than all else at the start of a host.
    http: Http,
    /// That of sessions with limits of their own. It keeps no connection: one that is there already may lead to what only they
    /// refuse, and would be found out after the request.
    limited: Http,
    policy: Arc<EgressPolicy>,
    lookup: Lookup,
}

type Http = Arc<OnceLock<Result<Client, String>>>;

/// Resolves a name; replaced in tests.
type Lookup = Arc<dyn Fn(String, u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

impl EgressClient {
    /// A client under this policy.
    #[must_use]
    pub fn new(policy: EgressPolicy) -> Self {
        Self::with_lookup(policy, Arc::new(|name, port| system_lookup(name, port).boxed()))
    }

    fn with_lookup(policy: EgressPolicy, lookup: Lookup) -> Self {
        Self { http: Arc::default(), limited: Arc::default(), policy: Arc::new(policy), lookup }
    }

    fn http(&self) -> Result<&Client, Kind> {
        let made = self.http.get_or_init(|| {
            let keeps = if Arc::ptr_eq(&self.http, &self.limited) { 0 } else { usize::MAX };
            Client::builder()
                .pool_max_idle_per_host(keeps)
                .user_agent(concat!("aster/", env!("CARGO_PKG_VERSION")))
                .redirect(redirect::Policy::none())
                .referer(false)
                .no_proxy()
                .dns_resolver(Pinned)
                .connect_timeout(CONNECT_TIMEOUT)
                .build()
                .map_err(|error| root_cause(&error))
        });
        made.as_ref().map_err(|reason| Kind::NoClient { reason: reason.clone() })
    }

    /// The same client for one session, within what limits that besides: [`Session::egress`](crate::Session::egress).
    #[must_use]
    pub fn within(&self, limits: Option<&EgressPolicy>) -> Self {
        match limits {
            Some(limits) => {
                let policy = EgressPolicy::clone(&self.policy).within(limits);
                Self { policy: Arc::new(policy), http: Arc::clone(&self.limited), ..self.clone() }
            }
            None => self.clone(),
        }
    }

    /// The policy it works under.
    #[must_use]
    pub fn policy(&self) -> &EgressPolicy {
        &self.policy
    }

    /// Reads a URL. An answer with any status is an answer, and its body is read.
    ///
    /// # Errors
    ///
    /// Where the policy refuses the URL, a redirect's target or an address; where nothing answers in time; where the
    /// answer is of another type or encoding than asked for.
    pub async fn get(&self, url: &str, limits: &FetchLimits) -> Result<Fetched, FetchError> {
        self.get_with(url, &[], limits).await
    }

    /// Reads a URL with headers of the caller's own, credentials for instance. They are sent to the URL's own origin
    /// (scheme, host and port) and never after a redirect has left it.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get), and where a header cannot be sent.
    pub async fn get_with(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let request = FetchRequest::new(Method::Get, url);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        self.send(request, limits).await
    }

    /// Makes a request, and reads the answer as [`get`](Self::get) does. A redirect is followed as browsers do: after some a
    /// [`Method::Post`] becomes a [`Method::Get`] without its body. What sends or changes something is never made again at
    /// another origin.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get); where a header cannot be sent, or is the client's own to set; where it would have to be made
    /// again at another origin.
    pub async fn send(&self, request: FetchRequest, limits: &FetchLimits) -> Result<Fetched, FetchError> {
        let url = self.policy.parse(&request.url);
        let url = url.map_err(|error| FetchError { origin: None, kind: error.into() })?;
        let origin = url.origin().ascii_serialization();
        let all = self.follow(url, request, limits);
        match tokio::time::timeout(limits.timeout, all).await {
            Ok(result) => result,
            Err(_) => {
                Err(FetchError { origin: Some(origin), kind: Kind::TimedOut { limit: limits.timeout } })
            }
        }
    }

    async fn follow(
        &self,
        mut url: Url,
        request: FetchRequest,
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let headers = header_map(&request.headers).map_err(|kind| FetchError::at(&url, kind))?;
        let mut sent = Sent { method: request.method, headers, body: request.body };
        let max_redirects = limits.max_redirects.min(MAX_REDIRECTS);
        for _ in 0..=max_redirects {
            let response = self.hop(&url, &sent, limits).await.map_err(|kind| FetchError::at(&url, kind))?;
            let Some(location) = redirect_target(&response) else {
                return read(response, limits).await.map_err(|kind| FetchError::at(&url, kind));
            };
            let next = self.redirected(&url, location).map_err(|kind| FetchError::at(&url, kind))?;
            sent.redirect(response.status().as_u16());
            if next.origin() != url.origin() {
                if !sent.method.only_reads() || sent.body.is_some() {
                    return Err(FetchError::at(&url, Kind::Elsewhere));
                }
                sent.headers.clear();
            }
            url = next;
        }
        Err(FetchError::at(&url, Kind::TooManyRedirects { limit: max_redirects }))
    }

    /// One request to one destination, which the policy has seen.
    async fn hop(&self, url: &Url, sent: &Sent, limits: &FetchLimits) -> Result<Response, Kind> {
        let port = url.port_or_known_default().unwrap_or_default();
        let name = match url.host() {
            Some(Host::Domain(name)) => Some(name),
            _ => None, // An address, which `EgressPolicy::check` has judged; no resolver is asked about it.
        };
        let pins = match name {
            Some(name) => Pins { name: name.to_owned(), addresses: self.resolve(name, port).await? },
            None => Pins { name: String::new(), addresses: Vec::new() },
        };

        let mut request = self
            .http()?
            .request(sent.method.into(), url.clone())
            .headers(sent.headers.clone())
            .header(ACCEPT, limits.accept.join(", "));
        if let Some(body) = &sent.body {
            request = request.body(body.clone());
        }
        let response = PINS.scope(pins, request.send()).await.map_err(transport)?;

        let peer = response.remote_addr().ok_or(Kind::UnknownPeer)?;
        self.policy.check_address(name, peer.ip(), port)?;
        Ok(response)
    }

    /// The addresses of a name that may be connected to.
    async fn resolve(&self, name: &str, port: u16) -> Result<Vec<SocketAddr>, Kind> {
        let found = (self.lookup)(name.to_owned(), port)
            .await
            .map_err(|error| Kind::Unresolved { reason: error.to_string() })?;
        let mut refused = None;
        let mut allowed = Vec::new();
        for address in found {
            match self.policy.check_address(Some(name), address.ip(), port) {
                Ok(()) => allowed.push(SocketAddr::new(address.ip(), port)),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        match refused {
            _ if !allowed.is_empty() => Ok(allowed),
            Some(error) => Err(error.into()),
            None => Err(Kind::Unresolved { reason: "it has no address".to_owned() }),
        }
    }

    /// The target of a redirect from `from`, judged like a URL that a caller gave.
    fn redirected(&self, from: &Url, location: &[u8]) -> Result<Url, Kind> {
        let location = std::str::from_utf8(location).map_err(|_| Kind::BadRedirect)?;
        let next = from.join(location).map_err(|_| Kind::BadRedirect)?;
        if from.scheme() == "https" && next.scheme() == "http" {
            return Err(Kind::Downgrade);
        }
        self.policy.check(&next).map_err(Kind::Redirect)?;
        Ok(next)
    }
}

impl fmt::Debug for EgressClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EgressClient").field("policy", &self.policy).finish_non_exhaustive()
    }
}

async fn system_lookup(name: String, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((name.as_str(), port)).await?.collect())
}

/// The addresses that the running request may connect to.
#[derive(Debug, Clone)]
struct Pins {
    name: String,
    addresses: Vec<SocketAddr>,
}

tokio::task_local! {
    /// Set around the sending of one request. A resolver is told a name but no port, and a policy judges both; so the
    /// judging is done before, and the resolver only hands over what came of it.
    static PINS: Pins;
}

/// The resolver of every [`EgressClient`]: it knows no address but the pinned ones, and so fails closed where a
/// connection is made for anything else.
struct Pinned;

impl dns::Resolve for Pinned {
    fn resolve(&self, name: dns::Name) -> dns::Resolving {
        let pinned = PINS.try_with(|pins| (pins.name == name.as_str()).then(|| pins.addresses.clone()));
        let answer = match pinned {
            Ok(Some(addresses)) => Ok(Box::new(addresses.into_iter()) as dns::Addrs),
            _ => Err("no address was checked for this name".into()),
        };
        std::future::ready(answer).boxed()
    }
}

/// What is sent to the next destination.
struct Sent {
    method: Method,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
}

impl Sent {
    /// After a redirect with this status.
    fn redirect(&mut self, status: u16) {
        let method = self.method.redirected(status);
        if method != self.method {
            self.method = method;
            self.body = None;
            self.headers.remove(CONTENT_TYPE);
            self.headers.remove(CONTENT_ENCODING);
        }
    }
}

/// What says where a request goes, how long it is and how it is read: with another `Host` it would reach another site than
/// the one that was judged.
const OWN_HEADERS: [HeaderName; 8] =
    [HOST, CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION, UPGRADE, TE, TRAILER, ACCEPT_ENCODING];

fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, Kind> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let said = || crate::text::one_line(name, 60);
        let bad = || Kind::BadHeader { name: said() };
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        value.set_sensitive(true);
        let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        if OWN_HEADERS.contains(&parsed) {
            return Err(Kind::OwnHeader { name: said() });
        }
        map.append(parsed, value);
    }
    Ok(map)
}

fn redirect_target(response: &Response) -> Option<&[u8]> {
    let redirects = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    response.headers().get(LOCATION).filter(|_| redirects).map(HeaderValue::as_bytes)
}

async fn read(mut response: Response, limits: &FetchLimits) -> Result<Fetched, Kind> {
    let text = |name| response.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let content_type = text(CONTENT_TYPE).map(str::to_owned);
    // A decoded body has lost this header; what is left was never asked for.
    if let Some(encoding) =
        text(CONTENT_ENCODING).filter(|encoding| !encoding.eq_ignore_ascii_case("identity"))
    {
        return Err(Kind::Encoding { name: crate::text::one_line(encoding, 40) });
    }
    if let Some(found) = content_type.as_deref().filter(|_| response.status().is_success())
        && !limits.accept.iter().any(|range| covers(range, found))
    {
        return Err(Kind::ContentType {
            found: crate::text::one_line(found, 80),
            accepted: limits.accept.join(", "),
        });
    }

    let mut body = Vec::new();
    let mut truncated = false;
    while let Some(chunk) = response.chunk().await.map_err(transport)? {
        let room = limits.max_bytes - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            truncated = true;
            break;
        }
    }
    Ok(Fetched {
        url: response.url().clone(),
        status: response.status().as_u16(),
        content_type,
        body,
        truncated,
    })
}

/// Whether a media range such as `text/*` covers a `Content-Type`.
fn covers(range: &str, content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match range.split_once('/') {
        Some(("*", "*")) => true,
        Some((kind, "*")) => essence.split_once('/').is_some_and(|(own, _)| own == kind),
        Some((kind, sub)) => essence.split_once('/').is_some_and(|(own, own_sub)| {
            own == kind
                && (own_sub == sub || own_sub.rsplit_once('+').is_some_and(|(_, suffix)| suffix == sub))
        }),
        None => false,
    }
}

fn transport(error: reqwest::Error) -> Kind {
    let reason = root_cause(&error);
    if error.is_connect() { Kind::Unreachable { reason } } else { Kind::Broken { reason } }
}

/// The innermost message of an error: the outer ones repeat the URL, which may hold a secret.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    if std::ptr::addr_eq(cause, error) { "the request failed".to_owned() } else { cause.to_string() }
}

/// Why a fetch has no answer, in words for a model. It names an origin and never a path, a query or a header's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchError {
    origin: Option<String>,
    kind: Kind,
}

impl FetchError {
    fn at(url: &Url, kind: Kind) -> Self {
        Self { origin: Some(url.origin().ascii_serialization()), kind }
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> &FetchErrorKind {
        &self.kind
    }

    /// The origin that was asked when it went wrong, where it came to that.
    #[must_use]
    pub fn origin(&self) -> Option<&str> {
        self.origin.as_deref()
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Some(origin) => write!(f, "cannot read from {origin}: {}", self.kind),
            None => write!(f, "{}", self.kind),
        }
    }
}

impl std::error::Error for FetchError {}

/// What went wrong with a fetch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchErrorKind {
    /// The policy refuses the URL or an address.
    #[error("{0}")]
    Refused(#[from] EgressError),
    /// It redirects to a URL that the policy refuses.
    #[error("it redirects to where the call may not go: {0}")]
    Redirect(EgressError),
    /// It redirects from `https` to `http`.
    #[error(
        "it redirects from `https` to `http`, which is not followed; call again with the `http` URL if that is meant"
    )]
    Downgrade,
    /// It redirects to something that is no URL.
    #[error("it redirects to something that is not a URL")]
    BadRedirect,
    /// It redirects a request that sends or changes something to another origin.
    #[error(
        "it redirects to another origin, where a request that sends or changes something is not made again; call \
         there if that is meant"
    )]
    Elsewhere,
    /// It redirects too often.
    #[error("it redirects more than {limit} times")]
    TooManyRedirects {
        /// How many are followed.
        limit: usize,
    },
    /// The name does not resolve.
    #[error("the host name cannot be resolved ({reason}); check its spelling")]
    Unresolved {
        /// The resolver's words.
        reason: String,
    },
    /// Nothing answers there, or not with a valid certificate.
    #[error("no connection: {reason}")]
    Unreachable {
        /// The innermost error.
        reason: String,
    },
    /// The exchange broke off.
    #[error("the answer broke off: {reason}")]
    Broken {
        /// The innermost error.
        reason: String,
    },
    /// It took too long.
    #[error("no complete answer within {} s", limit.as_secs_f64())]
    TimedOut {
        /// The limit.
        limit: Duration,
    },
    /// A type that was not asked for.
    #[error("the answer is `{found}`, and only {accepted} can be read")]
    ContentType {
        /// What the server sent.
        found: String,
        /// What is taken.
        accepted: String,
    },
    /// An encoding that was not asked for.
    #[error("the answer is encoded as `{name}`, which was not asked for")]
    Encoding {
        /// The encoding.
        name: String,
    },
    /// A header that cannot be sent.
    #[error("the header `{name}` cannot be sent: its name or value has a character that HTTP does not allow")]
    BadHeader {
        /// Its name.
        name: String,
    },
    /// A header that the client sets itself.
    #[error("the header `{name}` is the client's own to set; leave it out")]
    OwnHeader {
        /// Its name.
        name: String,
    },
    /// TLS cannot be set up, for example without any trusted certificates.
    #[error("the HTTP client cannot be set up: {reason}")]
    NoClient {
        /// The innermost error.
        reason: String,
    },
    /// The address that answered is not known, and so cannot be checked.
    #[error("the address that answered is not known")]
    UnknownPeer,
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use wiremock::matchers::{headers, path};
    use wiremock::{Mock, MockServer, Request, ResponseTemplate};

    use super::*;

    fn exception(server: &MockServer) -> String {
        server.address().to_string()
    }

    /// A client that may reach these servers and nothing else that is private; names do not resolve.
    fn client(servers: &[&MockServer]) -> EgressClient {
        client_with(servers, |name, _| panic!("a resolver was asked for {name}"))
    }

    fn client_with(
        servers: &[&MockServer],
        lookup: impl Fn(&str, usize) -> Vec<SocketAddr> + Send + Sync + 'static,
    ) -> EgressClient {
        let policy = EgressPolicy::default().allow_private(servers.iter().map(|s| exception(s))).unwrap();
        let policy = policy.ports(servers.iter().map(|server| server.address().port()));
        let count = AtomicUsize::new(0);
        let lookup: Lookup = Arc::new(move |name, _| {
            let found = lookup(&name, count.fetch_add(1, Ordering::SeqCst));
            std::future::ready(Ok(found)).boxed()
        });
        EgressClient::with_lookup(policy, lookup)
    }

    async fn server(responses: &[(&str, ResponseTemplate)]) -> MockServer {
        let server = MockServer::start().await;
        for (at, response) in responses {
            Mock::given(path(*at)).respond_with(response.clone()).mount(&server).await;
        }
        server
    }

    fn redirect(to: impl AsRef<str>) -> ResponseTemplate {
        ResponseTemplate::new(302).insert_header("location", to.as_ref())
    }

    async fn kind(client: &EgressClient, url: &str, limits: &FetchLimits) -> Kind {
        client.get(url, limits).await.unwrap_err().kind
    }

    #[tokio::test]
    async fn an_answer_comes_with_its_final_url_status_and_type() {
        let text = ResponseTemplate::new(404).set_body_raw("gone", "text/plain; charset=utf-8");
        let server = server(&[("/a", redirect("b?c=d")), ("/b", text)]).await;
        let answer =
            client(&[&server]).get(&format!("{}/a", server.uri()), &FetchLimits::default()).await.unwrap();
        assert_eq!(answer.url.as_str(), format!("{}/b?c=d", server.uri()));
        assert_eq!((answer.status, answer.content_type.as_deref()), (404, Some("text/plain; charset=utf-8")));
        assert_eq!((answer.body.as_slice(), answer.truncated), (b"gone".as_slice(), false));
    }

    #[tokio::test]
    async fn a_literal_address_is_refused_although_no_resolver_sees_it() {
        let server = server(&[]).await;
        let open = client(&[]);
        let port = server.address().port();
        for url in [
            format!("http://127.0.0.1:{port}/"),
            format!("http://2130706433:{port}/"),
            format!("http://[::ffff:127.0.0.1]:{port}/"),
            "http://127.1/".to_owned(),
        ] {
            let error = open.get(&url, &FetchLimits::default()).await.unwrap_err();
            assert!(matches!(error.kind, Kind::Refused(_)), "{url}: {error}");
        }
        assert!(server.received_requests().await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn every_redirect_is_judged_as_a_whole() {
        let victim = server(&[]).await;
        let targets = [
            victim.uri(),
            "http://127.0.0.1/".into(),
            "http://0x7f.1/".into(),
            "http://[::1]/".into(),
            "http://[::ffff:10.0.0.1]/".into(),
            "http://169.254.169.254/latest/meta-data/".into(),
            "//10.0.0.1/".into(),
            "http://localhost/".into(),
            "http://metadata.google.internal/".into(),
            "http://example.com:22/".into(),
            "http://user:hunter2@example.com/".into(),
            "file:///etc/passwd".into(),
            "gopher://example.com/".into(),
            "data:text/plain,x".into(),
        ];
        for target in targets {
            let origin = server(&[("/", redirect(&target))]).await;
            let error = client(&[&origin]).get(&origin.uri(), &FetchLimits::default()).await.unwrap_err();
            assert!(matches!(error.kind, Kind::Redirect(_)), "{target}: {error}");
            assert!(
                !error.to_string().contains("hunter2") && !error.to_string().contains("passwd"),
                "{error}"
            );
        }
        assert!(victim.received_requests().await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn redirects_are_counted() {
        let mut chain: Vec<_> = (0..7).map(|n| (format!("/{n}"), redirect(format!("/{}", n + 1)))).collect();
        chain.push(("/7".into(), ResponseTemplate::new(200)));
        let chain: Vec<_> = chain.iter().map(|(at, response)| (at.as_str(), response.clone())).collect();
        let server = server(&chain).await;
        let client = client(&[&server]);
        let from = |n: usize| format!("{}/{n}", server.uri());
        assert!(client.get(&from(2), &FetchLimits::default()).await.is_ok());
        let more = FetchLimits { max_redirects: 100, ..FetchLimits::default() };
        assert_eq!(kind(&client, &from(1), &more).await, Kind::TooManyRedirects { limit: 5 });
        let none = FetchLimits { max_redirects: 0, ..FetchLimits::default() };
        assert_eq!(kind(&client, &from(6), &none).await, Kind::TooManyRedirects { limit: 0 });
    }

    #[tokio::test]
    async fn a_redirect_never_leaves_encryption_and_has_to_be_a_url() {
        let client = client(&[]);
        let from = Url::parse("https://example.com/a/b").unwrap();
        let to = |location: &str| client.redirected(&from, location.as_bytes()).map(String::from);
        assert_eq!(to("http://example.com/"), Err(Kind::Downgrade));
        assert_eq!(to("c"), Ok("https://example.com/a/c".to_owned()));
        assert_eq!(to("//example.org/c"), Ok("https://example.org/c".to_owned()));
        assert_eq!(to("https://["), Err(Kind::BadRedirect));
        assert_eq!(client.redirected(&from, b"/\xff").map(String::from), Err(Kind::BadRedirect));
        let plain = Url::parse("http://example.com/").unwrap();
        assert!(client.redirected(&plain, b"https://example.com/").is_ok());
    }

    #[tokio::test]
    async fn credentials_stay_with_their_origin() {
        let (other, home) = (MockServer::start().await, MockServer::start().await);
        // To another page of its own, to another origin, and back.
        Mock::given(path("/back")).respond_with(ResponseTemplate::new(200)).mount(&home).await;
        Mock::given(path("/")).respond_with(redirect("/next")).mount(&home).await;
        Mock::given(path("/next")).respond_with(redirect(other.uri())).mount(&home).await;
        Mock::given(path("/")).respond_with(redirect(format!("{}/back", home.uri()))).mount(&other).await;
        let canary = [("authorization", "Bearer canary-7f3a"), ("x-api-key", "canary-7f3a")];
        client(&[&home, &other]).get_with(&home.uri(), &canary, &FetchLimits::default()).await.unwrap();

        let seen = |request: &Request| format!("{:?}", request.headers).contains("canary-7f3a");
        let at_home = home.received_requests().await.unwrap();
        let paths: Vec<_> = at_home.iter().map(|request| (request.url.path(), seen(request))).collect();
        assert_eq!(paths, [("/", true), ("/next", true), ("/back", false)]);
        let elsewhere = other.received_requests().await.unwrap();
        assert_eq!(elsewhere.len(), 1);
        assert!(!elsewhere.iter().any(seen));
        assert!(
            !elsewhere[0].headers.contains_key("referer") && !elsewhere[0].headers.contains_key("cookie")
        );
    }

    #[tokio::test]
    async fn a_request_has_a_method_headers_and_a_body() {
        let server = server(&[("/", ResponseTemplate::new(201).set_body_string("made"))]).await;
        for (method, name) in [
            (Method::Post, "POST"),
            (Method::Put, "PUT"),
            (Method::Patch, "PATCH"),
            (Method::Delete, "DELETE"),
            (Method::Get, "GET"),
        ] {
            let request = FetchRequest::new(method, server.uri())
                .header("content-type", "application/json")
                .header("x-api-key", "canary-7f3a")
                .body("{}");
            assert_eq!(format!("{request:?}"), format!("FetchRequest {{ method: {method:?}, .. }}"));
            let limits = FetchLimits { max_bytes: 2, ..FetchLimits::default() };
            let answer = client(&[&server]).send(request, &limits).await.unwrap();
            assert_eq!((answer.status, &*answer.body, answer.truncated), (201, &b"ma"[..], true));
            let seen = server.received_requests().await.unwrap().pop().unwrap();
            assert_eq!((seen.method.as_str(), &*seen.body), (name, &b"{}"[..]));
            assert_eq!(seen.headers["content-type"], "application/json");
            assert_eq!(seen.headers["x-api-key"], "canary-7f3a");
        }
        let head = FetchRequest::new(Method::Head, server.uri());
        let answer = client(&[&server]).send(head, &FetchLimits::default()).await.unwrap();
        assert_eq!((answer.status, answer.body.len()), (201, 0));
    }

    #[tokio::test]
    async fn a_request_with_a_body_is_judged_like_any_other() {
        let victim = server(&[]).await;
        let (to_private, here) = (redirect(victim.uri()), server(&[]).await);
        let origin = server(&[("/", to_private)]).await;
        let post = |url: String| FetchRequest::new(Method::Post, url).body("x");
        let limits = FetchLimits::default();
        let refused = |error: FetchError| error.kind;
        let error = client(&[&origin]).send(post(origin.uri()), &limits).await.unwrap_err();
        assert!(matches!(refused(error), Kind::Redirect(_)));
        let error = client(&[]).send(post(victim.uri()), &limits).await.unwrap_err();
        assert!(matches!(refused(error), Kind::Refused(_)));
        let private = client_with(&[&here], |_, _| vec!["10.0.0.1:1".parse().unwrap()]);
        let url = format!("http://name.example:{}/", here.address().port());
        let error = private.send(post(url), &limits).await.unwrap_err();
        assert!(matches!(refused(error), Kind::Refused(_)));
        assert!(victim.received_requests().await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn what_is_sent_never_leaves_its_origin() {
        for status in [301, 302, 303, 307, 308] {
            let (home, other) = (MockServer::start().await, MockServer::start().await);
            let to = |location: String| ResponseTemplate::new(status).insert_header("location", &*location);
            Mock::given(path("/")).respond_with(to("/next".into())).mount(&home).await;
            Mock::given(path("/next")).respond_with(to(other.uri())).mount(&home).await;
            Mock::given(path("/")).respond_with(ResponseTemplate::new(200)).mount(&other).await;
            let request = FetchRequest::new(Method::Post, home.uri())
                .header("authorization", "Bearer canary-7f3a")
                .header("cookie", "canary-7f3a")
                .header("content-type", "text/plain")
                .body("canary-7f3a");
            let sent = client(&[&home, &other]).send(request, &FetchLimits::default()).await;
            let seen = |request: &Request| {
                let body = String::from_utf8(request.body.clone()).unwrap();
                (request.method.to_string(), body, request.headers.contains_key("content-type"))
            };
            let at_home: Vec<_> = home.received_requests().await.unwrap().iter().map(seen).collect();
            let at_other = other.received_requests().await.unwrap();
            let first = ("POST".to_owned(), "canary-7f3a".to_owned(), true);
            if status < 304 {
                assert_eq!(at_home, [first, ("GET".to_owned(), String::new(), false)], "{status}");
                assert_eq!((sent.unwrap().status, at_other.len()), (200, 1));
                assert_eq!(seen(&at_other[0]), ("GET".to_owned(), String::new(), false));
                assert!(!format!("{:?}", at_other[0]).contains("canary-7f3a"));
            } else {
                assert_eq!(at_home, [first.clone(), first], "{status}");
                assert_eq!(sent.unwrap_err().kind, Kind::Elsewhere);
                assert!(at_other.is_empty());
            }
        }
        // What only removes is not made elsewhere either.
        let (home, other) = (MockServer::start().await, MockServer::start().await);
        Mock::given(path("/")).respond_with(redirect(other.uri())).mount(&home).await;
        let delete = FetchRequest::new(Method::Delete, home.uri());
        let error = client(&[&home, &other]).send(delete, &FetchLimits::default()).await.unwrap_err();
        assert_eq!(error.kind, Kind::Elsewhere);
        assert!(other.received_requests().await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn no_header_says_where_a_request_goes_or_how_it_is_read() {
        let server = server(&[]).await;
        for name in ["Host", "content-length", "Transfer-Encoding", "connection", "accept-encoding"] {
            let request = FetchRequest::new(Method::Post, server.uri()).header(name, "internal.example");
            let error = client(&[&server]).send(request, &FetchLimits::default()).await.unwrap_err();
            assert_eq!(error.kind, Kind::OwnHeader { name: name.into() });
        }
        assert!(server.received_requests().await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_header_that_cannot_be_sent_is_named_without_its_value() {
        let error = client(&[])
            .get_with("http://example.com/", &[("x-key", "sec\nret")], &FetchLimits::default())
            .await
            .unwrap_err();
        assert_eq!(error.kind, Kind::BadHeader { name: "x-key".into() });
        assert!(!format!("{error} {error:?}").contains("ret\""));
    }

    #[tokio::test]
    async fn a_name_is_resolved_once_and_its_addresses_are_judged() {
        let server = server(&[("/", ResponseTemplate::new(200).set_body_string("home"))]).await;
        let here = *server.address();
        let url = format!("http://name.example:{}/", here.port());
        let limits = FetchLimits::default();

        // Private addresses among the answers are left out; the connection goes to what was judged, once.
        let beside: SocketAddr = "10.0.0.1:1".parse().unwrap();
        let mixed = client_with(&[&server], move |name, count| {
            assert_eq!((name, count), ("name.example", 0));
            vec![beside, here]
        });
        assert_eq!(mixed.get(&url, &limits).await.unwrap().body, b"home");

        let private = client_with(&[&server], move |_, _| vec![beside]);
        let error = private.get(&url, &limits).await.unwrap_err();
        assert!(matches!(error.kind, Kind::Refused(_)), "{error}");
        assert!(error.to_string().contains("name.example (10.0.0.1)"), "{error}");

        let nothing = client_with(&[&server], |_, _| Vec::new());
        assert!(matches!(kind(&nothing, &url, &limits).await, Kind::Unresolved { .. }));
    }

    #[tokio::test]
    async fn a_name_that_is_rebound_between_hops_is_refused() {
        let server = server(&[("/", redirect("/again")), ("/again", ResponseTemplate::new(200))]).await;
        let here = *server.address();
        let rebinding = client_with(&[&server], move |_, count| match count {
            0 => vec![here],
            _ => vec!["127.0.0.1:1".parse().unwrap(), "[::1]:1".parse().unwrap()],
        });
        // The exception is for this port of 127.0.0.1; the second answer names the same address, so that the port that
        // is judged has to be the URL's and not the answer's.
        let url = format!("http://name.example:{}/", here.port());
        assert!(rebinding.get(&url, &FetchLimits::default()).await.is_ok());

        let to_private = client_with(&[&server], move |_, count| match count {
            0 => vec![here],
            _ => vec!["127.0.0.2:1".parse().unwrap(), "192.168.0.1:1".parse().unwrap()],
        });
        let error = to_private.get(&url, &FetchLimits::default()).await.unwrap_err();
        assert!(error.to_string().contains("name.example (127.0.0.2)"), "{error}");
    }

    #[tokio::test]
    async fn a_connection_of_another_session_leads_nowhere_that_this_one_may_not_go() {
        let server = server(&[("/", ResponseTemplate::new(200))]).await;
        let port = server.address().port();
        let hosts = [format!("127.0.0.1:{port}"), format!("127.0.0.2:{port}")];
        let policy = EgressPolicy::default().allow_private(hosts).unwrap().ports([port]);
        let count = AtomicUsize::new(0);
        let lookup: Lookup = Arc::new(move |_, port| {
            let last = if count.fetch_add(1, Ordering::SeqCst) == 0 { 1 } else { 2 };
            std::future::ready(Ok(vec![SocketAddr::from(([127, 0, 0, last], port))])).boxed()
        });
        let open = EgressClient::with_lookup(policy, lookup);
        let url = format!("http://name.example:{port}/");
        assert!(open.get(&url, &FetchLimits::default()).await.is_ok());
        let limits = EgressPolicy::default().deny(["127.0.0.1"]).unwrap();
        let refused = kind(&open.within(Some(&limits)), &url, &FetchLimits::default()).await;
        assert!(matches!(refused, Kind::Unreachable { .. }), "{refused:?}");
        assert_eq!(server.received_requests().await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn an_exception_for_one_port_opens_no_other() {
        let (open, shut) = (server(&[]).await, server(&[]).await);
        let address = *shut.address();
        let policy = EgressPolicy::default()
            .allow_private([exception(&open)])
            .unwrap()
            .ports([open.address().port(), address.port()]);
        let lookup: Lookup = Arc::new(move |_, _| std::future::ready(Ok(vec![address])).boxed());
        let client = EgressClient::with_lookup(policy, lookup);
        let url = format!("http://name.example:{}/", address.port());
        let error = client.get(&url, &FetchLimits::default()).await.unwrap_err();
        assert!(matches!(error.kind, Kind::Refused(_)), "{error}");
        assert!(shut.received_requests().await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn the_resolver_hands_over_nothing_that_was_not_judged() {
        use reqwest::dns::Resolve as _;
        assert!(Pinned.resolve("name.example".parse().unwrap()).await.is_err());
        let pins = Pins { name: "name.example".into(), addresses: vec!["192.0.2.1:80".parse().unwrap()] };
        let other =
            PINS.scope(pins.clone(), async { Pinned.resolve("other.example".parse().unwrap()).await });
        assert!(other.await.is_err());
        let same = PINS.scope(pins.clone(), async { Pinned.resolve("name.example".parse().unwrap()).await });
        assert_eq!(same.await.unwrap().collect::<Vec<_>>(), pins.addresses);
    }

    #[tokio::test]
    async fn the_cap_counts_decoded_bytes() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&vec![b'a'; 20 * 1024 * 1024]).unwrap();
        let bomb = encoder.finish().unwrap();
        assert!(bomb.len() < 64 * 1024);
        let server = server(&[
            (
                "/bomb",
                ResponseTemplate::new(200).insert_header("content-encoding", "gzip").set_body_bytes(bomb),
            ),
            ("/exact", ResponseTemplate::new(200).set_body_bytes(vec![b'a'; 1000])),
            ("/over", ResponseTemplate::new(200).set_body_bytes(vec![b'a'; 1001])),
            ("/br", ResponseTemplate::new(200).insert_header("content-encoding", "br").set_body_bytes([1])),
        ])
        .await;
        let client = client(&[&server]);
        let limits = FetchLimits { max_bytes: 1000, ..FetchLimits::default() };
        for (at, truncated) in [("bomb", true), ("exact", false), ("over", true)] {
            let answer = client.get(&format!("{}/{at}", server.uri()), &limits).await.unwrap();
            assert_eq!(answer.body, vec![b'a'; 1000]);
            assert_eq!(answer.truncated, truncated, "{at}");
        }
        let encoded = kind(&client, &format!("{}/br", server.uri()), &limits).await;
        assert_eq!(encoded, Kind::Encoding { name: "br".into() });
    }

    #[tokio::test]
    async fn an_unwanted_type_is_refused_before_its_body_is_read() {
        let server = MockServer::start().await;
        let pdf = ResponseTemplate::new(200).set_body_raw("%PDF", "application/pdf");
        Mock::given(path("/"))
            .and(headers("accept", vec!["text/html", "application/json"]))
            .respond_with(pdf)
            .mount(&server)
            .await;
        let limits = FetchLimits { accept: &["text/html", "application/json"], ..FetchLimits::default() };
        assert_eq!(
            kind(&client(&[&server]), &server.uri(), &limits).await,
            Kind::ContentType {
                found: "application/pdf".into(),
                accepted: "text/html, application/json".into()
            }
        );

        for (range, own, expected) in [
            ("text/*", "Text/HTML; charset=x", true),
            ("application/json", "application/ld+json", true),
            ("application/json", "application/json5", false),
            ("text/html", "text/html", true),
            ("text/html", "", false),
            ("*/*", "", true),
        ] {
            assert_eq!(covers(range, own), expected, "{range} {own}");
        }
    }

    #[tokio::test]
    async fn a_body_that_never_ends_meets_the_deadline() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stalling = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                stream.read_buf(&mut request).await.unwrap();
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nsome").await.unwrap();
            std::future::pending::<()>().await;
        });
        let policy = EgressPolicy::default().allow_private([address.to_string()]).unwrap();
        let client = EgressClient::new(policy);
        let limits = FetchLimits { timeout: Duration::from_millis(300), ..FetchLimits::default() };
        let error = client.get(&format!("http://{address}/"), &limits).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("cannot read from http://{address}: no complete answer within 0.3 s")
        );
        stalling.abort();
    }

    #[tokio::test]
    async fn a_connection_that_fails_says_so_without_the_url() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let policy = EgressPolicy::default().allow_private([address.to_string()]).unwrap();
        let client = EgressClient::new(policy);
        let error = client
            .get(&format!("http://{address}/?token=secret"), &FetchLimits::default())
            .await
            .unwrap_err();
        assert!(matches!(error.kind, Kind::Unreachable { .. }), "{error}");
        assert!(!format!("{error} {error:?}").contains("secret"));
    }
}
