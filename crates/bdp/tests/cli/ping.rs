//! `bdp ping`: figures that hold together, outcomes that are told apart, and documents that keep their schema.

use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::serving::{free_port, serve};
use crate::support::untested::skip;
use crate::support::{Bench, start};
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../../docs/ping.schema.json");

#[track_caller]
fn assert_in_schema(document: &Value) {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let complaints: Vec<String> =
        validator.iter_errors(document).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert_eq!(complaints, Vec::<String>::new());
}

fn number(document: &Value, pointer: &str) -> u64 {
    document
        .pointer(pointer)
        .and_then(Value::as_u64)
        .unwrap_or_else(|| panic!("no {pointer} in {document:#}"))
}

/// What the figures must be to one another, whatever the machine does.
#[track_caller]
fn assert_coherent(document: &Value) {
    assert_in_schema(document);
    let rtt = |name: &str| number(document, &format!("/rtt_ns/{name}"));
    // A percentile is there of samples enough that one lies beyond it.
    let resolved =
        [("p90", 10), ("p95", 20), ("p99", 100), ("p999", 1_000)].into_iter().filter(|&(name, least)| {
            let there = document["rtt_ns"][name].is_u64();
            assert_eq!(there, rtt("count") >= least, "{name} of {}", rtt("count"));
            there
        });
    let names = ["min", "p50"].into_iter().chain(resolved.map(|(name, _)| name)).chain(["max"]);
    let order: Vec<u64> = names.map(rtt).collect();
    assert!(order.is_sorted() && order[0] > 0, "{order:?}");
    assert_eq!(rtt("count"), number(document, "/probes/received"));
    let counted: u64 =
        document["histogram"].as_array().unwrap().iter().map(|b| b["count"].as_u64().unwrap()).sum();
    assert_eq!(counted, rtt("count"));
    if document["from_due_ns"].is_object() {
        assert!(number(document, "/from_due_ns/max") >= rtt("max"));
    }
}

/// A listener whose queue is never full.
fn listening_port() -> u16 {
    counted_port().0
}

/// The same, and how many connections came.
fn counted_port() -> (u16, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    // Ends with the test's process.
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            drop(connection);
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    (port, count)
}

#[test]
fn any_listener_answers() {
    let bench = Bench::new();
    let port = listening_port();
    let document = bench.run(&format!("ping 127.0.0.1:{port} -c 20 -i 2ms --json")).json();
    assert_coherent(&document);
    // A machine that stalls leaves turns out, and sends in later ones.
    assert_eq!(number(&document, "/probes/received"), 20, "{document:#}");
    // A turn passes more often than a handshake can be made.
    let hurried = bench.run(&format!("ping 127.0.0.1:{port} -c 200 -i 1us --json")).json();
    assert_coherent(&hurried);
    assert!(number(&hurried, "/probes/left_out") > 200, "{hurried:#}");
    assert_eq!(number(&hurried, "/probes/received"), 200, "{hurried:#}");
    let closed = bench.run(&format!("ping 127.0.0.1:{port} -c 50 -i 0 --json")).json();
    assert_coherent(&closed);
    assert_eq!(number(&closed, "/probes/received"), 50);
    assert!(closed["from_due_ns"].is_null() && closed["lateness_ns"].is_null(), "{closed:#}");
}

#[test]
fn a_server_sends_datagrams_and_messages_back() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    for (mode, length) in [("--udp", ""), ("--udp", "-l 1400"), ("--tcp", ""), ("--tcp", "-l 60000")] {
        let line = format!("ping 127.0.0.1:{} {mode} {length} -c 20 -i 5ms --json", server.port);
        let document = bench.run(&line).json();
        assert_coherent(&document);
        let probes = |name: &str| number(&document, &format!("/probes/{name}"));
        assert_eq!((probes("sent"), probes("received")), (20, 20), "{document:#}");
        // The far end's times are of the machine that this is, too.
        assert!(number(&document, "/shares/far_ns/p50") <= number(&document, "/rtt_ns/max"), "{document:#}");
        let closed = bench.run(&line.replace("-i 5ms", "-i 0")).json();
        assert_coherent(&closed);
        assert_eq!(number(&closed, "/probes/received"), 20, "{closed:#}");
    }
    // Neither is anybody else's.
    bench.run(&format!("ping 127.0.0.1:{} --udp -l 47", server.port)).refusal(2);
    server.assert_unharmed(&bench);
    let port = server.port;
    drop(server);
    assert!(bench.run(&format!("ping 127.0.0.1:{port} --udp")).refusal(3).contains("refused"));
}

