//! Bytes that are no capture, or one no longer.

use bdp_model::units::Nanos;
use bdp_pcap::{Block, Direction, PcapError, blocks};
use proptest::prelude::*;

use crate::round_trip::{Owned, packets, write};

fn one() -> Vec<u8> {
    let packet = Owned {
        at: 1,
        direction: Direction::Inbound,
        cut: 0,
        data: vec![0x45; 20],
        comment: "queued".into(),
    };
    write(&[packet], 1)
}

fn last_error(bytes: &[u8]) -> Option<PcapError> {
    blocks(bytes).last().and_then(Result::err)
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = blocks(&bytes).count();
    }

    #[test]
    fn no_damage_makes_it_panic_or_run_on(
        packets in packets(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..10),
    ) {
        let mut bytes = write(&packets, 2);
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        prop_assert!(blocks(&bytes).count() <= bytes.len() / 12 + 1);
    }

    /// What a killed writer leaves: the blocks that are whole, and then an error or nothing.
    #[test]
    fn what_is_cut_off_reads_as_far_as_it_goes(packets in packets(), cut in any::<prop::sample::Index>()) {
        let bytes = write(&packets, 1);
        let whole: Vec<_> = blocks(&bytes).map(Result::unwrap).collect();
        let part: Vec<_> = blocks(&bytes[..cut.index(bytes.len())]).collect();
        let good: Vec<_> = part.iter().filter_map(|b| b.clone().ok()).collect();
        prop_assert_eq!(&good[..], &whole[..good.len()]);
        prop_assert!(good.len() < whole.len());
        prop_assert!(part.len() <= good.len() + 1);
    }
}

#[test]
fn errors_say_where() {
    assert_eq!(last_error(b"not a capture at all"), Some(PcapError::NoSection { at: 0 }));
    let bytes = one();
    assert_eq!(last_error(&bytes), None);
    let mut wrong = bytes.clone();
    let end = wrong.len() - 1;
    wrong[end] ^= 1;
    assert!(matches!(last_error(&wrong), Some(PcapError::Malformed { what: "length", .. })));
    // The packet names interface 3, which nothing describes.
    let packet = blocks(&bytes).take(2).count();
    assert_eq!(packet, 2);
    let at = bytes.windows(4).position(|w| w == [0x45; 4]).unwrap() - 28;
    let mut wrong = bytes.clone();
    wrong[at + 8] = 3;
    assert_eq!(last_error(&wrong), Some(PcapError::NoInterface { at, interface: 3 }));
    // More bytes captured than the block has.
    let mut wrong = bytes.clone();
    wrong[at + 20] = 200;
    assert_eq!(last_error(&wrong), Some(PcapError::Malformed { at, what: "captured length" }));
    assert!(matches!(last_error(&bytes[..bytes.len() - 2]), Some(PcapError::Truncated { .. })));
}

/// A section of a big-endian machine with microseconds, as other programs write it.
#[test]
fn the_other_byte_order_reads_too() {
    #[rustfmt::skip]
    let bytes = [
        0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 28, 0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 28,
        0, 0, 0, 1, 0, 0, 0, 20, 0, 101, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20,
        0, 0, 0, 6, 0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 40, 0x60, 0, 0, 0, 0, 0, 0, 36,
    ];
    let found: Vec<_> = blocks(&bytes).collect::<Result<_, _>>().unwrap();
    assert!(matches!(found[1], Block::Interface { link_type: 101, snap_length: 0, .. }));
    let Block::Packet { at, length, data, direction, .. } = &found[2] else { panic!("{found:?}") };
    assert_eq!((*at, *length, *data, *direction), (Some(Nanos(4_294_967_298_000)), 40, &[0x60][..], None));
}
