//! What names a destination: the one place that says which properties do, by the format of their schema and by their name.
//! The egress, the catalogue, its lint and the schema of a tool ask here. Pure.
//!
//! There are two answers. [`takes_url`] is what counts as a URL without asking, of a tool that we compile: a format, or a
//! name that ends in `url` or `uri`. [`by_name`] is wider, for a stranger's names that may mean one.

use serde_json::Value;

/// The format of a URL (JSON Schema 2020-12, validation, section 7.3.5).
pub(crate) const URL_FORMAT: &str = "uri";

/// Formats of URLs; the last is not in the vocabulary, and some servers write it.
const URL_FORMATS: [&str; 5] = [URL_FORMAT, "uri-reference", "iri", "iri-reference", "url"];

/// Formats of hosts.
const HOST_FORMATS: [&str; 4] = ["hostname", "idn-hostname", "ipv4", "ipv6"];

/// Last words of names that can only mean a URL.
const URL_NAMES: [&str; 4] = ["url", "urls", "uri", "uris"];

/// Words of names of URLs, wherever in a name they stand.
const URL_WORDS: &[&str] = &[
    "url",
    "urls",
    "uri",
    "uris",
    "href",
    "hrefs",
    "webhook",
    "webhooks",
    "endpoint",
    "endpoints",
    "website",
    "webpage",
    "homepage",
    "hyperlink",
    "baseurl",
    "callbackurl",
];

/// Last words of names of URLs, which stand for something else within a name.
const URL_LAST: &[&str] = &["link", "links", "permalink", "callback"];

/// Last words of names of hosts.
const HOST_LAST: &[&str] = &[
    "host",
    "hosts",
    "hostname",
    "hostnames",
    "domain",
    "domains",
    "ip",
    "ips",
    "ipaddress",
    "fqdn",
    "nameserver",
];

/// How a text is read as a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// A URL, or a path relative to one that only the tool knows.
    Url,
    /// A host, with or without a port; or a URL.
    Host,
    /// Anything, unless the whole of it is a URL.
    Text,
}

/// What the format of a schema says of its values.
pub(crate) fn by_format(schema: &Value) -> Option<Sort> {
    let format = schema.get("format")?.as_str()?;
    if URL_FORMATS.contains(&format) {
        return Some(Sort::Url);
    }
    HOST_FORMATS.contains(&format).then_some(Sort::Host)
}

/// What a name alone says.
pub(crate) fn by_name(name: &str) -> Option<Sort> {
    let words = words(name);
    let last = words.last()?.as_str();
    if words.iter().any(|word| URL_WORDS.contains(&word.as_str())) || URL_LAST.contains(&last) {
        return Some(Sort::Url);
    }
    HOST_LAST.contains(&last).then_some(Sort::Host)
}

/// Whether a property takes a URL, by the format of its schema, or by its name where it takes a text; or a list of them.
pub(crate) fn takes_url(name: &str, schema: &Value) -> bool {
    let is_named = words(name).last().is_some_and(|last| URL_NAMES.contains(&last.as_str()));
    any(schema, &|schema| by_format(schema) == Some(Sort::Url))
        || (is_named && any(schema, &|schema| schema.get("type").is_some_and(|kind| kind == "string")))
}

/// Whether it holds of a schema, of one of its alternatives, or of the items of its lists.
fn any(schema: &Value, holds: &dyn Fn(&Value) -> bool) -> bool {
    let alternatives = ["anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
    let mut parts = alternatives.chain(schema.get("items"));
    holds(schema) || parts.any(|part| holds(part) || part.get("items").is_some_and(holds))
}

/// The words of `base_url`, `baseUrl`, `base-url` and `baseURL`, in small letters.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut begins = true;
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() {
            begins = true;
            continue;
        }
        if begins || was_lower && c.is_uppercase() {
            words.push(String::new());
        }
        begins = false;
        was_lower = !c.is_uppercase();
        words.last_mut().into_iter().for_each(|word| word.extend(c.to_lowercase()));
    }
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_say_it() {
        for (name, sort) in [
            ("url", Some(Sort::Url)),
            ("imageUrl", Some(Sort::Url)),
            ("baseURL", Some(Sort::Url)),
            ("start_urls", Some(Sort::Url)),
            ("webhook-endpoint", Some(Sort::Url)),
            ("url_to_fetch", Some(Sort::Url)),
            ("link", Some(Sort::Url)),
            ("host", Some(Sort::Host)),
            ("dbHostname", Some(Sort::Host)),
            ("include_domains", Some(Sort::Host)),
            ("text", None),
            ("query", None),
            ("hostile", None),
            ("link_type", None),
            ("curl", None),
            ("hours", None),
            ("", None),
        ] {
            assert_eq!(by_name(name), sort, "{name}");
        }
    }

    #[test]
    fn what_counts_without_asking_is_a_format_or_a_name_that_ends_in_it() {
        let text = json!({"type": "string"});
        let texts = json!({"type": "array", "items": {"type": "string"}});
        let format = json!({"anyOf": [{"type": "null"}, {"type": "string", "format": "uri"}]});
        for (name, schema, takes) in [
            ("url", &text, true),
            ("page_uris", &texts, true),
            ("pageUrl", &text, true),
            ("where", &format, true),
            ("url", &json!({"type": "integer"}), false),
            ("url_type", &text, false),
            ("link", &text, false),
            ("host", &json!({"type": "string", "format": "hostname"}), false),
        ] {
            assert_eq!(takes_url(name, schema), takes, "{name}: {schema}");
        }
    }
}
