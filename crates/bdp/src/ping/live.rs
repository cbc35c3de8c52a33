//! One line on standard error while probes are under way, on a terminal alone.

use std::io::IsTerminal;

use bdp_agent::ping::PingProgress;
use bdp_model::ping::PingRequest;
use bdp_model::units::Nanos;
use indicatif::{ProgressBar, ProgressStyle};

/// The line.
pub struct Live {
    bar: Option<ProgressBar>,
    count: Option<u64>,
    duration: Option<Nanos>,
}

impl Live {
    /// For a request.
    pub fn new(request: &PingRequest) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(1000);
            let style = ProgressStyle::with_template("{msg}  [{bar:24}]");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
            bar
        });
        Self { bar, count: request.count, duration: request.duration }
    }

    /// Shows how far it is.
    pub fn show(&mut self, progress: &PingProgress) {
        let Some(bar) = &self.bar else { return };
        let share = match (self.count, self.duration) {
            (Some(count), _) => progress.sent as f64 / count as f64,
            (None, Some(duration)) => progress.elapsed.as_secs_f64() / duration.as_secs_f64(),
            (None, None) => 0.0,
        };
        bar.set_position((share * 1000.0).min(1000.0) as u64);
        bar.set_message(line(progress));
    }

    /// Takes the line away.
    pub fn end(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn line(progress: &PingProgress) -> String {
    let mut line = format!("{} sent, {} answered", progress.sent, progress.received);
    if let Some(rtt) = progress.rtt_ns {
        line.push_str(&format!(", the last after {}", Nanos(rtt)));
    }
    line
}
