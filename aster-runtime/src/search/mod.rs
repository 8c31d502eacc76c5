//! Search over the tools of a view: a ranking behind a trait, and the one that is used unless a host brings its own.

mod fields;
mod index;
mod language;
mod lexical;
mod names;
mod query;
mod settings;
mod table;
mod tokens;
mod typo;

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

pub use lexical::Lexical;
pub use settings::Settings;
pub use table::WordTable;
pub(crate) use tokens::bare;

use crate::catalogue::Tool;
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
}

/// Orders the tools of one view by how well they match a query.
pub trait Ranker: Debug + Send + Sync {
    /// The tools that `keep` passes and that match, best first and at most `limit`; ties in the order of the ids. A query
    /// without a word in it finds nothing.
    fn rank(&self, query: &str, keep: &dyn Fn(&Tool) -> bool, limit: usize) -> Vec<Hit>;

    /// Why a query finds a tool: the words of the query that count for it, in the query's order.
    fn explain(&self, _query: &str, _position: usize) -> Vec<String> {
        Vec::new()
    }
}

/// The ranking that is used unless a host brings its own. It indexes the view when it is first asked: who calls what it
/// knows never searches.
#[must_use]
pub fn default_ranker(view: &View) -> Arc<dyn Ranker> {
    Arc::new(Late { view: view.clone(), index: OnceLock::new() })
}

/// The word table that is built in.
fn built_in_table() -> WordTable {
    WordTable::empty()
}

/// An index that is made when it is first needed.
#[derive(Debug)]
struct Late {
    view: View,
    index: OnceLock<Lexical>,
}

impl Late {
    fn index(&self) -> &Lexical {
        self.index.get_or_init(|| Lexical::new(&self.view))
    }
}

impl Ranker for Late {
    fn rank(&self, query: &str, keep: &dyn Fn(&Tool) -> bool, limit: usize) -> Vec<Hit> {
        self.index().rank(query, keep, limit)
    }

    fn explain(&self, query: &str, position: usize) -> Vec<String> {
        self.index().explain(query, position)
    }
}
