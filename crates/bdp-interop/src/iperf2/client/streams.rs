//! The connections of a round. That server reports only its version: what it received is what it acknowledged, what
//! it sent is what arrived.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bdp_flow::crew::Crew;
use bdp_flow::error::FlowError;
use bdp_flow::meter::Meter;
use bdp_flow::receive::{self, ReceivePlan};
use bdp_flow::send::{self, SendPlan};
use bdp_flow::session::deadline::Until;
use bdp_flow::session::dial;
use bdp_flow::session::error::{Result, SessionError};
use bdp_flow::session::options::options;
use bdp_flow::session::salvage;
use bdp_flow::stall;
use bdp_model::flow::method::EndReason;
use bdp_model::measurement::{Direction, MeasureRequest};
use bdp_model::units::Nanos;
use bdp_sys::tcp_info;
use bdp_wire::control::{Received, Sent};
use bdp_wire::iperf2::{Amount, TestHeader, read_acknowledgement};

/// How long the server may take to say its version.
const GREETING_DEADLINE: Duration = Duration::from_secs(5);
/// Deadline for the server's first byte, and grace beyond the requested duration of its sending.
const SLACK: Nanos = Nanos::secs(5);
/// How long the rest of a volume may take to be acknowledged.
const STRAGGLERS: Duration = Duration::from_secs(10);

/// Connects to the first address that accepts, and has the server accept each connection in its role.
pub(super) fn open(
    addresses: &[SocketAddr],
    ways: &[Direction],
    request: &MeasureRequest,
    cancel: &AtomicBool,
) -> Result<(SocketAddr, Vec<TcpStream>)> {
    let spec = &request.spec;
    let (reverse, both) = (ways == [Direction::From], ways.len() == 2);
    let options = options(request, if reverse { Direction::From } else { Direction::To });
    let mut opened = Err(SessionError::no_address(&request.host));
    for &address in addresses {
        let port = None;
        opened = dial::connect_all(address, spec.streams, request, port, &options, |_, _| Ok(()), cancel)
            .map(|streams| (address, streams));
        if opened.is_ok() {
            break;
        }
    }
    let (address, streams) = opened?;
    let header = TestHeader {
        reverse,
        full_duplex: both,
        acknowledge: true,
        streams: spec.streams,
        port: request.port,
        length: u32::try_from(spec.length.as_bytes()).ok(),
        amount: match spec.bytes {
            Some(bytes) => Amount::Bytes(bytes.as_bytes() / u64::from(spec.streams.max(1))),
            None => Amount::Time(spec.duration),
        },
        rate_bps: spec.pacing_bps,
        type_of_service: spec.dscp.unwrap_or(0) << 2,
        version: Some([2, 1, 8]),
        ..Default::default()
    }
    .encode(false);
    for stream in &streams {
        greet(stream, &header, address)?;
    }
    Ok((address, streams))
}

/// Carries out one direction of a round over its connections.
pub(super) fn carry_out(
    way: Direction,
    streams: Vec<TcpStream>,
    address: SocketAddr,
    request: &MeasureRequest,
    stop: &AtomicBool,
    meter: &Meter,
) -> Result<(Received, Sent)> {
    let patience = stall::patience(request.spec.interval, request.spec.pacing_bps);
    let done = stall::guard(meter, stop, patience, |stop| match way {
        Direction::To => send_all(streams, request, stop, meter),
        Direction::From => receive_all(streams, request, stop, meter),
    });
    done.map_err(|error| SessionError::of_flow(error, address))
}

