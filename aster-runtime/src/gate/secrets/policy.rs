//! What is done about secrets in calls and in their results.

use serde_json::{Map, Value};

use super::{Places, Redactor, Severity, kinds};
use crate::text;

/// What becomes of a call whose arguments hold a secret. The last is the strictest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outgoing {
    /// It is made as it is.
    Allow,
    /// It is made without the secret.
    Redact,
    /// It is denied.
    #[default]
    Block,
}

impl Outgoing {
    /// The word for it in a configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Redact => "redact",
            Self::Block => "block",
        }
    }
}

/// What becomes of a secret in a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Incoming {
    /// It is replaced, and the result says so.
    #[default]
    Redact,
    /// It is passed on.
    Allow,
}

/// What is looked for in calls and their results, and what is done about it.
///
/// Looked for are the values that the host was given as secrets, and whatever has the format of one. A configured secret is
/// nothing that a model could need: the server that needs it has it from its configuration. So no call may carry one, not
/// even one to that server, which could be made to send it on; and where a server repeats its own, the model is not shown
/// it.
///
/// ```
/// use aster_runtime::gate::secrets::{Outgoing, SecretPolicy, Severity};
///
/// let policy = SecretPolicy::default().outgoing(Outgoing::Redact).least(Severity::High).except(["google-api-key"])?;
/// # Ok::<(), aster_runtime::gate::secrets::UnknownKind>(())
/// ```
#[derive(Debug, Clone)]
pub struct SecretPolicy {
    pub(crate) outgoing: Outgoing,
    pub(crate) incoming: Incoming,
    least: Severity,
    except: Vec<&'static str>,
    redactor: Redactor,
}

impl Default for SecretPolicy {
    /// Calls are blocked, results redacted, from [`Severity::Medium`] on.
    fn default() -> Self {
        Self {
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            least: Severity::Medium,
            except: Vec::new(),
            redactor: Redactor::default().with_formats(Severity::Medium),
        }
    }
}

/// A name that is none of a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no format of secrets is called `{0}`")]
pub struct UnknownKind(String);

impl SecretPolicy {
    /// Sets what becomes of calls.
    #[must_use]
    pub fn outgoing(self, outgoing: Outgoing) -> Self {
        Self { outgoing, ..self }
    }

    /// Sets what becomes of results.
    #[must_use]
    pub fn incoming(self, incoming: Incoming) -> Self {
        Self { incoming, ..self }
    }

    /// Sets from which severity on a format counts.
    #[must_use]
    pub fn least(self, least: Severity) -> Self {
        Self { least, ..self }.renewed()
    }

    /// Adds formats that do not count.
    ///
    /// # Errors
    ///
    /// Where none is called so; [`kinds`] has the names.
    pub fn except<I>(mut self, names: I) -> Result<Self, UnknownKind>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        for name in names {
            let name = name.as_ref();
            let kind = kinds().find(|kind| *kind == name);
            self.except.push(kind.ok_or_else(|| UnknownKind(text::one_line(name, 64)))?);
        }
        Ok(self.renewed())
    }

    fn renewed(mut self) -> Self {
        self.redactor = self.redactor.with_formats(self.least).except(&self.except);
        self
    }

    /// The same, which also looks for these values.
    #[must_use]
    pub(crate) fn known<S: AsRef<str>>(self, values: impl IntoIterator<Item = S>) -> Self {
        Self { redactor: Redactor::new(values), ..self }.renewed()
    }

    /// Where the arguments of a call hold secrets.
    pub(crate) fn find(&self, arguments: &Map<String, Value>) -> Places {
        self.redactor.scan(arguments)
    }

    /// What it looks with.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// From which severity on a format is kept out of records: a lower one than Medium where calls are judged by that.
    pub(crate) fn least_recorded(&self) -> Severity {
        self.least.min(Severity::Medium)
    }

    /// The object without secrets, and where they were; `None` where there are none.
    pub(crate) fn redact(&self, object: &Map<String, Value>) -> Option<(Map<String, Value>, Places)> {
        self.redactor.redact_object(object)
    }
}
