//! `bdp serve` with iperf2's clients, and `bdp measure` with its server: the real program of Debian, in every mode.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::fidelity::{Timing, timed};
use crate::support::inside::{in_guest, is_inside};
use crate::support::iperf2::{iperf, iperf_is_of_2_2, serve_by_iperf};
use crate::support::machine::is_installed;
use crate::support::peer::count_crash;
use crate::support::serving::free_port;
use crate::support::untested::not_judged;
use crate::support::{Bench, Ended, Running, start};
use serde_json::Value;

/// A server that answers iperf2, and its port for that.
struct Serving {
    process: Running,
    port: u16,
}

/// `None`, with the reason printed, where this machine has no iperf2.
fn serve(bench: &Bench, options: &str) -> Option<Serving> {
    if !is_installed("iperf") {
        return None;
    }
    let (port, own) = (free_port(), free_port());
    let mut process = start(bench.bdp(&format!("serve --listen {own} --iperf2-port {port} {options}")));
    process.wait_until("it listens", |p| p.err().contains("for iperf2's clients"));
    Some(Serving { process, port })
}

/// Whether a client had to be ended that takes datagrams over several sockets: the one of 2.2.1 hangs at times after it has printed its
/// results, with its own server too.
fn hung_at_its_end(ended: &Ended, options: &str) -> bool {
    // By `timeout`, or with it.
    matches!(ended.status.code(), Some(124 | 137) | None)
        && !is_inside()
        && options.contains("-u")
        && options.contains("-R -P")
}

impl Serving {
    fn client(&self, options: &str) -> Ended {
        let host = if options.contains("-V") { "::1" } else { "127.0.0.1" };
        iperf(&format!("-c {host} -p {} -f m {options}", self.port))
    }

    /// Waits for the end of all sessions; a stream's end at the server may come after that at the client.
    fn await_ends(&mut self) {
        self.process.wait_until("its sessions ended", |p| {
            let told = p.err();
            told.contains("ended after")
                && told.matches("ended after").count() >= told.matches(" started, iperf2").count()
        });
    }
}

/// Rates that iperf2 printed for streams and sums, Mbit/s, in order.
fn rates(ended: &Ended) -> Vec<f64> {
    let words: Vec<&str> = ended.out.split_whitespace().collect();
    words.windows(2).filter(|pair| pair[1] == "Mbits/sec").filter_map(|pair| pair[0].parse().ok()).collect()
}

/// What one row of the table of modes has to show, in what its client says.
type Check = fn(&Ended, &Timing);

/// Each rate that was printed is one at which something came.
fn moved(ended: &Ended, _: &Timing) {
    let rates = rates(ended);
    assert!(!rates.is_empty() && rates.iter().all(|&rate| rate > 1.0), "{rates:?}\n{}", ended.out);
}

/// The server's report came, and tells of no loss.
fn reported(ended: &Ended, timing: &Timing) {
    assert!(!ended.err.contains("did not receive ack"), "{}", ended.err);
    let report =
        ended.out.split("Server Report").nth(1).unwrap_or_else(|| panic!("{}{}", ended.out, ended.err));
    // Lost and sent as "0/ 42 (0%)".
    timing.judge(|| assert!(report.contains(" 0/"), "{}", ended.out));
}

/// One of the rates is the one that was asked for, 8 Mbit/s.
fn paced(ended: &Ended, timing: &Timing) {
    let rates = rates(ended);
    assert!(!rates.is_empty(), "{}{}", ended.out, ended.err);
    timing.judge(|| {
        let is_kept = rates.iter().any(|rate| (6.0..10.0).contains(rate));
        assert!(is_kept, "{rates:?}\n{}{}", ended.out, ended.err);
    });
}

