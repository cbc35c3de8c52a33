//! What is told of tests in which a figure goes wrong easily: short ones, such as end by their volume, and slow ones.

mod support;

use support::Bench;
use support::iperf3::{Theirs, client, iperf3_is_there, number};
use support::serving::serve;

/// Tries of a measurement that a machine which halts for a moment spoils; the best counts.
const TRIES: usize = 8;

#[test]
fn its_client_is_told_of_a_receiver_that_was_done_when_the_sender_was() {
    if !iperf3_is_there("its_client_is_told_of_a_receiver_that_was_done_when_the_sender_was") {
        return;
    }
    let bench = Bench::new();
    let server = serve(&bench, "");
    for options in ["-n 10M", "-k 100", "-n 5M -P 4"] {
        let later = |_| {
            let document = client(server.port, options);
            let seconds = |end: &str| number(&document, &format!("/end/{end}/seconds"));
            seconds("sum_received") - seconds("sum_sent")
        };
        let least = (0..TRIES).map(later).fold(f64::INFINITY, f64::min);
        assert!(least < 0.025, "{options}: received for {least} s longer than sent");
    }
    server.assert_unharmed(&bench);
}

#[test]
fn a_volume_takes_as_long_as_its_bytes_with_its_server() {
    if !iperf3_is_there("a_volume_takes_as_long_as_its_bytes_with_its_server") {
        return;
    }
    let bench = Bench::new();
    let server = Theirs::start();
    for options in ["-n 10M", "-n 10M -R"] {
        let took = |_| {
            let ended = bench.run(&format!("measure --iperf3 127.0.0.1:{} {options} --json", server.port));
            assert_eq!(ended.code(), 0, "{options}: {}", ended.err);
            number(&ended.json(), "/directions/0/duration_ns") / 1e6
        };
        let least_ms = (0..TRIES).map(took).fold(f64::INFINITY, f64::min);
        assert!(least_ms < 40.0, "{options}: {least_ms} ms");
    }
}
