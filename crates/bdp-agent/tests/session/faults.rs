//! What goes wrong, at either end: one error that tells what, and a server that goes on.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::inside::{in_guest, is_inside};
use crate::support::measure;
use bdp_agent::server::access::{AccessRules, PlaceLimits};
use bdp_agent::server::{Event, ServerOptions};
use bdp_flow::session::error::SessionError;
use bdp_flow::session::progress::{Progress, Stage};
use bdp_model::finding::caveat::Caveat;
use bdp_model::measurement::Direction;
use bdp_model::units::Nanos;
use bdp_wire::session::{
    Kind, Limits, MAGIC, PREAMBLE_BYTES, Preamble, Refusal, TICKET_BYTES, Ticket, VERSION,
};

use crate::support::{Serving, TOKEN, options, request, run, run_with};

/// A listener that answers each connection with these bytes and then says nothing more.
fn impostor(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(answer).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    port
}

#[test]
fn peers_that_are_not_there_are_told_apart() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let refused = run(&request("127.0.0.1", free)).unwrap_err();
    assert!(matches!(refused, SessionError::Refused { .. }), "{refused}");
    let nobody = run(&request("no-such-host.invalid", free)).unwrap_err();
    assert!(matches!(nobody, SessionError::NoSuchHost { .. }), "{nobody}");
    for error in [refused, nobody] {
        assert!(!error.is_request() && !error.to_string().contains('\n'), "{error}");
    }
}

#[test]
fn a_full_queue_of_connections_is_no_answer() {
    in_guest(|| {
        // A listener whose queue is full drops what comes, as a firewall does.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut held = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
            held.push(stream);
            assert!(held.len() < 10_000);
        }
        let started = Instant::now();
        let error = run(&request("127.0.0.1", address.port())).unwrap_err();
        assert!(matches!(error, SessionError::NoAnswer { .. }), "{error}");
        let took = started.elapsed();
        assert!((2..6).contains(&took.as_secs()));
        assert!(!is_inside() || took.subsec_millis() < 20, "{took:?}");
    });
}

#[test]
fn peers_that_speak_something_else_are_named() {
    in_guest(|| {
        for (answer, word) in [
            (b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice(), "HTTP"),
            (b"\x09".as_slice(), "\\t"),
            (b"\xbdbdX".as_slice(), "does not speak"),
            (b"\xbdbdp\x01\x01\0\0\xff\xff\xff\xff".as_slice(), "4294967295"),
            (b"\xbdbdp\x01\x01\0\0\0\0\0\x02{}".as_slice(), "invalid message"),
        ] {
            let error = run(&request("127.0.0.1", impostor(answer))).unwrap_err();
            assert!(matches!(error, SessionError::NotBdp { .. }), "{error}");
            assert!(error.to_string().contains(word), "{error}");
        }
        let newer = run(&request("127.0.0.1", impostor(b"\xbdbdp\x63\x01\0\0"))).unwrap_err();
        assert!(matches!(newer, SessionError::Version { theirs: 0x63, ours: VERSION, .. }), "{newer}");
    });
}

#[test]
fn a_silent_peer_is_given_up() {
    in_guest(|| {
        let started = Instant::now();
        let error = run(&request("127.0.0.1", impostor(b""))).unwrap_err();
        assert!(matches!(error, SessionError::Silent { .. }), "{error}");
        // 5 s for bdp's own greeting, and as long for iperf3's, to whose server the cookie is shown twice.
        let took = started.elapsed();
        assert!((4..16).contains(&took.as_secs()), "{took:?}");
        assert!(!is_inside() || (5_000..5_100).contains(&took.as_millis()), "{took:?}");
    });
}

#[test]
fn a_wrong_token_is_refused_and_the_right_one_is_not() {
    let server = Serving::start();
    let error = run_with(&server.request(), Some("guess")).unwrap_err();
    assert!(matches!(error, SessionError::Denied { refusal: Refusal::TokenWrong, .. }), "{error}");
    run_with(&server.request(), Some(TOKEN)).unwrap();
    let events = server.events();
    // The next session may begin before the server has noted it.
    let refused = |event: &Event| matches!(event, Event::TurnedAway { why, .. } if why.contains("token"));
    assert_eq!(events.iter().filter(|event| refused(event)).count(), 1, "{events:?}");
}

