//! Progress on standard error, where a person would see it.

use std::sync::Arc;
use std::time::Duration;

use aster_runtime::catalogue::{Catalogue, Health};
use aster_runtime::text::one_line;
use aster_runtime::tool::ClientLink;
use aster_runtime::{Host, LogLevel};
use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::render::Output;

const TICK: Duration = Duration::from_millis(100);

/// Waits until no server is starting any more, and shows which still are.
pub(crate) async fn settle(host: &Host, limit: Duration, output: Output) {
    let starting = |catalogue: &Catalogue| {
        let servers = catalogue.servers().iter().filter(|server| server.health == Health::Starting);
        servers.map(|server| server.name.clone()).collect::<Vec<_>>()
    };
    if starting(&host.catalogue()).is_empty() {
        return;
    }
    let spinner = spinner(output);
    spinner.enable_steady_tick(TICK);
    let mut changes = host.changes();
    let shown = async {
        loop {
            let waiting = starting(&changes.borrow_and_update());
            if !waiting.is_empty() {
                spinner.set_message(one_line(&format!("starting {}", waiting.join(", ")), 70));
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        _ = host.settle(limit) => {}
        () = shown => {}
    }
    spinner.finish_and_clear();
}

fn spinner(output: Output) -> ProgressBar {
    if output.shows_progress() {
        ProgressBar::new_spinner()
    } else {
        ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden())
    }
}

/// What a tool says while it runs.
pub(crate) struct CallProgress {
    spinner: ProgressBar,
    output: Output,
}

impl CallProgress {
    pub(crate) fn new(output: Output) -> Arc<Self> {
        Arc::new(Self { spinner: spinner(output), output })
    }

    pub(crate) fn finish(&self) {
        self.spinner.finish_and_clear();
    }
}

impl ClientLink for CallProgress {
    fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let of = total.map(|total| format!(" of {total}")).unwrap_or_default();
        let message = one_line(message.unwrap_or_default(), 60);
        self.spinner.set_message(format!("{done}{of} {message}"));
        self.spinner.tick();
    }

    fn log(&self, level: LogLevel, message: &str) {
        if level >= LogLevel::Warning {
            let message = one_line(message, 500);
            self.spinner.suspend(|| self.output.note(message));
        }
    }
}
