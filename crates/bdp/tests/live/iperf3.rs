//! iperf3's client against `bdp serve`, and `bdp measure` against its server: each mode a row, `mode ... pass`, with what
//! both ends tell held against each other.

use std::process::Command;
use std::thread;

use crate::support::fidelity::{Timing, Watch};
use crate::support::iperf3::{
    Check, Theirs, client, driven, in_guest_with_iperf3, iperf3_is_there, number, release, served,
};
use crate::support::serving::{Serving, serve};
use crate::support::untested::skip;
use crate::support::{Bench, start};
use serde_json::Value;

const MODES: [(&str, &str, Check); 19] = [
    ("TCP", "-t 1", |_, _| {}),
    ("TCP reverse", "-t 1 -R", |d, _| assert!(d.pointer("/end/sum_sent/retransmits").is_some(), "{d:#}")),
    ("TCP 4 streams", "-t 1 -P 4", |d, _| assert_eq!(d["end"]["streams"].as_array().unwrap().len(), 4)),
    ("TCP reverse, 4 streams", "-t 1 -P 4 -R", |d, _| {
        assert_eq!(d["end"]["streams"].as_array().unwrap().len(), 4);
    }),
    ("TCP both ways", "-t 1 --bidir", |d, _| {
        assert!(number(d, "/end/sum_received_bidir_reverse/bytes") > 1e6, "{d:#}");
    }),
    ("TCP both ways, 3 streams", "-t 1 --bidir -P 3", |d, _| {
        assert_eq!(d["end"]["streams"].as_array().unwrap().len(), 6);
    }),
    ("TCP bytes", "-n 20M", |d, _| {
        // Where the path takes parts of a block its client sends one more.
        let bytes = number(d, "/end/sum_received/bytes");
        assert!(bytes == 20_971_520.0 || bytes == 20_971_520.0 + 131_072.0, "{bytes}");
    }),
    ("TCP bytes, reverse", "-n 20M -R", |d, _| assert!(number(d, "/end/sum_received/bytes") >= 20_971_520.0)),
    ("TCP blocks", "-k 100 -l 10000", |d, _| assert_eq!(number(d, "/end/sum_received/bytes"), 1e6)),
    ("TCP omit", "-t 1 -O 1", |d, timing| {
        timing.judge_time(|| assert!((0.8..1.9).contains(&number(d, "/end/sum_received/seconds"))));
    }),
    ("TCP omit, reverse", "-t 1 -O 1 -R", |d, timing| {
        timing.judge_time(|| {
            assert!((0.8..1.9).contains(&number(d, "/end/sum_sent/seconds")), "{}", d["end"]);
        });
    }),
    ("TCP window", "-t 1 -w 64K", |_, _| {}),
    ("TCP segment size", "-t 1 -M 1000 -R", |_, _| {}),
    ("TCP congestion control", "-t 1 -C reno -R", |d, _| {
        assert_eq!(d["end"]["sender_tcp_congestion"], "reno", "{:#}", d["end"]);
    }),
    ("TCP no delay, length, type of service", "-t 1 -N -l 5000 -S 0x20", |_, _| {}),
    ("TCP rate", "-t 1 -b 20M", |d, _| assert!(number(d, "/end/sum_received/bits_per_second") < 60e6)),
    ("TCP rate, reverse", "-t 1 -b 20M -R", |d, _| {
        assert!(number(d, "/end/sum_received/bits_per_second") < 60e6, "{:#}", d["end"]);
    }),
    ("TCP, server's output", "-t 1 --bidir --get-server-output", |d, _| {
        let text = d["server_output_text"].as_str().unwrap();
        assert!(text.starts_with("bdp serve") && text.contains("\nreceived 0.00 to "), "{text}");
        assert!(text.contains("\nsent 0.00 to ") && text.contains(" retransmits"), "{text}");
    }),
    ("TCP over IPv6", "-t 1 -6", |_, _| {}),
];

/// Both ends tell about the same: what is under way at the end only one of them counts.
fn agree(mode: &str, document: &Value, _: &Timing) {
    assert!(document.get("error").is_none(), "{mode}: {}", document["error"]);
    for (sent, received) in
        [("sum_sent", "sum_received"), ("sum_sent_bidir_reverse", "sum_received_bidir_reverse")]
    {
        if document["end"].get(sent).is_none() {
            continue;
        }
        let bytes = |which: &str| number(document, &format!("/end/{which}/bytes"));
        let (sent, received) = (bytes(sent), bytes(received));
        assert!(sent > 0.0 && received > 0.0, "{mode}: {sent} sent, {received} received");
        let under_way = 64e6 + 0.3 * sent.max(received);
        assert!((sent - received).abs() < under_way, "{mode}: {sent} sent, {received} received");
    }
}

