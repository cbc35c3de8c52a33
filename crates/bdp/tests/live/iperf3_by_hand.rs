//! iperf3's protocol as these tests speak it themselves, or as bdp speaks it to bdp: no release of iperf3 changes what is seen here.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::inside::in_guest;
use crate::support::iperf3::{body, greeted, number};
use crate::support::serving::{free_port, serve};
use crate::support::{Bench, start};
use serde_json::Value;

/// One that fails before its streams says that it is done, closes its half, and waits for the server to close the other.
#[test]
fn a_client_that_gives_up_before_its_streams_frees_its_place_at_once() {
    in_guest(|| {
        use std::io::{Read, Write};
        let bench = Bench::new();
        let server = serve(&bench, "--max-sessions 1");
        for (what, protocol) in [("TCP", "tcp"), ("UDP", "udp")] {
            for goodbye in [&[16][..], &[12], &[]] {
                let mut stream = greeted(server.port, b'a');
                stream.write_all(&body(&format!(r#"{{"{protocol}":true,"time":1}}"#))).unwrap();
                let mut state = [0];
                stream.read_exact(&mut state).unwrap();
                assert_eq!(state, [10], "asked for streams");
                let since = Instant::now();
                stream.write_all(goodbye).unwrap();
                stream.shutdown(std::net::Shutdown::Write).unwrap();
                let mut rest = Vec::new();
                stream.read_to_end(&mut rest).unwrap();
                let took = since.elapsed();
                assert!(
                    rest.is_empty() && took < Duration::from_secs(5),
                    "{what} {goodbye:?}: {rest:?}, {took:?}"
                );
            }
        }
        server.assert_unharmed(&bench);
    });
}

#[test]
fn malice_is_answered_and_forgotten() {
    in_guest(|| {
        use std::io::{Read, Write};
        let bench = Bench::new();
        let server = serve(&bench, "");
        for (what, bytes, code) in [
            ("parallel 999", body(r#"{"tcp":true,"time":1,"parallel":999}"#), 6),
            ("a length of 0xffffffff", vec![0xff; 4], 114),
            ("wrong types", body(r#"{"tcp":true,"time":{},"parallel":[]}"#), 114),
            ("not JSON", body("tcp, please"), 114),
            ("a day and a second", body(r#"{"tcp":true,"time":86401}"#), 5),
            ("deep nesting", body(&"[".repeat(8000)), 114),
        ] {
            let mut stream = greeted(server.port, b'a');
            stream.write_all(&bytes).unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).unwrap();
            assert_eq!(answer, [&[0xfe, 0, 0, 0, code][..], &[0; 4]].concat(), "{what}");
            let since = Instant::now();
            server.assert_unharmed(&bench);
            println!("{what} ... refused, the next client served within {:?}", since.elapsed());
        }
        // These say nothing more, or go: nobody waits for them.
        let mut half = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        half.write_all(b"abcdefghij").unwrap();
        let silent: Vec<_> = (0..8).map(|i| greeted(server.port, b'b' + i)).collect();
        let mut streamless = greeted(server.port, b'z');
        streamless.write_all(&body(r#"{"tcp":true,"time":1,"parallel":3}"#)).unwrap();
        drop(greeted(server.port, b'y'));
        server.assert_unharmed(&bench);
        let mut answer = Vec::new();
        streamless.read_to_end(&mut answer).unwrap();
        assert_eq!(answer[..6], [10, 0xfe, 0, 0, 0, 204], "asked for streams, and told that none came");
        drop((half, silent));
        server.assert_unharmed(&bench);
    });
}

#[test]
fn a_server_that_does_not_listen_for_a_moment_is_waited_for() {
    in_guest(|| {
        let bench = Bench::new();
        // As one of iperf3's between two tests.
        let port = free_port();
        let client = start(bench.bdp(&format!("measure --iperf3 127.0.0.1:{port} -t 1 --json")));
        thread::sleep(Duration::from_millis(100));
        let mut server = start(bench.bdp(&format!("serve --listen {port}")));
        server.wait_until("it listens", |p| p.err().contains("listening on"));
        let ended = client.wait();
        assert_eq!(ended.code(), 0, "{}", ended.err);
        let since = Instant::now();
        let nobody = bench.run(&format!("measure --iperf3 127.0.0.1:{} -t 1", free_port()));
        assert!(nobody.refusal(3).contains("nothing listens"), "{}", nobody.err);
        assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    });
}

#[test]
fn a_server_of_ours_is_driven_by_its_protocol_too() {
    in_guest(|| {
        let bench = Bench::new();
        let server = serve(&bench, "--max-duration 3s");
        for options in ["-t 1", "-t 1 --bidir -P 2", "-n 5M", "-t 2 -O 1 -R"] {
            let ended = bench.run(&format!("measure --iperf3 127.0.0.1:{} {options} --json", server.port));
            assert_eq!(ended.code(), 0, "{options}: {}", ended.err);
            assert!(number(&ended.json(), "/directions/0/goodput_bps") > 1e6);
        }
        let long = bench.run(&format!("measure --iperf3 127.0.0.1:{} -t 4", server.port));
        assert!(long.refusal(3).contains("longer than it allows"), "{}", long.err);
        for (options, part) in
            [("-w 64K", "--sockbuf"), ("-O 0.5", "whole seconds"), ("-P 129", "128 streams")]
        {
            let wrong = bench.run(&format!("measure --iperf3 127.0.0.1:{} {options}", server.port));
            assert!(wrong.refusal(2).contains(part), "{}", wrong.err);
        }
    });
}

#[test]
fn datagrams_of_a_server_of_ours_are_driven_by_its_protocol_too() {
    in_guest(|| {
        let bench = Bench::new();
        let server = serve(&bench, "--max-rate 50M");
        for options in ["-t 1 -b 5M", "-t 1 -b 5M --bidir -P 2", "-n 1M -b 20M", "-t 2 -O 1 -b 5M -R"] {
            let ended = bench.run(&format!("measure --iperf3 127.0.0.1:{} -u {options} --json", server.port));
            assert_eq!(ended.code(), 0, "{options}: {}", ended.err);
            let document = ended.json();
            assert!(number(&document, "/directions/0/udp/received") > 50.0, "{options}: {document:#}");
        }
        let fast = bench.run(&format!("measure --iperf3 127.0.0.1:{} -u -b 60M -t 1", server.port));
        assert!(fast.refusal(3).contains("rate"), "{}", fast.err);
    });
}

/// Reads so many bytes.
fn read<const N: usize>(stream: &mut TcpStream) -> [u8; N] {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// A test of datagrams of 100 bytes that waits for its streams.
fn asked_for_streams(port: u16, cookie: u8, more: &str) -> TcpStream {
    let mut control = greeted(port, cookie);
    control.write_all(&body(&format!(r#"{{"udp":true,"time":1,"len":100{more}}}"#))).unwrap();
    assert_eq!(read(&mut control), [10]);
    control
}

/// A socket that has said hello from an address of this machine.
fn said_hello(from: &str, port: u16, hello: &[u8]) -> UdpSocket {
    let socket = UdpSocket::bind((from, 0)).unwrap();
    socket.connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket.send(hello).unwrap();
    socket
}

fn heard(socket: &UdpSocket) -> Vec<u8> {
    let mut room = [0; 200];
    let length = socket.recv(&mut room).unwrap();
    room[..length].to_vec()
}

#[track_caller]
fn assert_silent(socket: &UdpSocket) {
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let error = socket.recv(&mut [0; 200]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
}

/// As releases since 3.12 and those before say hello, on little-endian and on big-endian machines, and what they hear.
const HELLOS: [([u8; 4], [u8; 4]); 4] = [
    (*b"9876", *b"6789"),
    (*b"6789", *b"9876"),
    ([0x15, 0xcd, 0x5b, 0x07], [0xb1, 0x68, 0xde, 0x3a]),
    ([0x07, 0x5b, 0xcd, 0x15], [0x3a, 0xde, 0x68, 0xb1]),
];

#[test]
fn every_hello_and_both_headers_are_understood() {
    in_guest(|| {
        let bench = Bench::new();
        let server = serve(&bench, "");
        for wide in [false, true] {
            let more = if wide { r#","parallel":4,"udp_counters_64bit":1"# } else { r#","parallel":4"# };
            // The test before may not have ended there yet: a cookie of its own.
            let cookie = if wide { b'b' } else { b'a' };
            let mut control = asked_for_streams(server.port, cookie, more);
            let mut sockets: Vec<UdpSocket> = Vec::new();
            for (hello, answer) in HELLOS {
                let socket = said_hello("127.0.0.1", server.port, &hello);
                assert_eq!(heard(&socket), answer);
                if let [first] = sockets.as_slice() {
                    // As one whose answer was lost, while others are still to come.
                    first.send(&HELLOS[0].0).unwrap();
                    assert_eq!(heard(first), HELLOS[0].1, "again");
                }
                sockets.push(socket);
            }
            assert_eq!(read(&mut control), [1, 2]);
            for socket in &sockets {
                for number in [1_u32, 2, 4, 3, 6] {
                    let mut datagram = [0; 100];
                    datagram[if wide { 12..16 } else { 8..12 }].copy_from_slice(&number.to_be_bytes());
                    socket.send(&datagram).unwrap();
                }
            }
            std::thread::sleep(Duration::from_millis(300));
            control.write_all(&[4]).unwrap();
            assert_eq!(read(&mut control), [13]);
            control.write_all(&body(r#"{"streams":[]}"#)).unwrap();
            let mut results = vec![0; u32::from_be_bytes(read(&mut control)) as usize];
            control.read_exact(&mut results).unwrap();
            let results: Value = serde_json::from_slice(&results).unwrap();
            for (stream, id) in results["streams"].as_array().unwrap().iter().zip([1.0, 3.0, 4.0, 5.0]) {
                assert_eq!(number(stream, "/id"), id);
                assert_eq!(number(stream, "/packets"), 6.0, "{stream:#}");
                assert_eq!(number(stream, "/errors"), 1.0, "{stream:#}");
                assert_eq!(number(stream, "/bytes"), 500.0, "{stream:#}");
            }
            assert_eq!(read(&mut control), [14]);
            control.write_all(&[16]).unwrap();
        }
        server.assert_unharmed(&bench);
    });
}

#[test]
fn an_address_without_a_test_hears_nothing() {
    in_guest(|| {
        let bench = Bench::new();
        let server = serve(&bench, "");
        for (hello, _) in HELLOS {
            assert_silent(&said_hello("127.0.0.1", server.port, &hello));
        }
        let mut control = asked_for_streams(server.port, b'a', r#","reverse":true,"bandwidth":1000000"#);
        let stranger = said_hello("127.0.0.2", server.port, &HELLOS[0].0);
        assert_silent(&stranger);
        let socket = said_hello("127.0.0.1", server.port, &HELLOS[0].0);
        assert_eq!(heard(&socket), HELLOS[0].1);
        assert_eq!(read(&mut control), [1, 2]);
        let late = said_hello("127.0.0.1", server.port, &HELLOS[0].0);
        assert_eq!(heard(&socket).len(), 100, "data goes to who said hello");
        assert_silent(&late);
        assert_silent(&stranger);
        // Gone without a word: nothing is sent to it any more.
        drop((control, socket));
        server.assert_unharmed(&bench);
    });
}

#[test]
fn one_that_never_says_hello_is_told_and_holds_up_nobody() {
    in_guest(|| {
        let bench = Bench::new();
        let server = serve(&bench, "");
        let mut control = asked_for_streams(server.port, b'a', "");
        server.assert_unharmed(&bench);
        // The next of its address waits its turn, and then gets it.
        let mut next = greeted(server.port, b'b');
        next.write_all(&body(r#"{"udp":true,"time":1,"len":100}"#)).unwrap();
        assert_eq!(read(&mut control), [0xfe, 0, 0, 0, 204]);
        assert_eq!(read(&mut next), [10]);
        let socket = said_hello("127.0.0.1", server.port, &HELLOS[0].0);
        assert_eq!(heard(&socket), HELLOS[0].1);
        assert_eq!(read(&mut next), [1, 2]);
    });
}

#[test]
fn one_that_gives_up_before_its_turn_is_let_go_at_once() {
    in_guest(|| {
        let bench = Bench::new();
        let server = serve(&bench, "");
        let _first = asked_for_streams(server.port, b'a', "");
        let mut next = greeted(server.port, b'b');
        next.write_all(&body(r#"{"udp":true,"time":1,"len":100}"#)).unwrap();
        let since = Instant::now();
        next.write_all(&[16]).unwrap();
        let mut rest = Vec::new();
        next.read_to_end(&mut rest).unwrap();
        assert!(
            rest.is_empty() && since.elapsed() < Duration::from_secs(5),
            "{rest:?} {:?}",
            since.elapsed()
        );
    });
}

#[test]
fn a_test_without_a_datagram_says_how_long_it_waited() {
    in_guest(|| {
        let bench = Bench::new();
        let port = free_port();
        let listener = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
        let socket = UdpSocket::bind(("127.0.0.1", port)).unwrap();
        let running =
            start(bench.bdp(&format!("measure --iperf3 127.0.0.1:{port} -u -b 1M -R -t 1 --idle 0.1")));
        // A server whose stream is open and sends nothing.
        let (mut control, _) = listener.accept().unwrap();
        let mut cookie = [0; 37];
        control.read_exact(&mut cookie).unwrap();
        control.write_all(&[9]).unwrap();
        let mut length = [0; 4];
        control.read_exact(&mut length).unwrap();
        let mut parameters = vec![0; u32::from_be_bytes(length) as usize];
        control.read_exact(&mut parameters).unwrap();
        control.write_all(&[10]).unwrap();
        let mut hello = [0; 16];
        let (_, client) = socket.recv_from(&mut hello).unwrap();
        socket.send_to(b"6789", client).unwrap();
        control.write_all(&[1, 2]).unwrap();
        let mut end = [0; 1];
        control.read_exact(&mut end).unwrap();
        assert_eq!(end, [4]);
        control.write_all(&[13]).unwrap();
        let ended = running.wait();
        let line = ended.refusal(3);
        assert!(line.contains("no reply within 1") && !line.contains("within 10"), "{line}");
    });
}
