//! The document as iperf3's: what its parts tell of one test agrees.

use bdp_model::flow::udp::{UdpReport, UdpRequest};
use bdp_model::measurement::{Direction, Measurement};
use bdp_model::units::{ByteCount, Nanos};
use bdp_report::{Intervals, Part, Piece, iperf3_json};
use serde_json::Value;

const MS: u64 = 1_000_000;

/// A direction of `ms` in which each stream moved so much; the receiver's first read does not count without omit.
fn measured(way: Direction, ms: u64, omit_ms: u64, bytes: u64, stream_goodput_bps: Vec<f64>) -> Measurement {
    let text = include_str!("../../../bdp-store/tests/it/measurement.json");
    let mut m: Measurement = serde_json::from_str(text).unwrap();
    m.request.directions = vec![way];
    m.request.spec.streams = stream_goodput_bps.len() as u32;
    m.request.spec.duration = Nanos(ms * MS);
    m.request.spec.omit = Nanos(omit_ms * MS);
    m.request.spec.interval = Nanos::millis(100);
    m.directions.truncate(1);
    let d = &mut m.directions[0];
    (d.direction, d.duration_ns, d.omit_ns, d.bytes) = (way, ms * MS, omit_ms * MS, bytes);
    d.goodput_bps = stream_goodput_bps.iter().sum();
    d.stream_goodput_bps = stream_goodput_bps;
    m
}

/// Looks every 100 ms, at each of which so much had come of each stream since the one before.
fn looks(way: Direction, interval_ms: u64, omit_ms: u64, looks: &[&[f64]]) -> Intervals {
    let mut intervals = Intervals::new(interval_ms * MS, omit_ms * MS);
    for (at, bytes) in (0..).zip(looks) {
        let parts = vec![Part {
            way,
            stream_bytes: bytes.to_vec(),
            senders: Vec::new(),
            receivers: Vec::new(),
            datagram_bytes: None,
        }];
        intervals.add(Piece { from_ns: at * 100 * MS, to_ns: (at + 1) * 100 * MS, parts });
    }
    intervals
}

fn sum(of: &[Value], member: &str) -> f64 {
    of.iter()
        .map(|entry| entry.pointer(member).and_then(Value::as_f64).unwrap_or_else(|| panic!("{entry:#}")))
        .sum()
}

fn number(document: &Value, pointer: &str) -> f64 {
    document.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer}: {document:#}"))
}

/// What a script that reads one part takes it for is what another that reads another part does.
fn agree(document: &Value) {
    let intervals: Vec<Value> = document["intervals"].as_array().unwrap().clone();
    let counted: Vec<Value> = intervals.into_iter().filter(|i| i["sum"]["omitted"] == false).collect();
    let seen = sum(&counted, "/sum/bytes");
    for interval in &counted {
        let streams = interval["streams"].as_array().unwrap();
        assert_eq!(sum(streams, "/bytes"), number(interval, "/sum/bytes"), "{interval:#}");
    }
    let own = if document["start"]["test_start"]["reverse"] == 1 { "sum_received" } else { "sum_sent" };
    assert_eq!(number(document, &format!("/end/{own}/bytes")), seen, "{:#}", document["end"]);
    let streams = document["end"]["streams"].as_array().unwrap();
    for (sum_of, part) in [("sum_sent", "sender"), ("sum_received", "receiver")] {
        let all = &document["end"][sum_of];
        let (bytes, seconds) = (number(all, "/bytes"), number(all, "/seconds"));
        let rate = number(all, "/bits_per_second");
        assert!((bytes * 8.0 / seconds - rate).abs() < 1e-6 * rate, "{all:#}");
        if streams[0].get(part).is_some() {
            assert_eq!(sum(streams, &format!("/{part}/bytes")), bytes, "{:#}", document["end"]);
            assert_eq!(sum(&streams[..1], &format!("/{part}/seconds")), seconds);
        }
    }
}

#[test]
fn the_first_reads_are_part_of_a_volume() {
    // 20 MiB in 250 ms over three connections, of which 400,000 bytes were the first reads.
    let all: u64 = 20 << 20;
    let bps = |bytes: u64| bytes as f64 * 8e9 / (250 * MS) as f64;
    let counted = all - 400_000;
    let each = vec![bps(counted / 2), bps(counted / 4), bps(counted - counted / 2 - counted / 4)];
    for way in [Direction::From, Direction::To] {
        let mut m = measured(way, 250, 0, all, each.clone());
        m.request.spec.bytes = Some(ByteCount::bytes(all));
        let seen: &[&[f64]] = &[&[4_000_001.0, 2_000_000.0, 2_300_000.0], &[4e6, 2e6, 2e6]];
        let document = iperf3_json(&m, looks(way, 1000, 0, seen));
        agree(&document);
        for of in ["sum_sent", "sum_received"] {
            assert_eq!(number(&document, &format!("/end/{of}/bytes")), all as f64, "{way:?}");
            assert_eq!(number(&document, &format!("/end/{of}/seconds")), 0.25, "{way:?}");
        }
    }
}

