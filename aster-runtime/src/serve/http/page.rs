//! What the browser of a page that may ask is told (CORS). One of a page that may not is told nothing.
//!
//! Source: the Fetch standard, section "HTTP extensions", CORS protocol.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};

use super::{Body, METHODS, empty};

/// The headers that a client of MCP sends and a browser lets no page send by itself.
const SENT: [&str; 8] = [
    "accept",
    "authorization",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
];

/// With what the headers begin that repeat an argument (SEP-2243).
const ARGUMENT: &str = "mcp-param-";

/// The headers that a page may read.
const READ: &str = "mcp-session-id, mcp-protocol-version, www-authenticate, retry-after";

/// For how many seconds a browser may remember what it was told: an origin can be taken off the list.
const REMEMBERED: &str = "600";

/// The origin of the page that asks, which may; `None` where no page does.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page(pub(super) Option<HeaderValue>);

impl Page {
    /// The answer to a browser that asks whether its page may ask.
    pub(super) fn preflight<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        let headers = request.headers();
        if self.0.is_none()
            || request.method() != Method::OPTIONS
            || !headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
        {
            return None;
        }
        let mut response = empty(StatusCode::NO_CONTENT);
        let told = response.headers_mut();
        told.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        told.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(REMEMBERED));
        if let Ok(allowed) = HeaderValue::from_str(&allowed(headers)) {
            told.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        }
        Some(response)
    }

    /// Lets the page read a response.
    pub(super) fn readable(self, mut response: Response<Body>) -> Response<Body> {
        let told = response.headers_mut();
        // A cache must not give a page what was meant for another, or for none.
        told.append(VARY, HeaderValue::from(ORIGIN));
        if let Some(origin) = self.0 {
            told.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            told.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(READ));
        }
        response
    }
}

/// Those of the headers asked for that mean something here.
fn allowed(headers: &HeaderMap) -> String {
    let asked = headers.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let names = asked.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let names = names.map(|name| name.trim().to_ascii_lowercase());
    names
        .filter(|name| SENT.contains(&name.as_str()) || name.starts_with(ARGUMENT))
        .collect::<Vec<_>>()
        .join(", ")
}
