//! `bdp measure` ended by a signal while it measures: what was measured until then is the result.

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::iperf3::{Theirs, iperf3_is_there};
use support::serving::serve;
use support::{Bench, Ended, start};

const INT: i32 = 2;
const TERM: i32 = 15;

/// Starts a long measurement, ends it once this was told of a flow, and checks that it ends soon, by the signal.
#[track_caller]
fn interrupt(bench: &Bench, line: &str, told: &str, signal: i32) -> Ended {
    let mut running = start(bench.bdp(&format!("measure {line} -t 60 --idle 0.2 --json-stream")));
    running.wait_until("data flows", |p| p.out().matches(told).count() >= 5);
    let asked = Instant::now();
    running.signal(if signal == INT { "INT" } else { "TERM" });
    let ended = running.wait();
    assert!(asked.elapsed() < Duration::from_secs(15), "{:?}", asked.elapsed());
    assert_eq!(ended.status.signal(), Some(signal), "{}", ended.err);
    assert!(!ended.err.contains("before anything"), "{}", ended.err);
    ended
}

/// The measurement at the end of the stream, which is stored, too.
#[track_caller]
fn concluded(bench: &Bench, ended: &Ended, ways: &[&str]) -> Value {
    let last: Value = serde_json::from_str(ended.out.lines().last().unwrap()).unwrap();
    let measurement =
        last.get("measurement").unwrap_or_else(|| panic!("no result: {last} {}", ended.err)).clone();
    let schema: Value = serde_json::from_str(include_str!("../../../docs/measurement.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let complaints: Vec<String> = validator.iter_errors(&measurement).map(|e| e.to_string()).collect();
    assert_eq!(complaints, Vec::<String>::new());
    let directions = measurement["directions"].as_array().unwrap();
    let measured: Vec<&str> = directions.iter().map(|d| d["direction"].as_str().unwrap()).collect();
    assert_eq!(measured, ways);
    let cut_short = directions.last().unwrap();
    assert_eq!(cut_short["ended"], "stopped");
    let seconds = cut_short["duration_ns"].as_u64().unwrap() as f64 / 1e9;
    assert!((0.2..50.0).contains(&seconds), "{seconds} s");
    let (bytes, goodput) = (cut_short["bytes"].as_f64().unwrap(), cut_short["goodput_bps"].as_f64().unwrap());
    assert!(
        bytes > 0.0 && (goodput * seconds / 8.0 / bytes - 1.0).abs() < 0.05,
        "{bytes} B, {goodput} bit/s"
    );
    let caveats = measurement["caveats"].to_string();
    assert!(caveats.contains("interrupted before its end"), "{caveats}");
    assert_eq!(caveats.contains("direction 'from' was not measured"), ways == ["to"], "{caveats}");
    let shown = bench.run(&format!("show {} --json", last["run"].as_str().unwrap()));
    assert!(
        shown.code() == 0 && shown.out.contains("interrupted before its end"),
        "{}{}",
        shown.out,
        shown.err
    );
    measurement
}

#[test]
fn either_direction_is_concluded() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let host = format!("127.0.0.1:{}", server.port);
    let ended = interrupt(&bench, &host, "\"stage\":\"to\"", INT);
    concluded(&bench, &ended, &["to"]);
    let ended = interrupt(&bench, &format!("{host} -R -P 3"), "\"stage\":\"from\"", TERM);
    concluded(&bench, &ended, &["from"]);
    let ended = interrupt(&bench, &format!("{host} --bidir"), "\"stage\":\"both\"", INT);
    concluded(&bench, &ended, &["to", "from"]);
    server.assert_unharmed(&bench);
}

#[test]
fn datagrams_under_way_are_not_told_as_lost() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    for (way, flag) in [("to", "--forward"), ("from", "-R")] {
        let line = format!("127.0.0.1:{} -u -b 2M {flag}", server.port);
        let ended = interrupt(&bench, &line, &format!("\"stage\":\"{way}\""), INT);
        let last: Value = serde_json::from_str(ended.out.lines().last().unwrap()).unwrap();
        let direction = &last["measurement"]["directions"][0];
        assert_eq!((&direction["direction"], &direction["ended"]), (&way.into(), &"stopped".into()));
        let udp = &direction["udp"];
        assert!(udp["sent"].as_u64().unwrap() > 0, "{udp}");
        assert_eq!(udp["lost"], 0, "{udp}");
    }
    server.assert_unharmed(&bench);
}

#[test]
fn servers_of_iperf3_are_told_in_order() {
    if !iperf3_is_there("servers_of_iperf3_are_told_in_order") {
        return;
    }
    let bench = Bench::new();
    let server = Theirs::start();
    for (way, flag) in [("to", "--forward"), ("from", "-R")] {
        let line = format!("127.0.0.1 -p {} --iperf3 {flag}", server.port);
        let ended = interrupt(&bench, &line, &format!("\"stage\":\"{way}\""), INT);
        let last: Value = serde_json::from_str(ended.out.lines().last().unwrap()).unwrap();
        let direction = &last["measurement"]["directions"][0];
        assert_eq!((&direction["direction"], &direction["ended"]), (&way.into(), &"stopped".into()));
        assert!(direction["goodput_bps"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn a_download_is_concluded() {
    let bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                // A probe's handshake asks for nothing.
                if stream.read(&mut [0; 4096]).unwrap_or(0) > 0 {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n");
                    while stream.write_all(&[7; 65_536]).is_ok() {}
                }
            });
        }
    });
    let ended = interrupt(&bench, &format!("http://127.0.0.1:{port}/"), "\"stage\":\"from\"", TERM);
    concluded(&bench, &ended, &["from"]);
}

#[test]
fn before_any_flow_there_is_nothing_to_conclude() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let line = format!("measure 127.0.0.1:{} --idle 60 --json-stream", server.port);
    let mut running = start(bench.bdp(&line));
    running.wait_until("it probes", |p| p.out().contains("\"stage\":\"idle\""));
    running.signal("INT");
    let ended = running.wait();
    assert_eq!(ended.status.signal(), Some(INT));
    assert!(ended.err.contains("ended before anything was measured"), "{}", ended.err);
}
