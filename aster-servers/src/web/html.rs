//! HTML to Markdown, within bounds.
//!
//! A page is hostile input. The parser's cost grows with the square of nesting and its tree with unclosed formatting,
//! and the converter recurses; so the tree is built in small pieces and building stops where it grows beyond what
//! pages are. What a reader of the page would not see (scripts, hidden elements) is removed before anything is read.

use std::cell::Cell;

use dom_query::{Document, NodeId, NodeRef};
use dom_smoothie::{Config, Readability};
use htmd::HtmlToMarkdown;
use htmd::options::{BulletListMarker, HrStyle, Options};
use html5ever::interface::Tracer;
use html5ever::tendril::{StrTendril, TendrilSink as _};
use html5ever::tokenizer::TokenizerOpts;
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{ParseOpts, parse_document};
use url::Url;

/// How deep elements nest before the rest is left out. Browsers cut at 512; pages that people read stay below 100.
const MAX_DEPTH: usize = 128;

/// How many nodes a tree may have before the rest is left out.
const MAX_NODES: usize = 150_000;

/// Above this many elements the search for the main content, which compares elements with each other, is not tried.
const MAX_ARTICLE_ELEMENTS: usize = 25_000;

/// How much is parsed between two looks at the size of the tree, in bytes.
const PIECE: usize = 1024;

/// An article shorter than this share of what the whole page says is not trusted to be the page's main content.
const MIN_ARTICLE_SHARE: usize = 20;

/// Elements that show nothing, or nothing that can be read as text.
const UNREAD: &str = "script, style, noscript, template, iframe, frame, frameset, object, embed, applet, svg, canvas, \
                      audio, video, map, input, button, select, textarea, datalist, dialog:not([open]), link, meta, \
                      [hidden], [aria-hidden=\"true\"]";

/// Elements that only format. Left open, each is repeated in every block that follows when the text is parsed again.
const FORMATTING: [&str; 14] =
    ["a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"];

/// What was read from an HTML document.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Readable {
    pub(super) title: Option<String>,
    pub(super) markdown: String,
    /// Whether the document went on after what could be read of it.
    pub(super) cut: bool,
}

/// The readable part of an HTML document as Markdown: its main content, or all of it where there is none. Links are
/// absolute.
pub(super) fn readable(html: &str, url: &Url) -> Readable {
    let (document, cut) = parse(html);
    let base = base(&document, url);
    let title = document.select_single("title").text();
    let mut title = aster_runtime::text::one_line(&title, 300);
    clean(&document, &base);

    let whole = document.body().map(|body| body.inner_html().to_string()).unwrap_or_default();
    let said = document.body().map_or(0, |body| body.normalized_char_count());
    let article = article(document).filter(|article| article.length * MIN_ARTICLE_SHARE >= said);
    let markdown = match article {
        Some(article) => {
            if title.is_empty() {
                title = aster_runtime::text::one_line(&article.title, 300);
            }
            markdown(&article.content)
        }
        None => markdown(&whole),
    };
    Readable { title: Some(title).filter(|title| !title.is_empty()), markdown, cut }
}

/// Counts the elements that the parser keeps open.
#[derive(Default)]
struct Open(Cell<usize>);

impl Tracer for Open {
    type Handle = NodeId;

    fn trace_handle(&self, _: &NodeId) {
        self.0.set(self.0.get() + 1);
    }
}

fn parse(html: &str) -> (Document, bool) {
    let options = ParseOpts {
        tokenizer: TokenizerOpts::default(),
        tree_builder: TreeBuilderOpts { scripting_enabled: true, ..TreeBuilderOpts::default() },
    };
    let mut parser = parse_document(Document::default(), options);
    let mut rest = html;
    while !rest.is_empty() {
        let mut end = PIECE.min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let (piece, after) = rest.split_at(end);
        parser.process(StrTendril::from(piece));
        rest = after;
        let builder = &parser.tokenizer.sink;
        let open = Open::default();
        builder.trace_handles(&open);
        if open.0.get() > MAX_DEPTH * 2 || builder.sink.tree.len() > MAX_NODES {
            break;
        }
    }
    let document = parser.finish();
    let cut = cut_depth(&document) || !rest.is_empty();
    (document, cut)
}

/// Removes what nests deeper than [`MAX_DEPTH`].
fn cut_depth(document: &Document) -> bool {
    let mut waiting = vec![(document.root(), 0)];
    let mut too_deep = Vec::new();
    while let Some((node, depth)) = waiting.pop() {
        if depth > MAX_DEPTH {
            too_deep.push(node);
            continue;
        }
        waiting.extend(node.children_it(false).map(|child| (child, depth + 1)));
    }
    too_deep.iter().for_each(NodeRef::remove_from_parent);
    !too_deep.is_empty()
}

/// What relative links of the document are relative to.
fn base(document: &Document, url: &Url) -> Url {
    let declared = document.select_single("base[href]").attr("href");
    declared.and_then(|href| url.join(&href).ok()).unwrap_or_else(|| url.clone())
}

