//! The page of bdp on one's own machine: what the command line can do, over HTTP on loopback.
//!
//! The page sends command lines; [`Host`] turns each into a job of `bdp-run` and runs it. This crate carries jobs,
//! their events and stored runs, decides who may ask ([`door`]), and computes nothing. It is the only crate with an
//! async runtime.
#![forbid(unsafe_code)]

mod api;
mod assets;
mod captures;
pub mod door;
mod event_log;
mod jobs;
mod origin;
mod server;
mod shared;
mod upload;
mod visit;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bdp_run::Event;
use bdp_run::job::{Ended, Job, Outcome};
use serde::Serialize;
use serde_json::Value;

pub use captures::{Capture, Captures};
pub use door::Door;
pub use server::{Server, serve};
pub use visit::Visitors;

/// The program that shows the page: it parses command lines, runs jobs and keeps runs.
pub trait Host: Send + Sync + 'static {
    /// What the page shows of this machine and its store.
    fn about(&self) -> Result<Value, Refused>;
    /// The commands of the page and their options, for its form.
    fn commands(&self) -> Value;
    /// Turns a command line into a job.
    fn job(&self, order: Order, captures: &Captures) -> Result<Asked, Refused>;
    /// What a command that answers at once prints with `--json`.
    fn answer(&self, order: Order) -> Result<Value, Refused>;
    /// What a path would carry with other parameters.
    fn what_if(&self, wish: Value) -> Result<Value, Refused>;
    /// The command of a job that runs this in the lab.
    fn what_if_in_lab(&self, wish: Value) -> Result<Value, Refused>;
    /// Runs a job to its end, and passes on each event, and each question, as its readers get it. Called on a thread
    /// of its own.
    fn run(
        &self,
        asked: Asked,
        watch: &mut dyn FnMut(Event<'_>, Value),
        answer: &mut dyn FnMut(Value) -> bool,
        cancel: &AtomicBool,
    ) -> JobResult;
    /// A page of the stored runs, newest first; nobody waits for it any more once `cancel` is raised.
    fn runs(&self, selection: &RunSelection, cancel: &AtomicBool) -> Result<Value, Refused>;
    /// The document of a stored run, as printed by `bdp show --json`.
    fn run_document(&self, run: &str) -> Result<String, Refused>;
    /// The HTML report of a stored run.
    fn report(&self, run: &str) -> Result<String, Refused>;
    /// A stored run as CSV.
    fn csv(&self, run: &str) -> Result<String, Refused>;
    /// Removes a stored run.
    fn remove(&self, run: &str) -> Result<(), Refused>;
}

/// A command line that the page sends.
pub struct Order {
    /// Its words, without `bdp`.
    pub words: Vec<String>,
    /// What must not be seen in a command line.
    pub secrets: Secrets,
    /// Whether who asks is at this machine, and so may change its settings.
    pub is_local: bool,
}

/// Secrets of a job. They are no part of its command, its events or its results.
#[derive(Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Secrets {
    /// The token of the server to measure to.
    pub token: Option<String>,
    /// The token that allows changes of the far end's settings.
    pub tune_token: Option<String>,
}

/// Makes the document of an ended job, as JSON.
pub type DocumentOf = Box<dyn Fn(&Ended) -> Option<String> + Send>;

/// A job with the command that requests it.
pub struct Asked {
    /// The command line, to be pasted in a shell.
    pub command: String,
    /// The job.
    pub job: Job,
    /// What its requester should know before it runs.
    pub notes: Vec<String>,
    /// What the command prints of the ended job with `--json`.
    pub document: DocumentOf,
    /// Captures that it reads.
    pub captures: Vec<Arc<Capture>>,
}

/// How a job ended.
pub struct JobResult {
    /// The outcome.
    pub outcome: Outcome,
    /// The result, as JSON.
    pub document: Option<String>,
}

impl JobResult {
    /// Of a job that this kept from running.
    pub const fn failed(error: String) -> Self {
        Self { outcome: Outcome::failed(error), document: None }
    }
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
    /// Who asks is unknown.
    Access,
    /// Who asks may not do this.
    Forbidden,
    /// The request has too many bytes.
    TooLarge,
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
