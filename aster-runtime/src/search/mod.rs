//! Search over the tools of a view: a ranking behind a trait, and what every ranking has in common.

mod bm25;

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

pub use bm25::Bm25;

use crate::catalogue::Tool;
use crate::scope::View;

/// The longest query, in bytes.
pub const MAX_QUERY_BYTES: usize = 256;

/// One tool that a query found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The tool's place in [`View::tools`].
    pub position: usize,
    /// How well it matches; comparable within one answer only.
    pub score: f64,
    /// The words of the query that were found, in the query's order.
    pub matched: Vec<String>,
}

/// Orders the tools of one view by how well they match a query.
pub trait Ranker: Debug + Send + Sync {
    /// The tools that `keep` passes and that match, best first; ties in the order of the ids. A query without a
    /// word in it finds nothing.
    fn rank(&self, query: &str, keep: &dyn Fn(&Tool) -> bool) -> Vec<Hit>;
}

/// The ranking that is used unless a host brings its own. It indexes the view when it is first asked: who calls what it
/// knows never searches.
#[must_use]
pub fn default_ranker(view: &View) -> Arc<dyn Ranker> {
    Arc::new(Late { view: view.clone(), index: OnceLock::new() })
}

/// An index that is made when it is first needed.
#[derive(Debug)]
struct Late {
    view: View,
    index: OnceLock<Bm25>,
}

impl Ranker for Late {
    fn rank(&self, query: &str, keep: &dyn Fn(&Tool) -> bool) -> Vec<Hit> {
        self.index.get_or_init(|| Bm25::new(&self.view)).rank(query, keep)
    }
}

/// Cuts text into lower-case words: runs of letters and digits, cut again where the case or the kind changes
/// (`getHTTPPage2` is `get http page 2`).
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for run in text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()) {
        let chars: Vec<char> = run.chars().collect();
        let mut start = 0;
        for at in 1..chars.len() {
            let (before, here) = (chars[at - 1], chars[at]);
            let after = chars.get(at + 1);
            let hump = before.is_lowercase() && here.is_uppercase();
            let end_of_capitals =
                before.is_uppercase() && here.is_uppercase() && after.is_some_and(|c| c.is_lowercase());
            if hump || end_of_capitals || before.is_numeric() != here.is_numeric() {
                words.push(lower(&chars[start..at]));
                start = at;
            }
        }
        words.push(lower(&chars[start..]));
    }
    words
}

fn lower(chars: &[char]) -> String {
    chars.iter().flat_map(|c| c.to_lowercase()).collect()
}

/// A name without case and separators, for comparing names that people write in many ways.
pub(crate) fn bare(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_identifiers() {
        assert_eq!(words("getHTTPPage2 create_issue"), ["get", "http", "page", "2", "create", "issue"]);
        assert_eq!(words("Größe über"), ["größe", "über"]);
        assert!(words("--- /").is_empty());
        assert_eq!(bare("create_Issue"), bare("createIssue"));
    }
}
