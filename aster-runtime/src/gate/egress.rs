//! Which network destinations a call may name.
//!
//! Pure: it parses and compares, and never resolves a name or opens a connection. Whoever connects asks twice: with
//! the URL before a name is resolved, and with every address that the name resolved to. Judgements are made on the
//! parsed [`Host`], never on the text of a URL, since `2130706433`, `0x7f.1` and `127.0.0.1` are one host.

pub mod arguments;
mod named;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use url::{Host, Url};

pub use self::arguments::{Governed, Sort};
pub(crate) use self::named::{hosts, readings};
use EgressErrorKind as Kind;

/// The longest URL that is looked at, in bytes. RFC 9110, section 4.1, asks everyone to support 8,000.
pub const MAX_URL_BYTES: usize = 8_000;

/// Ports that every policy allows.
const WEB_PORTS: [u16; 2] = [80, 443];

/// Names that never belong to the public internet (RFC 6761, 6762, 7686, 8375, and ICANN's `.internal`); each stands
/// for itself and for everything below it.
const PRIVATE_SUFFIXES: [&str; 5] = ["localhost", "local", "internal", "home.arpa", "onion"];

/// Which destinations may be named. The default is the public web: `http` and `https`, ports 80 and 443, public
/// names and addresses.
///
/// ```
/// use aster_runtime::gate::egress::EgressPolicy;
///
/// let policy = EgressPolicy::default().allow_private(["127.0.0.1:3000"])?;
/// assert!(policy.parse("https://example.com/page").is_ok());
/// assert!(policy.parse("http://127.0.0.1:3000/").is_ok());
/// assert!(policy.parse("http://0x7f.1/").is_err());
/// # Ok::<(), aster_runtime::gate::egress::PatternError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct EgressPolicy {
    allow_private: Vec<Pattern>,
    allow: Vec<Pattern>,
    deny: Vec<Pattern>,
    ports: Vec<u16>,
    narrower: Vec<Lists>,
}

/// What another policy says besides: nothing here makes an exception of it.
#[derive(Debug, Clone)]
struct Lists {
    allow: Vec<Pattern>,
    deny: Vec<Pattern>,
}

