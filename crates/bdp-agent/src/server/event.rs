//! Events of a server.

use std::net::SocketAddr;

use bdp_model::units::Nanos;

/// An event of a running server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A session began.
    Began {
        /// The session's number, from 1.
        session: u32,
        /// The client's address.
        peer: SocketAddr,
        /// The client's program and version: `bdp 0.1.0`.
        program: String,
    },
    /// A session ended.
    Ended {
        /// The session's number.
        session: u32,
        /// The client's address.
        peer: SocketAddr,
        /// Duration of the session.
        took: Nanos,
        /// Number of its flows.
        flows: u32,
        /// Why it ended, if the client did not simply leave after its work.
        why: Option<String>,
    },
    /// A setting of this host was changed for a client, reverted, confirmed, or the request was refused.
    Tuned {
        /// The session's number.
        session: u32,
        /// The client's address.
        peer: SocketAddr,
        /// What was done, in one line.
        what: String,
    },
    /// A client was refused.
    TurnedAway {
        /// The client's address.
        peer: SocketAddr,
        /// The reason.
        why: String,
    },
    /// More sessions began than are logged one by one.
    BeganMore {
        /// Number of sessions.
        count: u64,
        /// Time span of the count.
        within: Nanos,
    },
    /// The log was not read for a while.
    LinesDropped {
        /// Number of dropped lines.
        count: u64,
    },
    /// The server is asked to stop.
    Ending {
        /// The cause.
        by: String,
    },
    /// More clients were refused than are logged one by one.
    TurnedAwayMore {
        /// Number of clients.
        count: u64,
        /// Time span of the count.
        within: Nanos,
    },
}
