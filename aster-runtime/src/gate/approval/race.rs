//! Several approvers at once.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::{Approval, ApprovalRequest, Approver};
use crate::tool::ClientLink;

/// Asks several approvers at once. The first clear answer counts, yes or no, and the other questions are taken back. One
/// that has nobody to ask leaves it to the others.
///
/// ```
/// use std::sync::Arc;
///
/// use aster_runtime::Host;
/// use aster_runtime::gate::approval::{ClientApprover, Desk, Race};
///
/// let desk = Arc::new(Desk::default());
/// let race = Race::new([Arc::new(ClientApprover::new(["claude-code"])) as _, Arc::clone(&desk) as _]);
/// let host = Host::builder().approver(Arc::new(race));
/// # let _ = host;
/// ```
pub struct Race(Vec<Arc<dyn Approver>>);

impl Race {
    /// Asks these. Without any, nobody can be asked.
    pub fn new(approvers: impl IntoIterator<Item = Arc<dyn Approver>>) -> Self {
        Self(Vec::from_iter(approvers))
    }
}

impl Approver for Race {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        self.ask_through(request, None)
    }

    fn ask_through<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        client: Option<&'a Arc<dyn ClientLink>>,
    ) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let asked = self.0.iter().map(|approver| approver.ask_through(request, client));
            let mut asked = FuturesUnordered::from_iter(asked);
            let mut hints = Vec::new();
            while let Some(answer) = asked.next().await {
                match answer {
                    Approval::Unasked { hint } => hints.extend(hint),
                    clear => return clear,
                }
            }
            Approval::Unasked { hint: (!hints.is_empty()).then(|| hints.join(", or ")) }
        })
    }

    fn keeps_client_waiting(&self) -> bool {
        self.0.iter().any(|approver| approver.keeps_client_waiting())
    }
}
