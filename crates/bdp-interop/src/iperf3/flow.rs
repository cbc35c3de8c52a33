//! One direction of a test, over connections or of datagrams.

use bdp_model::measurement::Direction;
use bdp_model::units::Nanos;
use bdp_sys::tcp_info::TcpInfo;

use super::outcome::Outcome;
use super::{tcp, udp};
use bdp_flow::background::Passed;
use bdp_flow::error::FlowError;

/// A flow that runs.
pub(crate) enum Flow {
    /// Over TCP.
    Connections(tcp::Flow),
    /// Over UDP.
    Datagrams(udp::Flow),
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
    pub(crate) fn way(&self) -> Direction {
        if self.sends() { Direction::To } else { Direction::From }
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

    /// What the kernel reports of each connection that is sent over from here.
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
    /// says so.
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
    pub(crate) fn finish(&mut self) -> Result<Outcome, FlowError> {
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