#[test]
fn datagrams_of_the_omit_are_not_counted() {
    // 1000 datagrams a second of 1000 bytes, for 3 s of which 1 s is omitted; 3 of a hundred are lost on the way.
    for (way, lost) in [(Direction::From, 0), (Direction::To, 0), (Direction::From, 90), (Direction::To, 90)]
    {
        let came = 3000 - lost;
        let goodput = came as f64 / 3000.0 * 8e6;
        let mut m = measured(way, 3000, 1000, came * 1000, vec![goodput]);
        m.request.spec.udp = Some(UdpRequest {
            rate_bps: Some(8_000_000),
            search: None,
            datagram_bytes: Some(1000),
            dont_fragment: false,
        });
        m.directions[0].udp = Some(UdpReport {
            datagram_bytes: 1000,
            sent: 3000,
            received: came,
            lost,
            loss_ratio: lost as f64 / 3000.0,
            ..UdpReport::default()
        });
        let at_once = if way == Direction::From { came as f64 / 30.0 * 1000.0 } else { 100_000.0 };
        let one = [at_once];
        // What this end sent is what it saw go, though its omit was over a little sooner than the receiver's.
        if way == Direction::To {
            m.directions[0].omit_ns = 1020 * MS;
            m.directions[0].stream_goodput_bps = vec![goodput];
        }
        // After all has come nothing does for a while.
        let mut seen: Vec<&[f64]> = vec![&one; 30];
        seen.push(&[0.0]);
        let document = iperf3_json(&m, looks(way, 1000, 1000, &seen));
        agree(&document);
        let end = |member: &str| number(&document, &format!("/end/{member}"));
        assert_eq!(end("sum_sent/packets"), 2000.0, "{way:?} {:#}", document["end"]);
        assert_eq!(end("sum_sent/bytes"), 2e6, "{way:?}");
        assert!((end("sum_sent/bits_per_second") - 8e6).abs() < 1.0, "{way:?} {:#}", document["end"]);
        let counted = if way == Direction::To { 1980.0 } else { 2000.0 };
        let lost = (lost as f64 * counted / 3000.0).round();
        assert_eq!(end("sum_received/lost_packets"), lost, "{way:?}");
        assert_eq!(end("sum_received/packets"), counted, "{way:?}");
        let came = end("sum_received/bytes");
        assert!((came - (counted - lost) * 1000.0).abs() < 1000.0, "{way:?} {came}");
        assert_eq!(end("sum/packets"), 2000.0, "{way:?}");
        assert!((end("sum/lost_percent") - lost / 20.0).abs() < 1e-9, "{way:?}");
        assert_eq!(end("streams/0/udp/packets"), 2000.0, "{way:?}");
        assert_eq!(end("streams/0/udp/bytes"), 2e6, "{way:?}");
        for of in ["sum", "sum_sent", "streams/0/udp"] {
            assert_eq!(end(&format!("{of}/bytes")), 1000.0 * end(&format!("{of}/packets")), "{way:?} {of}");
        }
        let intervals = document["intervals"].as_array().unwrap();
        let shown: Vec<Value> = intervals.iter().filter(|i| i["sum"]["omitted"] == false).cloned().collect();
        let packets = sum(&shown, "/sum/packets");
        assert_eq!(packets, if way == Direction::From { 2000.0 - lost } else { 2000.0 }, "{way:?}");
    }
}

#[test]
fn what_counts_after_an_omit_is_the_same_in_all_parts() {
    // The first byte took 40 ms to come, so that the receiver noted the end of the omit so much later than the looks have it.
    let (streams, first): (&[f64], &[f64]) = (&[1e6, 2e6], &[0.6e6, 1.2e6]);
    let mut seen = vec![streams; 30];
    seen[0] = first;
    let mut m = measured(Direction::From, 2960, 1000, 88_800_000, vec![80e6, 160e6]);
    let document = iperf3_json(&m, looks(Direction::From, 500, 1000, &seen));
    agree(&document);
    let end = |document: &Value, member: &str| number(document, &format!("/end/{member}"));
    assert_eq!(end(&document, "sum_received/bytes"), 58.8e6);
    assert_eq!(end(&document, "sum_received/bits_per_second"), 240e6);
    assert_eq!(end(&document, "streams/1/receiver/bytes"), 39.2e6);
    let shown = document["intervals"].as_array().unwrap();
    assert_eq!(number(&shown[1], "/sum/end"), 1.04);
    assert_eq!((number(&shown[2], "/sum/start"), number(&shown[2], "/sum/end")), (0.0, 0.46));
    assert_eq!(sum(shown, "/sum/bytes"), 88.8e6);
    // One that can't be, since more is said to have come than was seen.
    m.directions[0].stream_goodput_bps = vec![80e6, 260e6];
    let document = iperf3_json(&m, looks(Direction::From, 500, 1000, &seen));
    agree(&document);
    assert_eq!(end(&document, "sum_received/bytes"), 60e6);
    assert_eq!(end(&document, "sum_received/seconds"), 2.0);
}

#[test]
fn the_interval_is_that_of_the_intervals() {
    let m = measured(Direction::From, 1000, 0, 10_000_000, vec![80e6]);
    for (interval_ms, told, count) in [(1000, 1.0, 1), (200, 0.2, 5), (500, 0.5, 2), (0, 0.0, 1)] {
        let one: &[f64] = &[1e6];
        let document = iperf3_json(&m, looks(Direction::From, interval_ms, 0, &[one; 10]));
        assert_eq!(number(&document, "/start/test_start/interval"), told);
        assert_eq!(document["intervals"].as_array().unwrap().len(), count, "{interval_ms}");
    }
}
