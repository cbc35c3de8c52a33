//! One of several streams, as counted by its sender's kernel.

use serde::{Deserialize, Serialize};

use crate::finding::Limit;

/// Counters of a stream from the sender's kernel, from the start to the end of the flow. Fields that it did not return are absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StreamReport {
    /// Duration of the flow up to the reading.
    pub took_ns: u64,
    /// Bytes acknowledged.
    pub acked_bytes: Option<u64>,
    /// Retransmitted segments.
    pub retransmits: Option<u64>,
    /// Smoothed round trip at the end.
    pub srtt_ns: Option<u64>,
    /// Congestion window at the end, in segments.
    pub cwnd: Option<u32>,
    /// Busy time: data to send or in flight.
    pub busy_ns: Option<u64>,
    /// Busy time limited by the receive window.
    pub rwnd_limited_ns: Option<u64>,
    /// Busy time limited by the send buffer.
    pub sndbuf_limited_ns: Option<u64>,
    /// The program or window of this stream that held it back for at least half of the time. Null if there is none: the finding of the
    /// whole flow then applies to the stream too.
    #[serde(default)]
    pub limit: Option<Limit>,
}

/// What held a stream back, as counted by its sender's kernel: shares of the time that add up to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamTime {
    /// Nothing to send and nothing in flight.
    pub idle: f64,
    /// Receive window full.
    pub receive_window: f64,
    /// Send buffer full.
    pub send_buffer: f64,
    /// The rest: limited by the congestion window, or paced.
    pub congestion_window: f64,
}

impl StreamReport {
    /// Returns the shares of the time; `None` if the kernel does not count them.
    pub fn time(&self) -> Option<StreamTime> {
        let took = self.took_ns.max(1) as f64;
        let share = |ns: u64| (ns as f64 / took).clamp(0.0, 1.0);
        let (busy, rwnd, sndbuf) =
            (share(self.busy_ns?), share(self.rwnd_limited_ns?), share(self.sndbuf_limited_ns?));
        Some(StreamTime {
            idle: 1.0 - busy,
            receive_window: rwnd,
            send_buffer: sndbuf,
            congestion_window: (busy - rwnd - sndbuf).max(0.0),
        })
    }
}
