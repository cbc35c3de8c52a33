//! Flows of datagrams: their streams and plans.

use std::net::SocketAddr;

use bdp_model::units::Rate;
use bdp_sys::udp::{self, UdpOptions};
use bdp_wire::control::{FlowOrder, Role};
use bdp_wire::datagram::{LONGEST_DATAGRAM, Opening};

use bdp_flow::datagram::{
    DatagramReceivePlan, DatagramSendPlan, Layout, RECEIVE_BUFFER, SEND_BUFFER, Stream, payload_by_found,
};

/// Connects the server's end of a stream: on the same port, receiving only from this client.
pub(super) fn connect(
    order: &FlowOrder,
    opening: &Opening,
    local: SocketAddr,
    peer: SocketAddr,
) -> Result<Stream, String> {
    let datagrams = order.datagrams.as_ref().ok_or("the flow's streams are connections")?;
    let buffer = order.spec.socket_buffer.map(|b| usize::try_from(b.as_bytes()).unwrap_or(usize::MAX));
    let options = UdpOptions {
        receive_buffer: Some(buffer.unwrap_or(RECEIVE_BUFFER)),
        send_buffer: Some(buffer.unwrap_or(SEND_BUFFER)),
        dscp: order.spec.dscp,
        numbers: order.spec.socket.of_end(order.role == Role::Send, false),
        dont_fragment: datagrams.dont_fragment,
        share_port: true,
        ..Default::default()
    };
    let socket = udp::connect(Some(local), peer, &options).map_err(|e| e.to_string())?;
    Ok(Stream { socket, layout: Layout::Bdp { tag: opening.tag() } })
}

/// Checks an order of datagrams against the server's limits; fills in the highest rate granted.
pub(super) fn grant(order: &mut FlowOrder, granted: Option<Rate>) -> Result<(), String> {
    let streams = u64::from(order.spec.streams.max(1));
    let Some(datagrams) = &mut order.datagrams else { return Ok(()) };
    if let (Some(rate), Some(granted)) = (datagrams.rate_bps, granted)
        && rate.saturating_mul(streams) > granted.as_bps()
    {
        return Err(format!(
            "{} requested, and the server allows at most {} of UDP (--max-rate there)",
            bdp_model::units::format_bps(rate as f64 * streams as f64),
            bdp_model::units::format_bps(granted.as_bps() as f64),
        ));
    }
    if datagrams.rate_bps == Some(0) || datagrams.payload_bytes.is_some_and(|b| b > LONGEST_DATAGRAM) {
        return Err("the flow's parameters are out of range".to_owned());
    }
    if let Some(granted) = granted {
        datagrams.rate_bps.get_or_insert((granted.as_bps() / streams).max(1));
    }
    Ok(())
}

/// Returns the sender's plan for this order.
pub(super) fn send_plan(order: &FlowOrder, streams: &[Stream]) -> DatagramSendPlan {
    let datagrams = order.datagrams.as_ref();
    // Its kernel may not know what a router would refuse: it has not yet sent anything so long there.
    let by_path = payload_by_found(streams, datagrams.and_then(|d| d.path_mtu));
    DatagramSendPlan {
        payload_bytes: datagrams.and_then(|d| d.payload_bytes).or(by_path),
        rate_bps: datagrams.and_then(|d| d.rate_bps),
        duration: order.spec.duration,
        omit: order.spec.omit,
        bytes: order.spec.bytes.filter(|_| order.role == Role::Send).map(|b| b.as_bytes()),
    }
}

/// Returns the receiver's plan for this order.
pub(super) fn receive_plan(order: &FlowOrder, patience: bdp_model::units::Nanos) -> DatagramReceivePlan {
    DatagramReceivePlan {
        duration: order.spec.duration,
        omit: order.spec.omit,
        interval: order.spec.interval,
        patience,
    }
}
