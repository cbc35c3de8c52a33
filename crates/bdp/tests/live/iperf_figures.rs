//! What is told of tests in which a figure goes wrong easily: short ones, such as end by their volume, and slow ones.

use crate::support::fidelity::timed;
use crate::support::inside::{LOOPBACK_BPS, alone, in_guest, is_inside, samples};
use crate::support::iperf2::iperf;
use crate::support::iperf3::{Theirs, client, in_guest_with_iperf3, iperf3_is_there, number};
use crate::support::machine::is_installed;
use crate::support::serving::{free_port, serve};
use crate::support::{Bench, start};

/// Samples of a time that has a floor: the least of them is nearest to it.
const SAMPLES: usize = 8;

#[test]
fn its_client_is_told_of_a_receiver_that_was_done_when_the_sender_was() {
    in_guest_with_iperf3(|| {
        if !iperf3_is_there() {
            return;
        }
        let bench = Bench::new();
        let server = serve(&bench, "");
        for options in ["-n 10M", "-k 100", "-n 5M -P 4"] {
            let later = || {
                let document = client(server.port, options);
                let figure = |end: &str, of: &str| number(&document, &format!("/end/{end}/{of}"));
                let taken = figure("sum_received", "seconds");
                // What was in socket buffers when the sender was done comes at the path's rate.
                let left = if is_inside() {
                    figure("sum_received", "bytes") * 8.0 / LOOPBACK_BPS
                } else {
                    figure("sum_sent", "seconds")
                };
                taken - left
            };
            let (least, timing) = timed(options, || least_below(0.025, later));
            timing.judge(|| assert!(least < 0.025, "{options}: received for {least} s longer than sent"));
            timing.judge_exactly(|| {
                assert!((-1e-3..0.01).contains(&least), "{options}: {least} s longer than its bytes take")
            });
        }
        server.assert_unharmed(&bench);
    });
}

#[test]
fn a_volume_takes_as_long_as_its_bytes_with_its_server() {
    in_guest_with_iperf3(|| {
        if !iperf3_is_there() {
            return;
        }
        let bench = Bench::new();
        let mut server = Theirs::start();
        for options in ["-n 10M", "-n 10M -R"] {
            let took = || {
                let line = format!("measure --iperf3 127.0.0.1:{} {options} --json", server.port);
                let ended = server.run(&bench, &line);
                assert_eq!(ended.code(), 0, "{options}: {}", ended.err);
                number(&ended.json(), "/directions/0/duration_ns") / 1e6
            };
            // 10 MiB, and what is around them.
            let path_ms = if is_inside() { 83_886_080.0 / LOOPBACK_BPS * 1e3 } else { 0.0 };
            let (least_ms, timing) = timed(options, || least_below(path_ms + 40.0, took));
            timing.judge(|| assert!(least_ms < path_ms + 40.0, "{options}: {least_ms} ms"));
            timing.judge_exactly(|| {
                assert!((path_ms..1.15 * path_ms).contains(&least_ms), "{options}: {least_ms} ms")
            });
        }
    });
}

/// One datagram each 400 ms: three in a second, with two gaps between them.
const SPARSE: &str = "-u -b 640K -l 32000 -t 1";

/// Not in a guest: its sender divides by the time that has passed, and takes no time at all for a rate of 0, at which it may send.
#[test]
fn sparse_datagrams_have_no_higher_rate_for_the_gap_after_the_last() {
    alone(|| {
        if !iperf3_is_there() {
            return;
        }
        let bench = Bench::new();
        let server = serve(&bench, "");
        let (document, timing) =
            timed("its client", || client(server.port, &format!("{SPARSE} --get-server-output")));
        let bps = number(&document, "/end/sum/bits_per_second");
        let told = document["server_output_text"].as_str().unwrap();
        assert!(told.contains("kbit/s") && !told.contains("960 kbit/s"), "{told}");
        timing.judge(|| assert!((0.5e6..0.85e6).contains(&bps), "{bps}: {document:#}"));
        let theirs = Theirs::start();
        let (bps, timing) = timed("our client", || sparse(&bench, theirs.port));
        timing.judge(|| assert!((0.5e6..0.85e6).contains(&bps), "{bps}"));
    });
}

#[test]
fn sparse_datagrams_of_our_server_have_no_higher_rate_either() {
    in_guest(|| {
        let bench = Bench::new();
        let server = serve(&bench, "");
        let (bps, timing) = timed("our client", || sparse(&bench, server.port));
        timing.judge(|| assert!((0.5e6..0.85e6).contains(&bps), "{bps}"));
        // Three datagrams, and the time until its end is heard of.
        timing.judge_exactly(|| assert!((760e3..768.1e3).contains(&bps), "{bps}"));
    });
}

fn sparse(bench: &Bench, port: u16) -> f64 {
    let ended = bench.run(&format!("measure --iperf3 127.0.0.1:{port} {SPARSE} -R --json"));
    assert_eq!(ended.code(), 0, "{}", ended.err);
    number(&ended.json(), "/directions/0/goodput_bps")
}

/// Its server counts time until it hears of the end: what it prints is the rate of the datagrams.
#[test]
fn its_server_hears_of_the_end_of_datagrams_when_the_last_is_sent() {
    in_guest_with_iperf3(|| {
        if !iperf3_is_there() {
            return;
        }
        let bench = Bench::new();
        let mut server = Theirs::start();
        let counted = || {
            let line = "-u -b 20M -l 1000 -t 1 --forward --get-server-output --json";
            let ended = server.run(&bench, &format!("measure --iperf3 127.0.0.1:{} {line}", server.port));
            assert_eq!(ended.code(), 0, "{}", ended.err);
            let document = ended.json();
            let text = document["server_output"][0].as_str().unwrap().to_owned();
            let receiver = text.lines().rfind(|line| line.contains("receiver")).unwrap_or(&text).to_owned();
            let seconds =
                receiver.split_whitespace().find_map(|word| word.strip_prefix("0.00-")?.parse().ok());
            seconds.unwrap_or_else(|| panic!("{text}"))
        };
        let (least, timing) = timed("the time it counts", || least_below(1.1, counted));
        timing.judge(|| assert!(least < 1.1, "counted for {least} s of 1 s"));
    });
}

