//! `bdp report` as people run it.

mod support;

use std::fs;
use std::process::Output;

use bdp_model::record::Record;
use bdp_store::{NewRun, SqliteStore, Store};
use support::Bench;

/// A bench whose store holds a run, with the run's id.
fn bench() -> (Bench, String) {
    let bench = Bench::new();
    fs::create_dir(bench.path("bdp")).unwrap();
    let mut store = SqliteStore::open(bench.store()).unwrap();
    let new = NewRun {
        scenario: "s1-window".to_owned(),
        label: Some("before".to_owned()),
        planned: 1,
        command: "bdp lab run s1-window".to_owned(),
        bdp: "0.1.0".to_owned(),
        started_unix_ms: 1_767_225_600_000,
        ..NewRun::default()
    };
    let run = store.begin_run(&new).unwrap();
    store.append(&run, "#1", &record(), true).unwrap();
    store.finish_run(&run, 1_767_225_660_000).unwrap();
    (bench, run)
}

fn record() -> Record {
    serde_json::from_str(include_str!("../../bdp-store/tests/it/record.json")).unwrap()
}

fn run(bench: &Bench, line: &str) -> Output {
    bench.bdp(line).output().unwrap()
}

#[track_caller]
fn done(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
fn refused(output: &Output, code: i32, words: &[&str]) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert!(output.stdout.is_empty());
    assert_eq!(error.lines().count(), 1, "{error}");
    for word in words {
        assert!(error.contains(word), "'{word}' is not in: {error}");
    }
}

#[test]
fn a_page_is_written_beside_and_its_path_printed() {
    let (bench, id) = bench();
    let name = format!("bdp-{id}.html");
    assert_eq!(done(&run(&bench, &format!("report {}", &id[..3]))), format!("./{name}\n"));
    let page = fs::read_to_string(bench.path(&name)).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    assert!(page.contains(&format!("run {id}")) && page.contains("bdp lab run s1-window"));
    // By its label, to a place of one's own, and to standard output: always the same.
    assert_eq!(done(&run(&bench, "report before -o mine.html")), "./mine.html\n");
    assert_eq!(fs::read_to_string(bench.path("mine.html")).unwrap(), page);
    assert_eq!(done(&run(&bench, "report before --output -")), page);
    let left: Vec<_> = fs::read_dir(bench.folder()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn values_go_to_standard_output() {
    let (bench, id) = bench();
    let text = done(&run(&bench, &format!("report {id} --csv")));
    assert_eq!(text.lines().count(), 1 + record().flows.len().max(1));
    assert!(text.starts_with("scenario,params,repetition"));
    let goodput = record().flows[0].goodput_bps.to_string();
    assert!(text.lines().nth(1).unwrap().split(',').any(|field| field == goodput), "{text}");
    assert_eq!(done(&run(&bench, &format!("report {id} --csv --output v.csv"))), "./v.csv\n");
    assert_eq!(fs::read_to_string(bench.path("v.csv")).unwrap(), text);
}

#[test]
fn what_json_wrote_is_read_back() {
    let (bench, id) = bench();
    let text = done(&run(&bench, &format!("show {id} --json")));
    bench.write("kept.json", &text);
    assert_eq!(done(&run(&bench, "report kept.json")), "./bdp-kept.html\n");
    assert!(fs::read_to_string(bench.path("bdp-kept.html")).unwrap().contains("Conditions and fidelity"));
}

#[test]
fn what_is_wrong_is_said_in_a_line() {
    let (bench, id) = bench();
    refused(&run(&bench, "report ffff"), 2, &["ffff", "the newest are"]);
    refused(&run(&bench, "report missing.json"), 3, &["missing.json"]);
    bench.write("other.json", "{\"a\": 1}");
    refused(&run(&bench, "report other.json"), 2, &["other.json", "docs/record.md"]);
    bench.write("newer.json", "{\"schema\": \"bdp.cases/2\", \"cases\": []}");
    refused(&run(&bench, "report newer.json"), 2, &["bdp.cases/2", "bdp.cases/1"]);
    refused(&run(&bench, &format!("report {id} -o nowhere/x.html")), 3, &["nowhere/x.html", "cannot write"]);
    refused(&run(&Bench::new(), "report ffff"), 2, &["nothing is stored yet"]);
}

#[test]
fn a_page_replaces_an_older_one_and_goes_to_a_device() {
    let (bench, id) = bench();
    bench.write("old.html", "old");
    done(&run(&bench, &format!("report {id} -o old.html")));
    assert!(fs::read_to_string(bench.path("old.html")).unwrap().len() > 1000);
    assert_eq!(done(&run(&bench, &format!("report {id} -o /dev/null"))), "/dev/null\n");
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}
