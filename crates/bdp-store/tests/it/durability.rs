//! A record that was acknowledged outlives its writer, however that one ends.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use bdp_store::{SqliteStore, Store};

use crate::samples::{attempt, record, run};

/// Names the store to the process that writes.
const STORE: &str = "BDP_TEST_STORE";
/// What that process prints before each key that was acknowledged.
const ACKNOWLEDGED: &str = "acknowledged ";

/// Not a test by itself: stores records for ever, and prints each key once its record is acknowledged.
#[test]
#[ignore = "the process that other tests start and kill"]
fn writer() {
    let path = std::env::var_os(STORE).expect("another test names the store");
    let mut store = SqliteStore::open(path).unwrap();
    let id = store.begin_run(&run("killed", "d", 1)).unwrap();
    println!("{ACKNOWLEDGED}{id}");
    for i in 1..=u32::MAX {
        let key = format!("#{i}");
        if let Err(refused) = store.append(&id, &key, &attempt(i, 1, true), true) {
            panic!("after {} records: {refused}", i - 1);
        }
        println!("{ACKNOWLEDGED}{key}");
    }
}

/// A writer in a process of its own, and what it says.
struct Writer {
    process: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Writer {
    fn start(store: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "durability::writer", "--ignored", "--nocapture"])
            .env(STORE, store)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// The next key that was acknowledged; `None` once the writer is gone and all it said was read.
    fn acknowledged(&mut self) -> Option<String> {
        // The harness prints its own words too, on a line of its own or before the first key.
        self.lines.find_map(|line| line.ok()?.split_once(ACKNOWLEDGED).map(|(_, key)| key.to_owned()))
    }

    /// SIGKILL after so many more keys; gives every key that was acknowledged until it struck.
    fn kill_after(mut self, keys: usize) -> Vec<String> {
        let mut all: Vec<String> =
            (0..keys).map(|_| self.acknowledged().expect("the writer goes on until it is killed")).collect();
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        while let Some(key) = self.acknowledged() {
            all.push(key);
        }
        all
    }
}

#[test]
fn what_was_acknowledged_outlives_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bdp.sqlite");
    for round in 1..=5 {
        let mut writer = Writer::start(&path);
        let id = writer.acknowledged().expect("a run begins");
        let acknowledged = writer.kill_after(3 * round);

        let store = SqliteStore::open(&path).unwrap();
        let stored = store.records(&id).unwrap();
        let keys: Vec<&String> = stored.iter().map(|(key, _)| key).collect();
        // The kill may fall between storing and saying so: one more than was acknowledged, never one fewer.
        assert!(keys.len() == acknowledged.len() || keys.len() == acknowledged.len() + 1, "{keys:?}");
        assert!(
            acknowledged.iter().eq(keys[..acknowledged.len()].iter().copied()),
            "{acknowledged:?} {keys:?}"
        );
        let (_, last) = stored.last().unwrap();
        assert_eq!(*last, attempt(u32::try_from(keys.len()).unwrap(), 1, true));

        let resumable = store.unfinished("killed", "d").unwrap().expect("the run did not end");
        assert_eq!(resumable.id, id);
        assert_eq!(store.settled_keys(&id).unwrap().len(), keys.len());
        assert_eq!(store.count_runs().unwrap(), round as u64, "earlier runs are still there");
    }
}

#[test]
fn two_processes_write_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bdp.sqlite");
    // Started together, so that both find no store and make one.
    let mut writers = [Writer::start(&path), Writer::start(&path)];
    let ids: Vec<String> = writers.iter_mut().map(|w| w.acknowledged().expect("a run begins")).collect();
    assert_ne!(ids[0], ids[1]);
    let acknowledged = writers.map(|writer| writer.kill_after(20));
    let store = SqliteStore::open(&path).unwrap();
    for (id, acknowledged) in ids.iter().zip(acknowledged) {
        let stored = store.records(id).unwrap();
        assert!(stored.len() >= acknowledged.len() && stored.len() <= acknowledged.len() + 1);
    }
}

#[test]
fn reading_goes_on_while_another_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bdp.sqlite");
    let mut writer = Writer::start(&path);
    let id = writer.acknowledged().expect("a run begins");
    let mut seen = 0;
    for acknowledged in 1..=10 {
        writer.acknowledged().expect("the writer goes on");
        let now = SqliteStore::open_to_read(&path).unwrap().records(&id).unwrap().len();
        assert!(now >= seen.max(acknowledged), "{now} after {seen}, {acknowledged} acknowledged");
        seen = now;
    }
    writer.kill_after(1);
}

#[test]
fn a_closed_store_is_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bdp.sqlite");
    let mut store = SqliteStore::open(&path).unwrap();
    let id = store.begin_run(&run("a", "d", 1)).unwrap();
    store.append(&id, "#1", &record(), true).unwrap();
    drop(store);
    SqliteStore::open_to_read(&path).unwrap().records(&id).unwrap();
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert_eq!(files, ["bdp.sqlite"]);
}