impl EgressPolicy {
    /// Adds exceptions, as `egress.allow_private` lists them: destinations that are allowed although they are private
    /// or on another port.
    ///
    /// An exception is an address (`127.0.0.1`), a range (`10.0.0.0/8`) or a name (`localhost`, `*.corp.internal`),
    /// each with a port (`localhost:3000`, `[::1]:3000`) or for every port. A name's exception covers loopback and
    /// private-use addresses that the name resolves to, and no others: a link-local or metadata address has to be
    /// written down as an address.
    ///
    /// # Errors
    ///
    /// Where an entry is none of these.
    pub fn allow_private<I>(mut self, entries: I) -> Result<Self, PatternError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        self.allow_private.extend(patterns("egress.allow_private", entries)?);
        Ok(self)
    }

    /// Limits calls to these hosts (and to the exceptions), as `egress.allow` lists them. Same forms as
    /// [`allow_private`](Self::allow_private); `*.example.com` does not match `example.com`.
    ///
    /// # Errors
    ///
    /// Where an entry is not a host.
    pub fn allow<I>(mut self, entries: I) -> Result<Self, PatternError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        self.allow.extend(patterns("egress.allow", entries)?);
        Ok(self)
    }

    /// Refuses these hosts and addresses, as `egress.deny` lists them. It wins over everything else.
    ///
    /// # Errors
    ///
    /// Where an entry is not a host.
    pub fn deny<I>(mut self, entries: I) -> Result<Self, PatternError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        self.deny.extend(patterns("egress.deny", entries)?);
        Ok(self)
    }

    /// Limits this policy by the `allow` and `deny` of another, an agent's for instance: a destination has to pass both.
    /// What the other would allow besides counts for nothing.
    ///
    /// ```
    /// use aster_runtime::gate::egress::EgressPolicy;
    ///
    /// let host = EgressPolicy::default().allow_private(["localhost:3000"])?;
    /// let agent = EgressPolicy::default().allow(["*.example.com"])?.allow_private(["localhost:4000"])?;
    /// let both = host.within(&agent);
    /// assert!(both.parse("https://docs.example.com/").is_ok());
    /// assert!(both.parse("http://localhost:3000/").is_err());
    /// assert!(both.parse("http://localhost:4000/").is_err());
    /// # Ok::<(), aster_runtime::gate::egress::PatternError>(())
    /// ```
    #[must_use]
    pub fn within(mut self, other: &Self) -> Self {
        self.narrower.push(Lists { allow: other.allow.clone(), deny: other.deny.clone() });
        self.narrower.extend(other.narrower.iter().cloned());
        self
    }

    /// Adds ports to 80 and 443.
    #[must_use]
    pub fn ports(mut self, ports: impl IntoIterator<Item = u16>) -> Self {
        self.ports.extend(ports);
        self
    }

    /// Reads and checks the URL of a call.
    ///
    /// # Errors
    ///
    /// Where it is not a URL, its spelling means different things to different parsers, or [`check`](Self::check)
    /// refuses it.
    pub fn parse(&self, text: &str) -> Result<Url, EgressError> {
        let text = text.trim_matches([' ', '\n']);
        if text.len() > MAX_URL_BYTES {
            return Err(EgressError::new("the URL", Kind::TooLong));
        }
        // The URL standard drops tabs and line feeds and reads `\` as `/`; other parsers do not. What passes here must
        // mean the same to an external server that parses it again.
        if text.contains(|c: char| c.is_control() || c == '\\') {
            return Err(EgressError::new("the URL", Kind::Ambiguous));
        }
        let url = Url::parse(text).map_err(|error| EgressError::new("the URL", Kind::Malformed(error)))?;
        self.check(&url)?;
        Ok(url)
    }

    /// Whether a URL's host is one of these names, or stands below one with `*.` before it.
    pub(crate) fn names(hosts: &[&str], url: &Url) -> bool {
        let name = url.domain().map(strip_dot).unwrap_or_default();
        hosts.iter().any(|host| match host.strip_prefix('*') {
            Some(suffix) => name.ends_with(suffix),
            None => name == *host,
        })
    }

    /// Checks a URL: scheme, user name and password, host, port, length. A host that is an address is judged as
    /// [`check_address`](Self::check_address) does; one that is a name still has to be resolved and its addresses
    /// checked.
    ///
    /// # Errors
    ///
    /// Where the policy refuses the destination; the error says what would allow it.
    pub fn check(&self, url: &Url) -> Result<(), EgressError> {
        if !matches!(url.scheme(), "http" | "https") {
            let scheme = url.scheme().chars().take(20).collect();
            return Err(EgressError::new("the URL", Kind::Scheme(scheme)));
        }
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(EgressError::new("the URL", Kind::NoHost));
        };
        let target = target(&host, port);
        let refuse = |kind| EgressError::new(target.clone(), kind);
        if url.as_str().len() > MAX_URL_BYTES {
            return Err(refuse(Kind::TooLong));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse(Kind::UserInfo));
        }

        let host = plain(&host);
        let excepted = self.check_lists(&host, port).map_err(refuse)?;
        if !excepted && !WEB_PORTS.contains(&port) && !self.ports.contains(&port) {
            return Err(refuse(Kind::Port));
        }
        self.check_host(&host, port)
    }

    /// What the lists say of a host; whether it is an exception.
    fn check_lists(&self, host: &Host<&str>, port: u16) -> Result<bool, Kind> {
        if listed(&self.deny, host, port) {
            return Err(Kind::Denied);
        }
        let excepted = listed(&self.allow_private, host, port);
        if !excepted && !self.allow.is_empty() && !listed(&self.allow, host, port) {
            return Err(Kind::NotAllowed);
        }
        for lists in &self.narrower {
            if listed(&lists.deny, host, port) {
                return Err(Kind::Denied);
            }
            if !lists.allow.is_empty() && !listed(&lists.allow, host, port) {
                return Err(Kind::NotAllowed);
            }
        }
        Ok(excepted)
    }

    /// The lists, and whether it is public.
    fn check_host(&self, host: &Host<&str>, port: u16) -> Result<(), EgressError> {
        let refuse = |kind| Err(EgressError::new(target(host, port), kind));
        let excepted = match self.check_lists(host, port) {
            Ok(excepted) => excepted,
            Err(kind) => return refuse(kind),
        };
        match *host {
            Host::Domain(name) => match private_name(name) {
                Some(reason) if !excepted => refuse(Kind::PrivateName(reason)),
                _ => Ok(()),
            },
            Host::Ipv4(address) => self.check_address(None, IpAddr::V4(address), port),
            Host::Ipv6(address) => self.check_address(None, IpAddr::V6(address), port),
        }
    }

    /// Checks an address before a connection to it: one that stands in a URL (`name` is `None`), or one that `name`
    /// resolved to. An address that carries another (NAT64, 6to4, Teredo …) passes only if each of them does.
    ///
    /// # Errors
    ///
    /// Where an address is not public and no exception covers it, or a deny pattern does.
    pub fn check_address(&self, name: Option<&str>, address: IpAddr, port: u16) -> Result<(), EgressError> {
        for layer in layers(address) {
            let host = host_of(layer);
            let refuse = |kind| {
                let target = match name {
                    Some(name) => format!("{name} ({address})"),
                    None => target(&host_of(address), port),
                };
                Err(EgressError::new(target, kind))
            };
            let denies = |deny: &[Pattern]| listed(deny, &host, port);
            if denies(&self.deny) || self.narrower.iter().any(|lists| denies(&lists.deny)) {
                return refuse(Kind::Denied);
            }
            let Some(range) = private_range(layer) else { continue };
            let named = name.is_some_and(|name| {
                range.reach == Reach::Network
                    && listed(&self.allow_private, &Host::Domain(strip_dot(name)), port)
            });
            if !named && !listed(&self.allow_private, &host, port) {
                return refuse(Kind::PrivateAddress { range: range.what, inner: layer });
            }
        }
        Ok(())
    }
}

