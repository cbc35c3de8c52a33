//! What `bdp serve` makes of those who mean it no good: each is refused or dropped, memory stays bounded, and the next
//! client is served at once.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use crate::support::fidelity::timed;
use crate::support::inside::in_guest;
use crate::support::serving::{Serving, measure, serve};
use crate::support::{Bench, start, wait_for};
use bdp_wire::proof::hex;
use serde_json::{Value, json};

/// How soon the next client must be done: its measurement takes 0.4 s.
const AT_ONCE: Duration = Duration::from_secs(3);
/// What a server may hold beyond what it held before.
const MOST_GROWTH_KIB: u64 = 48 * 1024;

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}

fn preamble(kind: u8) -> Vec<u8> {
    vec![0xbd, b'b', b'd', b'p', 1, kind, 0, 0]
}

fn resident_kib(server: &Serving) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process.pid())).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Whether the other end closes, with or without a word before.
fn is_dropped(stream: &mut TcpStream) -> bool {
    let mut room = [0; 4096];
    loop {
        match stream.read(&mut room) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(e) if matches!(e.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => return true,
            Err(_) => return false,
        }
    }
}

/// The next client is served at once.
#[track_caller]
fn assert_served(server: &Serving, bench: &Bench, after: &str) {
    let since = Instant::now();
    let (ended, timing) = timed(after, || bench.run(&measure(server.port)));
    let took = since.elapsed();
    assert_eq!(ended.code(), 0, "after {after}: {}", ended.err);
    timing.judge(|| assert!(took < AT_ONCE, "after {after}: {took:?}"));
}

/// A control connection that was let in.
struct Control(TcpStream);

impl Control {
    fn admitted(port: u16) -> Self {
        let mut stream = connect(port);
        stream.write_all(&preamble(1)).unwrap();
        stream.read_exact(&mut [0; 8]).unwrap();
        let mut control = Self(stream);
        assert!(control.read()["challenge"].is_object());
        control.write(&json!({"bdp": "x", "nonce": hex(&[9; 32]), "proof": null}).to_string());
        assert!(control.read()["welcome"].is_object());
        control
    }

    fn write(&mut self, body: &str) {
        self.0.write_all(&[&(body.len() as u32).to_be_bytes(), body.as_bytes()].concat()).unwrap();
    }

    fn read(&mut self) -> Value {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).unwrap();
        let mut body = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }
}

