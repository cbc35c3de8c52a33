//! `bdp calc slowstart`.

use bdp_model::path::slow_start::{Growth, INITIAL_WINDOW_SEGMENTS, reach_window};
use bdp_model::path::window;
use bdp_model::{ByteCount, Nanos, Rate};
use serde_json::json;

use super::answer::{Answer, MSS_BYTES, mss, positive};
use super::table::columns;
use crate::{absurd, exit};

pub const AFTER_HELP: &str = "\
Formula: the window starts at 10 segments (RFC 6928) and doubles each round trip (RFC 5681, section
3.1, bytes counted as in RFC 3465), so it takes ceil(log2(window / 10)) round trips. With
--delayed-ack it grows by half: one segment per ACK, and one ACK per two segments.
The window for a rate is rate x RTT / 8. Loss, or a sender that leaves slow start early
(HyStart, RFC 9406), makes it longer. The handshake adds one round trip.

Example: bdp calc slowstart --rate 100M --rtt 173ms
         8 round trips, 1.384 s: skip the first 2 s of a measurement (--omit 2)";

/// Arguments of `bdp calc slowstart`.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("target").required(true)))]
pub struct SlowStartArgs {
    /// Rate to reach, for example 100M
    #[arg(long, value_parser = positive::<Rate>, group = "target")]
    rate: Option<Rate>,

    /// Window to reach (instead of --rate), for example 2M
    #[arg(long, value_parser = positive::<ByteCount>, group = "target")]
    window: Option<ByteCount>,

    /// Round trip, for example 173ms
    #[arg(long, value_parser = positive::<Nanos>)]
    rtt: Nanos,

    /// Payload bytes of a full segment
    #[arg(long, value_parser = mss, value_name = "BYTES", default_value = MSS_BYTES)]
    mss: u64,

    /// Initial window in segments
    #[arg(long, value_name = "N", default_value_t = INITIAL_WINDOW_SEGMENTS, value_parser = clap::value_parser!(u64).range(1..=65535))]
    initial_window: u64,

    /// The receiver delays ACKs and the sender counts ACKs, not bytes
    #[arg(long)]
    delayed_ack: bool,
}

impl SlowStartArgs {
    /// Calculates round trips, time, and the bytes that the full rate would have sent.
    pub fn answer(self) -> anyhow::Result<Answer> {
        absurd::note_time("--rtt", self.rtt);
        absurd::note_rate("--rate", self.rate);
        let Some(window) = self.window_to_reach() else {
            return Err(exit::usage("the rate's window is more than 16 EiB: give a smaller rate or RTT"));
        };
        let segments = window.as_bytes().div_ceil(self.mss);
        let growth = if self.delayed_ack { Growth::PerDelayedAck } else { Growth::PerSegment };
        let start = reach_window(self.initial_window, segments, self.rtt, growth);
        let bytes = |segments: u128| u64::try_from(segments * u128::from(self.mss)).ok();
        let missed =
            Nanos::from_secs_f64(start.missed_segments as f64 / segments as f64 * self.rtt.as_secs_f64());
        let rows = [
            ["window", &format!("{window} = {segments} segments of {} B", self.mss)],
            ["reached", &format!("{} round trips after the handshake, {}", start.round_trips, start.time)],
            ["sent by then", &format!("{} segments", start.sent_segments)],
            ["missed", &format!("{} segments, or {missed} at the full rate", start.missed_segments)],
        ];
        Ok(Answer {
            text: columns(&rows.map(|row| row.map(str::to_owned)), &[]),
            json: json!({
                "rate_bps": self.rate.map(Rate::as_bps),
                "rtt_ns": self.rtt.as_ns(),
                "mss_bytes": self.mss,
                "initial_window_segments": self.initial_window,
                "window_bytes": window.as_bytes(),
                "window_segments": segments,
                "round_trips": start.round_trips,
                "time_ns": start.time.as_ns(),
                "sent_bytes": bytes(start.sent_segments),
                "missed_bytes": bytes(start.missed_segments),
            }),
        })
    }

    /// The window given, or that of the rate given; `None` if it exceeds a number of bytes.
    fn window_to_reach(&self) -> Option<ByteCount> {
        match (self.window, self.rate) {
            (Some(window), _) => Some(window),
            (None, Some(rate)) => window::bytes_in_flight(rate, self.rtt),
            (None, None) => None,
        }
    }
}
