//! Decodes a frame to the packet it carries: link layer, tunnels, IP, and the transport header.

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

/// Returns the innermost packet of a frame with this link type and original length.
pub fn packet(link_type: u16, frame: &[u8], length: u32) -> Result<Packet, Unread> {
    layers::packet(link_type, frame, length)
}
