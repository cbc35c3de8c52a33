//! The outcome of one direction of a test.

use bdp_model::units::Nanos;
use bdp_wire::control::{Received, Sent};
use bdp_wire::iperf3::{StreamResults, stream_id};

use bdp_flow::datagram::StreamTally;

/// From one reading of a flow to the next, at a server: no client asks for any.
pub(crate) const INTERVAL: Nanos = Nanos::millis(100);

/// What the engine reports of a flow.
pub(crate) enum End {
    /// At the end that sent.
    Sent(Sent),
    /// At the end that received.
    Received(Received),
}

/// One stream's part.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct StreamCount {
    /// Bytes after omit.
    pub(crate) bytes: u64,
    /// Segments sent again after omit; nothing of a receiver.
    pub(crate) retransmits: Option<u64>,
    /// Of datagrams.
    pub(crate) tally: StreamTally,
}

/// The outcome of a flow.
pub(crate) struct Outcome {
    /// In order of the streams.
    pub(crate) streams: Vec<StreamCount>,
    /// How long it was counted.
    pub(crate) counted: Nanos,
    /// Congestion control of the first stream.
    pub(crate) congestion: Option<String>,
    /// All that the engine reports.
    pub(crate) end: End,
}

impl Outcome {
    /// Whether this end was to receive and nothing came.
    pub(crate) fn is_empty_handed(&self) -> bool {
        matches!(&self.end, End::Received(received) if received.bytes == 0)
    }
}

/// What an end reports of the streams of a test, in their order: the client's, then the server's.
pub(crate) fn results(outcomes: &[Outcome]) -> Vec<StreamResults> {
    let streams = outcomes.iter().flat_map(|outcome| outcome.streams.iter().map(|s| (s, outcome.counted)));
    streams
        .enumerate()
        .map(|(index, (stream, counted))| StreamResults {
            id: stream_id(index),
            bytes: stream.bytes,
            retransmits: stream.retransmits,
            jitter_s: stream.tally.jitter_ns / 1e9,
            errors: stream.tally.missing,
            omitted_errors: stream.tally.omitted_missing,
            packets: stream.tally.datagrams,
            omitted_packets: stream.tally.omitted,
            start_s: 0.0,
            end_s: counted.as_secs_f64(),
        })
        .collect()
}
