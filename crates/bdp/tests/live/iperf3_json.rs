//! `bdp measure --format iperf3-json` beside `iperf3 -J`: the same members of the same types, of measurements with either
//! kind of server.

use std::time::{Duration, Instant};

use crate::support::Bench;
use crate::support::fidelity::{Timing, timed};
use crate::support::inside::in_guest;
use crate::support::iperf3::{Theirs, client, iperf3_is_there};
use crate::support::serving::{free_port, serve};
use serde_json::Value;

/// The other document's members are all in this one, of the same types; gives what differs, by its path.
fn differences(path: &str, theirs: &Value, ours: &Value, found: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            for (member, value) in theirs {
                match ours.get(member) {
                    Some(ours) => differences(&format!("{path}/{member}"), value, ours, found),
                    None => found.push(format!("{path}/{member} is missing")),
                }
            }
            for member in ours.keys().filter(|member| !theirs.contains_key(*member)) {
                found.push(format!("{path}/{member} is new"));
            }
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            if theirs.is_empty() != ours.is_empty() {
                found.push(format!("{path} has {} entries", ours.len()));
            }
            // Entries of one list are alike, but for those of the two directions of a test both ways.
            for (at, value) in ours.iter().enumerate() {
                if let Some(like) = theirs.get(at).or(theirs.last()) {
                    differences(&format!("{path}/*"), like, value, found);
                }
            }
        }
        _ if std::mem::discriminant(theirs) != std::mem::discriminant(ours) => {
            found.push(format!("{path} is {ours}, not as {theirs}"));
        }
        _ => {}
    }
}

/// Whether a member stays away because nobody knows it (`docs/interop.md`).
fn is_known(options: &str, difference: &str) -> bool {
    let ends = |with: &[&str]| with.iter().any(|end| difference.ends_with(end));
    // Told since 3.16 or later; who reads the documents of older ones passes over them.
    let later = [
        "/start/fq_rate",
        "/start/timestamp/timemillisecs",
        "/start/test_start/bidir",
        "/start/test_start/fqrate",
        "/start/test_start/interval",
        "/start/test_start/gso",
        "/start/test_start/gro",
        "/intervals/*/streams/*/reorder",
        "/end/streams/*/sender/reorder",
    ];
    if later.iter().any(|member| difference == format!("{member} is new")) {
        return true;
    }
    let received = options.contains("-R") || options.contains("--bidir");
    if options.contains("-u") && received && difference.starts_with("/intervals/") {
        // The losses of datagrams are known at the end.
        return ends(&["/jitter_ms is missing", "/lost_packets is missing", "/lost_percent is missing"]);
    }
    // The far end tells its sum alone.
    options.contains("-P") && options.contains("-R") && ends(&["/streams/*/sender/retransmits is missing"])
}

fn sum(document: &Value, of: &str) -> f64 {
    let intervals = document["intervals"].as_array().unwrap();
    intervals
        .iter()
        .filter(|i| i[of]["omitted"] == false)
        .map(|i| i[of]["bytes"].as_f64().unwrap_or_else(|| panic!("{i:#}")))
        .sum()
}

