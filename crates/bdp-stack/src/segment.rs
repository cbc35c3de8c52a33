//! TCP segments in IP packets, to the extent that a stack in this process needs beside smoltcp: their connection and their checksums, which
//! would take a quarter of smoltcp's time if it computed them itself.

use std::net::{IpAddr, SocketAddr};

use bdp_model::link::checksum;

/// Protocol number of TCP in the IP header.
const TCP: u8 = 6;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
/// Offsets of IPv4's checksum, and of TCP's within its header.
const SUM_AT: [usize; 2] = [10, 16];

/// Returns where a segment begins in a packet and where the two addresses are, if the packet contains one.
fn place(packet: &[u8]) -> Option<(usize, std::ops::Range<usize>)> {
    let (protocol, tcp, addresses) = match packet.first()? >> 4 {
        4 => (9, usize::from(packet[0] & 15) * 4, 12..20),
        6 => (6, 40, 8..40),
        _ => return None,
    };
    (packet.get(protocol) == Some(&TCP) && packet.len() >= tcp + 20 && tcp >= addresses.end)
        .then_some((tcp, addresses))
}

/// Returns the local port of an arriving segment, its remote end, and whether it opens a connection.
pub(crate) fn ends(packet: &[u8]) -> Option<(u16, SocketAddr, bool)> {
    let (tcp, addresses) = place(packet)?;
    let from = &packet[addresses];
    let from = match from.len() {
        8 => IpAddr::from(*from.first_chunk::<4>()?),
        _ => IpAddr::from(*from.first_chunk::<16>()?),
    };
    let port = |at: usize| u16::from_be_bytes([packet[tcp + at], packet[tcp + at + 1]]);
    Some((port(2), SocketAddr::new(from, port(0)), packet[tcp + 13] & (SYN | ACK) == SYN))
}

/// Writes the checksums of a segment and of the IPv4 header before it.
pub(crate) fn seal(packet: &mut [u8]) {
    let Some((tcp, _)) = place(packet) else { return };
    packet[tcp + SUM_AT[1]..][..2].fill(0);
    let sum = !checksum::fold(covered(packet).unwrap_or_default());
    packet[tcp + SUM_AT[1]..][..2].copy_from_slice(&sum.to_be_bytes());
    if packet[0] >> 4 == 4 {
        packet[SUM_AT[0]..][..2].fill(0);
        let sum = checksum::of(&packet[..tcp]);
        packet[SUM_AT[0]..][..2].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Whether the checksums of a segment are right; other packets are not checked.
pub(crate) fn intact(packet: &[u8]) -> bool {
    let Some((tcp, _)) = place(packet) else { return true };
    let header = packet[0] >> 4 != 4 || checksum::of(&packet[..tcp]) == 0;
    header && covered(packet).is_some_and(|sum| checksum::fold(sum) == 0xffff)
}

/// Returns the sum over everything that a segment's checksum covers.
fn covered(packet: &[u8]) -> Option<u64> {
    let (tcp, addresses) = place(packet)?;
    let segment = &packet[tcp..];
    Some(checksum::sum(&packet[addresses]) + u64::from(TCP) + segment.len() as u64 + checksum::sum(segment))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A SYN from 10.0.0.1:40000 to 10.0.0.2:5001.
    const V4: &str = "4500002800004000400626ce0a0000010a0000029c401389000000010000000050020000";

    fn packet(hex: &str, tail: usize) -> Vec<u8> {
        let mut packet: Vec<u8> =
            (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect();
        packet.resize(40 + tail, 0x5a);
        packet[36..40].fill(0);
        packet
    }

    #[test]
    fn what_is_sealed_is_intact_until_a_byte_is_another() {
        let mut v6 = vec![0x60, 0, 0, 0, 0, 33, TCP, 64];
        v6.extend((0..32 + 33_u8).map(|n| n.wrapping_mul(5)));
        for mut packet in [packet(V4, 0), packet(V4, 7), v6] {
            seal(&mut packet);
            assert!(intact(&packet));
            for at in [13, packet.len() - 1] {
                packet[at] ^= 0x10;
                assert!(!intact(&packet), "{at}");
                packet[at] ^= 0x10;
            }
        }
        let mut sealed = packet(V4, 0);
        seal(&mut sealed);
        assert_eq!(sealed[10..12], [0x26, 0xce]);
        let peer = SocketAddr::from(([10, 0, 0, 1], 40_000));
        assert_eq!(ends(&sealed), Some((5_001, peer, true)));
    }

    #[test]
    fn what_is_no_segment_is_left_alone() {
        for bytes in [vec![], vec![0x45; 12], vec![0x4f; 30], vec![0x60; 50], vec![0x45; 60]] {
            let mut packet = bytes.clone();
            seal(&mut packet);
            assert_eq!(packet, bytes);
            assert!(ends(&packet).is_none() && intact(&packet));
        }
    }
}
