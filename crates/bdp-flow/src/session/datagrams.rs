//! The local end of flows of datagrams: the order for the server, the sockets, and the combined reports of both ends.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use bdp_model::finding::caveat::Caveat;
use bdp_model::finding::threshold::SENT_AS_ASKED;
use bdp_model::flow::udp::{SearchEnd, UdpReport};
use bdp_model::measurement::{Direction, MeasureRequest, PeerProtocol};
use bdp_model::probes::one_way::ClockOffset;
use bdp_model::units::Nanos;
use bdp_sys::udp::{self, UdpOptions};
use bdp_wire::control::{Received, Sent};
use bdp_wire::datagram::LONGEST_DATAGRAM;
use bdp_wire::session::Key;

use super::options::PATIENCE;
use super::{dial, error::SessionError};
use crate::datagram::{
    DatagramReceivePlan, DatagramSendPlan, RECEIVE_BUFFER, SEND_BUFFER, Stream, header_bytes, opening,
    outcome,
};
use crate::stall::STALL;

/// Makes the sockets of a flow and opens its streams.
pub fn connect(
    request: &MeasureRequest,
    address: SocketAddr,
    way: Direction,
    (key, flow): (Key, u32),
    first_port: Option<u32>,
    cancel: &AtomicBool,
) -> Result<(Vec<Stream>, Option<ClockOffset>), SessionError> {
    let sockets = sockets(request, address, way, request.spec.streams, first_port)?;
    opening::open(address, (key, flow), sockets, cancel)
}

/// Returns this many sockets, each connected to the server.
pub fn sockets(
    request: &MeasureRequest,
    address: SocketAddr,
    way: Direction,
    count: u32,
    first_port: Option<u32>,
) -> Result<Vec<UdpSocket>, SessionError> {
    let buffer = request.spec.socket_buffer.map(|b| usize::try_from(b.as_bytes()).unwrap_or(usize::MAX));
    let options = UdpOptions {
        receive_buffer: Some(buffer.unwrap_or(RECEIVE_BUFFER)),
        send_buffer: Some(buffer.unwrap_or(SEND_BUFFER)),
        dscp: request.spec.dscp,
        numbers: request.spec.socket.of_end(way == Direction::To, false),
        device: request.bind_device.clone(),
        dont_fragment: request.spec.udp.as_ref().is_some_and(|udp| udp.dont_fragment),
        share_port: false,
    };
    let local: Option<IpAddr> = dial::local_address(request)?;
    let mut sockets = Vec::new();
    for stream in 0..count {
        let from = dial::local_end(address, local, first_port, stream)?;
        sockets.push(udp::connect(from, address, &options)?);
    }
    Ok(sockets)
}

/// Returns a socket whose datagrams may not be fragmented.
pub fn whole(request: &MeasureRequest, address: SocketAddr) -> Result<UdpSocket, SessionError> {
    let options = UdpOptions {
        dscp: request.spec.dscp,
        device: request.bind_device.clone(),
        dont_fragment: true,
        ..Default::default()
    };
    let from = dial::local_end(address, dial::local_address(request)?, None, 0)?;
    Ok(udp::connect(from, address, &options)?)
}

/// Returns the plan of the local end if it receives.
pub fn receive_plan(request: &MeasureRequest) -> DatagramReceivePlan {
    DatagramReceivePlan {
        duration: request.spec.duration,
        omit: request.spec.omit,
        interval: request.spec.interval,
        patience: Nanos::from(3 * PATIENCE),
    }
}

/// Returns how long a flow that has begun may be silent: with a slow one, datagrams are far apart.
pub fn patience(request: &MeasureRequest) -> Nanos {
    let udp = request.spec.udp.as_ref();
    let rate_bps = udp.and_then(|udp| udp.rate_bps).unwrap_or(u64::MAX).max(1);
    let bits = 8 * u64::from(udp.and_then(|udp| udp.datagram_bytes).unwrap_or(LONGEST_DATAGRAM));
    STALL.max(Nanos(bits.saturating_mul(4_000_000_000) / rate_bps))
}

/// Returns the plan of the local end if it sends.
pub fn send_plan(request: &MeasureRequest) -> DatagramSendPlan {
    let spec = &request.spec;
    DatagramSendPlan {
        payload_bytes: spec.udp.as_ref().and_then(|udp| udp.datagram_bytes),
        rate_bps: spec.udp.as_ref().and_then(|udp| udp.rate_bps),
        duration: spec.duration,
        omit: spec.omit,
        bytes: spec.bytes.map(|b| b.as_bytes()),
    }
}

