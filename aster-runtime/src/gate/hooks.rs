//! Hooks in Rust: what a host lets look at a call before anything else decides.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::call::Proposed;
use crate::tool::JsonObject;

/// What a hook says of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Nothing against it.
    Continue,
    /// It must not run; why, for the model.
    Deny(String),
    /// It may run with these arguments; they are checked against the schema again.
    Rewrite(JsonObject),
}

/// Looks at every call before the other checks.
pub trait Hook: Send + Sync {
    /// Judges a call. A hook that panics denies.
    fn before<'a>(&'a self, call: &'a Proposed) -> BoxFuture<'a, Verdict>;
}

pub(super) async fn run(hook: &dyn Hook, call: &Proposed) -> Verdict {
    let verdict = AssertUnwindSafe(async { hook.before(call).await }).catch_unwind().await;
    verdict.unwrap_or_else(|_| Verdict::Deny("the hook failed".to_owned()))
}
