//! Reading URLs as the egress does: what passes leads, by the parser of the URL standard, to no private address,
//! nor does what completes it to a URL.
#![no_main]

use std::net::IpAddr;

use aster_runtime::gate::egress::{EgressPolicy, Sort};
use libfuzzer_sys::fuzz_target;
use url::{Host, ParseError, Url};

/// Ranges that are private without doubt, by the standard library's word.
fn is_private(url: &Url) -> bool {
    let address = match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::V4(address),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).to_canonical(),
        Some(Host::Domain(name)) => return matches!(name.trim_end_matches('.'), "localhost" | "metadata.google.internal"),
        None => return false,
    };
    match address {
        IpAddr::V4(v4) => v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_unspecified(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unspecified() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

/// What a text without a scheme is to who puts one before it, and whether it is nothing but a number. With a slash in front
/// it is a path.
fn completed(text: &str) -> Option<(Url, bool)> {
    let text: String = text.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    let is_path = text.starts_with(['/', '\\']);
    if is_path || Url::parse(&text) != Err(ParseError::RelativeUrlWithoutBase) {
        return None;
    }
    let is_number = text.chars().filter(|c| c.is_alphanumeric()).all(|c| c.is_ascii_digit())
        && !text.contains(['.', ':', '/', '?', '#', '@', '\\']);
    Some((Url::parse(&format!("http://{text}")).ok()?, is_number))
}

fuzz_target!(|text: &str| {
    let policy = EgressPolicy::default();
    if let Ok(url) = policy.parse(text) {
        assert!(!is_private(&url), "{url}");
    }
    for sort in [Sort::Url, Sort::Host] {
        if policy.check_named(text, sort, None).is_ok() {
            let web = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https" | "ws" | "wss" | "ftp"));
            assert!(!web.is_some_and(|url| is_private(&url)), "{text:?}");
            if let Some((url, is_number)) = completed(text) {
                assert!(!is_private(&url) || (is_number && sort == Sort::Url), "{text:?}");
            }
        }
    }
    let _ = policy.check_named(text, Sort::Text, Some(80));
    let _ = EgressPolicy::default().allow_private([text]);
    let _ = EgressPolicy::default().allow([text]).and_then(|policy| policy.deny([text]));
});