const CLIENTS: [(&str, &str, Check); 22] = [
    ("TCP", "-t 0.5", moved),
    ("TCP -P", "-t 0.5 -P 4", |e, _| assert_eq!(rates(e).len(), 5, "{}", e.out)),
    ("TCP -n", "-n 4M", moved),
    ("TCP -R", "-t 0.5 -R", moved),
    ("TCP -R -P", "-t 0.5 -R -P 2", |e, _| assert_eq!(rates(e).len(), 3, "{}", e.out)),
    ("TCP -R -n", "-n 4M -R", moved),
    ("TCP --full-duplex", "-t 0.5 --full-duplex", |e, _| assert_eq!(rates(e).len(), 3, "{}", e.out)),
    ("TCP -e", "-t 0.5 -e", moved),
    ("TCP -w -l -N -M", "-t 0.5 -w 64K -l 8K -N -M 1000", moved),
    ("TCP -b", "-t 0.5 -b 20M", moved),
    ("TCP -S", "-t 0.5 -S 0x2e", moved),
    ("TCP --trip-times", "-t 0.5 --trip-times", moved),
    ("TCP -V", "-V -t 0.5", moved),
    ("UDP", "-u -t 0.5 -b 10M", reported),
    ("UDP -P -l", "-u -t 0.5 -b 5M -l 200 -P 2", reported),
    ("UDP -l 64", "-u -t 0.5 -b 2M -l 64", reported),
    ("UDP -n", "-u -b 10M -n 500K", reported),
    ("UDP -e", "-u -t 0.5 -b 10M -e", reported),
    ("UDP -V", "-V -u -t 0.5 -b 5M", reported),
    ("UDP -R", "-u -t 1 -b 8M -R", paced),
    ("UDP -R -P", "-u -t 1 -b 8M -R -P 2", paced),
    ("UDP --full-duplex", "-u -t 1 -b 8M --full-duplex", paced),
];

#[test]
fn its_client_is_served_in_every_mode() {
    in_guest(|| {
        let bench = Bench::new();
        let Some(mut server) = serve(&bench, "") else { return };
        for (mode, options, check) in CLIENTS {
            let (ended, timing) = timed(mode, || server.client(options));
            let hung = hung_at_its_end(&ended, options);
            assert!(hung || ended.code() == 0, "{mode}: {}", ended.err);
            check(&ended, &timing);
            server.await_ends();
            let note = if hung { ", and its client hung after its results" } else { "" };
            println!("{mode} ... pass{note}");
        }
        let told = server.process.err();
        assert!(told.contains("127.0.0.1:") && told.contains("started, iperf2"), "{told}");
        assert!(told.contains("4 flows") && !told.contains("turned away"), "{told}");
    });
}

#[test]
fn a_rate_that_a_tcp_client_asks_for_in_reverse_is_kept() {
    in_guest(|| {
        let bench = Bench::new();
        let Some(server) = serve(&bench, "") else { return };
        let (ended, timing) = timed("TCP -R -b", || server.client("-t 1.5 -R -b 20M"));
        let rates = rates(&ended);
        // The kernel's first burst is not paced.
        assert!((0.0..40.0).contains(&rates[0]), "{rates:?}");
        timing.judge(|| assert!(rates[0] >= 10.0, "{rates:?}"));
    });
}

#[test]
fn tcp_clients_of_both_ways_get_their_connection_back() {
    in_guest(|| {
        let bench = Bench::new();
        let Some(mut server) = serve(&bench, "") else { return };
        for options in ["-d", "-r"] {
            let what = format!("TCP {options}");
            let line = format!("-t 0.5 {options} -L {}", free_port());
            let (ended, timing) = timed(&what, || server.client(&line));
            assert!(rates(&ended).len() >= 2, "{options}: {}", ended.out);
            moved(&ended, &timing);
            server.await_ends();
        }
    });
}

#[test]
fn a_connection_without_a_header_is_served() {
    in_guest(|| {
        use std::io::Write;
        let bench = Bench::new();
        let Some(mut server) = serve(&bench, "") else { return };
        let mut plain = std::net::TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        plain.write_all(&[b'0'; 100_000]).unwrap();
        drop(plain);
        server.await_ends();
    });
}

