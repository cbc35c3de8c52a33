//! What a visitor sees while a direction runs.

use serde::Serialize;

/// The state of a visit at a moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LiveReading {
    /// `idle`, `down`, `up` or `done`.
    pub stage: &'static str,
    /// Time since the stage began.
    pub elapsed_ns: u64,
    /// Bytes received from the browser in this stage.
    pub received_bytes: u64,
    /// Bytes that the browser's kernel acknowledged in this stage.
    pub acked_bytes: u64,
    /// The connections with a transfer.
    pub connections: Vec<LiveConnection>,
    /// Why the visit was ended; null while it goes on.
    pub ended: Option<String>,
}

/// One connection by the server's `TCP_INFO`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct LiveConnection {
    /// Rate of the last readings.
    pub goodput_bps: f64,
    /// Smoothed round trip.
    pub rtt_ns: Option<u64>,
    /// Smallest round trip.
    pub min_rtt_ns: Option<u64>,
    /// Congestion window, segments.
    pub cwnd: Option<u32>,
    /// Receive window of the browser, bytes.
    pub snd_wnd: Option<u32>,
    /// Segments in flight.
    pub unacked: Option<u32>,
    /// Segments retransmitted in this stage.
    pub retransmits: Option<u32>,
    /// Round trip as the server's receiver estimates it.
    pub rcv_rtt_ns: Option<u64>,
}
