//! `bdp runs` and `bdp show` as people run them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support;
use assert_cmd::Command;
use bdp_model::record::Record;
use bdp_report::Style;
use bdp_store::{NewRun, SqliteStore, Store};
use serde_json::Value;
use tempfile::TempDir;

/// A store with a finished run, whose id comes first, and a newer one that was cut short.
struct Stored {
    folder: TempDir,
    finished: String,
    cut_short: String,
}

impl Stored {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut store = SqliteStore::open(folder.path().join("bdp.sqlite")).unwrap();
        let finished = begin(&mut store, "s1-window", 1_767_225_600_000, "bdp lab run s1-window");
        for repetition in [1, 2] {
            append(&mut store, &finished, "64K", repetition, true);
        }
        store.finish_run(&finished, 1_767_225_660_000).unwrap();
        let cut_short = begin(&mut store, "s3-noscale", 1_767_229_200_000, "bdp lab run --seed 7 s3-noscale");
        append(&mut store, &cut_short, "30K", 1, true);
        append(&mut store, &cut_short, "128K", 12, false);
        Self { folder, finished, cut_short }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("bdp.sqlite")
    }

    fn records(&self, run: &str) -> Vec<Record> {
        let store = SqliteStore::open_to_read(self.path()).unwrap();
        store.records(run).unwrap().into_iter().map(|(_, record)| record).collect()
    }

    /// Runs with `--store` of this store.
    fn bdp(&self, line: &str) -> Output {
        bdp(&format!("{line} --store {}", self.path().display()))
    }

    #[track_caller]
    fn json(&self, line: &str) -> Value {
        serde_json::from_str(&data(&self.bdp(&format!("{line} --json")))).unwrap()
    }
}

fn begin(store: &mut SqliteStore, scenario: &str, started_unix_ms: u64, command: &str) -> String {
    let new = NewRun {
        scenario: scenario.into(),
        scenario_text: String::new(),
        plan_digest: "9f86d081".into(),
        planned: 2,
        command: command.into(),
        bdp: "0.1.0".into(),
        started_unix_ms,
        ..NewRun::default()
    };
    store.begin_run(&new).unwrap()
}

fn append(store: &mut SqliteStore, run: &str, window: &str, repetition: u32, valid: bool) {
    let text = include_str!("../../../bdp-store/tests/it/record.json");
    let mut record: Record = serde_json::from_str(text).unwrap();
    record.params.insert("flows.0.window".into(), window.into());
    record.case.params = record.params.clone();
    record.repetition = repetition;
    record.case.repetition = repetition;
    record.valid = valid;
    let key = format!("{} {}", record.scenario, record.case.key());
    store.append(run, &key, &record, true).unwrap();
}

/// Runs bdp in an environment without a store or wishes for its output.
fn bdp(line: &str) -> Output {
    command(line).output().unwrap()
}

fn command(line: &str) -> Command {
    let mut command = Command::cargo_bin("bdp").unwrap();
    command.args(line.split_whitespace());
    for variable in ["XDG_DATA_HOME", "XDG_STATE_HOME", "HOME", "LC_ALL", "LANG", "COLUMNS"] {
        command.env_remove(variable);
    }
    command
}

