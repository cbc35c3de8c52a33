//! Tests that need the store's own connection, to set limits and locks on it.

use std::time::Duration;

use super::*;

fn record() -> Record {
    serde_json::from_str(include_str!("../../tests/it/record.json")).unwrap()
}

fn new_run() -> NewRun {
    NewRun {
        scenario: "a".into(),
        scenario_text: String::new(),
        plan_digest: "d".into(),
        planned: 1,
        command: "bdp lab run a".into(),
        bdp: "0.1.0".into(),
        started_unix_ms: 1,
        ..NewRun::default()
    }
}

fn store() -> (tempfile::TempDir, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("bdp.sqlite")).unwrap();
    (folder, store)
}

#[test]
fn commits_are_synced() {
    let (_folder, store) = store();
    let text = |pragma| store.db.pragma_query_value(None, pragma, |row| row.get::<_, String>(0)).unwrap();
    let number = |pragma| store.db.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(text("journal_mode"), "wal");
    assert_eq!(number("synchronous"), 3, "3 is EXTRA");
}

#[test]
fn a_full_disk_loses_nothing_that_was_stored() {
    let (_folder, mut store) = store();
    let run = store.begin_run(&new_run()).unwrap();
    let pages: i64 = store.db.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    let limit = |store: &SqliteStore, to: i64| {
        store.db.pragma_update_and_check(None, "max_page_count", to, |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(limit(&store, pages + 20), pages + 20);

    let mut stored = 0;
    let refused = loop {
        match store.append(&run, &format!("#{stored}"), &record(), true) {
            Ok(()) => stored += 1,
            Err(e) => break e,
        }
    };
    assert!(matches!(refused, Error::Full { .. }), "{refused}");
    assert!(refused.to_string().contains("free some or use --store PATH"), "{refused}");
    assert!(stored > 2, "{stored}");
    assert_eq!(store.records(&run).unwrap().len(), stored);

    // With space again, the same connection continues.
    limit(&store, pages + 1000);
    store.append(&run, "after", &record(), true).unwrap();
    assert_eq!(store.records(&run).unwrap().len(), stored + 1);
}

#[test]
fn a_lock_that_is_not_given_back_is_named() {
    let (_folder, mut store) = store();
    let holder = SqliteStore::open(store.path()).unwrap();
    holder.db.execute_batch("BEGIN IMMEDIATE").unwrap();
    store.db.busy_timeout(Duration::from_millis(50)).unwrap();
    let refused = store.begin_run(&new_run()).unwrap_err();
    assert!(matches!(refused, Error::Busy { .. }), "{refused}");
    holder.db.execute_batch("ROLLBACK").unwrap();
    store.begin_run(&new_run()).unwrap();
}

#[test]
fn ids_grow_when_the_short_ones_are_taken() {
    let (_folder, mut store) = store();
    store
        .db
        .execute_batch(
            "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 65535)
             INSERT INTO run (id, scenario, scenario_text, plan_digest, planned, command, bdp, started_unix_ms)
             SELECT printf('%04x', i), 'a', '', 'd', 1, '', '', i FROM n",
        )
        .unwrap();
    let id = store.begin_run(&new_run()).unwrap();
    assert_eq!(id.len(), 5);
    // Its first four digits are another run's whole id.
    assert_eq!(store.run(&id[..4]).unwrap().id, id[..4]);
    assert_eq!(store.run(&id).unwrap().id, id);
}

#[test]
fn a_changed_byte_of_a_record_is_reported() {
    let (_folder, mut store) = store();
    let run = store.begin_run(&new_run()).unwrap();
    store.append(&run, "#1", &record(), true).unwrap();
    // Still valid JSON and a valid record, but a different measurement.
    let changed = store
        .db
        .execute("UPDATE record SET json = replace(json, '\"received_bytes\":4139000', '\"received_bytes\":4139001')", [])
        .unwrap();
    assert_eq!(changed, 1);
    let refused = store.records(&run).unwrap_err();
    assert!(matches!(refused, Error::UnreadableRecord { .. }), "{refused}");
    assert!(refused.to_string().contains("checksum"), "{refused}");
}

#[test]
fn a_value_that_no_run_has_is_damage() {
    let (_folder, mut store) = store();
    store.begin_run(&new_run()).unwrap();
    store.db.execute("UPDATE run SET planned = -1", []).unwrap();
    let refused = store.runs(&Page::default()).unwrap_err();
    assert!(matches!(refused, Error::Damaged { .. }), "{refused}");
}
