//! Reads pages of the public web.

mod html;
pub mod page;