#[test]
fn its_client_is_served_in_every_mode() {
    in_guest_with_iperf3(|| {
        served(&MODES, "", agree);
    });
}

/// What 3.22 has beside.
const LATER: [(&str, &str, Check); 3] = [
    ("TCP without copies", "-t 1 -Z --skip-rx-copy", |_, _| {}),
    ("TCP without copies, reverse", "-t 1 -R -Z --skip-rx-copy", |_, _| {}),
    ("TCP over MPTCP's sockets", "-t 1 -m", |_, _| {}),
];

#[test]
fn its_later_client_is_served() {
    in_guest_with_iperf3(|| {
        if !iperf3_is_there() {
            return;
        }
        if release() >= 22 {
            served(&LATER, "", agree);
        } else {
            skip("iperf3 is not of 3.22 or later");
        }
    });
}

#[test]
fn several_clients_are_served_at_once_beside_one_of_bdp() {
    in_guest_with_iperf3(|| {
        if !iperf3_is_there() {
            return;
        }
        let bench = Bench::new();
        let server = serve(&bench, "");
        let port = server.port;
        let watch = Watch::start();
        let clients: Vec<_> = ["-t 2", "-t 2 -R", "-t 2 --bidir -P 2"]
            .map(|o| (o, thread::spawn(move || client(port, o))))
            .into();
        server.assert_unharmed(&bench);
        let documents: Vec<_> = clients.into_iter().map(|(o, client)| (o, client.join().unwrap())).collect();
        let timing = watch.end("clients side by side");
        for (options, document) in documents {
            agree(options, &document, &timing);
        }
    });
}

#[test]
fn what_is_not_granted_is_refused_in_its_own_words() {
    in_guest_with_iperf3(|| {
        if !iperf3_is_there() {
            return;
        }
        let bench = Bench::new();
        let server = serve(&bench, "--max-duration 5s --max-streams 4");
        for (options, word) in [
            // Since 3.20; those before have no word for it.
            (
                "-t 6",
                if release() < 20 { "test initialization failed" } else { "exceeds the server's maximum" },
            ),
            ("-t 1 -P 5", "unable to create a new stream"),
            ("-t 1 -C no_such_cc -R", "CONGESTION"),
        ] {
            let told = client(server.port, options)["error"].to_string();
            assert!(told.contains(word), "{options}: {told}");
            assert!(!told.contains("maximum =") && !told.contains("valid values"), "no other limit: {told}");
        }
        server.assert_unharmed(&bench);
    });
}

#[test]
fn a_client_that_vanishes_frees_its_place() {
    in_guest_with_iperf3(|| {
        if !iperf3_is_there() {
            return;
        }
        let bench = Bench::new();
        let mut server = serve(&bench, "--max-sessions 1");
        for options in ["-t 60", "-t 60 -R", "-t 60 --bidir -P 2"] {
            let ended = ends(&server);
            let mut command = Command::new("iperf3");
            command.args(["-c", "127.0.0.1", "-i", "0.1", "--forceflush", "-p", &server.port.to_string()]);
            command.args(options.split_whitespace());
            let mut child = start(command);
            child.await_intervals(1);
            // It is told that there is no place, and not kept waiting.
            let busy = client(server.port, "-t 1");
            assert!(busy["error"].to_string().contains("busy"), "{busy:#}");
            child.signal("KILL");
            child.wait();
            server.process.wait_until("it ended", |p| p.err().matches("ended after").count() > ended);
            server.assert_unharmed(&bench);
        }
    });
}

fn ends(server: &Serving) -> usize {
    server.process.err().matches("ended after").count()
}

