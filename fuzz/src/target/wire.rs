//! What a server reads from whoever connects, and a client from a server.

use bdp_wire::control::{Answer, FlowOrder, Numbered, Request};
use bdp_wire::datagram::{HEADER_BYTES, Header, Opening, Step};
use bdp_wire::echo::Echo;
use bdp_wire::icmp::Quote;
use bdp_wire::pattern::Checker;
use bdp_wire::session::{Admission, Greeting, Hello, Kind, LONGEST_REQUEST, Preamble, Probe, Ticket};
use bdp_wire::tuning::{Sealed, TuneAnswer, TuneRequest};
use bdp_wire::{frame, proof, setup};

use super::{comes_back, text};
use crate::parser::Target;

/// Targets of crate `bdp-wire`.
pub const WIRE: &[Target] = &[
    Target { name: "frame", run: frames, seeds: frame_seeds },
    Target { name: "greeting", run: greetings, seeds: greeting_seeds },
    Target { name: "request", run: requests, seeds: request_seeds },
    Target { name: "control", run: controls, seeds: control_seeds },
    Target { name: "tuning", run: tunings, seeds: tuning_seeds },
    Target { name: "preamble", run: preambles, seeds: preamble_seeds },
    Target { name: "probe", run: probes, seeds: probe_seeds },
    Target { name: "datagram", run: datagrams, seeds: datagram_seeds },
    Target { name: "proof", run: proofs, seeds: proof_seeds },
    Target { name: "pattern", run: patterns, seeds: pattern_seeds },
    Target { name: "icmp", run: quotes, seeds: quote_seeds },
];

/// However a stream is cut, the same requests come out of it, and none is longer than allowed.
fn frames(bytes: &[u8]) {
    let mut reader = bytes;
    let mut from_reader = Vec::new();
    while let Ok(request) = frame::read_bounded::<Numbered<Request>>(&mut reader, LONGEST_REQUEST) {
        from_reader.push(request);
    }
    let mut arrived = bytes;
    let mut from_bytes = Vec::new();
    while let Ok(Some((request, used))) = frame::decode::<Numbered<Request>>(arrived) {
        assert!(used <= arrived.len() && used > 0);
        from_bytes.push(request);
        arrived = &arrived[used..];
    }
    assert!(from_bytes.starts_with(&from_reader));
}

fn frame_seeds() -> Vec<Vec<u8>> {
    let request = |body| frame::encode(&Numbered { id: 7, body }).expect("a request is short");
    let mut two = request(Request::Facts);
    two.extend(request(Request::Begin { flow: 1 }));
    vec![two, request(Request::Stop { flow: u32::MAX }), vec![0, 0, 0, 2, b'{', b'}'], vec![0xff; 8]]
}

fn greetings(bytes: &[u8]) {
    comes_back::<Greeting>(bytes);
    comes_back::<Hello>(bytes);
    comes_back::<Admission>(bytes);
}

fn greeting_seeds() -> Vec<Vec<u8>> {
    [
        r#"{"challenge":{"bdp":"0.1.0","nonce":"00","token_needed":true}}"#,
        r#"{"challenge":{"bdp":"0.1.0","nonce":"00","token_needed":true,"tune":true}}"#,
        r#"{"bdp":"0.1.0","nonce":"00ff","proof":null,"tune_proof":"00"}"#,
        r#"{"refused":{"busy":{"sessions":16}}}"#,
        r#"{"bdp":"0.1.0","nonce":"00ff","proof":null}"#,
        r#"{"welcome":{"key":"00","proof":"00","limits":{"duration":"1m","streams":16}}}"#,
    ]
    .map(|seed| seed.as_bytes().to_vec())
    .to_vec()
}

fn requests(bytes: &[u8]) {
    comes_back::<Numbered<Request>>(bytes);
    comes_back::<Numbered<Answer>>(bytes);
    comes_back::<FlowOrder>(bytes);
}

