//! `bdp measure` ended by a signal while it measures: what was measured until then is the result.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::iperf2::{iperf_is_of_2_2, serve_by_iperf};
use crate::support::iperf3::{Theirs, iperf3_is_there};
use crate::support::serving::{free_port, serve};
use crate::support::{Bench, Ended, start};
use serde_json::Value;

const INT: i32 = 2;
const TERM: i32 = 15;

/// Starts a long measurement, ends it once this was told of a flow five times, and checks that it ends soon, by the signal.
#[track_caller]
fn interrupt(bench: &Bench, line: &str, told: &str, signal: i32) -> Ended {
    interrupt_once(|out| out.matches(told).count() >= 5, bench, line, signal)
}

/// The same, once what was told is this.
#[track_caller]
fn interrupt_once(is_told: impl Fn(&str) -> bool, bench: &Bench, line: &str, signal: i32) -> Ended {
    let mut running = start(bench.bdp(&format!("measure {line} -t 60 --idle 0.2 --json-stream")));
    running.wait_until("data flows", |p| is_told(&p.out()));
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
    let schema: Value =
        serde_json::from_str(include_str!("../../../../docs/measurement.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let complaints: Vec<String> = validator.iter_errors(&measurement).map(|e| e.to_string()).collect();
    assert_eq!(complaints, Vec::<String>::new());
    let directions = measurement["directions"].as_array().unwrap();
    let measured: Vec<&str> = directions.iter().map(|d| d["direction"].as_str().unwrap()).collect();
    assert_eq!(measured, ways);
    let cut_short = directions.last().unwrap();
    assert_eq!(cut_short["ended"], "stopped");
    let seconds = cut_short["duration_ns"].as_u64().unwrap() as f64 / 1e9;
    assert!((0.01..50.0).contains(&seconds), "{seconds} s");
    let (bytes, goodput) = (cut_short["bytes"].as_f64().unwrap(), cut_short["goodput_bps"].as_f64().unwrap());
    assert!(
        bytes > 0.0 && (goodput * seconds / 8.0 / bytes - 1.0).abs() < 0.05,
        "{bytes} B, {goodput} bit/s"
    );
    let caveats = measurement["caveats"].to_string();
    assert!(caveats.contains("interrupted before its end"), "{caveats}");
    for way in measurement["request"]["directions"].as_array().unwrap() {
        let told = format!("direction '{}' was not measured", way.as_str().unwrap());
        assert_eq!(caveats.contains(&told), !ways.contains(&way.as_str().unwrap()), "{caveats}");
    }
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
    if !iperf3_is_there() {
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

/// What is interrupted of iperf2's protocol: options, the stage that is waited for, and the directions that were measured.
const WITH_IPERF2: [(&str, &str, &[&str]); 6] = [
    ("", "to", &["to"]),
    ("-R -P 2", "from", &["from"]),
    ("--bidir", "both", &["to", "from"]),
    ("-u -b 2M --forward -P 2", "to", &["to"]),
    ("-u -b 2M", "from", &["from"]),
    ("-u -b 2M --bidir", "both", &["to", "from"]),
];

#[track_caller]
fn interrupt_with_iperf2(bench: &Bench, port: u16, (options, stage, ways): (&str, &str, &[&str])) {
    let line = format!("127.0.0.1:{port} --iperf2 {options}");
    // A server of 2.2 hears of the second way a second after the first.
    let times = if stage == "both" { 25 } else { 5 };
    let told = format!("\"stage\":\"{stage}\"");
    let ended = interrupt_once(|out| out.matches(&told).count() >= times, bench, &line, INT);
    let measurement = concluded(bench, &ended, ways);
    for direction in measurement["directions"].as_array().unwrap() {
        assert_eq!(direction["ended"], "stopped", "{options}");
        let udp = &direction["udp"];
        assert_eq!(udp.is_object(), options.contains("-u"), "{options}: {direction}");
        if udp.is_object() {
            assert!(udp["sent"].as_u64().unwrap() > 0 && udp["lost"] == 0, "{options}: {udp}");
        }
    }
}

#[test]
fn iperf2s_protocol_is_concluded() {
    let bench = Bench::new();
    let port = free_port();
    let server = serve(&bench, &format!("--iperf2-port {port}"));
    for row in WITH_IPERF2 {
        interrupt_with_iperf2(&bench, port, row);
    }
    server.assert_unharmed(&bench);
}

#[test]
fn servers_of_iperf2_are_asked_what_came_until_then() {
    let bench = Bench::new();
    for (options, stage, ways) in WITH_IPERF2 {
        // A server of 2.2 loses one of two streams that begin together at times, and so its report.
        let alone = options.contains("-u") && iperf_is_of_2_2();
        let options = if alone { options.replace(" -P 2", "") } else { options.to_owned() };
        // It may go on to send, for which it has no word of an end: each row has a server of its own.
        let Some((_server, port)) = serve_by_iperf(if options.contains("-u") { "-u" } else { "" }) else {
            return;
        };
        interrupt_with_iperf2(&bench, port, (&options, stage, ways));
    }
}

#[test]
fn a_search_gives_the_trials_that_were_whole() {
    let bench = Bench::new();
    let server = serve(&bench, "--max-rate 20M");
    // The first trial takes all that is granted, and passes: what is interrupted is the rate held, or a trial more.
    let line = format!("127.0.0.1:{} -u -b auto --trial-time 0.3", server.port);
    let ended = interrupt(&bench, &line, "\"stage\":\"to\"", INT);
    let measurement = concluded(&bench, &ended, &["to"]);
    let udp = &measurement["directions"][0]["udp"];
    assert_eq!(udp["search"], "cut_short", "{udp}");
    let trials = udp["trials"].as_array().unwrap();
    assert!(trials[0]["rate_bps"] == 20e6 && !trials.iter().any(|trial| trial["held"] == true), "{udp}");
    assert!(measurement["caveats"].to_string().contains("the search was cut short after"), "{measurement}");
    let last: Value = serde_json::from_str(ended.out.lines().last().unwrap()).unwrap();
    let shown = bench.run(&format!("show {}", last["run"].as_str().unwrap()));
    assert!(shown.out.contains("search was cut short"), "{}{}", shown.out, shown.err);
    server.assert_unharmed(&bench);
}

#[test]
fn a_search_within_a_trial_has_the_best_before_it() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    // As fast as it goes, loopback loses: the second trial, or the rate held after the first.
    let line = format!("127.0.0.1:{} -u -b auto --trial-time 1 --forward", server.port);
    // What is next has begun where its time does, and is under way once some of it is over.
    let a_trial_is_over = |out: &str| {
        let elapsed_ns = out
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|event| event["stage"] == "trial" || event["stage"] == "to")
            .filter_map(|event| event["elapsed_ns"].as_u64())
            .collect::<Vec<_>>();
        let begins = elapsed_ns.windows(2).rposition(|pair| pair[1] < pair[0]);
        begins.is_some_and(|at| elapsed_ns.len() - at > 4)
    };
    let ended = interrupt_once(a_trial_is_over, &bench, &line, INT);
    let measurement = concluded(&bench, &ended, &["to"]);
    let udp = &measurement["directions"][0]["udp"];
    assert_eq!(udp["search"], "cut_short", "{udp}");
    assert!(!udp["trials"].as_array().unwrap().is_empty(), "{udp}");
    server.assert_unharmed(&bench);
}

#[test]
fn a_search_within_its_first_trial_has_nothing_to_conclude() {
    let bench = Bench::new();
    let server = serve(&bench, "--max-rate 5M");
    let line = format!("127.0.0.1:{} -u -b auto --trial-time 30", server.port);
    let ended = interrupt(&bench, &line, "\"stage\":\"trial\"", INT);
    assert!(ended.err.contains("ended before there was enough to report"), "{}", ended.err);
    server.assert_unharmed(&bench);
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

#[test]
fn a_measurement_without_end_is_ended_by_its_user() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let line = format!("measure 127.0.0.1:{} -t 0 -R --idle 0.1 --json-stream", server.port);
    let mut running = start(bench.bdp(&line));
    running.wait_until("data flows", |p| p.out().matches("\"stage\":\"from\"").count() >= 5);
    running.signal("INT");
    let ended = running.wait();
    assert_eq!(ended.status.signal(), Some(INT), "{}", ended.err);
    concluded(&bench, &ended, &["from"]);
    let short = serve(&bench, "--max-duration 5s");
    let refused = bench.run(&format!("measure 127.0.0.1:{} -t 0 -R", short.port));
    let told = refused.refusal(2);
    assert!(told.contains("allows at most 5 s") && told.contains("--max-duration"), "{told}");
    let in_turn = bench.run(&format!("measure 127.0.0.1:{} -t 0", server.port));
    assert!(in_turn.refusal(2).contains("add --forward, -R or --bidir"), "{}", in_turn.err);
}
