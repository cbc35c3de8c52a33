//! A store that an older bdp wrote: read as it is, brought up to date before it is written.

use std::fs;
use std::path::{Path, PathBuf};

use bdp_store::{NewRun, Page, RunKind, SqliteStore, Store};
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
    assert_eq!(version_of(&path), 2);
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
        assert_eq!(version_of(&path), 2);
    }
}