/// Standard output of a run that must succeed without complaint.
#[track_caller]
fn data(output: &Output) -> String {
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complaint.is_empty(), "{complaint}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The one line on standard error of a run that must end with this code and print no data.
#[track_caller]
fn refusal(output: &Output, code: i32) -> String {
    let complaint = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{complaint}");
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(out.is_empty() || support::is_error_document(&out, &complaint, code), "{out}");
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    complaint
}

#[test]
fn runs_are_listed_newest_first() {
    let stored = Stored::new();
    let text = data(&stored.bdp("runs"));
    let (finished, cut_short) = (&stored.finished, &stored.cut_short);
    assert_eq!(
        text,
        format!(
            "run   when                  kind  what        cases  valid  state       resume with\n\
             {cut_short}  2026-01-01T01:00:00Z  lab   s3-noscale    2/2      1  unfinished  \
             bdp lab run --seed 7 s3-noscale --resume\n\
             {finished}  2026-01-01T00:00:00Z  lab   s1-window     2/2      2  finished\n"
        )
    );
}

#[test]
fn runs_as_json() {
    let stored = Stored::new();
    let document = stored.json("runs");
    assert_eq!(document["schema"], "bdp.runs/1");
    assert_eq!(document["store"], stored.path().to_str().unwrap());
    let [newest, oldest] = &document["runs"].as_array().unwrap()[..] else { panic!("{document}") };
    assert_eq!(newest["run"], stored.cut_short.as_str());
    assert_eq!(newest["state"], "unfinished");
    assert_eq!(newest["finished_unix_ms"], Value::Null);
    assert_eq!(newest["resume"], "bdp lab run --seed 7 s3-noscale --resume");
    assert_eq!((&newest["cases_planned"], &newest["cases_recorded"]), (&2.into(), &2.into()));
    assert_eq!(newest["cases_valid"], 1);
    assert_eq!(oldest["run"], stored.finished.as_str());
    assert_eq!(oldest["started"], "2026-01-01T00:00:00Z");
    assert_eq!(oldest["started_unix_ms"], 1_767_225_600_000_u64);
    assert_eq!(oldest["finished_unix_ms"], 1_767_225_660_000_u64);
    assert_eq!(oldest["plan_digest"], "9f86d081");
    assert_eq!(oldest["resume"], Value::Null);
}

#[test]
fn a_list_cut_short_says_so() {
    let stored = Stored::new();
    let mut store = SqliteStore::open(stored.path()).unwrap();
    for at in 0..30 {
        begin(&mut store, "old", at, "bdp lab run --resume old");
    }
    let listed = |line: &str| {
        let output = stored.bdp(line);
        assert!(output.status.success());
        let rows = String::from_utf8(output.stdout).unwrap().lines().count() - 1;
        (rows, String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(listed("runs"), (20, "12 older runs; --limit 32 lists all\n".into()));
    assert_eq!(listed("runs --limit 1"), (1, "31 older runs; --limit 32 lists all\n".into()));
    assert_eq!(listed("runs --limit 32"), (32, String::new()));
    assert_eq!(stored.json("runs")["runs"].as_array().unwrap().len(), 32);
    assert_eq!(stored.json("runs --limit 2")["runs"].as_array().unwrap().len(), 2);
    // A command that resumed already isn't told to twice.
    let document = stored.json("runs");
    assert_eq!(document["runs"][31]["resume"], "bdp lab run --resume old");
    assert_eq!(stored.bdp("runs --limit 0").status.code(), Some(2));
}

#[test]
fn a_run_is_shown_by_the_beginning_of_its_name() {
    let stored = Stored::new();
    let text = data(&stored.bdp(&format!("show {}", stored.finished)));
    let heading =
        format!("run {}  2026-01-01T00:00:00Z  s1-window  2/2 cases, 2 valid, finished", stored.finished);
    let records = stored.records(&stored.finished);
    assert_eq!(records.len(), 2);
    assert_eq!(text, format!("{heading}\n{}", bdp_report::table(&records, &Style::plain())));

    let resumable = data(&stored.bdp(&format!("show {}", stored.cut_short.to_uppercase())));
    assert_eq!(
        resumable.lines().nth(1).unwrap(),
        "resume with  bdp lab run --seed 7 s3-noscale --resume",
        "{resumable}"
    );

    // As many digits as tell the two apart.
    let common = stored.finished.bytes().zip(stored.cut_short.bytes()).take_while(|(a, b)| a == b).count();
    assert_eq!(data(&stored.bdp(&format!("show {}", &stored.finished[..=common]))), text);
    if common > 0 {
        let complaint = refusal(&stored.bdp(&format!("show {}", &stored.finished[..common])), 2);
        assert!(complaint.contains("ambiguous"), "{complaint}");
    }
}

#[test]
fn the_records_come_out_as_they_were_stored() {
    let stored = Stored::new();
    let document = stored.json(&format!("show {}", stored.cut_short));
    let records = stored.records(&stored.cut_short);
    assert_eq!(records.len(), 2);
    assert_eq!(document, bdp_report::json(&records, Some(&stored.cut_short)));
}

#[test]
fn cases_are_chosen_by_their_key() {
    let stored = Stored::new();
    let cases = |filter: &str| {
        let output = command(&format!("show {} --json --store", stored.cut_short))
            .arg(stored.path())
            .args(["--case", filter])
            .output()
            .unwrap();
        let document: Value = serde_json::from_str(&data(&output)).unwrap();
        let cases = document["cases"].as_array().unwrap().clone();
        cases.iter().map(|c| c["repetition"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(cases("window=30K"), [1]);
    assert_eq!(cases("#12"), [12]);
    assert_eq!(cases("#1"), [1]);
    assert_eq!(cases("window"), [1, 12]);
    assert_eq!(cases("128K #12"), [12]);
    // The scenario by itself, and a whole key as errors and progress print it.
    assert_eq!(cases("s1-window"), [1, 12]);
    assert_eq!(cases("s1-window flows.0.streams=10 flows.0.window=30K links.0.delay_ms=86.5 #1"), [1]);

    let complaint = refusal(&stored.bdp(&format!("show {} --case 64K", stored.cut_short)), 2);
    assert!(complaint.contains("'64K'") && complaint.contains("flows.0.window=128K"), "{complaint}");
}

#[test]
fn pages_follow_each_other() {
    let stored = Stored::new();
    let (older, newer) = (&stored.finished, &stored.cut_short);
    let listed = |line: &str| {
        stored.json(line)["runs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["run"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(listed("runs --limit 1"), [newer.as_str()]);
    assert_eq!(listed(&format!("runs --limit 1 --after {newer}")), [older.as_str()]);
    assert_eq!(listed(&format!("runs --after {older}")), [""; 0]);
    let output = stored.bdp(&format!("runs --after {older}"));
    assert!(output.status.success() && output.stdout.is_empty());
    begin(&mut SqliteStore::open(stored.path()).unwrap(), "old", 1, "bdp lab run old");
    let output = stored.bdp(&format!("runs --limit 1 --after {newer}"));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        format!("older runs follow; --after {older} lists them\n")
    );
    assert!(refusal(&stored.bdp("runs --after zzzz"), 2).contains("zzzz"));
}

#[test]
fn no_name_means_the_newest_run_and_a_label_its_newest() {
    let stored = Stored::new();
    assert_eq!(data(&stored.bdp("show")), data(&stored.bdp(&format!("show {}", stored.cut_short))));
    let mut store = SqliteStore::open(stored.path()).unwrap();
    let mut labelled = |at| {
        let new = NewRun {
            label: Some("tuned".into()),
            scenario: "s1-window".into(),
            started_unix_ms: at,
            planned: 1,
            ..NewRun::default()
        };
        let id = store.begin_run(&new).unwrap();
        append(&mut store, &id, "64K", 1, true);
        id
    };
    let (newer, older) = (labelled(20), labelled(10));
    assert_eq!(stored.json("show tuned")["run"], newer.as_str());
    let listed = data(&stored.bdp("runs"));
    assert!(listed.contains(&newer) && listed.contains(&older), "{listed}");
    // The page and the comparison too.
    let page = data(&stored.bdp("report --output -"));
    assert!(page.contains(&format!("run {}", stored.cut_short)));
    let compared = stored.bdp("compare tuned --json");
    let compared: Value = serde_json::from_slice(&compared.stdout).unwrap();
    assert_eq!(
        (&compared["a"]["run"], &compared["b"]["run"]),
        (&newer.into(), &stored.cut_short.clone().into())
    );
}

#[test]
fn runs_are_exported_imported_and_removed() {
    let stored = Stored::new();
    let (finished, cut_short) = (stored.finished.as_str(), stored.cut_short.as_str());
    let file = stored.folder.path().join("runs.jsonl");
    fs::write(&file, data(&stored.bdp(&format!("runs export {finished} {cut_short} {finished}")))).unwrap();
    let other = stored.folder.path().join("other.sqlite");
    let there = |line: &str| bdp(&format!("{line} --store {}", other.display()));
    let import = format!("runs import {}", file.display());
    assert_eq!(data(&there(&import)), format!("{finished}\n{cut_short}\n"));
    assert_eq!(data(&there("runs")), data(&stored.bdp("runs")));
    for run in [finished, cut_short] {
        assert_eq!(
            data(&there(&format!("show {run} --json"))),
            data(&stored.bdp(&format!("show {run} --json")))
        );
    }
    // Once more adds nothing.
    let again = there(&import);
    assert!(again.status.success() && again.stdout.is_empty());
    assert!(String::from_utf8_lossy(&again.stderr).contains("stored already"));
    assert_eq!(data(&there("runs")), data(&stored.bdp("runs")));

    assert_eq!(data(&there(&format!("runs remove {finished}"))), format!("{finished}\n"));
    refusal(&there(&format!("show {finished}")), 2);
    assert!(data(&there("runs")).contains(cut_short));
    // One that is unknown: none is removed.
    refusal(&there(&format!("runs remove {cut_short} zzzz")), 2);
    assert!(data(&there("runs")).contains(cut_short));
    refusal(&there("runs export zzzz"), 2);

    // Cut short, it is refused whole.
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, &text[..text.len() - 10]).unwrap();
    let empty = stored.folder.path().join("empty.sqlite");
    let complaint = refusal(&bdp(&format!("{import} --store {}", empty.display())), 2);
    assert!(complaint.contains("line 8") && complaint.contains("bdp runs export"), "{complaint}");
    assert_eq!(
        data(&bdp(&format!("runs --json --store {}", empty.display()))).matches("\"kind\"").count(),
        0
    );
}

/// A file stands for the run that it holds, exported or printed by --json, without any store.
#[test]
fn a_file_is_shown_and_compared_as_its_run_is() {
    let stored = Stored::new();
    let finished = stored.finished.as_str();
    let place = |name: &str| stored.folder.path().join(name).display().to_string();
    let (exported, printed) = (place("exported.jsonl"), place("printed.json"));
    fs::write(&exported, data(&stored.bdp(&format!("runs export {finished}")))).unwrap();
    fs::write(&printed, data(&stored.bdp(&format!("show {finished} --json")))).unwrap();
    let of_store = data(&stored.bdp(&format!("show {finished}")));
    assert_eq!(data(&bdp(&format!("show {exported}"))), of_store);
    assert_eq!(
        data(&bdp(&format!("show {printed} --store none"))).lines().skip(1).collect::<Vec<_>>(),
        of_store.lines().skip(1).collect::<Vec<_>>()
    );
    for file in [&exported, &printed] {
        assert_eq!(
            data(&bdp(&format!("show {file} --json"))),
            data(&stored.bdp(&format!("show {finished} --json")))
        );
        assert!(
            data(&bdp(&format!("compare {file} {exported}"))).contains("no regression") || !file.is_empty()
        );
        assert_eq!(
            data(&bdp(&format!("report {file} --csv"))),
            data(&stored.bdp(&format!("report {finished} --csv")))
        );
    }
    // Several runs have no one page; nor has what is neither.
    fs::write(&exported, data(&stored.bdp(&format!("runs export {finished} {}", stored.cut_short)))).unwrap();
    assert!(refusal(&bdp(&format!("show {exported}")), 2).contains("contains 2 runs"));
    assert!(refusal(&bdp("show --store none"), 2).contains("give a file"));
}

#[test]
fn an_error_is_json_where_json_was_asked_for() {
    let stored = Stored::new();
    for (line, code) in
        [("show zzzz --json", 2), ("runs --limit 0 --json", 2), ("show ./absent.json --json", 3)]
    {
        let output = stored.bdp(line);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{line}");
        assert!(support::is_error_document(&out, &err, code), "{line}: {out}{err}");
    }
    assert!(stored.bdp("show zzzz").stdout.is_empty());
}

#[test]
fn an_unknown_run_is_a_wrong_request() {
    let stored = Stored::new();
    let complaint = refusal(&stored.bdp("show zzzz"), 2);
    for named in ["zzzz", &stored.finished, &stored.cut_short] {
        assert!(complaint.contains(named), "{complaint}");
    }
}

#[test]
fn a_store_that_cannot_be_opened_is_the_environments_refusal() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent.sqlite");
    let text = folder.path().join("notes.txt");
    fs::write(&text, "not a database, and long enough to have a header of its own".repeat(20)).unwrap();
    for (path, cause) in
        [(absent.as_path(), "no store at"), (&text, "not a SQLite database"), (folder.path(), "a folder")]
    {
        for command in ["runs", "runs --json", "show ab12"] {
            let complaint = refusal(&bdp(&format!("{command} --store {}", path.display())), 3);
            assert!(complaint.contains(cause) && complaint.contains("--store PATH"), "{complaint}");
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "reading made something");
    let complaint = refusal(&bdp("runs"), 3);
    assert!(complaint.contains("XDG_DATA_HOME"), "{complaint}");
}

#[test]
fn a_damaged_store_is_named_and_kept() {
    let stored = Stored::new();
    let mut bytes = fs::read(stored.path()).unwrap();
    bytes[4096..].fill(0xa5);
    fs::write(stored.path(), &bytes).unwrap();
    for command in ["runs", "show ab12"] {
        let complaint = refusal(&stored.bdp(command), 3);
        assert!(complaint.contains("damaged") && complaint.contains("move it away"), "{complaint}");
    }
    assert!(fs::read(stored.path()).unwrap() == bytes);
}

#[test]
fn the_default_place_may_be_empty() {
    let home = tempfile::tempdir().unwrap();
    let at_home = |line: &str| command(line).env("HOME", home.path()).output().unwrap();

    let output = at_home("runs");
    assert!(output.status.success() && output.stdout.is_empty());
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(note.contains("no runs yet") && note.contains(".local/share/bdp/bdp.sqlite"), "{note}");
    assert_eq!(
        serde_json::from_str::<Value>(&data(&at_home("runs --json"))).unwrap()["runs"],
        Value::Array(vec![])
    );
    assert!(refusal(&at_home("show ab12"), 2).contains("the store is empty"));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "reading made something");

    let mut store = SqliteStore::open(home.path().join(".local/share/bdp/bdp.sqlite")).unwrap();
    let id = begin(&mut store, "a", 1, "bdp lab run a");
    assert!(data(&at_home("runs")).contains(&id));
    let elsewhere = home.path().join("data");
    let moved = command("runs").env("HOME", home.path()).env("XDG_DATA_HOME", &elsewhere).output().unwrap();
    assert!(String::from_utf8(moved.stderr).unwrap().contains(elsewhere.to_str().unwrap()));
}

#[test]
fn names_from_the_store_do_not_command_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bdp.sqlite");
    let mut store = SqliteStore::open(&path).unwrap();
    let id = begin(&mut store, "a\x1b[2J\nb", 1, "bdp lab run 'a\x1b]0;b\x07'");
    append(&mut store, &id, "\x1b[31m64K", 1, true);
    for line in ["runs", &format!("show {id}"), &format!("show {id} --case nothing")] {
        let output = bdp(&format!("{line} --store {}", path.display()));
        for said in [output.stdout, output.stderr] {
            assert!(!said.iter().any(|&b| b == 0x1b || b == 0x07), "{}", String::from_utf8_lossy(&said));
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_is_reported_and_a_closed_one_is_not() {
    let stored = Stored::new();
    let run = |sink: std::process::Stdio| {
        std::process::Command::new(assert_cmd::cargo::cargo_bin("bdp"))
            .args(["runs", "--store"])
            .arg(stored.path())
            .stdout(sink)
            .stderr(std::process::Stdio::piped())
            .output()
            .unwrap()
    };
    let full = run(fs::OpenOptions::new().write(true).open(Path::new("/dev/full")).unwrap().into());
    assert!(refusal(&full, 3).contains("standard output"));

    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(data(&run(writer.into())), "");
}
