//! From the bytes of an answer to text that a model can read. Nothing here knows of tools or of the network.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use url::Url;

use super::html;

/// The media types that [`Page::read`] reads, for the `Accept` header.
pub const READABLE: &[&str] =
    &["text/html", "application/xhtml+xml", "text/*", "application/json", "application/xml"];

/// A page's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The document's title, on one line.
    pub title: Option<String>,
    /// Markdown for an HTML page, else the text as it was sent. Without control, bidirectional and invisible
    /// characters.
    pub text: String,
    /// Whether the page went on after what could be read of it.
    pub cut: bool,
}

impl Page {
    /// Reads an answer's body.
    ///
    /// `content_type` is the header as it was sent; without one the kind is guessed from the first bytes. `url` is
    /// where the answer came from, against which links are made absolute.
    ///
    /// # Errors
    ///
    /// Where the body is not text.
    pub fn read(body: &[u8], content_type: Option<&str>, url: &Url) -> Result<Self, PageError> {
        let (essence, parameters) = split(content_type.unwrap_or_default());
        let kind = match kind(&essence) {
            Some(kind) => kind,
            None if essence.is_empty() => guess(body).ok_or(PageError::Binary)?,
            None => return Err(PageError::Type(aster_runtime::text::one_line(&essence, 80))),
        };
        let text = decode(body, charset(parameters), kind);
        let (title, text, cut) = match kind {
            Kind::Html => {
                let page = html::readable(&text, url);
                (page.title, page.markdown, page.cut)
            }
            Kind::Text => (None, text, false),
        };
        let text = aster_runtime::text::block(text.trim(), usize::MAX);
        if text.is_empty() {
            return Err(PageError::Empty);
        }
        Ok(Self { title, text, cut })
    }

    /// The part of the text from the character `offset` on, of at most `max_chars` characters. It ends at the end of a
    /// line where one is near.
    #[must_use]
    pub fn window(&self, offset: usize, max_chars: usize) -> Window<'_> {
        let total = self.text.chars().count();
        let start = offset.min(total);
        let from = byte_of(&self.text, start);
        let rest = &self.text[from..];
        if total - start <= max_chars {
            return Window { text: rest, start, end: total, total };
        }
        let cut = &rest[..byte_of(rest, max_chars)];
        // A cut in mid-line costs a sentence; a line end that is too far back would cost more.
        let line_end = cut.rfind('\n').map(|at| at + 1).filter(|at| at * 5 >= cut.len() * 4);
        let text = &cut[..line_end.unwrap_or(cut.len())];
        Window { text, start, end: start + text.chars().count(), total }
    }
}

/// Part of a page's text; positions count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window<'a> {
    /// The text.
    pub text: &'a str,
    /// Where it starts.
    pub start: usize,
    /// Where it ends; where the next part starts.
    pub end: usize,
    /// How long the whole text is.
    pub total: usize,
}

/// Why a page cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// A type that is not text.
    #[error("`{0}` is not a type of text; this tool reads web pages, plain text, JSON and XML")]
    Type(String),
    /// No type, and the bytes are not text.
    #[error("the answer names no type and is not text")]
    Binary,
    /// Nothing to read.
    #[error("the page has no text of its own; it may be drawn by scripts, which this tool does not run")]
    Empty,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Html,
    Text,
}

/// A `Content-Type` as its media type in lower case, and its parameters.
fn split(content_type: &str) -> (String, &str) {
    let (essence, parameters) = content_type.split_once(';').unwrap_or((content_type, ""));
    (essence.trim().to_ascii_lowercase(), parameters)
}

fn kind(essence: &str) -> Option<Kind> {
    match essence {
        "text/html" | "application/xhtml+xml" => Some(Kind::Html),
        "application/json" | "application/xml" => Some(Kind::Text),
        _ if essence.starts_with("text/") || essence.ends_with("+json") || essence.ends_with("+xml") => {
            Some(Kind::Text)
        }
        _ => None,
    }
}

fn guess(body: &[u8]) -> Option<Kind> {
    let head = &body[..body.len().min(1024)];
    if head.contains(&0) && Encoding::for_bom(head).is_none() {
        return None;
    }
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let html = head.contains("<!doctype html") || head.contains("<html") || head.contains("<body");
    Some(if html { Kind::Html } else { Kind::Text })
}

/// The `charset` among the parameters of a `Content-Type`.
fn charset(parameters: &str) -> Option<&'static Encoding> {
    parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let named = name.trim().eq_ignore_ascii_case("charset");
        Encoding::for_label(value.trim().trim_matches(['"', '\'']).as_bytes()).filter(|_| named)
    })
}

/// The order of the HTML standard: byte order mark, header, `<meta>`; else UTF-8 where it is that.
fn decode(body: &[u8], header: Option<&'static Encoding>, kind: Kind) -> String {
    let declared = || if kind == Kind::Html { meta_charset(body) } else { None };
    // A body that is cut in mid-character is UTF-8 still.
    let utf8 = |body| match std::str::from_utf8(body) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    let encoding = header.or_else(declared).unwrap_or_else(|| if utf8(body) { UTF_8 } else { WINDOWS_1252 });
    // `decode` looks for the byte order mark itself, and prefers it.
    encoding.decode(body).0.into_owned()
}

