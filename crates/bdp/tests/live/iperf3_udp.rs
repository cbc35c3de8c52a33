//! Datagrams: iperf3's client against `bdp serve`, and `bdp measure` against its server, each mode a row, `mode ... pass`.

use crate::support::Bench;
use crate::support::fidelity::{Timing, Watch, timed};
use crate::support::inside::alone;
use crate::support::iperf3::{
    Check, Theirs, client, driven, in_guest_with_iperf3, iperf3_is_there, number, release, served,
};
use crate::support::serving::serve;
use crate::support::untested::skip;
use serde_json::Value;

/// Streams of their client's document, in order.
fn streams(document: &Value) -> &Vec<Value> {
    document["end"]["streams"].as_array().unwrap()
}

/// Within a tenth of 5 Mbit/s: what a stall leaves out is made up for within 20 ms, and is left out beyond that.
fn judge_rate(timing: &Timing, bps: f64) {
    timing.judge(|| assert!((3.5e6..5.6e6).contains(&bps), "{bps} bit/s"));
    timing.judge_exactly(|| assert!((4.9e6..5.1e6).contains(&bps), "{bps} bit/s"));
}

// Slow enough for the 208 KiB that iperf3's sockets hold: a stall of 100 ms is 62 kB.
const MODES: [(&str, &str, Check); 10] = [
    ("UDP", "-t 1 -b 5M", |d, timing| {
        judge_rate(timing, number(d, "/end/sum/bits_per_second"));
        timing.judge(|| assert!((0.0..100.0).contains(&number(d, "/end/sum/jitter_ms"))));
    }),
    ("UDP both ways", "-t 1 -b 5M --bidir", |d, _| assert_eq!(streams(d).len(), 2)),
    ("UDP 4 streams", "-t 1 -b 2M -P 4 -l 1000", |d, _| assert_eq!(streams(d).len(), 4)),
    ("UDP both ways, 3 streams", "-t 1 -b 2M -P 3 -l 1000 --bidir", |d, _| assert_eq!(streams(d).len(), 6)),
    ("UDP length", "-t 1 -b 5M -l 500", |d, _| {
        assert_eq!(number(d, "/end/sum/bytes"), 500.0 * number(d, "/end/sum/packets"));
    }),
    ("UDP counters of 64 bits", "-t 1 -b 5M --udp-counters-64bit", |_, _| {}),
    ("UDP bytes", "-n 512K -b 5M -l 1024", |d, timing| {
        let bytes = number(d, "/end/sum/bytes");
        assert!(bytes >= 524_288.0, "{:#}", d["end"]);
        // That many in 3.12, and what it sends in 100 ms more in 3.18.
        timing.judge(|| assert!(bytes < 640_000.0, "{:#}", d["end"]));
    }),
    ("UDP omit", "-t 1 -O 1 -b 5M -l 1000", |d, timing| {
        // Of one second, and not of two.
        timing.judge(|| assert!((0.3e6..0.9e6).contains(&number(d, "/end/sum/bytes")), "{:#}", d["end"]));
    }),
    ("UDP, server's output", "-t 1 -b 5M --get-server-output", |d, _| {
        let text = d["server_output_text"].as_str().unwrap();
        assert!(text.contains("datagrams missing, jitter"), "{text}");
    }),
    ("UDP over IPv6", "-t 1 -b 5M -6", |_, _| {}),
];

const REVERSE: [(&str, &str, Check); 5] = [
    ("UDP reverse", "-t 1 -b 5M -R", |d, timing| judge_rate(timing, number(d, "/end/sum/bits_per_second"))),
    ("UDP reverse, 4 streams", "-t 1 -b 2M -P 4 -l 1000 -R", |d, _| assert_eq!(streams(d).len(), 4)),
    ("UDP shortest length, reverse", "-t 1 -b 100K -l 16 -R", |d, timing| {
        timing.judge(|| assert!(number(d, "/end/sum/packets") > 500.0, "{:#}", d["end"]));
    }),
    ("UDP counters of 64 bits, reverse", "-t 1 -b 5M --udp-counters-64bit -R", |_, _| {}),
    ("UDP bytes, reverse", "-n 512K -b 5M -l 1024 -R", |d, _| {
        assert!(number(d, "/end/sum_received/bytes") >= 524_288.0, "{:#}", d["end"]);
    }),
];