#[test]
fn those_who_may_not_come_in_are_turned_away_and_the_next_is_served() {
    in_guest(|| {
        let bench = Bench::new();
        let Some(mut server) = serve(&bench, "--exclusive --deny 127.0.0.3") else { return };
        let denied = iperf(&format!("-c 127.0.0.1 -B 127.0.0.3 -p {} -t 0.3", server.port));
        server.process.wait_until("it was told", |p| p.err().contains("--deny 127.0.0.3/32"));
        drop(denied);
        let mut command = Command::new("timeout");
        command.args(["30", "iperf", "-c", "127.0.0.1", "-t", "20", "-p", &server.port.to_string()]);
        let first = start(command);
        server.process.wait_until("the first began", |p| p.err().contains(" started, "));
        drop(iperf(&format!("-c 127.0.0.1 -B 127.0.0.2 -p {} -t 0.3", server.port)));
        server.process.wait_until("the second was turned away", |p| p.err().contains("busy with 1 session"));
        first.signal_group("KILL");
        server.await_ends();
        assert!(rates(&server.client("-t 0.3"))[0] > 1.0);
    });
}

#[test]
fn a_silent_client_holds_up_nobody_and_is_dropped() {
    in_guest(|| {
        let bench = Bench::new();
        let Some(mut server) = serve(&bench, "") else { return };
        let silent: Vec<_> =
            (0..300).map(|_| std::net::TcpStream::connect(("127.0.0.1", server.port)).unwrap()).collect();
        let since = Instant::now();
        let (ended, timing) = timed("the next client", || server.client("-t 0.3"));
        assert!(rates(&ended)[0] > 1.0);
        timing.judge_time(|| assert!(since.elapsed() < Duration::from_secs(4), "{:?}", since.elapsed()));
        server.process.wait_until("they were dropped", |p| p.err().contains("sent nothing"));
        drop(silent);
        thread::sleep(Duration::from_millis(100));
        assert!(rates(&server.client("-t 0.3 -R"))[0] > 1.0);
    });
}

const SERVERS: [(&str, &str, &[&str]); 20] = [
    ("TCP", "--forward -t 0.6", &["to"]),
    ("TCP -R", "-R -t 0.6", &["from"]),
    ("TCP each way in turn", "-t 0.6", &["to", "from"]),
    ("TCP --full-duplex", "--bidir -t 0.6", &["to", "from"]),
    ("TCP -P", "--forward -P 3 -t 0.6", &["to"]),
    ("TCP -R -P", "-R -P 3 -t 0.6", &["from"]),
    ("TCP -n", "--forward -n 4M", &["to"]),
    ("TCP -n -P", "--forward -n 4M -P 2", &["to"]),
    ("TCP -w -l -N -M", "--forward -t 0.6 -O 0.2 --sockbuf 64K -l 8K -N -M 1000", &["to"]),
    ("TCP -b", "-b 40M -t 1", &["to", "from"]),
    ("TCP -V", "--forward -t 0.4 -6", &["to"]),
    ("UDP", "-u -b 8M --forward -t 0.6", &["to"]),
    ("UDP -R", "-u -b 8M -R -t 0.6", &["from"]),
    ("UDP each way in turn", "-u -b 8M -t 0.6", &["to", "from"]),
    ("UDP --full-duplex", "-u -b 8M --bidir -t 0.6", &["to", "from"]),
    ("UDP -P -l", "-u -b 8M --forward -t 0.6 -P 3 -l 300", &["to"]),
    ("UDP -R -P", "-u -b 8M -R -t 0.6 -P 3", &["from"]),
    ("UDP -l 64", "-u -b 2M --forward -t 0.6 -l 64", &["to"]),
    ("UDP -n", "-u -b 20M --forward -n 500K", &["to"]),
    ("UDP -V", "-u -b 8M --forward -t 0.6 -6", &["to"]),
];

