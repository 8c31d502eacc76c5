//! Queries that are names of tools, however they are written.

use std::collections::HashMap;

use super::tokens::bare;
use crate::scope::View;

/// The tools by their names without case and separators: alone, after their server's name, and after its title.
#[derive(Debug, Default)]
pub(super) struct Names {
    tools: HashMap<Box<str>, Vec<u32>>,
}

impl Names {
    pub(super) fn new(view: &View) -> Self {
        let mut names = Self::default();
        let mut servers = view.servers().iter().peekable();
        for (position, tool) in view.tools().iter().enumerate() {
            while servers.peek().is_some_and(|server| server.name.as_str() < tool.id().server()) {
                servers.next();
            }
            let server = servers.peek().filter(|server| server.name == tool.id().server());
            let name = bare(tool.id().tool());
            let mut add = |key: String| {
                let tools = names.tools.entry(key.into()).or_default();
                if tools.last() != Some(&(position as u32)) {
                    tools.push(position as u32);
                }
            };
            add(format!("{}{name}", bare(tool.id().server())));
            if let Some(title) = server.and_then(|server| server.title.as_deref()) {
                add(format!("{}{name}", bare(title)));
            }
            add(name);
        }
        names
    }

    /// The tools whose names the query is: one name, or several in a list or as identifiers among other words.
    pub(super) fn find(&self, query: &str) -> Vec<u32> {
        let mut found: Vec<u32> = Vec::new();
        let mut add = |name: &str| {
            let name = bare(name);
            let tools = if name.is_empty() { None } else { self.tools.get(&*name) };
            for &tool in tools.into_iter().flatten() {
                if !found.contains(&tool) {
                    found.push(tool);
                }
            }
        };
        add(query);
        if query.contains([',', ';', '\n', '|']) {
            query.split([',', ';', '\n', '|']).for_each(&mut add);
        }
        query.split(|c: char| c.is_whitespace() || ",;|()\"'`".contains(c)).filter(|word| is_identifier(word)).for_each(add);
        found
    }
}

/// Whether a word can hardly be anything else than a name.
fn is_identifier(word: &str) -> bool {
    let inner = word.trim_matches(|c: char| !c.is_alphanumeric());
    inner.contains(['_', '/']) || inner.contains('-') || inner.chars().zip(inner.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase())
}
