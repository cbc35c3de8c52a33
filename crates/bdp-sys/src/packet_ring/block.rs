//! A block of the ring, as the kernel fills it (`TPACKET_V3`; Linux, `Documentation/networking/packet_mmap.rst`).

use std::mem::offset_of;

use libc::{sockaddr_ll, tpacket3_hdr};

/// Offset of the address of the sender or receiver, behind a packet's own header.
const ADDRESS: usize = size_of::<tpacket3_hdr>().next_multiple_of(16);
/// Length of the header and the address.
const HEADER: usize = ADDRESS + size_of::<sockaddr_ll>();

/// Offsets within a block of the packet count and of the first packet's offset, from `struct tpacket_hdr_v1` behind version and offset.
pub(super) const STATUS: usize = 8;
pub(super) const PACKETS: usize = 12;
const FIRST: usize = 16;

/// Bytes of the header of `LINUX_SLL2` (<https://www.tcpdump.org/linktypes/LINKTYPE_LINUX_SLL2.html>).
pub(super) const COOKED_BYTES: usize = 20;
/// Bytes of a VLAN tag, and of the two addresses before it.
const TAG_BYTES: usize = 4;
const ADDRESSES: usize = 12;
/// VLAN tag type if the kernel does not report it (IEEE 802.1Q).
const VLAN: u16 = 0x8100;

/// Header that frames begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// The frame's own Ethernet header. A VLAN tag that the kernel took out is put back.
    Ethernet,
    /// A `LINUX_SLL2` header in place of the link layer's own, which differs between devices.
    Cooked,
}

/// A captured packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingPacket<'a> {
    /// Timestamp of the kernel, nanoseconds since 1970.
    pub at_ns: u64,
    /// Original length, bytes.
    pub length: u32,
    /// Captured bytes.
    pub data: &'a [u8],
    /// Whether this host sent it.
    pub is_outgoing: bool,
}

