//! The explicit list of native servers and free tools.

use crate::spec::{Entry, Location, Raise};

/// What `catalogue![…]` makes: the native servers and free tools of one binary, checked when it was compiled.
#[derive(Debug, Clone, Copy)]
pub struct NativeCatalogue {
    /// In the order of the list.
    pub entries: &'static [Entry],
    /// The tools whose tier is above the one that they were written with.
    pub raises: &'static [Raise],
    /// Where `catalogue!` stands; a list that was made otherwise has no place.
    pub location: Option<Location>,
}

impl NativeCatalogue {
    /// Nothing.
    pub const EMPTY: Self = Self { entries: &[], raises: &[], location: None };

    #[doc(hidden)]
    #[must_use]
    pub const fn __new(entries: &'static [Entry], raises: &'static [Raise], location: Location) -> Self {
        Self { entries, raises, location: Some(location) }
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
        Self { entries, ..Self::EMPTY }
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
///
/// Two clauses may follow the list. `groups { … }` names the groups that this binary hands out, and then every group that a
/// tool or server was given must be among them. `raise { … }` gives tools of the list a stricter tier; to lower one does not
/// compile. A tool is named by its path, so one that is renamed is noticed here.
///
/// ```
/// # mod groups { aster_runtime::groups! { pub TIME } }
/// # #[aster_runtime::mcp_server(group = groups::TIME)]
/// # mod clock {
/// #     /// Tells the number of seconds in a day.
/// #     #[aster_runtime::mcp_tool(tier = Standard)]
/// #     pub fn day() -> u32 { 86_400 }
/// # }
/// # use aster_runtime::{NativeCatalogue, Tier, catalogue};
/// const CATALOGUE: NativeCatalogue = catalogue![
///     clock::SERVER;
///     groups { groups::TIME };
///     raise { clock::Tool::Day => Restricted }
/// ];
/// # fn main() {
/// assert_eq!(CATALOGUE.raises[0].tier, Tier::Restricted);
/// # }
/// ```
#[macro_export]
macro_rules! catalogue {
    (
        $($entry:expr),* $(,)?
        $(; groups { $($group:path),* $(,)? })?
        $(; raise { $($tool:expr => $tier:ident),* $(,)? })?
        $(;)?
    ) => {{
        const ENTRIES: &[$crate::Entry] = {
            use $crate::__private::Unlisted as _;
            $($crate::__private::listed(&$entry);)*
            &[$($entry.entry()),*]
        };
        const RAISES: &[$crate::__private::Raise] = &[$($(
            $crate::__private::Raise { tool: $tool.spec(), tier: $crate::__private::Tier::$tier }
        ),*)?];
        const _: () = $crate::__private::check_catalogue::<{ $crate::__private::count(ENTRIES) }>(ENTRIES);
        $(const _: () = $crate::__private::check_groups(ENTRIES, &[$($group),*]);)?
        const _: () =
            $crate::__private::check_raises::<{ $crate::__private::count(ENTRIES) }>(ENTRIES, RAISES);
        $crate::catalogue::NativeCatalogue::__new(
            ENTRIES,
            RAISES,
            $crate::__private::Location {
                file: $crate::__private::file!(),
                line: $crate::__private::line!(),
                package: $crate::__private::env!("CARGO_PKG_NAME"),
            },
        )
    }};
}
