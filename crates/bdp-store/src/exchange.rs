//! Exports runs as lines of JSON, to move them between stores. Each run has a line about it, a line per record or
//! measurement, and a final line with their number, without which the file was truncated.

use std::collections::BTreeMap;
use std::io::{BufRead, Read, Write};
use std::ops::ControlFlow;

use bdp_model::measurement::Measurement;
use bdp_model::measurement::labels::Labels;
use bdp_model::plain::of_json;
use bdp_model::record::Record;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::encoding::{self, DecodeError, Entry};
use crate::{
    DocumentKind, Error, NewRun, Result, RunInfo, RunKind, Store, StoredDocument, StoredMeasurement,
    StoredRecord,
};

/// Version of the export schema; a reader refuses a larger major number.
pub const EXPORT_SCHEMA: &str = "bdp.export/1";

/// Maximum length of a line, bytes.
const LONGEST_LINE: u64 = 256 << 20;

/// One line of an export, or the end of a run's lines.
#[derive(Debug)]
pub enum Item {
    /// Start of a run, with the text of its scenario.
    Run(Box<RunInfo>, String),
    /// A record of the current run.
    Record(Box<StoredRecord>),
    /// A measurement of the current run.
    Measurement(Box<StoredMeasurement>),
    /// A document of the current run.
    Document(Box<StoredDocument>),
}

/// An imported run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Id in the file.
    pub given: String,
    /// Id in the store, which differs if the one in the file was taken.
    pub id: String,
    /// Whether the run existed already, so that nothing was added.
    pub was_there: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
enum Line {
    Run(RunLine),
    Record { case_key: String, settled: bool, record: Value },
    Measurement { case_key: String, params: BTreeMap<String, Value>, measurement: Value },
    Document { kind: String, at_unix_ms: u64, document: Value },
    End { run: String, entries: u64 },
}

#[derive(Serialize, Deserialize)]
struct RunLine {
    schema: String,
    /// Version of bdp that exported it.
    bdp: String,
    run: String,
    kind: String,
    label: Option<String>,
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    labels: Labels,
    scenario: String,
    scenario_text: String,
    plan_digest: String,
    cases_planned: u32,
    command: String,
    measured_by_bdp: String,
    started_unix_ms: u64,
    finished_unix_ms: Option<u64>,
}