/// Passes on each packet of a block. An inconsistent one ends the block, as does the last.
pub(super) fn packets(block: &mut [u8], framing: Framing, each: &mut dyn FnMut(&RingPacket<'_>)) {
    let count = word(block, PACKETS).unwrap_or(0);
    let mut from = word(block, FIRST).unwrap_or(0) as usize;
    for _ in 0..count {
        match packet(block, from, framing, each) {
            Some(next @ HEADER..) => from += next,
            _ => return,
        }
    }
}

/// Passes on the packet at this offset; returns the distance to the next one.
fn packet(
    block: &mut [u8],
    from: usize,
    framing: Framing,
    each: &mut dyn FnMut(&RingPacket<'_>),
) -> Option<usize> {
    let bytes = block.get_mut(from..)?;
    let field = |at: usize| word(bytes, at);
    let next = field(offset_of!(tpacket3_hdr, tp_next_offset))? as usize;
    let seconds = field(offset_of!(tpacket3_hdr, tp_sec))?;
    let nanoseconds = field(offset_of!(tpacket3_hdr, tp_nsec))?;
    let kept = field(offset_of!(tpacket3_hdr, tp_snaplen))? as usize;
    let length = field(offset_of!(tpacket3_hdr, tp_len))?;
    let begins = usize::from(half(bytes, offset_of!(tpacket3_hdr, tp_mac))?);
    let is_outgoing = *bytes.get(ADDRESS + offset_of!(sockaddr_ll, sll_pkttype))? == libc::PACKET_OUTGOING;
    let end = begins.checked_add(kept).filter(|&end| end <= bytes.len())?;
    let (begins, added) = match framing {
        Framing::Ethernet => match vlan_tag(bytes).filter(|_| kept >= ADDRESSES) {
            Some(tag) => (put_tag_back(bytes, begins, tag)?, TAG_BYTES),
            None => (begins, 0),
        },
        Framing::Cooked => (cook(bytes, begins)?, COOKED_BYTES),
    };
    each(&RingPacket {
        at_ns: u64::from(seconds) * 1_000_000_000 + u64::from(nanoseconds),
        length: length.saturating_add(added as u32),
        data: bytes.get(begins..end)?,
        is_outgoing,
    });
    Some(next)
}

/// The VLAN tag that the kernel took out of a frame.
fn vlan_tag(bytes: &[u8]) -> Option<[u8; TAG_BYTES]> {
    let status = word(bytes, offset_of!(tpacket3_hdr, tp_status))?;
    let variant = offset_of!(tpacket3_hdr, hv1);
    let control = word(bytes, variant + offset_of!(libc::tpacket_hdr_variant1, tp_vlan_tci))? as u16;
    let kind = half(bytes, variant + offset_of!(libc::tpacket_hdr_variant1, tp_vlan_tpid))?;
    let kind = if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 { kind } else { VLAN };
    let ([a, b], [c, d]) = (kind.to_be_bytes(), control.to_be_bytes());
    (status & libc::TP_STATUS_VLAN_VALID != 0).then_some([a, b, c, d])
}

/// Moves the addresses forward into the reserved room, and inserts the tag behind them. Returns the frame's offset.
fn put_tag_back(bytes: &mut [u8], begins: usize, tag: [u8; TAG_BYTES]) -> Option<usize> {
    let to = begins.checked_sub(TAG_BYTES).filter(|&to| to >= HEADER)?;
    bytes.copy_within(begins..begins + ADDRESSES, to);
    bytes[to + ADDRESSES..to + ADDRESSES + TAG_BYTES].copy_from_slice(&tag);
    Some(to)
}

/// Writes a `LINUX_SLL2` header before a packet. Returns its offset.
fn cook(bytes: &mut [u8], begins: usize) -> Option<usize> {
    let to = begins.checked_sub(COOKED_BYTES).filter(|&to| to >= HEADER)?;
    let mut header = [0; COOKED_BYTES];
    let address = bytes.get(ADDRESS..HEADER)?;
    let protocol = offset_of!(sockaddr_ll, sll_protocol);
    // Already in network byte order.
    header[..2].copy_from_slice(&address[protocol..protocol + 2]);
    header[4..8].copy_from_slice(&word(address, offset_of!(sockaddr_ll, sll_ifindex))?.to_be_bytes());
    header[8..10].copy_from_slice(&half(address, offset_of!(sockaddr_ll, sll_hatype))?.to_be_bytes());
    header[10] = address[offset_of!(sockaddr_ll, sll_pkttype)];
    header[11] = address[offset_of!(sockaddr_ll, sll_halen)];
    header[12..].copy_from_slice(&address[offset_of!(sockaddr_ll, sll_addr)..]);
    bytes[to..begins].copy_from_slice(&header);
    Some(to)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offset of the data: behind the header and the reserved room.
    const BEGINS: usize = 112;
    const PLACE: usize = 256;

    #[derive(Clone, Copy, Default)]
    struct Made<'a> {
        data: &'a [u8],
        length: u32,
        status: u32,
        tag: (u16, u16),
        protocol: u16,
        kind: u8,
    }

    /// Builds a block with these packets.
    fn block(packets: &[Made<'_>]) -> Vec<u8> {
        let mut block = vec![0; 48];
        block[PACKETS..PACKETS + 4].copy_from_slice(&(packets.len() as u32).to_ne_bytes());
        block[FIRST..FIRST + 4].copy_from_slice(&48_u32.to_ne_bytes());
        for (i, made) in packets.iter().enumerate() {
            let mut bytes = vec![0; PLACE];
            let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
            let next = if i + 1 < packets.len() { PLACE as u32 } else { 0 };
            for (at, value) in [
                (offset_of!(tpacket3_hdr, tp_next_offset), next),
                (offset_of!(tpacket3_hdr, tp_sec), 3_000_000_000),
                (offset_of!(tpacket3_hdr, tp_nsec), i as u32),
                (offset_of!(tpacket3_hdr, tp_snaplen), made.data.len() as u32),
                (offset_of!(tpacket3_hdr, tp_len), made.length),
                (offset_of!(tpacket3_hdr, tp_status), made.status),
                (offset_of!(tpacket3_hdr, hv1) + 4, u32::from(made.tag.1)),
                (ADDRESS + offset_of!(sockaddr_ll, sll_ifindex), 7),
            ] {
                put(at, &value.to_ne_bytes());
            }
            put(offset_of!(tpacket3_hdr, tp_mac), &(BEGINS as u16).to_ne_bytes());
            put(offset_of!(tpacket3_hdr, hv1) + 8, &made.tag.0.to_ne_bytes());
            put(ADDRESS + offset_of!(sockaddr_ll, sll_protocol), &made.protocol.to_be_bytes());
            put(ADDRESS + offset_of!(sockaddr_ll, sll_hatype), &1_u16.to_ne_bytes());
            put(ADDRESS + offset_of!(sockaddr_ll, sll_halen), &[6]);
            put(ADDRESS + offset_of!(sockaddr_ll, sll_addr), &[1, 2, 3, 4, 5, 6]);
            put(ADDRESS + offset_of!(sockaddr_ll, sll_pkttype), &[made.kind]);
            put(BEGINS, made.data);
            block.extend(bytes);
        }
        block
    }

    fn read(block: &mut [u8], framing: Framing) -> Vec<(u64, u32, Vec<u8>, bool)> {
        let mut all = Vec::new();
        packets(block, framing, &mut |packet| {
            all.push((packet.at_ns, packet.length, packet.data.to_vec(), packet.is_outgoing));
        });
        all
    }

    #[test]
    fn frames_come_in_order_with_time_length_and_direction() {
        let first = Made { data: b"first frame", length: 1514, ..Made::default() };
        let second = Made { data: b"second", length: 6, kind: libc::PACKET_OUTGOING, ..Made::default() };
        let at = 3_000_000_000_000_000_000;
        assert_eq!(
            read(&mut block(&[first, second]), Framing::Ethernet),
            [(at, 1514, b"first frame".to_vec(), false), (at + 1, 6, b"second".to_vec(), true)]
        );
        assert_eq!(read(&mut block(&[]), Framing::Ethernet), []);
    }

    #[test]
    fn tags_that_the_kernel_took_out_are_put_back() {
        let (valid, known) = (libc::TP_STATUS_VLAN_VALID, libc::TP_STATUS_VLAN_TPID_VALID);
        let frame = b"DDDDDDSSSSSS\x08\0payload";
        for (status, tag, expected) in [
            (valid | known, (0x88a8, 0x2007), &b"DDDDDDSSSSSS\x88\xa8\x20\x07\x08\0payload"[..]),
            (valid, (0, 5), b"DDDDDDSSSSSS\x81\0\0\x05\x08\0payload"),
            (0, (0x8100, 5), frame),
        ] {
            let made = Made { data: frame, length: 100, status, tag, ..Made::default() };
            let found = read(&mut block(&[made]), Framing::Ethernet);
            let added = (expected.len() - frame.len()) as u32;
            assert_eq!((found[0].1, &found[0].2[..]), (100 + added, expected));
        }
        // A frame cut within the addresses has no place for a tag.
        let made = Made { data: b"DDDDDDSSS", length: 100, status: valid, ..Made::default() };
        assert_eq!(read(&mut block(&[made]), Framing::Ethernet)[0].2, b"DDDDDDSSS");
    }

    #[test]
    fn packets_without_their_link_layer_say_what_they_are() {
        let made = Made { data: b"\x45rest", length: 1500, protocol: 0x0800, kind: 4, ..Made::default() };
        let found = read(&mut block(&[made]), Framing::Cooked);
        assert_eq!(found[0].1, 1520);
        assert_eq!(found[0].2, b"\x08\0\0\0\0\0\0\x07\0\x01\x04\x06\x01\x02\x03\x04\x05\x06\0\0\x45rest");
    }

    #[test]
    fn no_bytes_are_read_past_the_end() {
        let made =
            Made { data: b"DDDDDDSSSSSS\x08\0payload", length: 100, status: u32::MAX, ..Made::default() };
        let whole = block(&[made, made]);
        for framing in [Framing::Ethernet, Framing::Cooked] {
            for end in 0..whole.len() {
                read(&mut whole[..end].to_vec(), framing);
            }
            for at in 0..48 + BEGINS {
                for value in [0, 1, 0x7f, 0xff] {
                    let mut damaged = whole.clone();
                    damaged[at] = value;
                    read(&mut damaged, framing);
                }
            }
        }
    }
}
