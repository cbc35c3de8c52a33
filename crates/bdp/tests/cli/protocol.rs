//! `bdp serve` by its specification, `docs/protocol.md`: a client that is written from that text alone, and shares with
//! bdp only the HMAC of the token's proof.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::time::Duration;

use crate::support::Bench;
use crate::support::serving::{self, Serving};
use bdp_wire::proof::{Exchange, Prover, hex, unhex};
use serde_json::{Value, json};

const TOKEN: &str = "k7f3";

fn serve(bench: &Bench) -> Serving {
    serving::serve(bench, &format!("--token {TOKEN}"))
}

fn preamble(kind: u8) -> Vec<u8> {
    vec![0xbd, b'b', b'd', b'p', 1, kind, 0, 0]
}

fn ticket(kind: u8, key: &[u8], flow: u32, stream: u32) -> Vec<u8> {
    [&preamble(kind)[..], key, &flow.to_be_bytes(), &stream.to_be_bytes()].concat()
}

fn probe(key: &[u8], number: u64) -> Vec<u8> {
    [&preamble(3)[..], key, &number.to_be_bytes(), &77_u64.to_be_bytes()].concat()
}

/// A control connection.
struct Control(TcpStream);

impl Control {
    fn open(port: u16) -> Self {
        let mut stream = connect(port);
        stream.write_all(&preamble(1)).unwrap();
        let mut answer = [0; 8];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer[..], preamble(1));
        Self(stream)
    }

    /// Greets it with a token; the key of the session.
    fn greet(&mut self) -> [u8; 16] {
        let challenge = self.read();
        assert_eq!(challenge["challenge"]["token_needed"], false, "loopback needs none");
        let exchange = Exchange {
            server_nonce: unhex(challenge["challenge"]["nonce"].as_str().unwrap()).unwrap(),
            client_nonce: [9; 32],
        };
        let proof = exchange.prove(TOKEN, Prover::Client);
        self.write(&json!({"bdp": "another", "nonce": hex(&[9; 32]), "proof": proof, "new_member": 1}));
        let welcome = &self.read()["welcome"];
        assert!(exchange.verify(TOKEN, Prover::Server, welcome["proof"].as_str().unwrap()));
        assert_eq!(welcome["limits"], json!({"duration": "86400000000000ns", "streams": 4096}));
        unhex(welcome["key"].as_str().unwrap()).unwrap()
    }

    fn write(&mut self, message: &Value) {
        let body = message.to_string();
        self.0.write_all(&[&(body.len() as u32).to_be_bytes(), body.as_bytes()].concat()).unwrap();
    }

    fn read(&mut self) -> Value {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).unwrap();
        let mut body = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    fn call(&mut self, id: u64, request: Value) -> Value {
        self.write(&json!({"id": id, "body": request}));
        let mut answer = self.read();
        assert_eq!(answer["id"], id);
        answer["body"].take()
    }
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// An order with the members that may not be null.
fn order(flow: u32, role: &str, more: Value) -> Value {
    let mut order = json!({
        "flow": flow, "role": role, "streams": 1, "duration": "300ms", "omit": "0s", "interval": "100ms",
        "length_bytes": 16384, "nodelay": false
    });
    order.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "prepare": order })
}