/// Why a destination is refused, in words for a model or a person. It never shows a path, a query or a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressError {
    target: String,
    kind: Kind,
}

impl EgressError {
    fn new(target: impl Into<String>, kind: Kind) -> Self {
        Self { target: target.into(), kind }
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> &EgressErrorKind {
        &self.kind
    }
}

impl fmt::Display for EgressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is refused: {}", self.target, self.kind)
    }
}

impl std::error::Error for EgressError {}

/// What is wrong with a destination.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EgressErrorKind {
    /// It is longer than [`MAX_URL_BYTES`].
    #[error("it is longer than {MAX_URL_BYTES} bytes")]
    TooLong,
    /// It holds characters that parsers read differently.
    #[error("it contains a control character or a backslash; percent-encode it")]
    Ambiguous,
    /// It does not parse.
    #[error("it cannot be read ({0}); write it in full, for example `https://example.com/page`")]
    Malformed(url::ParseError),
    /// Neither `http` nor `https`.
    #[error("its scheme is `{0}`; only `http` and `https` are allowed")]
    Scheme(String),
    /// It names no host.
    #[error("it names no host")]
    NoHost,
    /// It carries a user name or a password.
    #[error("it carries a user name or a password before `@`; leave them out")]
    UserInfo,
    /// A port other than 80, 443 and those configured.
    #[error(
        "the port is not one of 80 and 443; an entry `host:port` in `egress.allow_private` would allow it"
    )]
    Port,
    /// A name that is never public.
    #[error("{0}; `egress.allow_private` would allow it")]
    PrivateName(&'static str),
    /// An address that is not public.
    #[error("{inner} is {range}, not a public address; `egress.allow_private` would allow it")]
    PrivateAddress {
        /// What kind of address it is.
        range: &'static str,
        /// The address that is meant, where it was wrapped in another.
        inner: IpAddr,
    },
    /// On the deny list.
    #[error("`egress.deny` lists it")]
    Denied,
    /// Not on the allow list.
    #[error("`egress.allow` lists the allowed hosts, and it is not among them")]
    NotAllowed,
}

/// An entry of the configuration that is not a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{key}`: `{entry}` is not a host ({reason}); write `name`, `*.name`, an address or a range such as `10.0.0.0/8`, and `:port` after a name or an address"
)]
pub struct PatternError {
    key: String,
    entry: String,
    reason: String,
}

/// One entry of a list of hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    host: HostPattern,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    /// This name.
    Name(String),
    /// Every name below this one, which is kept with its leading dot.
    Below(String),
    /// The addresses that share their first bits with this one.
    Range(IpAddr, u8),
}

impl Pattern {
    fn matches<S: AsRef<str>>(&self, host: &Host<S>, port: u16) -> bool {
        if self.port.is_some_and(|own| own != port) {
            return false;
        }
        match (&self.host, host) {
            (HostPattern::Name(own), Host::Domain(name)) => own == name.as_ref(),
            (HostPattern::Below(suffix), Host::Domain(name)) => name.as_ref().ends_with(suffix.as_str()),
            (HostPattern::Range(base, bits), Host::Ipv4(address)) => within((*address).into(), *base, *bits),
            (HostPattern::Range(base, bits), Host::Ipv6(address)) => within((*address).into(), *base, *bits),
            _ => false,
        }
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(entry: &str) -> Result<Self, String> {
        if let Some((base, bits)) = entry.split_once('/') {
            let base = IpAddr::from_str(base.trim_matches(['[', ']'])).map_err(|error| error.to_string())?;
            let bits = bits.parse().ok().filter(|&bits: &u8| bits <= width(base));
            let bits = bits.ok_or_else(|| format!("the prefix length goes from 0 to {}", width(base)))?;
            return Ok(Self { host: HostPattern::Range(base, bits), port: None });
        }
        if let Ok(address) = IpAddr::from_str(entry) {
            return Ok(Self { host: address_pattern(address), port: None });
        }
        let (host, port) = match entry.rsplit_once(':') {
            Some((host, port)) => {
                (host, Some(port.parse().map_err(|_| "the port is not a number below 65536".to_owned())?))
            }
            None => (entry, None),
        };
        let (below, host) = match host.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, host),
        };
        let host = match Host::parse(host).map_err(|error| error.to_string())? {
            Host::Domain(name) if name.contains('*') => {
                return Err("`*` stands only in front, as `*.name`".into());
            }
            Host::Domain(name) if below => HostPattern::Below(format!(".{}", strip_dot(&name))),
            Host::Domain(name) => HostPattern::Name(strip_dot(&name).to_owned()),
            _ if below => return Err("`*.` goes before a name".into()),
            Host::Ipv4(address) => address_pattern(address.into()),
            Host::Ipv6(address) => address_pattern(address.into()),
        };
        Ok(Self { host, port })
    }
}

fn address_pattern(address: IpAddr) -> HostPattern {
    let address = address.to_canonical();
    HostPattern::Range(address, width(address))
}

