//! Names and ids: the one grammar that every name in Aster is checked against.
//!
//! Everything here is a `const fn` where it can be, so that `catalogue!` checks the same rules under `cargo check`
//! that the catalogue checks at start-up. The macros repeat the native grammar with better spans; a test holds the
//! two together.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The longest native id, counted as the name `server__tool` that a client sees in direct mode (OpenAI's and
/// Anthropic's limit for function names).
pub const MAX_NATIVE_ID: usize = 64;

/// The longest name that an external tool may have, in bytes. Real servers exceed the 64 of the model providers,
/// and through the bridge a longer name does no harm.
pub const MAX_EXTERNAL_NAME: usize = 256;

/// The name of the bridge function, reserved for it.
pub const BRIDGE_NAME: &str = "aster_mcp";

/// What is wrong with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// The name has no characters.
    Empty,
    /// The name is longer than the limit that goes with it.
    TooLong,
    /// A character outside the grammar.
    Character,
    /// The first character is not a letter.
    Start,
    /// `__`, which separates server and tool in direct mode.
    DoubleUnderscore,
    /// A name that Aster keeps for itself.
    Reserved,
}

impl NameError {
    /// What is wrong and what to do, as a fragment without a full stop.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::Empty => "the name is empty",
            Self::TooLong => "the name is too long",
            Self::Character => "the name has a character that is not allowed in it",
            Self::Start => "the name does not start with a letter",
            Self::DoubleUnderscore => "the name contains `__`, which separates server and tool",
            Self::Reserved => "the name is reserved",
        }
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for NameError {}

/// Checks the name of a native server or tool: `[a-z][a-z0-9_-]*`, at most 64 bytes, no `__`, not `aster_mcp`.
///
/// # Errors
///
/// The first rule that the name breaks.
pub const fn check_native_name(name: &str) -> Result<(), NameError> {
    let bytes = name.as_bytes();
    if bytes.is_empty() {
        return Err(NameError::Empty);
    }
    if bytes.len() > MAX_NATIVE_ID {
        return Err(NameError::TooLong);
    }
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'a'..=b'z' | b'0'..=b'9' | b'-' => {}
            b'_' => {
                if at + 1 < bytes.len() && bytes[at + 1] == b'_' {
                    return Err(NameError::DoubleUnderscore);
                }
            }
            _ => return Err(NameError::Character),
        }
        at += 1;
    }
    if !bytes[0].is_ascii_lowercase() {
        return Err(NameError::Start);
    }
    if str_eq(name, BRIDGE_NAME) {
        return Err(NameError::Reserved);
    }
    Ok(())
}

/// Whether every provider takes this as the name of an argument: `[A-Za-z0-9_.-]{1,64}`, which is what Anthropic and OpenAI
/// accept as a property.
pub(crate) fn is_argument_name(name: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(is_legal)
}

/// Checks the name that a configuration gives an external server: `[A-Za-z0-9][A-Za-z0-9._-]*`, at most 64 bytes,
/// neither `aster` nor `aster_mcp`.
///
/// # Errors
///
/// The first rule that the name breaks.
pub const fn check_server_name(name: &str) -> Result<(), NameError> {
    let bytes = name.as_bytes();
    if bytes.is_empty() {
        return Err(NameError::Empty);
    }
    if bytes.len() > MAX_NATIVE_ID {
        return Err(NameError::TooLong);
    }
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {}
            _ => return Err(NameError::Character),
        }
        at += 1;
    }
    if !bytes[0].is_ascii_alphanumeric() {
        return Err(NameError::Start);
    }
    if str_eq(name, BRIDGE_NAME) || str_eq(name, "aster") {
        return Err(NameError::Reserved);
    }
    Ok(())
}