#[test]
fn its_server_is_driven_in_every_mode() {
    in_guest(|| {
        if !is_installed("iperf") {
            return;
        }
        let bench = Bench::new();
        for (mode, options, ways) in SERVERS {
            drive(&bench, mode, options, ways);
            println!("{mode} ... pass");
        }
    });
}

/// Our client, and a server of theirs of its own.
fn drive(bench: &Bench, mode: &str, options: &str, ways: &[&str]) {
    let (datagrams, v6) = (options.contains("-u"), options.contains("-6"));
    let of_server = format!("{} {}", if datagrams { "-u" } else { "" }, if v6 { "-V" } else { "" });
    // iperf's server ends by itself at times when a client connects right after a test, or lets it in and sends nothing: then
    // another is started, twice at most; in a guest it does not.
    let mut failures = 0;
    let (ended, timing) = loop {
        let (mut server, port) = serve_by_iperf(&of_server).unwrap();
        let host = if v6 { "[::1]" } else { "127.0.0.1" };
        let line = format!("measure --iperf2 {host}:{port} -i 100ms {options} --json");
        let (ended, timing) = timed(mode, || bench.run(&line));
        let has_failed = server.has_ended() || ended.err.contains("no data came within");
        if ended.code() != 3 || !has_failed || failures == 2 || is_inside() {
            break (ended, timing);
        }
        failures += 1;
        count_crash("iperf");
    };
    assert_eq!(ended.code(), 0, "{mode}: {}", ended.err);
    let measured = ended.json();
    assert_eq!(measured["request"]["peer"], "iperf2");
    let directions = measured["directions"].as_array().unwrap();
    let found: Vec<&str> = directions.iter().map(|d| d["direction"].as_str().unwrap()).collect();
    assert_eq!(found, ways, "{mode}");
    for direction in directions {
        if datagrams {
            judge_datagrams(mode, options, direction, &timing);
            continue;
        }
        let goodput = direction["goodput_bps"].as_f64().unwrap();
        assert!(goodput > 1e6, "{mode}: {direction}");
        // A first burst is not paced.
        if options.contains("-b 40M") {
            timing.judge(|| assert!((20e6..80e6).contains(&goodput), "{mode}: {goodput}"));
        }
        if options.contains("-n 4M") {
            let bytes = direction["bytes"].as_u64().unwrap();
            // Acknowledged ones: the last may come behind the last reading.
            assert!((1..=4 << 20).contains(&bytes), "{bytes}");
            timing.judge(|| assert!(bytes >= 3 << 20, "{bytes}"));
        }
    }
}

/// What is told of datagrams fits together and what was asked for.
fn judge_datagrams(mode: &str, options: &str, direction: &Value, timing: &Timing) {
    let udp = &direction["udp"];
    let count = |name: &str| udp[name].as_u64().unwrap_or_else(|| panic!("{mode}: no {name} in {udp}"));
    timing.judge(|| assert_eq!(count("lost"), 0, "{mode}: {udp}"));
    // Its server does not tell copies from what came out of order.
    let told = (direction["direction"] != "to").then_some(0);
    assert_eq!(udp["duplicated"].as_u64(), told, "{mode}: {udp}");
    assert_eq!(count("sent"), count("received") + count("lost"), "{mode}: {udp}");
    assert!(udp["jitter_ns"].is_u64(), "{mode}: {udp}");
    let streams = if options.contains("-P 3") { 3.0 } else { 1.0 };
    let length = if options.contains("-l 300") {
        300
    } else if options.contains("-l 64") {
        64
    } else {
        1470
    };
    if options.contains("-l") {
        assert_eq!(count("datagram_bytes"), length, "{mode}: {udp}");
    }
    let goodput = direction["goodput_bps"].as_f64().unwrap();
    let asked = udp["asked_bps"].as_f64().unwrap();
    let wanted = if options.contains("-b 2M") {
        2e6
    } else if options.contains("-b 20M") {
        20e6
    } else {
        8e6
    };
    assert_eq!(asked, wanted * streams, "{mode}");
    // A stalled machine leaves datagrams out, and tells so.
    let left_out = count("left_out") as f64 * count("datagram_bytes") as f64 * 8.0 / 0.6;
    let bits = count("received") as f64 * count("datagram_bytes") as f64 * 8.0;
    // The server of 2.2 has no socket for others for a second after it has taken a stream in: all of each comes, one a second
    // after the other, as to its own client.
    if streams > 1.0 && iperf_is_of_2_2() && goodput < 0.7 * asked && bits >= (0.7 * asked - left_out) * 0.6 {
        return not_judged(mode, "its server took the streams in one after the other");
    }
    timing.judge(|| {
        let kept = 0.7 * asked - left_out..1.4 * asked;
        assert!(kept.contains(&goodput), "{mode}: {goodput} of {asked}: {udp}");
    });
}