#[test]
fn an_iperf2_client_with_trip_times_is_sent_bursts_that_say_when_they_left() {
    in_guest(|| {
        if !is_installed("iperf") {
            return;
        }
        let bench = Bench::new();
        let (port, own) = (free_port(), free_port());
        let mut server = start(bench.bdp(&format!("serve --listen {own} --iperf2-port {port}")));
        server.wait_until("it listens", |p| p.err().contains("for iperf2's clients"));
        for options in [
            "-t 1 -b 20M -R --trip-times",
            "-t 1 -b 20M --full-duplex --trip-times",
            // Held back: of what is over within a millisecond this client prints what it never read, breaks down, or does not end.
            "-n 2M -b 20M -R --trip-times",
            "-n 100000 -l 30000 -b 1M -R --trip-times -P 2",
        ] {
            let (ended, timing) =
                timed(options, || iperf(&format!("-c 127.0.0.1 -p {port} -e -f m {options}")));
            assert_eq!(ended.code(), 0, "{options}: {}", ended.err);
            // Of a burst that does not begin as it should a client tells on stderr, and its figures are no numbers.
            assert!(
                !ended.err.contains("error") && !ended.err.contains("partial"),
                "{options}: {}",
                ended.err
            );
            let received = ended.out.lines().filter(|line| line.starts_with("[ *"));
            let mut streams = 0;
            for line in received {
                let (_, latency) =
                    line.split_once("/sec").unwrap_or_else(|| panic!("{options}: {}", ended.out));
                let mean = latency.trim().split('/').next().and_then(|mean| mean.parse::<f64>().ok());
                let mean = mean.unwrap_or_else(|| panic!("{options}: {}", ended.out));
                // A machine that pauses delays bursts; a clock that was read wrongly is off by far more.
                timing.judge_time(|| {
                    assert!((0.0..2000.0).contains(&mean), "{options}: {mean} ms\n{}", ended.out);
                });
                streams += 1;
            }
            assert_eq!(streams, if options.contains("-P 2") { 2 } else { 1 }, "{options}: {}", ended.out);
        }
    });
}

#[test]
fn a_low_rate_holds_from_the_first_byte_on() {
    in_guest_with_iperf3(|| {
        let bench = Bench::new();
        let server = serve(&bench, "");
        let ours = format!("measure 127.0.0.1:{}", server.port);
        for (options, bps) in [("-b 1M -t 2", 1e6), ("-b 20M -t 1 -P 2", 40e6)] {
            holds(options, || parts_of_rate(&bench, &ours, options, bps));
        }
        if !iperf3_is_there() {
            return;
        }
        // In whole blocks, of which the third is due after 2.1 s.
        let (document, timing) = timed("theirs -b 1M -R -t 2", || client(server.port, "-b 1M -R -t 2"));
        let part = number(&document, "/end/sum_received/bits_per_second") / 1e6;
        timing.judge(|| assert!((0.5..1.1).contains(&part), "{part} of the rate"));
        holds("theirs -b 20M -R -t 2", || {
            let document = client(server.port, "-b 20M -R -t 2");
            vec![number(&document, "/end/sum_received/bits_per_second") / 20e6]
        });
        server.assert_unharmed(&bench);
    });
}

#[test]
fn its_server_keeps_a_low_rate_evenly() {
    in_guest_with_iperf3(|| {
        if !iperf3_is_there() {
            return;
        }
        let bench = Bench::new();
        let server = Theirs::start();
        let ours = format!("measure --iperf3 127.0.0.1:{}", server.port);
        for options in ["-b 1M -t 2 -R", "-b 1M -t 2 --forward"] {
            holds(options, || parts_of_rate(&bench, &ours, options, 1e6));
        }
    });
}

/// The least sample of a time that has a floor; none is taken after the first that is below the bound.
fn least_below(bound: f64, mut sample: impl FnMut() -> f64) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..samples(SAMPLES) {
        least = least.min(sample());
        if least < bound {
            break;
        }
    }
    least
}

/// Goodput of each direction / `bps`.
fn parts_of_rate(bench: &Bench, measure: &str, options: &str, bps: f64) -> Vec<f64> {
    let ended = bench.run(&format!("{measure} {options} --json"));
    assert_eq!(ended.code(), 0, "{options}: {}", ended.err);
    let document = ended.json();
    document["directions"].as_array().unwrap().iter().map(|d| number(d, "/goodput_bps") / bps).collect()
}

/// A rate is kept: what a machine that pauses makes late is not made up for.
fn holds(what: &str, measure: impl FnOnce() -> Vec<f64>) {
    let (parts, timing) = timed(what, measure);
    assert!(!parts.is_empty(), "{what}");
    timing.judge(|| {
        assert!(parts.iter().all(|part| (0.8..1.1).contains(part)), "{what}: {parts:?} of the rate");
    });
    // What is above is the last of the blocks in which such a rate goes.
    timing.judge_exactly(|| {
        assert!(parts.iter().all(|part| (0.98..1.09).contains(part)), "{what}: {parts:?} of the rate");
    });
}
