//! Percent escapes undone, once and twice, with the way back to where each byte came from.

use std::ops::Range;

/// How often a text may have been encoded.
const DEPTH: usize = 2;

/// A stretch of a text with its escapes undone.
pub(super) struct Decoded {
    pub(super) bytes: Vec<u8>,
    /// Where each byte begins in the text, and at the end where the stretch ends.
    origins: Vec<usize>,
}

impl Decoded {
    /// What stands in the text for a range of the decoded bytes.
    pub(super) fn origin(&self, range: Range<usize>) -> Range<usize> {
        self.origins[range.start]..self.origins[range.end]
    }

    /// Of these places, which are in order, in what the text is a part of from `offset` on: those inside of the stretch, as
    /// they are in the decoded bytes.
    pub(super) fn inside(&self, places: &[usize], offset: usize) -> Vec<usize> {
        let (Some(first), Some(last)) = (self.origins.first(), self.origins.last()) else {
            return Vec::new();
        };
        let from = places.partition_point(|place| *place <= first + offset);
        let inside = places[from..].iter().take_while(|place| **place < last + offset);
        inside.map(|place| self.origins.partition_point(|origin| origin + offset < *place)).collect()
    }

    fn decode(bytes: &[u8], origins: impl Fn(usize) -> usize) -> Self {
        let mut decoded =
            Self { bytes: Vec::with_capacity(bytes.len()), origins: Vec::with_capacity(bytes.len() + 1) };
        let mut at = 0;
        while at < bytes.len() {
            let escaped = escape(&bytes[at..]);
            decoded.bytes.push(escaped.unwrap_or(bytes[at]));
            decoded.origins.push(origins(at));
            at += if escaped.is_some() { 3 } else { 1 };
        }
        decoded.origins.push(origins(at));
        decoded
    }
}

/// The byte that an escape at the beginning stands for.
fn escape(bytes: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    match bytes {
        [b'%', high, low, ..] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    }
}

/// Shows every word with escapes in it, decoded once and, where that leaves some, twice. A secret with escapes has no
/// spaces: these would be escaped too.
pub(super) fn each_decoded(text: &str, mut show: impl FnMut(&Decoded)) {
    let bytes = text.as_bytes();
    let (mut from, mut done) = (0, 0);
    while let Some(at) = text[from..].find('%').map(|at| from + at) {
        if escape(&bytes[at..]).is_none() {
            from = at + 1;
            continue;
        }
        let begin =
            bytes[done..at].iter().rposition(u8::is_ascii_whitespace).map_or(done, |space| done + space + 1);
        let end =
            bytes[at..].iter().position(u8::is_ascii_whitespace).map_or(bytes.len(), |space| at + space);
        let mut decoded = Decoded::decode(&bytes[begin..end], |at| begin + at);
        show(&decoded);
        for _ in 1..DEPTH {
            if !decoded.bytes.windows(3).any(|window| escape(window).is_some()) {
                break;
            }
            decoded = Decoded::decode(&decoded.bytes, |at| decoded.origins[at]);
            show(&decoded);
        }
        (from, done) = (end, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_decoded_twice_with_their_origins() {
        let text = "100% of a%3Db%2520c é%C3%A9 5%z%41 plain";
        let mut seen = Vec::new();
        each_decoded(text, |decoded| {
            seen.push(String::from_utf8(decoded.bytes.clone()).unwrap());
            for at in 0..decoded.bytes.len() {
                let origin = decoded.origin(at..at + 1);
                let (raw, byte) = (&text.as_bytes()[origin], decoded.bytes[at]);
                assert!(raw == [byte] || raw[0] == b'%', "{raw:?}");
            }
        });
        assert_eq!(seen, ["a=b%20c", "a=b c", "éé", "5%zA"]);
    }
}