/// Both ends tell the same of each stream: hardly anything is lost on loopback at such rates.
fn agree(mode: &str, document: &Value, timing: &Timing) {
    assert!(document.get("error").is_none(), "{mode}: {}", document["error"]);
    for stream in streams(document) {
        let (packets, lost) = (number(stream, "/udp/packets"), number(stream, "/udp/lost_packets"));
        assert!(packets > 0.0, "{mode}: {stream:#}");
        timing.judge(|| {
            assert!(packets > 10.0 && lost <= 0.2 * packets, "{mode}: {lost} of {packets}: {stream:#}");
        });
    }
}

/// Not in a guest: until the server has answered its client asks what the time is as often as it can, and there each reading
/// is a step of the clock.
#[test]
fn its_client_is_served_in_every_mode() {
    alone(|| {
        served(&MODES, "-u", agree);
    });
}

#[test]
fn its_client_is_sent_datagrams_in_every_mode() {
    in_guest_with_iperf3(|| served(&REVERSE, "-u", agree));
}

#[test]
fn several_clients_of_one_address_get_their_own_streams() {
    alone(|| {
        if !iperf3_is_there() {
            return;
        }
        let bench = Bench::new();
        let server = serve(&bench, "");
        let port = server.port;
        let options = [
            "-t 1 -b 1M -l 400 -P 3",
            "-t 1 -b 2M -l 500 -R",
            "-t 1 -b 3M -l 600 --bidir",
            "-t 1 -b 4M -l 700",
        ];
        let watch = Watch::start();
        let clients = options.map(|o| (o, std::thread::spawn(move || client(port, &format!("-u {o}")))));
        let documents = clients.map(|(o, client)| (o, client.join().unwrap()));
        let timing = watch.end("clients side by side");
        for (options, document) in documents {
            agree(options, &document, &timing);
            let length = number(&document, "/start/test_start/blksize");
            for stream in streams(&document) {
                // A datagram of another test would be of another length.
                let bytes = number(stream, "/udp/bytes");
                assert_eq!(bytes % length, 0.0, "{options}: {stream:#}");
            }
        }
    });
}

#[test]
fn the_rate_that_is_granted_is_kept() {
    in_guest_with_iperf3(|| {
        if !iperf3_is_there() {
            return;
        }
        let bench = Bench::new();
        let server = serve(&bench, "--max-rate 10M");
        let (document, timing) =
            timed("the rate that is granted", || client(server.port, "-u -t 1 -b 0 -P 2 -R"));
        let bytes: f64 = streams(&document).iter().map(|stream| number(stream, "/udp/bytes")).sum();
        assert!((0.0..1.5e6).contains(&bytes), "{bytes}: {:#}", document["end"]);
        timing.judge(|| assert!(bytes > 0.5e6, "{bytes}: {:#}", document["end"]));
        for options in ["-b 11M", "-b 6M -P 2 -R", "-b 0", "-b 0 --bidir"] {
            let told = client(server.port, &format!("-u -t 1 {options}"))["error"].to_string();
            assert!(told.contains("bandwidth"), "{options}: {told}");
        }
        server.assert_unharmed(&bench);
    });
}

/// Since 3.21 a client may ask for segmentation offloads at both ends, and its server keeps those of the client before.
const OFFLOADED: [(&str, &str, Check); 4] = [
    ("UDP segmented by the kernel", "-t 1 -b 5M --gsro", |d, timing| {
        judge_rate(timing, number(d, "/end/sum/bits_per_second"));
    }),
    ("UDP segmented by the kernel, reverse", "-t 1 -b 5M -l 1000 --gsro -R", |d, timing| {
        judge_rate(timing, number(d, "/end/sum_received/bits_per_second"));
    }),
    ("UDP segmented by the kernel, 3 streams both ways", "-t 1 -b 2M -l 1000 --gsro --bidir -P 3", |d, _| {
        assert_eq!(streams(d).len(), 6);
    }),
    ("UDP, after those", "-t 1 -b 5M -l 200 -R", |d, timing| {
        judge_rate(timing, number(d, "/end/sum/bits_per_second"))
    }),
];

