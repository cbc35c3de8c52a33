//! What happens on a server.

use std::net::SocketAddr;

use bdp_model::units::Nanos;

/// What happens while a server runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A session began.
    Began {
        /// Which, from 1.
        session: u32,
        /// The client.
        peer: SocketAddr,
        /// What the client is, with its version: `bdp 0.1.0`.
        program: String,
    },
    /// A session ended.
    Ended {
        /// Which.
        session: u32,
        /// The client.
        peer: SocketAddr,
        /// How long it took.
        took: Nanos,
        /// Flows that it ran.
        flows: u32,
        /// Why, where the client did not just leave after its work.
        why: Option<String>,
    },
    /// A setting of this host was changed for a client, put back, confirmed, or that was refused.
    Tuned {
        /// Which session.
        session: u32,
        /// The client.
        peer: SocketAddr,
        /// What was done, in a line.
        what: String,
    },
    /// Somebody was not let in.
    TurnedAway {
        /// Who.
        peer: SocketAddr,
        /// Why.
        why: String,
    },
    /// More sessions began than are logged one by one.
    BeganMore {
        /// Number of sessions.
        count: u64,
        /// Within how long.
        within: Nanos,
    },
    /// Nobody read the log for a while.
    LinesDropped {
        /// Lines that found no room meanwhile.
        count: u64,
    },
    /// The server is asked to end.
    Ending {
        /// By what.
        by: String,
    },
    /// More were not let in than are logged one by one.
    TurnedAwayMore {
        /// How many.
        count: u64,
        /// Within how long.
        within: Nanos,
    },
}
