//! What speaks against a match: placeholders, too little entropy, a shape that the pattern alone cannot tell.

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::Value;
use std::sync::LazyLock;

use super::formats::Check;

/// How far before a match a word may stand that it needs, in bytes.
const NEAR: usize = 80;

/// So many of one byte in a row are filled in by a person.
const RUN: usize = 8;

/// What people write where a secret would stand. None is short enough to turn up in a random text by chance.
const PLACEHOLDERS: &[&str] = &[
    "example",
    "placeholder",
    "changeme",
    "change-me",
    "change_me",
    "redacted",
    "replace-",
    "replace_",
    "replaceme",
    "dummy",
    "your-",
    "your_",
    "yourkey",
    "yourtoken",
    "yoursecret",
    "not-a-real",
    "notareal",
    "xxxxxx",
    "******",
    "......",
    "abcdefghij",
    "0123456789",
    "1234567890",
    "deadbeefdead",
];

static PLACEHOLDER: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(PLACEHOLDERS).ok());

/// Whether a text stands for a secret and is none.
pub(super) fn is_placeholder(secret: &[u8]) -> bool {
    PLACEHOLDER.as_ref().is_some_and(|words| words.is_match(secret)) || has_run(secret) || is_template(secret)
}

fn has_run(secret: &[u8]) -> bool {
    secret.windows(RUN).any(|run| run.iter().all(|byte| *byte == run[0]))
}

/// Where a program fills something in: `${NAME}`, `{{ name }}`, `<name>`, `%NAME%`, `%s`, `@NAME@`.
fn is_template(secret: &[u8]) -> bool {
    let between = |open: &[u8], close: &[u8]| secret.starts_with(open) && secret.ends_with(close);
    secret.starts_with(b"$")
        || secret.starts_with(b"{")
        || secret.starts_with(b"<")
        || between(b"%", b"%")
        || secret == b"%s"
        || between(b"@", b"@")
        || [&b"true"[..], b"false", b"null", b"none", b"undefined"].contains(&&*secret.to_ascii_lowercase())
}

/// Whether a match in a text stands up to a check; `secret` is the part of it that counts.
pub(super) fn passes(check: Check, text: &[u8], start: usize, matched: &[u8], secret: &[u8]) -> bool {
    match check {
        Check::Entropy(least) => entropy(secret) >= least,
        Check::MixedCase => has(secret, u8::is_ascii_lowercase) && has(secret, u8::is_ascii_uppercase),
        Check::Varied => {
            has(secret, u8::is_ascii_digit)
                && has(secret, u8::is_ascii_lowercase)
                && has(secret, u8::is_ascii_uppercase)
        }
        Check::Near(words) => {
            let before = text[start.saturating_sub(NEAR)..start].to_ascii_lowercase();
            words.iter().any(|word| before.windows(word.len()).any(|window| window == word.as_bytes()))
        }
        Check::Jwt => is_jwt(secret),
        Check::NumberInBase64 => first_part(secret).is_some_and(|part| part.iter().all(u8::is_ascii_digit)),
        Check::UserAndPassword => {
            let decoded = decode(secret).unwrap_or_default();
            match decoded.iter().position(|byte| *byte == b':') {
                Some(colon) => is_password(&decoded[..colon], &decoded[colon + 1..]),
                None => false,
            }
        }
        Check::UrlPassword => is_url_password(matched, secret),
        Check::Not(public) => secret != public.as_bytes(),
        Check::Long => true,
    }
}

/// Whether a match across several keys can hardly be their names in a row, as of `jina_model` and those after it: there is a
/// digit, and besides a capital letter or no end of letters and digits.
pub(super) fn is_no_name(matched: &[u8]) -> bool {
    /// Longer than the words between two `_`.
    const RUN: usize = 24;

    let runs = matched.split(|byte| !byte.is_ascii_alphanumeric()).map(<[u8]>::len);
    has(matched, u8::is_ascii_digit) && (runs.max() >= Some(RUN) || has(matched, u8::is_ascii_uppercase))
}

fn has(text: &[u8], class: impl Fn(&u8) -> bool) -> bool {
    text.iter().any(class)
}

