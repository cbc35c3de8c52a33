//! One direction of a test, over connections or datagrams.

use bdp_model::measurement::Direction;
use bdp_model::units::Nanos;
use bdp_sys::tcp_info::TcpInfo;

use super::outcome::Outcome;
use super::{tcp, udp};
use bdp_flow::background::Passed;
use bdp_flow::error::FlowError;

/// A running flow.
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

    /// Returns its direction, if this end is the client.
    pub(crate) fn way(&self) -> Direction {
        if self.sends() { Direction::To } else { Direction::From }
    }

    /// Returns the bytes so far.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Connections(flow) => flow.work.bytes(),
            Self::Datagrams(flow) => flow.work.bytes(),
        }
    }

    /// Returns what it has moved since the previous call.
    pub(crate) fn moved_since(&mut self) -> Passed {
        match self {
            Self::Connections(flow) => flow.work.moved_since(),
            Self::Datagrams(flow) => flow.work.moved_since(),
        }
    }

    /// Returns the kernel's report of each connection that this end sends on.
    pub(crate) fn sender_infos(&self) -> Vec<TcpInfo> {
        match self {
            Self::Connections(flow) => flow.work.sender_infos(),
            Self::Datagrams(_) => Vec::new(),
        }
    }

    /// Whether the engine has finished.
    pub(crate) fn is_finished(&self) -> bool {
        match self {
            Self::Connections(flow) => flow.work.is_finished(),
            Self::Datagrams(flow) => flow.work.is_finished(),
        }
    }

    /// Notes that the omitted beginning is over and counting starts. Flows that know this themselves ignore it.
    pub(crate) fn begin_counting(&mut self) {
        if let Self::Connections(flow) = self {
            flow.begin_counting();
        }
    }

    /// Returns how long data given to the kernel may still be in flight; `None` if not yet known. Unknown for
    /// datagrams.
    pub(crate) fn last_on_its_way(&self) -> Option<Nanos> {
        match self {
            Self::Connections(flow) => flow.last_on_its_way(),
            Self::Datagrams(_) => Some(Nanos::ZERO),
        }
    }

    /// Stops sending; what was received until now counts at least up to this moment.
    pub(crate) fn note_end(&mut self) {
        match self {
            Self::Connections(flow) => flow.note_end(),
            Self::Datagrams(flow) => flow.note_end(),
        }
    }

    /// Ends a finished test now. A receiver of datagrams continues, since some may be in flight.
    pub(crate) fn wind_down(&mut self) {
        match self {
            Self::Connections(flow) => flow.stop(),
            Self::Datagrams(flow) if flow.sends() => flow.stop(),
            Self::Datagrams(_) => {}
        }
    }

    /// Waits for data in flight once the other end has said that it sends no more.
    pub(crate) fn settle(&self) {
        if let Self::Datagrams(flow) = self
            && !flow.sends()
        {
            flow.settle();
        }
    }

    /// Waits for the engine's end; connections stay open.
    pub(crate) fn finish(&mut self) -> Result<Outcome, FlowError> {
        match self {
            Self::Connections(flow) => flow.finish(),
            Self::Datagrams(flow) => flow.finish(),
        }
    }

    /// Closes the sending half of each connection, so that a receiver does not wait for the rest of a block.
    pub(crate) fn close(&self) {
        if let Self::Connections(flow) = self {
            flow.close();
        }
    }

    /// Discards further data from connections without counting it, so that the other end does not block. Never waits.
    pub(crate) fn drain(&self) {
        if let Self::Connections(flow) = self {
            flow.drain();
        }
    }
}
