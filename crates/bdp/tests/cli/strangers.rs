//! Whoever comes to a port of `bdp serve` that speaks something else: named in the log, counted, and no session.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use crate::support::machine::is_installed;
use crate::support::serving::{free_port, measure};
use crate::support::{Bench, Ended, Running, start, wait_for};

/// A server of every protocol, with its counters.
struct Serving {
    process: Running,
    own: u16,
    iperf2: u16,
    metrics: u16,
}

fn serve(bench: &Bench) -> Serving {
    let (own, iperf2, metrics) = (free_port(), free_port(), free_port());
    let line = format!("serve --listen {own} --iperf2-port {iperf2} --metrics {metrics}");
    let mut process = start(bench.bdp(&line));
    process.wait_until("it listens", |p| p.err().contains("for iperf2's clients"));
    Serving { process, own, iperf2, metrics }
}

impl Serving {
    /// Waits for a line of the log.
    fn logs(&mut self, part: &str) {
        self.process.wait_until(part, |p| p.err().contains(part));
    }

    fn counted(&self, name: &str) -> f64 {
        let mut stream = TcpStream::connect(("127.0.0.1", self.metrics)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).trim().parse().unwrap()
    }

    fn counts(&self, protocol: &str) -> f64 {
        self.counted(&format!("bdp_strangers_total{{protocol=\"{protocol}\"}}"))
    }
}

/// Says this and waits to be dropped.
fn say(port: u16, bytes: &[u8]) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let _ = stream.write_all(bytes);
    assert!(!matches!(stream.read(&mut [0; 64]), Ok(1..)), "it is answered");
}

const HELLO_OF_TLS: &[u8] = &[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03, 0x5b];
const HEADER_OF_IPERF2: &[u8] = &[0x40, 0x01, 0x00, 0x78, 0, 0, 0, 1, 0, 0, 0x13, 0x89];

#[test]
fn a_protocol_of_another_server_is_named_and_counted() {
    let bench = Bench::new();
    let mut server = serve(&bench);
    let cookie = [b"abcdefghijklmnopqrstuvwxyz234567abcd".as_slice(), &[0]].concat();
    let magic = [0xbd, b'b', b'd', b'p', 1, 1, 0, 0];
    let (own, iperf2) = (server.own, server.iperf2);
    for (port, bytes, said) in [
        (own, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".as_slice(), "uses HTTP".to_owned()),
        (own, HELLO_OF_TLS, "uses TLS".to_owned()),
        (own, b"SSH-2.0-OpenSSH_9.2p1\r\n", "uses SSH".to_owned()),
        (
            own,
            HEADER_OF_IPERF2,
            format!("uses iperf2's protocol ('@..x....'); it is served on port {iperf2}"),
        ),
        (own, b"what is this?", "its first bytes match no protocol served on this port".to_owned()),
        (iperf2, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "uses HTTP ('GET.')".to_owned()),
        (iperf2, HELLO_OF_TLS, "uses TLS".to_owned()),
        (iperf2, b"SSH-2.0-OpenSSH_9.2p1\r\n", "uses SSH".to_owned()),
        (iperf2, &cookie, format!("uses iperf3's protocol ('abcdefgh'); it is served on port {own}")),
        (iperf2, &magic, format!("uses bdp's protocol ('.bdp'); it is served on port {own}")),
        (iperf2, b"what is this?", "its first bytes match no protocol served on this port".to_owned()),
    ] {
        say(port, bytes);
        server.logs(&said);
    }
    for (protocol, count) in [
        ("http", 2.0),
        ("tls", 2.0),
        ("ssh", 2.0),
        ("iperf2", 1.0),
        ("iperf3", 1.0),
        ("bdp", 1.0),
        ("unknown", 2.0),
        ("silent", 0.0),
    ] {
        assert_eq!(server.counts(protocol), count, "{protocol}");
    }
    assert_eq!(server.counted("bdp_refusals_total{reason=\"protocol\"}"), 11.0);
    assert_eq!(server.counted("bdp_sessions_total"), 0.0, "{}", server.process.err());
    assert_eq!(bench.run(&measure(server.own)).code(), 0);
}

#[test]
fn silence_and_a_few_bytes_have_a_line_and_a_count() {
    let bench = Bench::new();
    let mut server = serve(&bench);
    // Silent until the server drops them, at each port; and with some bytes first.
    for port in [server.own, server.iperf2] {
        let silent = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let from = format!("turned away {}: it connected and sent nothing", silent.local_addr().unwrap());
        let mut short = TcpStream::connect(("127.0.0.1", port)).unwrap();
        short.write_all(b"hi\n").unwrap();
        let cut = TcpStream::connect(("127.0.0.1", port)).unwrap();
        (&cut).write_all(b"bye").unwrap();
        drop(cut);
        server.logs("it sent 3 bytes ('bye') and disconnected");
        server.logs("it sent only 3 bytes ('hi.')");
        server.logs(&from);
        // A check of the port is counted, and no line of the log.
        drop(TcpStream::connect(("127.0.0.1", port)).unwrap());
    }
    assert_eq!((server.counts("silent"), server.counts("unknown")), (2.0, 4.0));
    wait_for("both are counted", || server.counts("closed") >= 2.0);
    assert_eq!(server.counts("closed"), 2.0);
    assert_eq!(server.process.err().matches("turned away").count(), 6, "{}", server.process.err());
    assert_eq!(server.counted("bdp_sessions_total"), 0.0);
}

/// iperf2 with these words as arguments, killed where it does not end by itself.
fn iperf(port: u16, options: &str) -> Ended {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "20", "iperf", "-c", "127.0.0.1", "-p", &port.to_string()]);
    command.args(options.split_whitespace());
    start(command).wait()
}

