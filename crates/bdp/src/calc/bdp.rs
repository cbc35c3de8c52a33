//! `bdp calc bdp`.

use bdp_model::path::window;
use bdp_model::{Nanos, Rate};
use serde_json::json;

use super::answer::{Answer, MSS_BYTES, mss, positive};
use super::table::{columns, digits};
use crate::{absurd, exit};

pub const AFTER_HELP: &str = "\
Formula: window = rate x RTT / 8, the bandwidth-delay product (RFC 7323, section 1.1), rounded up.
The window is the data in flight on the wire; socket buffers, often called windows, are larger.

Example: bdp calc bdp --rate 1G --rtt 2.55ms
         318750 B, 221 segments of 1448 B";

/// Arguments of `bdp calc bdp`.
#[derive(clap::Args)]
pub struct BdpArgs {
    /// Rate to sustain, for example 1G or 941.5Mbit/s
    #[arg(long, value_parser = positive::<Rate>)]
    rate: Rate,

    /// Round trip without queueing, for example 2.55ms
    #[arg(long, value_parser = positive::<Nanos>)]
    rtt: Nanos,

    /// Payload bytes of a full segment
    #[arg(long, value_parser = mss, value_name = "BYTES", default_value = MSS_BYTES)]
    mss: u64,
}

impl BdpArgs {
    /// Calculates the window.
    pub fn answer(self) -> anyhow::Result<Answer> {
        absurd::note_time("--rtt", self.rtt);
        absurd::note_rate("--rate", Some(self.rate));
        let Self { rate, rtt, mss } = self;
        let Some(window) = window::bytes_in_flight(rate, rtt) else {
            return Err(exit::usage(format!(
                "{rate} over {rtt} is more than 16 EiB: give a smaller rate or RTT"
            )));
        };
        let bytes = window.as_bytes();
        let segments = bytes.div_ceil(mss);
        let (kb, kib) = (bytes as f64 / 1000.0, bytes as f64 / 1024.0);
        let rows = [
            ["rate", &rate.to_string()],
            ["RTT", &rtt.to_string()],
            ["window", &format!("{bytes} B = {} kB = {} KiB", digits(kb, 5), digits(kib, 5))],
            ["segments", &format!("{segments} of {mss} B")],
        ];
        Ok(Answer {
            text: columns(&rows.map(|row| row.map(str::to_owned)), &[]),
            json: json!({
                "rate_bps": rate.as_bps(),
                "rtt_ns": rtt.as_ns(),
                "mss_bytes": mss,
                "window_bytes": bytes,
                "window_segments": segments,
            }),
        })
    }
}