#[test]
fn a_server_that_proves_nothing_is_refused_where_a_token_was_given() {
    // It asks for a token, or says that it needs none, and lets the client in without a proof of its own.
    for (needed, words) in
        [(true, "it did not prove that it knows the token"), (false, "this server has no token")]
    {
        let challenge = format!(
            r#"{{"challenge":{{"bdp":"0.1.0","nonce":"{}","token_needed":{needed}}}}}"#,
            "01".repeat(32)
        );
        let welcome = format!(
            r#"{{"welcome":{{"key":"{}","proof":null,"limits":{{"duration":"1s","streams":4}}}}}}"#,
            "02".repeat(16)
        );
        let mut said = b"\xbdbdp\x01\x01\0\0".to_vec();
        for frame in [challenge, welcome] {
            said.extend((frame.len() as u32).to_be_bytes());
            said.extend(frame.as_bytes());
        }
        let error = run_with(&request("127.0.0.1", impostor(said.leak())), Some(TOKEN)).unwrap_err();
        assert!(matches!(error, SessionError::Unproven { has_none, .. } if has_none != needed), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    // So is a real one without a token; without a token given it is measured with.
    let open = Serving::with(ServerOptions {
        token: None,
        access: AccessRules { open: true, ..Default::default() },
        ..options()
    });
    let error = run_with(&open.request(), Some(TOKEN)).unwrap_err();
    assert!(matches!(error, SessionError::Unproven { has_none: true, .. }), "{error}");
    run(&open.request()).unwrap();
}

#[test]
fn guesses_of_the_token_are_refused_unread_after_ten() {
    let server = Serving::start();
    for guess in 0..10 {
        let error = run_with(&server.request(), Some(&format!("guess {guess}"))).unwrap_err();
        assert!(matches!(error, SessionError::Denied { refusal: Refusal::TokenWrong, .. }), "{error}");
    }
    for token in [TOKEN, "guess"] {
        let error = run_with(&server.request(), Some(token)).unwrap_err();
        assert!(error.to_string().contains("10 wrong tokens came from this address within 60 s"), "{error}");
    }
    // Who needs no token and gives none is let in.
    run(&server.request()).unwrap();
}

/// An address of this machine that is not of the loopback device: a server sees it as another machine's.
fn own_address() -> Option<std::net::IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|a| a.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

#[test]
fn other_machines_need_the_token() {
    let Some(own) = own_address() else { return };
    let server = Serving::start();
    let mut request = server.request();
    request.host = own.to_string();
    let error = run(&request).unwrap_err();
    assert!(matches!(error, SessionError::Denied { refusal: Refusal::TokenNeeded, .. }), "{error}");
    assert!(error.to_string().contains("--token"), "{error}");
    run_with(&request, Some(TOKEN)).unwrap();
    let open = Serving::with(ServerOptions {
        token: None,
        access: AccessRules { open: true, ..Default::default() },
        ..options()
    });
    request.port = open.address.port();
    run(&request).unwrap();
}

#[test]
fn what_a_server_does_not_grant_is_refused_with_its_limit() {
    let limits = Limits { duration: Nanos::millis(100), streams: 2, rate: None };
    let server = Serving::with(ServerOptions { limits, ..options() });
    let error = run(&server.request()).unwrap_err().to_string();
    assert!(error.contains("100 ms") && error.contains("--max-duration"), "{error}");
    let mut wide = server.request();
    (wide.spec.streams, wide.spec.duration) = (3, Nanos::millis(100));
    let error = run(&wide).unwrap_err().to_string();
    assert!(error.contains("allows at most 2 streams") && error.contains("--max-streams"), "{error}");
}

#[test]
fn bytes_give_way_to_the_longest_flow_and_say_so() {
    in_guest(|| {
        let limits = Limits { duration: Nanos::millis(200), streams: 2, rate: None };
        let server = Serving::with(ServerOptions { limits, ..options() });
        let mut request = server.request();
        (request.spec.bytes, request.spec.duration) = (Some("1T".parse().unwrap()), Nanos::secs(3600));
        let measurement = run(&request).unwrap();
        assert_eq!(measurement.request.spec.duration, Nanos::secs(3600));
        let ran_out = |caveat: &Caveat| match caveat {
            Caveat::TimeRanOut { asked_bytes, after_ns, .. } => {
                let most = if is_inside() { 200_100_000 } else { 300_000_000 };
                *asked_bytes == 1 << 40 && (200_000_000..most).contains(after_ns)
            }
            _ => false,
        };
        assert!(measurement.caveats.iter().any(ran_out), "{:?}", measurement.caveats);
    });
}

#[test]
fn a_congestion_control_that_an_end_lacks_is_named_at_once() {
    in_guest(|| {
        let server = Serving::start();
        for way in [Direction::To, Direction::From] {
            let mut request = server.request();
            (request.directions, request.spec.congestion) = (vec![way], Some("no_such_cc".to_owned()));
            let started = Instant::now();
            let error = run(&request).unwrap_err().to_string();
            // Nothing is a module in a guest.
            assert!(error.contains("no_such_cc") && error.contains("modprobe") != is_inside(), "{error}");
            assert!(started.elapsed().as_secs() < 5, "{error}");
        }
        server.assert_unharmed();
    });
}

/// Passes TCP connections on, and no datagrams.
fn tcp_only(to: std::net::SocketAddr) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let pass = |mut from: TcpStream, mut to: TcpStream| {
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        });
    };
    std::thread::spawn(move || {
        while let Ok((near, _)) = listener.accept() {
            let far = TcpStream::connect(("127.0.0.1", to.port())).unwrap();
            pass(near.try_clone().unwrap(), far.try_clone().unwrap());
            pass(far, near);
        }
    });
    port
}

