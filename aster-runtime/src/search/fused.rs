//! Two rankings as one.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::{Hit, Ranker};

/// How much the first ranks count for more than the later ones: the constant of reciprocal rank fusion.
///
/// Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods" (2009).
const RANK: f64 = 60.0;

/// How many hits of each are fused: always as many, so that every page is a part of the same order.
const WINDOW: usize = 100;

/// A ranking that puts together two: ours and one of the host's own, for example by embeddings.
///
/// Ranks are fused and not scores, which mean nothing to each other: a tool gets `weight / (60 + rank)` from each. What the
/// first finds by its exact name stays first. The first 100 hits of each are fused; after them come the first's further ones
/// and then the second's, with a score of 0; exact ones before the others here too.
///
/// ```
/// use std::sync::Arc;
///
/// use aster_runtime::search::{Fused, Hit, Ranker};
///
/// #[derive(Debug)]
/// struct ByEmbedding;
///
/// impl Ranker for ByEmbedding {
///     fn rank(&self, _query: &str, _server: Option<&str>, limit: usize) -> Vec<Hit> {
///         // A host would compare the query's vector with those of the tools here.
///         let hits = [(2, 0.9), (0, 0.4)].map(|(position, score)| Hit { position, score, exact: false });
///         hits.into_iter().take(limit).collect()
///     }
/// }
///
/// # fn fuse(lexical: Arc<dyn Ranker>) {
/// let ranker = Fused::new(lexical, Arc::new(ByEmbedding), 0.5);
/// # let _ = ranker;
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Fused {
    first: Arc<dyn Ranker>,
    second: Arc<dyn Ranker>,
    weight: f64,
}

impl Fused {
    /// Fuses two rankings of the same view; the second counts `weight` times as much as the first.
    #[must_use]
    pub fn new(first: Arc<dyn Ranker>, second: Arc<dyn Ranker>, weight: f64) -> Self {
        Self { first, second, weight }
    }
}

impl Ranker for Fused {
    fn rank(&self, query: &str, server: Option<&str>, limit: usize) -> Vec<Hit> {
        let rankers = [(&self.first, 1.0), (&self.second, self.weight)];
        let found = rankers.map(|(ranker, _)| ranker.rank(query, server, limit.max(WINDOW)));
        let mut fused: BTreeMap<usize, Hit> = BTreeMap::new();
        for (found, (_, weight)) in found.iter().zip(rankers) {
            for (rank, hit) in found.iter().take(WINDOW).enumerate() {
                let fused = fused.entry(hit.position).or_insert(Hit { score: 0.0, exact: false, ..*hit });
                fused.score += weight / (RANK + 1.0 + rank as f64);
                fused.exact |= hit.exact;
            }
        }
        let mut hits: Vec<Hit> = fused.into_values().collect();
        hits.sort_by(|a, b| {
            b.exact.cmp(&a.exact).then(b.score.total_cmp(&a.score)).then(a.position.cmp(&b.position))
        });
        let mut seen: HashSet<usize> = hits.iter().map(|hit| hit.position).collect();
        let further = found.iter().flat_map(|found| found.iter().skip(WINDOW));
        hits.extend(further.filter(|hit| seen.insert(hit.position)).map(|hit| Hit { score: 0.0, ..*hit }));
        // There may be more names than are fused.
        hits.sort_by_key(|hit| !hit.exact);
        hits.truncate(limit);
        hits
    }

    fn explain(&self, query: &str, position: usize) -> Vec<String> {
        let words = self.first.explain(query, position);
        if words.is_empty() { self.second.explain(query, position) } else { words }
    }

    fn nearest(&self, query: &str, server: Option<&str>, limit: usize) -> Vec<String> {
        self.first.nearest(query, server, limit)
    }
}
