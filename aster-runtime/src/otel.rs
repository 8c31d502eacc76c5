//! Calls as OpenTelemetry spans, sent to a collector over HTTP.
//!
//! Every call is a `tracing` span with or without this module (`docs/audit.md` has its fields): who called what, and what came
//! of it, and never arguments or results. Here is the way from there to a collector, as the variables of the
//! OpenTelemetry specification say: `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_HEADERS` and those beside them. Spans of
//! other libraries, which may hold whatever they like, are not sent.

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{
    ExporterBuildError, OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, SpanExporter,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

use crate::host::CALL_SPAN;

/// Sends the spans of calls to a collector.
///
/// ```no_run
/// use aster_runtime::otel::Spans;
/// use tracing_subscriber::layer::SubscriberExt as _;
/// use tracing_subscriber::util::SubscriberInitExt as _;
///
/// let spans = Spans::from_env("my-agent")?;
/// tracing_subscriber::registry().with(spans.as_ref().map(Spans::layer)).init();
/// // … the host is built, and serves …
/// if let Some(spans) = spans {
///     spans.close();
/// }
/// # Ok::<(), aster_runtime::otel::SpansError>(())
/// ```
#[derive(Debug)]
pub struct Spans {
    provider: SdkTracerProvider,
}

/// Why spans cannot be sent.
#[derive(Debug, thiserror::Error)]
#[error("spans cannot be sent to where the variables `OTEL_…` say: {0}")]
pub struct SpansError(#[from] ExporterBuildError);

impl Spans {
    /// What the environment says: to the collector at `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT`, as
    /// protobuf over HTTP, or nowhere where neither is set or `OTEL_SDK_DISABLED` is `true`. `service` is the name of the
    /// service, unless `OTEL_SERVICE_NAME` has another.
    ///
    /// # Errors
    ///
    /// Where the variables cannot be understood.
    pub fn from_env(service: &'static str) -> Result<Option<Self>, SpansError> {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let disabled = std::env::var("OTEL_SDK_DISABLED").is_ok_and(|said| said.eq_ignore_ascii_case("true"));
        let somewhere = [OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT];
        if disabled || !somewhere.into_iter().any(is_set) {
            return Ok(None);
        }
        let resource = Resource::builder();
        let resource =
            if is_set("OTEL_SERVICE_NAME") { resource } else { resource.with_service_name(service) };
        let exporter = SpanExporter::builder().with_http().build()?;
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.build())
            .with_batch_exporter(exporter)
            .build();
        Ok(Some(Self { provider }))
    }

    /// What takes the spans of calls, to be added to a subscriber.
    #[must_use]
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("aster"))
            .with_target(false)
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(Targets::new().with_target(CALL_SPAN, LevelFilter::INFO))
    }

    /// Sends what is left, which may take some seconds where the collector does not answer.
    pub fn close(self) {
        if let Err(error) = self.provider.shutdown() {
            tracing::warn!(%error, "the last spans were not sent");
        }
    }
}
