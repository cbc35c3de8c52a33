//! From the bytes of a frame to the packet that they carry: link layer, tunnels, IP, and the head of the transport.

mod bytes;
mod host;
mod layers;
mod link;
mod packet;
mod tcp;
mod tls;
mod tunnel;
mod wireless;

pub use bytes::Unread;
pub use packet::{About, Carries, Echo, Packet, Span};
pub use tcp::{Flags, Multipath, Options, SackBlocks, Segment};
pub use tls::Record;

/// The innermost packet of a frame whose link layer has this number, of this length before it was cut.
pub fn packet(link_type: u16, frame: &[u8], length: u32) -> Result<Packet, Unread> {
    layers::packet(link_type, frame, length)
}
