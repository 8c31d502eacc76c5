//! Paths among arguments, and globs over them.
//!
//! A path has two readings, and both count. The *lexical* one resolves `~`, `.`, `..`, a `file:` URL and what is relative,
//! by the text alone. The *real* one follows symbolic links too, by asking the file system, which this module never does
//! itself: it is handed the function that does. What is relative is read from Aster's directory, and from the server's where
//! that is another. A rule that denies or asks matches where any reading fits; one that allows, where all do.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use url::Url;

use super::test::{covers, some};
use super::{Real, RuleError};

/// Whether the file system takes `A` and `a` for one name.
const CASE_INSENSITIVE: bool = cfg!(any(windows, target_os = "macos"));

/// What a path that is not absolute is read from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The home directory, for `~`.
    pub home: Option<PathBuf>,
    /// The directory that relative paths are read from, absolute.
    pub directory: PathBuf,
}

impl Surroundings {
    /// The path that a text means, absolute, and not otherwise resolved; one that is relative is read from `directory`.
    fn absolute(&self, text: &str, directory: &Path) -> PathBuf {
        if let Some(path) = file_url(text) {
            return path;
        }
        match (&self.home, text.strip_prefix('~')) {
            (Some(home), Some("")) => home.clone(),
            (Some(home), Some(rest)) if rest.starts_with(std::path::is_separator) => {
                home.join(rest.trim_start_matches(std::path::is_separator))
            }
            _ => directory.join(text),
        }
    }
}

/// Where paths are read for one call.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) surroundings: &'a Surroundings,
    /// The directory that the server runs in, where it is another one that is known.
    pub(super) directory: Option<&'a Path>,
    pub(super) real: Real<'a>,
}

fn file_url(text: &str) -> Option<PathBuf> {
    let scheme = text.get(..5)?;
    let url = scheme.eq_ignore_ascii_case("file:").then(|| Url::parse(text).ok())??;
    url.to_file_path().ok()
}

/// A path without `.` and `..`, by its text alone.
pub(super) fn lexical(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}

/// Globs over paths: what one names, and all that lies below it. `*` matches within one component, `**` across them.
///
/// ```
/// use aster_runtime::gate::rules::{PathGlobs, Surroundings};
///
/// let here = Surroundings { home: Some("/home/me".into()), directory: "/home/me/project".into() };
/// assert!(PathGlobs::new(["~/.ssh", "**/.env", "/etc"], None, &here, &|path| Some(path.to_owned())).is_ok());
/// assert!(PathGlobs::new(["src"], None, &here, &|path| Some(path.to_owned())).is_err());
/// ```
#[derive(Clone)]
pub struct PathGlobs {
    texts: Vec<String>,
    set: GlobSet,
}

impl fmt::Debug for PathGlobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.texts.fmt(f)
    }
}

impl PathGlobs {
    /// Compiles globs that begin with `/`, `~/` or `**/`. One that is relative is read from `base`, where there is one.
    /// The leading directories of a glob that have no wildcard are looked up with `real` too, so that a directory may be
    /// named by a link to it.
    ///
    /// # Errors
    ///
    /// Where one does not parse or begins otherwise, or there are none.
    pub fn new<S: AsRef<str>>(
        globs: impl IntoIterator<Item = S>,
        base: Option<&Path>,
        surroundings: &Surroundings,
        real: Real<'_>,
    ) -> Result<Self, RuleError> {
        let mut texts = Vec::new();
        for glob in globs {
            let glob = glob.as_ref();
            let anchored = anchored(glob, base, surroundings)?;
            let resolved = through_links(&anchored, real);
            texts.push(anchored);
            texts.extend(resolved);
        }
        let texts = some(texts)?;
        let mut set = GlobSetBuilder::new();
        for text in &texts {
            let parse = |glob: &str| {
                GlobBuilder::new(glob)
                    .literal_separator(true)
                    .case_insensitive(CASE_INSENSITIVE)
                    .build()
                    .map_err(|error| RuleError::glob(text, &error))
            };
            set.add(parse(text)?).add(parse(&format!("{}/**", text.trim_end_matches('/')))?);
        }
        let set = set.build().map_err(|error| RuleError::glob(&texts.join(", "), &error))?;
        Ok(Self { texts, set })
    }

    pub(super) fn match_text(&self, text: &str, loose: bool, site: &Site<'_>) -> bool {
        // No file system has such a name.
        if text.is_empty() || text.contains('\0') {
            return false;
        }
        let text = if loose { text.trim() } else { text };
        let own = site.surroundings.absolute(text, &site.surroundings.directory);
        let other = site.directory.map(|directory| site.surroundings.absolute(text, directory));
        // Once where they are one: each reading may ask the file system.
        let other = other.filter(|other| *other != own);
        let mut fitting = std::iter::once(own).chain(other).map(|path| {
            let by_text = self.set.is_match(lexical(&path));
            match (loose, by_text) {
                (true, true) => true,
                (false, false) => false,
                // Where nobody can say where it leads, it may lead anywhere.
                _ => (site.real)(&path).map_or(loose, |real| self.set.is_match(real)),
            }
        });
        if loose { fitting.any(|fits| fits) } else { fitting.all(|fits| fits) }
    }

