//! Clients of iperf3 and iperf2 that stop in mid-test, or never begin: each loses its place, and whoever is only slow keeps it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::inside::{in_guest, is_inside};
use crate::support::iperf3::{body, greeted, iperf3_is_there};
use crate::support::machine::is_installed;
use crate::support::serving::{Serving, free_port, measure, serve};
use crate::support::{Bench, Running, start};

/// How soon a test of which nothing moves has to be over: it may be still for 10 s.
const NOTICED: Duration = Duration::from_secs(25);
/// A test of iperf3's that lasts a day, as its client asks for it.
const DAY: &str = r#"{"tcp":true,"omit":0,"time":86400,"num":0,"blockcount":0,"parallel":1,"len":131072,"client_version":"3.12"}"#;

/// A server that serves one at a time, with its port for iperf2's clients.
fn serve_one(bench: &Bench) -> (Serving, u16) {
    let iperf2 = free_port();
    (serve(bench, &format!("--exclusive --iperf2-port {iperf2}")), iperf2)
}

/// Starts a client at the port that its protocol has.
fn client(program: &str, server: &Serving, iperf2: u16, options: &str) -> Running {
    let port = if program == "iperf" { iperf2 } else { server.port };
    let mut command = Command::new(program);
    let intervals: &[&str] = if program == "iperf" { &["-i", "0.5"] } else { &["-i", "0.1", "--forceflush"] };
    command.args(["-c", "127.0.0.1", "-p", &port.to_string()]).args(intervals);
    command.args(options.split_whitespace());
    start(command)
}

#[track_caller]
fn await_session(server: &mut Serving) {
    server.process.wait_until("a session began", |p| p.err().contains(" started, "));
}

/// The session ends, the log says why, and the next client has the only place.
#[track_caller]
fn assert_let_go(bench: &Bench, server: &mut Serving, since: Instant, what: &str) {
    server.process.wait_until("its session ended", |p| p.err().contains("ended after"));
    let (told, took) = (server.process.err(), since.elapsed());
    assert!(took < NOTICED, "{what}: {took:?}");
    // 10 s since anything moved; those before it were served once more each meanwhile.
    assert!(!is_inside() || took < Duration::from_secs(14), "{what}: {took:?}");
    let why = ["no data was transferred for 10 s", "silent for 10 s"].iter().any(|why| told.contains(why));
    assert!(why, "{what}: {told}");
    let ended = bench.run(&measure(server.port));
    assert_eq!(ended.code(), 0, "after {what}: {}", ended.err);
    println!("{what} ... let go after {:.1} s", took.as_secs_f64());
}

/// What holds for as long as the others are still: clients that are slow, or stopped for a while.
fn patient(bench: &Bench) -> Vec<(&'static str, Serving, Running)> {
    [
        // A datagram each 11.7 s, and writes of 128 KiB each 10.5 s, from either end.
        ("iperf3", "-u -b 1K -l 1460 -t 13"),
        ("iperf3", "-b 100K -t 12"),
        ("iperf3", "-b 100K -t 12 -R"),
        ("iperf3", "-b 20M -t 12 -O 1"),
        ("iperf3", "-b 20M -t 11 --bidir"),
    ]
    .into_iter()
    .map(|(program, options)| {
        let (mut server, iperf2) = serve_one(bench);
        let client = client(program, &server, iperf2, options);
        await_session(&mut server);
        (options, server, client)
    })
    .collect()
}

#[test]
fn a_client_of_iperf_that_stays_stopped_loses_its_place_and_one_that_is_slow_does_not() {
    in_guest(|| {
        if !iperf3_is_there() {
            return;
        }
        let bench = Bench::new();
        let patient = patient(&bench);
        let mut cases: Vec<(&str, &str)> =
            vec![("iperf3", "-t 300"), ("iperf3", "-t 300 -R"), ("iperf3", "-t 300 -u -b 1M")];
        cases.push(("iperf3", "-t 300 -u -b 1M --bidir"));
        if is_installed("iperf") {
            for options in ["-n 900G", "-t 300", "-t 300 -R", "-t 300 -R --trip-times", "-t 300 -u -b 1M"] {
                cases.push(("iperf", options));
            }
        }
        let stopped: Vec<_> = cases
            .into_iter()
            .map(|(program, options)| {
                let (server, iperf2) = serve_one(&bench);
                let mut client = client(program, &server, iperf2, options);
                client.await_intervals(1);
                client.signal("STOP");
                (format!("{program} {options}"), server, client, Instant::now())
            })
            .collect();
        let suspended = {
            let (server, iperf2) = serve_one(&bench);
            let mut client = client("iperf3", &server, iperf2, "-t 8 -b 100M");
            client.await_intervals(1);
            client.signal("STOP");
            thread::sleep(Duration::from_secs(4));
            client.signal("CONT");
            ("-t 8, suspended for 4 s", server, client)
        };
        for (what, mut server, client, since) in stopped {
            assert_let_go(&bench, &mut server, since, &what);
            client.signal("KILL");
            client.wait();
        }
        for (options, server, client) in patient.into_iter().chain([suspended]) {
            let ended = client.wait();
            assert_eq!(ended.code(), 0, "{options}: {}{}{}", ended.out, ended.err, server.process.err());
            println!("iperf3 {options} ... served to its end");
        }
    });
}

/// A test of iperf3's whose stream is there.
fn begun(port: u16, cookie: u8) -> (TcpStream, TcpStream) {
    let mut control = greeted(port, cookie);
    control.write_all(&body(DAY)).unwrap();
    let mut states = [0];
    control.read_exact(&mut states).unwrap();
    assert_eq!(states, [10]);
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut bytes = [cookie; 37];
    bytes[36] = 0;
    stream.write_all(&bytes).unwrap();
    let mut states = [0; 2];
    control.read_exact(&mut states).unwrap();
    assert_eq!(states, [1, 2]);
    (control, stream)
}

#[test]
fn who_begins_a_test_and_sends_nothing_loses_its_place() {
    in_guest(|| {
        let bench = Bench::new();
        let (mut never, _) = serve_one(&bench);
        let _test = begun(never.port, b'n');
        let (mut little, iperf2) = serve_one(&bench);
        let mut stream = TcpStream::connect(("127.0.0.1", iperf2)).unwrap();
        stream.write_all("0123456789".repeat(10).as_bytes()).unwrap();
        let since = Instant::now();
        // Whoever has all places and has sent nothing over any stream gives way at once.
        let mut all = serve(&bench, "");
        let tests: Vec<_> = (b'a'..b'a' + 16).map(|cookie| begun(all.port, cookie)).collect();
        let ended = bench.run(&measure(all.port));
        assert_eq!(ended.code(), 0, "{}", ended.err);
        all.process.wait_until("it is evicted", |p| p.err().contains("evicted while idle"));
        drop(tests);
        assert_let_go(&bench, &mut never, since, "a test of iperf3's that sends nothing");
        assert_let_go(&bench, &mut little, since, "100 bytes to iperf2's port");
    });
}
