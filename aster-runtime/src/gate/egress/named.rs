//! What a text in a call's arguments names, read as leniently as whoever gets it might read it. Pure.
//!
//! It is judged by another program's parser in the end, and that program may be one that completes `localhost:3000` or
//! takes `URL:http://…`. So what any of them could take for a private destination is refused, and what none of them would
//! connect to, such as `file:` and `mailto:`, is none of the egress's business.

use std::iter;
use std::net::{IpAddr, Ipv6Addr};

use url::{Host, Url};

use super::arguments::Sort;
use super::{
    EgressError, EgressErrorKind as Kind, EgressPolicy, MAX_URL_BYTES, PRIVATE_SUFFIXES, is_below, plain,
    private_range, strip_dot, target,
};
use crate::text::is_unsafe;

/// Schemes that lead to a host, with the port that they mean.
const NETWORK: &[(&str, u16)] = &[
    ("http", 80),
    ("https", 443),
    ("ws", 80),
    ("wss", 443),
    ("ftp", 21),
    ("ftps", 990),
    ("sftp", 22),
    ("ssh", 22),
    ("git", 9418),
    ("svn", 3690),
    ("gopher", 70),
    ("dict", 2628),
    ("telnet", 23),
    ("tftp", 69),
    ("ldap", 389),
    ("ldaps", 636),
    ("smb", 445),
    ("imap", 143),
    ("imaps", 993),
    ("pop3", 110),
    ("smtp", 25),
    ("smtps", 465),
    ("rtsp", 554),
    ("rtmp", 1935),
    ("tcp", 0),
    ("udp", 0),
    ("mqtt", 1883),
    ("mqtts", 8883),
    ("nats", 4222),
    ("grpc", 0),
    ("postgres", 5432),
    ("postgresql", 5432),
    ("mysql", 3306),
    ("mariadb", 3306),
    ("mongodb", 27017),
    ("redis", 6379),
    ("rediss", 6379),
    ("amqp", 5672),
    ("amqps", 5671),
    ("sqlserver", 1433),
    ("clickhouse", 9000),
    // With a host it is one of Windows' network.
    ("file", 445),
];

/// What may stand before the scheme that counts.
const WRAPPERS: &[&str] = &["url", "view-source", "jar", "feed", "blob", "jdbc"];

/// How many of them.
const MAX_WRAPPERS: usize = 4;

impl EgressPolicy {
    /// Checks what a text in the arguments of a call names, where it names a host. Nothing is resolved: a name is judged as
    /// it stands. Neither scheme nor port is limited, and a user name is allowed, as in `ssh://git@example.com`.
    ///
    /// ```
    /// use aster_runtime::gate::egress::{EgressPolicy, Sort};
    ///
    /// let policy = EgressPolicy::default();
    /// assert!(policy.check_named("https://example.com:8443/page", Sort::Url, None).is_ok());
    /// assert!(policy.check_named("/page", Sort::Url, None).is_ok());
    /// assert!(policy.check_named("localhost:3000", Sort::Url, None).is_err());
    /// assert!(policy.check_named("see http://localhost/ for more", Sort::Text, None).is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// Where the host is private or a list refuses it, or where nobody can say which host it is.
    pub fn check_named(&self, text: &str, sort: Sort, port: Option<u16>) -> Result<(), EgressError> {
        let pieces = several(text, sort).into_iter().map(|piece| (piece, sort));
        for (text, sort) in iter::once((text, sort)).chain(pieces) {
            for mention in mentions(text, sort, MAX_URL_BYTES) {
                self.judge(&mention?, port)?;
            }
        }
        Ok(())
    }

    /// Judges a host as it stands in a text.
    fn judge(&self, mention: &Mention, port: Option<u16>) -> Result<(), EgressError> {
        let borrowed = borrowed(&mention.host);
        let host = plain(&borrowed);
        let port = mention.port.or(port).unwrap_or(mention.default);
        match (mention.stands, &host) {
            (Stands::Elsewhere, _) => Ok(()),
            (Stands::Alone, Host::Domain(name)) if !name.contains('.') && !is_local(name) => {
                // `main` may be anything; only a list of hosts takes it for one.
                self.check_lists(&host, port)
                    .map_err(|kind| EgressError::new(target(&host, port), kind))
                    .map(drop)
            }
            _ => self.check_host(&host, port),
        }
    }
}

