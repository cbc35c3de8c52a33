//! `bdp calc rate`.

use bdp_model::case::Family;
use bdp_model::link::ETHERNET_OVERHEAD_BYTES;
use bdp_model::path::loss::SegmentLoss;
use bdp_model::path::overhead::{Transport, header_bytes};
use bdp_model::path::window::{Congestion, Path, WindowOnWire, expect_goodput, rate_bps};
use bdp_model::units::format_bps;
use bdp_model::{ByteCount, Nanos, Rate};
use serde_json::json;

use super::answer::{Answer, MSS_BYTES, mss, positive};
use super::table::columns;
use crate::{absurd, exit};

pub const AFTER_HELP: &str = "\
Formula: rate = W x 8 / RTT (RFC 7323, section 1.1), for each stream.
Expected: the rate of a real sender: whole segments, floor(W / MSS) x MSS x 8 / RTT. With --link,
RTT includes 2 x serialisation of a segment, and the link's rate less headers (Ethernet,
IPv4, TCP with timestamps) limits all streams together. With --clamped, a window below one
segment waits for Linux's persist timer (RFC 9293, section 3.8.6.1): 2 MSS per floor(2 MSS / W)
timers of 200 ms + 2 RTT.

Example: bdp calc rate --window 64K --rtt 173ms
         3.03 Mbit/s; expected 3.01 Mbit/s, 45 segments of 1448 B per 173 ms";

/// Arguments of `bdp calc rate`.
#[derive(clap::Args)]
pub struct RateArgs {
    /// Window on the wire of each stream, for example 64K or 64kB
    #[arg(long, value_parser = positive::<ByteCount>)]
    window: ByteCount,

    /// Round trip without queueing, for example 173ms
    #[arg(long, value_parser = positive::<Nanos>)]
    rtt: Nanos,

    /// Rate of the slowest link, for example 100M
    #[arg(long, value_parser = positive::<Rate>, value_name = "RATE")]
    link: Option<Rate>,

    /// Parallel streams
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), value_name = "N", default_value = "1")]
    streams: u32,

    /// Payload bytes of a full segment
    #[arg(long, value_parser = mss, value_name = "BYTES", default_value = MSS_BYTES)]
    mss: u64,

    /// The window was reduced on the path, after the handshake
    #[arg(long)]
    clamped: bool,
}

impl RateArgs {
    /// Calculates the rate, ideal and with a sender's overhead.
    pub fn answer(self) -> anyhow::Result<Answer> {
        absurd::note_time("--rtt", self.rtt);
        absurd::note_rate("--link", self.link);
        let path = Path {
            rate: self.link,
            overhead_bytes: u64::from(ETHERNET_OVERHEAD_BYTES),
            mss_bytes: self.mss,
            header_bytes: header_bytes(Family::Ipv4, Transport::TcpTimestamps),
            rtt: self.rtt,
            loss: SegmentLoss::None,
            congestion: Congestion::Unmodelled,
            sends_for: None,
        };
        let bytes = self.window.as_bytes();
        let window =
            if self.clamped { WindowOnWire::PathClamp(bytes) } else { WindowOnWire::Receiver(bytes) };
        let Some(expected) = expect_goodput(&path, &window, self.streams) else {
            return Err(exit::usage("the rate has no limit: give a longer RTT or the link's rate"));
        };
        let plain_bps = rate_bps(self.window, self.rtt) * f64::from(self.streams);
        let least = expected.range_from_bps();
        let least_text = least.map_or_else(String::new, |least| format!("{} to ", format_bps(least)));
        let range = format!("{least_text}{}", format_bps(expected.bps));
        let rows = [
            ["window", &format!("{bytes} B = {}", self.window)],
            ["RTT", &self.rtt.to_string()],
            ["streams", &self.streams.to_string()],
            ["W / RTT", &format_bps(plain_bps)],
            ["expected", &format!("{range} by {}", expected.by)],
        ];
        Ok(Answer {
            text: columns(&rows.map(|row| row.map(str::to_owned)), &[]),
            json: json!({
                "window_bytes": bytes,
                "streams": self.streams,
                "rtt_ns": self.rtt.as_ns(),
                "mss_bytes": self.mss,
                "link_bps": self.link.map(Rate::as_bps),
                "rate_bps": plain_bps,
                "expected_bps": expected.bps,
                "expected_least_bps": least,
                "expected_by": expected.by,
            }),
        })
    }
}
