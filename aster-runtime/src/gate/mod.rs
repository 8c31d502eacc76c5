//! The gate: the one place that turns a proposed call into an admitted or a denied one.
//!
//! The order of its checks is [`admit`]'s body. Each check has a module of its own; `rules`, `egress` and `secrets`
//! are pure, so that what they decide can be tested without a runtime.

mod admit;
pub mod approval;
pub mod egress;
pub mod hooks;
pub mod limits;
pub(crate) mod real;
pub mod rules;
pub mod secrets;
mod withhold;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};

pub(crate) use admit::explain;
pub use admit::{Admitted, admit};
pub use withhold::WITHHELD;
pub(crate) use withhold::{bound, discreet, withhold, withhold_suggested};

use self::approval::Approver;
use self::egress::EgressPolicy;
use self::hooks::Hook;
use self::limits::Limits;
use self::rules::Rules;
use self::secrets::SecretPolicy;
pub use crate::call::{Check, Denied};

/// What the gate decides by.
#[derive(Clone)]
#[non_exhaustive]
pub struct Gate {
    /// Who may be asked about Restricted calls; with none they are denied.
    pub approver: Option<Arc<dyn Approver>>,
    /// How long a human may take to answer.
    pub approval_timeout: Duration,
    /// What the external servers are, by name: their command or URL, for whoever is asked.
    pub endpoints: HashMap<String, String>,
    /// Where the external servers run, by name, where that is not this process's directory: what is relative in their calls
    /// may be read from there.
    pub directories: HashMap<String, PathBuf>,
    /// What looks at every call first.
    pub hooks: Vec<Arc<dyn Hook>>,
    /// The rules, as they are now.
    pub rules: watch::Receiver<Arc<Rules>>,
    /// Where a call's URLs may lead.
    pub egress: EgressPolicy,
    /// How many calls may run at once, how many in a minute, and how large a result may be.
    pub limits: Limits,
    /// What becomes of secrets in calls and results.
    pub secrets: SecretPolicy,
    /// The places of calls that wait for a human: so many questions nobody reads, and each holds what it asks about.
    questions: Arc<Semaphore>,
    /// The tools as a human approved calls of them last.
    approved: approval::Seen,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            approver: None,
            approval_timeout: Duration::from_secs(300),
            endpoints: HashMap::new(),
            directories: HashMap::new(),
            hooks: Vec::new(),
            rules: watch::channel(Arc::default()).1,
            egress: EgressPolicy::default(),
            limits: Limits::default(),
            secrets: SecretPolicy::default(),
            questions: Arc::new(Semaphore::new(approval::MAX_WAITING)),
            approved: approval::Seen::default(),
        }
    }
}
