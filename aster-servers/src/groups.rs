//! The groups in which agents are given the tools of this crate.

aster_runtime::groups! {
    /// Finding things out.
    pub RESEARCH,
    /// The user's own computer.
    pub DESKTOP,
}
