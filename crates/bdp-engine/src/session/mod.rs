//! A measurement between two machines over bdp's own protocol (`docs/protocol.md`).
//!
//! [`measure`] is the end that asks, [`server`] the one that serves. The client opens every connection.

pub(crate) mod client;
pub(crate) mod deadline;
pub mod dial;
pub mod download;
mod error;
pub mod login;
pub mod server;

use std::fmt;
use std::sync::atomic::AtomicBool;

use bdp_model::measurement::{MeasureRequest, Measurement, Way};
use bdp_model::units::Nanos;
use bdp_sys::tcp_info::TcpInfo;

pub use crate::meter::ArrivalReading;
pub use error::SessionError;

/// What a server may want to know before it serves.
#[derive(Clone, Default)]
pub struct Credentials {
    /// The token that the server printed; it is never sent, only proven.
    pub token: Option<String>,
    /// Who this is to a server of iperf3's protocol that serves users alone.
    pub login: Option<login::ClientLogin>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("token", &self.token.as_ref().map(|_| "..."))
            .field("login", &self.login)
            .finish()
    }
}

/// How far a measurement is, for one live line. Comes about every [`MeasureRequest::interval`], but not more often than
/// every 100 ms.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What is going on.
    pub stage: Stage,
    /// Since the stage began.
    pub elapsed: Nanos,
    /// How long the stage is meant to take; zero where that is not known.
    pub total: Nanos,
    /// Over how long the goodput is one; `None` where that is since the report before.
    pub span: Option<Nanos>,
    /// Goodput since the report before, bit/s, of each direction that runs; as the near end sees it.
    pub goodput_bps: Vec<(Way, f64)>,
    /// The same of each stream, in order of connection; empty where that is not told.
    pub stream_goodput_bps: Vec<(Way, Vec<f64>)>,
    /// What this end's kernel tells of each stream that it sends, as of the last sample; of TCP alone.
    pub sender_infos: Vec<(Way, Vec<TcpInfo>)>,
    /// What came so far of each stream of datagrams that this end receives.
    pub arrivals: Vec<(Way, Vec<ArrivalReading>)>,
    /// The stage is over: nothing is told but `sender_infos`, as they were last.
    pub is_last: bool,
    /// The last round trip of the probe flow.
    pub rtt_ns: Option<u64>,
}

/// A part of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Finding and greeting the server.
    Connecting,
    /// The round trip without load.
    Idle,
    /// One direction under load; where both run at once, [`Stage::Both`].
    Direction(Way),
    /// Both directions under load.
    Both,
    /// A trial of a search for the highest rate without loss.
    Trial(Way),
}

/// Measures as requested. Fills everything but `findings`, `ceiling` and `label`, and says 1 for `repetition`.
///
/// Blocks until the end; `progress` is called from this thread. `cancel` ends it within a second.
pub fn measure(
    request: &MeasureRequest,
    credentials: &Credentials,
    progress: &mut dyn FnMut(&Progress),
    cancel: &AtomicBool,
) -> Result<Measurement, SessionError> {
    client::measure(request, credentials, progress, cancel)
}
