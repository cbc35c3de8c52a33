//! Flows of UDP datagrams: a thread for each stream at each end, over connected sockets.
//!
//! [`send`] paces trains of datagrams, [`receive`] reports which arrived, `layout` is their header, `opening` is how
//! a client of a session gets the server to send to it and to know its address.

mod layout;
pub mod opening;
pub mod outcome;
pub mod receive;
pub mod send;

pub use layout::{Layout, ReportSlot};
pub use receive::DatagramReceivePlan;
pub use send::DatagramSendPlan;

use std::net::UdpSocket;
use std::time::Duration;

use bdp_sys::udp;
use bdp_wire::datagram::LONGEST_DATAGRAM;

/// Default buffer of a receiving socket: a fifth of a second at 10 Gbit/s would need eight times that, but it is a
/// second at 250 Mbit/s.
pub const RECEIVE_BUFFER: usize = 32 << 20;
/// Buffer of a sending socket: several trains, so that a late sender finds room.
pub const SEND_BUFFER: usize = 2 << 20;
/// Longest wait of a socket before a flag is noticed.
pub const CHECK: Duration = Duration::from_millis(50);

/// One stream: a socket connected to its other end, and the layout of its datagrams.
#[derive(Debug)]
pub struct Stream {
    /// The socket.
    pub socket: UdpSocket,
    /// The header of its datagrams.
    pub layout: Layout,
}

/// One stream's counts, as seen by one end.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StreamTally {
    /// Datagrams sent; at the receiver, by an end mark or the highest number received.
    pub datagrams: u64,
    /// Datagrams sent before counting began.
    pub omitted: u64,
    /// Datagrams that did not arrive; 0 at the sender.
    pub missing: u64,
    /// Datagrams sent before counting began that did not arrive.
    pub omitted_missing: u64,
    /// Interarrival jitter at the end (RFC 3550, section 6.4.1), nanoseconds; 0 at the sender.
    pub jitter_ns: f64,
}

/// Returns the payload of a datagram: as requested, or as much as fits the path's MTU in one packet.
pub fn payload_bytes(asked: Option<u32>, layout: &Layout, socket: &UdpSocket) -> usize {
    let bytes = asked.unwrap_or_else(|| payload_by_path(socket, udp::path_mtu(socket)));
    bytes.clamp(layout.header_bytes() as u32, LONGEST_DATAGRAM) as usize
}

/// Returns the payload that a path of this MTU carries in one packet to the socket's peer.
pub fn payload_by_path(socket: &UdpSocket, path_mtu: Option<u32>) -> u32 {
    let headers = header_bytes(socket.peer_addr().is_ok_and(|peer| peer.is_ipv4()));
    // The largest datagrams are sent one by one: of loopback's MTU a train would hold one.
    path_mtu.unwrap_or(1500).saturating_sub(headers).min(LONGEST_BY_PATH)
}

/// Returns the payload of a flow's datagrams on a path with this discovered MTU, or less if the kernel knows so.
pub fn payload_by_found(streams: &[Stream], path_mtu: Option<u32>) -> Option<u32> {
    let (mtu, Stream { socket, .. }) = path_mtu.zip(streams.first())?;
    Some(payload_by_path(socket, udp::path_mtu(socket).into_iter().chain([mtu]).min()))
}

/// Returns the bytes of the IP (RFC 791, RFC 8200) and UDP headers.
pub const fn header_bytes(is_v4: bool) -> u32 {
    8 + if is_v4 { 20 } else { 40 }
}

/// Payload of a jumbo frame: the default on a path with a larger MTU, such as loopback.
const LONGEST_BY_PATH: u32 = 8972;
