//! The catalogue of this crate is consistent, and what is reviewed of it is committed.
#![cfg(all(feature = "web", feature = "shortcuts"))]

aster_runtime::catalogue_tests!(aster_servers::CATALOGUE);
