//! `bdp compare` as people run it, on stores with known records.

use std::process::Output;

use assert_cmd::Command;
use bdp_model::case::stack::Clock;
use bdp_model::measurement::Measurement;
use bdp_model::record::Record;
use bdp_store::{NewRun, RunKind, SqliteStore, Store, StoredMeasurement};
use serde_json::Value;
use tempfile::TempDir;

struct Stored {
    folder: TempDir,
    store: SqliteStore,
    /// Of the records.
    clock: Clock,
}

impl Stored {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("s")).unwrap();
        Self { folder, store, clock: Clock::Real }
    }

    fn run(&mut self, kind: RunKind, label: &str) -> String {
        let new =
            NewRun { kind, label: Some(label.into()), scenario: "s".into(), planned: 1, ..NewRun::default() };
        self.store.begin_run(&new).unwrap()
    }

    /// A lab run with a record for each goodput in Mbit/s, of one window; and one INVALID record of 1 Mbit/s.
    fn lab(&mut self, label: &str, windows: &[(&str, &[f64])]) -> String {
        let run = self.run(RunKind::Lab, label);
        for (window, goodputs) in windows {
            for (i, goodput) in goodputs.iter().chain(&[1.0]).enumerate() {
                let text = include_str!("../../../bdp-store/tests/it/record.json");
                let mut record: Record = serde_json::from_str(text).unwrap();
                record.params = [("flow.window".to_owned(), Value::from(*window))].into();
                record.case.params = record.params.clone();
                record.repetition = i as u32 + 1;
                record.case.repetition = record.repetition;
                record.goodput_bps = Some(goodput * 1e6);
                record.valid = i < goodputs.len();
                record.case.clock = self.clock;
                let key = format!("{} {}", record.scenario, record.case.key());
                self.store.append(&run, &key, &record, true).unwrap();
            }
        }
        run
    }

    /// Measurements of one direction or two, with these goodputs in Mbit/s.
    fn measured(&mut self, label: &str, goodputs: &[f64]) -> String {
        let run = self.run(RunKind::Measure, label);
        for (i, goodput) in goodputs.iter().enumerate() {
            let text = include_str!("../../../bdp-store/tests/it/measurement.json");
            let mut measurement: Measurement = serde_json::from_str(text).unwrap();
            measurement.error = None;
            measurement.directions.iter_mut().for_each(|d| d.goodput_bps = goodput * 1e6);
            let kept =
                StoredMeasurement { case_key: format!("#{i}"), params: Default::default(), measurement };
            self.store.append_measurement(&run, &kept).unwrap();
        }
        run
    }

    fn compare(&self, line: &str) -> Output {
        let mut command = Command::cargo_bin("bdp").unwrap();
        command.arg("compare").args(line.split_whitespace()).arg("--store").arg(self.folder.path().join("s"));
        command.env_remove("LC_ALL").env_remove("LANG").env("COLUMNS", "160").output().unwrap()
    }

    #[track_caller]
    fn text(&self, line: &str, code: i32) -> String {
        let output = self.compare(line);
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stderr.is_empty());
        String::from_utf8(output.stdout).unwrap()
    }

    #[track_caller]
    fn refused(&self, line: &str) -> String {
        let output = self.compare(line);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), text.lines().count()), (Some(2), 1), "{text}");
        text
    }
}

const GOOD: &[f64] = &[100.0, 101.0, 99.0, 100.5, 99.5, 100.0];
const SLOW: &[f64] = &[80.0, 81.0, 79.0, 80.5, 79.5, 80.0];
const NEAR: &[f64] = &[97.0, 98.0, 96.0, 97.5, 96.5, 97.0];

#[test]
fn a_regression_beyond_the_interval_and_the_threshold_ends_with_one() {
    let mut stored = Stored::new();
    stored.lab("before", &[("64K", GOOD), ("128K", GOOD)]);
    let after = stored.lab("after", &[("64K", SLOW), ("128K", GOOD)]);
    let text = stored.text(&format!("before {after}"), 1);
    let row = text.lines().find(|l| l.contains("REGRESSED") && l.contains("goodput")).unwrap();
    assert!(row.contains("64K") && row.contains("6/6") && row.contains("-20 % (-2"), "{text}");
    assert!(text.contains("REGRESSED beyond 5 %: "), "{text}");
    // The other way round it is a gain.
    let text = stored.text("after before", 0);
    assert!(text.contains("better") && text.contains("no regression beyond 5 %"), "{text}");
    // And a threshold above it lets it pass, though it stays worse.
    let text = stored.text("before after --threshold 25%", 0);
    assert!(text.contains("worse"), "{text}");

    let near = stored.lab("near", &[("64K", NEAR)]);
    let text = stored.text(&format!("before {near}"), 0);
    assert!(text.contains("worse") && text.contains("only in A: "), "{text}");
    assert!(stored.text(&format!("before {near} --threshold 2%"), 1).contains("REGRESSED beyond 2 %"));
}

