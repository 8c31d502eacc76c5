//! What the macros' expansions use. Outside semantic versioning: it may change in any release.

/// The ASCII lower case of a constant's name.
#[must_use]
pub const fn lowercase<const N: usize>(text: &str) -> [u8; N] {
    let bytes = text.as_bytes();
    let mut lower = [0; N];
    let mut at = 0;
    while at < N {
        lower[at] = bytes[at].to_ascii_lowercase();
        at += 1;
    }
    lower
}

/// Bytes that [`lowercase`] made, as text.
#[must_use]
pub const fn ascii(bytes: &'static [u8]) -> &'static str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("a group's name is not UTF-8"),
    }
}