/// Shannon's, in bits a byte.
pub(super) fn entropy(text: &[u8]) -> f32 {
    let mut counts = [0_u32; 256];
    text.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let total = text.len() as f32;
    counts.iter().filter(|count| **count > 0).fold(0.0, |sum, count| {
        let share = *count as f32 / total;
        sum - share * share.log2()
    })
}

fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.trim_ascii_end();
    let end = text.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
    let text = &text[..end];
    STANDARD_NO_PAD.decode(text).or_else(|_| URL_SAFE_NO_PAD.decode(text)).ok()
}

/// What stands before the first dot, decoded.
fn first_part(text: &[u8]) -> Option<Vec<u8>> {
    decode(text.split(|byte| *byte == b'.').next()?)
}

fn is_jwt(text: &[u8]) -> bool {
    let header = first_part(text).and_then(|json| serde_json::from_slice::<Value>(&json).ok());
    header.is_some_and(|header| header.get("alg").is_some_and(Value::is_string))
}

/// Words that stand where a password would.
const NO_PASSWORDS: &[&str] =
    &["pass", "pw", "pwd", "secret", "token", "admin", "root", "test", "guest", "key", "hidden", "foobar"];

/// Whether somebody would mind its being known.
fn is_password(user: &[u8], password: &[u8]) -> bool {
    let word = password.to_ascii_lowercase();
    let named = ["passwor", "passwd", "passphrase", "p4ssw0rd", "passw0rd"];
    !password.is_empty()
        && user != password
        && !is_placeholder(password)
        && !NO_PASSWORDS.iter().any(|known| word == known.as_bytes())
        && !named.iter().any(|named| word.windows(named.len()).any(|window| window == named.as_bytes()))
}

/// `matched` is everything from the scheme to the host.
fn is_url_password(matched: &[u8], password: &[u8]) -> bool {
    let user =
        matched.windows(3).position(|window| window == b"://").map_or(matched, |at| &matched[at + 3..]);
    let user = user.split(|byte| *byte == b':').next().unwrap_or_default();
    let host = matched.iter().rposition(|byte| *byte == b'@').map_or(&b""[..], |at| &matched[at + 1..]);
    is_password(user, password) && !is_documentation(host)
}

/// Hosts that exist for examples (RFC 2606), and what people call one that they do not name.
fn is_documentation(host: &[u8]) -> bool {
    let host = host.to_ascii_lowercase();
    let name = host.strip_suffix(b".").unwrap_or(&host);
    let below = |suffix: &str| {
        name.strip_suffix(suffix.as_bytes()).is_some_and(|rest| rest.is_empty() || rest.ends_with(b"."))
    };
    ["example.com", "example.org", "example.net", "example", "test", "invalid", "host", "hostname"]
        .iter()
        .any(|suffix| below(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_no_secrets() {
        for text in [
            "AKIAIOSFODNN7EXAMPLE",
            "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "your-api-key-goes-here",
            "${NPM_TOKEN}",
            "{{ token }}",
            "<token>",
            "%TOKEN%",
            "T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
            "sk-abcdefghijklmnopqrstuvwxyz",
            "undefined",
        ] {
            assert!(is_placeholder(text.as_bytes()), "{text}");
        }
        assert!(!is_placeholder(b"Zk3Rj8Qm1Tz7Lw5Xv9Bn"));
    }

    #[test]
    fn entropy_is_that_of_shannon() {
        assert_eq!(entropy(b"aaaa"), 0.0);
        assert_eq!(entropy(b"abcd"), 2.0);
        assert!((entropy(b"aab") - 0.918_295_8).abs() < 1e-5);
    }

    #[test]
    fn a_password_that_everybody_writes_is_none() {
        let is_one = |url: &str| {
            let (start, end) = (url.rfind(':').unwrap() + 1, url.rfind('@').unwrap());
            is_url_password(url.as_bytes(), &url.as_bytes()[start..end])
        };
        for url in
            ["https://user:password@localhost", "postgres://postgres:postgres@db", "://me:${PASSWORD}@db"]
        {
            assert!(!is_one(url), "{url}");
        }
        let at = |host: &str| format!("https://me:{}@{host}", "Kx91-pqLmz");
        for host in ["example.com", "www.example.org", "host"] {
            assert!(!is_one(&at(host)), "{host}");
        }
        for host in ["myexample.com", "localhost", "db"] {
            assert!(is_one(&at(host)), "{host}");
        }
    }
}
