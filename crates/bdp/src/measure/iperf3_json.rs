//! `--format iperf3-json`: what went by while it ran, for the document at the end.

use bdp_flow::session::progress::{Progress, Stage};
use bdp_model::measurement::Measurement;
use bdp_model::units::Nanos;
use bdp_report::{Intervals, Part, Piece, SenderReading, iperf3_error, iperf3_json};
use bdp_run::measure::{MeasureEvent, MeasurePlan};
use bdp_sys::tcp_info::TcpInfo;

use crate::output;

/// The intervals of a measurement that goes on.
pub struct Log {
    intervals: Intervals,
    /// Up to when there are some.
    at_ns: u64,
}

impl Log {
    /// Of a plan with one run, with intervals of this length.
    pub fn new(plan: &MeasurePlan, interval: Nanos) -> Self {
        Self { intervals: Intervals::new(interval.as_ns(), plan.request.omit.as_ns()), at_ns: 0 }
    }

    /// Takes what there is to tell.
    pub fn note(&mut self, event: &MeasureEvent<'_>) {
        let MeasureEvent::Progress(_, progress) = event else { return };
        if progress.is_last {
            let readings = |(way, infos): &(_, Vec<TcpInfo>)| (*way, infos.iter().map(reading).collect());
            self.intervals.note_last(progress.sender_infos.iter().map(readings).collect());
            return;
        }
        let now_ns = progress.elapsed.as_ns();
        if !matches!(progress.stage, Stage::Direction(_) | Stage::Both) || now_ns <= self.at_ns {
            return;
        }
        let span_ns = progress.span.map_or(now_ns - self.at_ns, Nanos::as_ns);
        let parts = parts(progress, span_ns as f64 / 1e9);
        self.intervals.add(Piece { from_ns: self.at_ns, to_ns: now_ns, parts });
        self.at_ns = now_ns;
    }

    /// Prints the document of what was measured, or of why there is nothing.
    pub fn print(self, measured: &[Measurement], error: Option<&anyhow::Error>) -> anyhow::Result<()> {
        let document = match (measured.first(), error) {
            (Some(measurement), _) => iperf3_json(measurement, self.intervals),
            (None, Some(error)) => iperf3_error(&system(), &output::tame(&error.to_string())),
            (None, None) => return Ok(()),
        };
        output::print(&format!("{document:#}\n")).map(drop)
    }
}

/// What each direction moved in so many seconds.
fn parts(progress: &Progress, seconds: f64) -> Vec<Part> {
    let directions = progress.goodput_bps.iter();
    let part = |&(way, bps): &(_, f64)| {
        let streams =
            progress.stream_goodput_bps.iter().find(|(of, streams)| *of == way && !streams.is_empty());
        let senders = progress.sender_infos.iter().find(|(of, _)| *of == way);
        let bytes = |bps: f64| (bps * seconds / 8.0).round();
        Part {
            way,
            stream_bytes: match streams {
                Some((_, streams)) => streams.iter().copied().map(bytes).collect(),
                None => vec![bytes(bps)],
            },
            senders: senders.map_or_else(Vec::new, |(_, infos)| infos.iter().map(reading).collect()),
        }
    };
    directions.map(part).collect()
}

fn reading(info: &TcpInfo) -> SenderReading {
    SenderReading {
        retransmits: info.total_retrans.map_or(0, u64::from),
        cwnd_bytes: u64::from(info.cwnd_segments.unwrap_or(0)) * u64::from(info.snd_mss.unwrap_or(0)),
        window_bytes: info.snd_wnd.map_or(0, u64::from),
        rtt_ns: info.rtt_ns.unwrap_or(0),
        rtt_variation_ns: info.rtt_variation_ns.unwrap_or(0),
        path_mtu: info.pmtu.map_or(0, u64::from),
        reorder_seen: info.reorder_seen.map_or(0, u64::from),
    }
}

/// This machine, as the document names it.
fn system() -> String {
    format!(
        "Linux {} {} {}",
        bdp_sys::device::host_name(),
        bdp_sys::process::kernel_release(),
        std::env::consts::ARCH
    )
}
