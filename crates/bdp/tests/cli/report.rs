//! `bdp report` as people run it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Output;

use crate::support::Bench;
use bdp_model::flow::window::WindowBytes;
use bdp_model::measurement::Measurement;
use bdp_model::record::Record;
use bdp_store::{NewRun, RunKind, SqliteStore, Store, StoredMeasurement};
use serde_json::Value;

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
    serde_json::from_str(include_str!("../../../bdp-store/tests/it/record.json")).unwrap()
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
    let own = done(&run(&bench, "report before --title Office --note Draft. --output -"));
    assert!(own.contains("<title>Office</title>") && own.contains("<h1>Office</h1>"), "{own}");
    assert!(own.contains("<p class=\"authors-note\">Draft.</p>"), "{own}");
    refused(&run(&bench, "report before --csv --title Office"), 2, &["--csv", "--title"]);
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

/// Every shape that the error about an unknown one lists: the page of what `show --json` prints is that of the store, but
/// for what only the store knows.
#[test]
fn every_document_gives_the_page_of_its_run() {
    let (bench, lab) = bench();
    let mut store = SqliteStore::open(bench.store()).unwrap();
    let measurement: Measurement =
        serde_json::from_str(include_str!("../../../bdp-store/tests/it/measurement.json")).unwrap();
    let mut kept = |kind, label: &str, points: &[(u32, u64)], records: &[Record]| {
        let new = NewRun {
            kind,
            scenario: "ams1".to_owned(),
            label: Some(label.to_owned()),
            planned: u32::try_from(points.len().max(records.len())).unwrap(),
            command: "bdp".to_owned(),
            bdp: "0.1.0".to_owned(),
            started_unix_ms: 1_767_225_600_000,
            ..NewRun::default()
        };
        let id = store.begin_run(&new).unwrap();
        for &(repetition, window) in points {
            let mut measurement = Measurement { repetition, ..measurement.clone() };
            let mut params = BTreeMap::new();
            if kind == RunKind::Sweep {
                measurement.request.spec.window = WindowBytes::new(window << 10);
                measurement.directions.iter_mut().for_each(|d| d.goodput_bps *= window as f64);
                params.insert("window".to_owned(), Value::from(format!("{window}K")));
            }
            let case_key = format!("window={window}K #{repetition}");
            store.append_measurement(&id, &StoredMeasurement { case_key, params, measurement }).unwrap();
        }
        for (i, record) in records.iter().enumerate() {
            store.append(&id, &format!("#{i}"), record, true).unwrap();
        }
        id
    };
    let schema_of = |id: &str| {
        let text = done(&run(&bench, &format!("show {id} --json")));
        let document: Value = serde_json::from_str(&text).unwrap();
        bench.write("kept.json", &text);
        document["schema"].as_str().unwrap().to_owned()
    };
    let mut schemas = Vec::new();
    for id in [
        lab,
        kept(RunKind::Sweep, "sweep-of-the-lab", &[], &[record()]),
        kept(RunKind::Sweep, "sweep-to-a-host", &[(1, 4), (1, 8), (1, 16), (1, 32)], &[]),
        kept(RunKind::Measure, "several", &[(1, 0), (2, 0), (3, 0)], &[]),
        kept(RunKind::Measure, "one", &[(1, 0)], &[]),
    ] {
        schemas.push(schema_of(&id));
        // From the verdict to the conditions, where the store adds the command.
        let body = |line: &str| {
            let page = done(&run(&bench, line));
            let (from, to) = (page.find("class=\"verdict").unwrap(), page.find("id=\"conditions").unwrap());
            page[from..to].to_owned()
        };
        let (of_file, of_store) = (body("report ./kept.json -o -"), body(&format!("report {id} -o -")));
        assert_eq!(of_file, of_store, "{schemas:?}");
        assert!(of_file.matches("<tr").count() > 1 || of_file.contains("<svg"), "{schemas:?}: {of_file}");
        let csv = |from: &str| done(&run(&bench, &format!("report {from} --csv")));
        assert_eq!(csv("./kept.json"), csv(&id), "{schemas:?}");
    }
    // --baseline refuses a sweep; and what is kept elsewhere is named with where.
    let pages = ["sweep-to-a-host", "several"].map(|label| {
        ["", " --store bdp/bdp.sqlite"]
            .map(|store| done(&run(&bench, &format!("report {label} -o -{store}"))))
    });
    for (page, store) in pages[0].iter().zip(["", " --store bdp/bdp.sqlite"]) {
        assert!(page.contains(&format!(" OTHER{store}</code>")) && !page.contains("--baseline"), "{page}");
    }
    for (page, store) in pages[1].iter().zip(["", " --store bdp/bdp.sqlite"]) {
        let (_, command) = page.split_once("bdp measure ").unwrap();
        let command = command.split_once("</code>").unwrap().0;
        assert!(
            command.contains(" --baseline ") && command.ends_with("bdp.sqlite") != store.is_empty(),
            "{command}"
        );
    }
    bench.write("newer.json", "{\"schema\": \"bdp.cases/9\"}");
    let error = run(&bench, "report ./newer.json").stderr;
    let error = String::from_utf8(error).unwrap();
    let (_, listed) = error.split_once("this bdp reads ").unwrap();
    let (listed, _) = listed.split_once(';').unwrap();
    let listed: BTreeSet<&str> = listed.split([',', ' ']).filter(|w| w.starts_with("bdp.")).collect();
    assert_eq!(listed, schemas.iter().map(String::as_str).collect());
}

#[test]
fn the_page_of_a_comparison_has_title_note_and_plain_words() {
    let (bench, id) = bench();
    let output = run(&bench, &format!("compare {id} {id} --report page.html --title Twice --note alike"));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let page = fs::read_to_string(bench.path("page.html")).unwrap();
    for part in [
        "<h1>Twice</h1>",
        ">alike</p>",
        "<b>In plain language.</b>",
        "as fast as A",
        "too few to exclude chance",
    ] {
        assert!(page.contains(part), "'{part}' is not in: {page}");
    }
    refused(&run(&bench, &format!("compare {id} {id} --title Twice")), 2, &["--report"]);
}

#[test]
fn what_is_wrong_is_said_in_a_line() {
    let (bench, id) = bench();
    refused(&run(&bench, "report ffff"), 2, &["ffff", "newest runs:"]);
    refused(&run(&bench, "report missing.json"), 3, &["missing.json"]);
    bench.write("other.json", "{\"a\": 1}");
    refused(&run(&bench, "report other.json"), 2, &["other.json", "bdp help record"]);
    bench.write("newer.json", "{\"schema\": \"bdp.cases/2\", \"cases\": []}");
    refused(&run(&bench, "report newer.json"), 2, &["bdp.cases/2", "bdp.cases/1"]);
    bench.write("held.json", done(&run(&bench, &format!("compare {id} {id} --json"))));
    refused(&run(&bench, "report ./held.json"), 2, &["held.json", "bdp compare A B --report FILE"]);
    refused(&run(&bench, &format!("report {id} -o nowhere/x.html")), 3, &["nowhere/x.html", "cannot write"]);
    refused(&run(&Bench::new(), "report ffff"), 2, &["the store is empty"]);
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
