//! The streams of a test: how they are opened, and what moves over them.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use bdp_model::measurement::{Direction, MeasureRequest};
use bdp_model::units::Nanos;
use bdp_sys::tcp_info;
use bdp_wire::iperf3::datagram::{HELLO, is_answer};
use bdp_wire::iperf3::exchange::Step;

use super::order::{wide_counters, write_bytes};
use super::test::{SET_UP, STEP, Test};
use crate::iperf3::flow::Flow;
use crate::iperf3::{tcp, udp};
use bdp_flow::datagram::{Layout, Stream, payload_bytes};
use bdp_flow::error::FlowError;
use bdp_flow::session::dial;
use bdp_flow::session::error::{Result, SessionError};
use bdp_flow::session::reporter::Reporter;
use bdp_flow::session::{datagrams, options};
use bdp_flow::streams::Streams;

/// Interval of hellos: that server takes a second one for data once it has accepted the first.
const HELLO_AGAIN: Duration = Duration::from_secs(2);
/// How long the answer to a hello is waited for before the control connection is looked at.
const ANSWERED: Duration = Duration::from_millis(50);
/// How long the control connection is looked at.
const HEARD: Duration = Duration::from_millis(1);

/// Returns the bytes per write; for datagrams the requested payload, or what the path carries.
pub(super) fn length(request: &MeasureRequest, address: SocketAddr) -> Result<u64> {
    let Some(udp) = &request.spec.udp else { return Ok(write_bytes(request)) };
    let layout = Layout::Iperf3 { wide: wide_counters(request) };
    let sockets = datagrams::sockets(request, address, Direction::To, 1, None)?;
    Ok(sockets.first().map_or(0, |socket| payload_bytes(udp.datagram_bytes, &layout, socket) as u64))
}

/// Opens the streams one after the other: the server distinguishes them by their order. Returns them with the round
/// trips of their handshakes.
pub(super) fn open(
    request: &MeasureRequest,
    ways: &[Direction],
    test: &mut Test,
    reporter: &Reporter<'_>,
) -> Result<(Streams, Vec<u64>)> {
    test.expect(Step::OpenStreams, reporter, SET_UP)?;
    let count = request.spec.streams * ways.len() as u32;
    let mut handshakes = Vec::new();
    let mut prepared = false;
    let streams = match request.spec.udp {
        None => {
            let streams = connect(request, ways, count, test, reporter)?;
            handshakes.extend(streams.iter().filter_map(|s| tcp_info::read(s).ok()?.rtt_ns));
            Streams::Connections(streams)
        }
        Some(_) => {
            let mut sockets = Vec::new();
            for (&way, index) in ways.iter().zip(0..) {
                let streams = request.spec.streams;
                let first_port = request.client_port.map(|port| u32::from(port) + index * streams);
                sockets.extend(datagrams::sockets(request, test.address, way, streams, first_port)?);
            }
            for socket in &sockets {
                prepared = greet(socket, test, reporter)?;
            }
            Streams::Datagrams(udp::streams(sockets, wide_counters(request)))
        }
    };
    if !prepared {
        test.expect(Step::Prepare, reporter, "stream setup")?;
    }
    test.expect(Step::Run, reporter, "the start of the test")?;
    Ok((streams, handshakes))
}

fn connect(
    request: &MeasureRequest,
    ways: &[Direction],
    count: u32,
    test: &Test,
    reporter: &Reporter<'_>,
) -> Result<Vec<TcpStream>> {
    let mut streams = Vec::new();
    for index in 0..count {
        let way = if index < request.spec.streams { ways[0] } else { Direction::From };
        let first_port = request.client_port.map(|port| u32::from(port) + index);
        let options = options::options(request, way);
        let cookie = test.cookie;
        streams.extend(dial::connect_all(
            test.address,
            1,
            request,
            first_port,
            &options,
            |_, mut stream| std::io::Write::write_all(&mut stream, cookie.bytes()),
            reporter.cancel,
        )?);
    }
    Ok(streams)
}

