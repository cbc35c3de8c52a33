//! The store in one SQLite file.

mod failure;
mod open;
mod place;

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use bdp_model::measurement::Measurement;
use bdp_model::measurement::labels::Labels;
use bdp_model::plain::of_json;
use bdp_model::record::Record;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use self::failure::explain;
use crate::encoding::{self, DecodeError, Entry};
use crate::{
    DocumentKind, Error, NewRun, Page, Result, RunInfo, RunKind, Store, StoredDocument, StoredMeasurement,
    StoredRecord,
};

/// A run's labels are stored as a document that is no [`DocumentKind`], so that a bdp without labels can read the store.
const LABELS: &str = "labels";
/// Maximum number of runs named in an error.
const NAMED: usize = 5;

/// A store in one SQLite file, which several processes may use at once.
#[derive(Debug)]
pub struct SqliteStore {
    db: Connection,
    path: PathBuf,
}

impl SqliteStore {
    /// Opens the store for reading and writing, creating it and its folders if missing.
    ///
    /// A file that isn't a sound store of this version or an older one is refused and left unchanged. If this
    /// fails, nothing was created.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Ok(Self { db: open::for_writing(path)?, path: path.to_owned() })
    }

    /// Opens the store for reading only; a missing one is [`Error::Missing`].
    pub fn open_to_read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Ok(Self { db: open::for_reading(path)?, path: path.to_owned() })
    }

    /// Returns `bdp/bdp.sqlite` in `$XDG_DATA_HOME`, or in `~/.local/share` if that isn't set or isn't absolute; without
    /// `HOME` in `$XDG_STATE_HOME`.
    pub fn default_path() -> Result<PathBuf> {
        let variable = |name| std::env::var_os(name);
        place::from_environment(variable("XDG_DATA_HOME"), variable("HOME"), variable("XDG_STATE_HOME"))
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the run's row id, by which its records refer to it.
    fn row_of(&self, run: &str) -> Result<i64> {
        self.db
            .prepare_cached("SELECT seq FROM run WHERE id = ?1")
            .and_then(|mut s| s.query_row([run], |row| row.get(0)).optional())
            .map_err(self.failing_to("read"))?
            .map_or_else(|| Err(self.unknown(run)), Ok)
    }

    fn unknown(&self, given: &str) -> Error {
        let newest = self
            .db
            .prepare_cached("SELECT id FROM run ORDER BY started_unix_ms DESC, seq DESC LIMIT ?1")
            .and_then(|mut s| s.query_map([NAMED as i64], |row| row.get(0))?.collect());
        match newest {
            Ok(candidates) => Error::UnknownRun { given: given.to_owned(), candidates },
            Err(e) => self.failing_to("read")(e),
        }
    }

    /// Returns up to `limit` runs that match `condition`, newest first.
    fn select(
        &self,
        condition: &str,
        values: &[&dyn rusqlite::ToSql],
        limit: Option<usize>,
    ) -> Result<Vec<RunInfo>> {
        // SQLite takes a negative limit as none. Cases are counted only for the selected runs.
        let limit = limit.and_then(|n| i64::try_from(n).ok()).unwrap_or(-1);
        let sql = format!(
            "SELECT id, scenario, started_unix_ms, finished_unix_ms, planned,
                    (SELECT count(DISTINCT case_key) FROM record WHERE run = run.seq)
                        + (SELECT count(DISTINCT case_key) FROM measurement WHERE run = run.seq),
                    (SELECT count(DISTINCT case_key) FROM record WHERE run = run.seq AND valid)
                        + (SELECT count(DISTINCT case_key) FROM measurement WHERE run = run.seq AND valid),
                    plan_digest, command, bdp, kind, label,
                    (SELECT json FROM document WHERE run = run.seq AND kind = '{LABELS}')
             FROM (SELECT * FROM run WHERE {condition} ORDER BY started_unix_ms DESC, seq DESC LIMIT {limit}) AS run
             ORDER BY started_unix_ms DESC, seq DESC"
        );
        self.db
            .prepare_cached(&sql)
            .and_then(|mut s| s.query_map(values, run_of_row)?.collect())
            .map_err(self.failing_to("read"))
    }

    /// Passes each entry of a run that a statement selects to `each`: case key, schema, JSON, checksum, and one more column.
    fn each_entry(
        &self,
        run: &str,
        statement: &str,
        each: &mut dyn FnMut(StoredEntry, &Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let row = self.row_of(run)?;
        let mut statement = self.db.prepare_cached(statement).map_err(self.failing_to("read"))?;
        let mut rows = statement.query([row]).map_err(self.failing_to("read"))?;
        while let Some(row) = rows.next().map_err(self.failing_to("read"))? {
            let entry = StoredEntry::of_row(row).map_err(self.failing_to("read"))?;
            if each(entry, row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Changes the row of a run.
    fn change(&self, run: &str, statement: &str, values: &[&dyn rusqlite::ToSql]) -> Result<()> {
        let changed = self.db.execute(statement, values).map_err(self.failing_to("write"))?;
        if changed == 1 { Ok(()) } else { Err(self.unknown(run)) }
    }

    fn failing_to(&self, operation: &'static str) -> impl Fn(rusqlite::Error) -> Error {
        move |source| explain(operation, &self.path, source)
    }
}

impl Store for SqliteStore {
    fn begin_run(&mut self, new: &NewRun) -> Result<String> {
        let path = self.path.clone();
        enter_run(&mut self.db, new).map_err(|e| explain("write", &path, e))
    }

    fn append(&mut self, run: &str, case_key: &str, record: &Record, settled: bool) -> Result<()> {
        let encoded = encoding::encode(record)
            .map_err(|detail| Error::NotKept { case_key: case_key.to_owned(), detail })?;
        // One statement is one transaction: SQLite syncs it to disk before it returns.
        let added = self
            .db
            .prepare_cached(
                "INSERT INTO record
                     (run, case_key, attempt, valid, settled, goodput_bps, schema, json, checksum)
                 SELECT seq, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM run WHERE id = ?1",
            )
            .and_then(|mut s| {
                s.execute(params![
                    run,
                    case_key,
                    record.attempt,
                    record.valid,
                    settled,
                    record.goodput_bps,
                    record.schema,
                    encoded.json,
                    encoded.checksum
                ])
            })
            .map_err(self.failing_to("write"))?;
        if added == 1 { Ok(()) } else { Err(self.unknown(run)) }
    }

    fn append_measurement(&mut self, run: &str, kept: &StoredMeasurement) -> Result<()> {
        let not_kept = |detail| Error::NotKept { case_key: kept.case_key.clone(), detail };
        let encoded = encoding::encode(&kept.measurement).map_err(not_kept)?;
        let params = serde_json::to_string(&kept.params).map_err(|e| not_kept(e.to_string()))?;
        let added = self
            .db
            .prepare_cached(
                "INSERT INTO measurement (run, case_key, params, valid, schema, json, checksum)
                 SELECT seq, ?2, ?3, ?4, ?5, ?6, ?7 FROM run WHERE id = ?1",
            )
            .and_then(|mut s| {
                s.execute(params![
                    run,
                    kept.case_key,
                    params,
                    kept.measurement.error.is_none(),
                    kept.measurement.schema,
                    encoded.json,
                    encoded.checksum
                ])
            })
            .map_err(self.failing_to("write"))?;
        if added == 1 { Ok(()) } else { Err(self.unknown(run)) }
    }

    fn append_document(&mut self, run: &str, document: &StoredDocument) -> Result<()> {
        let json = document.document.to_string();
        let checksum = encoding::checksum(json.as_bytes());
        let added = self
            .db
            .prepare_cached(
                "INSERT INTO document (run, kind, at_unix_ms, checksum, json)
                 SELECT seq, ?2, ?3, ?4, ?5 FROM run WHERE id = ?1",
            )
            .and_then(|mut s| {
                s.execute(params![run, document.kind.name(), whole(document.at_unix_ms), checksum, json])
            })
            .map_err(self.failing_to("write"))?;
        if added == 1 { Ok(()) } else { Err(self.unknown(run)) }
    }

    fn replan(&mut self, run: &str, planned: u32) -> Result<()> {
        self.change(run, "UPDATE run SET planned = ?2 WHERE id = ?1", &[&run, &planned])
    }

    fn finish_run(&mut self, run: &str, at_unix_ms: u64) -> Result<()> {
        self.change(run, "UPDATE run SET finished_unix_ms = ?2 WHERE id = ?1", &[&run, &whole(at_unix_ms)])
    }

    fn remove_run(&mut self, run: &str) -> Result<()> {
        let row = self.row_of(run)?;
        let remove = "DELETE FROM record WHERE run = ?1; DELETE FROM measurement WHERE run = ?1; DELETE FROM document WHERE run = ?1; DELETE FROM run WHERE seq = ?1";
        let removed = self.db.unchecked_transaction().and_then(|transaction| {
            for statement in remove.split(';') {
                transaction.execute(statement, [row])?;
            }
            transaction.commit()
        });
        removed.map_err(self.failing_to("write"))
    }

    fn atomically(&mut self, work: &mut dyn FnMut(&mut dyn Store) -> Result<bool>) -> Result<()> {
        self.db.execute_batch("BEGIN IMMEDIATE").map_err(self.failing_to("write"))?;
        let done = work(self).and_then(|commit| {
            let end = if commit { "COMMIT" } else { "ROLLBACK" };
            self.db.execute_batch(end).map_err(self.failing_to("write"))
        });
        if done.is_err() && !self.db.is_autocommit() {
            // The first error is the one reported.
            let _ = self.db.execute_batch("ROLLBACK");
        }
        done
    }

    fn runs(&self, page: &Page) -> Result<Vec<RunInfo>> {
        let Some(after) = &page.after else { return self.select("TRUE", &[], page.limit) };
        let row = self.row_of(after)?;
        let condition =
            "(started_unix_ms, seq) < (SELECT started_unix_ms, seq FROM run AS last WHERE last.seq = ?1)";
        self.select(condition, &[&row], page.limit)
    }

    fn count_runs(&self) -> Result<u64> {
        let count: i64 = self
            .db
            .query_row("SELECT count(*) FROM run", [], |row| row.get(0))
            .map_err(self.failing_to("read"))?;
        Ok(count.unsigned_abs())
    }

    fn run(&self, id_label_or_prefix: &str) -> Result<RunInfo> {
        let id = id_label_or_prefix.to_ascii_lowercase();
        if id.is_empty() {
            return Err(self.unknown(id_label_or_prefix));
        }
        // A whole id takes precedence over a longer one with that prefix, and a label over a prefix.
        let named = format!(
            "EXISTS (SELECT 1 FROM document, json_each(document.json) AS one WHERE document.run = run.seq
                 AND document.kind = '{LABELS}' AND one.key || '=' || one.value = ?1)"
        );
        let conditions: [(&str, &str, usize); 4] = [
            ("id = ?1", &id, 1),
            ("label = ?1", id_label_or_prefix, 1),
            (&named, id_label_or_prefix, 1),
            ("substr(id, 1, length(?1)) = ?1", &id, NAMED),
        ];
        for (condition, value, limit) in conditions {
            let found = self.select(condition, &[&value], Some(limit))?;
            match <[RunInfo; 1]>::try_from(found) {
                Ok([only]) => return Ok(only),
                Err(found) if found.is_empty() => {}
                Err(found) => {
                    return Err(Error::AmbiguousRun {
                        given: id_label_or_prefix.to_owned(),
                        candidates: found.into_iter().map(|run| run.id).collect(),
                    });
                }
            }
        }
        Err(self.unknown(id_label_or_prefix))
    }

    fn scenario_text(&self, run: &str) -> Result<String> {
        let row = self.row_of(run)?;
        self.db
            .query_row("SELECT scenario_text FROM run WHERE seq = ?1", [row], |row| row.get(0))
            .map_err(self.failing_to("read"))
    }

    fn each_record(&self, run: &str, each: &mut dyn FnMut(StoredRecord) -> ControlFlow<()>) -> Result<()> {
        let statement =
            "SELECT case_key, schema, json, checksum, settled FROM record WHERE run = ?1 ORDER BY seq";
        self.each_entry(run, statement, &mut |stored, row| {
            let record = stored.decode::<Record>(run, &self.path)?;
            let settled = row.get(4).map_err(self.failing_to("read"))?;
            Ok(each(StoredRecord { case_key: stored.case_key, settled, record }))
        })
    }

    fn each_measurement(
        &self,
        run: &str,
        each: &mut dyn FnMut(StoredMeasurement) -> ControlFlow<()>,
    ) -> Result<()> {
        let statement =
            "SELECT case_key, schema, json, checksum, params FROM measurement WHERE run = ?1 ORDER BY seq";
        self.each_entry(run, statement, &mut |stored, row| {
            let params: String = row.get(4).map_err(self.failing_to("read"))?;
            let params = serde_json::from_str(&params).map_err(|e| {
                stored.unreadable(run, &self.path, format!("its parameters: {}", of_json(&e)))
            })?;
            let measurement = stored.decode::<Measurement>(run, &self.path)?;
            Ok(each(StoredMeasurement { case_key: stored.case_key, params, measurement }))
        })
    }

    fn documents(&self, run: &str) -> Result<Vec<StoredDocument>> {
        let row = self.row_of(run)?;
        let mut all = Vec::new();
        let mut statement = self
            .db
            .prepare_cached(
                "SELECT kind, at_unix_ms, checksum, json FROM document WHERE run = ?1 ORDER BY seq",
            )
            .map_err(self.failing_to("read"))?;
        let mut rows = statement.query([row]).map_err(self.failing_to("read"))?;
        while let Some(row) = rows.next().map_err(self.failing_to("read"))? {
            let (kind, at, checksum, json) = document_row(row).map_err(self.failing_to("read"))?;
            // A document kind added by a newer bdp is skipped.
            let Some(kind) = DocumentKind::named(&kind) else { continue };
            let damaged = |detail: String| Error::UnreadableRecord {
                path: self.path.clone(),
                run: run.to_owned(),
                case_key: kind.name().to_owned(),
                detail,
            };
            if encoding::checksum(json.as_bytes()) != checksum {
                return Err(damaged("its checksum does not match".to_owned()));
            }
            let document = serde_json::from_str(&json).map_err(|e| damaged(of_json(&e)))?;
            all.push(StoredDocument { kind, at_unix_ms: at.unsigned_abs(), document });
        }
        Ok(all)
    }

    fn settled_keys(&self, run: &str) -> Result<HashSet<String>> {
        let row = self.row_of(run)?;
        self.db
            .prepare_cached(
                "SELECT case_key FROM record WHERE run = ?1 AND settled
                 UNION SELECT case_key FROM measurement WHERE run = ?1",
            )
            .and_then(|mut s| s.query_map([row], |row| row.get(0))?.collect())
            .map_err(self.failing_to("read"))
    }

    fn unfinished(&self, scenario: &str, plan_digest: &str) -> Result<Option<RunInfo>> {
        let condition = "finished_unix_ms IS NULL AND scenario = ?1 AND plan_digest = ?2";
        Ok(self.select(condition, &[&scenario, &plan_digest], Some(1))?.into_iter().next())
    }
}

/// A row of the table `document`: kind, time, checksum, JSON.
fn document_row(row: &Row<'_>) -> rusqlite::Result<(String, i64, i64, String)> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
}

/// A row of the table `record` or `measurement`, unread.
struct StoredEntry {
    case_key: String,
    schema: String,
    json: String,
    checksum: i64,
}

impl StoredEntry {
    fn of_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { case_key: row.get(0)?, schema: row.get(1)?, json: row.get(2)?, checksum: row.get(3)? })
    }

    fn decode<T: Entry>(&self, run: &str, path: &Path) -> Result<T> {
        encoding::decode(&self.json, self.checksum, &self.schema).map_err(|error| match error {
            DecodeError::Newer(schema) => Error::NewerRecord {
                run: run.to_owned(),
                case_key: self.case_key.clone(),
                schema,
                known: T::SCHEMA,
            },
            DecodeError::Damaged(detail) => self.unreadable(run, path, detail),
        })
    }

    fn unreadable(&self, run: &str, path: &Path, detail: String) -> Error {
        Error::UnreadableRecord {
            path: path.to_owned(),
            run: run.to_owned(),
            case_key: self.case_key.clone(),
            detail,
        }
    }
}

/// Adds a run in a transaction of its own, unless there is one already.
fn enter_run(db: &mut Connection, new: &NewRun) -> rusqlite::Result<String> {
    if !db.is_autocommit() {
        return insert_run(db, new);
    }
    let entry = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let id = insert_run(&entry, new)?;
    entry.commit()?;
    Ok(id)
}

/// Adds a run under a free id: its own, or else four digits, more once most of those are taken.
fn insert_run(db: &Connection, new: &NewRun) -> rusqlite::Result<String> {
    const TRIES_PER_LENGTH: u32 = 8;
    let mut wanted = new.id.clone();
    let mut tries = 0;
    let id = loop {
        let id = match wanted.take() {
            Some(id) => id,
            None => {
                let digits = 4 + tries / TRIES_PER_LENGTH;
                tries += 1;
                db.query_row("SELECT substr(lower(hex(randomblob(?1))), 1, ?1)", [digits], |r| r.get(0))?
            }
        };
        if !db.prepare_cached("SELECT 1 FROM run WHERE id = ?1")?.exists([&id])? {
            break id;
        }
    };
    db.execute(
        "INSERT INTO run
             (id, scenario, scenario_text, plan_digest, planned, command, bdp, started_unix_ms, kind, label)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            id,
            new.scenario,
            new.scenario_text,
            new.plan_digest,
            new.planned,
            new.command,
            new.bdp,
            whole(new.started_unix_ms),
            new.kind.name(),
            new.label
        ],
    )?;
    if !new.labels.is_empty() {
        let row = db.last_insert_rowid();
        let json = serde_json::to_string(&new.labels)
            .map_err(|e| rusqlite::Error::ToSqlConversionFailure(Box::new(e)))?;
        db.execute(
            "INSERT INTO document (run, kind, at_unix_ms, checksum, json) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![row, LABELS, whole(new.started_unix_ms), encoding::checksum(json.as_bytes()), json],
        )?;
    }
    Ok(id)
}