/// The hosts that a text may name to whoever reads it leniently, as [`EgressPolicy::check_named`] does: those of rules that
/// deny or ask.
pub(crate) fn hosts(text: &str) -> impl Iterator<Item = Host> {
    let texts = iter::once(text).chain(several(text, Sort::Text));
    let mentions = texts.flat_map(|text| mentions(text, Sort::Host, usize::MAX));
    mentions.flatten().map(|mention| mention.host)
}

/// The parts of a text that is read as a list, as one with a URL a line or a list of JSON. What counts as URLs may have other
/// words between them; in what may be anything, each part has to be one.
fn several(text: &str, sort: Sort) -> Vec<&str> {
    let mut parts = Vec::new();
    for word in text.split(char::is_whitespace) {
        // In a URL's query an address is a value like others, and only another URL is one.
        let mut in_query = false;
        for part in word.split([',', ';', '|']).map(bare).filter(|part| !part.is_empty()) {
            parts.push((part, in_query));
            in_query |= part.split_once("://").is_some_and(|(_, rest)| rest.contains(['?', '#']));
        }
    }
    match sort {
        _ if parts == [(text, false)] => parts.clear(),
        Sort::Host => {}
        Sort::Url => parts.retain(|(part, in_query)| match in_query {
            true => part.replace('\\', "/").contains("://"),
            false => leads(&unwrapped(part)),
        }),
        Sort::Text => {
            if !parts.iter().all(|(part, _)| is_url(&unwrapped(part))) {
                parts.clear();
            }
        }
    }
    parts.into_iter().map(|(part, _)| part).collect()
}

/// A part of a list without the brackets and quotes around it. Those of an address of version 6 are its own.
fn bare(part: &str) -> &str {
    /// How long an address is at most, with its zone.
    const ADDRESS: usize = 64;

    let mut inner = part;
    // Counted once: there may be as many as there are bytes.
    let (mut opening, mut closing) = (part.matches('[').count(), part.matches(']').count());
    loop {
        let before = inner.len();
        inner = inner.trim_matches(|c| surrounds(c) || matches!(c, '(' | ')'));
        if let Some(rest) = inner.strip_prefix('[') {
            let end = rest.bytes().take(ADDRESS).position(|byte| byte == b']');
            if end.and_then(|end| address(&rest[..end])).is_none() {
                inner = rest;
                opening -= 1;
            }
        }
        if let Some(rest) = inner.strip_suffix(']')
            && closing > opening
        {
            inner = rest;
            closing -= 1;
        }
        if inner.len() == before {
            return inner;
        }
    }
}

/// Whether a text is written as a URL, however few slashes it has.
fn is_url(text: &str) -> bool {
    let slashes = text.replace('\\', "/");
    slashes.contains("://")
        || scheme(&slashes).is_some_and(|(scheme, rest)| {
            network(&scheme).is_some() && (rest.starts_with('/') || is_at_home(rest))
        })
}

/// Whether a word among others leads to a host: a URL, what completes to one, or what is a private place by itself.
fn leads(word: &str) -> bool {
    let slashes = word.replace('\\', "/");
    let is_web = |(scheme, rest): (String, &str)| is_web(&scheme) && !rest.is_empty();
    let names_more = |rest: &str| !rest.trim_start_matches('/').is_empty();
    is_url(word)
        || scheme(&slashes).is_some_and(is_web)
        || slashes.strip_prefix("//").is_some_and(names_more)
        || is_at_home(&slashes)
        || is_private_with_more(&slashes)
}

/// Whether a word is a private address however short, `10.1` for one, with a port, a path or a user beside it.
fn is_private_with_more(word: &str) -> bool {
    let Some(Mention { host: Host::Ipv4(address), port, .. }) = alone(word, Sort::Url) else { return false };
    let has_more = port.is_some() || word.contains(['/', '@']);
    has_more && word.contains('.') && private_range(address.into()).is_some()
}

