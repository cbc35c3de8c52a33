//! A run by its name: stored, or in a file from `--json` or `bdp runs export`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use bdp_model::measurement::{MEASUREMENT_SCHEMA, Measurement};
use bdp_model::plain::of_json;
use bdp_model::record::Record;
use bdp_report::About;
use bdp_store::{
    DocumentKind, Error, Item, Page, RunInfo, RunKind, SqliteStore, Store, StoredDocument, StoredMeasurement,
};
use serde_json::Value;

use crate::exit;
use crate::output::{self, utc};
use crate::reach;
use crate::store::{StoreArgs, refuse};

/// Largest file that is read.
const MOST_BYTES: u64 = 4 << 30;

/// A run and its content.
pub struct Found {
    /// Description of the run. For a file, the id is the run's if the file states it, else the file's path.
    pub info: RunInfo,
    /// Content of the run.
    pub kept: Kept,
    /// Later conclusions about it, in order.
    pub documents: Vec<StoredDocument>,
    /// The file that it was read from.
    pub file: Option<PathBuf>,
    /// Start time.
    started: String,
}

/// Content of a run.
pub enum Kept {
    /// Records with the keys of their cases.
    Records(Vec<(String, Record)>),
    /// Measurements; those of a sweep in the order of its points.
    Measurements(Vec<StoredMeasurement>),
}

impl Found {
    /// Finds the run of this name, or else the newest in the store.
    ///
    /// A name with a slash is a file's. Any other is first looked up in the store, as an id, a label or the beginning
    /// of an id, and then taken as a file's.
    pub fn find(run: Option<&str>, store: &StoreArgs) -> anyhow::Result<Self> {
        match run {
            None => newest(store),
            Some(run) => Self::named(run, store),
        }
    }

    /// The newest matching run in the store, among as many as may have been made recently.
    pub fn newest_where(store: &StoreArgs, fits: impl Fn(&RunInfo) -> bool) -> anyhow::Result<Option<Self>> {
        let Some(store) = store.open_to_read()? else { return Ok(None) };
        let lately = store.runs(&Page::first(1000)).map_err(refuse)?;
        lately.into_iter().find(fits).map(|info| stored(info, &store)).transpose()
    }

    fn named(run: &str, store: &StoreArgs) -> anyhow::Result<Self> {
        if reach::is_narrow() {
            let Some(opened) = store.open_to_read()? else {
                return Err(exit::usage(format!("no run '{run}'; the store is empty")));
            };
            return by_id(run, &opened);
        }
        let path = Path::new(run);
        if run.contains('/') {
            return of_file(path);
        }
        let opened = match store.open_to_read() {
            Err(_) if path.is_file() => return of_file(path),
            opened => opened?,
        };
        let found = opened.as_ref().map(|opened| opened.run(run));
        match (found, opened) {
            (Some(Ok(info)), Some(opened)) => stored(info, &opened),
            _ if path.is_file() => of_file(path),
            // No run id contains a full stop: a file was meant.
            (None | Some(Err(Error::UnknownRun { .. })), _) if run.contains('.') => of_file(path),
            (Some(Err(error)), _) => Err(refuse(error)),
            _ => Err(exit::usage(format!("no run '{run}'; the store is empty"))),
        }
    }

    /// The run's id in a store; `None` for a file that does not state it.
    pub fn run(&self) -> Option<&str> {
        (self.file.as_ref().is_none_or(|file| file.to_string_lossy() != self.info.id))
            .then_some(self.info.id.as_str())
    }

    /// The newest document of a kind that belongs to it.
    pub fn newest_document(&self, kind: DocumentKind) -> Option<&StoredDocument> {
        self.documents.iter().rfind(|document| document.kind == kind)
    }

    /// Its records, without keys; empty if it consists of measurements.
    pub fn records(&self) -> Vec<Record> {
        match &self.kept {
            Kept::Records(records) => records.iter().map(|(_, record)| record.clone()).collect(),
            Kept::Measurements(_) => Vec::new(),
        }
    }

    /// Description for a page; `store` is the path of the store, if it was given.
    pub fn about<'a>(&'a self, store: Option<&'a str>) -> About<'a> {
        About {
            run: self.run(),
            label: self.info.label.as_deref(),
            command: Some(self.info.command.as_str()).filter(|command| !command.is_empty()),
            started: Some(&self.started),
            planned: if self.file.is_none() { usize::try_from(self.info.planned).ok() } else { None },
            store: store.filter(|_| self.file.is_none()),
            ..About::default()
        }
    }
}