/// Round trips that `--bounceback` printed, each at the end of a line's `cnt=avg/min/max/stdev ms`.
fn round_trips(ended: &Ended) -> Vec<(u64, f64)> {
    let figure = |word: &str| {
        let (count, rest) = word.split_once('=')?;
        let mut figures = rest.split('/');
        let mean = figures.next()?.parse().ok()?;
        (figures.count() == 3).then_some((count.parse().ok()?, mean))
    };
    ended.out.split_whitespace().filter_map(figure).collect()
}

#[test]
fn bounceback_is_served() {
    if !is_installed("iperf") {
        return;
    }
    let bench = Bench::new();
    let mut server = serve(&bench);
    for (options, least_ms) in [
        ("--bounceback -t 1 -i 1", 0.0),
        ("--bounceback -t 1 -i 1 -l 1000 -P 2", 0.0),
        ("--bounceback -t 1 -i 1 --bounceback-hold 20", 20.0),
        ("--bounceback -t 1 -i 1 -S 0x20 --trip-times", 0.0),
    ] {
        let ended = iperf(server.iperf2, options);
        assert_eq!(ended.code(), 0, "{options}: {}{}", ended.out, ended.err);
        assert!(!ended.err.contains("failed"), "{options}: {}", ended.err);
        let round_trips = round_trips(&ended);
        assert!(!round_trips.is_empty(), "{options}: {}", ended.out);
        for (count, mean_ms) in round_trips {
            // Ten a second; with a hold of 20 ms as many as fit.
            assert!(count >= 5, "{options}: {count}\n{}", ended.out);
            assert!((least_ms..1000.0).contains(&mean_ms), "{options}: {mean_ms} ms\n{}", ended.out);
        }
    }
    server.logs("session 4: ");
    server.logs("ended after");
    assert!(!server.process.err().contains("turned away"), "{}", server.process.err());
    assert!(server.counted("bdp_received_bytes_total") >= 4000.0);
}

#[test]
fn what_iperf2_asks_for_and_is_not_served_is_refused_at_once() {
    if !is_installed("iperf") {
        return;
    }
    let bench = Bench::new();
    let mut server = serve(&bench);
    for (options, said) in [
        ("--permit-key=abcdefgh -t 1", "iperf2's --permit-key, which is not served"),
        ("--permit-key=abcdefgh -t 1 -R", "iperf2's --permit-key, which is not served"),
        ("--isochronous=60:1M,10K -t 1 -R", "iperf2's --isochronous with -R or --full-duplex, which is not"),
        ("--isochronous=60:1M,10K -t 1 --full-duplex", "iperf2's --isochronous with -R or --full-duplex"),
        ("-u --isochronous=60:1M,10K -t 1 -R", "iperf2's --isochronous with -R or --full-duplex"),
        ("--bounceback -l 200000 -t 1", "less than 48 bytes or more than 128 KiB (-l)"),
    ] {
        let before = server.process.err().matches("turned away").count();
        let ended = iperf(server.iperf2, options);
        server.process.wait_until(options, |p| p.err().matches("turned away").count() > before);
        server.logs(said);
        // A client of datagrams has no words for a refusal: it ends, and nothing came.
        let heard = !ended.err.is_empty() || (options.contains("-u") && ended.out.contains(" 0.000 Bytes"));
        assert!(heard, "{options}: its client heard of nothing: {}", ended.out);
    }
    assert_eq!(server.counted("bdp_sessions_total"), 0.0, "{}", server.process.err());
    // What only the client does is served.
    for options in ["--isochronous=60:1M,10K -t 1", "-u --isochronous=60:1M,10K -t 1"] {
        let ended = iperf(server.iperf2, options);
        assert_eq!(ended.code(), 0, "{options}: {}", ended.err);
        assert!(!ended.err.contains("did not receive ack"), "{options}: {}", ended.err);
    }
    assert_eq!(server.counted("bdp_sessions_total"), 2.0, "{}", server.process.err());
}