/// Whether a word is an address or a local name. `internal` is a word like others, `10.5` or `0.1.2` a number, and `12:30` a
/// time.
fn is_at_home(word: &str) -> bool {
    let Some(Mention { host, port, .. }) = alone(word, Sort::Url) else { return false };
    match host {
        Host::Ipv6(_) => true,
        Host::Ipv4(address) => {
            let authority = word.split(['/', '?', '#']).next().unwrap_or_default();
            let name = authority.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
            // Of the network 0 only its first address leads anywhere, which is this machine.
            let leads = || address.octets()[0] != 0 || address.is_unspecified();
            name.matches('.').count() >= 3
                || name.starts_with("127.")
                || name.starts_with("0x")
                || (!name.contains('.') && leads())
        }
        Host::Domain(name) => {
            is_local(&name) && (name.contains('.') || name == "localhost" || port.is_some())
        }
    }
}

/// The URLs that a text may be to those who read it leniently, as [`hosts`] does.
pub(crate) fn readings(text: &str) -> Vec<String> {
    let texts = iter::once(text).chain(several(text, Sort::Text)).map(unwrapped);
    let completed = texts.flat_map(|text| completions(&text).into_iter().chain([text]));
    completed.flat_map(|text| other_reading(&text).into_iter().chain([text])).collect()
}

/// The URLs of the web that a text without a scheme may be to those who complete it.
fn completions(text: &str) -> Vec<String> {
    let slashes = text.replace('\\', "/");
    // Without a path after it, `README.md`, `1.2.3` or an address of mail is hardly a URL.
    let is_host = || slashes.contains('/') && alone(&slashes, Sort::Url).is_some();
    let begins = if slashes.starts_with("//") {
        ":"
    } else if scheme(text).is_none() && is_host() {
        "://"
    } else {
        return Vec::new();
    };
    ["https", "http"].map(|scheme| format!("{scheme}{begins}{text}")).into()
}

/// A text without what parsers drop from its ends, and without what may stand before the scheme that counts.
fn unwrapped(text: &str) -> String {
    // The URL standard drops these wherever they stand.
    let text: String = text.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    let mut inner = text.trim_matches(surrounds);
    for _ in 0..MAX_WRAPPERS {
        match scheme(inner) {
            Some((wrapper, rest)) if WRAPPERS.contains(&wrapper.as_str()) => {
                inner = rest.trim_matches(surrounds);
            }
            _ => break,
        }
    }
    inner.to_owned()
}

/// What may stand around a URL that somebody cuts out or trims: each language has white space of its own.
fn surrounds(c: char) -> bool {
    c.is_whitespace() || is_unsafe(c) || matches!(c, '<' | '>' | '"' | '\'' | '`' | '“' | '”' | '‘' | '’')
}

/// A host in a text.
struct Mention {
    host: Host,
    /// The port that stands beside it.
    port: Option<u16>,
    /// The port that its scheme means.
    default: u16,
    stands: Stands,
}

/// Where a host stands.
#[derive(Clone, Copy)]
enum Stands {
    /// Where only a host can: a name of one part is one of the local network.
    InUrl,
    /// Without a scheme: a name of one part is hardly a host.
    Alone,
    /// In a URL of a scheme that is not known to lead to one.
    Elsewhere,
}

/// The hosts in a text, each of them or why it cannot be read; a URL of the web may have `max` bytes.
fn mentions(text: &str, sort: Sort, max: usize) -> Vec<Result<Mention, EgressError>> {
    let text = unwrapped(text);
    let slashes = text.replace('\\', "/");
    if sort == Sort::Text && (text.contains(char::is_whitespace) || !is_url(&text)) {
        return Vec::new();
    }
    if let Some(address) = address(&slashes) {
        let sort = if sort == Sort::Text { sort } else { Sort::Host };
        return alone(&address.to_string(), sort).map(Ok).into_iter().collect();
    }
    if slashes.starts_with("//") {
        let text = if text.starts_with("//") { &text } else { &slashes };
        return web(&format!("http:{text}"), max);
    }
    let Some((scheme, rest)) = scheme(&text) else {
        let readings = [Some(&slashes), text.contains('\\').then_some(&text)];
        return readings.into_iter().flatten().filter_map(|text| alone(text, sort)).map(Ok).collect();
    };
    match network(&scheme) {
        Some((known, _)) if is_web(known) => web(&format!("{known}:{rest}"), max),
        Some((_, default)) => authority(rest, default, Stands::InUrl),
        None if rest.starts_with("//") => authority(rest, 0, Stands::Elsewhere),
        None => Vec::new(),
    }
}

