//! Tests of iperf3 and iperf2 that nothing ends, that end before their time, or that ask for more than is granted: served, counted,
//! refused.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::iperf3::{iperf3_is_there, release};
use crate::support::machine::is_installed;
use crate::support::serving::{Serving, free_port, serve};
use crate::support::{Bench, Running, start};

/// A server with its port for iperf2's clients, and one for its counters.
struct Counting {
    server: Serving,
    iperf2: u16,
    metrics: u16,
}

impl Counting {
    fn start(bench: &Bench, options: &str) -> Self {
        let (iperf2, metrics) = (free_port(), free_port());
        let server = serve(bench, &format!("--iperf2-port {iperf2} --metrics {metrics} {options}"));
        Self { server, iperf2, metrics }
    }

    /// Bytes that were received, and sent.
    fn bytes(&self) -> (u64, u64) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.metrics)).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let of = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            value.trim().parse::<f64>().unwrap() as u64
        };
        (of("bdp_received_bytes_total "), of("bdp_sent_bytes_total "))
    }

    fn client(&self, program: &str, options: &str) -> Running {
        let port = if program == "iperf" { self.iperf2 } else { self.server.port };
        let mut command = Command::new(program);
        command.args(["-c", "127.0.0.1", "-p", &port.to_string()]).args(options.split_whitespace());
        start(command)
    }

    /// Waits for so many sessions to have ended.
    #[track_caller]
    fn await_ended(&mut self, sessions: usize) {
        self.server
            .process
            .wait_until("sessions ended", |p| p.err().matches("ended after").count() >= sessions);
    }
}

/// Bytes that flow in [`INTERVALS`] at 20 Mbit/s and more; they are two megabytes.
const SOME: u64 = 1_000_000;
/// Intervals of 0.1 s that a client prints before it is ended.
const INTERVALS: usize = 10;

#[test]
fn a_test_without_an_end_runs_until_its_client_ends_it_and_is_counted() {
    if !iperf3_is_there() {
        return;
    }
    let bench = Bench::new();
    for (options, sends) in [("", false), ("-R", true), ("-u", false), ("-u -R", true)] {
        let mut counting = Counting::start(&bench, "");
        let mut client = counting.client("iperf3", &format!("-t 0 -i 0.1 --forceflush -b 20M {options}"));
        client.await_intervals(INTERVALS);
        client.signal("INT");
        let ended = client.wait();
        assert!(ended.out.contains("interrupt") || ended.err.contains("interrupt"), "{options}: {ended:?}");
        assert!(ended.out.contains("sender"), "{options}: {}", ended.out);
        counting.await_ended(1);
        let told = counting.server.process.err();
        assert!(told.contains("the client ended the test"), "{options}: {told}");
        let (received, sent) = counting.bytes();
        assert!(if sends { sent } else { received } > SOME, "{options}: {received} {sent}");
        assert_eq!(if sends { received } else { sent }, 0, "{options}");
        println!("iperf3 -t 0 {options} ... pass");
    }
}

#[test]
fn a_test_without_an_end_ends_when_the_granted_time_is_over() {
    if !iperf3_is_there() {
        return;
    }
    let bench = Bench::new();
    let mut counting = Counting::start(&bench, "--max-duration 1s");
    // The releases before 3.21 have no word for the time that is over.
    let word = if release() < 21 { "the server has terminated" } else { "server test duration expired" };
    for (tests, options) in (1..).zip(["-b 20M", "", "-P 2", "-R", "--bidir", "-u -b 20M"]) {
        let since = Instant::now();
        let ended = counting.client("iperf3", &format!("-t 0 {options}")).wait();
        assert!(since.elapsed() < Duration::from_secs(5), "{options}: {:?}", since.elapsed());
        assert!(format!("{}{}", ended.out, ended.err).contains(word), "{options}: {ended:?}");
        counting.await_ended(tests);
    }
    let told = counting.server.process.err();
    assert!(told.contains("it reached the maximum duration of 1 s (--max-duration)"), "{told}");
    assert!(counting.bytes().0 > SOME);
    counting.server.assert_unharmed(&bench);
}

#[test]
fn what_ends_before_its_time_is_counted() {
    if !iperf3_is_there() {
        return;
    }
    let bench = Bench::new();
    let mut counting = Counting::start(&bench, "");
    let mut sessions = 0;
    let mut before = (0, 0);
    for (options, signal) in [("", "INT"), ("", "KILL"), ("-R", "KILL"), ("--bidir", "KILL")] {
        let mut client = counting.client("iperf3", &format!("-t 30 -i 0.1 --forceflush -b 20M {options}"));
        client.await_intervals(INTERVALS);
        client.signal(signal);
        client.wait();
        sessions += 1;
        counting.await_ended(sessions);
        let (received, sent) = counting.bytes();
        assert_eq!(received - before.0 > SOME, options != "-R", "{options} {signal}: {received} {before:?}");
        assert_eq!(sent - before.1 > SOME, !options.is_empty(), "{options} {signal}: {sent} {before:?}");
        before = (received, sent);
    }
}

