//! One line on standard error while a measurement goes on, on a terminal alone.

use std::io::IsTerminal;

use bdp_flow::session::progress::{Progress, Stage};
use bdp_model::measurement::Direction;
use bdp_model::units::{Nanos, format_bps, significant};
use bdp_run::Event;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output;

/// The line, or elsewhere a line for each of several runs.
pub struct Live {
    bar: Option<ProgressBar>,
    runs: u32,
}

impl Live {
    /// For so many runs.
    pub fn new(runs: u32) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(100);
            let style = ProgressStyle::with_template("{prefix}{msg}  [{bar:24}]");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
            bar
        });
        Self { bar, runs }
    }

    /// Shows what there is to tell.
    pub fn show(&mut self, event: &Event<'_>) {
        match (event, &self.bar) {
            (Event::Progress { repetition, progress }, Some(bar)) if !progress.is_last => {
                if self.runs > 1 {
                    bar.set_prefix(format!("{repetition}/{}  ", self.runs));
                }
                bar.set_message(line(progress));
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

    /// Takes the line away.
    pub fn end(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn line(progress: &Progress) -> String {
    let stage = match progress.stage {
        Stage::Connecting => return "connecting".to_owned(),
        Stage::Idle => "idle".to_owned(),
        Stage::Direction(way) => arrow(way).to_owned(),
        Stage::Both => "<->".to_owned(),
        Stage::Trial(way) => format!("{} trial", arrow(way)),
        Stage::Experiment(way, [one, other]) => format!(
            "{} {:.0} s more to tell {} from {}",
            arrow(way),
            progress.total.as_secs_f64(),
            bdp_report::limit_noun(one),
            bdp_report::limit_noun(other)
        ),
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