/// Checks the name of an external tool: 1 to 256 bytes without control or invisible characters, and of white space only
/// plain spaces inside. Real servers have such names, and through the bridge they do no harm.
///
/// # Errors
///
/// The first rule that the name breaks.
pub fn check_external_name(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > MAX_EXTERNAL_NAME {
        return Err(NameError::TooLong);
    }
    let blank = |c: char| c.is_whitespace() && c != ' ';
    if name.trim() != name || name.chars().any(|c| blank(c) || crate::text::is_unsafe(c)) {
        return Err(NameError::Character);
    }
    if name == BRIDGE_NAME {
        return Err(NameError::Reserved);
    }
    Ok(())
}

/// Whether two strings are equal, in a `const` context.
#[must_use]
pub const fn str_eq(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    if left.len() != right.len() {
        return false;
    }
    let mut at = 0;
    while at < left.len() {
        if left[at] != right[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// The id of a tool, `server/tool`, split at the first `/`. Cheap to clone; ordered by server, then tool.
///
/// ```
/// use aster_runtime::ToolId;
///
/// let id = ToolId::parse("files/notes/read").unwrap();
/// assert_eq!((id.server(), id.tool()), ("files", "notes/read"));
/// assert_eq!(ToolId::parse("read"), None);
/// ```
#[derive(Clone)]
pub struct ToolId {
    text: Arc<str>,
    slash: usize,
}

impl ToolId {
    /// The id of `tool` on `server`.
    #[must_use]
    pub fn new(server: &str, tool: &str) -> Self {
        Self { text: format!("{server}/{tool}").into(), slash: server.len() }
    }

    /// Reads `server/tool`; `None` where the `/`, or a name on one side of it, is missing.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let slash = text.find('/').filter(|&at| at > 0 && at + 1 < text.len())?;
        Some(Self { text: text.into(), slash })
    }

    /// The server's name.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.text[..self.slash]
    }

    /// The tool's name on its server.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.text[self.slash + 1..]
    }

    /// The name that direct mode gives it where nothing collides, `server__tool`: every character that no provider takes in
    /// the name of a function is `_`.
    #[must_use]
    pub fn direct_name(&self) -> String {
        format!("{}__{}", legal(self.server()), legal(self.tool()))
    }

    /// The whole id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Part of a name, as every provider takes it in that of a function.
pub(crate) fn legal(part: &str) -> String {
    part.chars().map(|c| if is_legal(c) { c } else { '_' }).collect()
}

/// Whether providers take this character in the name of a function.
pub(crate) fn is_legal(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

impl PartialEq for ToolId {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for ToolId {}

impl Hash for ToolId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl PartialOrd for ToolId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ToolId {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.server(), self.tool()).cmp(&(other.server(), other.tool()))
    }
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_grammar() {
        for good in ["a", "web", "fetch_page", "fetch-page", "a1", "a_"] {
            assert_eq!(check_native_name(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("", NameError::Empty),
            ("a/b", NameError::Character),
            ("Web", NameError::Character),
            ("a b", NameError::Character),
            ("1a", NameError::Start),
            ("_a", NameError::Start),
            ("a__b", NameError::DoubleUnderscore),
            ("aster_mcp", NameError::Reserved),
        ] {
            assert_eq!(check_native_name(bad), Err(why), "{bad}");
        }
        assert_eq!(check_native_name(&"a".repeat(65)), Err(NameError::TooLong));
    }

    #[test]
    fn external_names_keep_what_real_servers_use() {
        for good in
            ["admin.tools.list", "user-profile/update", "Create_Issue", "find a user", &"x".repeat(129)]
        {
            assert_eq!(check_external_name(good), Ok(()), "{good}");
        }
        for bad in [" a", "a ", "a\tb", "a\u{a0}b", "a\nb", "a\u{200b}b", "aster_mcp", ""] {
            assert!(check_external_name(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn ids_order_by_server_then_tool() {
        let mut ids = ["a-b/x", "a/z", "a/b"].map(|text| ToolId::parse(text).unwrap());
        ids.sort();
        assert_eq!(ids.map(|id| id.to_string()), ["a/b", "a/z", "a-b/x"]);
        for bad in ["", "/", "a/", "/b", "ab"] {
            assert_eq!(ToolId::parse(bad), None, "{bad:?}");
        }
    }
}
