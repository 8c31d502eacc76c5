//! Who may ask: the checks of `Host`, `Origin` and `Authorization`, before anything else of a request is looked at.
//!
//! A page in a browser can reach a server on loopback, under a name that its owner points there (DNS rebinding). `Host`
//! then has that name and `Origin` the page's: both are checked against lists, whole and never by a part of them.

use std::net::IpAddr;

use http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri};

use super::page::Page;
use super::{Options, Principal, Refusal};
use crate::serve::ServeError;
use crate::text;

/// The shortest token that is taken: what a person makes up is shorter, and can be guessed.
const SHORTEST_TOKEN: usize = 16;

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The address at which a request arrived, where that is as good a host as those of the list. What a page's owner can point
/// here is a name, and that then stands in `Host`: never an address of ours.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArrivedAt(pub(super) IpAddr);

/// The lists, read once.
pub(super) struct Guard {
    hosts: Vec<(HostName, Port)>,
    origins: Vec<AllowedOrigin>,
    tokens: Vec<(Principal, blake3::Hash)>,
    /// Whether pages that may ask may read the answers.
    readable: bool,
}

/// A host as it is compared: an address by its value, a name in lower case without the dot at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HostName {
    Address(IpAddr),
    Name(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Port {
    Any,
    Only(u16),
}

enum AllowedOrigin {
    Null,
    Site { scheme: String, host: HostName, port: Port },
}

impl Guard {
    pub(super) fn new(options: &Options) -> Result<Self, ServeError> {
        let mut hosts = Vec::new();
        for name in &options.hosts {
            let (host, port) = read_authority(name).ok_or_else(|| {
                wrong("allowed host", name, "write `example.com`, `example.com:8080` or `[::1]`")
            })?;
            hosts.push((host, port.map_or(Port::Any, Port::Only)));
        }
        if options.hosts.is_empty() {
            hosts.extend(LOOPBACK.into_iter().filter_map(read_authority).map(|(host, _)| (host, Port::Any)));
        }
        let mut origins = Vec::new();
        for origin in &options.origins {
            origins.push(read_allowed(origin).ok_or_else(|| {
                wrong("allowed origin", origin, "write `https://example.com`, `http://localhost:*` or `null`")
            })?);
        }
        if options.origins.is_empty() {
            for scheme in ["http", "https"] {
                origins.extend(LOOPBACK.into_iter().filter_map(read_authority).map(|(host, _)| {
                    AllowedOrigin::Site { scheme: scheme.to_owned(), host, port: Port::Any }
                }));
            }
        }
        let mut tokens = Vec::new();
        for (principal, token) in &options.tokens {
            if principal.0.is_empty() {
                return Err(ServeError::Options(
                    "a token names who comes with it: give it a label".to_owned(),
                ));
            }
            if token.len() < SHORTEST_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(ServeError::Options(format!(
                    "a token is {SHORTEST_TOKEN} or more printable ASCII characters without a space, for example of \
                     `openssl rand -hex 32`"
                )));
            }
            let digest = blake3::hash(token.as_bytes());
            if tokens.iter().any(|(_, known)| *known == digest) {
                return Err(ServeError::Options(
                    "two tokens are the same; each names who comes with it".to_owned(),
                ));
            }
            tokens.push((principal.clone(), digest));
        }
        // Any program here can serve a page at loopback: it may ask, as without a browser, but to read takes a name or a token.
        let readable = !options.origins.is_empty() || !tokens.is_empty();
        Ok(Self { hosts, origins, tokens, readable })
    }

    /// Whether a request was sent to us, and by no page that may not; says by which that may.
    pub(super) fn admit<B>(&self, request: &Request<B>) -> Result<Page, Refusal> {
        let arrived_at = request.extensions().get::<ArrivedAt>().copied();
        self.check_host(request.uri(), request.headers(), arrived_at)?;
        self.check_origin(request.headers())
    }

    /// Whether a request was sent to a name that is ours, by its target and by its header.
    fn check_host(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        arrived_at: Option<ArrivedAt>,
    ) -> Result<(), Refusal> {
        let own = arrived_at.map(|ArrivedAt(address)| HostName::Address(address));
        let header = match single(headers, &HOST) {
            Ok(header) => header,
            Err(_) => {
                return Err(Refusal::new(StatusCode::BAD_REQUEST, "there is more than one Host header"));
            }
        };
        // A target with an authority outranks the header (RFC 9112, section 3.2.2); neither may be a stranger's.
        let named =
            [uri.authority().map(Authority::as_str), header.map(|header| header.to_str().unwrap_or("\0"))];
        if named.iter().all(Option::is_none) {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "there is no Host header"));
        }
        for named in named.into_iter().flatten() {
            let Some((host, port)) = read_authority(named) else {
                return Err(Refusal::new(StatusCode::BAD_REQUEST, "the Host header names no host"));
            };
            let known = |(allowed, only): &(HostName, Port)| *allowed == host && only.allows(port);
            if own.as_ref() != Some(&host) && !self.hosts.iter().any(known) {
                return Err(Refusal::new(
                    StatusCode::FORBIDDEN,
                    "this Host is not allowed; see `allowed_hosts`",
                ));
            }
        }
        Ok(())
    }

    /// Whether a page that asks is one that may. What is no page sends no origin.
    fn check_origin(&self, headers: &HeaderMap) -> Result<Page, Refusal> {
        let refused =
            || Refusal::new(StatusCode::FORBIDDEN, "this Origin is not allowed; see `allowed_origins`");
        let Some(page) = single(headers, &ORIGIN).map_err(|()| refused())? else { return Ok(Page(None)) };
        let origin = page.to_str().map_err(|_| refused())?;
        let site = read_origin(origin);
        let allowed = self.origins.iter().any(|allowed| match (allowed, &site) {
            (AllowedOrigin::Null, _) => origin == "null",
            (AllowedOrigin::Site { scheme, host, port }, Some((its_scheme, its_host, its_port))) => {
                scheme == its_scheme && host == its_host && port.allows(its_port.or(default_port(its_scheme)))
            }
            _ => false,
        });
        if allowed { Ok(Page(self.readable.then(|| page.clone()))) } else { Err(refused()) }
    }

    /// Whose token a request carries; `None` where none is demanded.
    pub(super) fn check_token(&self, headers: &HeaderMap) -> Result<Option<Principal>, Refusal> {
        if self.tokens.is_empty() {
            return Ok(None);
        }
        let refused = |challenge| {
            Refusal::new(StatusCode::UNAUTHORIZED, "this server asks for a bearer token").challenge(challenge)
        };
        let header =
            single(headers, &AUTHORIZATION).map_err(|()| refused("Bearer error=\"invalid_request\""))?;
        let header = header.ok_or_else(|| refused("Bearer"))?.as_bytes();
        let token = match header.split_at_checked(7) {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => token.trim_ascii(),
            _ => return Err(refused("Bearer")),
        };
        // Digests are compared in constant time, and all of them: how long it takes says nothing.
        let digest = blake3::hash(token);
        let mut found = None;
        for (principal, known) in &self.tokens {
            if *known == digest {
                found = Some(principal.clone());
            }
        }
        found.map(Some).ok_or_else(|| refused("Bearer error=\"invalid_token\""))
    }
}