/// The encoding that a `<meta>` in the first kilobyte declares.
///
/// Source: HTML standard, "prescan a byte stream to determine its encoding", in short.
fn meta_charset(body: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&body[..body.len().min(1024)]).to_ascii_lowercase();
    let encoding = head.split("<meta").skip(1).find_map(|rest| {
        let tag = rest.split('>').next().unwrap_or_default();
        let value = tag.split_once("charset")?.1.trim_start().strip_prefix('=')?.trim_start();
        let value = value.trim_start_matches(['"', '\'']);
        let label = value.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '/')).next()?;
        Encoding::for_label(label.as_bytes())
    })?;
    // Whoever wrote that in ASCII did not mean UTF-16.
    Some(if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding })
}

/// The byte at which the character number `chars` starts.
fn byte_of(text: &str, chars: usize) -> usize {
    text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &[u8], content_type: &str) -> Result<Page, PageError> {
        let url = Url::parse("https://example.com/").unwrap();
        Page::read(body, Some(content_type).filter(|value| !value.is_empty()), &url)
    }

    fn text(body: &[u8], content_type: &str) -> String {
        read(body, content_type).unwrap().text
    }

    #[test]
    fn the_encoding_is_the_one_that_was_declared() {
        let latin = b"<p>caf\xe9 \x80</p>";
        assert_eq!(text(latin, "text/html; charset=ISO-8859-1"), "café €");
        assert_eq!(text(latin, "text/html; Charset=\"windows-1252\""), "café €");
        assert_eq!(text(latin, "text/html"), "café €");
        assert_eq!(text("<p>café</p>".as_bytes(), "text/html"), "café");
        // UTF-8 that was cut in the middle of a character.
        assert_eq!(text(&"caf é".as_bytes()[..5], "text/plain"), "caf \u{fffd}");
        let meta =
            b"<head><META http-equiv=content-type content='text/html; charset=koi8-r'></head><p>\xf0\xd2\xc9";
        assert_eq!(text(meta, "text/html"), "При");
        assert_eq!(text(b"<meta charset=\"shift_jis\"/><p>\x93\xfa\x96\x7b", "text/html"), "日本");
        // The header wins over `<meta>`, the byte order mark over both.
        assert_eq!(text("<meta charset=koi8-r><p>é".as_bytes(), "text/html; charset=utf-8"), "é");
        assert_eq!(text("\u{feff}<p>é".as_bytes(), "text/html; charset=koi8-r"), "é");
        assert_eq!(text(b"\xff\xfeh\0i\0", "text/plain"), "hi");
        assert_eq!(text("<meta charset=utf-16><p>é".as_bytes(), "text/html"), "é");
    }

    #[test]
    fn what_is_text_is_read_as_it_is() {
        for content_type in [
            "text/plain",
            "application/json; charset=utf-8",
            "application/ld+json",
            "text/markdown",
            "application/rss+xml",
            "",
        ] {
            assert_eq!(text(b"{\"a\": [1,  2]}\n", content_type), "{\"a\": [1,  2]}", "{content_type}");
        }
        assert_eq!(text(b"  <!DOCTYPE HTML><p>hi", ""), "hi");
        assert_eq!(read(b"x", "application/pdf"), Err(PageError::Type("application/pdf".into())));
        assert_eq!(read(b"x", "image/png"), Err(PageError::Type("image/png".into())));
        assert_eq!(read(b"\x7fELF\0\0", ""), Err(PageError::Binary));
        assert_eq!(read(b"<script>draw()</script>", "text/html"), Err(PageError::Empty));
    }

    #[test]
    fn no_character_of_a_page_can_hide_text() {
        let body = "<title>T\u{202e}\n# x</title><p>a\u{200b}b\u{e0041}c\u{202e}d\u{1b}[31m</p>";
        let page = read(body.as_bytes(), "text/html; charset=utf-8").unwrap();
        assert_eq!(page.text, "abcd[31m".replace('[', "\\["));
        assert_eq!(page.title.as_deref(), Some("T # x"));
    }

    #[test]
    fn windows_follow_each_other_without_gap() {
        let page = Page { title: None, text: "é line\nanother ünd\nlast".repeat(20), cut: false };
        let total = page.text.chars().count();
        let (mut read, mut at) = (String::new(), 0);
        while at < total {
            let window = page.window(at, 37);
            assert_eq!((window.start, window.total), (at, total));
            assert!(window.end > at && window.text.chars().count() <= 37);
            read.push_str(window.text);
            at = window.end;
        }
        assert_eq!(read, page.text);
        assert_eq!(page.window(total + 5, 10), Window { text: "", start: total, end: total, total });
        // A near line end is preferred, a far one is not.
        let page = Page { title: None, text: "0123456\n89abcdef".into(), cut: false };
        assert_eq!(page.window(0, 10).text, "0123456\n");
        assert_eq!(page.window(0, 14).text, "0123456\n89abcd");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(body: Vec<u8>, kind in "(text/html|text/plain|)(; charset=.{0,12})?") {
            let _ = read(&body, &kind);
        }

        #[test]
        fn any_markup_is_read_without_unsafe_characters(markup in "(<(/?)(p|b|table|td|a|svg|select|pre|li|br)( [a-z]=.{0,3})?>|.{0,5}){0,60}") {
            if let Ok(page) = read(markup.as_bytes(), "text/html; charset=utf-8") {
                let bad = |c: char| c != '\n' && c != '\t' && aster_runtime::text::is_unsafe(c);
                proptest::prop_assert!(!page.text.chars().any(bad));
            }
        }
    }
}