#[test]
fn bytes_that_are_no_greeting_are_dropped() {
    in_guest(|| {
        let bench = Bench::new();
        let server = serve(&bench, "");
        let half_a_ticket = [preamble(2), vec![7; 11]].concat();
        let stranger = [preamble(2), vec![7; 24]].concat();
        let huge_frame = [preamble(1), vec![0xff; 4], vec![b'x'; 64]].concat();
        let huge_zero = [preamble(1), vec![0xff, 0xff, 0xff, 0xff]].concat();
        let not_json = [preamble(1), 5_u32.to_be_bytes().to_vec(), b"]]]]]".to_vec()].concat();
        let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
        let random: Vec<u8> = (0..4096)
            .map(|_| {
                noise ^= noise << 13;
                noise ^= noise >> 7;
                noise ^= noise << 17;
                noise as u8 | 0x80
            })
            .collect();
        for (what, bytes) in [
            ("half a ticket", half_a_ticket),
            ("a key of no session", stranger),
            ("a length of 0xffffffff", huge_frame),
            ("a length of 0xffffffff and nothing", huge_zero),
            ("what is no JSON", not_json),
            ("random bytes", random),
            ("a browser", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        ] {
            let mut stream = connect(server.port);
            // It may be gone before the last byte.
            let _ = stream.write_all(&bytes);
            assert!(is_dropped(&mut stream), "{what}");
        }
        assert_served(&server, &bench, "bytes of all kinds");
    });
}

#[test]
fn requests_that_ask_for_too_much_or_are_of_wrong_types_are_refused() {
    in_guest(|| {
        let bench = Bench::new();
        let server = serve(&bench, "--max-streams 100");
        let order = |streams: Value, length: Value| {
            json!({"id": 1, "body": {"prepare": {
                "flow": 1, "role": "receive", "streams": streams, "duration": "1s", "omit": "0s", "interval": "100ms",
                "length_bytes": length, "nodelay": false
            }}})
        };
        let mut control = Control::admitted(server.port);
        for (streams, length) in [(999, 1024), (u64::from(u32::MAX), 1024), (0, 1024), (1, u64::MAX), (1, 0)]
        {
            control.write(&order(json!(streams), json!(length)).to_string());
            let answer = control.read();
            assert!(answer["body"]["failed"]["error"].is_string(), "{streams} {length}: {answer}");
        }
        for body in [
            order(json!("many"), json!(1024)).to_string(),
            order(json!(-1), json!(1024)).to_string(),
            order(json!(1), json!({"a": []})).to_string(),
            json!({"id": "one", "body": "facts"}).to_string(),
            "[".repeat(60_000),
        ] {
            let mut control = Control::admitted(server.port);
            control.write(&body);
            assert!(is_dropped(&mut control.0), "{}", &body[..body.len().min(80)]);
        }
        let mut control = Control::admitted(server.port);
        control.0.write_all(&[0xff; 4]).unwrap();
        assert!(is_dropped(&mut control.0));
        assert_served(&server, &bench, "wrong requests");
    });
}

#[test]
fn those_who_send_a_byte_a_second_are_dropped_by_the_deadline_of_the_whole() {
    in_guest(|| {
        let bench = Bench::new();
        let server = serve(&bench, "");
        let mut slow: Vec<TcpStream> = (0..50).map(|_| connect(server.port)).collect();
        let since = Instant::now();
        let bytes = [preamble(2), vec![7; 24]].concat();
        let mut gone = 0;
        for byte in bytes.iter().take(12) {
            gone = slow.iter_mut().filter(|s| (&**s).write_all(&[*byte]).is_err()).count();
            if gone == slow.len() {
                break;
            }
            assert_served(&server, &bench, "a byte of a slow loris");
            std::thread::sleep(Duration::from_millis(300));
        }
        assert!(slow.iter_mut().all(is_dropped), "{gone} after {:?}", since.elapsed());
    });
}

#[test]
fn ten_thousand_idle_connections_hold_up_nobody_and_cost_little() {
    in_guest(|| {
        let _ = bdp_sys::process::raise_descriptor_limit();
        let bench = Bench::new();
        let server = serve(&bench, "");
        assert_served(&server, &bench, "nothing");
        let before = resident_kib(&server);
        let mut idle = Vec::new();
        for _ in 0..10_000 {
            match TcpStream::connect_timeout(&([127, 0, 0, 1], server.port).into(), Duration::from_secs(5)) {
                Ok(stream) => idle.push(stream),
                // This process may not open so many.
                Err(_) => break,
            }
        }
        assert!(idle.len() > 900, "{}", idle.len());
        assert_served(&server, &bench, "idle connections");
        // All places for greetings are taken too, by clients that say nothing more, a byte at a time, or the wrong thing slowly.
        let mut slow: Vec<TcpStream> = (0..200).map(|_| connect(server.port)).collect();
        for stream in &mut slow {
            let _ = stream.write_all(&preamble(1));
        }
        for byte in 0..3 {
            for stream in &mut slow {
                // It may have lost its place.
                let _ = stream.write_all(&[byte]);
            }
            assert_served(&server, &bench, "idle connections and slow greetings");
        }
        let grown = resident_kib(&server).saturating_sub(before);
        assert!(grown < MOST_GROWTH_KIB, "{grown} KiB for {} connections", idle.len());
        drop(idle);
        assert_served(&server, &bench, "their end");
    });
}

#[test]
fn a_flood_of_hellos_over_tcp_holds_up_nobody() {
    in_guest(|| {
        let bench = Bench::new();
        let server = serve(&bench, "");
        assert_served(&server, &bench, "nothing");
        let before = resident_kib(&server);
        for _ in 0..2000 {
            let mut stream = connect(server.port);
            let _ = stream.write_all(&preamble(1));
        }
        let half_open: Vec<TcpStream> = (0..31)
            .map(|_| {
                let mut stream = connect(server.port);
                let _ = stream.write_all(&preamble(1));
                stream
            })
            .collect();
        let grown = resident_kib(&server).saturating_sub(before);
        assert!(grown < MOST_GROWTH_KIB, "{grown} KiB");
        drop(half_open);
        // Those that left have to be noticed first; until then there is no place, which is said at once.
        let since = Instant::now();
        let ((), timing) = timed("a place after a flood of hellos", || {
            wait_for("a place", || {
                let ended = bench.run(&measure(server.port));
                assert!(ended.code() == 0 || ended.err.contains("busy"), "{}", ended.err);
                ended.code() == 0
            });
        });
        let took = since.elapsed();
        timing.judge(|| assert!(took < 2 * AT_ONCE, "{took:?}"));
        assert_served(&server, &bench, "a flood of hellos");
    });
}

/// Places are there for all: whoever has one and says nothing gives way.
#[test]
fn those_who_take_a_place_and_say_nothing_give_way() {
    in_guest(|| {
        let bench = Bench::new();
        let mut server = serve(&bench, "");
        // Half of them with parameters, whose streams never come.
        let parameters =
            crate::support::iperf3::body(r#"{"tcp":true,"time":10,"parallel":1,"client_version":"3.12"}"#);
        let silent: Vec<TcpStream> = (*b"abcdefghijklmnopqrstuvwxyz234567")
            .iter()
            .map(|&cookie| {
                let mut stream = crate::support::iperf3::greeted(server.port, cookie);
                if cookie % 2 == 0 {
                    stream.write_all(&parameters).unwrap();
                }
                stream
            })
            .collect();
        assert_served(&server, &bench, "clients of iperf3 that send a cookie and wait");
        drop(silent);
        let admitted: Vec<Control> = (0..40).map(|_| Control::admitted(server.port)).collect();
        assert_served(&server, &bench, "clients that were let in and wait");
        drop(admitted);
        server.process.wait_until("it is evicted", |p| p.err().contains("evicted while idle"));

        let alone = serve(&bench, "--exclusive");
        let control = Control::admitted(alone.port);
        std::thread::sleep(Duration::from_millis(1100));
        assert_served(&alone, &bench, "one that has the only place and says nothing");
        drop(control);
        let vanished = crate::support::iperf3::greeted(alone.port, b'z');
        (&mut &vanished).write_all(&parameters).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        drop(vanished);
        std::thread::sleep(Duration::from_millis(300));
        assert_served(&alone, &bench, "one that left while its streams were awaited");
    });
}

#[test]
fn datagrams_of_iperf2_from_everywhere_cost_little_and_hold_up_nobody() {
    in_guest(|| {
        let bench = Bench::new();
        let iperf2 = crate::support::serving::free_port();
        let mut server = serve(&bench, &format!("--iperf2-port {iperf2}"));
        assert_served(&server, &bench, "nothing");
        let (before, threads) = (resident_kib(&server), threads_of(server.process.pid()));
        let mut first = [0; 64];
        first[3] = 1;
        let sources: Vec<UdpSocket> = (0..1000)
            .map(|_| {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                socket.send_to(&first, ("127.0.0.1", iperf2)).unwrap();
                socket
            })
            .collect();
        let pid = server.process.pid();
        server.process.wait_until("flows began", |_| threads_of(pid) >= threads + 20);
        let more = threads_of(pid) - threads;
        assert!(more <= 140, "{more} threads more");
        let grown = resident_kib(&server).saturating_sub(before);
        assert!(grown < MOST_GROWTH_KIB, "{grown} KiB");
        assert_served(&server, &bench, "a thousand flows of one datagram");
        drop(sources);
    });
}

fn threads_of(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().count()
}

#[test]
fn a_flood_of_strangers_is_some_lines_and_a_count() {
    in_guest(|| {
        let bench = Bench::new();
        let mut server = serve(&bench, "");
        for _ in 0..500 {
            let mut stream = connect(server.port);
            let _ = stream.write_all(b"GET / HTTP/1.1\r\n\r\n");
            assert!(is_dropped(&mut stream));
        }
        let lines = server.process.err().matches("turned away 127.0.0.1:").count();
        // As many again where a while has ended among them.
        assert!((1..=60).contains(&lines), "{lines} lines");
        server.process.wait_until("the rest is told", |p| p.err().contains(" more in the last 10 s"));
        assert_served(&server, &bench, "a flood of strangers");
    });
}

#[test]
fn datagrams_of_strangers_get_no_answer() {
    in_guest(|| {
        let bench = Bench::new();
        let server = serve(&bench, "");
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let mut sent = 0_usize;
        for length in [0, 1, 8, 16, 39, 40, 64, 72, 128, 1400] {
            for kind in 0..=12 {
                let mut datagram = preamble(kind);
                datagram.resize(length, 0x5a);
                socket.send_to(&datagram, ("127.0.0.1", server.port)).unwrap();
                sent += length;
            }
        }
        for _ in 0..20_000 {
            // A full queue of this end is as good.
            let _ = socket.send_to(&[0xbd; 40], ("127.0.0.1", server.port));
        }
        let mut back = 0;
        let mut room = [0; 65_536];
        while let Ok(length) = socket.recv(&mut room) {
            back += length;
        }
        assert!(back <= sent, "{back} bytes came back for {sent}");
        assert_eq!(back, 0, "nobody here knows a key");
        assert_served(&server, &bench, "a flood of datagrams");
    });
}

/// How soon the end of a stopped peer has to be noticed: it may be still for 10 s.
const NOTICED: Duration = Duration::from_secs(25);

#[test]
fn a_client_that_stays_stopped_loses_its_place() {
    in_guest(|| {
        let bench = Bench::new();
        let stopped = ["--forward", "-R", "--bidir -P 3", "--forward -u -b 1M"].map(|options| {
            let server = serve(&bench, "");
            let line = format!("measure 127.0.0.1:{} -t 120 --idle 0.1 --json-stream {options}", server.port);
            let mut client = start(bench.bdp(&line));
            client.await_flow();
            client.signal("STOP");
            (options, server, client, Instant::now())
        });
        for (options, mut server, client, since) in stopped {
            server.process.wait_until("its session ended", |p| p.err().contains("ended after"));
            let told = server.process.err();
            assert!(since.elapsed() < NOTICED, "{options}: {:?}", since.elapsed());
            assert!(told.contains("no data was transferred for 10 s"), "{options}: {told}");
            assert_served(&server, &bench, options);
            client.signal("KILL");
            client.wait();
            println!("a client stopped for good, {options} ... noticed");
        }
    });
}

#[test]
fn a_server_that_stays_stopped_is_told_of() {
    in_guest(|| {
        let bench = Bench::new();
        let stopped = ["--forward", "-R", "--bidir", "-R -u -b 1M"].map(|options| {
            let server = serve(&bench, "");
            let line = format!("measure 127.0.0.1:{} -t 120 --idle 0.1 --json-stream {options}", server.port);
            let mut client = start(bench.bdp(&line));
            client.await_flow();
            server.process.signal("STOP");
            (options, server, client, Instant::now())
        });
        for (options, server, client, since) in stopped {
            let ended = client.wait();
            assert!(since.elapsed() < NOTICED, "{options}: {:?}", since.elapsed());
            assert_eq!(ended.code(), 3, "{options}: {}", ended.err);
            let told = ended.last_line();
            assert!(
                told.contains("127.0.0.1") && told.contains("no data was transferred for 10 s"),
                "{options}: {told}"
            );
            server.process.signal("KILL");
            println!("a server stopped for good, {options} ... told");
        }
    });
}

#[test]
fn a_client_that_is_stopped_in_mid_test_holds_up_nobody() {
    in_guest(|| {
        let bench = Bench::new();
        let mut server = serve(&bench, "");
        let line = format!("measure 127.0.0.1:{} -t 60 --idle 0.1 -P 4 --json-stream", server.port);
        let mut client = start(bench.bdp(&line));
        client.await_flow();
        client.signal("STOP");
        assert_served(&server, &bench, "a stopped client");
        client.signal("KILL");
        client.wait();
        server.process.wait_until("both sessions ended", |p| p.err().matches("ended after").count() >= 2);
        assert_served(&server, &bench, "its end");
    });
}
