//! One module per command: it gathers, judges, and hands a report to the renderer.

pub(crate) mod approve;
pub(crate) mod audit;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod describe;
pub(crate) mod init;
pub(crate) mod list;
pub(crate) mod policy;
pub(crate) mod scan;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod stats;
pub(crate) mod trust;
