//! Search over the tools of a view: a ranking behind a trait, and the one that is used unless a host brings its own.

mod digests;
mod fields;
mod fused;
mod index;
mod indexes;
mod language;
mod ledger;
mod lexical;
mod names;
mod postings;
mod query;
mod settings;
mod table;
mod tokens;
mod typo;
mod vocabulary;

use std::fmt::Debug;
use std::sync::Arc;

pub use fused::Fused;
use indexes::Late;
pub use indexes::{Current, Indexes, MakeRanker};
pub use lexical::Lexical;
pub use settings::Settings;
pub use table::{InvalidWordTable, WordTable};
pub(crate) use tokens::bare;

use crate::scope::View;

/// The longest query, in bytes.
pub const MAX_QUERY_BYTES: usize = 256;

/// One tool that a query found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The tool's place in [`View::tools`].
    pub position: usize,
    /// How well it matches; comparable within one answer only.
    pub score: f64,
    /// Whether the query is its name: it is then before all others.
    pub exact: bool,
}

/// Orders the tools of one view by how well they match a query.
pub trait Ranker: Debug + Send + Sync {
    /// The tools that match, of one server where it is named, best first and at most `limit`; ties in the order of the ids.
    /// A query without a word in it finds nothing.
    fn rank(&self, query: &str, server: Option<&str>, limit: usize) -> Vec<Hit>;

    /// Why a query finds the tool in this place: the words of the query that count for it, in the query's order.
    fn explain(&self, _query: &str, _position: usize) -> Vec<String> {
        Vec::new()
    }

    /// The words of the tools, of one server where it is named, that are nearest to those of a query, for an answer that
    /// found nothing.
    fn nearest(&self, _query: &str, _server: Option<&str>, _limit: usize) -> Vec<String> {
        Vec::new()
    }
}

