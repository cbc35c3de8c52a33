//! `bdp serve` with iperf2's clients, and `bdp measure` with its server: the real program of Debian, in every mode.

mod support;

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use support::machine::is_installed;
use support::serving::free_port;
use support::{Bench, Ended, Running, start};

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

/// iperf2 with these words as arguments; it is ended where it does not end by itself.
fn iperf(line: &str) -> Ended {
    let mut command = Command::new("timeout");
    command.args(["20", "iperf"]).args(line.split_whitespace());
    start(command).wait()
}

impl Serving {
    fn client(&self, options: &str) -> Ended {
        iperf(&format!("-c 127.0.0.1 -p {} -f m {options}", self.port))
    }

    /// Waits for the end of so many sessions; a stream's end at the server may come after that at the client.
    fn await_ends(&mut self, count: usize) {
        self.process.wait_until("its sessions ended", |p| p.err().matches("ended after").count() >= count);
    }
}

/// Rates that iperf2 printed for streams and sums, Mbit/s, in order.
fn rates(ended: &Ended) -> Vec<f64> {
    let words: Vec<&str> = ended.out.split_whitespace().collect();
    words.windows(2).filter(|pair| pair[1] == "Mbits/sec").filter_map(|pair| pair[0].parse().ok()).collect()
}

#[test]
fn tcp_clients_are_served_in_every_mode() {
    let bench = Bench::new();
    let Some(mut server) = serve(&bench, "") else { return };
    for (served, (options, results)) in [
        ("-t 0.5", 1),
        ("-t 0.5 -P 4", 5),
        ("-n 4M", 1),
        ("-t 0.5 -R", 1),
        ("-t 0.5 -R -P 2", 3),
        ("-n 4M -R", 1),
        ("-t 0.5 --full-duplex", 3),
        ("-t 0.5 -e", 1),
        ("-t 0.5 -w 64K -l 8K -N -M 1000", 1),
        ("-t 0.5 -b 20M", 1),
        ("-t 0.5 -S 0x2e", 1),
        ("-t 0.5 --trip-times", 1),
    ]
    .into_iter()
    .enumerate()
    {
        let ended = server.client(options);
        let rates = rates(&ended);
        assert!(
            rates.len() >= results && rates.iter().all(|&r| r > 1.0),
            "{options}: {rates:?}\n{}",
            ended.out
        );
        server.await_ends(served + 1);
    }
    let told = server.process.err();
    assert!(told.contains("127.0.0.1:") && told.contains("began, iperf2"), "{told}");
    assert!(told.contains("4 flows") && !told.contains("turned away"), "{told}");
}

#[test]
fn a_rate_that_a_tcp_client_asks_for_in_reverse_is_kept() {
    let bench = Bench::new();
    let Some(server) = serve(&bench, "") else { return };
    let rates = rates(&server.client("-t 1.5 -R -b 20M"));
    // The kernel's first burst is not paced.
    assert!((10.0..40.0).contains(&rates[0]), "{rates:?}");
}

#[test]
fn tcp_clients_of_both_ways_get_their_connection_back() {
    let bench = Bench::new();
    let Some(mut server) = serve(&bench, "") else { return };
    for (served, options) in ["-d", "-r"].into_iter().enumerate() {
        let ended = server.client(&format!("-t 0.5 {options} -L {}", free_port()));
        let rates = rates(&ended);
        assert!(rates.len() >= 2 && rates.iter().all(|&r| r > 1.0), "{options}: {}", ended.out);
        server.await_ends(served + 1);
    }
}

#[test]
fn udp_clients_get_their_report_with_nothing_lost_that_was_not() {
    let bench = Bench::new();
    let Some(mut server) = serve(&bench, "") else { return };
    for (served, options) in
        ["-b 10M", "-b 5M -l 200 -P 2", "-b 2M -l 64", "-b 10M -n 500K", "-b 10M -e"].into_iter().enumerate()
    {
        let ended = server.client(&format!("-u -t 0.5 {options}"));
        assert_eq!(ended.code(), 0, "{}", ended.err);
        assert!(ended.out.contains("Server Report"), "{options}: {}{}", ended.out, ended.err);
        assert!(!ended.err.contains("did not receive ack"), "{options}: {}", ended.err);
        // Lost and sent as "0/ 42 (0%)".
        let report = ended.out.split("Server Report").nth(1).unwrap();
        assert!(report.contains(" 0/"), "{options}: {}", ended.out);
        server.await_ends(served + 1);
    }
}

#[test]
fn udp_clients_of_this_machine_are_sent_to_at_their_rate() {
    let bench = Bench::new();
    let Some(mut server) = serve(&bench, "") else { return };
    for (served, options) in ["-R", "--full-duplex"].into_iter().enumerate() {
        let ended = server.client(&format!("-u -t 1 -b 8M {options}"));
        let rates = rates(&ended);
        assert!(
            rates.iter().any(|r| (6.0..10.0).contains(r)),
            "{options}: {rates:?}\n{}{}",
            ended.out,
            ended.err
        );
        server.await_ends(served + 1);
    }
}

#[test]
fn ipv6_and_connections_without_a_header_are_served() {
    use std::io::Write;
    let bench = Bench::new();
    let Some(mut server) = serve(&bench, "") else { return };
    let ended = iperf(&format!("-V -c ::1 -p {} -f m -t 0.5", server.port));
    assert!(rates(&ended)[0] > 1.0, "{}", ended.out);
    let ended = iperf(&format!("-V -u -c ::1 -p {} -f m -t 0.5 -b 5M", server.port));
    assert!(ended.out.contains("Server Report"), "{}", ended.out);
    server.await_ends(2);
    let mut plain = std::net::TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    plain.write_all(&[b'0'; 100_000]).unwrap();
    drop(plain);
    server.await_ends(3);
}

