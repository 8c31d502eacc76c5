//! Queries that are names of tools, however they are written.

use super::digests::Digests;
use super::index::{server_of, with_servers};
use super::tokens::bare;
use crate::catalogue::{Server, Tool};
use crate::scope::View;

/// The tools by their names without case and separators: alone, after their server's name, and after its title.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The tools that may have a name.
    tools: Digests,
}

/// All that a tool is called.
fn names(tool: &Tool, server: Option<&Server>) -> [Option<String>; 3] {
    let name = bare(tool.id().tool());
    let after = |prefix: &str| format!("{}{name}", bare(prefix));
    let titled = server.and_then(|server| server.title.as_deref()).map(after);
    [Some(after(tool.id().server())), titled, Some(name)]
}

impl Names {
    pub(super) fn new(view: &View) -> Self {
        let named: Vec<_> = with_servers(view).map(|(tool, server)| names(tool, server)).collect();
        let places = named
            .iter()
            .zip(0..)
            .flat_map(|(names, position)| names.iter().flatten().map(move |name| (name.as_str(), position)));
        Self { tools: Digests::new(places) }
    }

    /// The bytes that they take on the heap.
    pub(super) fn heap(&self) -> usize {
        self.tools.heap()
    }

    /// The tools whose names the query is, ascending: one name, or several in a list or as identifiers among other words.
    pub(super) fn find(&self, view: &View, query: &str) -> Vec<u32> {
        let mut found: Vec<u32> = Vec::new();
        let mut add = |name: &str| self.add(view, name, &mut found);
        add(query);
        let lists = [',', ';', '\n', '|'];
        if query.contains(lists) {
            query.split(lists).for_each(&mut add);
        }
        let apart = |c: char| c.is_whitespace() || ",;|()\"'`".contains(c);
        query.split(apart).filter(|word| is_identifier(word)).for_each(&mut add);
        found.sort_unstable();
        found.dedup();
        found
    }

    fn add(&self, view: &View, name: &str, found: &mut Vec<u32>) {
        let name = bare(name);
        if name.is_empty() {
            return;
        }
        for position in self.tools.of(&name) {
            let tool = &view.tools()[position as usize];
            let is_named = names(tool, server_of(view, tool)).iter().flatten().any(|other| *other == name);
            if is_named {
                found.push(position);
            }
        }
    }
}

/// Whether a word can hardly be anything else than a name.
fn is_identifier(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let hump = || word.chars().zip(word.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    word.contains(['_', '/', '-']) || hump()
}