/// The scheme of the network that a scheme means, and its port. Of `git+https` it is the last that says how it connects.
fn network(scheme: &str) -> Option<(&'static str, u16)> {
    let of = |name: Option<&str>| NETWORK.iter().find(|(known, _)| Some(*known) == name).copied();
    of(scheme.rsplit('+').next()).or_else(|| of(scheme.split('+').next()))
}

/// Whether a scheme is one whose URLs lead to a host with any number of slashes (URL standard, special schemes).
fn is_web(scheme: &str) -> bool {
    matches!(scheme, "http" | "https" | "ws" | "wss" | "ftp")
}

/// The address that a text begins with, up to a path; without its zone, as in `fe80::1%eth0` (RFC 4007, section 11).
fn address(text: &str) -> Option<IpAddr> {
    let text = text.split(['/', '?', '#']).next()?;
    let bare = || text.split_once('%')?.0.parse::<Ipv6Addr>().ok();
    text.parse().ok().or_else(|| bare().map(IpAddr::V6))
}

/// Of a URL whose host every parser of the URL standard reads alike, and of what those of RFC 3986 read instead.
fn web(text: &str, max: usize) -> Vec<Result<Mention, EgressError>> {
    let other = other_reading(text);
    iter::once(text).chain(other.as_deref()).map(|text| one_of_web(text, max)).collect()
}

/// A parser of RFC 3986 takes `\` for no slash, and so what stands before an `@` behind it for a user name: then there are
/// two hosts, and this is the URL with the other one.
fn other_reading(text: &str) -> Option<String> {
    let (before, rest) = text.split_once("//")?;
    let (authority, after) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, host) = authority.rsplit_once('@')?;
    user.contains('\\').then(|| format!("{before}//{host}{after}"))
}

fn one_of_web(text: &str, max: usize) -> Result<Mention, EgressError> {
    let refuse = |kind| EgressError::new("the URL", kind);
    if text.len() > max {
        return Err(refuse(Kind::TooLong));
    }
    let url = Url::parse(text).map_err(|error| refuse(Kind::Malformed(error)))?;
    let host = url.host().ok_or(refuse(Kind::NoHost))?.to_owned();
    let default = url.port_or_known_default().unwrap_or_default();
    Ok(Mention { host, port: Some(default), default, stands: Stands::InUrl })
}

/// Of what follows the scheme of a URL that the standard does not know.
fn authority(rest: &str, default: u16, stands: Stands) -> Vec<Result<Mention, EgressError>> {
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let to_slash = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let whole = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let readings = [Some(to_slash), (whole != to_slash && whole.contains('@')).then_some(whole)];
    let mention = |entry: &str| {
        let (name, port) = split_port(entry);
        match Host::parse(name) {
            Ok(host) => Some(Ok(Mention { host, port, default, stands })),
            // What stands there need not be one.
            Err(_) if matches!(stands, Stands::Elsewhere) => None,
            Err(error) => Some(Err(EgressError::new("the URL", Kind::Malformed(error)))),
        }
    };
    let hosts = readings.into_iter().flatten().map(|text| text.rsplit('@').next().unwrap_or_default());
    // Several hosts may stand in one, as in `mongodb://a,b/`.
    hosts.filter(|hosts| !hosts.is_empty()).flat_map(|hosts| hosts.split(',')).filter_map(mention).collect()
}

/// Of a text without a scheme: a host to complete, or a path.
fn alone(text: &str, sort: Sort) -> Option<Mention> {
    if sort == Sort::Text {
        return None;
    }
    let authority = text.split(['/', '?', '#']).next().unwrap_or_default();
    let (name, port) = split_port(authority.rsplit('@').next().unwrap_or_default());
    // `[::1]` and `::1`.
    let name = match name.split_once('%') {
        // The zone of an address is none of it.
        Some((address, _)) if address.starts_with('[') => format!("{address}]"),
        _ => name.to_owned(),
    };
    let bracketed =
        if name.contains(':') && !name.starts_with('[') { format!("[{name}]") } else { name.clone() };
    let host = Host::parse(&bracketed).ok()?;
    let looks_like_one = match (&host, sort) {
        (_, Sort::Host) | (Host::Ipv6(_), _) => true,
        // A number by itself is an address to those who complete it, and to nearly everybody else a number.
        (Host::Ipv4(_), _) => name.len() < text.len() || !name.bytes().all(|byte| byte.is_ascii_digit()),
        (Host::Domain(name), _) => {
            let parts = name.contains('.') && !name.split('.').any(str::is_empty);
            parts || is_local(name) || port.is_some()
        }
    };
    looks_like_one.then_some(Mention { host, port, default: 0, stands: Stands::Alone })
}

