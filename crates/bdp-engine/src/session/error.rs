//! Why a session came to nothing, each in one line with the way out.

use std::net::SocketAddr;

use bdp_model::units::Nanos;
use bdp_wire::session::Refusal;

use crate::EngineError;

/// Why a measurement could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// What was asked for can't be done by anybody.
    #[error("{0}")]
    Request(String),
    /// The name leads to no address.
    #[error("find host '{host}': {cause}; check the name, or give its address")]
    NoSuchHost {
        /// As given.
        host: String,
        /// The resolver's answer.
        cause: String,
    },
    /// The host refused the connection: nothing listens there.
    #[error(
        "connect to {address}: refused, the host is there and nothing listens on the port; start 'bdp serve' on it"
    )]
    Refused {
        /// Where.
        address: SocketAddr,
    },
    /// Nothing came back.
    #[error(
        "connect to {address}: no answer within {deadline}; is the host up, and does a firewall let TCP port {port} through?",
        port = address.port()
    )]
    NoAnswer {
        /// Where.
        address: SocketAddr,
        /// How long was waited.
        deadline: Nanos,
    },
    /// There is no way to it.
    #[error(
        "connect to {address}: no route ({cause}); check the address, and this machine's routes and firewall"
    )]
    NoRoute {
        /// Where.
        address: SocketAddr,
        /// The system's answer.
        cause: String,
    },
    /// The peer is there and does not speak bdp.
    #[error("{address} does not speak bdp's protocol: {what}; is it another program's port?")]
    NotBdp {
        /// Where.
        address: SocketAddr,
        /// What came instead.
        what: String,
    },
    /// The peer speaks another version.
    #[error(
        "{address} speaks version {theirs} of bdp's protocol, this bdp speaks {ours}; install the same bdp at both ends"
    )]
    Version {
        /// Where.
        address: SocketAddr,
        /// Its version.
        theirs: u8,
        /// This one's.
        ours: u8,
    },
    /// The peer refused the session or what it was asked.
    #[error("{address} refused: {refusal}")]
    Denied {
        /// Where.
        address: SocketAddr,
        /// Why.
        refusal: Refusal,
    },
    /// The peer could not do what it was asked.
    #[error("{address} could not: {error}")]
    Far {
        /// Where.
        address: SocketAddr,
        /// Its words.
        error: String,
    },
    /// The peer went away.
    #[error("{address} went away while {doing} (did it end, or the path break?); run it again")]
    Lost {
        /// Where.
        address: SocketAddr,
        /// What was going on.
        doing: &'static str,
    },
    /// The peer fell silent.
    #[error(
        "{address} is connected and says nothing while {doing}; is it bdp (iperf3 has the same port), and is the machine alive?"
    )]
    Silent {
        /// Where.
        address: SocketAddr,
        /// What was going on.
        doing: &'static str,
    },
    /// This end could not do its part.
    #[error(transparent)]
    Near(#[from] EngineError),
    /// The cancel flag was raised.
    #[error("cancelled before its end")]
    Cancelled,
}

impl SessionError {
    /// Whether the request was wrong, rather than the environment.
    pub fn is_request(&self) -> bool {
        matches!(self, Self::Request(_))
    }
}

impl From<bdp_sys::SysError> for SessionError {
    fn from(error: bdp_sys::SysError) -> Self {
        Self::Near(error.into())
    }
}