#[test]
fn its_members_are_those_of_iperf3() {
    in_guest(|| {
        if !iperf3_is_there() {
            return;
        }
        let bench = Bench::new();
        let server = serve(&bench, "");
        let mut peer = Theirs::start();
        let port = peer.port;
        for options in [
            "-t 2",
            "-t 2 -R",
            "-t 2 --bidir",
            "-t 2 -P 2",
            "-t 2 -P 2 -R",
            "-t 2 -O 1",
            "-t 2 -u -b 5M",
            "-t 2 -u -b 5M -R",
            "-t 2 -u -b 5M --bidir",
            "-t 2 -u -b 5M -O 1 -R",
            "-n 20M -P 3 -R",
            "-t 1 --get-server-output",
        ] {
            let like = client(port, options);
            assert!(like.get("error").is_none(), "{options}: {like:#}");
            let ours = [
                ("bdp serve", format!("127.0.0.1:{}", server.port)),
                ("iperf3 -s", format!("--iperf3 127.0.0.1:{port}")),
            ];
            // What the server prints is asked of iperf3's alone.
            let ours = if options.contains("--get-server-output") { &ours[1..] } else { &ours[..] };
            for (name, target) in ours {
                let what = format!("iperf3-json of {name}, {options}");
                let line = format!("measure {target} {options} --idle 0.1 --format iperf3-json");
                let (ended, timing) = timed(&what, || {
                    if *name == "iperf3 -s" { peer.run(&bench, &line) } else { bench.run(&line) }
                });
                assert_eq!(ended.code(), 0, "{what}: {}", ended.err);
                let document = ended.json();
                let mut found = Vec::new();
                differences("", &like, &document, &mut found);
                found.retain(|difference| !is_known(options, difference));
                assert!(found.is_empty(), "{what}: {found:#?}");
                // Its sender passes the end by less than a block a stream where the path takes parts of them.
                let beyond = if *name == "iperf3 -s" { 3 * 131_072 } else { 0 };
                agree(options, &document, beyond, &timing);
                println!("{what} ... pass");
            }
        }
    });
}

/// The figures are those of one test.
fn agree(options: &str, document: &Value, beyond: u64, timing: &Timing) {
    let intervals = document["intervals"].as_array().unwrap();
    // A machine that stalls makes one fewer.
    let counted = intervals.iter().filter(|i| i["sum"]["omitted"] == false).count();
    timing.judge_time(|| assert!((1..=3).contains(&counted), "{options}: {counted} intervals"));
    if options.contains("-n ") {
        let [sent, received] = ["sum_sent", "sum_received"].map(|of| document["end"][of]["bytes"].as_u64());
        let bytes = received.unwrap_or_default();
        assert_eq!(sent, received, "{options}: {:#}", document["end"]);
        assert!((20 << 20..=(20 << 20) + beyond).contains(&bytes), "{options}: {:#}", document["end"]);
        assert_eq!(sum(document, "sum"), bytes as f64, "{options}");
        return;
    }
    for (of, end) in [("sum", "sum_received"), ("sum_bidir_reverse", "sum_received_bidir_reverse")] {
        let Some(total) = document["end"].get(end) else { continue };
        let (total, seen) = (total["bytes"].as_f64().unwrap(), sum(document, of));
        assert!(total > 0.0, "{options}: {document:#}");
        // The near end's view of when the omit ended, and of what has come yet, is not the far end's.
        let apart = match options {
            _ if options.contains("-R") => 0.0,
            _ if options.contains("-O") => 0.5,
            _ => 0.05,
        };
        timing.judge_time(|| {
            assert!((total - seen).abs() <= apart * total, "{options}: {seen} seen of {total}");
        });
    }
    let end = &document["end"];
    let rate = end["sum_received"]["bits_per_second"].as_f64().unwrap();
    let own = if options.contains("-R") { "sum_received" } else { "sum_sent" };
    assert_eq!(end[own]["bytes"].as_f64(), Some(sum(document, "sum")), "{options}: {end:#}");
    assert_eq!(document["start"]["test_start"]["interval"], 1);
    if options.contains("-u") {
        let (sent, packets) = (end["sum_sent"]["bytes"].as_u64(), end["sum_sent"]["packets"].as_u64());
        let datagram = document["start"]["test_start"]["blksize"].as_u64();
        assert_eq!(sent, packets.zip(datagram).map(|(packets, bytes)| packets * bytes), "{options}: {end:#}");
    }
    let seconds = end["sum_received"]["seconds"].as_f64().unwrap();
    timing.judge_time(|| {
        assert!((1.0..3.5).contains(&seconds) && rate > 1e6, "{options}: {end:#}");
    });
    if options == "-t 2" {
        let stream = &end["streams"][0]["sender"];
        assert!(
            stream["mean_rtt"].as_u64().unwrap() > 0 && stream["max_snd_cwnd"].as_u64().unwrap() > 0,
            "{stream:#}"
        );
        assert_eq!(document["start"]["test_start"]["duration"], 2);
        assert_eq!(intervals[0]["streams"][0]["socket"], document["start"]["connected"][0]["socket"]);
    }
}