impl Port {
    fn allows(self, port: Option<u16>) -> bool {
        match self {
            Self::Any => true,
            Self::Only(only) => port == Some(only),
        }
    }
}

fn wrong(what: &str, value: &str, help: &str) -> ServeError {
    ServeError::Options(format!("`{}` cannot be an {what}: {help}", text::one_line(value, 100)))
}

/// A header that may stand once: twice, and two programs on the way may each read another one.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, ()> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() { Err(()) } else { Ok(first) }
}

/// A host and its port, of exactly that.
fn read_authority(text: &str) -> Option<(HostName, Option<u16>)> {
    let authority: Authority = text.parse().ok()?;
    if text.contains('@') {
        return None;
    }
    let host = authority.host();
    let port = match text.strip_prefix(host)? {
        "" | ":" => None,
        port => Some(port.strip_prefix(':')?.parse().ok()?),
    };
    if let Some(inner) = host.strip_prefix('[') {
        let address: std::net::Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
        return Some((HostName::Address(IpAddr::V6(address).to_canonical()), port));
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) {
        return None;
    }
    let host = match name.parse::<IpAddr>() {
        Ok(address) => HostName::Address(address),
        Err(_) => HostName::Name(name.to_ascii_lowercase()),
    };
    Some((host, port))
}

/// A site as RFC 6454 writes one: scheme, host and port, and nothing after them.
fn read_origin(text: &str) -> Option<(String, HostName, Option<u16>)> {
    let (scheme, rest) = text.split_once("://")?;
    let (host, port) = read_authority(rest)?;
    Some((scheme.to_ascii_lowercase(), host, port))
}