/// Writes a run, entry by entry. `bdp` is the version that exports it.
pub fn export(store: &dyn Store, run: &RunInfo, bdp: &str, out: &mut dyn Write) -> Result<()> {
    let head = Line::Run(RunLine {
        schema: EXPORT_SCHEMA.to_owned(),
        bdp: bdp.to_owned(),
        run: run.id.clone(),
        kind: run.kind.name().to_owned(),
        label: run.label.clone(),
        labels: run.labels.clone(),
        scenario: run.scenario.clone(),
        scenario_text: store.scenario_text(&run.id)?,
        plan_digest: run.plan_digest.clone(),
        cases_planned: run.planned,
        command: run.command.clone(),
        measured_by_bdp: run.bdp.clone(),
        started_unix_ms: run.started_unix_ms,
        finished_unix_ms: run.finished_unix_ms,
    });
    write_line(out, &head)?;
    let mut entries = 0;
    let mut outcome = Ok(());
    let mut write = |line: std::result::Result<Line, serde_json::Error>| {
        entries += 1;
        outcome = line.map_err(|e| stream("write", e.into())).and_then(|line| write_line(out, &line));
        if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    store.each_record(&run.id, &mut |kept| {
        let (case_key, settled) = (kept.case_key, kept.settled);
        write(serde_json::to_value(&kept.record).map(|record| Line::Record { case_key, settled, record }))
    })?;
    store.each_measurement(&run.id, &mut |kept| {
        let (case_key, params) = (kept.case_key, kept.params);
        write(serde_json::to_value(&kept.measurement).map(|measurement| Line::Measurement {
            case_key,
            params,
            measurement,
        }))
    })?;
    for kept in store.documents(&run.id)? {
        let StoredDocument { kind, at_unix_ms, document } = kept;
        if write(Ok(Line::Document { kind: kind.name().to_owned(), at_unix_ms, document })).is_break() {
            break;
        }
    }
    outcome?;
    write_line(out, &Line::End { run: run.id.clone(), entries })
}

fn write_line(out: &mut dyn Write, line: &Line) -> Result<()> {
    serde_json::to_writer(&mut *out, line)
        .map_err(std::io::Error::from)
        .and_then(|()| out.write_all(b"\n"))
        .map_err(|source| stream("write", source))
}

fn stream(operation: &'static str, source: std::io::Error) -> Error {
    Error::Stream { operation, source }
}

/// Reads what [`export`] wrote and passes it to `each`; a truncated or altered file is [`Error::NotAnExport`], which
/// names the line.
pub fn read(input: impl BufRead, each: &mut dyn FnMut(Item) -> Result<()>) -> Result<()> {
    let mut lines = Lines { input, number: 0 };
    let mut current: Option<(String, u64)> = None;
    while let Some(line) = lines.next()? {
        let number = lines.number;
        let wrong = |detail: String| Error::NotAnExport { line: number, detail };
        match (line, current.take()) {
            (Line::Run(line), None) => {
                let (info, text) = line.read().map_err(wrong)?;
                current = Some((info.id.clone(), 0));
                each(Item::Run(Box::new(info), text))?;
            }
            (Line::Run(_), Some((run, _))) => return Err(wrong(format!("run {run} is incomplete"))),
            (_, None) => return Err(wrong("it does not belong to a run".to_owned())),
            (Line::Record { case_key, settled, record }, Some((run, entries))) => {
                let record = entry::<Record>(record, &run, &case_key).map_err(|e| e.at(number))?;
                each(Item::Record(Box::new(StoredRecord { case_key, settled, record })))?;
                current = Some((run, entries + 1));
            }
            (Line::Measurement { case_key, params, measurement }, Some((run, entries))) => {
                let measurement =
                    entry::<Measurement>(measurement, &run, &case_key).map_err(|e| e.at(number))?;
                each(Item::Measurement(Box::new(StoredMeasurement { case_key, params, measurement })))?;
                current = Some((run, entries + 1));
            }
            (Line::Document { kind, at_unix_ms, document }, Some((run, entries))) => {
                // A document kind added by a newer bdp is skipped.
                if let Some(kind) = DocumentKind::named(&kind) {
                    each(Item::Document(Box::new(StoredDocument { kind, at_unix_ms, document })))?;
                }
                current = Some((run, entries + 1));
            }
            (Line::End { run, entries }, Some((begun, read))) => {
                if run != begun || entries != read {
                    return Err(wrong(format!("run {begun} has {read} entries instead of {entries}")));
                }
            }
        }
    }
    match current {
        Some((run, _)) => {
            Err(Error::NotAnExport { line: lines.number, detail: format!("run {run} is truncated") })
        }
        None if lines.number == 0 => Err(Error::NotAnExport { line: 1, detail: "it is empty".to_owned() }),
        None => Ok(()),
    }
}

/// Adds the runs to the store: all of them, or none on an error. A run that exists already is left unchanged.
pub fn import(store: &mut dyn Store, input: impl BufRead) -> Result<Vec<Imported>> {
    let mut imported = Vec::new();
    let mut input = Some(input);
    store.atomically(&mut |store| {
        let Some(input) = input.take() else { return Ok(false) };
        let mut into: Option<String> = None;
        let mut ends: Vec<(String, u64)> = Vec::new();
        read(input, &mut |item| match (item, &into) {
            (Item::Run(info, text), _) => {
                let there = store.run(&info.id).ok().filter(|there| is_same(there, &info));
                let id = match &there {
                    Some(there) => there.id.clone(),
                    None => store.begin_run(&entered(&info, text))?,
                };
                if let (None, Some(at)) = (&there, info.finished_unix_ms) {
                    ends.push((id.clone(), at));
                }
                into = there.is_none().then(|| id.clone());
                imported.push(Imported { given: info.id, id, was_there: there.is_some() });
                Ok(())
            }
            (Item::Record(kept), Some(run)) => store.append(run, &kept.case_key, &kept.record, kept.settled),
            (Item::Measurement(kept), Some(run)) => store.append_measurement(run, &kept),
            (Item::Document(kept), Some(run)) => store.append_document(run, &kept),
            (_, None) => Ok(()),
        })?;
        for (run, at) in ends {
            store.finish_run(&run, at)?;
        }
        Ok(true)
    })?;
    Ok(imported)
}

/// Whether two entries with the same id are the same run.
fn is_same(a: &RunInfo, b: &RunInfo) -> bool {
    (&a.id, a.kind, a.started_unix_ms, &a.plan_digest, &a.command)
        == (&b.id, b.kind, b.started_unix_ms, &b.plan_digest, &b.command)
}

fn entered(info: &RunInfo, scenario_text: String) -> NewRun {
    NewRun {
        id: Some(info.id.clone()),
        kind: info.kind,
        label: info.label.clone(),
        labels: info.labels.clone(),
        scenario: info.scenario.clone(),
        scenario_text,
        plan_digest: info.plan_digest.clone(),
        planned: info.planned,
        command: info.command.clone(),
        bdp: info.bdp.clone(),
        started_unix_ms: info.started_unix_ms,
    }
}

impl RunLine {
    /// Returns the run, without entries, and the text of its scenario; the error says what is wrong.
    fn read(self) -> std::result::Result<(RunInfo, String), String> {
        if encoding::major(&self.schema, EXPORT_SCHEMA) != encoding::major(EXPORT_SCHEMA, EXPORT_SCHEMA) {
            return Err(format!("its schema is '{}', this bdp reads {EXPORT_SCHEMA}", self.schema));
        }
        if self.run.len() < 4 || !self.run.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(format!("'{}' is not a run id", self.run));
        }
        let kind =
            RunKind::named(&self.kind).ok_or_else(|| format!("'{}' is not a kind of run", self.kind))?;
        let info = RunInfo {
            id: self.run,
            kind,
            label: self.label,
            labels: self.labels,
            scenario: self.scenario,
            started_unix_ms: self.started_unix_ms,
            finished_unix_ms: self.finished_unix_ms,
            planned: self.cases_planned,
            recorded: 0,
            valid: 0,
            plan_digest: self.plan_digest,
            command: self.command,
            bdp: self.measured_by_bdp,
        };
        Ok((info, self.scenario_text))
    }
}