#[test]
fn a_client_written_from_the_specification_is_served() {
    let bench = Bench::new();
    let server = serve(&bench);
    let mut control = Control::open(server.port);
    let key = control.greet();

    // Probes: datagrams, exactly; and on a connection.
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.connect(("127.0.0.1", server.port)).unwrap();
    udp.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut room = [0; 64];
    udp.send(&[&probe(&key, 6)[..], &[0]].concat()).unwrap();
    udp.send(&probe(&key, 7)[..39]).unwrap();
    udp.send(&probe(&key, 7)).unwrap();
    let length = udp.recv(&mut room).unwrap();
    assert_eq!(room[..length], probe(&key, 7), "a probe alone comes back, and whole");
    let mut connection = connect(server.port);
    connection.write_all(&[ticket(3, &key, 0, 0), probe(&key, 8)].concat()).unwrap();
    connection.read_exact(&mut room[..40]).unwrap();
    assert_eq!(room[..40], probe(&key, 8));

    // The server receives until the duration has passed, and ends the flow.
    assert_eq!(control.call(1, order(1, "receive", json!({}))), "done");
    let mut data = connect(server.port);
    data.write_all(&ticket(2, &key, 1, 0)).unwrap();
    assert_eq!(control.call(2, json!({"begin": {"flow": 1}})), "done");
    while data.write_all(&[0; 16384]).is_ok() {}
    let received = &control.call(3, json!({"collect": {"flow": 1}}))["received"];
    assert_eq!(received["ended"], "duration");
    assert!(received["duration_ns"].as_u64().unwrap() >= 300_000_000, "{received}");
    assert!(received["samples"].as_array().unwrap().len() >= 3, "{received}");

    // The server sends so many bytes over two streams, and closes them.
    let sent = json!({"streams": 2, "bytes": 100_000});
    assert_eq!(control.call(4, order(2, "send", sent)), "done");
    let mut streams = [connect(server.port), connect(server.port)];
    for (stream, index) in streams.iter_mut().zip(0..) {
        stream.write_all(&ticket(2, &key, 2, index)).unwrap();
    }
    assert_eq!(control.call(5, json!({"begin": {"flow": 2}})), "done");
    let arrived: usize = streams.iter_mut().map(|s| s.read_to_end(&mut Vec::new()).unwrap()).sum();
    assert_eq!(arrived, 100_000);
    drop(streams);
    assert_eq!(control.call(6, json!({"collect": {"flow": 2}}))["sent"]["bytes"], 100_000);

    // Requests that can't be met fail, and the session goes on.
    assert!(control.call(7, json!({"stop": {"flow": 9}}))["failed"]["error"].is_string());
    assert!(control.call(8, order(3, "send", json!({"interval": "1us"})))["failed"]["error"].is_string());
    assert_eq!(control.call(9, json!("facts"))["facts"]["system"], "Linux");
    drop(control);

    // The end of the session is the end of its connections.
    assert_eq!(connection.read(&mut room).unwrap_or(0), 0);
    server.process.signal("TERM");
    let ended = server.process.wait();
    assert_eq!(ended.code(), 0, "{}", ended.err);
    assert!(ended.err.contains("2 flows"), "{}", ended.err);
}

#[test]
fn a_client_that_leaves_while_a_flow_runs_is_told_of() {
    let bench = Bench::new();
    let mut server = serve(&bench);
    let mut control = Control::open(server.port);
    let key = control.greet();
    assert_eq!(control.call(1, order(1, "receive", json!({"duration": "30s"}))), "done");
    let mut data = connect(server.port);
    data.write_all(&ticket(2, &key, 1, 0)).unwrap();
    assert_eq!(control.call(2, json!({"begin": {"flow": 1}})), "done");
    data.write_all(&[0; 16384]).unwrap();
    // The data connection stays: its end would be the flow's.
    drop(control);
    server.process.wait_until("the session ended", |p| p.err().contains("ended after"));
    assert!(server.process.err().contains("disconnected during a flow"), "{}", server.process.err());
}

#[test]
fn a_server_answers_as_specified_what_it_does_not_serve() {
    let bench = Bench::new();
    let server = serve(&bench);

    let mut other_version = connect(server.port);
    other_version.write_all(&[0xbd, b'b', b'd', b'p', 9, 1, 0, 0]).unwrap();
    let mut answer = Vec::new();
    other_version.read_to_end(&mut answer).unwrap();
    let refusal = br#"{"refused":{"version":{"speaks":1}}}"#;
    assert_eq!(answer, [&preamble(1)[..], &(refusal.len() as u32).to_be_bytes(), refusal].concat());

    let mut wrong_token = Control::open(server.port);
    wrong_token.read();
    wrong_token.write(&json!({"bdp": "another", "nonce": hex(&[9; 32]), "proof": hex(&[9; 32])}));
    assert_eq!(wrong_token.read(), json!({"refused": "token_wrong"}));

    for bytes in [b"GET / HT".to_vec(), preamble(4), [&preamble(1)[..7], &[1]].concat()] {
        let mut stranger = connect(server.port);
        stranger.write_all(&bytes).unwrap();
        let said = stranger.read(&mut [0; 64]);
        assert!(matches!(said, Ok(0) | Err(_)), "{bytes:?} was answered with {said:?} bytes");
        let _ = stranger.shutdown(Shutdown::Both);
    }

    Control::open(server.port).greet();
}
