//! The explicit list of native servers and free tools.

use crate::spec::Entry;

/// What `catalogue![…]` makes: the native servers and free tools of one binary, checked when it was compiled.
#[derive(Debug, Clone, Copy)]
pub struct NativeCatalogue {
    /// In the order of the list.
    pub entries: &'static [Entry],
}

impl NativeCatalogue {
    /// Nothing.
    pub const EMPTY: Self = Self { entries: &[] };

    #[doc(hidden)]
    #[must_use]
    pub const fn __new(entries: &'static [Entry]) -> Self {
        Self { entries }
    }

    /// Everything that is linked into the binary, by server, tool and place: the linker's own order is a different one
    /// from build to build. Nobody has checked it yet.
    #[cfg(feature = "inventory")]
    #[must_use]
    pub fn registered() -> Self {
        static REGISTERED: std::sync::OnceLock<Vec<Entry>> = std::sync::OnceLock::new();
        let entries = REGISTERED.get_or_init(|| {
            let mut entries: Vec<Entry> = inventory::iter::<Entry>.into_iter().copied().collect();
            entries.sort_by_key(|entry| {
                let tool = entry.free().map_or("", |free| free.name);
                let location = entry.location();
                (entry.server(), tool, location.package, location.file, location.line)
            });
            entries
        });
        Self { entries }
    }
}

/// Lists native servers and free tools, resources and prompts as a constant. What would be wrong with the list at start-up
/// is a compile error here: a server that stands twice, a free tool that stands twice, two resources of one URI, a name
/// outside the grammar, an id of more than 64 characters.
///
/// ```
/// use aster_runtime::{catalogue, catalogue::NativeCatalogue, mcp_server, mcp_tool};
///
/// /// Adds two whole numbers.
/// #[mcp_tool(tier = Standard, server = "calculator")]
/// fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// #[mcp_server]
/// mod clock {
///     use aster_runtime::mcp_tool;
///
///     /// Tells the number of seconds in a day.
///     #[mcp_tool(tier = Standard)]
///     pub fn day() -> u32 {
///         86_400
///     }
/// }
///
/// const CATALOGUE: NativeCatalogue = catalogue![add::TOOL, clock::SERVER];
/// # fn main() {
/// assert_eq!(CATALOGUE.entries.len(), 2);
/// # }
/// ```
#[macro_export]
macro_rules! catalogue {
    ($($entry:expr),* $(,)?) => {{
        const ENTRIES: &[$crate::Entry] = &[$($entry.entry()),*];
        const _: () = $crate::__private::check_catalogue(ENTRIES);
        $crate::catalogue::NativeCatalogue::__new(ENTRIES)
    }};
}