/// The ranking that is used unless a host brings its own. It indexes the view when it is first asked: who calls what it
/// knows never searches.
#[must_use]
pub fn default_ranker(view: &View) -> Arc<dyn Ranker> {
    Arc::new(Late::new(view))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::catalogue::{Catalogue, ExternalSettings, Health, Listing, external_part};
    use crate::scope::Scope;

    /// A view of servers with tools that have nothing but names.
    pub(super) fn view(servers: &[(&str, &[&str])]) -> View {
        let tools = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect();
        servers_view(servers.iter().map(|(name, names)| (*name, tools(names))).collect())
    }

    pub(super) fn servers_view(servers: Vec<(&str, Vec<Value>)>) -> View {
        let parts: Vec<_> = servers.into_iter().map(|(name, tools)| part(name, tools)).collect();
        Scope::default().view(&Catalogue::merge(&parts))
    }

    pub(super) fn part(name: &str, tools: Vec<Value>) -> crate::catalogue::Part {
        let listing = Listing { tools, ..Listing::without_tools(Health::Ready) };
        external_part(name, &ExternalSettings::default(), &listing)
    }

    fn hub() -> View {
        servers_view(vec![
            (
                "disk",
                vec![
                    json!({"name": "read_file", "description": "Reads a file of the disk."}),
                    json!({"name": "list_folder", "description": "Lists a folder."}),
                ],
            ),
            (
                "hub",
                vec![
                    json!({"name": "create_issue", "description": "Opens a ticket in a repository."}),
                    json!({"name": "list_issues", "description": "Lists tickets. Use create_issue to open one, create_issue is better."}),
                    json!({"name": "get_weather", "description": "Weather of a city.", "inputSchema": {"type": "object",
                    "properties": {"city": {"type": "string", "description": "Where", "enum": ["Reykjavik"]}}}}),
                    json!({"name": "hackernews_top", "description": "Front page."}),
                    json!({"name": "suche", "description": "Sucht die Dateien in einem Ordner und zeigt sie."}),
                    json!({"name": "sousuo", "description": "使用必应搜索网页"}),
                ],
            ),
        ])
    }

    fn ranked(view: &View, query: &str) -> Vec<String> {
        let hits = Lexical::new(view).rank(query, None, 10);
        hits.iter().map(|hit| view.tools()[hit.position].id().tool().to_owned()).collect()
    }

    #[test]
    fn exact_names_come_first_however_written() {
        let view = hub();
        for query in [
            "create_issue",
            "createIssue",
            "hub/create_issue",
            "HUB create issue",
            "hub__create_issue",
            "please call create_issue now",
        ] {
            assert_eq!(ranked(&view, query)[0], "create_issue", "{query}");
        }
        let mut both = ranked(&view, "get_weather, read_file");
        both.truncate(2);
        both.sort();
        assert_eq!(both, ["get_weather", "read_file"]);
    }

    #[test]
    fn rare_words_count_more_and_nothing_is_found_by_accident() {
        let view = hub();
        assert_eq!(ranked(&view, "weather in a city")[0], "get_weather");
        assert_eq!(ranked(&view, "open a ticket")[0], "create_issue");
        for nothing in ["the", "  -- ", "xyzzy", "", "object string properties"] {
            assert_eq!(ranked(&view, nothing), Vec::<String>::new(), "{nothing}");
        }
    }

    #[test]
    fn words_are_found_in_other_forms() {
        let view = hub();
        assert_eq!(ranked(&view, "hacker news")[0], "hackernews_top");
        assert_eq!(ranked(&view, "reykjavik")[0], "get_weather");
        assert_eq!(ranked(&view, "wether")[0], "get_weather", "a slip");
        assert_eq!(ranked(&view, "bellwether wether")[0], "get_weather", "the end of another word is a word");
        assert_eq!(ranked(&view, "Dateien suchen")[0], "suche");
        assert_eq!(ranked(&view, "搜索")[0], "sousuo");
        #[cfg(feature = "words")]
        assert_eq!(ranked(&view, "directory contents")[0], "list_folder", "a synonym");
    }

    #[test]
    fn a_tools_title_is_searched_like_its_name() {
        let other = json!({"name": "other", "description": "Nothing."});
        for titled in [
            json!({"name": "gt_q3", "title": "Quarterly Invoices"}),
            json!({"name": "gt_q3", "annotations": {"title": "Quarterly Invoices"}}),
        ] {
            let view = servers_view(vec![("desk", vec![titled, other.clone()])]);
            assert_eq!(ranked(&view, "invoices"), ["gt_q3"]);
        }
        let score = |tool: Value| {
            let view = servers_view(vec![("desk", vec![tool, other.clone()])]);
            Lexical::new(&view).rank("create an issue", None, 1)[0].score
        };
        let plain = score(json!({"name": "create_issue"}));
        assert_eq!(score(json!({"name": "create_issue", "title": "Create Issue"})), plain, "the name again");
    }

    #[test]
    fn a_search_of_one_server_sees_no_other() {
        let view = hub();
        let hits = Lexical::new(&view).rank("list", Some("disk"), 10);
        assert!(!hits.is_empty());
        assert!(hits.iter().all(|hit| view.tools()[hit.position].id().server() == "disk"));
        assert!(Lexical::new(&view).rank("create_issue", Some("disk"), 10).iter().all(|hit| !hit.exact));
    }

    #[test]
    fn why_a_tool_was_found_and_what_was_near() {
        let view = hub();
        let index = Lexical::new(&view);
        let weather = view.tools().iter().position(|tool| tool.id().tool() == "get_weather").unwrap();
        assert_eq!(index.explain("weather in wonderland", weather), ["weather"]);
        assert_eq!(index.nearest("wether", None, 3), ["weather"]);
        assert_eq!(index.nearest("wether", Some("hub"), 3), ["weather"]);
        assert!(index.nearest("wether", Some("disk"), 3).is_empty(), "another server's word");
    }

    #[test]
    fn what_was_near_is_told_in_whole_words() {
        let english = json!({"name": "x", "description": "Lists Repositories."});
        let turkish = json!({"name": "y", "description": "Kümeleri gösterir, ne olarak çok."});
        let index = Lexical::new(&servers_view(vec![("hub", vec![english, turkish])]));
        assert_eq!(index.nearest("repositroy", None, 3), ["repositories"]);
        assert_eq!(index.nearest("kumw", None, 3), ["kümeleri"], "by the rules of the text's language");
    }

    /// What another server says more often or is nearer does not take the place of what the named one says.
    #[test]
    fn a_slip_is_mended_by_the_words_of_the_server_that_is_searched() {
        let view = view(&[
            ("a", &["list_folder", "zorbak_x", "zorbal_x", "zorbam_x"]),
            ("b", &["list_fodder", "zorbap_y"]),
        ]);
        let index = Lexical::new(&view);
        for (query, server, word) in [
            ("folderr", Some("b"), "fodder"),
            ("folderr", Some("a"), "folder"),
            ("folderr", None, "folder"),
            ("zorb", Some("b"), "zorbap"),
        ] {
            assert_eq!(index.nearest(query, server, 1), [word], "{query} of {server:?}");
            let hits = index.rank(query, server, 9);
            assert!(!hits.is_empty(), "{query} of {server:?}");
            let first = hits[0].position;
            let name = view.tools()[first].id().tool();
            if query == "folderr" {
                assert!(name.contains(word), "{query} of {server:?}: {name}");
            }
            assert_eq!(index.explain(query, first).len(), 1, "{query} of {server:?}");
        }
    }

    /// Whoever lists a tool may make its texts as long as a definition may be.
    #[test]
    fn every_text_of_a_tool_is_read_from_its_start() {
        let long = format!("{}zebra", "word ".repeat(1_000));
        let short = "word zebra";
        let by = |text: &str| {
            [
                json!({"name": "a", "title": text}),
                json!({"name": "a", "description": text}),
                json!({"name": "a", "inputSchema": {"type": "object", "properties": {text: {}}}}),
                json!({"name": "a", "inputSchema": {"type": "object", "properties": {"b": {"description": text}}}}),
                json!({"name": "a", "inputSchema": {"type": "object", "properties": {"b": {"enum": [text]}}}}),
                json!({"name": "a", "inputSchema": {"type": "object", "properties": {"b": {"const": text}}}}),
            ]
        };
        for (read, cut) in by(short).into_iter().zip(by(&long)) {
            let found = |tool: &Value| ranked(&servers_view(vec![("s", vec![tool.clone()])]), "zebra").len();
            assert_eq!((found(&read), found(&cut)), (1, 0), "{read}");
        }
    }

    #[test]
    fn an_updated_index_is_the_one_that_reading_all_makes() {
        let disk = part(
            "disk",
            vec![json!({"name": "read_file", "description": "Reads a file."}), json!({"name": "zap"})],
        );
        let hub = part("hub", vec![json!({"name": "create_issue", "description": "Opens a ticket."})]);
        let changed = part(
            "disk",
            vec![
                json!({"name": "append", "description": "Adds to a file."}),
                json!({"name": "read_file", "description": "Reads it."}),
            ],
        );
        let view = |parts: &[&crate::catalogue::Part]| {
            Scope::default().view(&Catalogue::merge(parts.iter().copied()))
        };
        let (before, after) = (view(&[&disk, &hub]), view(&[&changed, &hub]));
        let (updated, whole) = (Lexical::new(&before).updated(&after), Lexical::new(&after));
        assert_eq!(updated.index, whole.index);
        for query in ["file", "add to a file", "create ticket", "zap", "hub", "reads"] {
            assert_eq!(updated.rank(query, None, 10), whole.rank(query, None, 10), "{query}");
        }
        assert!(updated.rank("zap", None, 10).is_empty());
    }

    #[test]
    fn what_is_hidden_has_no_say() {
        let (disk, hub) = (
            part("disk", vec![json!({"name": "read_file"})]),
            part("hub", vec![json!({"name": "read_issue"})]),
        );
        let all = Catalogue::merge(&[disk, hub.clone()]);
        let scope = Scope::new(&[], &crate::Profile::new("a").allow(["hub/*"])).unwrap();
        let (seen, alone) = (scope.view(&all), Scope::default().view(&Catalogue::merge(&[hub])));
        let whole = Lexical::new(&Scope::default().view(&all));
        for query in ["read", "file", "fiel", "issue"] {
            assert_eq!(
                whole.updated(&seen).rank(query, None, 9),
                Lexical::new(&alone).rank(query, None, 9),
                "{query}"
            );
        }
    }

    /// Nor does its language: where all tools are English, "listen" is no German word for a list.
    #[test]
    fn the_language_of_what_is_hidden_has_no_say() {
        let german = "Zeigt alle Dateien, die in dem Ordner sind, und nicht die von der Wurzel.";
        let (disk, hub) = (
            part("disk", vec![json!({"name": "ordner", "description": german})]),
            part("hub", vec![json!({"name": "list_issues", "description": "Shows the list of issues."})]),
        );
        let whole = Scope::default().view(&Catalogue::merge(&[disk, hub.clone()]));
        let alone = Scope::default().view(&Catalogue::merge(&[hub]));
        let (updated, fresh) = (Lexical::new(&whole).updated(&alone), Lexical::new(&alone));
        assert_ne!(Lexical::new(&whole).rank("listen", None, 9), fresh.rank("listen", None, 9));
        assert_eq!(updated.rank("listen", None, 9), fresh.rank("listen", None, 9));
    }

    #[test]
    fn fusion_adds_what_the_other_finds_and_keeps_names_first() {
        #[derive(Debug)]
        struct Last;
        impl Ranker for Last {
            fn rank(&self, _: &str, _: Option<&str>, _: usize) -> Vec<Hit> {
                vec![Hit { position: 1, score: 1.0, exact: false }]
            }
        }
        let view = hub();
        let fused = Fused::new(Arc::new(Lexical::new(&view)), Arc::new(Last), 5.0);
        let first = |query: &str| fused.rank(query, None, 5)[0].position;
        assert_eq!(first("weather"), 1);
        assert_eq!(view.tools()[first("get_weather")].id().tool(), "get_weather");
    }

    /// A name that more servers have than hits are fused.
    #[test]
    fn names_come_first_in_a_fused_ranking_however_many() {
        #[derive(Debug)]
        struct Places(std::ops::Range<usize>, usize);
        impl Ranker for Places {
            fn rank(&self, _: &str, _: Option<&str>, limit: usize) -> Vec<Hit> {
                let hit = |position| Hit { position, score: 1.0, exact: position < self.1 };
                self.0.clone().map(hit).take(limit).collect()
            }
        }
        let fused = Fused::new(Arc::new(Places(0..200, 150)), Arc::new(Places(300..400, 0)), 1.0);
        let all = fused.rank("", None, usize::MAX);
        assert!(all[..150].iter().all(|hit| hit.exact) && all[150..].iter().all(|hit| !hit.exact));
        for limit in [1, 100, 120, 150, 160, 250] {
            assert_eq!(fused.rank("", None, limit), all[..limit], "{limit}");
        }
    }

    /// Whatever is asked for counts no more than can be stored.
    #[test]
    fn a_word_that_is_said_often_counts_for_more_at_any_saturation() {
        let tool = |name: &str, times: usize| json!({"name": name, "description": "ticket ".repeat(times)});
        let view = servers_view(vec![("desk", vec![tool("a", 20), tool("b", 40)])]);
        let settings = Settings {
            saturation: 100.0,
            length: 0.0,
            meaning: 0.0,
            fields: [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
            ..Settings::default()
        };
        let hits = Lexical::with(&view, settings, WordTable::built_in()).rank("ticket", None, 2);
        assert_eq!(hits[0].position, 1);
        assert!(hits[0].score > hits[1].score);
    }

    #[test]
    fn parts_of_a_word_are_looked_for_as_they_stand_where_there_are_no_stems() {
        let view =
            servers_view(vec![("desk", vec![json!({"name": "running_shoes"}), json!({"name": "zap"})])]);
        let settings = Settings { stems: false, ..Settings::default() };
        let hits = Lexical::with(&view, settings, WordTable::built_in()).rank("shoesrunning", None, 2);
        assert_eq!(hits.len(), 1);
    }

    /// However many are asked for, they are the first of the same order: pages of a fused ranking neither repeat nor leave out.
    #[test]
    fn pages_of_a_fused_ranking_are_parts_of_one_order() {
        #[derive(Debug)]
        struct Steps(usize);
        impl Ranker for Steps {
            fn rank(&self, _: &str, _: Option<&str>, limit: usize) -> Vec<Hit> {
                // Every place below 401 once, since that is a prime.
                let positions = (1..=400).map(|rank| rank * self.0 % 401);
                positions.map(|position| Hit { position, score: 1.0, exact: false }).take(limit).collect()
            }
        }
        let fused = Fused::new(Arc::new(Steps(7)), Arc::new(Steps(13)), 0.8);
        let all = fused.rank("", None, usize::MAX);
        assert_eq!(all.iter().map(|hit| hit.position).collect::<std::collections::HashSet<_>>().len(), 400);
        assert!(all.is_sorted_by(|a, b| a.score >= b.score));
        for limit in [1, 10, 99, 101, 150, 250, 399] {
            assert_eq!(fused.rank("", None, limit), all[..limit], "{limit}");
        }
    }

    proptest::proptest! {
        /// A name puts its tool first however it is written, with and without its server.
        #[test]
        fn a_name_is_first_however_it_is_written(
            at in 0_usize..8, separator in "[ _/-]|__|", capitals in proptest::collection::vec(proptest::bool::ANY, 40), server in proptest::bool::ANY,
        ) {
            let view = hub();
            let tool = &view.tools()[at];
            let words = [tool.id().server()].into_iter().filter(|_| server).chain(tool.id().tool().split('_'));
            let name = words.collect::<Vec<_>>().join(&separator);
            let query: String = name
                .chars()
                .zip(capitals)
                .map(|(c, capital)| if capital { c.to_ascii_uppercase() } else { c })
                .collect();
            let hits = Lexical::new(&view).rank(&query, None, 3);
            proptest::prop_assert!(hits[0].exact && hits[0].position == at, "{}", query);
        }

        /// Leaving out what cannot be among the best changes nothing: the best few are the start of all.
        #[test]
        fn the_best_are_the_best_of_all(query in "[a-z]{1,6}( [a-z]{1,6}){0,4}|(list|read|file|issue|city|open|ticket| ){1,8}", limit in 1_usize..6) {
            let view = hub();
            let index = Lexical::new(&view);
            let all = index.rank(&query, None, usize::MAX);
            let few = index.rank(&query, None, limit);
            proptest::prop_assert_eq!(&all[..limit.min(all.len())], &few[..]);
        }
    }
}
