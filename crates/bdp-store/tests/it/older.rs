//! A store that an older bdp wrote: read as it is, brought up to date before it is written.

use std::fs;
use std::path::{Path, PathBuf};

use bdp_store::{Item, NewRun, Page, RunKind, SqliteStore, Store};
use tempfile::TempDir;

use crate::samples::{measured, record, run};

/// The tables as version 1 made them.
const VERSION_1: &str = "
    CREATE TABLE run (
        seq              INTEGER PRIMARY KEY,
        id               TEXT NOT NULL UNIQUE,
        scenario         TEXT NOT NULL,
        scenario_text    TEXT NOT NULL,
        plan_digest      TEXT NOT NULL,
        planned          INTEGER NOT NULL,
        command          TEXT NOT NULL,
        bdp              TEXT NOT NULL,
        started_unix_ms  INTEGER NOT NULL,
        finished_unix_ms INTEGER
    ) STRICT;
    CREATE TABLE record (
        seq         INTEGER PRIMARY KEY,
        run         INTEGER NOT NULL REFERENCES run (seq),
        case_key    TEXT NOT NULL,
        attempt     INTEGER NOT NULL,
        valid       INTEGER NOT NULL,
        settled     INTEGER NOT NULL,
        goodput_bps REAL,
        schema      TEXT NOT NULL,
        checksum    INTEGER NOT NULL,
        json        TEXT NOT NULL
    ) STRICT;
    CREATE INDEX record_outcome ON record (run, case_key, valid, settled);
    PRAGMA application_id = 1650749523;
    PRAGMA user_version = 1;
";

/// A store of version 1 with a run of two records.
fn version_1() -> (TempDir, PathBuf, String) {
    let folder = tempfile::tempdir().unwrap();
    let (newer, path) = (folder.path().join("newer.sqlite"), folder.path().join("bdp.sqlite"));
    let mut store = SqliteStore::open(&newer).unwrap();
    let id = store.begin_run(&run("s1-window", "d1", 1)).unwrap();
    store.append(&id, "#1", &record(), true).unwrap();
    store.append(&id, "#2", &record(), true).unwrap();
    drop(store);
    let older = rusqlite::Connection::open(&path).unwrap();
    older.execute_batch(VERSION_1).unwrap();
    older.execute("ATTACH ?1 AS newer", [newer.to_str().unwrap()]).unwrap();
    older
        .execute_batch(
            "INSERT INTO run SELECT seq, id, scenario, scenario_text, plan_digest, planned, command, bdp,
                 started_unix_ms, finished_unix_ms FROM newer.run;
             INSERT INTO record SELECT * FROM newer.record;
             PRAGMA main.journal_mode = WAL;",
        )
        .unwrap();
    older.close().unwrap();
    fs::remove_file(newer).unwrap();
    (folder, path, id)
}

fn version_of(path: &Path) -> i32 {
    let store = rusqlite::Connection::open(path).unwrap();
    store.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[test]
fn reading_changes_nothing() {
    let (_folder, path, id) = version_1();
    let before = fs::read(&path).unwrap();
    let store = SqliteStore::open_to_read(&path).unwrap();
    let info = store.run(&id).unwrap();
    assert_eq!((info.kind, info.label, info.recorded), (RunKind::Lab, None, 2));
    assert_eq!(store.records(&id).unwrap().len(), 2);
    assert_eq!(store.measurements(&id).unwrap(), []);
    assert_eq!(store.documents(&id).unwrap(), []);
    assert_eq!(store.settled_keys(&id).unwrap().len(), 2);
    drop(store);
    assert!(fs::read(&path).unwrap() == before, "the file was changed");
}

#[test]
fn writing_brings_it_up_to_date_and_loses_nothing() {
    let (_folder, path, id) = version_1();
    let before = SqliteStore::open_to_read(&path).unwrap().runs(&Page::default()).unwrap();
    let mut store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.runs(&Page::default()).unwrap(), before);
    assert_eq!(store.records(&id).unwrap().len(), 2);
    let new = NewRun { kind: RunKind::Measure, label: Some("new".into()), ..run("ams1", "", 2) };
    let measure = store.begin_run(&new).unwrap();
    store.append_measurement(&measure, &measured("#1")).unwrap();
    drop(store);
    assert_eq!(version_of(&path), 3);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.measurements(&measure).unwrap(), [measured("#1")]);
    assert_eq!(store.run("new").unwrap().id, measure);
}

#[test]
fn two_may_bring_it_up_to_date_at_once() {
    for _ in 0..10 {
        let (_folder, path, id) = version_1();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| assert_eq!(SqliteStore::open(&path).unwrap().records(&id).unwrap().len(), 2));
            }
        });
        assert_eq!(version_of(&path), 3);
    }
}

/// Findings as sentences, as older versions stored them.
fn older_findings() -> serde_json::Value {
    serde_json::from_str(include_str!("older-findings.json")).unwrap()
}

/// FNV-1a, as it is stored beside each JSON.
fn checksum(json: &str) -> i64 {
    let hash = json.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash.cast_signed()
}

#[test]
fn findings_that_older_versions_stored_as_sentences_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bdp.sqlite");
    let mut store = SqliteStore::open(&path).unwrap();
    let lab = store.begin_run(&run("s1-window", "d1", 1)).unwrap();
    store.append(&lab, "#1", &record(), true).unwrap();
    let new = NewRun { kind: RunKind::Measure, ..run("ams1", "", 2) };
    let measure = store.begin_run(&new).unwrap();
    store.append_measurement(&measure, &measured("#1")).unwrap();
    drop(store);
    let stored = rusqlite::Connection::open(&path).unwrap();
    for (table, flows) in [("record", "flows"), ("measurement", "directions")] {
        let of = format!("SELECT json FROM {table}");
        let json: String = stored.query_row(&of, [], |row| row.get(0)).unwrap();
        let mut entry: serde_json::Value = serde_json::from_str(&json).unwrap();
        entry[flows][0]["findings"] = older_findings();
        let json = entry.to_string();
        let update = format!("UPDATE {table} SET json = ?1, checksum = ?2");
        assert_eq!(stored.execute(&update, rusqlite::params![json, checksum(&json)]).unwrap(), 1);
    }
    stored.close().unwrap();

    let (mut record, mut measured) = (record(), measured("#1"));
    record.flows[0].findings.clear();
    measured.measurement.directions[0].findings.clear();
    let store = SqliteStore::open_to_read(&path).unwrap();
    assert_eq!(store.records(&lab).unwrap(), [("#1".to_owned(), record.clone())]);
    assert_eq!(store.measurements(&measure).unwrap(), [measured.clone()]);

    // Lines of JSON that an older version exported.
    let mut lines = Vec::new();
    for run in [&lab, &measure] {
        bdp_store::export(&store, &store.run(run).unwrap(), "0.1.0", &mut lines).unwrap();
    }
    let lines = String::from_utf8(lines).unwrap();
    let older = lines.replace("\"findings\":[]", &format!("\"findings\":{}", older_findings()));
    assert_eq!(older.matches("\"subject\"").count(), 2);
    let (mut records, mut measurements) = (Vec::new(), Vec::new());
    let mut each = |item| {
        match item {
            Item::Run(..) | Item::Document(_) => {}
            Item::Record(kept) => records.push(kept.record),
            Item::Measurement(kept) => measurements.push(*kept),
        }
        Ok(())
    };
    bdp_store::read(older.as_bytes(), &mut each).unwrap();
    assert_eq!((records, measurements), (vec![record], vec![measured]));
}