fn newest(store: &StoreArgs) -> anyhow::Result<Found> {
    let Some(store) = store.open_to_read()? else {
        return Err(exit::usage(
            "no run is stored yet; give a file, or run 'bdp measure' or 'bdp lab run' first",
        ));
    };
    match store.runs(&Page::first(1)).map_err(refuse)?.pop() {
        Some(info) => stored(info, &store),
        None => Err(exit::usage(format!("no run is stored in {}; give a file", store.path().display()))),
    }
}

/// The stored run of this id.
pub fn by_id(id: &str, store: &SqliteStore) -> anyhow::Result<Found> {
    stored(store.run(id).map_err(refuse)?, store)
}

fn stored(info: RunInfo, store: &SqliteStore) -> anyhow::Result<Found> {
    let records = store.records(&info.id).map_err(refuse)?;
    let kept = if records.is_empty() && info.kind != RunKind::Lab {
        Kept::Measurements(store.measurements(&info.id).map_err(refuse)?)
    } else {
        Kept::Records(records)
    };
    let documents = store.documents(&info.id).map_err(refuse)?;
    Ok(found(info, kept, documents, None))
}

fn found(info: RunInfo, kept: Kept, documents: Vec<StoredDocument>, file: Option<PathBuf>) -> Found {
    let kept = match kept {
        Kept::Measurements(all) if info.kind == RunKind::Sweep => {
            Kept::Measurements(bdp_run::sweep::in_order(all))
        }
        kept => kept,
    };
    Found { started: utc(info.started_unix_ms), info, kept, documents, file }
}