fn run_of_row(row: &Row<'_>) -> rusqlite::Result<RunInfo> {
    let milliseconds = |column: usize, value: i64| {
        u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
    };
    Ok(RunInfo {
        id: row.get(0)?,
        scenario: row.get(1)?,
        started_unix_ms: milliseconds(2, row.get(2)?)?,
        finished_unix_ms: row.get::<_, Option<i64>>(3)?.map(|at| milliseconds(3, at)).transpose()?,
        planned: row.get(4)?,
        recorded: row.get(5)?,
        valid: row.get(6)?,
        plan_digest: row.get(7)?,
        command: row.get(8)?,
        bdp: row.get(9)?,
        kind: kind(row.get(10)?)?,
        label: row.get(11)?,
        labels: labels(row.get(12)?),
    })
}

/// Returns no labels if they cannot be read: the run is usable without them.
fn labels(json: Option<String>) -> Labels {
    json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default()
}

fn kind(name: String) -> rusqlite::Result<RunKind> {
    let unknown = || {
        let what = format!("a run of kind '{name}'");
        rusqlite::Error::FromSqlConversionFailure(10, rusqlite::types::Type::Text, what.into())
    };
    RunKind::named(&name).ok_or_else(unknown)
}

/// Converts to SQLite's signed integers; the clock stays in range for 292 million years.
fn whole(unix_ms: u64) -> i64 {
    i64::try_from(unix_ms).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