#[test]
fn a_schedule_that_is_too_fast_measures_the_path_and_not_itself() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    for mode in ["--udp -i 1us", "--udp -i 5us", "--tcp -i 5us"] {
        let line = format!("ping 127.0.0.1:{} {mode} -t 0.5 --json", server.port);
        let document = bench.run(&line).json();
        assert_coherent(&document);
        let probes = |name: &str| number(&document, &format!("/probes/{name}"));
        // On a machine that has other things to do as well it takes turns with them, but none waits for the end of the schedule.
        assert!(number(&document, "/rtt_ns/p50") < 250_000_000, "{mode}: {document:#}");
        let dropped = document["probes"]["dropped_by_receiver"].as_u64().unwrap_or(0);
        assert!(probes("lost") - dropped <= 10 + probes("sent") / 10, "{mode}: {document:#}");
        assert!(probes("left_out") > 0, "{mode}: {document:#}");
        assert_eq!(
            document["probes"]["dropped_by_receiver"].is_null(),
            mode.starts_with("--tcp"),
            "{document:#}"
        );
    }
}

#[test]
fn the_instrument_is_examined() {
    let bench = Bench::new();
    let document = bench.run("selftest --json").json();
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/selftest.schema.json")).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let complaints: Vec<String> = validator.iter_errors(&document).map(|e| e.to_string()).collect();
    assert_eq!(complaints, Vec::<String>::new());
    assert!(number(&document, "/clock/cost_ps") > 0 && number(&document, "/stalls/watched_ns") > 0);
    for floor in [0, 1] {
        assert!(number(&document, &format!("/floors/{floor}/rtt_ns/min")) > 0, "{document:#}");
    }
    let text = bench.run("selftest").out;
    for part in ["clock", "timer", "scheduling", "UDP floor", "TCP floor", "p99"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

#[test]
fn icmp_is_answered_by_any_host() {
    let bench = Bench::new();
    let ended = bench.run("ping 127.0.0.1 --icmp -c 20 -i 2ms --json");
    if ended.status.code() == Some(2) {
        return skip(ended.err.trim_end());
    }
    let document = ended.json();
    assert_coherent(&document);
    assert_eq!(number(&document, "/probes/received"), number(&document, "/probes/sent"));
    assert!(document["method"].as_str().unwrap().contains("socket"), "{document:#}");
}

#[test]
fn text_has_the_figures_and_csv_a_row_for_each_probe() {
    let bench = Bench::new();
    let port = listening_port();
    let ended = bench.run(&format!("ping 127.0.0.1:{port} -c 3 -i 20ms"));
    assert_eq!(ended.code(), 0, "{}", ended.err);
    for part in ["TCP connect to 127.0.0.1", "p99.9", "round trip", "from due", "answered", "jitter"] {
        assert!(ended.out.contains(part), "no {part} in {}", ended.out);
    }
    // Of a few round trips most rows of a histogram are empty.
    assert!(!ended.out.contains("count"), "{}", ended.out);
    assert!(bench.run(&format!("ping 127.0.0.1:{port} -c 12 -i 0")).out.contains("count"));
    let lines = |out: &str| out.lines().filter(|line| line.contains(": seq=")).count();
    assert_eq!(lines(&ended.out), 3, "{}", ended.out);
    assert!(ended.out.starts_with(&format!("127.0.0.1:{port}: seq=1 time=")), "{}", ended.out);
    assert_eq!(lines(&bench.run(&format!("ping 127.0.0.1:{port} -c 3 -i 20ms -q")).out), 0);
    // More than anybody could read.
    assert_eq!(lines(&bench.run(&format!("ping 127.0.0.1:{port} -c 3 -i 0")).out), 0);
    let csv = bench.run(&format!("ping 127.0.0.1:{port} -c 30 -i 0 --csv")).out;
    let rows: Vec<&str> = csv.split_terminator("\r\n").collect();
    assert_eq!(rows.len(), 31, "{csv}");
    assert!(rows[1].starts_with("0,") && rows[1].contains(",answered,"), "{csv}");
}

/// A pipeline goes by the exit code, by the lines on standard error, by the JSON or by the metrics.
#[test]
fn expectations_met_and_missed_are_printed_and_decide_the_exit_code() {
    let bench = Bench::new();
    let line = format!("ping 127.0.0.1:{} -c 20 -i 2ms --expect rtt.p50<=100s", listening_port());
    let met = bench.run(&format!("{line} -q"));
    assert_eq!(met.code(), 0, "{}", met.err);
    assert!(met.err.contains("MET     rtt.p50<=100s: "), "{}", met.err);
    let missed = bench.run(&format!("{line} --expect jitter>=9s --json --prometheus ping.prom"));
    assert_eq!(missed.code(), 1, "{}", missed.err);
    assert!(missed.err.contains("MISSED  jitter>=9s: ") && missed.err.contains("MET     rtt.p50"));
    let document = missed.json();
    assert_in_schema(&document);
    let verdicts: Vec<_> =
        document["expectations"].as_array().unwrap().iter().map(|e| (&e["expectation"], &e["met"])).collect();
    let (p50, jitter) = (Value::from("rtt.p50<=100s"), Value::from("jitter>=9s"));
    assert_eq!(verdicts, [(&p50, &true.into()), (&jitter, &false.into())]);
    let metrics = bench.metrics("ping.prom");
    assert_eq!(metrics["bdp_ping_success{host=\"127.0.0.1\"}"], 1.0);
    assert_eq!(metrics["bdp_expectation_met{host=\"127.0.0.1\",expectation=\"jitter>=9s\"}"], 0.0);
    let median = metrics["bdp_ping_rtt_seconds{host=\"127.0.0.1\",quantile=\"0.5\"}"];
    assert!(median > 1e-7 && median < 10.0, "{median}");
    // What can't be told was not met; nobody answers: that is an error, whatever was expected.
    let few = bench.run(&format!("{line} -c 3 --expect rtt.p99<=100s -q").replace("-c 20 ", ""));
    assert_eq!(few.code(), 1, "{}", few.err);
    assert!(few.err.contains("MISSED  rtt.p99<=100s: not measured"), "{}", few.err);
    let closed =
        format!("ping 127.0.0.1:{} -c 2 -i 1ms -q --expect loss<1% --prometheus ping.prom", free_port());
    assert_eq!(bench.run(&closed).code(), 3);
    assert_eq!(bench.metrics("ping.prom")["bdp_ping_success{host=\"127.0.0.1\"}"], 0.0);
    assert!(bench.run("ping h --expect rtt.p95<=30").refusal(2).contains("a unit is needed"));
}

#[test]
fn a_closed_port_is_told_from_a_wrong_request() {
    let bench = Bench::new();
    let ended = bench.run(&format!("ping 127.0.0.1:{} -c 3 -i 1ms", free_port()));
    assert_eq!(ended.code(), 3);
    assert!(
        ended.out.contains("refused") && ended.last_line().contains("refused"),
        "{}{}",
        ended.out,
        ended.err
    );
    let ended = bench.run(&format!("ping 127.0.0.1:{} -c 1 -i 1ms --json", free_port()));
    assert_in_schema(&ended.json());
    assert!(ended.json()["error"].as_str().unwrap().contains("refused"), "{}", ended.out);
    for (line, hint) in [
        ("ping", "HOST"),
        ("ping :80", "contains no host"),
        ("ping h:0", "not a port"),
        ("ping h -l 64", "no payload"),
        ("ping h -i 10ns", "at least 1 us"),
        ("ping h -W 0", "-W 0"),
        ("ping h --icmp -l 70000", "65507"),
        ("ping h --icmp --udp", "cannot be used with"),
        ("ping 127.0.0.1 -6", "IPv4 address"),
        ("ping h --json --csv", "cannot be used with"),
    ] {
        assert!(bench.run(line).refusal(2).contains(hint), "{line}");
    }
}

#[test]
fn an_interrupt_prints_what_there_is() {
    let bench = Bench::new();
    let (port, count) = counted_port();
    let mut running = start(bench.bdp(&format!("ping 127.0.0.1:{port} -c 0 -i 1ms --json")));
    running.wait_until("probes came", |_| count.load(Ordering::Relaxed) >= 200);
    running.signal("INT");
    let ended = running.wait();
    // It was to go on until then.
    assert_eq!(ended.code(), 0, "{}", ended.err);
    assert_coherent(&ended.json());
    // Nobody answers: that is an error however it ends.
    let mut running = start(bench.bdp(&format!("ping 127.0.0.1:{} -c 0 -i 1ms", free_port())));
    running.wait_until("a probe is refused", |p| p.out().contains("seq=1 refused"));
    running.signal("INT");
    assert_eq!(running.wait().code(), 3);
    // And one with an end of its own was cut short.
    let so_far = count.load(Ordering::Relaxed);
    let mut running = start(bench.bdp(&format!("ping 127.0.0.1:{port} -c 100000 -i 1ms --json")));
    running.wait_until("probes came", |_| count.load(Ordering::Relaxed) >= so_far + 200);
    running.signal("TERM");
    let ended = running.wait();
    assert_eq!(ended.status.signal(), Some(15), "{}", ended.err);
    assert_coherent(&ended.json());
}
