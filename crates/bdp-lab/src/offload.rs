//! Work that a device leaves on a packet, translated between the kernel's terms and the emulator's.

use std::borrow::Cow;

use bdp_link::{Offload, Packet, PartialChecksum, Segmentation, Segments, Transport};
use bdp_sys::tun::{Framing, VirtioHeader};
use bdp_wire::setup::DeviceSetup;

/// Framing on the descriptor of a device with this setup.
pub(crate) fn framing(device: &DeviceSetup) -> Framing {
    if device.super_packets { Framing::SuperPackets } else { Framing::Segments }
}

/// Decodes the kernel's header. An unknown segmentation is left out, and such a packet passes whole.
pub(crate) fn decode(header: VirtioHeader) -> Offload {
    let transport = match header.gso_type & !VirtioHeader::GSO_ECN {
        VirtioHeader::GSO_TCP_V4 | VirtioHeader::GSO_TCP_V6 => Some(Transport::Tcp),
        VirtioHeader::GSO_UDP => Some(Transport::Udp),
        _ => None,
    };
    let partial = header.flags & VirtioHeader::NEEDS_CHECKSUM != 0;
    Offload {
        segmentation: transport.map(|transport| Segmentation { transport, size: header.gso_size }),
        checksum: partial
            .then_some(PartialChecksum { start: header.checksum_start, offset: header.checksum_offset }),
    }
}

/// Encodes the kernel's header.
pub(crate) fn encode(packet: &Packet) -> VirtioHeader {
    let mut header = VirtioHeader::default();
    let Some(PartialChecksum { start, offset }) = packet.offload.checksum else { return header };
    header.flags = VirtioHeader::NEEDS_CHECKSUM;
    header.checksum_start = start;
    header.checksum_offset = offset;
    let Some(Segmentation { transport, size }) = packet.offload.segmentation else { return header };
    let byte = |at: u16| packet.data.get(usize::from(start) + usize::from(at)).copied().unwrap_or(0);
    let ipv4 = packet.data.first().is_some_and(|b| b >> 4 == 4);
    let (gso_type, transport_bytes) = match transport {
        Transport::Udp => (VirtioHeader::GSO_UDP, 8),
        Transport::Tcp => {
            const CWR: u8 = 0x80;
            let version = if ipv4 { VirtioHeader::GSO_TCP_V4 } else { VirtioHeader::GSO_TCP_V6 };
            let ecn = if byte(13) & CWR != 0 { VirtioHeader::GSO_ECN } else { 0 };
            (version | ecn, u16::from(byte(12) >> 4) * 4)
        }
    };
    VirtioHeader { gso_type, gso_size: size, headers_bytes: start + transport_bytes, ..header }
}

/// The wire segments of a packet, each with its checksum complete.
pub(crate) fn wire_segments(packet: &Packet) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let segments = Segments::of(packet);
    (0..segments.count()).map(move |i| match packet.offload.checksum {
        None => Cow::Borrowed(packet.data.as_slice()),
        Some(_) => {
            let mut single = segments.cut(packet, i..i + 1);
            single.complete_checksum();
            Cow::Owned(single.data)
        }
    })
}

#[cfg(test)]
mod tests;