fn patterns<I>(key: &str, entries: I) -> Result<Vec<Pattern>, PatternError>
where
    I: IntoIterator<Item: AsRef<str>>,
{
    entries.into_iter().map(|entry| pattern(key, entry.as_ref())).collect()
}

fn pattern(key: &str, entry: &str) -> Result<Pattern, PatternError> {
    let entry = entry.trim();
    entry.parse().map_err(|reason| PatternError { key: key.to_owned(), entry: entry.to_owned(), reason })
}

/// Whether an entry of a list with this key is a host.
#[cfg(feature = "config")]
pub(crate) fn check_entry(key: &str, entry: &str) -> Result<(), PatternError> {
    pattern(key, entry).map(drop)
}

fn listed<S: AsRef<str>>(patterns: &[Pattern], host: &Host<S>, port: u16) -> bool {
    patterns.iter().any(|pattern| pattern.matches(host, port))
}

/// The host in the one form that patterns are compared with: without the dot of a fully qualified name, and an IPv4
/// address that is written as IPv6 as IPv4.
fn plain<'a>(host: &Host<&'a str>) -> Host<&'a str> {
    match *host {
        Host::Domain(name) => Host::Domain(strip_dot(name)),
        Host::Ipv4(address) => Host::Ipv4(address),
        Host::Ipv6(address) => match IpAddr::V6(address).to_canonical() {
            IpAddr::V4(address) => Host::Ipv4(address),
            IpAddr::V6(address) => Host::Ipv6(address),
        },
    }
}

fn host_of(address: IpAddr) -> Host<&'static str> {
    match address {
        IpAddr::V4(address) => Host::Ipv4(address),
        IpAddr::V6(address) => Host::Ipv6(address),
    }
}

fn target(host: &Host<&str>, port: u16) -> String {
    match host {
        Host::Domain(name) => format!("{}:{port}", crate::text::one_line(name, 100)),
        host => format!("{host}:{port}"),
    }
}

fn strip_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

/// Whether a name is this one or stands below it.
fn is_below(name: &str, suffix: &str) -> bool {
    name.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Why a name (in ASCII, lower case, without a final dot) cannot be one of the public internet.
fn private_name(name: &str) -> Option<&'static str> {
    if name.split('.').any(str::is_empty) {
        return Some("its host name has an empty part");
    }
    if PRIVATE_SUFFIXES.iter().any(|suffix| is_below(name, suffix)) {
        return Some("its host name is reserved for local use");
    }
    (!name.contains('.')).then_some("its host name has only one part, so it is a name of the local network")
}

/// How far packets to a range of addresses go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// This machine or its private network: what a name's exception covers.
    Network,
    /// Anything else that is not the public internet.
    Special,
}

#[derive(Debug, Clone, Copy)]
struct Range {
    base: IpAddr,
    bits: u8,
    reach: Reach,
    what: &'static str,
}

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8, reach: Reach, what: &'static str) -> Range {
    Range { base: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits, reach, what }
}

const fn v6(head: [u16; 4], last: u16, bits: u8, reach: Reach, what: &'static str) -> Range {
    let [a, b, c, d] = head;
    Range { base: IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, last)), bits, reach, what }
}

/// What is not public. Of several that hold an address the first decides, so that metadata services come first.
///
/// Source: IANA IPv4 and IPv6 Special-Purpose Address Registries; cloud providers' own documentation.
const PRIVATE_RANGES: &[Range] = {
    use Reach::{Network, Special};
    &[
        v4(169, 254, 169, 254, 32, Special, "a cloud metadata service"),
        v4(169, 254, 170, 2, 32, Special, "a cloud metadata service"),
        v4(100, 100, 100, 200, 32, Special, "a cloud metadata service"),
        v4(168, 63, 129, 16, 32, Special, "a cloud metadata service"),
        v4(0, 0, 0, 0, 8, Special, "an address of this host"),
        v4(10, 0, 0, 0, 8, Network, "a private address"),
        v4(100, 64, 0, 0, 10, Network, "a shared carrier address"),
        v4(127, 0, 0, 0, 8, Network, "a loopback address"),
        v4(169, 254, 0, 0, 16, Special, "a link-local address"),
        v4(172, 16, 0, 0, 12, Network, "a private address"),
        v4(192, 0, 0, 0, 24, Special, "an address for protocols"),
        v4(192, 0, 2, 0, 24, Special, "an address for documentation"),
        v4(192, 31, 196, 0, 24, Special, "an address for protocols"),
        v4(192, 52, 193, 0, 24, Special, "an address for protocols"),
        v4(192, 88, 99, 0, 24, Special, "a 6to4 relay"),
        v4(192, 168, 0, 0, 16, Network, "a private address"),
        v4(192, 175, 48, 0, 24, Special, "an address for protocols"),
        v4(198, 18, 0, 0, 15, Special, "an address for benchmarks"),
        v4(198, 51, 100, 0, 24, Special, "an address for documentation"),
        v4(203, 0, 113, 0, 24, Special, "an address for documentation"),
        v4(224, 0, 0, 0, 4, Special, "a multicast address"),
        v4(240, 0, 0, 0, 4, Special, "a reserved or broadcast address"),
        v6([0xfd00, 0x0ec2, 0, 0], 0x254, 128, Special, "a cloud metadata service"),
        v6([0, 0, 0, 0], 0, 128, Special, "an address of this host"),
        v6([0, 0, 0, 0], 1, 128, Network, "a loopback address"),
        v6([0, 0, 0, 0], 0, 96, Special, "an IPv4-compatible address"),
        v6([0x0064, 0xff9b, 0, 0], 0, 96, Special, "a NAT64 address"),
        v6([0x0064, 0xff9b, 1, 0], 0, 48, Special, "a NAT64 address"),
        v6([0x0100, 0, 0, 0], 0, 64, Special, "a discard address"),
        v6([0x0100, 0, 0, 1], 0, 64, Special, "a dummy address"),
        v6([0x2001, 0, 0, 0], 0, 32, Special, "a Teredo address"),
        v6([0x2001, 0, 0, 0], 0, 23, Special, "an address for protocols"),
        v6([0x2001, 0x0db8, 0, 0], 0, 32, Special, "an address for documentation"),
        v6([0x2002, 0, 0, 0], 0, 16, Special, "a 6to4 address"),
        v6([0x3fff, 0, 0, 0], 0, 20, Special, "an address for documentation"),
        v6([0x5f00, 0, 0, 0], 0, 16, Special, "a segment routing address"),
        v6([0xfc00, 0, 0, 0], 0, 7, Network, "a private address"),
        v6([0xfe80, 0, 0, 0], 0, 10, Special, "a link-local address"),
        v6([0xfec0, 0, 0, 0], 0, 10, Special, "a site-local address"),
        v6([0xff00, 0, 0, 0], 0, 8, Special, "a multicast address"),
    ]
};

