//! Jobs of all kinds: measurements, round trips and sweeps between machines, and cases of the lab; each is a
//! [`job::Job`].
//!
//! Between machines: [`mod@measure`], [`sweep`], [`probes`], by whatever protocol the other end speaks
//! ([`measure::session`]). On the lab: [`lab`] creates or resumes a run, [`lab::schedule`] decides what runs in parallel, repeats
//! cases, and makes each record durable before the next case.
#![forbid(unsafe_code)]

pub mod case;
pub mod compare;
pub mod exec;
pub mod guest;
pub mod job;
pub mod lab;
pub mod measure;
pub mod pcap;
pub mod probes;
pub mod selftest;
pub mod sweep;
pub mod tuning;
pub mod twin;
pub mod visit;
pub mod watch;

use bdp_agent::client::TuneError;
use bdp_flow::session::error::SessionError;
use measure::ssh::SshError;

pub use case::capture::{CaptureOrder, asks_for_captures};
pub use job::event::{EVENT_SCHEMA, Event, Journals, Question, Stage};

/// The result of a run.
pub type Result<T, E = RunError> = std::result::Result<T, E>;

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The lab could not be built.
    #[error(transparent)]
    Lab(#[from] bdp_lab::LabError),
    /// A workload failed.
    #[error(transparent)]
    Engine(#[from] bdp_flow::error::FlowError),
    /// A measurement between two machines failed.
    #[error(transparent)]
    Session(#[from] bdp_flow::session::error::SessionError),
    /// The far end could not be started by ssh.
    #[error(transparent)]
    Ssh(#[from] SshError),
    /// Settings of this host could not be changed, or not put back.
    #[error("{doing}: {refusal}")]
    Tune {
        /// What was being done.
        doing: &'static str,
        /// Why not.
        refusal: Box<bdp_tune::Refusal>,
    },
    /// Settings of the far end could not be changed, or not put back.
    #[error("{doing}: {error}")]
    TuneFar {
        /// What was being done.
        doing: &'static str,
        /// Why not.
        error: Box<TuneError>,
    },
    /// A record could not be stored; the measured results are returned alongside.
    #[error(transparent)]
    Store(#[from] bdp_store::Error),
    /// Another process works on the run to resume.
    #[error("run {run} is in progress in another bdp process; wait for it to end, or stop it")]
    Claimed {
        /// The run's id.
        run: String,
    },
    /// The request was invalid.
    #[error("{0}")]
    Request(String),
    /// No probe was answered.
    #[error("{0}")]
    Unanswered(String),
    /// Sockets could not be watched.
    #[error("{0}")]
    Watch(String),
    /// A capture could not be read.
    #[error("{0}")]
    Capture(String),
    /// A system call failed.
    #[error(transparent)]
    System(#[from] bdp_sys::SysError),
    /// The case asks for something impossible.
    #[error("{0}")]
    Case(String),
}

impl RunError {
    /// Whether it only says that the job was cancelled.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Session(SessionError::Cancelled) | Self::Ssh(SshError::Cancelled))
    }

    /// Whether the request itself is wrong, whatever the machines and the path are like.
    pub fn is_request(&self) -> bool {
        match self {
            Self::Request(_) => true,
            Self::Session(error) => error.is_request(),
            Self::Tune { refusal, .. } => refusal.is_of_request(),
            Self::TuneFar { error, .. } => error.is_of_request(),
            _ => false,
        }
    }
}
