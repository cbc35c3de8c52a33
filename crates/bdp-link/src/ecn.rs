//! Explicit Congestion Notification: the two bits of RFC 3168 in an IP header.

use crate::packet::Packet;
use bdp_model::link::checksum;

const ECT_1: u8 = 0b01;
const ECT_0: u8 = 0b10;
const CE: u8 = 0b11;

/// Sets Congestion Experienced if the packet is ECN-capable, ECT(0) or ECT(1), and updates the IPv4 header
/// checksum. `false` if it is not, or is marked already.
pub(crate) fn mark(packet: &mut Packet) -> bool {
    if !is_capable(packet) {
        return false;
    }
    let data = &mut packet.data;
    if data[0] >> 4 == 6 {
        data[1] |= CE << 4;
        return true;
    }
    let old = u16::from_be_bytes([data[0], data[1]]);
    data[1] |= CE;
    let new = u16::from_be_bytes([data[0], data[1]]);
    let sum = u16::from_be_bytes([data[10], data[11]]);
    data[10..12].copy_from_slice(&checksum::updated(sum, old, new).to_be_bytes());
    true
}

/// Whether it requests low latency: ECT(1), or CE, which may have been ECT(1) (RFC 9331, section 5.1).
pub(crate) fn is_low_latency(packet: &Packet) -> bool {
    matches!(field(&packet.data), Some(ECT_1 | CE))
}

/// Marks a packet for a queue that marks instead of dropping: one that carries the mark already counts as marked.
pub(crate) fn congest(packet: &mut Packet) -> bool {
    field(&packet.data) == Some(CE) || mark(packet)
}

/// Whether the packet is ECN-capable and not marked yet.
pub(crate) fn is_capable(packet: &Packet) -> bool {
    matches!(field(&packet.data), Some(ECT_0 | ECT_1))
}

/// RFC 3168, section 5: the low two bits of the type of service, or of the traffic class.
fn field(data: &[u8]) -> Option<u8> {
    match data.first()? >> 4 {
        4 if data.len() >= 20 => Some(data[1] & CE),
        6 if data.len() >= 40 => Some(data[1] >> 4 & CE),
        _ => None,
    }
}