fn clean(document: &Document, base: &Url) {
    document.select(UNREAD).remove();
    for node in document.select("[style]").nodes() {
        if node.attr("style").is_some_and(|style| hides(&style)) {
            node.remove_from_parent();
        }
    }
    for node in document.select("a[href]").nodes() {
        match node.attr("href").and_then(|href| link(&href, base)) {
            Some(href) => node.set_attr("href", &href),
            None => node.remove_attr("href"),
        }
    }
    for node in document.select("img").nodes() {
        let described = !node.attr_or("alt", "").trim().is_empty();
        match node.attr("src").and_then(|src| link(&src, base)).filter(|_| described) {
            Some(src) => node.set_attr("src", &src),
            None => node.remove_from_parent(),
        }
    }
    flatten_formatting(document);
}

/// Whether an inline style hides its element. Style sheets are not applied.
fn hides(style: &str) -> bool {
    let mut plain = String::with_capacity(style.len());
    let mut rest = style;
    while let Some((before, comment)) = rest.split_once("/*") {
        plain.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    plain.to_ascii_lowercase().split(';').filter_map(|declaration| declaration.split_once(':')).any(
        |(name, value)| {
            let value = value.trim().trim_end_matches("!important").trim_end();
            let nothing = || {
                value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%').parse() == Ok(0.0_f32)
            };
            match name.trim() {
                "display" => value == "none",
                "visibility" => matches!(value, "hidden" | "collapse"),
                "opacity" | "font-size" => nothing(),
                _ => false,
            }
        },
    )
}

/// A link as an absolute URL; `None` for what is no link to a document, such as `javascript:` or `data:`.
fn link(href: &str, base: &Url) -> Option<String> {
    let url = base.join(href.trim()).ok()?;
    matches!(url.scheme(), "http" | "https" | "mailto" | "tel" | "ftp").then(|| url.into())
}

/// Takes formatting out of formatting of the same kind, so that no more elements are open at once than there are kinds.
fn flatten_formatting(document: &Document) {
    let mut waiting = vec![(document.root(), 0_u16)];
    while let Some((node, inside)) = waiting.pop() {
        let kind = node.node_name().and_then(|name| FORMATTING.iter().position(|kind| *kind == &*name));
        let own = kind.map_or(0, |kind| 1 << kind);
        waiting.extend(node.children_it(false).map(|child| (child, inside | own)));
        if inside & own != 0 {
            // Unknown to Markdown and to the parser's rules for formatting alike.
            node.rename("span");
            node.remove_all_attrs();
        }
    }
}

fn article(document: Document) -> Option<dom_smoothie::Article> {
    let config = Config {
        max_elements_to_parse: MAX_ARTICLE_ELEMENTS,
        // Its metadata is not used, and its parser is one more that would have to be trusted with hostile input.
        disable_json_ld: true,
        ..Config::default()
    };
    // Without the URL: the links are absolute already.
    let mut readability = Readability::with_document(document, None, Some(config)).ok()?;
    if !readability.is_probably_readable() {
        return None;
    }
    readability.parse().ok()
}

fn markdown(html: &str) -> String {
    let options = Options {
        hr_style: HrStyle::Dashes,
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        ..Options::default()
    };
    let converter = HtmlToMarkdown::builder().options(options).build();
    // The text is read from memory and written to memory; there is nothing that could fail.
    converter.convert(html).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(html: &str) -> Readable {
        readable(html, &Url::parse("https://example.com/dir/page?x=1").unwrap())
    }

    fn body(html: &str) -> String {
        read(&format!("<!doctype html><title>T</title><body>{html}")).markdown
    }

    const PARAGRAPH: &str = "The sea was calm that morning, and the fishermen, who had been up since four, sat on the \
                             wall mending nets, talking about prices, weather, and the new harbour that was promised.";

    #[test]
    fn the_main_content_of_an_article_without_what_surrounds_it() {
        let html = format!(
            "<html><head><title>Calm sea &amp; nets | The Daily</title></head><body>\
             <nav class=menu><a href=/sport>Sport</a><a href=/weather>Weather</a></nav>\
             <div class=sidebar><p>Subscribe to the newsletter!</p></div>\
             <article><h2>What they said</h2>{}<p>See <a href=\"../more?a=1&amp;b=2\">more <b>news</b></a>.</p>\
             <ul><li>one</li><li>two</li></ul><pre><code>let a = 1;\n  b();</code></pre></article>\
             <footer>Copyright, imprint, cookies</footer></body></html>",
            format!("<p>{PARAGRAPH}</p>").repeat(6),
        );
        let page = read(&html);
        assert_eq!(page.title.as_deref(), Some("Calm sea & nets | The Daily"));
        assert!(page.markdown.contains("## What they said\n"), "{}", page.markdown);
        assert!(
            page.markdown.contains("[more **news**](https://example.com/more?a=1&b=2)"),
            "{}",
            page.markdown
        );
        assert!(page.markdown.contains("- one\n- two"), "{}", page.markdown);
        assert!(page.markdown.contains("```\nlet a = 1;\n  b();\n```"), "{}", page.markdown);
        for outside in ["Sport", "newsletter", "Copyright"] {
            assert!(!page.markdown.contains(outside), "{}", page.markdown);
        }
        assert!(!page.cut);
    }

    #[test]
    fn a_page_without_an_article_is_read_whole() {
        let links = (0..30).map(|n| format!("<li><a href=/item/{n}>Item {n}</a></li>")).collect::<String>();
        let text = body(&format!("<nav><a href=#top>Top</a></nav><ul>{links}</ul>"));
        assert!(text.contains("[Item 29](https://example.com/item/29)"), "{text}");
        assert!(text.contains("[Top](https://example.com/dir/page?x=1#top)"), "{text}");
    }

    #[test]
    fn nothing_hidden_is_read() {
        let hidden = [
            "<script>HIDDEN</script>",
            "<style>HIDDEN</style>",
            "<noscript>HIDDEN</noscript>",
            "<template>HIDDEN</template>",
            "<iframe srcdoc='<p>HIDDEN'>HIDDEN</iframe>",
            "<svg><text>HIDDEN</text></svg>",
            "<textarea>HIDDEN</textarea>",
            "<input value=HIDDEN>",
            "<!-- HIDDEN -->",
            "<p hidden>HIDDEN</p>",
            "<p aria-hidden=true>HIDDEN</p>",
            "<div style='display:none'><p>HIDDEN</p></div>",
            "<div style='color:red; DISPLAY : None !important'>HIDDEN</div>",
            "<div style='dis/**/play:none'>HIDDEN</div>",
            "<p style='visibility: hidden'>HIDDEN</p>",
            "<p style='opacity:0.0'>HIDDEN</p>",
            "<p style='font-size:0px'>HIDDEN</p>",
            "<p style='font-size:0;'>HIDDEN</p>",
            "<dialog>HIDDEN</dialog>",
            "<img src=/a.png title=HIDDEN alt=''>",
            "<p data-note=HIDDEN>seen too</p>",
        ];
        for html in hidden {
            for around in [String::new(), format!("<p>{PARAGRAPH}</p>").repeat(6)] {
                let text = body(&format!("<div><p>seen</p>{html}{around}</div>"));
                assert!(text.contains("seen") && !text.contains("HIDDEN"), "{html}: {text}");
            }
        }
        assert_eq!(body("<p style='opacity:0.5;font-size:10px;display:block'>seen</p>"), "seen");
    }

    #[test]
    fn links_are_absolute_and_lead_to_documents() {
        let text = body(
            "<a href='javascript:alert(1)'>js</a> <a href='data:text/html,x'>data</a> <a href=' //b.example/c '>net</a> \
             <a href='mailto:a@b.example'>mail</a> <img src=i.png alt=pic> <img src='data:image/png;base64,AAAA' alt=inline>",
        );
        assert_eq!(
            text,
            "js data [net](https://b.example/c) [mail](mailto:a@b.example) ![pic](https://example.com/dir/i.png)"
        );
        let based = read("<base href='/other/'><a href=x>y</a>").markdown;
        assert_eq!(based, "[y](https://example.com/other/x)");
    }

    #[test]
    fn text_that_looks_like_markdown_stays_text() {
        assert_eq!(
            body("<p># no heading</p><p>*no* [link](x)</p>"),
            "\\# no heading\n\n\\*no\\* \\[link\\](x)"
        );
    }

    #[test]
    fn hostile_markup_costs_little_and_leaves_what_came_before() {
        let many = |piece: &str, bytes: usize| piece.repeat(bytes / piece.len());
        let numbered = |bytes: usize| (0..bytes / 10).map(|n| format!("<b x={n:05}>")).collect::<String>();
        let size = 96 * 1024;
        let pages = [
            many("<div>", size),
            many("<b>", size),
            many("<table><td>", size),
            many("<svg>", size),
            many("<div><object></div></object>", size),
            many("<a href=x>", size),
            many("<blockquote><ul><li>", size),
            many("<form><p>", size),
            // Unclosed formatting, repeated in every later block.
            numbered(size / 2) + &many("<p>x", size / 2),
            numbered(2000) + &many("<div>x</div>", size),
            "<p>".to_owned() + &numbered(1500) + &many("<div>x</div>", size),
            many("<b><i><u><p>x</b>", size),
            many("<p>x", size),
            many("<span>x</span>", size),
            many("&amp;", size),
            many("<", size),
            "<!--".to_owned() + &many("-", size),
        ];
        for page in pages {
            let shown: String = page.chars().take(40).collect();
            let text = body(&format!("<p>seen first</p>{page}"));
            assert!(text.contains("seen first"), "{shown}");
            assert!(text.len() < 8 * size, "{shown}: {}", text.len());
        }
    }
}