/// The only part of IPv6 from which public addresses are assigned (RFC 4291, section 2.4, and IANA).
const GLOBAL_UNICAST: (IpAddr, u8) = (IpAddr::V6(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0)), 3);

const UNASSIGNED: Range = v6([0, 0, 0, 0], 0, 0, Reach::Special, "an unassigned address");

/// The range that makes an address not public, or `None` for a public one.
fn private_range(address: IpAddr) -> Option<&'static Range> {
    let listed = PRIVATE_RANGES.iter().find(|range| within(address, range.base, range.bits));
    let (base, bits) = GLOBAL_UNICAST;
    listed.or((address.is_ipv6() && !within(address, base, bits)).then_some(&UNASSIGNED))
}

/// The addresses to judge for one address: itself (as IPv4 where it is only written as IPv6) and those that it carries
/// and that a translator or a tunnel would send to.
fn layers(address: IpAddr) -> impl Iterator<Item = IpAddr> {
    let address = address.to_canonical();
    let carried = match address {
        IpAddr::V4(_) => [None, None],
        IpAddr::V6(address) => carried(address),
    };
    carried.into_iter().flatten().map(IpAddr::V4).chain([address])
}

fn carried(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let join = |high: u16, low: u16| Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match (a, b, c, d, e, f) {
        // `::` and `::1` are IPv6's own.
        (0, 0, 0, 0, 0, 0) if g == 0 && h <= 1 => [None, None],
        (0, 0, 0, 0, 0, 0) | (0x64, 0xff9b, 0, 0, 0, 0) | (0x64, 0xff9b, 1, ..) => [join(g, h), None],
        (0x2002, ..) => [join(b, c), None],
        // Teredo: the server in clear, the client inverted (RFC 4380, section 4).
        (0x2001, 0, ..) => [join(c, d), join(!g, !h)],
        _ => [None, None],
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Whether `address` shares its first `bits` bits with `base`; never across families.
fn within(address: IpAddr, base: IpAddr, bits: u8) -> bool {
    let bits = u32::from(bits);
    match (address, base) {
        (IpAddr::V4(address), IpAddr::V4(base)) => {
            (address.to_bits() ^ base.to_bits()).checked_shr(32 - bits).unwrap_or(0) == 0
        }
        (IpAddr::V6(address), IpAddr::V6(base)) => {
            (address.to_bits() ^ base.to_bits()).checked_shr(128 - bits).unwrap_or(0) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refusal(url: &str) -> String {
        match EgressPolicy::default().parse(url) {
            Ok(url) => format!("allowed as {url}"),
            Err(error) => error.to_string(),
        }
    }

    /// Every spelling of a private destination that was collected, by what it really is.
    #[test]
    fn every_spelling_of_a_private_destination_is_refused() {
        let table: &[(&str, &[&str])] = &[
            (
                "127.0.0.1 is a loopback address",
                &[
                    "http://127.0.0.1/",
                    "http://2130706433/",
                    "http://0x7f000001/",
                    "http://0x7f.1/",
                    "http://0177.0.0.1/",
                    "http://127.1/",
                    "http://127.0.0.1./",
                    "http://１２７.0.0.1/",
                    "http://127。0。0。1/",
                    "http:127.0.0.1",
                    "https:/127.0.0.1:443",
                    "http://[::ffff:127.0.0.1]/",
                    "http://[::ffff:7f00:1]/",
                    "http://[::127.0.0.1]/",
                    "http://[64:ff9b::127.0.0.1]/",
                    "http://[64:ff9b:1::7f00:1]/",
                    "http://[2002:7f00:1::]/",
                    "http://[2001:0:7f00:1::1]/",
                    "http://[2001:0:808:808::80ff:fffe]/",
                ],
            ),
            ("0.0.0.0 is an address of this host", &["http://0/", "http://0.0.0.0/", "http://[::ffff:0:0]/"]),
            (
                "is a cloud metadata service",
                &[
                    "http://169.254.169.254/latest/meta-data/",
                    "http://0xa9fea9fe/",
                    "http://2852039166/",
                    "http://[::ffff:169.254.169.254]/",
                    "http://169.254.170.2/v2/credentials",
                    "http://100.100.100.200/",
                    "http://168.63.129.16/",
                    "http://[fd00:ec2::254]/",
                ],
            ),
            (
                "is a private address",
                &["http://10.0.0.1/", "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.1.1/"],
            ),
            ("is a private address", &["http://[fc00::1]/", "http://[fdff::1]/"]),
            ("is a shared carrier address", &["http://100.64.0.1/", "http://100.127.255.255/"]),
            ("is a link-local address", &["http://169.254.0.1/", "http://[fe80::1]/", "http://[febf::1]/"]),
            (
                "is an address for protocols",
                &[
                    "http://192.0.0.1/",
                    "http://192.31.196.1/",
                    "http://192.52.193.1/",
                    "http://192.175.48.1/",
                    "http://[2001:10::1]/",
                    "http://[2001:20::1]/",
                    "http://[2001:1ff::1]/",
                ],
            ),
            (
                "is an address for documentation",
                &["http://192.0.2.1/", "http://198.51.100.1/", "http://203.0.113.1/"],
            ),
            ("is an address for documentation", &["http://[2001:db8::1]/", "http://[3fff:fff::1]/"]),
            ("is an address for benchmarks", &["http://198.18.0.1/", "http://198.19.255.255/"]),
            ("is a 6to4 relay", &["http://192.88.99.1/"]),
            (
                "is a multicast address",
                &["http://224.0.0.1/", "http://239.255.255.255/", "http://[ff02::1]/"],
            ),
            ("is a reserved or broadcast address", &["http://240.0.0.1/", "http://255.255.255.255/"]),
            ("is an address of this host", &["http://[::]/"]),
            ("::1 is a loopback address", &["http://[::1]/"]),
            ("is a discard address", &["http://[100::1]/"]),
            ("is a dummy address", &["http://[100:0:0:1::1]/"]),
            ("is a NAT64 address", &["http://[64:ff9b::8.8.8.8]/", "http://[64:ff9b:1:2::808:808]/"]),
            ("is a 6to4 address", &["http://[2002:808:808::1]/"]),
            ("is a segment routing address", &["http://[5f00::1]/"]),
            ("is a site-local address", &["http://[fec0::1]/"]),
            ("is an unassigned address", &["http://[4000::1]/", "http://[200::1]/", "http://[e000::1]/"]),
            (
                "reserved for local use",
                &[
                    "http://localhost/",
                    "http://LOCALHOST/",
                    "http://localhost./",
                    "http://lo\u{ad}calhost/",
                    "http://ｌｏｃａｌｈｏｓｔ/",
                    "http://a.localhost/",
                    "http://printer.local/",
                    "http://metadata.google.internal/",
                    "http://metadata.google.internal./",
                    "http://router.home.arpa/",
                    "http://home.arpa/",
                    "http://expyuzz4wqqyqhjn.onion/",
                ],
            ),
            ("has only one part", &["http://intranet/", "http://wiki./"]),
            ("has an empty part", &["http://localhost../", "http://a..b.com/"]),
        ];
        for (what, urls) in table {
            for url in *urls {
                let message = refusal(url);
                assert!(message.contains(what), "{url}: {message}");
                assert!(message.contains("egress.allow_private"), "{url}: {message}");
            }
        }
    }

    #[test]
    fn what_is_no_plain_web_url_is_refused_with_the_reason() {
        for (url, what) in [
            ("file:///etc/passwd", "its scheme is `file`"),
            ("gopher://example.com/", "its scheme is `gopher`"),
            ("ftp://example.com/", "its scheme is `ftp`"),
            ("data:text/plain,x", "its scheme is `data`"),
            ("javascript:alert(1)", "its scheme is `javascript`"),
            ("example.com", "write it in full"),
            ("", "write it in full"),
            ("http://", "write it in full"),
            ("http://[::1", "write it in full"),
            ("http://user@example.com/", "a user name or a password"),
            ("http://:secret@example.com/", "a user name or a password"),
            ("http://127.0.0.1:80@example.com/", "a user name or a password"),
            ("http://example.com\\@127.0.0.1/", "backslash"),
            ("http://exa\tmple.com/", "control character"),
            ("http://example.com:22/", "egress.allow_private"),
            ("http://example.com:8080/", "egress.allow_private"),
        ] {
            let message = refusal(url);
            assert!(message.contains(what), "{url}: {message}");
            assert!(!message.contains("secret") && !message.contains("passwd"), "{message}");
        }
        assert!(refusal(&format!("http://example.com/{}", "a".repeat(MAX_URL_BYTES))).contains("8000 bytes"));
        assert!(
            refusal(&format!("http://example.com/{}", "é".repeat(MAX_URL_BYTES / 4))).contains("8000 bytes")
        );
    }

    #[test]
    fn the_public_web_is_allowed() {
        for url in [
            "https://example.com/a?b=c#d",
            "http://example.com.:80/",
            "https://bücher.example/",
            "https://1.1.1.1/",
            "https://[2606:4700:4700::1111]/",
            "http://172.32.0.1/",
            "http://100.128.0.1/",
            "http://192.0.1.1/",
            "http://198.20.0.1/",
            "http://[2001:200::1]/",
            "http://[2001:db9::1]/",
            "http://notlocalhost.com/",
            "http://mylocal.example/",
            " https://example.com/\n",
        ] {
            assert!(EgressPolicy::default().parse(url).is_ok(), "{url}: {}", refusal(url));
        }
    }

    #[test]
    fn an_exception_covers_what_it_says_and_no_more() {
        let allows = |entries: &[&str], url: &str| {
            EgressPolicy::default().allow_private(entries).unwrap().parse(url).is_ok()
        };
        assert!(allows(&["127.0.0.1:3000"], "http://127.0.0.1:3000/"));
        assert!(allows(&["127.0.0.1:3000"], "http://[::ffff:127.0.0.1]:3000/"));
        assert!(!allows(&["127.0.0.1:3000"], "http://127.0.0.1:3001/"));
        assert!(!allows(&["127.0.0.1:3000"], "http://127.0.0.1/"));
        assert!(!allows(&["127.0.0.1:3000"], "http://127.0.0.2:3000/"));
        assert!(!allows(&["127.0.0.1:3000"], "http://localhost:3000/"));
        assert!(allows(&["[::1]:3000"], "http://[::1]:3000/"));
        assert!(allows(&["::1"], "http://[::1]:3000/"));
        assert!(allows(&["10.0.0.0/8"], "http://10.9.8.7:9000/"));
        assert!(!allows(&["10.0.0.0/8"], "http://11.9.8.7:9000/"));
        assert!(allows(&["0.0.0.0/0"], "http://127.0.0.1/"));
        assert!(!allows(&["0.0.0.0/0"], "http://[::1]/"));
        assert!(allows(&["fd00::/8"], "http://[fd12::1]/"));
        assert!(allows(&["localhost:3000"], "http://localhost.:3000/"));
        assert!(!allows(&["localhost:3000"], "http://localhost/"));
        assert!(!allows(&["localhost:3000"], "http://127.0.0.1:3000/"));
        assert!(allows(&["*.corp.internal"], "http://wiki.corp.internal/"));
        assert!(!allows(&["*.corp.internal"], "http://corp.internal/"));
        assert!(!allows(&["*.corp.internal"], "http://evilcorp.internal/"));
        // A translator's prefix may be allowed without what lies behind it.
        assert!(allows(&["64:ff9b::/96"], "http://[64:ff9b::8.8.8.8]/"));
        assert!(!allows(&["64:ff9b::/96"], "http://[64:ff9b::10.0.0.1]/"));
        assert!(allows(&["64:ff9b::/96", "10.0.0.1"], "http://[64:ff9b::10.0.0.1]/"));
    }

    #[test]
    fn a_resolved_address_is_judged_with_its_name_and_port() {
        let policy = EgressPolicy::default().allow_private(["db.example.com:80", "10.0.0.5:80"]).unwrap();
        let check =
            |name, address: &str, port| policy.check_address(name, address.parse().unwrap(), port).is_ok();
        assert!(check(Some("db.example.com"), "192.168.0.9", 80));
        assert!(check(Some("db.example.com."), "::1", 80));
        assert!(!check(Some("db.example.com"), "192.168.0.9", 443));
        assert!(!check(Some("db.example.com"), "169.254.169.254", 80));
        assert!(!check(Some("db.example.com"), "fe80::1", 80));
        assert!(!check(Some("rebound.example.com"), "192.168.0.9", 80));
        assert!(check(Some("rebound.example.com"), "10.0.0.5", 80));
        assert!(!check(Some("rebound.example.com"), "10.0.0.5", 443));
        let message =
            policy.check_address(Some("rebound.example.com"), "10.0.0.6".parse().unwrap(), 80).unwrap_err();
        assert_eq!(
            message.to_string(),
            "rebound.example.com (10.0.0.6) is refused: 10.0.0.6 is a private address, not a public address; \
             `egress.allow_private` would allow it"
        );
    }

    #[test]
    fn deny_wins_and_allow_limits() {
        let policy = EgressPolicy::default()
            .allow(["example.com", "*.example.org", "bücher.example"])
            .unwrap()
            .allow_private(["127.0.0.1:3000"])
            .unwrap()
            .deny(["bad.example.org", "93.184.0.0/16"])
            .unwrap()
            .ports([8443]);
        let verdict = |url: &str| policy.parse(url).map_err(|error| error.kind().clone());
        for url in [
            "https://example.com/",
            "https://example.com:8443/",
            "https://a.example.org/",
            "https://xn--bcher-kva.example/",
            "http://127.0.0.1:3000/",
        ] {
            assert!(verdict(url).is_ok(), "{url}");
        }
        assert_eq!(verdict("https://www.example.com/"), Err(Kind::NotAllowed));
        assert_eq!(verdict("https://example.org/"), Err(Kind::NotAllowed));
        assert_eq!(verdict("https://bad.example.org/"), Err(Kind::Denied));
        let address = "93.184.215.14".parse().unwrap();
        assert_eq!(
            policy.check_address(Some("example.com"), address, 443).map_err(|e| e.kind().clone()),
            Err(Kind::Denied)
        );
        assert_eq!(
            EgressPolicy::default().deny(["127.0.0.1"]).unwrap().parse("http://127.1/").map_err(|e| e.kind),
            Err(Kind::Denied)
        );
    }

    #[test]
    fn an_entry_that_is_no_host_names_its_key() {
        for entry in
            ["", "a b", "10.0.0.0/33", "::/129", "x/8", "host:99999", "a.*.com", "*.1.2.3.4", "http://a.com"]
        {
            let error = EgressPolicy::default().allow_private([entry]).unwrap_err().to_string();
            assert!(error.starts_with("`egress.allow_private`: `"), "{error}");
        }
    }

    /// The ranges once more, written as arithmetic on octets and segments, so that the table is not its own witness.
    fn must_be_refused(address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(v4) => {
                let [a, b, c, _] = v4.octets();
                v4.is_private()
                    || v4.is_loopback()
                    || v4.is_link_local()
                    || v4.is_documentation()
                    || a == 0
                    || a >= 224
                    || (a == 100 && (64..128).contains(&b))
                    || (a == 198 && (b == 18 || b == 19))
                    || (a, b, c) == (192, 0, 0)
                    || (a, b, c) == (192, 88, 99)
            }
            IpAddr::V6(v6) => {
                let [a, b, ..] = v6.segments();
                !(0x2000..0x4000).contains(&a)
                    || a == 0x2002
                    || a == 0x3fff && b < 0x1000
                    || a == 0x2001 && (b < 0x200 || b == 0xdb8)
            }
        }
    }

    fn spelling() -> impl Strategy<Value = String> {
        let v4 = prop_oneof![
            any::<u32>(),
            proptest::sample::select(vec![
                0x7f00_0001,
                0x0a00_0001,
                0xa9fe_a9fe,
                0xc0a8_0001,
                0xac10_0001,
                0
            ]),
        ];
        let v4 = (v4, 0..8_u8).prop_map(|(bits, form)| {
            let [a, b, c, d] = bits.to_be_bytes();
            match form {
                0 => Ipv4Addr::from(bits).to_string(),
                1 => bits.to_string(),
                2 => format!("{bits:#x}"),
                3 => format!("0{bits:o}"),
                4 => format!("{a:#x}.{}", bits & 0xff_ffff),
                5 => format!("0{a:o}.{b}.{c:#X}.{d}."),
                6 => format!("[::ffff:{}]", Ipv4Addr::from(bits)),
                _ => format!("[64:ff9b::{}]", Ipv4Addr::from(bits)),
            }
        });
        prop_oneof![v4, any::<u128>().prop_map(|bits| format!("[{}]", Ipv6Addr::from(bits))), "\\PC{0,40}"]
    }

    proptest! {
        #[test]
        fn no_text_whose_host_is_a_private_address_passes(
            scheme in "(https?|HTTP):[/]{0,3}",
            host in spelling(),
            tail in "(:80|:443)?(/|\\?|#)?\\PC{0,10}",
        ) {
            let text = format!("{scheme}{host}{tail}");
            if let Ok(url) = EgressPolicy::default().parse(&text) {
                match url.host() {
                    Some(Host::Ipv4(address)) => prop_assert!(!must_be_refused(address.into()), "{text}"),
                    Some(Host::Ipv6(address)) => prop_assert!(!must_be_refused(address.into()), "{text}"),
                    Some(Host::Domain(name)) => prop_assert!(strip_dot(name).contains('.'), "{text}"),
                    None => prop_assert!(false, "{text} has no host"),
                }
            }
        }

        #[test]
        fn an_address_passes_only_as_a_public_one(bits in any::<u128>(), v4 in any::<u32>()) {
            for address in [IpAddr::V6(bits.into()), IpAddr::V4(v4.into())] {
                if EgressPolicy::default().check_address(None, address, 443).is_ok() {
                    prop_assert!(!must_be_refused(address), "{address}");
                }
            }
        }

        #[test]
        fn patterns_never_panic(entry in "\\PC{0,30}") {
            let _ = EgressPolicy::default().allow_private([entry]);
        }
    }
}
