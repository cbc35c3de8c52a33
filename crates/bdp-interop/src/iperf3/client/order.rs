//! The request to an iperf3 server, and what it cannot express.

use bdp_model::flow::USUAL_LENGTH;
use bdp_model::measurement::{Direction, MeasureRequest, PeerProtocol, options};
use bdp_wire::iperf3::datagram::header_bytes;
use bdp_wire::iperf3::{Directions, Parameters, Protocol};

use bdp_flow::session::error::SessionError;

/// How many writes of a stream a second keep a rate even.
const BLOCKS_A_SECOND: u64 = 50;
/// The shortest of them.
const LEAST_BLOCK_BYTES: u64 = 512;

/// Refuses options that an iperf3 server cannot carry out.
pub(super) fn check(request: &MeasureRequest) -> Result<(), SessionError> {
    let spec = &request.spec;
    let wrong = |text: &str| Err(SessionError::Request(text.to_owned()));
    if let Some(why) = options::refusal(request, PeerProtocol::Iperf3) {
        return wrong(&why);
    }
    if spec.streams > bdp_wire::iperf3::MOST_STREAMS {
        return wrong("an iperf3 server accepts at most 128 streams");
    }
    if !spec.omit.as_ns().is_multiple_of(1_000_000_000) {
        return wrong("an iperf3 server omits whole seconds: give -O 1, -O 2");
    }
    if spec.udp.is_none() && spec.length.as_bytes() > 1 << 20 {
        return wrong("an iperf3 server accepts writes of at most 1 MiB");
    }
    Ok(())
}

/// Whether datagrams count with 64 bits: whenever they have room for it.
pub(super) fn wide_counters(request: &MeasureRequest) -> bool {
    let bytes = request.spec.udp.as_ref().map(|udp| udp.datagram_bytes);
    bytes.is_some_and(|bytes| bytes.is_none_or(|bytes| bytes as usize >= header_bytes(true)))
}

/// Returns the bytes per write. A server with a low rate limit writes a whole block when one is due, at 1 Mbit/s
/// every second: if no length was given, a shorter one is requested.
pub(super) fn write_bytes(request: &MeasureRequest) -> u64 {
    let length = request.spec.length.as_bytes();
    match request.spec.pacing_bps.filter(|_| request.spec.length == USUAL_LENGTH) {
        Some(bps) => (bps / 8 / BLOCKS_A_SECOND).clamp(LEAST_BLOCK_BYTES, length),
        None => length,
    }
}

/// Returns the test's parameters in iperf3's format; `length_bytes` is that of a write, or of a datagram's payload.
pub(super) fn parameters(request: &MeasureRequest, ways: &[Direction], length_bytes: u64) -> Parameters {
    let spec = &request.spec;
    let whole_seconds = spec.duration.saturating_sub(spec.omit).as_ns().div_ceil(1_000_000_000);
    Parameters {
        direction: match ways {
            [Direction::To] => Directions::Forward,
            [Direction::From] => Directions::Reverse,
            _ => Directions::Both,
        },
        parallel: spec.streams,
        seconds: if spec.bytes.is_some() { 0 } else { whole_seconds },
        omit_seconds: spec.omit.as_ns() / 1_000_000_000,
        bytes: spec.bytes.map_or(0, |b| b.as_bytes()),
        length_bytes,
        rate_bps: spec.udp.as_ref().map_or(spec.pacing_bps, |udp| udp.rate_bps).unwrap_or(0),
        server_output: request.server_output,
        wide_counters: wide_counters(request),
        dont_fragment: spec.udp.as_ref().is_some_and(|udp| udp.dont_fragment),
        window_bytes: spec.socket_buffer.map(|b| b.as_bytes()),
        mss: spec.mss,
        tos: spec.dscp.map_or(0, |dscp| dscp << 2),
        nodelay: spec.nodelay,
        congestion: spec.congestion.clone(),
        // The release whose error numbers this client knows.
        client_version: Some("3.22".to_owned()),
        ..Parameters::over(if spec.udp.is_some() { Protocol::Udp } else { Protocol::Tcp })
    }
}