const DRIVEN: [(&str, &str, Check); 15] = [
    ("TCP both in turn", "-t 1", |d, _| {
        assert_eq!(d["directions"].as_array().unwrap().len(), 2);
        assert!(number(d, "/rtt_idle_ns/min") > 0.0 && number(d, "/directions/0/rtt_ns/loaded/p50") > 0.0);
    }),
    ("TCP forward", "-t 1 --forward", |d, _| {
        assert!(!d["directions"][0]["sent"].as_array().unwrap().is_empty(), "our kernel's readings");
        assert!(!d["directions"][0]["findings"].as_array().unwrap().is_empty());
    }),
    ("TCP reverse", "-t 1 -R", |d, _| assert!(d["directions"][0]["retransmits"].is_u64(), "{d:#}")),
    ("TCP both ways", "-t 1 --bidir", |d, _| assert_eq!(d["directions"].as_array().unwrap().len(), 2)),
    ("TCP 4 streams", "-t 1 -P 4", |d, _| {
        assert_eq!(d["directions"][0]["stream_goodput_bps"].as_array().unwrap().len(), 4);
        assert_eq!(d["directions"][1]["stream_goodput_bps"].as_array().unwrap().len(), 4);
    }),
    ("TCP both ways, 2 streams", "-t 1 --bidir -P 2", |_, _| {}),
    ("TCP bytes", "-n 20M --forward", |d, timing| {
        let bytes = number(d, "/directions/0/bytes");
        assert!(bytes <= 20_971_520.0, "{bytes}");
        // Its server leaves unread what lies in its socket when the client is done: little, where it had a processor.
        timing.judge(|| assert!(bytes >= 19e6, "{bytes}"));
    }),
    ("TCP bytes, reverse", "-n 20M -R", |d, _| assert!(number(d, "/directions/0/bytes") >= 20_971_520.0)),
    ("TCP omit", "-t 1 -O 1", |d, timing| {
        for way in [0, 1] {
            let counted = number(d, &format!("/directions/{way}/duration_ns"))
                - number(d, &format!("/directions/{way}/omit_ns"));
            timing.judge_time(|| assert!((0.5e9..2e9).contains(&counted), "{counted}"));
        }
    }),
    ("TCP window, segment size", "-t 1 --sockbuf 64K -M 1000", |_, _| {}),
    ("TCP congestion control, no delay, length", "-t 1 -C reno -N -l 5000", |d, _| {
        assert_eq!(d["directions"][0]["congestion_control"], "reno");
        assert_eq!(d["directions"][1]["congestion_control"], "reno");
    }),
    ("TCP rate", "-t 1 -b 20M", |d, _| {
        for way in ["0", "1"] {
            assert!(number(d, &format!("/directions/{way}/goodput_bps")) < 60e6, "{d:#}");
        }
    }),
    ("TCP, server's output", "-t 1 --get-server-output", |d, _| {
        let printed = d["server_output"].as_array().unwrap();
        assert!(printed.len() == 2 && printed[0].as_str().unwrap().contains("receiver"), "{printed:?}");
        assert!(printed[1].as_str().unwrap().contains("sender"), "{printed:?}");
    }),
    ("TCP by sendfile, on one processor", "-t 1 --forward --zerocopy sendfile --cpu 0", |d, _| {
        assert_eq!(d["directions"][0]["send_method"], "sendfile");
        assert_eq!(d["directions"][0]["sender_threads"], 1);
    }),
    ("TCP over IPv6", "-t 1 --forward -6", |_, _| {}),
];

#[test]
fn its_server_is_driven_in_every_mode() {
    in_guest_with_iperf3(|| {
        driven(&DRIVEN, "", |mode, direction, _| {
            assert!(number(direction, "/goodput_bps") > 1e6, "{mode}: {direction:#}");
        });
    });
}

#[test]
fn what_its_server_prints_is_printed() {
    in_guest_with_iperf3(|| {
        if !iperf3_is_there() {
            return;
        }
        let bench = Bench::new();
        for (options, part) in [("", "\n  [ ID] Interval"), ("-J", "\n    \"end\": {")] {
            let server = Theirs::start_with(options);
            let command = format!("measure --iperf3 127.0.0.1:{} -t 1 -R", server.port);
            let ended = bench.run(&format!("{command} --get-server-output"));
            assert_eq!(ended.code(), 0, "{}", ended.err);
            let (face, printed) = ended.out.split_once("\nthe server's output\n").unwrap();
            assert!(face.contains("bit/s") && format!("\n{printed}").contains(part), "{printed}");
            assert!(!bench.run(&command).out.contains("server's output"), "it was not asked for");
        }
    });
}

#[test]
fn its_server_is_recognised() {
    in_guest_with_iperf3(|| {
        if !iperf3_is_there() {
            return;
        }
        let bench = Bench::new();
        // One that serves a single client is measured on the connection by which it was recognised.
        for options in ["", "-1"] {
            let server = Theirs::start_with(options);
            let ended = bench.run(&format!("measure 127.0.0.1:{} -t 1 --forward --json", server.port));
            assert_eq!(ended.code(), 0, "'{options}': {}", ended.err);
            let document = ended.json();
            assert_eq!(document["request"]["peer"], "iperf3");
            assert!(
                document["caveats"][0]["text"].as_str().unwrap().contains("recognised"),
                "{}",
                document["caveats"]
            );
        }
    });
}

#[test]
fn a_title_as_long_as_its_own_server_takes_is_taken() {
    in_guest_with_iperf3(|| {
        if !iperf3_is_there() {
            return;
        }
        let bench = Bench::new();
        let server = serve(&bench, "");
        let document = client(server.port, &format!("-t 1 -T {}", "x".repeat(6000)));
        assert!(document.get("error").is_none(), "{document:#}");
        assert_eq!(document["title"].as_str().map(str::len), Some(6000));
    });
}
