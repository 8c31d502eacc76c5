//! Which names say that an argument names a destination. It repeats `aster_runtime`'s `destination`, where a test below holds
//! the two together.

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

/// Last words of names of URLs and hosts, which stand for something else within a name.
const LAST: &[&str] = &[
    "link",
    "links",
    "permalink",
    "callback",
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

/// Whether a text of this name is taken for a URL.
pub(super) fn is_url(name: &str) -> bool {
    words(name).last().is_some_and(|last| URL_NAMES.contains(&last.as_str()))
}

/// Whether the gate takes what has this name for a URL or a host.
pub(super) fn is_any(name: &str) -> bool {
    let words = words(name);
    words.iter().any(|word| URL_WORDS.contains(&word.as_str()))
        || words.last().is_some_and(|last| LAST.contains(&last.as_str()))
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
    use std::collections::BTreeSet;

    use aster_runtime::__private::{BROKEN_TOOL, InputSchema, ToolSpec};
    use aster_runtime::gate::egress::Governed;
    use aster_runtime::spec::Entry;
    use aster_runtime::{NativeCatalogue, lint};

    use super::*;

    /// Names that are made of every word of a list, in every case and place.
    fn names() -> BTreeSet<String> {
        // The runtime's own words too, so that one which is missing here is missed.
        let source = include_str!("../../../aster-runtime/src/destination.rs");
        let source = source.split("mod tests").next().unwrap_or_default();
        let of_source = source.split('"').filter(|word| word.chars().all(|c| c.is_ascii_lowercase()));
        let words = of_source.chain(URL_WORDS.iter().chain(LAST).copied()).chain(["curl", "hostile", "text"]);
        let name = |word: &str| {
            let (first, rest) = word.split_at(word.len().min(1));
            let capital = format!("{}{rest}", first.to_uppercase());
            let upper = word.to_uppercase();
            [
                word.to_owned(),
                format!("page_{word}"),
                format!("page-{word}"),
                format!("page.{upper}"),
                format!("page{capital}"),
                format!("page{upper}"),
                format!("page{word}"),
                format!("{word}_of_page"),
                format!("{word}OfPage"),
                format!("v2{capital}"),
                format!("_{word}_"),
            ]
        };
        words.flat_map(name).collect()
    }

    #[test]
    fn what_names_a_destination_is_as_the_runtime_has_it() {
        let governed = Governed::default();
        for name in names() {
            assert_eq!(is_any(&name), governed.sort(&name).is_some(), "{name}");
        }
    }

    #[test]
    fn what_is_called_like_a_url_is_as_the_runtime_has_it() {
        // The lint names the parameters that take a URL and are not said to be one.
        let input_schema = || {
            let mut schema = InputSchema::new();
            for name in names() {
                schema.argument::<String>(name.leak(), "");
            }
            schema.finish()
        };
        let tool: &'static ToolSpec = Box::leak(Box::new(ToolSpec { input_schema, ..BROKEN_TOOL }));
        let entries: &'static [Entry] = Box::leak(Box::new([Entry::Tool(tool)]));
        let list = NativeCatalogue { entries, ..NativeCatalogue::EMPTY };
        let found: BTreeSet<String> =
            lint::urls(&list).into_iter().filter_map(|finding| finding.parameter).collect();
        let mine: BTreeSet<String> = names().into_iter().filter(|name| is_url(name)).collect();
        assert_eq!(mine, found);
    }
}
