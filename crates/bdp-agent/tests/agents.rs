//! Two agents of one owner carry flows between each other, as the hosts of a lab do, here over loopback.

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use bdp_agent::remote::Agents;
use bdp_agent::{agent, expect_answer};
use bdp_model::case::ProbeKind;
use bdp_model::flow::FlowSpec;
use bdp_model::flow::payload::Zerocopy;
use bdp_model::units::{ByteCount, Nanos};
use bdp_wire::control::{Answer, FlowOrder, ProbeOrder, Probed, Received, Request, Role, Sent, StreamSource};
use bdp_wire::datagram::DatagramOrder;

const PATIENCE: Nanos = Nanos::secs(20);
const LONG: Duration = Duration::from_secs(60);

fn agents() -> Agents {
    Agents::new(["near", "far"].map(|name| {
        let (asking, answering) = UnixStream::pair().unwrap();
        let writer = answering.try_clone().unwrap();
        thread::spawn(move || agent::serve(answering, writer));
        (name.to_owned(), asking)
    }))
    .unwrap()
}

fn order(streams: u32, duration: Nanos) -> FlowOrder {
    let address = "127.0.0.1:0".parse().unwrap();
    let source = StreamSource::Listen { address, patience: PATIENCE, tcp_rmem_bytes: None };
    let spec = FlowSpec {
        streams,
        duration,
        interval: Nanos::millis(50),
        length: ByteCount::bytes(10_000),
        zerocopy: Zerocopy::Off,
        ..FlowSpec::default()
    };
    FlowOrder::of(3, Role::Receive, source, &spec)
}

/// From near to far.
fn carry(agents: &mut Agents, receive: FlowOrder, bytes: Option<u64>) -> (Received, Sent) {
    let listening = agents.call("far", Request::Prepare(Box::new(receive.clone())), LONG).unwrap();
    let port = expect_answer!(listening, Answer::Listening { port } => port).unwrap();
    let to = SocketAddr::from(([127, 0, 0, 1], port));
    let source = StreamSource::Connect { to, start: Nanos::millis(10), patience: PATIENCE };
    let spec = FlowSpec { bytes: bytes.map(ByteCount::bytes), ..receive.spec };
    let send = FlowOrder { role: Role::Send, source, spec, ..receive };
    let collecting = agents.ask("far", Request::Collect { flow: 3 }).unwrap();
    assert_eq!(agents.call("near", Request::Prepare(Box::new(send)), LONG).unwrap(), Answer::Done);
    assert_eq!(agents.call("near", Request::Begin { flow: 3 }, LONG).unwrap(), Answer::Done);
    let sent = agents.call("near", Request::Collect { flow: 3 }, LONG).unwrap();
    let received = agents.fetch(collecting, LONG).unwrap();
    let received = expect_answer!(received, Answer::Received(received) => received).unwrap();
    (received, expect_answer!(sent, Answer::Sent(sent) => sent).unwrap())
}

#[test]
fn listener_and_connector_carry_a_volume_over_all_streams() {
    let (received, sent) = carry(&mut agents(), order(3, Nanos::secs(30)), Some(3_000_001));
    assert_eq!((sent.bytes, received.bytes), (3_000_001, 3_000_001));
    assert_eq!(received.stream_bytes.len(), 3);
}

#[test]
fn each_stream_of_datagrams_has_a_port_of_its_own() {
    let datagrams = DatagramOrder {
        payload_bytes: Some(500),
        rate_bps: Some(2_000_000),
        dont_fragment: false,
        path_mtu: None,
    };
    let order = FlowOrder { datagrams: Some(datagrams), ..order(3, Nanos::millis(200)) };
    let (received, sent) = carry(&mut agents(), order, None);
    let (gave, got) = (sent.datagrams.unwrap(), received.datagrams.unwrap());
    assert!(gave.sent + gave.left_out >= 3 * 98, "{gave:?}");
    assert_eq!((got.counts.received, got.counts.duplicated), (gave.sent, 0));
    assert_eq!(received.stream_bytes.iter().sum::<u64>(), gave.sent * 500);
    assert!(received.stream_bytes.iter().all(|&bytes| bytes > 0));
}

#[test]
fn probes_end_when_their_number_is_stopped() {
    let mut agents = agents();
    let echo = Request::Echo { address: "127.0.0.1:0".parse().unwrap(), kind: ProbeKind::Udp };
    let port =
        expect_answer!(agents.call("far", echo, LONG).unwrap(), Answer::Listening { port } => port).unwrap();
    let probes = ProbeOrder {
        flow: 7,
        kind: ProbeKind::Udp,
        to: SocketAddr::from(([127, 0, 0, 1], port)),
        offset: Nanos::ZERO,
        interval: Nanos::millis(10),
        jitter: Nanos::ZERO,
        seed: 1,
        duration: Nanos::secs(3600),
        patience: Nanos::secs(5),
    };
    let probing = agents.ask("near", Request::Probe(probes)).unwrap();
    assert_eq!(agents.call("near", Request::Stop { flow: 7 }, LONG).unwrap(), Answer::Done);
    let probed: Probed =
        expect_answer!(agents.fetch(probing, LONG).unwrap(), Answer::Probed(probed) => probed).unwrap();
    // An hour of them was ordered. The last may be under way still: it is awaited no longer than others took.
    assert!(probed.probes.len() < 360_000 && probed.probes.iter().all(|probe| !probe.failed), "{probed:?}");
}
