//! Storage of runs, in the lab or between two machines, and of all results of their cases.
//!
//! [`Store`] defines a store in terms of runs and cases; [`SqliteStore`] implements it in one file. Cases of
//! a run in the lab produce records, those of a run between machines measurements. Runs are listed in pages and their
//! entries are read one at a time, so that a store may be of any size. [`export`] writes runs as lines of JSON, and
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

use bdp_model::measurement::Measurement;
use bdp_model::measurement::labels::Labels;
use bdp_model::record::Record;

use named::named;

pub use document::{DocumentKind, StoredDocument};
pub use error::{Error, Result};
pub use exchange::{EXPORT_SCHEMA, Imported, Item, export, import, read};
pub use sqlite::SqliteStore;

/// A store of runs and their records.
///
/// A run is identified by the id that [`Store::begin_run`] returned; only [`Store::run`] also accepts a prefix of it or a label.
/// Every other method returns [`Error::UnknownRun`] for an id that the store does not contain.
pub trait Store: Send {
    /// Adds a run and returns its id, unique in this store: [`NewRun::id`] if that is free, otherwise at least four
    /// hexadecimal digits.
    fn begin_run(&mut self, new: &NewRun) -> Result<String>;

    /// Adds the result of an attempt at a case. It is durable when this returns: no kill or power cut loses it.
    ///
    /// `settled` means that no further attempt at this case follows. A record that JSON cannot represent
    /// (a number that is not finite) is [`Error::NotKept`], and nothing is added.
    fn append(&mut self, run: &str, case_key: &str, record: &Record, settled: bool) -> Result<()>;

    /// Adds a measurement between two machines. It is durable when this returns, and nothing follows under its key.
    ///
    /// A measurement that JSON cannot represent is [`Error::NotKept`], and nothing is added.
    fn append_measurement(&mut self, run: &str, kept: &StoredMeasurement) -> Result<()>;

    /// Adds a document that belongs to a run: a plan, a prediction, a verification. It is durable when this returns.
    fn append_document(&mut self, run: &str, document: &StoredDocument) -> Result<()>;

    /// Updates the number of cases in the run's plan, which grows if the next cases are determined as it goes.
    fn replan(&mut self, run: &str, planned: u32) -> Result<()>;

    /// Marks a run as complete at `at_unix_ms` (milliseconds since 1970).
    fn finish_run(&mut self, run: &str, at_unix_ms: u64) -> Result<()>;

    /// Removes a run and all its entries.
    fn remove_run(&mut self, run: &str) -> Result<()>;

    /// Makes everything that `work` does durable at once when this returns, or nothing if `work` fails or returns `false`.
    fn atomically(&mut self, work: &mut dyn FnMut(&mut dyn Store) -> Result<bool>) -> Result<()>;

    /// Returns a page of the runs, newest first.
    fn runs(&self, page: &Page) -> Result<Vec<RunInfo>>;

    /// Returns the number of runs.
    fn count_runs(&self) -> Result<u64>;

    /// Returns the run with this id; otherwise the newest with this label, plain or as `NAME=VALUE`; otherwise the only one whose id has this prefix.
    /// Ids are case-insensitive.
    fn run(&self, id_label_or_prefix: &str) -> Result<RunInfo>;

    /// Returns the scenario file's text at the start of the run; empty for a run without one.
    fn scenario_text(&self, run: &str) -> Result<String>;

    /// Passes the record of every attempt to `each`, in the order of addition, until it breaks off.
    fn each_record(&self, run: &str, each: &mut dyn FnMut(StoredRecord) -> ControlFlow<()>) -> Result<()>;

    /// Passes every measurement to `each`, in the order of addition, until it breaks off.
    fn each_measurement(
        &self,
        run: &str,
        each: &mut dyn FnMut(StoredMeasurement) -> ControlFlow<()>,
    ) -> Result<()>;

    /// Returns the documents that belong to a run, in the order of addition.
    fn documents(&self, run: &str) -> Result<Vec<StoredDocument>>;

