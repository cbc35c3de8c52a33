//! Every loop: measurements, round trips and sweeps between machines, cases of the lab; each a [`job::Job`].
//!
//! Between machines: [`mod@measure`], [`sweep`], [`mod@ping`], [`path`], by whatever protocol the other end speaks ([`session`]). On the lab:
//! [`lab`] enters a run and goes on with it, [`schedule`] decides what runs beside what, repeats, and makes each record durable
//! before the next case.
#![forbid(unsafe_code)]

pub mod baseline;
mod calibrate;
mod capture;
mod capture_pairs;
mod care;
pub mod case_key;
mod case_record;
mod case_runner;
mod case_session;
mod claim;
pub mod compare;
pub mod conformance;
mod document;
mod event;
pub mod exec;
mod exec_stage;
pub mod explain;
pub mod fix;
pub mod guest;
mod guest_calls;
mod guest_exec;
pub mod guest_program;
mod guest_seat;
pub mod host_settings;
pub mod job;
mod kept;
pub mod lab;
pub mod measure;
mod observe;
mod pair;
mod passage;
pub mod path;
pub mod pcap;
pub mod ping;
mod probing;
mod programs;
mod refine;
pub mod rehearse;
pub mod schedule;
pub mod selftest;
pub mod session;
mod share;
pub mod ssh;
mod stage;
mod stepped;
pub mod sweep;
pub mod tuning;
mod turn;
pub mod twin;
mod verdict;
pub mod watch;
mod window;

pub use capture::{CaptureOrder, asks_for_captures};
pub use event::{EVENT_SCHEMA, Event};

/// What a run comes to.
pub type Result<T, E = RunError> = std::result::Result<T, E>;

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The lab could not be built.
    #[error(transparent)]
    Lab(#[from] bdp_lab::LabError),
    /// A workload failed.
    #[error(transparent)]
    Engine(#[from] bdp_flow::error::FlowError),
    /// A measurement between two machines came to nothing.
    #[error(transparent)]
    Session(#[from] bdp_flow::session::error::SessionError),
    /// A record could not be kept; what was measured is handed back beside it.
    #[error(transparent)]
    Store(#[from] bdp_store::Error),
    /// Another process works on the run that was to be resumed.
    #[error("run {run} is in progress in another bdp process; wait for it to end, or stop it")]
    Claimed {
        /// Its id.
        run: String,
    },
    /// The request was wrong.
    #[error("{0}")]
    Request(String),
    /// Not one probe came back.
    #[error("{0}")]
    Unanswered(String),
    /// Sockets that can't be watched.
    #[error("{0}")]
    Watch(String),
    /// A capture that can't be read.
    #[error("{0}")]
    Capture(String),
    /// The system refused.
    #[error(transparent)]
    System(#[from] bdp_sys::SysError),
    /// The case asks for something that can't be done.
    #[error("{0}")]
    Case(String),
}
