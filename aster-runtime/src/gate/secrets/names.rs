//! Which values of a configuration are secrets. It hands out paths, addresses and modes by the same means, and a gate that
//! took those for secrets would deny every call that names a file.

use super::filters;
use super::{Redactor, Severity};

/// Words in the name of what is secret, in capitals.
const SECRET: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASS",
    "PWD",
    "AUTH",
    "CREDENTIAL",
    "COOKIE",
    "JWT",
    "BEARER",
    "PRIVATE",
    "PAT",
    "PIN",
    "SIGNATURE",
    "SALT",
    "SEED",
    "DSN",
    "WEBHOOK",
];

/// Last words of names of what is none, whatever the words before them.
const ORDINARY: &[&str] = &[
    "URL",
    "URI",
    "HOST",
    "PORT",
    "PATH",
    "FILE",
    "DIR",
    "DIRECTORY",
    "TYPE",
    "MODE",
    "METHOD",
    "NAME",
    "USER",
    "REGION",
    "ENABLED",
    "SOCK",
    "VERSION",
    "LIMIT",
    "TIMEOUT",
    "MAX",
];

/// The shortest value without a telling name that counts.
const MIN_UNNAMED: usize = 20;

/// Whether the value of a variable is secret: its name says so, or it looks like it.
pub(crate) fn is_secret(name: &str, value: &str) -> bool {
    if !Redactor::default().with_formats(Severity::Low).find(value).is_empty() {
        return true;
    }
    if is_path(value) || value.contains("://") {
        return false;
    }
    let words: Vec<String> =
        name.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_ascii_uppercase).collect();
    if words.last().is_some_and(|last| ORDINARY.contains(&last.as_str())) {
        return false;
    }
    // The words of `GITHUB_TOKEN`, and of `APIKEY` and `PGPASSWORD`.
    let says = |word: &String| {
        SECRET.iter().any(|secret| word == secret || secret.len() > 3 && word.contains(secret))
    };
    words.iter().any(says) || words.iter().any(|word| word.ends_with("KEY")) || is_random(value)
}

fn is_path(value: &str) -> bool {
    let drive = value.as_bytes().get(1..3).is_some_and(|rest| rest == b":\\" || rest == b":/");
    let plain =
        || value.chars().all(|c| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | ' ' | ':'));
    drive || value.starts_with("./") || value.starts_with("../") || value.starts_with('/') && plain()
}

fn is_random(value: &str) -> bool {
    let has = |class: fn(&char) -> bool| value.chars().any(|c| class(&c));
    value.len() >= MIN_UNNAMED
        && has(char::is_ascii_digit)
        && has(char::is_ascii_alphabetic)
        && value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '-' | '_' | '.'))
        && filters::entropy(value.as_bytes()) >= 3.5
        && !value.contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_tell() {
        for (name, value) in [
            ("GITHUB_TOKEN", "correct horse"),
            ("OPENAI_API_KEY", "something-short"),
            ("PGPASSWORD", "correcthorse"),
            ("SECRET", "pa$word-and-more"),
            ("APIKEY", "correcthorse"),
            ("DATABASE_URL", &["postgres://app:Kx91", "pqLmz@db.corp.net/app"].concat()),
            ("SOMETHING", "q7Zk3Rj8Qm1Tz7Lw5Xv9"),
        ] {
            assert!(is_secret(name, value), "{name}");
        }
        for (name, value) in [
            ("WHERE", "/home/someone/x"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/home/someone/key.json"),
            ("SSH_AUTH_SOCK", "/run/user/1000/ssh"),
            ("BASE_URL", "https://gitlab.corp.net"),
            ("AUTH_TYPE", "oauth_device"),
            ("LOG_LEVEL", "information"),
            ("MONKEYS", "everywhere"),
            ("TZ", "Europe/Amsterdam"),
            ("NOTION_VERSION", "2022-06-28"),
            ("DIR", "C:\\Users\\someone"),
        ] {
            assert!(!is_secret(name, value), "{name}");
        }
    }
}
