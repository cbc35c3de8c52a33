//! The near end of flows of datagrams: what is asked of the server, the sockets, and what both ends tell put together.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;

use bdp_model::measurement::{MeasureRequest, Way};
use bdp_model::udp::{OneWayDelay, UdpReport};
use bdp_model::units::Nanos;
use bdp_sys::udp::{self, UdpOptions};
use bdp_wire::control::{Received, Sent};
use bdp_wire::datagram::DatagramOrder;
use bdp_wire::session::Key;

use super::super::{SessionError, dial};
use super::PATIENCE;
use crate::datagram::opening::{self, ClockOffset};
use crate::datagram::{DatagramReceivePlan, DatagramSendPlan, RECEIVE_BUFFER, SEND_BUFFER, Stream};

/// What makes the server's order one of datagrams; nothing where connections are asked for.
pub(super) fn order(request: &MeasureRequest) -> Option<DatagramOrder> {
    request.udp.as_ref().map(|udp| DatagramOrder {
        payload_bytes: udp.datagram_bytes,
        rate_bps: udp.rate_bps,
        dont_fragment: udp.dont_fragment,
    })
}

/// Makes the sockets of a flow and opens its streams.
pub(super) fn connect(
    request: &MeasureRequest,
    address: SocketAddr,
    (key, flow): (Key, u32),
    first_port: Option<u32>,
    cancel: &AtomicBool,
) -> Result<(Vec<Stream>, Option<ClockOffset>), SessionError> {
    let buffer = request.socket_buffer.map(|b| usize::try_from(b.as_bytes()).unwrap_or(usize::MAX));
    let options = UdpOptions {
        receive_buffer: Some(buffer.unwrap_or(RECEIVE_BUFFER)),
        send_buffer: Some(buffer.unwrap_or(SEND_BUFFER)),
        dscp: request.dscp,
        device: request.bind_device.clone(),
        dont_fragment: request.udp.as_ref().is_some_and(|udp| udp.dont_fragment),
        share_port: false,
    };
    let local: Option<IpAddr> = dial::local_address(request)?;
    let mut sockets = Vec::new();
    for stream in 0..request.streams {
        let from = dial::local_end(address, local, first_port, stream)?;
        sockets.push(udp::connect(from, address, &options)?);
    }
    opening::open(address, (key, flow), sockets, cancel)
}

/// What the near end does where it receives.
pub(super) fn receive_plan(request: &MeasureRequest) -> DatagramReceivePlan {
    DatagramReceivePlan {
        duration: request.duration,
        omit: request.omit,
        interval: request.interval,
        patience: Nanos::from(3 * PATIENCE),
    }
}

/// What it does where it sends.
pub(super) fn send_plan(request: &MeasureRequest) -> DatagramSendPlan {
    DatagramSendPlan {
        payload_bytes: request.udp.as_ref().and_then(|udp| udp.datagram_bytes),
        rate_bps: request.udp.as_ref().and_then(|udp| udp.rate_bps),
        duration: request.duration,
        bytes: request.bytes.map(|b| b.as_bytes()),
    }
}

/// What became of the datagrams of one direction; nothing of connections.
pub(super) fn report(
    request: &MeasureRequest,
    way: Way,
    received: &Received,
    sent: &Sent,
    clocks: Option<ClockOffset>,
) -> Option<UdpReport> {
    let (got, gave) = (received.datagrams.as_ref()?, sent.datagrams.as_ref()?);
    let lost = gave.sent.saturating_sub(got.counts.received);
    let asked = request.udp.as_ref().and_then(|udp| udp.rate_bps);
    let seconds = gave.duration_ns.max(1) as f64 / 1e9;
    Some(UdpReport {
        asked_bps: asked.map(|rate| rate as f64 * f64::from(request.streams)),
        sent_bps: sent.bytes as f64 * 8.0 / seconds,
        datagram_bytes: gave.payload_bytes,
        sent: gave.sent,
        left_out: gave.left_out,
        received: got.counts.received,
        lost,
        loss_ratio: lost as f64 / gave.sent.max(1) as f64,
        dropped_by_receiver: got.dropped.map(|dropped| dropped.min(lost)),
        duplicated: got.counts.duplicated,
        reordered: got.counts.reordered,
        reorder_displacement_max: got.counts.displacement_max,
        jitter_ns: got.jitter_ns,
        delay_variation_ns: got.transits.map(|t| bdp_model::udp::Distribution {
            count: t.count,
            p50: t.p50.abs_diff(t.min),
            p95: t.p95.abs_diff(t.min),
            p99: t.p99.abs_diff(t.min),
            max: t.max.abs_diff(t.min),
        }),
        one_way_delay_ns: got.transits.zip(clocks).map(|(t, clocks)| {
            // A transit is the receiver's clock less the sender's.
            let ahead = match way {
                Way::To => clocks.far_ahead_ns,
                Way::From => clocks.far_ahead_ns.wrapping_neg(),
            };
            OneWayDelay {
                min: t.min.wrapping_sub(ahead),
                p50: t.p50.wrapping_sub(ahead),
                p95: t.p95.wrapping_sub(ahead),
                p99: t.p99.wrapping_sub(ahead),
                max: t.max.wrapping_sub(ahead),
                clock_error: clocks.error_ns,
            }
        }),
        send_gap_ns: gave.gaps,
        burst_max: gave.burst_max,
        timestamps: if got.stamped { "kernel" } else { "read" }.to_owned(),
        receive_buffer_bytes: received.receive_buffer_bytes,
        trials: Vec::new(),
    })
}

/// What a reader should know of it.
pub(super) fn caveats(way: &str, udp: &UdpReport) -> Vec<String> {
    /// Less of it is the granularity of bursts and of the end.
    const ALMOST: f64 = 0.98;
    let mut caveats = Vec::new();
    if let Some(asked) = udp.asked_bps.filter(|asked| udp.sent_bps < ALMOST * asked) {
        caveats.push(format!(
            "direction '{way}': the sender reached {} of the {} that were asked for{}",
            bdp_model::units::format_bps(udp.sent_bps),
            bdp_model::units::format_bps(asked),
            match udp.left_out {
                0 => String::new(),
                n => format!(", and left out {n} datagrams that it was too late to send at their times"),
            }
        ));
    }
    if let Some(dropped) = udp.dropped_by_receiver.filter(|&dropped| dropped > 0) {
        caveats.push(format!(
            "direction '{way}': {dropped} of the {} lost datagrams were dropped by the receiving host, whose socket was \
             full: that is no loss of the path",
            udp.lost
        ));
    }
    caveats
}
