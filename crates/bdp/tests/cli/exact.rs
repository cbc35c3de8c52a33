//! Figures that are exact where time is: in a guest, over a loopback of 1 Gbit/s and 100 us a round trip.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::support::Bench;
use crate::support::inside::only_in_guest;
use crate::support::serving::{Serving, serve};
use serde_json::Value;

/// What timers of a guest may be late by, and readings of its clock take.
const GRAIN_NS: u64 = 2_500;

#[track_caller]
fn number(document: &Value, pointer: &str) -> u64 {
    let value = document.pointer(pointer).and_then(Value::as_u64);
    value.unwrap_or_else(|| panic!("no {pointer} in {document:#}"))
}

#[track_caller]
fn assert_near(what: &str, found: u64, wanted: u64) {
    assert!(found.abs_diff(wanted) <= GRAIN_NS, "{what}: {found} ns, not {wanted} ns");
}

/// The only direction of a measurement.
#[track_caller]
fn direction(bench: &Bench, server: &Serving, options: &str) -> Value {
    let ended = bench.run(&format!("measure 127.0.0.1:{} --idle 0.2 {options} --json", server.port));
    assert_eq!(ended.code(), 0, "{}", ended.err);
    ended.json()["directions"][0].take()
}

#[test]
fn a_probe_takes_the_path_and_nothing_else() {
    only_in_guest(|| {
        let bench = Bench::new();
        let server = serve(&bench, "");
        for (mode, wire_bytes) in [("--udp", 90), ("", 74)] {
            let line = format!("ping 127.0.0.1:{} {mode} -c 20 -i 5ms --json", server.port);
            let document = bench.run(&line).json();
            assert_eq!(number(&document, "/probes/received"), 20, "{mode}: {document:#}");
            assert_eq!(number(&document, "/probes/left_out"), 0, "{mode}");
            // There and back, at 8 ns a byte.
            assert_near(mode, number(&document, "/rtt_ns/p50"), 100_000 + 2 * 8 * wire_bytes);
            assert!(
                number(&document, "/rtt_ns/max") - number(&document, "/rtt_ns/min") < 100,
                "{document:#}"
            );
            // Turns come when they are due.
            assert!(number(&document, "/lateness_ns/max") < GRAIN_NS, "{mode}: {document:#}");
            assert_near("turns", number(&document, "/from_due_ns/p50"), number(&document, "/rtt_ns/p50"));
        }
    });
}

#[test]
fn datagrams_leave_when_they_are_due_and_take_the_same_time_each() {
    only_in_guest(|| {
        let bench = Bench::new();
        let server = serve(&bench, "");
        for (way, options) in [("to", "--forward"), ("from", "-R")] {
            let result = direction(&bench, &server, &format!("-u -b 8M -l 1000 -t 1 {options}"));
            assert_eq!(result["direction"], way);
            let udp = &result["udp"];
            let count = |name: &str| number(udp, &format!("/{name}"));
            assert_eq!((count("sent"), count("received")), (1000, 1000), "{udp:#}");
            assert_eq!((count("left_out"), count("duplicated"), count("burst_max")), (0, 0, 1), "{udp:#}");
            // The median of values this near to each other is printed as the largest. That one holds the few system calls that the guest charges 1 us for
            // after each 10,000 (stacks/linux/README.md): 1 to 3 of them were seen.
            let gap = count("send_gap_ns/p50");
            assert!(gap.abs_diff(1_000_000) <= 2 * GRAIN_NS, "{gap} ns");
            assert!(count("jitter_ns") < 100, "{udp:#}");
            // 50 us, and 1042 bytes at 8 ns; each the same.
            let delay = |name: &str| number(udp, &format!("/one_way_delay_ns/{name}"));
            assert_near("delay", delay("p50"), 50_000 + 8 * 1042);
            assert!(delay("max") - delay("min") < GRAIN_NS, "{udp:#}");
        }
    });
}

#[test]
fn a_flow_is_counted_from_the_omit_on_and_sampled_at_its_cadence() {
    only_in_guest(|| {
        let bench = Bench::new();
        let server = serve(&bench, "");
        for options in ["--forward", "-R"] {
            let result = direction(&bench, &server, &format!("-b 20M -t 2 -O 1 -i 100ms {options}"));
            assert_near("omit", number(&result, "/omit_ns"), 1_000_000_000);
            assert_near("duration", number(&result, "/duration_ns"), 3_000_000_000);
            for end in ["received", "sent"] {
                let samples = result[end].as_array().unwrap();
                assert_eq!(samples.len(), 31, "{end}");
                for (sample, turn) in samples.iter().zip(0u64..) {
                    assert_near(end, number(sample, "/at_ns"), turn * 100_000_000);
                }
            }
            // The rate that was asked for, to what is under way.
            let goodput = result["goodput_bps"].as_f64().unwrap();
            assert!((19.99e6..20.01e6).contains(&goodput), "{options}: {goodput}");
        }
    });
}

#[test]
fn who_says_nothing_is_closed_at_its_deadline() {
    only_in_guest(|| {
        let bench = Bench::new();
        let server = serve(&bench, "");
        for bytes in [&b""[..], b"\xbdbdp"] {
            let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
            let since = Instant::now();
            stream.write_all(bytes).unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
            let took = since.elapsed();
            // The server looks each 250 ms.
            let exact = Duration::from_secs(5)..Duration::from_millis(5_251);
            assert!(exact.contains(&took), "{bytes:?}: {took:?}");
        }
        server.assert_unharmed(&bench);
    });
}