/// Whether the release has the offloads; says so where it has not.
fn has_offloads() -> bool {
    let has = iperf3_is_there() && release() >= 21;
    if !has {
        skip("iperf3 is not of 3.21 or later");
    }
    has
}

#[test]
fn its_client_is_served_with_offloads() {
    in_guest_with_iperf3(|| {
        if has_offloads() {
            served(&OFFLOADED, "-u", agree);
        }
    });
}

#[test]
fn its_server_forgets_the_offloads_of_the_client_before() {
    in_guest_with_iperf3(|| {
        if !has_offloads() {
            return;
        }
        let bench = Bench::new();
        let theirs = Theirs::start();
        let before = client(theirs.port, "-u -b 5M -t 1 -l 1400 --gsro");
        assert_eq!(before["error"], Value::Null);
        let line = format!("measure --iperf3 127.0.0.1:{} -u -b 5M -t 1 -l 200 -R --json", theirs.port);
        let (ended, timing) = timed("UDP after a client with offloads", || bench.run(&line));
        assert_eq!(ended.code(), 0, "{}", ended.err);
        judge_rate(&timing, number(&ended.json(), "/directions/0/goodput_bps"));
        assert_eq!(number(&ended.json(), "/directions/0/udp/datagram_bytes"), 200.0);
    });
}

const DRIVEN: [(&str, &str, Check); 9] = [
    ("UDP both in turn", "-t 1 -b 5M", |d, _| assert_eq!(d["directions"].as_array().unwrap().len(), 2)),
    ("UDP forward", "-t 1 -b 5M --forward", |d, _| {
        assert!(number(d, "/directions/0/udp/send_gap_ns/p50") > 0.0);
    }),
    ("UDP reverse", "-t 1 -b 5M -R", |d, timing| {
        judge_rate(timing, number(d, "/directions/0/goodput_bps"));
        assert!(d["directions"][0]["udp"]["delay_variation_ns"].is_object());
    }),
    ("UDP both ways", "-t 1 -b 5M --bidir", |d, _| assert_eq!(d["directions"].as_array().unwrap().len(), 2)),
    ("UDP 4 streams", "-t 1 -b 2M -P 4 -l 1000", |d, timing| {
        for way in [0, 1] {
            let streams = d["directions"][way]["stream_goodput_bps"].as_array().unwrap();
            assert_eq!(streams.len(), 4, "{streams:?}");
            timing.judge(|| assert!(streams.iter().all(|bps| bps.as_f64().unwrap() > 1e6), "{streams:?}"));
        }
    }),
    ("UDP both ways, 3 streams", "-t 1 -b 2M -P 3 -l 1000 --bidir", |_, _| {}),
    ("UDP length", "-t 1 -b 5M -l 500", |d, _| {
        assert_eq!(number(d, "/directions/0/udp/datagram_bytes"), 500.0);
        assert_eq!(number(d, "/directions/1/udp/datagram_bytes"), 500.0);
    }),
    ("UDP bytes", "-n 512K -b 5M -l 1024", |d, _| {
        assert_eq!(number(d, "/directions/0/udp/sent"), 512.0);
        assert!(number(d, "/directions/1/bytes") >= 524_288.0, "{d:#}");
        assert_eq!(
            (&d["directions"][0]["ended"], &d["directions"][1]["ended"]),
            (&"bytes".into(), &"bytes".into())
        );
    }),
    ("UDP omit, over IPv6", "-t 1 -O 1 -b 5M -l 1000 -6", |d, timing| {
        for way in ["0", "1"] {
            judge_rate(timing, number(d, &format!("/directions/{way}/goodput_bps")));
        }
    }),
];