#[test]
fn a_short_transfer_tells_what_the_kernel_knew_at_its_end() {
    in_guest(|| {
        let bench = Bench::new();
        let server = serve(&bench, "");
        for options in ["-t 0.05", "-t 0.05 -P 3", "-n 20M"] {
            let line = format!("measure 127.0.0.1:{} {options} --idle 0.1 --format iperf3-json", server.port);
            let ended = bench.run(&line);
            assert_eq!(ended.code(), 0, "{options}: {}", ended.err);
            let document = ended.json();
            let last = document["intervals"].as_array().and_then(|intervals| intervals.last());
            let streams =
                last.unwrap_or_else(|| panic!("{options}: {document:#}"))["streams"].as_array().unwrap();
            for stream in streams {
                for member in ["snd_cwnd", "snd_wnd", "rtt", "pmtu"] {
                    assert!(stream[member].as_u64() > Some(0), "{options}: {member}: {stream:#}");
                }
                for member in ["retransmits", "rttvar", "reorder"] {
                    assert!(stream[member].is_u64(), "{options}: {member}: {stream:#}");
                }
            }
            for stream in document["end"]["streams"].as_array().unwrap() {
                for member in ["max_snd_cwnd", "max_snd_wnd", "max_rtt", "min_rtt", "mean_rtt"] {
                    assert!(stream["sender"][member].as_u64() > Some(0), "{options}: {member}: {stream:#}");
                }
            }
        }
    });
}

#[test]
fn the_time_of_its_start_has_milliseconds() {
    in_guest(|| {
        let bench = Bench::new();
        let server = serve(&bench, "");
        let line = format!("measure 127.0.0.1:{} -t 0.1 --idle 0.1 --format iperf3-json", server.port);
        let start = &bench.run(&line).json()["start"];
        let (s, ms) = (&start["timestamp"]["timesecs"], &start["timestamp"]["timemillisecs"]);
        assert_eq!(ms.as_u64().map(|ms| ms / 1000), s.as_u64(), "{start:#}");
        assert_eq!((&start["test_start"]["gso"], &start["test_start"]["gro"]), (&0.into(), &0.into()));
    });
}

#[test]
fn intervals_have_the_length_that_is_asked_for() {
    in_guest(|| {
        let bench = Bench::new();
        let server = serve(&bench, "");
        let line = format!("measure 127.0.0.1:{} -t 2 -i 0.5 --idle 0.1 --format iperf3-json", server.port);
        let since = Instant::now();
        let (ended, timing) = timed("-i 0.5", || bench.run(&line));
        let document = ended.json();
        assert!(since.elapsed() >= Duration::from_secs(2));
        let intervals = document["intervals"].as_array().unwrap();
        timing.judge_time(|| assert!((3..=5).contains(&intervals.len()), "{intervals:#?}"));
        let mut end = 0.0;
        for interval in intervals {
            assert_eq!(interval["sum"]["start"].as_f64(), Some(end), "one begins where another ended");
            end = interval["sum"]["end"].as_f64().unwrap();
        }
    });
}

#[test]
fn what_fails_is_told_in_the_document_too() {
    in_guest(|| {
        let bench = Bench::new();
        let ended = bench.run(&format!("measure 127.0.0.1:{} --format iperf3-json", free_port()));
        assert_eq!(ended.code(), 3, "{}", ended.err);
        let document: Value = ended.json();
        assert!(document["error"].as_str().unwrap().contains("nothing listens"), "{document:#}");
        assert_eq!(document["intervals"], serde_json::json!([]));
        assert!(document["start"]["version"].as_str().unwrap().starts_with("bdp "), "{document:#}");
        for (options, part) in [("--json", "--json"), ("--runs 2", "--runs")] {
            let wrong = bench.run(&format!("measure 127.0.0.1 --format iperf3-json {options}"));
            assert_eq!(wrong.code(), 2, "{}", wrong.err);
            assert!(wrong.err.contains(part), "{}", wrong.err);
        }
    });
}