fn request_seeds() -> Vec<Vec<u8>> {
    let order = r#"{"flow":1,"role":"receive","streams":1,"duration":"10s","omit":"0ns","interval":"100ms","bytes":null,
        "length_bytes":131072,"window_bytes":65536,"socket_buffer_bytes":null,"congestion":"cubic","nodelay":true,"dscp":46,
        "zerocopy":"msg","check_payload":true,"cpus":[0,3]}"#;
    [
        r#"{"id":0,"body":"facts"}"#.to_owned(),
        r#"{"id":1,"body":{"collect":{"flow":1}}}"#.to_owned(),
        order.to_owned(),
        format!(r#"{{"id":2,"body":{{"prepare":{order}}}}}"#),
        r#"{"id":3,"body":{"failed":{"error":"no"}}}"#.to_owned(),
    ]
    .map(String::into_bytes)
    .to_vec()
}

fn controls(bytes: &[u8]) {
    comes_back::<Numbered<Request>>(bytes);
    comes_back::<Numbered<Answer>>(bytes);
    comes_back::<setup::HostSetup>(bytes);
    comes_back::<setup::SetupAnswer>(bytes);
}

fn control_seeds() -> Vec<Vec<u8>> {
    [
        r#"{"id":0,"body":{"echo":{"address":"10.0.0.1:0","kind":"udp"}}}"#,
        r#"{"id":1,"body":{"read_sysctls":{"names":["net.ipv4.tcp_rmem"]}}}"#,
        r#"{"id":2,"body":{"listening":{"port":5201}}}"#,
    ]
    .map(|seed| seed.as_bytes().to_vec())
    .to_vec()
}

/// What a client that knows the tune token may write, and a server answer. Nothing else opens a seal.
fn tunings(bytes: &[u8]) {
    comes_back::<TuneRequest>(bytes);
    comes_back::<TuneAnswer>(bytes);
    let exchange = proof::Exchange { server_nonce: [1; 32], client_nonce: [2; 32] };
    if let Ok(sealed) = serde_json::from_slice::<Sealed>(bytes) {
        let opened = sealed.open::<TuneRequest>(&exchange, "token", proof::Prover::TuneClient, 1);
        let again = exchange.seal("token", proof::Prover::TuneClient, 1, &sealed.message);
        assert!(opened.is_err() || again.eq_ignore_ascii_case(&sealed.seal));
    }
}