/// Sends the header, and reads the server's version to its end.
fn greet(stream: &TcpStream, header: &[u8], address: SocketAddr) -> Result<()> {
    let doing = "session setup";
    let lost = |_| SessionError::Lost { address, doing };
    stream.set_nonblocking(false).map_err(lost)?;
    (&mut &*stream).write_all(header).map_err(lost)?;
    let mut reader = Until::new(stream, GREETING_DEADLINE);
    let mut arrived = Vec::new();
    let mut byte = [0];
    loop {
        let acknowledged = read_acknowledgement(&arrived);
        match acknowledged.map_err(|e| {
            SessionError::Request(format!("{address} does not speak the iperf2 protocol: {e}"))
        })? {
            Some(_version) => return Ok(()),
            // Byte by byte, since payload follows immediately.
            None => match reader.read(&mut byte) {
                Ok(0) => return Err(SessionError::Lost { address, doing }),
                Ok(_) => arrived.push(byte[0]),
                Err(e)
                    if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) =>
                {
                    return Err(SessionError::Silent { address, doing });
                }
                Err(e) => return Err(lost(e)),
            },
        }
    }
}

fn send_all(
    streams: Vec<TcpStream>,
    request: &MeasureRequest,
    stop: &AtomicBool,
    meter: &Meter,
) -> Result<(Received, Sent), FlowError> {
    let spec = &request.spec;
    let count = streams.len();
    let kept: std::io::Result<Vec<TcpStream>> = streams.iter().map(TcpStream::try_clone).collect();
    let kept = kept.map_err(FlowError::io("send"))?;
    let plan = SendPlan::of(spec, Nanos::ZERO, Crew::listed(count, request.near_cpus.as_ref()));
    let began = Instant::now();
    let mut sent = send::over(streams, &plan, stop, meter)?;
    sent.pacing_bps = spec.pacing_bps;
    let until = Instant::now() + STRAGGLERS;
    let acked = || kept.iter().filter_map(|s| tcp_info::read(s).ok()?.bytes_acked).sum::<u64>();
    if spec.bytes.is_some() {
        let all = salvage::acknowledged_at_first(&sent) + sent.bytes;
        while acked() < all && Instant::now() < until && !stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        if let Some(mut last) = sent.samples.last().copied() {
            last.at_ns = began.elapsed().as_nanos() as u64;
            last.acked_bytes = Some(acked());
            sent.samples.push(last);
        }
    }
    for stream in &kept {
        let _ = stream.shutdown(Shutdown::Write);
    }
    Ok((acknowledged(&sent, request, count), sent))
}

/// Returns what the remote end received, as far as the local kernel knows.
fn acknowledged(sent: &Sent, request: &MeasureRequest, streams: usize) -> Received {
    Received {
        ended: if request.spec.bytes.is_some() { EndReason::Closed } else { EndReason::Duration },
        ..salvage::acknowledged(sent, request.spec.omit, streams)
    }
}

fn receive_all(
    streams: Vec<TcpStream>,
    request: &MeasureRequest,
    stop: &AtomicBool,
    meter: &Meter,
) -> Result<(Received, Sent), FlowError> {
    let spec = &request.spec;
    let crew = Crew::listed(streams.len(), request.near_cpus.as_ref());
    let plan = ReceivePlan::of(spec, SLACK, crew);
    // The server ends it.
    let plan = ReceivePlan { duration: spec.duration + SLACK, window_bytes: None, check: false, ..plan };
    let received = receive::over(streams, &plan, stop, meter)?;
    // The header asked the server for the rate.
    Ok((received, Sent { pacing_bps: spec.pacing_bps, ..Default::default() }))
}

#[cfg(test)]
mod tests {
    use bdp_model::record::SenderSample;

    use super::*;

    #[test]
    fn the_ends_of_connections_are_no_bytes() {
        let sample = |at_ns, acked| SenderSample { at_ns, acked_bytes: Some(acked), ..Default::default() };
        let volume = 5 << 20;
        // Two connections, whose beginnings are acknowledged before the first reading, and one end by the last.
        let samples = vec![sample(0, 2), sample(1_000, 2 + volume / 2), sample(2_000, 3 + volume)];
        let sent = Sent { bytes: volume, samples, ..Default::default() };
        let received = acknowledged(&sent, &MeasureRequest::to("ams1"), 2);
        assert_eq!((received.bytes, received.duration_ns), (volume, 2_000));
        assert_eq!(received.samples[1].bytes, volume / 2);
    }
}
