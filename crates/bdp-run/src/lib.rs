//! Cases in order or side by side: calibration, repetition of what was INVALID, resume.
//!
//! [`case_runner`] runs one case on a testbed of its own; [`calibrate`] finds the buffer that puts a window on the wire;
//! [`schedule`] decides what runs beside what, repeats, and makes each record durable before the next case.
//! [`mod@measure`] does the like between two machines.
#![forbid(unsafe_code)]

mod calibrate;
mod capture;
pub mod case_key;
mod case_record;
mod case_runner;
mod case_session;
mod claim;
mod event;
pub mod job;
pub mod lab;
pub mod measure;
mod observe;
mod pair;
mod passage;
mod probing;
mod refine;
pub mod schedule;
pub mod session;
mod share;
pub mod ssh;
mod stage;
pub mod sweep;
mod turn;
mod verdict;
mod window;

pub use capture::{CaptureOrder, asks_for_captures};
pub use event::Event;

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
    #[error("run {run} is still being run by another bdp; wait for it to end, or end it and come back")]
    Claimed {
        /// Its id.
        run: String,
    },
    /// The case asks for something that can't be done.
    #[error("{0}")]
    Case(String),
}