#[test]
fn the_same_run_twice_shows_no_difference() {
    let mut stored = Stored::new();
    stored.lab("one", &[("64K", GOOD)]);
    let text = stored.text("one one", 0);
    assert!(text.contains("no difference shown") && text.contains("0 % ("), "{text}");
}

#[test]
fn json_holds_medians_intervals_and_runs() {
    let mut stored = Stored::new();
    let a = stored.lab("a-run", &[("64K", GOOD)]);
    let b = stored.lab("b-run", &[("64K", SLOW)]);
    let document: Value = serde_json::from_str(&stored.text("a-run b-run --json", 1)).unwrap();
    assert_eq!(document["schema"], "bdp.comparison/1");
    assert_eq!((&document["a"]["run"], &document["b"]["run"]), (&a.into(), &b.into()));
    assert_eq!((&document["regressed"], &document["threshold"]), (&true.into(), &0.05.into()));
    let row = &document["comparisons"][0];
    assert_eq!((&row["metric"], &row["verdict"]), (&"goodput_bps".into(), &"worse".into()));
    assert_eq!(
        (&row["a"]["n"], &row["a"]["p50"], &row["b"]["p50"]),
        (&6.into(), &100e6.into(), &80e6.into())
    );
    let (low, high) =
        (row["effect_interval"]["low"].as_f64().unwrap(), row["effect_interval"]["high"].as_f64().unwrap());
    assert!(low < -0.2 && -0.2 < high && low > -0.23 && high < -0.17, "{row}");

    let schema: Value =
        serde_json::from_str(include_str!("../../../../docs/comparison.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let complaints: Vec<String> =
        validator.iter_errors(&document).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    let mut wrong = document.clone();
    wrong["comparisons"][0]["verdict"] = "fine".into();
    assert!(!validator.is_valid(&wrong));
    wrong = document;
    wrong["extra"] = 1.into();
    assert!(!validator.is_valid(&wrong));
}

#[test]
fn few_runs_are_said_to_be_too_few() {
    let mut stored = Stored::new();
    stored.lab("one", &[("64K", &[100.0])]);
    stored.lab("other", &[("64K", &[50.0])]);
    stored.lab("five", &[("64K", &SLOW[..5])]);
    let text = stored.text("one other", 0);
    let needed = "unknown with 1 and 1 runs: an interval and a verdict need 6 runs on each side";
    assert!(text.contains(needed) && text.contains("-50 %") && !text.contains("sure"), "{text}");
    // Two runs against five, which once had an interval of 90 %: none of these has one.
    let document: Value = serde_json::from_str(&stored.text("one five --json", 0)).unwrap();
    let row = &document["comparisons"][0];
    assert_eq!((&row["verdict"], &row["effect_interval"]), (&"too_few_runs".into(), &Value::Null), "{row}");
}

#[test]
fn an_interval_that_holds_both_is_inconclusive_and_strict_says_so_by_its_code() {
    const WILD: &[f64] = &[99.6, 11.0, 99.6, 103.0, 99.6, 99.6];
    let mut stored = Stored::new();
    stored.lab("before", &[("64K", GOOD)]);
    stored.lab("wild", &[("64K", WILD)]);
    stored.lab("one", &[("64K", &[100.0])]);
    let text = stored.text("before wild", 0);
    assert!(
        text.contains("  inconclusive")
            && text.contains("\ninconclusive: ")
            && !text.contains("no regression"),
        "{text}"
    );
    stored.text("before wild --strict", 6);
    stored.text("one before --strict", 6);
    assert!(stored.text("before before --strict", 0).contains("no regression beyond 5 %"));
    assert!(stored.text("wild wild --threshold 95% --strict", 0).contains("no regression beyond 95 %"));
    let document: Value = serde_json::from_str(&stored.text("before wild --json --strict", 6)).unwrap();
    assert_eq!(document["regressed"], Value::Null);
    assert_eq!(document["comparisons"][0]["regression"], "inconclusive");
    // What regressed for sure is no question.
    let slow = stored.lab("slow", &[("64K", SLOW)]);
    stored.text(&format!("before {slow} --strict"), 1);
}

#[test]
fn the_virtual_clock_needs_one_run_of_each() {
    let mut stored = Stored::new();
    stored.clock = Clock::Virtual;
    stored.lab("before", &[("64K", &[100.0])]);
    stored.lab("after", &[("64K", &[80.0])]);
    let text = stored.text("before after", 1);
    assert!(
        text.contains("-20 % (exact)") && text.contains("REGRESSED") && !text.contains("unknown"),
        "{text}"
    );
    assert!(stored.text("before before --strict", 0).contains("no difference"));
}

#[test]
fn several_figures_are_judged_and_one_that_is_not_there_is_refused() {
    let mut stored = Stored::new();
    stored.lab("before", &[("64K", GOOD)]);
    stored.lab("after", &[("64K", GOOD)]);
    for judged in ["goodput,retransmits", "goodput --judge retransmits"] {
        let text = stored.text(&format!("before after --json --judge {judged}"), 0);
        let document: Value = serde_json::from_str(&text).unwrap();
        let rows = document["comparisons"].as_array().unwrap();
        let names: Vec<&str> = rows
            .iter()
            .filter(|row| row["judged"] == true)
            .map(|row| row["metric"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["goodput_bps", "retransmits"]);
    }
    // The stored record is of a kernel that counts no needless retransmissions.
    let text = stored.refused("before after --judge goodput,loss");
    assert!(text.contains("no loss in common"), "{text}");
}

#[test]
fn settings_of_one_run_are_compared_and_drawn() {
    let mut stored = Stored::new();
    stored.lab("swept", &[("64K", GOOD), ("128K", SLOW)]);
    let text = stored.text("swept --by window=64K,128K", 1);
    assert!(text.contains("A  ") && text.contains("  window=64K\nB  "), "{text}");
    let row = text.lines().find(|l| l.contains("goodput")).unwrap();
    assert!(row.contains("-20 % (-2") && row.contains("6/6"), "{text}");
    let document: Value =
        serde_json::from_str(&stored.text("swept --by flow.window=128K,64K --json", 0)).unwrap();
    assert_eq!(document["b"]["setting"], "flow.window=64K");
    assert_eq!(document["comparisons"][0]["verdict"], "better");
    assert!(stored.refused("swept --by window=64K,1M").contains("has no window=1M; it has 128K, 64K"));
    assert!(stored.refused("swept --by streams=1,2").contains("did not vary streams"));
    assert!(stored.refused("swept --by window").contains("example: congestion=reno,cubic"));

    let folder = stored.folder.path().join("figures");
    let output = stored.compare(&format!("swept --by window=64K,128K --figures {}", folder.display()));
    assert_eq!(output.status.code(), Some(1));
    let notes = String::from_utf8(output.stderr).unwrap();
    let paths: Vec<&str> = notes.lines().filter_map(|line| line.strip_prefix("figure  ")).collect();
    let svg = paths.iter().find(|path| path.ends_with(".svg") && path.contains("goodput")).unwrap();
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(
        svg.starts_with("<svg xmlns=") && svg.contains("Goodput of window=128K against window=64K"),
        "{svg}"
    );
    let pdf = paths.iter().find(|path| path.ends_with(".pdf")).unwrap();
    assert!(std::fs::read(pdf).unwrap().starts_with(b"%PDF-1.4"));
}

#[test]
fn measurements_compare_by_direction() {
    let mut stored = Stored::new();
    stored.measured("before", GOOD);
    stored.measured("after", SLOW);
    let text = stored.text("before after", 1);
    assert!(text.contains("to ") && text.contains("REGRESSED"), "{text}");
}

#[test]
fn without_names_the_two_newest_of_a_kind_are_compared() {
    let mut stored = Stored::new();
    stored.measured("first", GOOD);
    assert!(stored.refused("").contains("no run comparable to the newest"));
    stored.measured("second", GOOD);
    stored.lab("other", &[("64K", GOOD)]);
    let third = stored.measured("third", SLOW);
    let text = stored.text("", 1);
    assert!(text.lines().next().unwrap().contains("second"), "{text}");
    assert!(text.lines().nth(1).unwrap().contains(&third), "{text}");
}

#[test]
fn what_cannot_be_compared_is_refused_in_a_line() {
    let mut stored = Stored::new();
    stored.lab("windows", &[("64K", GOOD), ("128K", GOOD)]);
    stored.lab("others", &[("1M", GOOD), ("2M", GOOD)]);
    stored.lab("none", &[("64K", &[])]);
    stored.run(RunKind::Lab, "empty");
    let text = stored.refused("windows others");
    assert!(text.contains("have no point in common") && text.contains("flow.window=64K"), "{text}");
    assert!(stored.refused("windows none").contains("has nothing to compare: it has no valid record"));
    assert!(stored.refused("windows empty").contains("has nothing to compare"));
    assert!(stored.refused("windows nosuch").contains("nosuch"));
    assert!(stored.refused("windows others --threshold x").contains("--threshold"));
    // Runs of one point each are meant to be compared.
    stored.lab("small", &[("64K", GOOD)]);
    stored.lab("large", &[("1M", GOOD)]);
    assert!(stored.text("small large", 0).contains(" | "));
}