#[test]
fn its_server_is_driven_in_every_mode() {
    in_guest_with_iperf3(|| {
        driven(&DRIVEN, "-u", |mode, direction, timing| {
            let count = |which: &str| number(direction, &format!("/udp/{which}"));
            let (sent, received, lost) = (count("sent"), count("received"), count("lost"));
            timing.judge(|| assert!(sent > 50.0 && lost <= 0.2 * sent, "{mode}: {direction:#}"));
            timing.judge_exactly(|| assert_eq!(lost, 0.0, "{mode}: {direction:#}"));
            timing.judge_exactly(|| assert_eq!(lost, 0.0, "{mode}: {direction:#}"));
            assert_eq!(received + lost, sent, "{mode}: {direction:#}");
        });
    });
}

#[test]
fn what_is_too_long_for_the_path_goes_in_fragments_from_the_server_whatever_its_client_forbids_itself() {
    in_guest_with_iperf3(|| {
        if !iperf3_is_there() {
            return;
        }
        let bench = Bench::new();
        let script = "serve --listen 5999 --open
             iperf3 -c 10.77.0.2 -p 5999 -u -b 1M -t 1 -l 8k -R --dont-fragment -J >client.json || true";
        let Some(_) = crate::support::cable::lay(&bench, script) else { return };
        let document: Value =
            serde_json::from_str(&std::fs::read_to_string(bench.path("client.json")).unwrap()).unwrap();
        assert_eq!(document["error"], Value::Null, "{document:#}");
        assert!(number(&document, "/end/sum/packets") >= 14.0, "{document:#}");
        assert_eq!(number(&document, "/end/sum/lost_packets"), 0.0, "{document:#}");
    });
}

#[test]
fn datagrams_of_a_header_alone_are_sent_and_received() {
    in_guest_with_iperf3(|| {
        if !iperf3_is_there() {
            return;
        }
        let bench = Bench::new();
        let mut theirs = Theirs::start();
        let ours = serve(&bench, "");
        // 12 bytes hold a counter of 32 bits, 16 one of 64. Newer servers insist on the latter.
        let least = if release() < 20 { 12 } else { 16 };
        for length in [12, 16] {
            for port in [theirs.port, ours.port] {
                if port == theirs.port && length < least {
                    let line = format!("measure --iperf3 127.0.0.1:{port} -u -b 500K -l {length} -t 1");
                    let refused = bench.run(&line);
                    assert!(refused.refusal(3).contains("at least 16 bytes"), "{}", refused.err);
                    continue;
                }
                let line = format!("measure --iperf3 127.0.0.1:{port} -u -b 500K -l {length} -t 1 --json");
                let what = format!("-l {length}");
                let (ended, timing) = timed(&what, || {
                    if port == theirs.port { theirs.run(&bench, &line) } else { bench.run(&line) }
                });
                assert_eq!(ended.code(), 0, "{line}: {}", ended.err);
                for direction in ended.json()["directions"].as_array().unwrap() {
                    let udp = &direction["udp"];
                    assert_eq!(udp["datagram_bytes"], length, "{line}: {direction:#}");
                    timing.judge(|| assert!(udp["received"].as_u64() > Some(1000), "{line}: {direction:#}"));
                    let told = (direction["direction"] != "to").then_some(0);
                    assert_eq!(udp["duplicated"].as_u64(), told, "{line}: {direction:#}");
                }
            }
        }
        // What no header has room in is refused, and what bdp's own needs is said.
        let none = bench.run(&format!("measure --iperf3 127.0.0.1:{} -u -b 1M -l 11", theirs.port));
        assert!(none.refusal(2).contains("12 bytes hold"), "{}", none.err);
        let own = bench.run(&format!("measure 127.0.0.1:{} -u -b 1M -l 31", ours.port));
        assert!(own.refusal(2).contains("32 bytes hold"), "{}", own.err);
    });
}
