//! One module per command: it gathers, judges, and hands a report to the renderer.

pub(crate) mod init;
pub(crate) mod trust;