fn tuning_seeds() -> Vec<Vec<u8>> {
    let change = r#"{"end":"far","target":{"kind":"sysctl","name":"net.ipv4.tcp_rmem"},"from":null,"to":"4096 131072 6291456",
        "reason":{"kind":"buffer","needed_bytes":1,"in_flight_bytes":1},"gain":null}"#;
    let target = r#"{"kind":"route","to":"192.0.2.1","attribute":"initcwnd"}"#;
    [
        r#""state""#.to_owned(),
        r#"{"confirm":{"journal":1}}"#.to_owned(),
        format!(r#"{{"apply":{{"changes":[{change}],"keep_for":"10m","force":true}}}}"#),
        format!(r#"{{"applied":{{"journal":1,"until_unix_ms":2,"steps":[{{"target":{target},"before":null,"after":"20","already":false}}]}}}}"#),
        r#"{"refused":{"cause":"bounds","text":"no"}}"#.to_owned(),
        r#"{"message":"\"state\"","seal":"00"}"#.to_owned(),
        r#"{"state":{"client":"192.0.2.1","journals":[],"damaged":[{"path":"a","cause":"b"}]}}"#.to_owned(),
    ]
    .map(String::into_bytes)
    .to_vec()
}

/// What is refused stays refused whatever follows; what is whole does not depend on what follows.
fn preambles(bytes: &[u8]) {
    let mut before = Preamble::decode(&[]);
    for end in 0..=bytes.len().min(64) {
        let now = Preamble::decode(&bytes[..end]);
        assert!(matches!(before, Ok(None)) || now == before, "{before:?}, then {now:?}");
        before = now;
    }
    if let Some(ticket) = Ticket::decode(bytes) {
        assert_eq!(Ticket::decode(&ticket.encode(Kind::Data)), Some(ticket));
    }
}

fn preamble_seeds() -> Vec<Vec<u8>> {
    let ticket = Ticket { key: [7; 16], flow: 1, stream: 2 };
    vec![
        Preamble::new(Kind::Control).encode().to_vec(),
        ticket.encode(Kind::Data).to_vec(),
        ticket.encode(Kind::Probe).to_vec(),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
    ]
}

fn probes(bytes: &[u8]) {
    if let Some(probe) = Probe::decode(bytes) {
        assert_eq!(probe.encode(), bytes);
    }
    if let Some(echo) = Echo::read(bytes) {
        let mut again = bytes.to_vec();
        echo.put(&mut again);
        assert_eq!(Echo::read(&again), Some(echo));
    }
}

fn probe_seeds() -> Vec<Vec<u8>> {
    let mut echo = vec![0; 64];
    Echo { key: [1; 16], number: 3, far: None }.put(&mut echo);
    vec![Probe { key: [9; 16], number: 1, sent_ns: 2 }.encode().to_vec(), echo]
}

/// What opens a stream of datagrams and what they begin with: read only from exactly what is written.
fn datagrams(bytes: &[u8]) {
    if let Some(opening) = Opening::decode(bytes) {
        assert_eq!(opening.encode(), bytes);
        assert_eq!(opening.cookie_for(&[7; 32], "192.0.2.1:9"), opening.cookie_for(&[7; 32], "192.0.2.1:9"));
    }
    let Some(tag) = bytes.get(8..).and_then(|rest| rest.first_chunk::<8>()) else { return };
    if let Some(header) = Header::read(bytes, tag) {
        let mut written = [0; HEADER_BYTES];
        header.write(&mut written);
        assert_eq!(written, bytes[..HEADER_BYTES]);
    }
    let mut other = *tag;
    other[0] ^= 1;
    assert_eq!(Header::read(bytes, &other), None);
}

fn datagram_seeds() -> Vec<Vec<u8>> {
    let opening = Opening {
        step: Step::Prove,
        key: [3; 16],
        flow: 1,
        stream: 0,
        cookie: [5; 16],
        client_ns: 1,
        server_ns: 2,
    };
    let mut datagram = [0; HEADER_BYTES];
    Header { last: false, tag: [5; 8], number: 1, sent_ns: 2 }.write(&mut datagram);
    vec![
        opening.encode().to_vec(),
        Opening { step: Step::Ask, ..opening }.encode().to_vec(),
        [&datagram[..], &[1; 40]].concat(),
    ]
}

/// What is quoted is the end of the message, and its ports are in its beginning.
fn quotes(bytes: &[u8]) {
    for quote in [Quote::of_ipv4(bytes), Quote::of_ipv6(bytes)].into_iter().flatten() {
        assert!(bytes.ends_with(quote.transport));
        assert!(quote.ports().is_none() || quote.transport.len() >= 4);
    }
}

fn quote_seeds() -> Vec<Vec<u8>> {
    let header = |protocol: u8| {
        let mut header = [0; 20];
        (header[0], header[8], header[9]) = (0x45, 1, protocol);
        header
    };
    let exceeded = [11, 0, 0, 0, 0, 0, 0, 0];
    let ipv4 = [&header(1)[..], &exceeded, &header(17), &[7; 16]].concat();
    let mut ipv6 = vec![3, 0, 0, 0, 0, 0, 0, 0, 0x60];
    ipv6.resize(8 + 40 + 16, 58);
    vec![ipv4, ipv6]
}

fn proofs(bytes: &[u8]) {
    let Some(key) = proof::unhex::<16>(text(bytes)) else { return };
    assert_eq!(proof::hex(&key), text(bytes).to_ascii_lowercase());
}

fn proof_seeds() -> Vec<Vec<u8>> {
    vec![b"000102030405060708090a0b0c0d0e0f".to_vec(), b"zz".to_vec()]
}

/// Nothing but the pattern is right, and however it comes in pieces the count is the same.
fn patterns(bytes: &[u8]) {
    let (mut whole, mut pieces) = (Checker::new(3), Checker::new(3));
    whole.check(bytes);
    let cut = bytes.first().map_or(1, |&b| usize::from(b) + 1);
    bytes.chunks(cut).for_each(|piece| pieces.check(piece));
    assert_eq!(whole, pieces);
    let mut right = vec![0; bytes.len()];
    bdp_wire::pattern::fill(3, 0, &mut right);
    let wrong = bytes.iter().zip(&right).filter(|(a, b)| a != b).count() as u64;
    assert_eq!((whole.wrong_bytes(), whole.checked_bytes()), (wrong, bytes.len() as u64));
}

fn pattern_seeds() -> Vec<Vec<u8>> {
    let mut right = vec![0; 9000];
    bdp_wire::pattern::fill(3, 0, &mut right);
    vec![right]
}
