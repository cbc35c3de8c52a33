//! Records at rest: every run, of a scenario on the lab or between two machines, and all that its cases produced.
//!
//! [`Store`] says what a store does, in the terms of runs and cases; [`SqliteStore`] does it in one file. The cases of
//! a run on the lab produce records, those of a run between machines measurements. Runs are listed in pages, and what they
//! hold is read one after the other, so that no store is too large to work with. [`export`] writes runs as lines of JSON, and
//! [`import`] reads them back.
#![forbid(unsafe_code)]

mod document;
mod encoding;
mod error;
mod exchange;
mod named;
mod sqlite;

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use bdp_model::labels::Labels;
use bdp_model::measurement::Measurement;
use bdp_model::record::Record;

use named::named;

pub use document::{DocumentKind, StoredDocument};
pub use error::{Error, Result};
pub use exchange::{EXPORT_SCHEMA, Imported, Item, export, import, read};
pub use sqlite::SqliteStore;

/// Where runs and their records are kept.
///
/// A run is named by the id that [`Store::begin_run`] gave; [`Store::run`] alone takes a prefix of one, or a label.
/// Every other method answers an id that the store does not hold with [`Error::UnknownRun`].
pub trait Store: Send {
    /// Enters a run and gives its id, unique in this store: that of [`NewRun::id`] where it is free, or else at least four
    /// hexadecimal digits.
    fn begin_run(&mut self, new: &NewRun) -> Result<String>;

    /// Adds what an attempt at a case produced. It is durable when this returns: no kill or power cut loses it.
    ///
    /// `settled` says that no further attempt at this case follows. A record that its JSON form cannot hold
    /// (a number that is not finite) is [`Error::NotKept`], and nothing is added.
    fn append(&mut self, run: &str, case_key: &str, record: &Record, settled: bool) -> Result<()>;

    /// Adds what was measured between two machines. It is durable when this returns, and nothing follows under its key.
    ///
    /// A measurement that its JSON form cannot hold is [`Error::NotKept`], and nothing is added.
    fn append_measurement(&mut self, run: &str, kept: &StoredMeasurement) -> Result<()>;

    /// Adds a document that belongs to a run: a plan, a prediction, what came of it. It is durable when this returns.
    fn append_document(&mut self, run: &str, document: &StoredDocument) -> Result<()>;

    /// Says anew how many cases the run's plan has: one that is asked for its next cases as it goes grows.
    fn replan(&mut self, run: &str, planned: u32) -> Result<()>;

    /// Marks a run as gone to its end, at `at_unix_ms` (milliseconds since 1970).
    fn finish_run(&mut self, run: &str, at_unix_ms: u64) -> Result<()>;

    /// Removes a run and all that it holds.
    fn remove_run(&mut self, run: &str) -> Result<()>;

    /// Makes what `work` does durable together when this returns; nothing of it where `work` fails or returns `false`.
    fn atomically(&mut self, work: &mut dyn FnMut(&mut dyn Store) -> Result<bool>) -> Result<()>;

    /// A page of the runs, newest first.
    fn runs(&self, page: &Page) -> Result<Vec<RunInfo>>;

    /// How many runs there are.
    fn count_runs(&self) -> Result<u64>;

    /// The run with this id, or else the newest with this label, a plain one or as `NAME=VALUE`, or else the only one whose id begins so; in ids
    /// upper and lower case are the same.
    fn run(&self, id_label_or_prefix: &str) -> Result<RunInfo>;

    /// The text of the scenario file as it was when the run began; empty for a run without one.
    fn scenario_text(&self, run: &str) -> Result<String>;

    /// Gives every attempt's record to `each`, in the order in which they were added, until it breaks off.
    fn each_record(&self, run: &str, each: &mut dyn FnMut(StoredRecord) -> ControlFlow<()>) -> Result<()>;

    /// Gives every measurement to `each`, in the order in which they were added, until it breaks off.
    fn each_measurement(
        &self,
        run: &str,
        each: &mut dyn FnMut(StoredMeasurement) -> ControlFlow<()>,
    ) -> Result<()>;

