//! Display during the probes: a line for each on standard output, or one line on standard error, on a terminal only.

use std::io::IsTerminal;

use bdp_agent::ping::{PingProgress, SHORTEST_SHOWN};
use bdp_model::probes::ping::PingRequest;
use bdp_model::units::Nanos;
use bdp_report::probe_line;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output;

/// The display.
pub struct Live {
    /// The request, if each probe has a line.
    scrolling: Option<PingRequest>,
    printed: bool,
    bar: Option<ProgressBar>,
    count: Option<u64>,
    duration: Option<Nanos>,
}

impl Live {
    /// Creates the display of a request; `each` prints a line for each probe, unless they are too many to read.
    pub fn new(request: &PingRequest, each: bool) -> Self {
        let scrolling = (each && request.interval >= SHORTEST_SHOWN).then(|| request.clone());
        let bar = (scrolling.is_none() && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(1000);
            let style = ProgressStyle::with_template("{msg}  [{bar:24}]");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
            bar
        });
        Self { scrolling, printed: false, bar, count: request.count, duration: request.duration }
    }

    /// Shows the progress.
    pub fn show(&mut self, progress: &PingProgress) {
        if let Some(request) = &self.scrolling {
            let lines: String = progress.settled.iter().map(|sample| probe_line(request, sample)).collect();
            // A reader that closes early is no reason to stop.
            self.printed |= !lines.is_empty() && output::print(&lines).is_ok();
        }
        let Some(bar) = &self.bar else { return };
        let share = match (self.count, self.duration) {
            (Some(count), _) => progress.sent as f64 / count as f64,
            (None, Some(duration)) => progress.elapsed.as_secs_f64() / duration.as_secs_f64(),
            (None, None) => 0.0,
        };
        bar.set_position((share * 1000.0).min(1000.0) as u64);
        bar.set_message(line(progress));
    }

    /// Removes the line, or separates the lines from what follows.
    pub fn end(&mut self) {
        if self.printed {
            let _ = output::print("\n");
        }
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
