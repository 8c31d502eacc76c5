//! The log on standard error, in which no secret stands, whoever writes it.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::{LazyLock, PoisonError, RwLock};

use aster_runtime::gate::secrets::{Redactor, Severity};
#[cfg(feature = "otel")]
use aster_runtime::otel::Spans;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

/// What is logged, and where else calls are told of.
#[must_use = "what is left is sent at the end"]
pub(crate) struct Log {
    #[cfg(feature = "otel")]
    spans: Option<Spans>,
}

/// Begins to log what `ASTER_LOG` says and, where it can, to send the spans of calls where the variables of OpenTelemetry say.
pub(crate) fn start() -> Log {
    let filter = filter(std::env::var("ASTER_LOG").ok().as_deref());
    let lines = tracing_subscriber::fmt::layer().with_writer(|| Discreet).with_filter(filter);
    let registry = tracing_subscriber::registry().with(lines);
    #[cfg(feature = "otel")]
    {
        let (spans, problem) = match Spans::from_env("aster") {
            Ok(spans) => (spans, None),
            Err(problem) => (None, Some(problem)),
        };
        registry.with(spans.as_ref().map(Spans::layer)).init();
        if let Some(problem) = problem {
            tracing::error!("{problem}");
        }
        Log { spans }
    }
    #[cfg(not(feature = "otel"))]
    {
        registry.init();
        Log {}
    }
}

impl Log {
    /// Sends what is left.
    pub(crate) fn end(self) {
        #[cfg(feature = "otel")]
        if let Some(spans) = self.spans {
            spans.close();
        }
    }
}

/// What is logged: errors unless the variable says otherwise. The SDK logs whole messages, and in them what servers say of
/// themselves, so that below a warning it is heard only where it is named. An answer to a client that is gone is an error to
/// it, and to nobody else.
fn filter(said: Option<&str>) -> EnvFilter {
    let said = said.unwrap_or("error,rmcp::service=off");
    let filter = EnvFilter::try_new(said).unwrap_or_else(|_| EnvFilter::new("error"));
    let louder = filter.max_level_hint().is_none_or(|level| level > LevelFilter::WARN);
    match louder && !said.contains("rmcp") {
        true => EnvFilter::try_new(format!("{said},rmcp=warn")).unwrap_or(filter),
        false => filter,
    }
}

/// What is kept out of the log: whatever looks like a secret, and once a configuration has been read its values.
static SECRETS: LazyLock<RwLock<Redactor>> = LazyLock::new(|| RwLock::new(redactor(&[])));

fn redactor(values: &[&str]) -> Redactor {
    Redactor::new(values).with_formats(Severity::Medium)
}

/// Keeps these values out of the log from now on, instead of those that were named before.
pub(crate) fn keep_out<'a>(values: impl IntoIterator<Item = &'a String>) {
    let values: Vec<&str> = values.into_iter().map(String::as_str).collect();
    *SECRETS.write().unwrap_or_else(PoisonError::into_inner) = redactor(&values);
}

/// A text for standard error.
pub(crate) fn without_secrets(text: &str) -> Cow<'_, str> {
    SECRETS.read().unwrap_or_else(PoisonError::into_inner).redact(text)
}

/// Standard error without secrets. An event is written at once, so that none is cut in two.
struct Discreet;

impl Write for Discreet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        io::stderr().lock().write_all(without_secrets(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sdk_is_heard_where_it_is_named() {
        for (said, expected) in [
            (None, "rmcp::service=off,error"),
            (Some("info"), "rmcp=warn,info"),
            (Some("aster_runtime=debug"), "aster_runtime=debug,rmcp=warn"),
            (Some("warn"), "warn"),
            (Some("info,rmcp=debug"), "rmcp=debug,info"),
            (Some("=="), "error"),
        ] {
            assert_eq!(filter(said).to_string(), expected, "{said:?}");
        }
    }
}
