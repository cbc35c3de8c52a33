//! One direction of a test, over connections or of datagrams, and what came of it.

use bdp_model::measurement::Way;
use bdp_model::units::Nanos;
use bdp_sys::tcp_info::TcpInfo;
use bdp_wire::control::{Received, Sent};
use bdp_wire::iperf3::{StreamResults, stream_id};

use super::{tcp, udp};
use bdp_flow::background::Passed;
use bdp_flow::datagram::StreamTally;
use bdp_flow::error::EngineError;

/// From one reading of a flow to the next, at a server: no client asks for any.
pub(crate) const INTERVAL: Nanos = Nanos::millis(100);

/// A flow that runs.
pub(crate) enum Flow {
    /// Over TCP.
    Connections(tcp::Flow),
    /// Over UDP.
    Datagrams(udp::Flow),
}

/// What a flow came to.
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
    /// All that the engine tells.
    pub(crate) end: End,
}

impl Outcome {
    /// Whether this end was to receive and nothing came.
    pub(crate) fn is_empty_handed(&self) -> bool {
        matches!(&self.end, End::Received(received) if received.bytes == 0)
    }
}

impl Flow {
    /// Whether this end sends.
    pub(crate) fn sends(&self) -> bool {
        match self {
            Self::Connections(flow) => flow.sends(),
            Self::Datagrams(flow) => flow.sends(),
        }
    }

    /// Its direction, where this end is the client.
    pub(crate) fn way(&self) -> Way {
        if self.sends() { Way::To } else { Way::From }
    }

    /// Bytes so far.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Connections(flow) => flow.work.bytes(),
            Self::Datagrams(flow) => flow.work.bytes(),
        }
    }

    /// What it has moved since this was asked last.
    pub(crate) fn moved_since(&mut self) -> Passed {
        match self {
            Self::Connections(flow) => flow.work.moved_since(),
            Self::Datagrams(flow) => flow.work.moved_since(),
        }
    }

    /// What the kernel tells of each connection that is sent over from here.
    pub(crate) fn sender_infos(&self) -> Vec<TcpInfo> {
        match self {
            Self::Connections(flow) => flow.work.sender_infos(),
            Self::Datagrams(_) => Vec::new(),
        }
    }

    /// Whether the engine has nothing more to do.
    pub(crate) fn is_finished(&self) -> bool {
        match self {
            Self::Connections(flow) => flow.work.is_finished(),
            Self::Datagrams(flow) => flow.work.is_finished(),
        }
    }

    /// The omit is over: what counts begins here. Who can knows by itself.
    pub(crate) fn begin_counting(&mut self) {
        if let Self::Connections(flow) = self {
            flow.begin_counting();
        }
    }

    /// How long what was given to the kernel may still be on its way; `None` where that is not known yet. Of datagrams nobody
    /// tells.
    pub(crate) fn last_on_its_way(&self) -> Option<Nanos> {
        match self {
            Self::Connections(flow) => flow.last_on_its_way(),
            Self::Datagrams(_) => Some(Nanos::ZERO),
        }
    }

    /// Nothing more is sent, and what was received until now counts to this moment at least.
    pub(crate) fn note_end(&mut self) {
        match self {
            Self::Connections(flow) => flow.note_end(),
            Self::Datagrams(flow) => flow.note_end(),
        }
    }

    /// The test is over: ends it as of now. Who receives datagrams goes on, since some may be under way.
    pub(crate) fn wind_down(&mut self) {
        match self {
            Self::Connections(flow) => flow.stop(),
            Self::Datagrams(flow) if flow.sends() => flow.stop(),
            Self::Datagrams(_) => {}
        }
    }

    /// Waits for what is under way when the other end has said that it sends no more.
    pub(crate) fn settle(&self) {
        if let Self::Datagrams(flow) = self
            && !flow.sends()
        {
            flow.settle();
        }
    }

    /// Waits for the engine's end; connections stay.
    pub(crate) fn finish(&mut self) -> Result<Outcome, EngineError> {
        match self {
            Self::Connections(flow) => flow.finish(),
            Self::Datagrams(flow) => flow.finish(),
        }
    }

    /// Closes the sending half of each connection: a receiver that waits for the rest of a block waits no longer.
    pub(crate) fn close(&self) {
        if let Self::Connections(flow) = self {
            flow.close();
        }
    }

    /// Takes what still comes over connections and counts it no more, so that the other end does not wait for room. Never
    /// waits itself.
    pub(crate) fn drain(&self) {
        if let Self::Connections(flow) = self {
            flow.drain();
        }
    }
}

/// What an end tells of the streams of a test, in their order: the client's, then the server's.
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
