//! Globs over ids, which filters and rules have in common.
//!
//! In a glob `*` matches any characters, `/` included, `?` one character, `[a-z]` a range and `{a,b}` alternatives; case
//! counts.

use globset::{GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};

/// A set of globs over ids, and what it says of whole servers, whose tools may not be known.
#[derive(Debug, Clone, Default)]
pub(crate) struct IdGlobs {
    set: GlobSet,
    /// What begins every id that they match. A rule in force is asked of every call, and most are about other tools.
    starts: Vec<String>,
    servers: Vec<ServerGlob>,
}

#[derive(Debug, Clone)]
struct ServerGlob {
    name: GlobMatcher,
    /// Whether it takes all tools of the server.
    whole: bool,
}

/// A glob that cannot be used, and why.
pub(crate) type BadGlob = (String, String);

impl IdGlobs {
    /// Compiles the globs and notes each one that does not parse, or that can match no id.
    pub(crate) fn new<S: AsRef<str>>(globs: &[S], bad: &mut Vec<BadGlob>) -> Self {
        let mut set = GlobSetBuilder::new();
        let (mut starts, mut servers) = (Vec::new(), Vec::new());
        for glob in globs.iter().map(AsRef::as_ref) {
            match GlobBuilder::new(glob).literal_separator(false).build() {
                Err(error) => bad.push((glob.to_owned(), error.kind().to_string())),
                Ok(_) if !glob.contains(['/', '*', '?', '{', '[']) => {
                    let why = format!("matches no id, since ids are `server/tool`; write `{glob}/*`");
                    bad.push((glob.to_owned(), why));
                }
                Ok(parsed) => {
                    set.add(parsed);
                    starts.push(start(glob).to_owned());
                    servers.extend(alternatives(glob).iter().filter_map(|glob| ServerGlob::of(glob)));
                }
            }
        }
        let set = set.build().unwrap_or_else(|error| {
            bad.push((error.glob().unwrap_or_default().to_owned(), error.kind().to_string()));
            GlobSet::empty()
        });
        Self { set, starts, servers }
    }

    /// Whether one of them matches this id.
    pub(crate) fn is_match(&self, id: &str) -> bool {
        self.starts.iter().any(|start| id.starts_with(&**start)) && self.set.is_match(id)
    }

    /// Whether one of them might match a tool of this server.
    pub(crate) fn may_match_on(&self, server: &str) -> bool {
        self.servers.iter().any(|glob| glob.name.is_match(server))
    }

    /// Whether one of them matches every tool of this server, whatever it has.
    pub(crate) fn cover(&self, server: &str) -> bool {
        self.servers.iter().any(|glob| glob.whole && glob.name.is_match(server))
    }
}

/// What begins every text that a glob matches.
fn start(glob: &str) -> &str {
    &glob[..glob.find(['*', '?', '[', '{', '\\']).unwrap_or(glob.len())]
}

/// Whether a glob matches one text alone, which it is.
pub(crate) fn is_plain(glob: &str) -> bool {
    !glob.contains(['*', '?', '[', '{'])
}

impl ServerGlob {
    fn of(glob: &str) -> Option<Self> {
        // A glob without a `/` (`*`, `a*`) spans server and tool.
        let (server, tool) = glob.split_once('/').unwrap_or((glob, "*"));
        let name = GlobBuilder::new(server).build().ok()?.compile_matcher();
        Some(Self { name, whole: matches!(tool, "*" | "**") })
    }
}

/// A glob without its first braces: one for each alternative, and so on for the braces that follow.
pub(crate) fn alternatives(glob: &str) -> Vec<String> {
    let Some((before, rest)) = glob.split_once('{') else { return vec![glob.to_owned()] };
    let (mut depth, mut starts) = (1_usize, vec![0_usize]);
    for (at, c) in rest.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => {
                starts.push(at + 1);
                let after = &rest[at + 1..];
                return starts
                    .windows(2)
                    .flat_map(|window| {
                        alternatives(&format!("{before}{}{after}", &rest[window[0]..window[1] - 1]))
                    })
                    .collect();
            }
            '}' => depth -= 1,
            ',' if depth == 1 => starts.push(at + 1),
            _ => {}
        }
    }
    vec![glob.to_owned()]
}