/// A scheme, in small letters, and what follows its colon. `localhost:3000` has none.
fn scheme(text: &str) -> Option<(String, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let valid = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let is_port =
        digits > 0 && matches!(rest.as_bytes().get(digits), None | Some(b'/' | b'?' | b'#' | b'\\'));
    let scheme = scheme.to_ascii_lowercase();
    (valid && (is_web(&scheme) || !is_port)).then_some((scheme, rest))
}

/// A host and the port after it. Of `github.com:org/repo` the port is none.
fn split_port(text: &str) -> (&str, Option<u16>) {
    match text.rsplit_once(':') {
        Some((host, _)) if host.contains(':') && !host.ends_with(']') => (text, None),
        Some((host, port)) => (host, port.parse().ok()),
        None => (text, None),
    }
}

fn borrowed(host: &Host<String>) -> Host<&str> {
    match host {
        Host::Domain(name) => Host::Domain(name),
        Host::Ipv4(address) => Host::Ipv4(*address),
        Host::Ipv6(address) => Host::Ipv6(*address),
    }
}

fn is_local(name: &str) -> bool {
    PRIVATE_SUFFIXES.iter().any(|suffix| is_below(strip_dot(name), suffix))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, sort: Sort) -> Result<(), String> {
        EgressPolicy::default().check_named(text, sort, None).map_err(|error| error.to_string())
    }

    #[test]
    fn what_leads_to_a_private_place_is_refused_however_it_is_written() {
        for text in [
            "http://localhost:3000/",
            "HTTP://LOCALHOST",
            "http:127.0.0.1",
            "ht\ntp://127.0.0.1/",
            " http://2130706433/",
            "http:\\\\127.0.0.1\\x",
            "//127.0.0.1/x",
            "\\\\127.0.0.1\\share",
            "localhost",
            "localhost:3000",
            "LocalHost.:3000/x",
            "127.0.0.1",
            "127.0.0.1:8080/path",
            "0x7f.1",
            "2130706433:80/x",
            "2130706433/",
            "user@2130706433",
            "2130706433?x",
            "0:3000",
            "017700000001/x",
            "\u{ff12}130706433:80",
            "0\\x",
            "[::1]:3000",
            "::1",
            "fe80::1",
            "file://127.0.0.1/share",
            "169.254.169.254/latest/meta-data",
            "metadata.google.internal",
            "user@127.0.0.1",
            "URL:http://127.0.0.1/",
            "<url:http://127.0.0.1/>",
            "view-source:http://127.0.0.1/",
            "jdbc:postgresql://10.0.0.1:5432/db",
            "git+ssh://git@10.0.0.1/repo",
            "git+https://127.0.0.1/repo",
            "redis://127.0.0.1",
            "mongodb://db.example.com,10.0.0.1/x",
            "gopher://127.0.0.1:70/_x",
            "wss://192.168.0.1/",
            "ftp://[::ffff:127.0.0.1]/",
            "http://intranet/",
            "http://[",
            "\u{a0}http://169.254.169.254/",
            "\u{feff}http://127.0.0.1/",
            "\u{2003}\u{85}http://127.0.0.1/\u{3000}",
            "\u{200b}\u{180e}localhost:3000",
            "\"http://127.0.0.1/\"",
            "'127.0.0.1:8080'",
            "`//10.0.0.1/`",
            "\u{201c}redis://127.0.0.1\u{201d}",
            "URL: \u{a0}http://127.0.0.1/",
            // Two readings: that of the URL standard, and that of RFC 3986, to which `\` is no slash.
            "http://example.com\\@127.0.0.1/",
            "https://example.com:443\\x@[::1]:3000/y",
            "redis://example.com\\@10.0.0.1/0",
            "//example.com\\@127.0.0.1/",
            "example.com\\@127.0.0.1:3000",
            // An address with a zone.
            "::1%1",
            "fe80::1%eth0",
            "[fe80::1%25eth0]:3000",
            "fe80::1%eth0/x",
            // Several at once.
            "https://example.com\nhttp://127.0.0.1/",
            "https://example.com/ http://127.0.0.1/",
            "https://example.com/,http://127.0.0.1/",
            "see https://example.com/;\tredis://10.0.0.1",
            "https://example.com/|http:\\\\127.0.0.1",
            "https://example.com/\nhttp:/127.0.0.1/",
            "https://example.com/\nhttp:127.0.0.1",
            "https://example.com/\nhttp:intranet",
            "https://example.com/\nurl:http:/127.0.0.1/",
            "https://example.com/\n//127.0.0.1/",
            "https://example.com/\n\\\\127.0.0.1\\share",
            "https://example.com/, localhost:3000",
            "https://example.com/ user@10.0.0.1:22",
            "https://example.com/ redis:10.0.0.1:6379",
            "https://example.com/ 0x7f.1 127.1",
            "https://example.com/ printer.local",
            "https://example.com/ 2130706433:80/x",
            "https://example.com/\n0:3000",
            "https://example.com/ 169.254.43518/latest/",
            "https://example.com/ 10.1:6379/x",
            "https://example.com/ 0177.1/x",
            "https://example.com/ [::1]:3000",
            "https://example.com/ (http://127.0.0.1/)",
            "[\"http://127.0.0.1/\",\"https://example.com\"]",
            "[\"http://127.0.0.1/\"]",
            "['https://example.com', '[::1]:3000']",
            "[https://example.com,http://[::1]]",
        ] {
            assert!(check(text, Sort::Url).is_err(), "{text}");
            assert!(check(text, Sort::Host).is_err(), "{text}");
        }
        for text in [
            "http://localhost:3000/",
            "redis://127.0.0.1",
            " http://10.0.0.1/ ",
            "\u{a0}http://10.0.0.1/\u{feff}",
            "http:\\\\127.0.0.1\\",
            "http://example.com\\@127.0.0.1/",
            "https://example.com\nhttp://127.0.0.1/",
            "http:/127.0.0.1/",
            "HTTP:\\127.0.0.1",
            "http:127.0.0.1",
            "https://example.com\nhttp:/127.0.0.1/",
            "[\"http://127.0.0.1/\",\"https://example.com\"]",
            "[\"http://127.0.0.1/\"]",
            "(http://[::1]/)",
        ] {
            assert!(check(text, Sort::Text).is_err(), "{text}");
        }
        for text in ["2130706433", "127.1", "example.com, localhost", "example.com\n127.0.0.1"] {
            assert!(check(text, Sort::Host).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_wrapped_without_end_is_read_in_linear_time() {
        // Quadratic work on these would be some 10^12 steps.
        for text in ["]", "[", "[]", "([", "[1]"] {
            assert_eq!(check(&text.repeat(1 << 20), Sort::Text), Ok(()), "{text}");
        }
        let deep = format!("{}http://127.0.0.1/{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(check(&format!("{deep}, {deep}"), Sort::Url).is_err());
    }

    #[test]
    fn ordinary_use_is_allowed() {
        for text in [
            "https://example.com:8443/a?b=http://localhost/",
            "ssh://git@github.com:22/org/repo",
            "git@github.com:org/repo.git",
            "example.com/page",
            "/relative/page",
            "../up",
            "?query",
            "#part",
            "file:///home/someone/notes.md",
            "data:image/png;base64,AAAA",
            "about:blank",
            "mailto:someone@example.com",
            "urn:isbn:0451450523",
            "notes://2026/11",
            "postgres:///db",
            "chrome-extension://abc/page.html",
            "main",
            "12",
            "2130706433",
            "8.8.8.8:53",
            "134744072:53/x",
            "index.html",
            "",
            "a b c",
            "https://example.com/a b, c",
            "https://example.com/a,https://example.org/b",
            "http:\\\\example.com\\a@b",
            "C:\\work\\a@b.txt",
            "2001:4860:4860::8888",
            "[\"https://example.com\",\"https://example.org/a[1]\"]",
            "the internal, local page // of example.com: see http: and git:main, redis:7",
            "https://example.com/ since 0.1.2, 10.5 % at 12:30 [draft] (local)",
            "https://example.com/lookup?ips=8.8.8.8,10.0.0.1",
            "https://example.com/lookup?hosts=a.com|localhost;printer.local",
        ] {
            assert_eq!(check(text, Sort::Url), Ok(()), "{text}");
        }
        for text in [
            "see http://localhost:3000/",
            "localhost:3000",
            "127.0.0.1",
            "http is a protocol",
            "http:get",
            "ftp:list, ftp:read",
            "[localhost]",
            "a://b",
        ] {
            assert_eq!(check(text, Sort::Text), Ok(()), "{text}");
        }
        assert_eq!(check("example.com", Sort::Host), Ok(()));
        assert_eq!(check("production", Sort::Host), Ok(()));
        assert_eq!(check(&format!("data:image/png;base64,{}", "A".repeat(MAX_URL_BYTES)), Sort::Url), Ok(()));
    }

    #[test]
    fn lists_and_exceptions_count() {
        let policy = EgressPolicy::default()
            .allow(["*.example.com", "db"])
            .unwrap()
            .deny(["bad.example.com"])
            .unwrap()
            .allow_private(["localhost:5432"])
            .unwrap();
        let allows = |text, sort, port| policy.check_named(text, sort, port).is_ok();
        assert!(allows("https://a.example.com/", Sort::Url, None));
        assert!(allows("a.example.com", Sort::Host, None));
        assert!(!allows("https://example.org/", Sort::Url, None));
        assert!(!allows("example.org/x", Sort::Url, None));
        assert!(!allows("https://bad.example.com/", Sort::Text, None));
        assert!(allows("db", Sort::Host, None));
        assert!(!allows("other", Sort::Host, None));
        assert!(allows("localhost", Sort::Host, Some(5432)));
        assert!(allows("postgres://localhost/x", Sort::Url, None));
        assert!(!allows("localhost", Sort::Host, Some(22)));
        assert!(!allows("localhost", Sort::Host, None));
    }

    proptest! {
        /// What completes a text of an address, however that is written, is led to no private one; but by a number alone.
        #[test]
        fn what_is_completed_leads_to_no_private_address(
            user in "(|[a-z]{1,3}@)",
            number in prop_oneof![
                any::<u32>().prop_map(|bits| bits.to_string()),
                any::<u32>().prop_map(|bits| format!("0{bits:o}")),
                any::<u32>().prop_map(|bits| format!("0x{bits:x}")),
                "(0|10|127|169|192|0x7f|0177)(\\.[0-9]{1,3}){0,3}",
                "21[34][0-9]{7}",
            ],
            after in "(|:|:[0-9]{1,5})(|[/?#\\\\][a-z0-9]{0,3})",
        ) {
            let text = format!("{user}{number}{after}");
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            let Ok(url) = Url::parse(&format!("http://{text}")) else { return Ok(()) };
            let Some(Host::Ipv4(address)) = url.host() else { return Ok(()) };
            let is_private = EgressPolicy::default().check_address(None, address.into(), 0).is_err();
            prop_assert!(!is_private || check(&text, Sort::Host).is_err(), "{text}");
            prop_assert!(!is_private || is_number || check(&text, Sort::Url).is_err(), "{text}");
        }

        #[test]
        fn nothing_panics_and_no_private_address_passes(
            before in "(|[a-z+-]{1,12}:)(|/|//|\\\\)",
            bits in any::<u32>(),
            after in "(|:[0-9]{1,5})(|/\\PC{0,10})",
            text in "\\PC{0,40}",
        ) {
            for sort in [Sort::Url, Sort::Host, Sort::Text] {
                let _ = check(&text, sort);
                let _ = check(&format!("{before}{text}"), sort);
            }
            let address = std::net::Ipv4Addr::from(bits);
            if EgressPolicy::default().check_address(None, address.into(), 0).is_err() {
                for scheme in ["", "http://", "https:", "ssh://git@", "//"] {
                    let named = format!("{scheme}{address}{after}");
                    prop_assert!(check(&named, Sort::Url).is_err(), "{named}");
                }
            }
        }
    }
}
