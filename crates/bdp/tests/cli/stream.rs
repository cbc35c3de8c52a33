//! `bdp measure --json-stream` and `--csv`: what programs read while, and after, something is measured.

use crate::support::serving::{free_port, serve};
use crate::support::{Bench, Ended};
use serde_json::Value;

/// The lines, each of which keeps to the schema.
#[track_caller]
fn lines(ended: &Ended) -> Vec<Value> {
    let schema: Value =
        serde_json::from_str(include_str!("../../../../docs/measurement-stream.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let lines: Vec<Value> = ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        let complaints: Vec<String> =
            validator.iter_errors(line).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert_eq!(complaints, Vec::<String>::new(), "{line}");
    }
    lines
}

fn of<'a>(lines: &'a [Value], event: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event"] == event).collect()
}

#[test]
fn each_run_is_told_from_start_to_end() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let command = format!(
        "measure 127.0.0.1:{} -t 1 --idle 0.3 -P 2 --bidir --runs 2 --label streamed --json-stream",
        server.port
    );
    let ended = bench.run(&command);
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let lines = lines(&ended);
    let (starts, ends) = (of(&lines, "start"), of(&lines, "end"));
    assert_eq!((starts.len(), ends.len()), (2, 2));
    assert_eq!((&starts[1]["repetition"], &starts[1]["runs"]), (&2.into(), &2.into()));
    assert_eq!((&starts[0]["request"]["streams"], &starts[0]["label"]), (&2.into(), &"streamed".into()));
    assert_eq!(lines[0]["event"], "start");
    assert_eq!(lines.last().unwrap()["event"], "end");
    let loaded: Vec<&Value> =
        of(&lines, "interval").into_iter().filter(|line| line["stage"] == "both").collect();
    // On a machine that stands still now and then there are fewer than the ten of each run.
    assert!(loaded.len() >= 4, "{} of 20", loaded.len());
    for line in &loaded {
        let directions = line["directions"].as_array().unwrap();
        assert_eq!(directions.len(), 2, "{line}");
        assert!(line["total_ns"] == 1_000_000_000_u64, "{line}");
        for direction in directions {
            let streams = direction["stream_goodput_bps"].as_array().unwrap();
            let sum: f64 = streams.iter().map(|bps| bps.as_f64().unwrap()).sum();
            let goodput = direction["goodput_bps"].as_f64().unwrap();
            assert!((goodput - sum).abs() <= 1e-6 * goodput, "both are of one moment: {direction}");
        }
    }
    let streams = |line: &&&Value| {
        line["directions"].as_array().unwrap().iter().all(|d| {
            let streams = d["stream_goodput_bps"].as_array().unwrap();
            streams.len() == 2 && streams.iter().all(|s| s.as_f64().unwrap() > 0.0)
        })
    };
    assert!(loaded.iter().any(|line| streams(&line)), "no line tells of both streams: {loaded:?}");
    // What the end holds is the measurement that is stored.
    let run = ends[0]["run"].as_str().unwrap();
    let stored = bench.run(&format!("show {run} --json")).json();
    assert_eq!(stored["runs"][1], ends[1]["measurement"]);
    let schema: Value =
        serde_json::from_str(include_str!("../../../../docs/measurement.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(ends.iter().all(|end| validator.is_valid(&end["measurement"])));
}

#[test]
fn a_failure_is_a_line_too() {
    let bench = Bench::new();
    let ended = bench.run(&format!("measure 127.0.0.1:{} --json-stream", free_port()));
    let lines = lines(&ended);
    let errors = of(&lines, "error");
    assert_eq!((errors.len(), lines[0]["event"].as_str()), (1, Some("start")));
    let told = errors[0]["error"].as_str().unwrap().to_owned();
    assert_eq!(ended.code(), 3, "{}", ended.err);
    assert!(ended.last_line().contains("nothing listens") && told.contains("nothing listens"), "{told}");
}

#[test]
fn csv_is_what_a_report_of_the_run_gives() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let ended =
        bench.run(&format!("measure 127.0.0.1:{} -t 0.2 --idle 0.1 --label table --csv", server.port));
    assert_eq!(ended.code(), 0, "{}", ended.err);
    assert_eq!(ended.out.lines().count(), 3, "{}", ended.out);
    assert_eq!(bench.run("report table --csv").out, ended.out);
}

#[test]
fn an_interval_of_zero_tells_nothing_on_the_way() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let command = format!("measure 127.0.0.1:{} -t 0.5 -i 0 -R --idle 0.1", server.port);
    let ended = bench.run(&format!("{command} --json-stream"));
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let lines = lines(&ended);
    let events: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["start", "end"]);
    let document = bench.run(&format!("{command} --format iperf3-json")).json();
    assert_eq!(document["start"]["test_start"]["interval"], 0);
    assert_eq!(document["intervals"].as_array().unwrap().len(), 1, "{document:#}");
    assert_eq!(document["intervals"][0]["sum"]["bytes"], document["end"]["sum_received"]["bytes"]);
}
