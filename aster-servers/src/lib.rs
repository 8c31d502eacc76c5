//! The native tool servers of Aster, each behind a feature of its own:
//!
//! | feature | server | tools | for |
//! |---|---|---|---|
//! | `web` | `web::SERVER` | `extract` | reading pages of the public web |
//! | `shortcuts` | `shortcuts::SERVER` | `list`, `run` | the user's Apple Shortcuts (macOS) |
//!
//! Both are on by default. A server is a thin annotated type over plain functions, which can be used and tested
//! without a model. A program that wants them lists them beside its own:
//!
//! ```
//! use aster_runtime::{catalogue, catalogue::NativeCatalogue};
//!
//! # #[cfg(all(feature = "web", feature = "shortcuts"))]
//! const CATALOGUE: NativeCatalogue = catalogue![aster_servers::web::SERVER, aster_servers::shortcuts::SERVER];
//! # fn main() {}
//! ```

pub mod groups;
#[cfg(feature = "shortcuts")]
pub mod shortcuts;
#[cfg(feature = "web")]
pub mod web;

use aster_runtime::catalogue::NativeCatalogue;

/// Every server of this crate that its features switch on.
pub const CATALOGUE: NativeCatalogue = NativeCatalogue {
    entries: &[
        #[cfg(feature = "web")]
        aster_runtime::Entry::Server(web::SERVER),
        #[cfg(feature = "shortcuts")]
        aster_runtime::Entry::Server(shortcuts::SERVER),
    ],
    ..NativeCatalogue::EMPTY
};