#[test]
fn what_iperf2_moves_over_connections_is_counted() {
    if !is_installed("iperf") {
        return;
    }
    let bench = Bench::new();
    let mut counting = Counting::start(&bench, "");
    let mut before = (0, 0);
    let modes = ["-n 3M", "-n 3M -R", "-n 3M -R --trip-times", "-t 1 -b 30M --full-duplex"];
    for (index, options) in modes.into_iter().enumerate() {
        assert_eq!(counting.client("iperf", options).wait().code(), 0, "{options}");
        counting.await_ended(index + 1);
        let now = counting.bytes();
        let (received, sent) = (now.0 - before.0, now.1 - before.1);
        before = now;
        match options {
            // The header is of its first write.
            "-n 3M" => assert!((3 << 20) - received <= 60 && sent == 0, "{received} {sent}"),
            _ if options.contains("-R") => assert!(sent >= 3 << 20 && received == 0, "{received} {sent}"),
            _ => assert!(sent > SOME && received > SOME, "{options}: {received} {sent}"),
        }
    }
}

#[test]
fn a_rate_above_what_is_granted_is_refused_where_it_is_told() {
    if !iperf3_is_there() {
        return;
    }
    let bench = Bench::new();
    let mut counting = Counting::start(&bench, "--max-rate 100M");
    let port = counting.server.port;
    for options in ["-b 300M -t 1", "-b 60M -P 2 -t 1", "--fq-rate 300M -t 1 --bidir", "-u -b 300M -t 1 -R"] {
        let ended = counting.client("iperf3", options).wait();
        let told = format!("{}{}", ended.out, ended.err);
        assert!(told.contains("total required bandwidth is larger than server limit"), "{options}: {told}");
    }
    let ended = bench.run(&format!("measure 127.0.0.1:{port} -b 300M --forward -t 0.5 --idle 0.1"));
    assert_eq!(ended.code(), 3, "{}", ended.err);
    assert!(
        ended.last_line().contains("allows at most 100 Mbit/s per flow (--max-rate there)"),
        "{}",
        ended.err
    );
    // What the server sends it holds to that by itself, and below it everybody is served.
    let ended = bench.run(&format!("measure 127.0.0.1:{port} -b 60M -t 0.5 --idle 0.1"));
    assert_eq!(ended.code(), 0, "{}", ended.err);
    for options in ["-b 300M -t 1 -R", "-b 40M -P 2 -t 1"] {
        let ended = counting.client("iperf3", options).wait();
        assert_eq!(ended.code(), 0, "{options}: {}{}", ended.out, ended.err);
    }
    if !is_installed("iperf") {
        return;
    }
    let refused =
        |process: &Running| process.err().matches("more than the maximum of 100 Mbit/s (--max-rate)").count();
    for (index, options) in ["-b 300M -t 1", "-b 300M -t 0.2 -u"].into_iter().enumerate() {
        let mut client = counting.client("iperf", options);
        counting.server.process.wait_until("it is told", |p| refused(p) > index);
        if options.contains("-u") {
            // One refusal is for all that follow.
            client.wait_until("all is sent", |p| p.out().contains("Sent "));
        }
        client.signal("KILL");
        client.wait();
        assert_eq!(refused(&counting.server.process), index + 1, "{}", counting.server.process.err());
    }
    let told = counting.server.process.err();
    assert!(told.contains("127.0.0.1 sends at 314.6 Mbit/s, more than the maximum of 100 Mbit/s"), "{told}");
    // Its M is 2^20.
    for options in ["-b 20M -t 0.5", "-b 100M -t 0.2 -u"] {
        let ended = counting.client("iperf", options).wait();
        assert_eq!(ended.code(), 0, "{}{}", ended.out, ended.err);
    }
    assert_eq!(refused(&counting.server.process), 2, "{}", counting.server.process.err());
}

#[test]
fn streams_beyond_those_of_a_test_of_iperf2_are_refused_by_the_bound_that_applies() {
    if !is_installed("iperf") {
        return;
    }
    let bench = Bench::new();
    let mut counting = Counting::start(&bench, "--max-streams 4");
    let client = counting.client("iperf", "-t 1 -b 1M -P 12");
    counting.server.process.wait_until("it is told", |p| p.err().contains("requests more"));
    client.signal("KILL");
    client.wait();
    let told = counting.server.process.err();
    let line = told.lines().find(|line| line.contains("requests more")).unwrap();
    assert!(
        line.contains("may have at most 8 parallel streams") && line.contains("(--max-streams)"),
        "{line}"
    );
    assert!(line.contains(" 127.0.0.1 requests more") && !told.contains("::ffff"), "{told}");
}
