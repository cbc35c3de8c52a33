//! One line on standard error during a measurement, on a terminal only.

use std::io::IsTerminal;

use bdp_flow::session::progress::{Progress, Stage};
use bdp_model::measurement::Direction;
use bdp_model::units::{Nanos, format_bps, significant};
use bdp_run::Event;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output;

/// Template with text and bar, and the bar's width.
const WITH_BAR: &str = "{msg}  [{bar:24}]";
const WITHOUT_BAR: &str = "{msg}";
const BAR_COLUMNS: usize = 28;

/// The line; without a terminal, a line for each of several runs.
pub struct Live {
    bar: Option<ProgressBar>,
    runs: u32,
}

impl Live {
    /// Creates it for this many runs.
    pub fn new(runs: u32) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(100);
            bar.set_style(style(WITH_BAR));
            bar
        });
        Self { bar, runs }
    }

    /// Shows an event.
    pub fn show(&mut self, event: &Event<'_>) {
        match (event, &self.bar) {
            (Event::Progress { repetition, progress }, Some(bar)) if !progress.is_last => {
                let run = if self.runs > 1 { format!("{repetition}/{}  ", self.runs) } else { String::new() };
                let width = usize::from(output::style().width);
                let (text, template) = fitting(run + &line(progress), width);
                bar.set_style(style(template));
                bar.set_message(text);
                let share = progress.elapsed.as_secs_f64() / progress.total.as_secs_f64().max(1e-9);
                bar.set_position(if progress.total == Nanos::ZERO {
                    0
                } else {
                    (share * 100.0).min(100.0) as u64
                });
            }
            (Event::MeasurementEnded { measurement, .. }, None) if self.runs > 1 => {
                let goodputs: Vec<String> = measurement
                    .directions
                    .iter()
                    .map(|d| format!("{} {}", arrow(d.direction), format_bps(d.goodput_bps)))
                    .collect();
                output::note(&format!("{}/{}  {}", measurement.repetition, self.runs, goodputs.join("  ")));
            }
            _ => {}
        }
    }

    /// Removes the line.
    pub fn end(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.end();
    }
}

/// A line that wraps is not overwritten by the next one: dropped are first the bar, then the last figures.
fn fitting(text: String, width: usize) -> (String, &'static str) {
    match text.chars().count() {
        length if length + BAR_COLUMNS < width => (text, WITH_BAR),
        length if length < width => (text, WITHOUT_BAR),
        _ => match text.rsplit_once("  ") {
            Some((text, _)) => fitting(text.to_owned(), width),
            None => (text.chars().take(width.saturating_sub(1)).collect(), WITHOUT_BAR),
        },
    }
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template);
    style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
}

fn line(progress: &Progress) -> String {
    let stage = match progress.stage {
        Stage::Connecting => return "connecting".to_owned(),
        Stage::Idle => "idle".to_owned(),
        Stage::Direction(way) => arrow(way).to_owned(),
        Stage::Both => "<->".to_owned(),
        Stage::Trial(way) => format!("{} trial", arrow(way)),
        Stage::Experiment(way, limits) => {
            let [one, other] = limits.map(|limit| limit.noun().trim_start_matches("the "));
            format!("{} experiment: {one} or {other}?", arrow(way))
        }
    };
    let seconds = |time: Nanos| format!("{:.1}", time.as_secs_f64());
    let mut line = match progress.total {
        Nanos::ZERO => format!("{stage}  {} s", seconds(progress.elapsed)),
        total => format!("{stage}  {}/{} s", seconds(progress.elapsed.min(total)), seconds(total)),
    };
    for (way, goodput) in &progress.goodput_bps {
        let which = if progress.goodput_bps.len() > 1 { format!("{} ", arrow(*way)) } else { String::new() };
        line.push_str(&format!("  {which}{}", format_bps(*goodput)));
    }
    if let Some(rtt) = progress.rtt_ns {
        line.push_str(&format!("  RTT {} ms", significant(rtt as f64 / 1e6)));
    }
    line
}

const fn arrow(way: Direction) -> &'static str {
    match way {
        Direction::To => "->",
        Direction::From => "<-",
    }
}

#[cfg(test)]
mod tests {
    use bdp_model::finding::Limit;

    use super::*;

    #[test]
    fn a_line_is_never_as_wide_as_the_terminal() {
        let progress = Progress {
            stage: Stage::Experiment(Direction::To, [Limit::PathRate, Limit::Policer]),
            elapsed: Nanos::millis(500),
            total: Nanos::secs(2),
            span: None,
            goodput_bps: vec![(Direction::To, 45.93e6)],
            stream_goodput_bps: Vec::new(),
            sender_infos: Vec::new(),
            arrivals: Vec::new(),
            datagram_bytes: None,
            is_last: false,
            rtt_ns: Some(48_630_000),
        };
        let text = line(&progress);
        assert_eq!(
            text,
            "-> experiment: path's bottleneck or policer?  0.5/2.0 s  45.93 Mbit/s  RTT 48.63 ms"
        );
        assert_eq!(fitting(text.clone(), 120), (text.clone(), WITH_BAR));
        assert_eq!(fitting(text.clone(), 100), (text.clone(), WITHOUT_BAR));
        let without_rtt = "-> experiment: path's bottleneck or policer?  0.5/2.0 s  45.93 Mbit/s";
        assert_eq!(fitting(text.clone(), 80), (without_rtt.to_owned(), WITHOUT_BAR));
        assert_eq!(fitting(text, 40).0.chars().count(), 39);
    }
}