#[test]
fn what_is_no_server_of_iperf2_is_told() {
    in_guest(|| {
        let bench = Bench::new();
        let own = crate::support::serving::serve(&bench, "");
        let ended = bench.run(&format!("measure --iperf2 127.0.0.1:{} --forward -t 0.4", own.port));
        assert_eq!(ended.code(), 3, "{}", ended.err);
        for options in ["--forward", "-u -b 1M --forward", "-u -b 1M -R"] {
            let ended = bench.run(&format!("measure --iperf2 127.0.0.1:{} -t 0.4 {options}", free_port()));
            assert!(ended.refusal(3).contains("refused"), "{options}: {}", ended.err);
        }
        // One that is there and sends nothing: a server of bdp's may have to be told to.
        let mute = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = mute.local_addr().unwrap().port();
        let ended = bench.run(&format!("measure --iperf2 127.0.0.1:{port} -u -b 1M -R -t 0.4"));
        let told = ended.refusal(3);
        assert!(told.contains("firewall") && told.contains("--iperf2-udp-reverse"), "{told}");
        for (options, word) in [("-t 1 -O 0.2 --forward", "-O"), ("-t 1 -R -l 4000", "-l")] {
            let ended = bench.run(&format!("measure --iperf2 127.0.0.1:{} -u -b 1M {options}", free_port()));
            assert!(ended.refusal(2).contains(word), "{options}: {}", ended.err);
        }
    });
}

#[test]
fn bdp_measures_datagrams_to_bdp_by_iperf2s_protocol() {
    in_guest(|| {
        let bench = Bench::new();
        let (port, own) = (free_port(), free_port());
        let mut server = start(bench.bdp(&format!("serve --listen {own} --iperf2-port {port}")));
        server.wait_until("it listens", |p| p.err().contains("for iperf2's clients"));
        for (options, ways) in [
            ("--forward -t 0.6 -P 2", 1),
            ("-R -t 0.6 -P 2", 1),
            ("--bidir -t 0.6", 2),
            ("--forward -t 0.6 -l 40", 1),
        ] {
            let line = format!("measure --iperf2 127.0.0.1:{port} -u -b 4M {options} --json");
            let (ended, timing) = timed(options, || bench.run(&line));
            assert_eq!(ended.code(), 0, "{options}: {}", ended.err);
            let measured = ended.json();
            let directions = measured["directions"].as_array().unwrap();
            assert_eq!(directions.len(), ways, "{options}");
            for direction in directions {
                let udp = &direction["udp"];
                assert!(udp["sent"].as_u64().unwrap() > 0, "{options}: {udp}");
                timing.judge(|| {
                    assert!(udp["sent"].as_u64().unwrap() > 100 && udp["lost"] == 0, "{options}: {udp}");
                });
            }
        }
    });
}