    /// Whether these match all that the others match, as far as can be told.
    pub(super) fn covers(&self, others: &Self) -> bool {
        let below = |own: &str, other: &str| {
            other.strip_prefix(own.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
        };
        let wide = |own: &String, other: &String| {
            covers(own, other) && (own == other || own.ends_with("**")) || below(own, other)
        };
        others.texts.iter().all(|other| self.texts.iter().any(|own| wide(own, other)))
    }
}

/// A glob that begins with the root or with `**`.
fn anchored(glob: &str, base: Option<&Path>, surroundings: &Surroundings) -> Result<String, RuleError> {
    let under = |directory: &Path, rest: &str| {
        let directory = globset::escape(&directory.to_string_lossy().replace('\\', "/"));
        format!("{}/{rest}", directory.trim_end_matches('/'))
    };
    if glob == "~" || glob.starts_with("~/") {
        let home = surroundings.home.as_deref();
        let home = home.ok_or_else(|| RuleError::new("there is no home directory for `~`", ""))?;
        return Ok(under(home, glob.trim_start_matches('~').trim_start_matches('/'))
            .trim_end_matches('/')
            .to_owned());
    }
    if glob.starts_with('/') || glob.starts_with("**/") || Path::new(glob).is_absolute() {
        let ended = glob.trim_end_matches('/');
        return Ok(if ended.is_empty() { "/" } else { ended }.to_owned());
    }
    match base {
        Some(base) if !glob.is_empty() => {
            Ok(under(base, glob.trim_start_matches("./").trim_end_matches('/')))
        }
        _ => Err(RuleError::new(
            format!("the path `{glob}` does not say where it begins"),
            "begin it with `/` or `~/`, or with `**/` for a name in any directory",
        )),
    }
}

/// The glob with its leading directories in the place of the links that lead to them, where that is another one.
fn through_links(glob: &str, real: Real<'_>) -> Option<String> {
    let special = |part: &str| part.contains(['*', '?', '[', '{', '\\']);
    let parts: Vec<&str> = glob.split('/').collect();
    let plain = parts.iter().position(|part| special(part)).unwrap_or(parts.len());
    let directory = PathBuf::from(parts[..plain].join("/"));
    if !directory.is_absolute() {
        return None;
    }
    let resolved = real(&directory)?;
    let rest = parts[plain..].iter().map(|part| format!("/{part}")).collect::<String>();
    (resolved != directory)
        .then(|| format!("{}{rest}", globset::escape(&resolved.to_string_lossy().replace('\\', "/"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Surroundings {
        Surroundings { home: Some("/home/me".into()), directory: "/home/me/project".into() }
    }

    fn site<'a>(surroundings: &'a Surroundings, directory: Option<&'a Path>, real: Real<'a>) -> Site<'a> {
        Site { surroundings, directory, real }
    }

    /// A file system in which `/home/me/link` leads to `/etc`, and `/tmp` to `/private/tmp`.
    fn links(path: &Path) -> Option<PathBuf> {
        let mut real = PathBuf::new();
        for component in path.components() {
            match component {
                Component::ParentDir => {
                    real.pop();
                }
                Component::CurDir => {}
                other => real.push(other),
            }
            if real == Path::new("/home/me/link") {
                real = "/etc".into();
            } else if real == Path::new("/tmp") {
                real = "/private/tmp".into();
            }
        }
        Some(real)
    }

    #[test]
    fn every_spelling_of_a_path_is_one_path() {
        let globs =
            PathGlobs::new(["/etc", "~/.ssh", "**/.env", "/var/*/secret"], None, &here(), &links).unwrap();
        let matches = |text: &str, loose| globs.match_text(text, loose, &site(&here(), None, &links));
        for text in [
            "/etc",
            "/etc/",
            "/etc/passwd",
            "//etc///passwd",
            "/srv/../etc/passwd",
            "/home/me/../../etc/./passwd",
            "../../../etc/passwd",
            "~/.ssh/id_ed25519",
            "~//.ssh",
            "../.ssh/config",
            "file:///etc/passwd",
            "file:///%65tc/passwd",
            "FILE:/etc/passwd",
            ".env",
            "src/.env",
            "/srv/app/.env",
            "/var/a/secret/b",
        ] {
            assert!(matches(text, true), "loosely {text}");
            assert!(matches(text, false), "strictly {text}");
        }
        for text in [
            "/etcetera",
            "/home/me/etc",
            "",
            "/e\0tc",
            "~",
            "~other/.ssh",
            "/var/a/b/secret",
            "/",
            "https://x/etc",
        ] {
            assert!(!matches(text, true), "{text}");
            assert!(!matches(text, false), "{text}");
        }
        // Through a link: whoever denies sees where it leads, whoever allows wants both to fit.
        assert!(matches("~/link/passwd", true) && !matches("~/link/passwd", false));
        assert!(matches("/etc/../home/me/link/passwd", true));
        assert!(matches(" /etc/passwd\n", true) && !matches(" /etc/passwd\n", false));
    }

    #[test]
    fn what_leads_nobody_knows_where_loosens_nothing() {
        let globs = PathGlobs::new(["/etc"], None, &here(), &|_| None).unwrap();
        for text in ["/etc/passwd", "/srv/x"] {
            assert!(globs.match_text(text, true, &site(&here(), None, &|_| None)), "{text}");
            assert!(!globs.match_text(text, false, &site(&here(), None, &|_| None)), "{text}");
        }
    }

    #[test]
    fn a_directory_may_be_named_by_a_link_to_it() {
        let globs = PathGlobs::new(["/tmp/*.log"], None, &here(), &links).unwrap();
        for text in ["/tmp/a.log", "/private/tmp/a.log"] {
            assert!(globs.match_text(text, true, &site(&here(), None, &links)), "{text}");
            assert!(globs.match_text(text, false, &site(&here(), None, &links)), "{text}");
        }
        assert!(!globs.match_text("/tmp/a/b.log", true, &site(&here(), None, &links)));
    }

    #[test]
    fn a_slash_at_the_end_leaves_the_directory_in() {
        let globs = PathGlobs::new(["/etc/", "~/.ssh/"], None, &here(), &links).unwrap();
        let own = PathGlobs::new(["src/"], Some(Path::new("/srv/a")), &here(), &links).unwrap();
        for (globs, text) in [(&globs, "/etc"), (&globs, "/etc/x"), (&globs, "~/.ssh"), (&own, "/srv/a/src")]
        {
            assert!(globs.match_text(text, true, &site(&here(), None, &links)), "{text}");
        }
        let all = PathGlobs::new(["/"], None, &here(), &links).unwrap();
        assert!(
            all.match_text("/", false, &site(&here(), None, &links))
                && all.match_text("/x", false, &site(&here(), None, &links))
        );
    }

    #[test]
    fn what_is_relative_is_read_from_the_directory_of_the_server_too() {
        let (here, server) = (here(), Some(Path::new("/srv/app")));
        let of = |glob: &str| PathGlobs::new([glob], None, &here, &links).unwrap();
        for (glob, text, loose, strict) in [
            ("/srv/app", "secret", true, false),
            ("/home/me/project", "secret", true, false),
            ("/srv/app/secret", "./x/../secret", true, false),
            ("**/secret", "secret", true, true),
            ("/srv", "../../etc", false, false),
            ("/etc", "../../../etc", true, true),
            ("/srv/app", "/srv/app/secret", true, true),
            ("/srv/app", "~/secret", false, false),
        ] {
            let matches = |loose| of(glob).match_text(text, loose, &site(&here, server, &links));
            assert_eq!((matches(true), matches(false)), (loose, strict), "{glob} {text}");
        }
    }

    #[test]
    fn what_is_one_path_from_both_directories_is_asked_about_once() {
        let (here, server) = (here(), Some(Path::new("/srv/app")));
        let globs = PathGlobs::new(["/etc"], None, &here, &links).unwrap();
        for (text, asked) in
            [("/srv/x", 1), ("~/x", 1), ("file:///srv/x", 1), ("//srv/./x", 1), ("x", 2), ("./x", 2)]
        {
            let asks = std::cell::Cell::new(0);
            let real = |path: &Path| {
                asks.set(asks.get() + 1);
                links(path)
            };
            assert!(!globs.match_text(text, true, &site(&here, server, &real)), "{text}");
            assert_eq!(asks.get(), asked, "{text}");
        }
    }

    #[test]
    fn a_relative_glob_needs_a_base() {
        let error = PathGlobs::new(["src"], None, &here(), &links).unwrap_err();
        assert!(error.to_string().contains("does not say where it begins"), "{error}");
        let globs = PathGlobs::new(["src"], Some(Path::new("/srv/[a]")), &here(), &links).unwrap();
        assert!(globs.match_text("/srv/[a]/src/main.rs", false, &site(&here(), None, &links)));
        assert!(!globs.match_text("/srv/a/src", true, &site(&here(), None, &links)));
    }

    #[test]
    fn covering() {
        let globs = |texts: &[&str]| PathGlobs::new(texts, None, &here(), &links).unwrap();
        assert!(globs(&["/etc"]).covers(&globs(&["/etc/ssh", "/etc"])));
        assert!(globs(&["/etc/**"]).covers(&globs(&["/etc/ssh"])));
        assert!(!globs(&["/etc/*"]).covers(&globs(&["/var/x"])));
        assert!(!globs(&["/etc"]).covers(&globs(&["/etcetera"])));
    }
}