/// Returns a caveat that datagrams were sent as fragments, if the sender's kernel knows of it.
pub fn fragments(direction: Direction, sent: &Sent, address: SocketAddr) -> Option<Caveat> {
    let datagram_bytes = sent.datagrams.as_ref()?.payload_bytes;
    let path_mtu = sent.path_mtu?;
    (datagram_bytes + u64::from(header_bytes(address.is_ipv4())) > u64::from(path_mtu))
        .then_some(Caveat::Fragmented { direction, datagram_bytes, path_mtu })
}

/// Returns the datagrams' fate in one direction; nothing for connections. The clock comparison comes with the flow's
/// time span, by the local clock.
pub fn report(
    request: &MeasureRequest,
    way: Direction,
    received: &Received,
    sent: &Sent,
    clocks: Option<(ClockOffset, Range<u64>)>,
) -> Option<UdpReport> {
    let asked = request.spec.udp.as_ref().and_then(|udp| udp.rate_bps);
    // A transit is the receiver's clock less the sender's.
    let ahead = clocks.map(|(clocks, carried)| {
        let far_ahead_ns = clocks.far_ahead_ns;
        let ahead_ns = if way == Direction::To { far_ahead_ns } else { far_ahead_ns.wrapping_neg() };
        (ahead_ns, clocks.error_within(&carried))
    });
    let asked_bps = asked.map(|rate| rate as f64 * f64::from(request.spec.streams));
    let report = outcome::report(asked_bps, received, sent, ahead)?;
    Some(match request.peer.filter(|_| way == Direction::To) {
        None => report,
        Some(PeerProtocol::Iperf3) => {
            UdpReport { duplicated: None, reordered: None, reorder_displacement_max: None, ..report }
        }
        Some(PeerProtocol::Iperf2) => {
            UdpReport { duplicated: None, reorder_displacement_max: None, ..report }
        }
    })
}

/// Returns caveats about the datagrams.
pub fn caveats(request: &MeasureRequest, direction: Direction, udp: &UdpReport) -> Vec<Caveat> {
    let (sent_bps, left_out) = (udp.sent_bps, udp.left_out);
    let mut caveats = Vec::new();
    // If the user asked for no rate, it is only what the server grants.
    let asked = udp.asked_bps.filter(|_| request.spec.udp.as_ref().is_some_and(|udp| udp.rate_bps.is_some()));
    if let Some(asked_bps) = asked.filter(|asked| sent_bps < SENT_AS_ASKED * asked) {
        caveats.push(Caveat::RateNotReached { direction, sent_bps, asked_bps, left_out });
    }
    caveats.extend(match udp.search {
        Some(SearchEnd::NotHeld) => Some(Caveat::SearchNotHeld { direction }),
        Some(SearchEnd::LossAtAnyRate) => Some(Caveat::LossAtAnyRate { direction }),
        Some(SearchEnd::CutShort) => Some(Caveat::SearchCutShort {
            direction,
            trials: udp.trials.len() as u64,
            passed: udp.trials.iter().filter(|trial| trial.passed).count() as u64,
            rate_bps: udp.asked_bps.unwrap_or(sent_bps),
        }),
        Some(SearchEnd::Held) | None => None,
    });
    if let Some(dropped @ 1..) = udp.dropped_by_receiver {
        caveats.push(Caveat::ReceiverDrops { direction, dropped, lost: udp.lost });
    }
    caveats
}

#[cfg(test)]
mod tests {
    use bdp_model::flow::socket::SocketNumbers;
    use bdp_sys::socket_option::named;

    use super::*;

    #[test]
    fn only_the_sending_end_has_a_priority() {
        let mut request = MeasureRequest::default();
        request.spec.socket = SocketNumbers::of(|option| (option.kernel == "SO_PRIORITY").then_some(5));
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let priority = |way| {
            let sockets = sockets(&request, server.local_addr().unwrap(), way, 1, None).unwrap();
            named(&sockets[0], "SO_PRIORITY").unwrap()
        };
        assert_eq!([priority(Direction::To), priority(Direction::From)], [5, 0]);
    }
}
