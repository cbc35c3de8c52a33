//! The outcome of one direction of a test.

use bdp_model::units::Nanos;
use bdp_wire::control::{Received, Sent};
use bdp_wire::iperf3::{StreamResults, stream_id};

use bdp_flow::datagram::StreamTally;

/// Interval of readings at a server: no client requests one.
pub(crate) const INTERVAL: Nanos = Nanos::millis(100);

/// The engine's report of a flow.
pub(crate) enum End {
    /// At the end that sent.
    Sent(Sent),
    /// At the end that received.
    Received(Received),
}

/// One stream's counts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct StreamCount {
    /// Bytes after the omitted beginning.
    pub(crate) bytes: u64,
    /// Segments retransmitted after the omitted beginning; none for a receiver.
    pub(crate) retransmits: Option<u64>,
    /// Counts of datagrams.
    pub(crate) tally: StreamTally,
}

/// The outcome of a flow.
pub(crate) struct Outcome {
    /// Counts in order of the streams.
    pub(crate) streams: Vec<StreamCount>,
    /// Duration that counted.
    pub(crate) counted: Nanos,
    /// Congestion control of the first stream.
    pub(crate) congestion: Option<String>,
    /// The engine's full report.
    pub(crate) end: End,
}

impl Outcome {
    /// Whether this end was to receive and nothing arrived.
    pub(crate) fn is_empty_handed(&self) -> bool {
        matches!(&self.end, End::Received(received) if received.bytes == 0)
    }
}

/// Returns an end's results of a test's streams, in order: the client's, then the server's.
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