#[test]
fn where_no_datagram_passes_round_trips_are_those_of_tcp() {
    in_guest(|| {
        let server = Serving::start();
        let measurement = run(&request("127.0.0.1", tcp_only(server.address))).unwrap();
        let over_tcp = |caveat: &Caveat| matches!(caveat, Caveat::ProbesOverTcp { .. });
        assert!(measurement.caveats.iter().any(over_tcp), "{:?}", measurement.caveats);
        assert!(measurement.rtt_idle_ns.is_some_and(|r| r.received >= 2 && r.min > 0));
        assert!(measurement.directions[0].rtt_ns.loaded.is_some_and(|r| r.received >= 1));
    });
}

#[test]
fn a_server_with_as_many_sessions_as_it_serves_says_so() {
    in_guest(|| {
        let server = Serving::with(ServerOptions {
            places: PlaceLimits { sessions: 1, ..options().places },
            ..options()
        });
        let mut long = server.request();
        long.spec.duration = Nanos::secs(3);
        let cancel = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&cancel);
        let first = std::thread::spawn(move || measure(&long, None, &mut |_| {}, &flag));
        wait_for(&server, |e| matches!(e, Event::Began { .. }));
        let error = run(&server.request()).unwrap_err();
        assert!(
            matches!(error, SessionError::Denied { refusal: Refusal::Busy { sessions: 1 }, .. }),
            "{error}"
        );
        // A cancelled client leaves, and its place is free again.
        cancel.store(true, Ordering::Relaxed);
        assert!(matches!(first.join().unwrap(), Err(SessionError::Cancelled)));
        wait_for(&server, |e| matches!(e, Event::Ended { .. }));
        server.assert_unharmed();
    });
}

