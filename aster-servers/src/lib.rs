//! The native tool servers of Aster.

#[cfg(feature = "web")]
pub mod web;
