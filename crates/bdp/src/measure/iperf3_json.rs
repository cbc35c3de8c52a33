//! `--format iperf3-json`: collects events during the measurement, for the document at the end.

use bdp_flow::session::progress::Stage;
use bdp_model::measurement::Measurement;
use bdp_model::plain::in_words;
use bdp_model::units::Nanos;
use bdp_report::{Intervals, iperf3_error, iperf3_json};
use bdp_run::Event;
use bdp_run::measure::MeasurePlan;
use bdp_sys::tcp_info::TcpInfo;

use super::pieces::{Pieces, reading};
use crate::output;

/// The intervals of a running measurement.
pub struct Log {
    intervals: Intervals,
    pieces: Pieces,
}

impl Log {
    /// Creates the log of a plan with one run, with intervals of this length.
    pub fn new(plan: &MeasurePlan, interval: Nanos) -> Self {
        let intervals = Intervals::new(interval.as_ns(), plan.request.spec.omit.as_ns());
        Self { intervals, pieces: Pieces::default() }
    }

    /// Notes an event.
    pub fn note(&mut self, event: &Event<'_>) {
        let Event::Progress { progress, .. } = event else { return };
        if matches!(progress.stage, Stage::Trial(_) | Stage::Experiment(..)) {
            return;
        }
        if progress.is_last {
            let readings = |(way, infos): &(_, Vec<TcpInfo>)| (*way, infos.iter().map(reading).collect());
            self.intervals.note_last(progress.sender_infos.iter().map(readings).collect());
            return;
        }
        if let Some(piece) = self.pieces.next(progress) {
            self.intervals.add(piece);
        }
    }

    /// Prints the document of the measurement, or of the error.
    pub fn print(self, measured: &[Measurement], error: Option<&anyhow::Error>) -> anyhow::Result<()> {
        let document = match (measured.first(), error) {
            (Some(measurement), _) => iperf3_json(measurement, self.intervals),
            (None, Some(error)) => iperf3_error(&system(), &output::tame(&in_words(&error.to_string()))),
            (None, None) => return Ok(()),
        };
        output::print(&format!("{document:#}\n")).map(drop)
    }
}

/// Describes this machine for the document.
fn system() -> String {
    format!(
        "Linux {} {} {}",
        bdp_sys::device::host_name(),
        bdp_sys::process::kernel_release(),
        std::env::consts::ARCH
    )
}
