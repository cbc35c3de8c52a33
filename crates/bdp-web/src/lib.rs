//! The page of bdp on one's own machine: what the command line can do, over HTTP on loopback.
//!
//! The page sends command lines; [`Host`] turns each into a job of `bdp-run` and runs it. This crate carries jobs,
//! their events and stored runs, decides who may ask ([`door`]), and computes nothing. It is the only crate with an
//! async runtime.
#![forbid(unsafe_code)]

mod api;
mod assets;
pub mod door;
mod event_log;
mod jobs;
mod origin;
mod server;
mod visit;

use std::sync::atomic::AtomicBool;

use bdp_run::job::{Job, Outcome};
use bdp_run::{Event, Question};
use serde::Serialize;
use serde_json::Value;

pub use door::Door;
pub use server::{Server, serve};
pub use visit::Visitors;

/// The program that shows the page: it parses command lines, runs jobs and keeps runs.
pub trait Host: Send + Sync + 'static {
    /// What the page shows of this machine and its store.
    fn about(&self) -> Result<Value, Refused>;
    /// The commands of the page and their options, for its form.
    fn commands(&self) -> Value;
    /// Turns the words of a command line, without `bdp`, into a job.
    fn job(&self, words: &[String]) -> Result<Asked, Refused>;
    /// Runs a job to its end. Called on a thread of its own.
    fn run(
        &self,
        asked: Asked,
        watch: &mut dyn FnMut(Event<'_>),
        answer: &mut dyn FnMut(&Question<'_>) -> bool,
        cancel: &AtomicBool,
    ) -> Outcome;
    /// An event as its readers get it.
    fn event(&self, event: &Event<'_>) -> Value {
        event.to_json()
    }
    /// A page of the stored runs, newest first.
    fn runs(&self, selection: &RunSelection) -> Result<Value, Refused>;
    /// The document of a stored run, as printed by `bdp show --json`.
    fn run_document(&self, run: &str) -> Result<String, Refused>;
    /// The HTML report of a stored run.
    fn report(&self, run: &str) -> Result<String, Refused>;
    /// A stored run as CSV.
    fn csv(&self, run: &str) -> Result<String, Refused>;
    /// Removes a stored run.
    fn remove(&self, run: &str) -> Result<(), Refused>;
}

/// A job with the command that requests it.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The command line, to be pasted in a shell.
    pub command: String,
    /// The job.
    pub job: Job,
}

/// Which stored runs to return.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSelection {
    /// Only runs whose id, host, label, kind or command contains this text, whatever its case.
    #[serde(default)]
    pub search: String,
    /// Only runs older than the one with this id.
    pub before: Option<String>,
    /// Maximum number of runs.
    #[serde(default = "RunSelection::most")]
    pub most: usize,
}

impl RunSelection {
    const fn most() -> usize {
        50
    }
}

/// A request that was refused, with the sentence that says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Who can mend it.
    pub kind: RefusedBy,
    /// What failed, on what, why, and what to do.
    pub message: String,
}

/// What refused a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusedBy {
    /// The request is wrong.
    Usage,
    /// What it asks for is not there.
    Missing,
    /// Who asks may not.
    Access,
    /// Another job is running.
    Busy,
    /// Permission, peer or a part is missing.
    Environment,
    /// bdp has a bug.
    Bug,
}

impl Refused {
    /// A refusal.
    pub fn new(kind: RefusedBy, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}
