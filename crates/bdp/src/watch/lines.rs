//! Scrolling lines, for an output without a terminal.

use bdp_model::watch::WatchInterval;
use bdp_report::{watch_heading, watch_lines};

use crate::exit::Outcome;
use crate::output;

/// Printer of the lines.
pub struct Lines {
    most: usize,
    headed: bool,
}

impl Lines {
    /// Creates it for at most this many sockets per interval.
    pub fn new(most: usize) -> Self {
        Self { most, headed: false }
    }

    /// Prints an interval.
    pub fn show(&mut self, interval: &WatchInterval) -> Outcome {
        for note in &interval.notes {
            output::note(&format!("bdp: {note}"));
        }
        let heading = if self.headed { String::new() } else { watch_heading() };
        self.headed = true;
        output::print(&(heading + &watch_lines(interval, self.most, &output::style())))
    }
}
