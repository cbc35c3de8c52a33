//! One of several streams, as its sender's kernel counted it.

use serde::{Deserialize, Serialize};

use crate::finding::Limit;

/// What the sender's kernel counted of a stream, from its beginning to the end of the flow. Absent fields are ones that it did not return.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StreamReport {
    /// How long the flow had gone on then.
    pub took_ns: u64,
    /// Bytes acknowledged.
    pub acked_bytes: Option<u64>,
    /// Retransmitted segments.
    pub retransmits: Option<u64>,
    /// Smoothed round trip, at the end.
    pub srtt_ns: Option<u64>,
    /// Congestion window in segments, at the end.
    pub cwnd: Option<u32>,
    /// Time with data to send or in flight.
    pub busy_ns: Option<u64>,
    /// Of that, limited by the receive window.
    pub rwnd_limited_ns: Option<u64>,
    /// Of that, limited by the send buffer.
    pub sndbuf_limited_ns: Option<u64>,
    /// What held the stream back for half of the time or more, where that is of its own: a program or a window. Null where nothing of its own did: then the
    /// finding of the whole flow is the stream's, too.
    #[serde(default)]
    pub limit: Option<Limit>,
}

/// By what a stream was held back, as its sender's kernel counts it: shares of the time, which add up to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamTime {
    /// There was nothing to send, and nothing in flight.
    pub idle: f64,
    /// The receive window was full.
    pub receive_window: f64,
    /// The send buffer was.
    pub send_buffer: f64,
    /// The rest: the congestion window, or a rate that the sender keeps to.
    pub congestion_window: f64,
}

impl StreamReport {
    /// Shares of the time; `None` where the kernel counts none.
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