    /// Returns case key and record of every attempt, in the order of addition.
    fn records(&self, run: &str) -> Result<Vec<(String, Record)>> {
        let mut all = Vec::new();
        self.each_record(run, &mut |kept| {
            all.push((kept.case_key, kept.record));
            ControlFlow::Continue(())
        })?;
        Ok(all)
    }

    /// Returns every measurement, in the order of addition.
    fn measurements(&self, run: &str) -> Result<Vec<StoredMeasurement>> {
        let mut all = Vec::new();
        self.each_measurement(run, &mut |kept| {
            all.push(kept);
            ControlFlow::Continue(())
        })?;
        Ok(all)
    }

    /// Returns the keys of the cases that need no further attempt, which a resumed run skips.
    fn settled_keys(&self, run: &str) -> Result<HashSet<String>>;

    /// Returns the newest incomplete run of this plan, which `--resume` continues.
    fn unfinished(&self, scenario: &str, plan_digest: &str) -> Result<Option<RunInfo>>;
}

/// A selection of the runs, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Only the runs after the one with this id; `None` starts with the newest.
    pub after: Option<String>,
    /// Maximum number of runs; `None` for no limit.
    pub limit: Option<usize>,
}

impl Page {
    /// Selects the newest runs.
    pub const fn first(limit: usize) -> Self {
        Self { after: None, limit: Some(limit) }
    }
}

/// The kind of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// Cases of scenarios in the lab, as records.
    #[default]
    Lab,
    /// One measurement between two machines, or several with the same parameters.
    Measure,
    /// Measurements between two machines, or cases in the lab, that differ in swept parameters.
    Sweep,
    /// The user's own programs on the hosts of a scenario, as one record.
    Exec,
}

named!(RunKind: Lab = "lab", Measure = "measure", Sweep = "sweep", Exec = "exec");

/// The result of an attempt at a case.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRecord {
    /// Key of the case within its run.
    pub case_key: String,
    /// Whether no further attempt at this case follows.
    pub settled: bool,
    /// The record.
    pub record: Record,
}

/// A measurement of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredMeasurement {
    /// Key within its run.
    pub case_key: String,
    /// Swept parameters by name, with the values as typed; empty if nothing was swept.
    pub params: BTreeMap<String, serde_json::Value>,
    /// The measurement.
    pub measurement: Measurement,
}

/// A run to be added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewRun {
    /// Its id in another store.
    pub id: Option<String>,
    /// The kind of run.
    pub kind: RunKind,
    /// Label given by the user.
    pub label: Option<String>,
    /// Named labels given by the user.
    pub labels: Labels,
    /// Name of the scenario, or of the far machine as given if the run is between two machines.
    pub scenario: String,
    /// Text of the scenario file; empty if there is none.
    pub scenario_text: String,
    /// Digest of the plan; a run can be resumed only with an identical plan.
    pub plan_digest: String,
    /// Number of cases in the plan.
    pub planned: u32,
    /// The command line that started the run.
    pub command: String,
    /// Version of bdp.
    pub bdp: String,
    /// Start time, milliseconds since 1970.
    pub started_unix_ms: u64,
}

/// A stored run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunInfo {
    /// Id: at least four hexadecimal digits, unique in the store.
    pub id: String,
    /// The kind of run.
    pub kind: RunKind,
    /// Label given by the user.
    pub label: Option<String>,
    /// Named labels given by the user.
    pub labels: Labels,
    /// Name of the scenario, or of the far machine as given if the run is between two machines.
    pub scenario: String,
    /// Start time, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// End time, milliseconds since 1970; `None` if the run is in progress or was interrupted.
    pub finished_unix_ms: Option<u64>,
    /// Number of cases in the plan.
    pub planned: u32,
    /// Number of cases with a record or a measurement, however many attempts each took.
    pub recorded: u32,
    /// Number of cases with a valid record, or a measurement that did not fail.
    pub valid: u32,
    /// Digest of the plan.
    pub plan_digest: String,
    /// The command line that started the run.
    pub command: String,
    /// The version of bdp that started it.
    pub bdp: String,
}