#[test]
fn those_who_may_not_come_in_are_turned_away_and_the_next_is_served() {
    let bench = Bench::new();
    let Some(mut server) = serve(&bench, "--exclusive --deny 127.0.0.3") else { return };
    let denied = iperf(&format!("-c 127.0.0.1 -B 127.0.0.3 -p {} -t 0.3", server.port));
    server.process.wait_until("it was told", |p| p.err().contains("--deny 127.0.0.3/32"));
    drop(denied);
    let mut command = Command::new("timeout");
    command.args(["30", "iperf", "-c", "127.0.0.1", "-t", "20", "-p", &server.port.to_string()]);
    let first = start(command);
    server.process.wait_until("the first began", |p| p.err().contains("began"));
    drop(iperf(&format!("-c 127.0.0.1 -B 127.0.0.2 -p {} -t 0.3", server.port)));
    server.process.wait_until("the second was turned away", |p| p.err().contains("busy with 1 session"));
    first.signal_group("KILL");
    server.await_ends(1);
    assert!(rates(&server.client("-t 0.3"))[0] > 1.0);
}

#[test]
fn a_silent_client_holds_up_nobody_and_is_dropped() {
    let bench = Bench::new();
    let Some(mut server) = serve(&bench, "") else { return };
    let silent: Vec<_> =
        (0..300).map(|_| std::net::TcpStream::connect(("127.0.0.1", server.port)).unwrap()).collect();
    let since = Instant::now();
    assert!(rates(&server.client("-t 0.3"))[0] > 1.0);
    assert!(since.elapsed() < Duration::from_secs(4), "{:?}", since.elapsed());
    server.process.wait_until("they were dropped", |p| p.err().contains("said nothing"));
    drop(silent);
    thread::sleep(Duration::from_millis(100));
    assert!(rates(&server.client("-t 0.3 -R"))[0] > 1.0);
}

/// A server of iperf2, ended with the test.
fn serve_by_iperf(options: &str) -> Option<(Running, u16)> {
    if !is_installed("iperf") {
        return None;
    }
    let port = free_port();
    let mut command = Command::new("iperf");
    command.args(["-s", "-p", &port.to_string()]).args(options.split_whitespace());
    let server = start(command);
    let since = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(since.elapsed() < Duration::from_secs(10), "it does not listen: {}", server.err());
        thread::sleep(Duration::from_millis(20));
    }
    Some((server, port))
}

#[test]
fn servers_of_iperf2_are_driven_in_every_mode() {
    let bench = Bench::new();
    for (options, ways) in [
        ("--forward -t 0.6", &["to"][..]),
        ("-R -t 0.6", &["from"]),
        ("-t 0.6", &["to", "from"]),
        ("--bidir -t 0.6", &["to", "from"]),
        ("--forward -P 3 -t 0.6", &["to"]),
        ("-R -P 3 -t 0.6", &["from"]),
        ("--forward -n 4M", &["to"]),
        ("--forward -t 0.6 -O 0.2 --sockbuf 64K -l 8K -N -M 1000", &["to"]),
    ] {
        // iperf's server ends by itself at times when a client connects right after a test: then another is started.
        let mut ended = None;
        for _ in 0..5 {
            let Some((_server, port)) = serve_by_iperf("") else { return };
            let line = format!("measure --iperf2 127.0.0.1:{port} -i 100ms {options} --json");
            let done = ended.insert(bench.run(&line));
            if done.code() != 3 {
                break;
            }
            eprintln!("{options}: {}", done.err);
        }
        let ended = ended.unwrap();
        assert_eq!(ended.code(), 0, "{options}: {}", ended.err);
        let measured = ended.json();
        assert_eq!(measured["request"]["peer"], "iperf2");
        let directions = measured["directions"].as_array().unwrap();
        let found: Vec<&str> = directions.iter().map(|d| d["direction"].as_str().unwrap()).collect();
        assert_eq!(found, ways, "{options}");
        for direction in directions {
            let goodput = direction["goodput_bps"].as_f64().unwrap();
            assert!(goodput > 1e6, "{options}: {direction}");
            if options.contains("-n 4M") {
                let bytes = direction["bytes"].as_u64().unwrap();
                // Acknowledged ones: the last may come behind the last reading. The header is beside them.
                assert!((3 << 20..(4 << 20) + 4096).contains(&bytes), "{bytes}");
            }
        }
    }
}

#[test]
fn a_server_of_iperf2_over_ipv6_and_what_is_none() {
    let bench = Bench::new();
    if let Some((_server, port)) = serve_by_iperf("-V") {
        let ended = bench.run(&format!("measure --iperf2 [::1]:{port} --forward -t 0.4 --json"));
        assert_eq!(ended.code(), 0, "{}", ended.err);
    }
    let own = support::serving::serve(&bench, "");
    let ended = bench.run(&format!("measure --iperf2 127.0.0.1:{} --forward -t 0.4", own.port));
    assert_eq!(ended.code(), 3, "{}", ended.err);
    let ended = bench.run(&format!("measure --iperf2 127.0.0.1:{} --forward -t 0.4", free_port()));
    assert!(ended.refusal(3).contains("refused"), "{}", ended.err);
}