/// Why an entry cannot be read.
enum Unreadable {
    Newer(Error),
    Damaged(String),
}

impl Unreadable {
    fn at(self, line: u64) -> Error {
        match self {
            Self::Newer(error) => error,
            Self::Damaged(detail) => Error::NotAnExport { line, detail },
        }
    }
}

fn entry<T: Entry>(value: Value, run: &str, case_key: &str) -> std::result::Result<T, Unreadable> {
    let schema = value["schema"].as_str().unwrap_or_default().to_owned();
    match encoding::check_schema::<T>(&schema) {
        Ok(()) => serde_json::from_value(value).map_err(|e| Unreadable::Damaged(of_json(&e))),
        Err(DecodeError::Damaged(detail)) => Err(Unreadable::Damaged(detail)),
        Err(DecodeError::Newer(schema)) => Err(Unreadable::Newer(Error::NewerRecord {
            run: run.to_owned(),
            case_key: case_key.to_owned(),
            schema,
            known: T::SCHEMA,
        })),
    }
}

/// Reads lines of bounded length.
struct Lines<R> {
    input: R,
    /// Number of the last line read, from 1.
    number: u64,
}

impl<R: BufRead> Lines<R> {
    fn next(&mut self) -> Result<Option<Line>> {
        let mut bytes = Vec::new();
        let length = (&mut self.input).take(LONGEST_LINE + 1).read_until(b'\n', &mut bytes);
        if length.map_err(|source| stream("read", source))? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let wrong = |detail: String| Error::NotAnExport { line: self.number, detail };
        if bytes.len() as u64 > LONGEST_LINE {
            return Err(wrong(format!("it has more than {LONGEST_LINE} bytes")));
        }
        serde_json::from_slice(&bytes).map(Some).map_err(|e| wrong(of_json(&e)))
    }
}