fn wait_for(server: &Serving, wanted: impl Fn(&Event) -> bool) {
    let started = Instant::now();
    while !server.events().iter().any(&wanted) {
        assert!(started.elapsed().as_secs() < 20, "{:?}", server.events());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_is_not_bdp_is_turned_away_by_its_first_bytes() {
    in_guest(|| {
        let server = Serving::start();
        for bytes in
            [b"GET / HTTP/1.1\r\n\r\n".as_slice(), &[0x16, 3, 1, 2, 0], &[0xbd, 0, 0, 0], &[0xff; 64]]
        {
            let mut stream = TcpStream::connect(("127.0.0.1", server.address.port())).unwrap();
            stream.write_all(bytes).unwrap();
            assert_closed(&mut stream, Duration::from_secs(2));
        }
        assert_eq!(server.events().len(), 4, "{:?}", server.events());
        server.assert_unharmed();
    });
}

/// The other end closes, in order or not, without a byte more than `MAGIC` begins.
fn assert_closed(stream: &mut TcpStream, within: Duration) {
    stream.set_read_timeout(Some(within)).unwrap();
    match stream.read(&mut [0; 16]) {
        Ok(0) => {}
        Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn half_a_preamble_ends_at_its_deadline_and_harms_nobody() {
    in_guest(|| {
        let server = Serving::start();
        let mut halves = Vec::new();
        for bytes in [MAGIC.as_slice(), &Preamble::new(Kind::Data).encode(), &[]] {
            let mut stream = TcpStream::connect(("127.0.0.1", server.address.port())).unwrap();
            stream.write_all(bytes).unwrap();
            halves.push(stream);
        }
        server.assert_unharmed();
        halves.iter_mut().for_each(|stream| assert_closed(stream, Duration::from_secs(8)));
    });
}

#[test]
fn an_endless_frame_and_a_newer_client_are_refused() {
    in_guest(|| {
        let server = Serving::start();
        let mut stream = TcpStream::connect(("127.0.0.1", server.address.port())).unwrap();
        stream.write_all(&Preamble::new(Kind::Control).encode()).unwrap();
        stream.write_all(&[0xff; 4]).unwrap();
        let mut answer = Vec::new();
        stream.set_read_timeout(Some(Duration::from_secs(4))).unwrap();
        // Its preamble and greeting, and then the end: without waiting for 4 GiB.
        let _ = stream.read_to_end(&mut answer);
        assert_eq!(answer[..PREAMBLE_BYTES], Preamble::new(Kind::Control).encode());
        assert!(
            matches!(server.events().last(), Some(Event::TurnedAway { why, .. }) if why.contains("4294967295"))
        );

        let mut newer = TcpStream::connect(("127.0.0.1", server.address.port())).unwrap();
        let mut preamble = Preamble::new(Kind::Control).encode();
        preamble[4] = VERSION + 1;
        newer.write_all(&preamble).unwrap();
        let mut answer = Vec::new();
        newer.set_read_timeout(Some(Duration::from_secs(4))).unwrap();
        newer.read_to_end(&mut answer).unwrap();
        assert!(String::from_utf8_lossy(&answer[12..]).contains(r#""speaks":1"#));
        server.assert_unharmed();
    });
}

#[test]
fn keys_of_no_session_open_nothing() {
    in_guest(|| {
        let server = Serving::start();
        for kind in [Kind::Data, Kind::Probe] {
            let mut stream = TcpStream::connect(("127.0.0.1", server.address.port())).unwrap();
            let ticket = Ticket { key: [7; 16], flow: 1, stream: 0 };
            let bytes: [u8; TICKET_BYTES] = ticket.encode(kind);
            stream.write_all(&bytes).unwrap();
            assert_closed(&mut stream, Duration::from_secs(2));
        }
        // Nor does a datagram with one get an answer.
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", server.address.port())).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let probe = bdp_wire::session::Probe { key: [7; 16], number: 0, sent_ns: 0 };
        socket.send(&probe.encode()).unwrap();
        assert!(socket.recv(&mut [0; 64]).is_err());
        server.assert_unharmed();
    });
}

#[test]
fn a_thousand_idle_connections_keep_nobody_out() {
    in_guest(|| {
        let _ = bdp_sys::process::raise_descriptor_limit();
        let server = Serving::start();
        let idle: Vec<TcpStream> =
            (0..1000).map(|_| TcpStream::connect(("127.0.0.1", server.address.port())).unwrap()).collect();
        server.assert_unharmed();
        drop(idle);
    });
}

#[test]
fn a_server_that_ends_in_mid_test_is_an_error_at_once() {
    in_guest(|| {
        let server = Serving::start();
        let mut long = server.request();
        long.spec.duration = Nanos::secs(9);
        let (tell, told) = std::sync::mpsc::channel();
        let client = std::thread::spawn(move || {
            let mut tell = |progress: &Progress| {
                let _ = tell.send(progress.stage);
            };
            measure(&long, None, &mut tell, &AtomicBool::new(false))
        });
        told.iter().find(|stage| matches!(stage, Stage::Direction(_))).unwrap();
        let started = Instant::now();
        drop(server);
        // What came before is kept, where anything did.
        let error = match client.join().unwrap().unwrap_err() {
            SessionError::Broken { cause, measurement } => {
                assert_eq!(measurement.error.as_deref(), Some(cause.to_string().as_str()));
                *cause
            }
            other => other,
        };
        assert!(matches!(error, SessionError::Lost { .. }), "{error}");
        assert!(started.elapsed().as_secs() < 5);
    });
}