/// Says hello until the server answers or continues: the answer to the last stream may be lost. Returns whether it
/// continues.
fn greet(socket: &UdpSocket, test: &mut Test, reporter: &Reporter<'_>) -> Result<bool> {
    let failed = FlowError::io;
    socket.set_read_timeout(Some(ANSWERED)).map_err(failed("open a stream of datagrams"))?;
    let (since, mut said) = (Instant::now(), None::<Instant>);
    let mut room = [0; 16];
    loop {
        if said.is_none_or(|said| said.elapsed() >= HELLO_AGAIN) {
            // A failed send is treated as a loss: it is retried.
            let _ = socket.send(&HELLO);
            said = Some(Instant::now());
        }
        match socket.recv(&mut room) {
            Ok(length) if is_answer(&room[..length]) => return Ok(false),
            Ok(_) => {}
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) => {}
            // An ICMP message; a firewall may send one while another lets the next hello through.
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => std::thread::sleep(ANSWERED),
            Err(e) => return Err(failed("receive a datagram")(e).into()),
        }
        let heard = test.control.hear(HEARD).map_err(|e| test.lost(&e, "stream setup"))?;
        if let Some(byte) = heard {
            test.take(byte, Step::Prepare)?;
            return Ok(true);
        }
        reporter.check_cancel()?;
        if since.elapsed() > STEP {
            let waited = since.elapsed().into();
            return Err(SessionError::NoDatagrams { address: test.address, waited });
        }
    }
}

/// Starts the flows, in the order of the directions.
pub(super) fn start(
    request: &MeasureRequest,
    ways: &[Direction],
    streams: Streams,
    length_bytes: u64,
) -> Result<Vec<Flow>> {
    match streams {
        Streams::Connections(streams) => start_connections(request, ways, streams),
        Streams::Datagrams(streams) => start_datagrams(request, ways, streams, length_bytes),
    }
}

fn start_connections(
    request: &MeasureRequest,
    ways: &[Direction],
    streams: Vec<TcpStream>,
) -> Result<Vec<Flow>> {
    let spec = &request.spec;
    let plan = tcp::Plan {
        length_bytes: spec.length.as_bytes(),
        longest: spec.duration,
        omit: spec.omit,
        volume_bytes: spec.bytes.map(|b| b.as_bytes()).filter(|_| spec.omit == Nanos::ZERO),
        // The server paces what it sends itself.
        rate_bps: spec.pacing_bps,
        interval: spec.interval,
        autotuned: spec.socket_buffer.is_none() && spec.window.is_none(),
        zerocopy: spec.zerocopy,
        cpus: request.near_cpus.clone(),
    };
    by_way(
        ways,
        streams,
        |streams| tcp::Flow::send(streams, &plan).map(Flow::Connections),
        |streams| tcp::Flow::receive(streams, &plan).map(Flow::Connections),
    )
}

fn start_datagrams(
    request: &MeasureRequest,
    ways: &[Direction],
    streams: Vec<Stream>,
    length_bytes: u64,
) -> Result<Vec<Flow>> {
    let mut sending = datagrams::send_plan(request);
    sending.payload_bytes = u32::try_from(length_bytes).ok();
    sending.bytes = sending.bytes.filter(|_| request.spec.omit == Nanos::ZERO);
    let (receiving, cpus) = (datagrams::receive_plan(request), request.near_cpus.clone());
    by_way(
        ways,
        streams,
        |streams| udp::Flow::send(streams, sending.clone(), cpus.clone()).map(Flow::Datagrams),
        |streams| udp::Flow::receive(streams, receiving.clone(), cpus.clone()).map(Flow::Datagrams),
    )
}
/// A flow for each direction; of two the streams of the server's are the last, and it may send already.
fn by_way<S>(
    ways: &[Direction],
    mut streams: Vec<S>,
    send: impl Fn(Vec<S>) -> Result<Flow, FlowError>,
    receive: impl Fn(Vec<S>) -> Result<Flow, FlowError>,
) -> Result<Vec<Flow>> {
    Ok(match ways {
        [Direction::To] => vec![send(streams)?],
        [Direction::From] => vec![receive(streams)?],
        _ => {
            let back = streams.split_off(streams.len() / 2);
            let receiving = receive(back)?;
            vec![send(streams)?, receiving]
        }
    })
}
