//! Records at rest: every run of a scenario and all that its cases produced.
//!
//! [`Store`] says what a store does, in the terms of runs and cases; [`SqliteStore`] does it in one file.
#![forbid(unsafe_code)]

mod encoding;
mod error;
mod sqlite;

use std::collections::HashSet;

use bdp_model::record::Record;

pub use error::{Error, Result};
pub use sqlite::SqliteStore;

/// Where runs and their records are kept.
///
/// A run is named by the id that [`Store::begin_run`] gave; [`Store::run`] alone takes a prefix of one.
/// Every other method answers an id that the store does not hold with [`Error::UnknownRun`].
pub trait Store {
    /// Enters a run and gives its id: at least four hexadecimal digits, unique in this store.
    fn begin_run(&mut self, new: &NewRun) -> Result<String>;

    /// Adds what an attempt at a case produced. It is durable when this returns: no kill or power cut loses it.
    ///
    /// `settled` says that no further attempt at this case follows. A record that its JSON form cannot hold
    /// (a number that is not finite) is [`Error::NotKept`], and nothing is added.
    fn append(&mut self, run: &str, case_key: &str, record: &Record, settled: bool) -> Result<()>;

    /// Marks a run as gone to its end, at `at_unix_ms` (milliseconds since 1970).
    fn finish_run(&mut self, run: &str, at_unix_ms: u64) -> Result<()>;

    /// Every run, newest first.
    fn runs(&self) -> Result<Vec<RunInfo>>;

    /// The run with this id, or the only one whose id begins so; upper and lower case are the same.
    fn run(&self, id_or_prefix: &str) -> Result<RunInfo>;

    /// The text of the scenario file as it was when the run began.
    fn scenario_text(&self, run: &str) -> Result<String>;

    /// Case key and record of every attempt, in the order in which they were added.
    fn records(&self, run: &str) -> Result<Vec<(String, Record)>>;

    /// Keys of the cases to which no further attempt follows: what a resumed run leaves out.
    fn settled_keys(&self, run: &str) -> Result<HashSet<String>>;

    /// The newest run of this plan that did not go to its end: what `--resume` goes on with.
    fn unfinished(&self, scenario: &str, plan_digest: &str) -> Result<Option<RunInfo>>;
}

/// What a run is entered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// The scenario's name.
    pub scenario: String,
    /// The text of the scenario file.
    pub scenario_text: String,
    /// Digest of the plan; a run is resumed only under the same one.
    pub plan_digest: String,
    /// Cases in the plan.
    pub planned: u32,
    /// The command line that started the run.
    pub command: String,
    /// bdp's version.
    pub bdp: String,
    /// Start, milliseconds since 1970.
    pub started_unix_ms: u64,
}

/// A run as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunInfo {
    /// At least four hexadecimal digits, unique in the store.
    pub id: String,
    /// The scenario's name.
    pub scenario: String,
    /// Start, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// End, milliseconds since 1970; `None` while the run goes on, or where it was cut short.
    pub finished_unix_ms: Option<u64>,
    /// Cases in the plan.
    pub planned: u32,
    /// Cases of which there is a record, however many attempts each took.
    pub recorded: u32,
    /// Cases of which there is a valid record.
    pub valid: u32,
    /// Digest of the plan.
    pub plan_digest: String,
    /// The command line that started the run.
    pub command: String,
    /// The version of bdp that started it.
    pub bdp: String,
}
