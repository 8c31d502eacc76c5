//! Reads tokens into what was written. Nothing here decides whether it makes sense; only what cannot be read at all is
//! an error.

pub(crate) mod attr;
pub(crate) mod doc;
pub(crate) mod item;
pub(crate) mod source;
