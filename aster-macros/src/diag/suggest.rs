//! "Did you mean": only where the word is near.

/// The candidate that `word` was most likely meant to be.
pub(crate) fn closest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    // One slip in three letters is a slip; more is another word.
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .iter()
        .map(|candidate| (distance(word, candidate), *candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The edit distance in which swapping two neighbours counts once (optimal string alignment).
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=right.len()).collect();
    for (row, l) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, r) in right.iter().enumerate() {
            let replaced = previous[column] + usize::from(l != r);
            let mut best = replaced.min(previous[column + 1] + 1).min(current[column] + 1);
            if row > 0 && column > 0 && *l == right[column - 1] && left[row - 1] == *r {
                best = best.min(before[column - 1] + 1);
            }
            current.push(best);
        }
        before = std::mem::replace(&mut previous, current);
    }
    previous[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_suggested_and_far_ones_are_not() {
        let keys = ["tier", "group", "name", "title"];
        assert_eq!(closest("grop", &keys), Some("group"));
        assert_eq!(closest("teir", &keys), Some("tier"));
        assert_eq!(closest("titel", &keys), Some("title"));
        assert_eq!(closest("colour", &keys), None);
        assert_eq!(closest("x", &keys), None);
    }

    #[test]
    fn distances() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abcd", "acbd"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