    /// The documents that belong to a run, in the order in which they were added.
    fn documents(&self, run: &str) -> Result<Vec<StoredDocument>>;

    /// Case key and record of every attempt, in the order in which they were added.
    fn records(&self, run: &str) -> Result<Vec<(String, Record)>> {
        let mut all = Vec::new();
        self.each_record(run, &mut |kept| {
            all.push((kept.case_key, kept.record));
            ControlFlow::Continue(())
        })?;
        Ok(all)
    }

    /// Every measurement, in the order in which they were added.
    fn measurements(&self, run: &str) -> Result<Vec<StoredMeasurement>> {
        let mut all = Vec::new();
        self.each_measurement(run, &mut |kept| {
            all.push(kept);
            ControlFlow::Continue(())
        })?;
        Ok(all)
    }

    /// Keys of the cases to which no further attempt follows: what a resumed run leaves out.
    fn settled_keys(&self, run: &str) -> Result<HashSet<String>>;

    /// The newest run of this plan that did not go to its end: what `--resume` goes on with.
    fn unfinished(&self, scenario: &str, plan_digest: &str) -> Result<Option<RunInfo>>;
}

/// Which of the runs, newest first, are listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Those that follow the run with this id; `None` from the newest on.
    pub after: Option<String>,
    /// So many at most; `None` is all that follow.
    pub limit: Option<usize>,
}

impl Page {
    /// The newest runs.
    pub const fn first(limit: usize) -> Self {
        Self { after: None, limit: Some(limit) }
    }
}

/// What a run consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// Cases of scenarios, on the lab: records.
    #[default]
    Lab,
    /// One measurement between two machines, or several alike.
    Measure,
    /// Measurements between two machines, or cases on the lab, that differ in swept parameters.
    Sweep,
    /// Programs of one's own on the hosts of a scenario: one record.
    Exec,
}

named!(RunKind: Lab = "lab", Measure = "measure", Sweep = "sweep", Exec = "exec");

/// What an attempt at a case produced, and which case that is.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRecord {
    /// Names the case within its run.
    pub case_key: String,
    /// Whether no further attempt at this case follows.
    pub settled: bool,
    /// What was measured.
    pub record: Record,
}

/// A measurement, and where in its run it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredMeasurement {
    /// Names it within its run.
    pub case_key: String,
    /// What was varied, as typed, by name; empty where nothing was.
    pub params: BTreeMap<String, serde_json::Value>,
    /// What was measured.
    pub measurement: Measurement,
}

/// What a run is entered with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewRun {
    /// The id that it had in another store.
    pub id: Option<String>,
    /// What it consists of.
    pub kind: RunKind,
    /// What the user calls it.
    pub label: Option<String>,
    /// Labels that the user gave it, by name.
    pub labels: Labels,
    /// The scenario's name; the far machine's, as given, where the run is between two machines.
    pub scenario: String,
    /// The text of the scenario file; empty where there is none.
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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunInfo {
    /// At least four hexadecimal digits, unique in the store.
    pub id: String,
    /// What it consists of.
    pub kind: RunKind,
    /// What the user calls it.
    pub label: Option<String>,
    /// Labels that the user gave it, by name.
    pub labels: Labels,
    /// The scenario's name; the far machine's, as given, where the run is between two machines.
    pub scenario: String,
    /// Start, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// End, milliseconds since 1970; `None` while the run goes on, or where it was cut short.
    pub finished_unix_ms: Option<u64>,
    /// Cases in the plan.
    pub planned: u32,
    /// Cases of which there is a record or a measurement, however many attempts each took.
    pub recorded: u32,
    /// Cases of which there is a valid record, or a measurement that did not fail.
    pub valid: u32,
    /// Digest of the plan.
    pub plan_digest: String,
    /// The command line that started the run.
    pub command: String,
    /// The version of bdp that started it.
    pub bdp: String,
}