fn read_allowed(text: &str) -> Option<AllowedOrigin> {
    if text == "null" {
        return Some(AllowedOrigin::Null);
    }
    let (base, any) = match text.strip_suffix(":*") {
        Some(base) => (base, true),
        None => (text, false),
    };
    let (scheme, host, port) = read_origin(base)?;
    let port = match (any, port) {
        (true, None) => Port::Any,
        (true, Some(_)) => return None,
        (false, port) => Port::Only(port.or(default_port(&scheme))?),
    };
    Some(AllowedOrigin::Site { scheme, host, port })
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(options: &Options, target: &str, values: &[&str]) -> u16 {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(HOST, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let checked = Guard::new(options).unwrap().check_host(&target.parse().unwrap(), &headers, None);
        checked.map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
    }

    fn origin(options: &Options, values: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ORIGIN, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        Guard::new(options).unwrap().check_origin(&headers).is_ok()
    }

    #[test]
    fn hosts_in_every_spelling() {
        let default = Options::default();
        for (target, values, status) in [
            ("/mcp", &["localhost"][..], 200),
            ("/mcp", &["LocalHost:8080"], 200),
            ("/mcp", &["localhost."], 200),
            ("/mcp", &["localhost.:1"], 200),
            ("/mcp", &["localhost:"], 200),
            ("/mcp", &["127.0.0.1:65535"], 200),
            ("/mcp", &["[::1]"], 200),
            ("/mcp", &["[::1]:80"], 200),
            ("/mcp", &["[0:0:0:0:0:0:0:1]"], 200),
            ("/mcp", &["[::ffff:127.0.0.1]"], 200),
            ("http://localhost/mcp", &["localhost"], 200),
            ("http://localhost/mcp", &[], 200),
            ("/mcp", &[], 400),
            ("/mcp", &[""], 400),
            ("/mcp", &["localhost", "localhost"], 400),
            ("/mcp", &["localhost", "evil.example"], 400),
            ("/mcp", &["evil.example"], 403),
            ("/mcp", &["localhost.evil.example"], 403),
            ("/mcp", &["evil.localhost"], 403),
            ("/mcp", &["localhost.."], 403),
            ("/mcp", &["127.0.0.1.evil.example"], 403),
            ("/mcp", &["127.0.0.2"], 403),
            ("/mcp", &["0.0.0.0"], 403),
            ("/mcp", &["2130706433"], 403),
            ("/mcp", &["0x7f.0.0.1"], 403),
            ("/mcp", &["[::]"], 403),
            ("/mcp", &["evil.example@localhost"], 400),
            ("/mcp", &["localhost@evil.example"], 400),
            ("/mcp", &["localhost:80@evil.example"], 400),
            ("/mcp", &["localhost, evil.example"], 400),
            ("/mcp", &["localhost/evil"], 400),
            ("/mcp", &["localhost#evil"], 400),
            ("/mcp", &["localhost:99999"], 400),
            ("/mcp", &["localhost:a"], 400),
            ("/mcp", &["localhost:-1"], 400),
            ("/mcp", &["::1"], 400),
            ("/mcp", &["[::1"], 400),
            ("/mcp", &["[::1%25lo]"], 400),
            ("/mcp", &["löcalhost"], 400),
            ("/mcp", &["localhost\u{200b}"], 400),
            ("/mcp", &["%6cocalhost"], 400),
            ("http://evil.example/mcp", &["localhost"], 403),
            ("http://localhost/mcp", &["evil.example"], 403),
            ("http://a@localhost/mcp", &["localhost"], 400),
        ] {
            assert_eq!(host(&default, target, values), status, "{target} {values:?}");
        }
        let own = Options::default().allowed_hosts(["Tools.Example:8443", "other.example"]);
        assert_eq!(host(&own, "/mcp", &["tools.example:8443"]), 200);
        assert_eq!(host(&own, "/mcp", &["tools.example"]), 403);
        assert_eq!(host(&own, "/mcp", &["other.example:1"]), 200);
        assert_eq!(host(&own, "/mcp", &["localhost"]), 403);
        assert!(Guard::new(&Options::default().allowed_hosts(["http://a.example"])).is_err());
    }

    #[test]
    fn origins_in_every_spelling() {
        let default = Options::default();
        for (values, allowed) in [
            (&[][..], true),
            (&["http://localhost"], true),
            (&["http://LOCALHOST:6274"], true),
            (&["https://127.0.0.1:1"], true),
            (&["http://[::1]:3000"], true),
            (&["HTTP://localhost"], true),
            (&["null"], false),
            (&[""], false),
            (&["localhost"], false),
            (&["file://"], false),
            (&["ftp://localhost"], false),
            (&["http://evil.example"], false),
            (&["http://localhost.evil.example"], false),
            (&["http://evil.example#http://localhost"], false),
            (&["http://evil.example/?http://localhost"], false),
            (&["http://localhost@evil.example"], false),
            (&["http://evil.example@localhost"], false),
            (&["http://localhost/"], false),
            (&["http://localhost http://evil.example"], false),
            (&["http://localhost", "http://evil.example"], false),
            (&["http://localhost", "http://localhost"], false),
            (&["http:\\\\localhost"], false),
            (&["http://localhost:99999"], false),
            (&["http://lo\u{200b}calhost"], false),
        ] {
            assert_eq!(origin(&default, values), allowed, "{values:?}");
        }
        let own = Options::default().allowed_origins(["https://App.example", "http://dev.example:*", "null"]);
        for (value, allowed) in [
            ("https://app.example", true),
            ("https://app.example:443", true),
            ("https://app.example:8443", false),
            ("http://app.example", false),
            ("https://evil.app.example", false),
            ("http://dev.example:1234", true),
            ("null", true),
            ("http://localhost", false),
        ] {
            assert_eq!(origin(&own, &[value]), allowed, "{value}");
        }
        for wrong in ["app.example", "https://app.example/", "https://app.example:1:*", "*", "app://x"] {
            assert!(Guard::new(&Options::default().allowed_origins([wrong])).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tokens_name_their_principal() {
        let options =
            Options::default().token("ann", "a-long-enough-token").token("bob", "another-long-token");
        let guard = Guard::new(&options).unwrap();
        let check = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            guard.check_token(&headers).map_err(|refusal| refusal.challenge.unwrap())
        };
        assert_eq!(check(&["Bearer a-long-enough-token"]), Ok(Some(Principal("ann".into()))));
        assert_eq!(check(&["bearer  another-long-token "]), Ok(Some(Principal("bob".into()))));
        for (values, challenge) in [
            (&[][..], "Bearer"),
            (&["Basic a-long-enough-token"], "Bearer"),
            (&["a-long-enough-token"], "Bearer"),
            (&["Bearer"], "Bearer"),
            (&["Bearer "], "Bearer error=\"invalid_token\""),
            (&["Bearer a-long-enough-toke"], "Bearer error=\"invalid_token\""),
            (&["Bearer a-long-enough-token, Bearer x"], "Bearer error=\"invalid_token\""),
            (
                &["Bearer a-long-enough-token", "Bearer a-long-enough-token"],
                "Bearer error=\"invalid_request\"",
            ),
        ] {
            assert_eq!(check(values), Err(challenge), "{values:?}");
        }
        let shown = format!("{options:?}");
        assert!(!shown.contains("long"), "{shown}");
        for wrong in ["", "short", "with a space in it, and long", "ünprintable-but-long-enough"] {
            assert!(Guard::new(&Options::default().token("a", wrong)).is_err(), "{wrong}");
        }
        assert!(Guard::new(&options.token("eve", "a-long-enough-token")).is_err());
    }
}
