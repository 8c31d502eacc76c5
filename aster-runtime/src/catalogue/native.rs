//! placeholder until the macros land

use crate::spec::Entry;

/// The native servers of a binary.
#[derive(Debug, Clone, Copy)]
pub struct NativeCatalogue {
    /// Its lines.
    pub entries: &'static [Entry],
}
