//! Whether the list of a binary and what is linked into it are the same.

use super::{Finding, Rule};
use crate::catalogue::NativeCatalogue;
use crate::spec::Entry;

/// What is linked and not listed, and the other way round. `registered` is [`NativeCatalogue::registered`].
#[must_use]
pub fn listed(list: &NativeCatalogue, registered: &NativeCatalogue) -> Vec<Finding> {
    let missing =
        |from: &NativeCatalogue, entry: &&Entry| !from.entries.iter().any(|known| known.is_same(entry));
    let unlisted = registered.entries.iter().filter(|entry| missing(list, entry)).map(|entry| {
        let (kind, name) = named(entry);
        let message = format!("this {kind} is linked into the binary, and the list does not name it");
        let help = format!(
            "add it to `catalogue![…]`, or link it no more: it comes with the package `{}`",
            entry.location().package
        );
        Finding::new(Rule::Listed, name, message, help).at(Some(entry.location())).at(list.location)
    });
    let unregistered = list.entries.iter().filter(|entry| missing(registered, entry)).map(|entry| {
        let (kind, name) = named(entry);
        let message = format!("this {kind} stands in the list and is not among what is linked");
        let help = "let its macro write it, with the feature `inventory` of `aster-runtime`";
        Finding::new(Rule::Listed, name, message, help).at(Some(entry.location())).at(list.location)
    });
    unlisted.chain(unregistered).collect()
}

fn named(entry: &Entry) -> (&'static str, String) {
    let kind = match entry {
        Entry::Server(_) => "server",
        Entry::Tool(_) => "tool",
        Entry::Resource(_) => "resource",
        Entry::Prompt(_) => "prompt",
    };
    match entry.free() {
        Some(free) => (kind, super::id(free)),
        None => (kind, entry.server().to_owned()),
    }
}