fn of_file(path: &Path) -> anyhow::Result<Found> {
    let operand = path.display();
    let refused =
        |error: &dyn std::fmt::Display| exit::environment(format!("cannot read {operand}: {error}"));
    let file = File::open(path).map_err(|e| refused(&e))?;
    let length = file.metadata().map_err(|e| refused(&e))?.len();
    if length > MOST_BYTES {
        return Err(exit::usage(format!("{operand} has {length} bytes; the maximum is {MOST_BYTES}")));
    }
    let mut file = BufReader::new(file);
    let begins_as_export = {
        let beginning = file.fill_buf().map_err(|e| refused(&e))?;
        beginning.starts_with(br#"{"line":"run","#)
    };
    if begins_as_export { of_export(path, file) } else { of_document(path) }
}

/// The only run of a file from `bdp runs export`.
fn of_export(path: &Path, file: impl BufRead) -> anyhow::Result<Found> {
    let mut runs: Vec<RunInfo> = Vec::new();
    let (mut records, mut measurements, mut documents) = (Vec::new(), Vec::new(), Vec::new());
    let read = bdp_store::read(file, &mut |item| {
        match item {
            Item::Run(info, _) => runs.push(*info),
            _ if runs.len() > 1 => {}
            Item::Record(kept) => records.push((kept.case_key, kept.record)),
            Item::Measurement(kept) => measurements.push(*kept),
            Item::Document(kept) => documents.push(*kept),
        }
        Ok(())
    });
    let operand = path.display();
    read.map_err(|error| match refuse(error).downcast::<exit::Refusal>() {
        Ok(refusal) => exit::Refusal { text: format!("{operand}: {}", refusal.text), ..refusal }.into(),
        Err(error) => error,
    })?;
    let [mut info] = <[RunInfo; 1]>::try_from(runs).map_err(|runs| {
        exit::usage(format!(
            "{operand} contains {} runs; import them with 'bdp runs import {operand}' and use their ids",
            runs.len()
        ))
    })?;
    let kept =
        if measurements.is_empty() { Kept::Records(records) } else { Kept::Measurements(measurements) };
    count(&mut info, &kept);
    Ok(found(info, kept, documents, Some(path.to_owned())))
}

/// Content of a document from `--json`.
fn of_document(path: &Path) -> anyhow::Result<Found> {
    let operand = path.display();
    let text =
        fs::read_to_string(path).map_err(|e| exit::environment(format!("cannot read {operand}: {e}")))?;
    let wrong = |error: serde_json::Error| {
        exit::usage(format!(
            "{operand} is not a document written by --json: {}; see 'bdp help record'",
            of_json(&error)
        ))
    };
    #[derive(serde::Deserialize)]
    struct Named {
        schema: String,
        run: Option<String>,
    }
    #[derive(serde::Deserialize)]
    struct Document {
        #[serde(default)]
        cases: Vec<Record>,
        #[serde(default)]
        measurements: Vec<Measurement>,
        #[serde(default)]
        runs: Vec<Measurement>,
    }
    let named = serde_json::from_str::<Named>(&text).map_err(wrong)?;
    let (kind, kept) = match named.schema.as_str() {
        bdp_report::CASES_SCHEMA => {
            let document: Document = serde_json::from_str(&text).map_err(wrong)?;
            (RunKind::Lab, Kept::Records(keyed(document.cases)))
        }
        bdp_report::SWEEP_SCHEMA => {
            let document: Document = serde_json::from_str(&text).map_err(wrong)?;
            if document.measurements.is_empty() {
                (RunKind::Sweep, Kept::Records(keyed(document.cases)))
            } else {
                (RunKind::Sweep, Kept::Measurements(swept(document.measurements)))
            }
        }
        bdp_report::MEASUREMENTS_SCHEMA => {
            let document: Document = serde_json::from_str(&text).map_err(wrong)?;
            (RunKind::Measure, Kept::Measurements(document.runs.into_iter().map(alone).collect()))
        }
        MEASUREMENT_SCHEMA => {
            let measurement = serde_json::from_str(&text).map_err(wrong)?;
            (RunKind::Measure, Kept::Measurements(vec![alone(measurement)]))
        }
        bdp_report::COMPARISON_SCHEMA => {
            return Err(exit::usage(format!(
                "{operand} is a comparison, which does not contain its runs; use 'bdp compare A B \
                 --report FILE' for a page"
            )));
        }
        other => {
            return Err(exit::usage(format!(
                "{operand} has the schema '{}', but this bdp reads {}, {} and {}; a newer version may read it",
                output::tame(other),
                bdp_report::CASES_SCHEMA,
                bdp_report::SWEEP_SCHEMA,
                bdp_report::MEASUREMENTS_SCHEMA
            )));
        }
    };
    let id = named.run.map_or_else(|| path.to_string_lossy().into_owned(), |run| output::tame(&run));
    Ok(found(described(id, kind, &kept), kept, Vec::new(), Some(path.to_owned())))
}

/// Description of a run derived from its records and measurements.
fn described(id: String, kind: RunKind, kept: &Kept) -> RunInfo {
    let mut info = RunInfo { id, kind, ..RunInfo::default() };
    let mut names: Vec<&str> = Vec::new();
    let started = match kept {
        Kept::Records(records) => {
            names.extend(records.iter().map(|(_, record)| record.scenario.as_str()));
            records.iter().map(|(_, record)| record.environment.started_unix_ms).min()
        }
        Kept::Measurements(all) => {
            names.extend(all.iter().map(|kept| kept.measurement.request.host.as_str()));
            info.label = all.first().and_then(|kept| kept.measurement.label.clone());
            info.labels = all.first().map(|kept| kept.measurement.labels.clone()).unwrap_or_default();
            all.iter().map(|kept| kept.measurement.started_unix_ms).min()
        }
    };
    names.dedup();
    info.scenario = names.join(" ");
    info.started_unix_ms = started.unwrap_or_default();
    // A document is written when a run is over.
    info.finished_unix_ms = started;
    count(&mut info, kept);
    info.planned = info.recorded;
    info
}

/// Counts the cases as the store does.
fn count(info: &mut RunInfo, kept: &Kept) {
    let mut cases: BTreeMap<&str, bool> = BTreeMap::new();
    let mut number = |key, valid| *cases.entry(key).or_default() |= valid;
    match kept {
        Kept::Records(records) => records.iter().for_each(|(key, record)| number(key, record.valid)),
        Kept::Measurements(all) => {
            all.iter().for_each(|kept| number(&kept.case_key, kept.measurement.error.is_none()));
        }
    }
    info.recorded = u32::try_from(cases.len()).unwrap_or(u32::MAX);
    info.valid = u32::try_from(cases.values().filter(|&&valid| valid).count()).unwrap_or(u32::MAX);
}

fn keyed(records: Vec<Record>) -> Vec<(String, Record)> {
    records.into_iter().map(|record| (bdp_run::case::key::key(&record.case), record)).collect()
}

/// A measurement without varied parameters.
pub fn alone(measurement: Measurement) -> StoredMeasurement {
    StoredMeasurement {
        case_key: format!("#{}", measurement.repetition),
        params: BTreeMap::new(),
        measurement,
    }
}

/// The measurements of a sweep, each with its varied parameters.
fn swept(measurements: Vec<Measurement>) -> Vec<StoredMeasurement> {
    let all: Vec<BTreeMap<String, Value>> = bdp_model::sweep::measured_curves::varied_params(&measurements);
    all.into_iter()
        .zip(measurements)
        .map(|(params, measurement)| {
            let words: Vec<String> = params.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let case_key = format!("{} #{}", words.join(" "), measurement.repetition);
            StoredMeasurement { case_key, params, measurement }
        })
        .collect()
}
