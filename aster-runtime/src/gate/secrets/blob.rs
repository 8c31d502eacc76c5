//! Bytes of resources, which MCP writes in base64: whatever a client can read of them is looked at.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};

use super::{Finding, REDACTED, Redactor};

/// The member that has them.
pub(super) const NAME: &str = "blob";

/// Takes what others refuse, too: some client may.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A blob with the secrets in its bytes replaced, and what they are; `None` where there are none. The ranges are those of
/// the bytes.
pub(super) fn clean(redactor: &Redactor, blob: &str) -> Option<(String, Vec<Finding>)> {
    if redactor.is_idle() {
        return None;
    }
    let bytes = decode(blob);
    let text = masked(&bytes);
    let found = redactor.find(&text);
    if found.is_empty() {
        return None;
    }
    let mut clean: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut done = 0;
    for finding in &found {
        let range = super::whole(&text, finding.range.clone());
        clean.extend_from_slice(bytes.get(done..range.start).unwrap_or_default());
        clean.extend_from_slice(REDACTED.as_bytes());
        done = done.max(range.end);
    }
    clean.extend_from_slice(&bytes[done..]);
    let mut encoded = STANDARD.encode(&clean);
    if !redactor.find(&encoded).is_empty() {
        // What is a secret as it is written stays none either way.
        encoded = STANDARD.encode(REDACTED);
    }
    Some((encoded, found))
}

/// The bytes, whichever alphabet they are written in, with or without padding, in one line or many, and in several parts.
fn decode(blob: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(blob.len() / 4 * 3);
    let mut part: Vec<u8> = Vec::new();
    for piece in blob.split('=') {
        part.clear();
        part.extend(piece.bytes().filter_map(|byte| match byte {
            b'-' => Some(b'+'),
            b'_' => Some(b'/'),
            b'+' | b'/' => Some(byte),
            byte => byte.is_ascii_alphanumeric().then_some(byte),
        }));
        if part.len() % 4 == 1 {
            // Not even one byte.
            part.pop();
        }
        // Of such characters and such a length everything can be read.
        let _ = LENIENT.decode_vec(&part, &mut bytes);
    }
    bytes
}

/// The bytes as a text of the same length: a byte that is none of a character splits words, as it would for who reads it.
fn masked(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

    use super::*;

    #[test]
    fn however_it_is_written() {
        let redactor = Redactor::new(["hunter2hunter2"]);
        let bytes = [b"\xff\xfe>>?? ".as_slice(), b"hunter2hunter2", b"\xc3 ends"].concat();
        let wrapped = |text: String| {
            let lines = text.as_bytes().chunks(7).map(|line| String::from_utf8_lossy(line).into_owned());
            lines.collect::<Vec<_>>().join("\r\n")
        };
        for written in [
            STANDARD.encode(&bytes),
            STANDARD_NO_PAD.encode(&bytes),
            URL_SAFE.encode(&bytes),
            URL_SAFE_NO_PAD.encode(&bytes),
            wrapped(STANDARD.encode(&bytes)),
            format!("{}{}", STANDARD.encode(&bytes[..10]), STANDARD.encode(&bytes[10..])),
            format!("{}A", STANDARD.encode(&bytes[..27])),
        ] {
            let (clean, found) = clean(&redactor, &written).unwrap_or_default();
            assert_eq!(found.len(), 1, "{written}");
            let clean = STANDARD.decode(clean).unwrap_or_default();
            assert!(clean.starts_with(b"\xff\xfe>>?? [redacted]"), "{written}: {clean:?}");
        }
        assert_eq!(clean(&redactor, &STANDARD.encode("nothing")), None);
    }
}
