//! The middlebox: what it changes, what it leaves alone, and that checksums stay true.

use bdp_link::{End, Link, Packet, Verdict};
use bdp_model::link::{DirectionConfig, HeaderRewrite, LinkConfig, WindowScaleRewrite};
use bdp_model::units::Nanos;
use proptest::prelude::*;

use crate::segment::{ACK, FIN, PSH, RST, SYN, Segment, checksum_is_right};

/// What Linux sends: MSS, SACK permitted, timestamps, NOP, window scale 7 (its shift at an even offset, 39).
const LINUX_OPTIONS: [u8; 20] = [2, 4, 5, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7];
/// Window scale 8 without padding before it: its shift at offset 26, where `LINUX_OPTIONS` has 39.
const EARLY_SCALE: [u8; 8] = [2, 4, 5, 0xb4, 3, 3, 8, 0];

const STRIP: HeaderRewrite =
    HeaderRewrite { window_field_max: None, window_scale: Some(WindowScaleRewrite::Strip) };
const SET_2: HeaderRewrite =
    HeaderRewrite { window_field_max: None, window_scale: Some(WindowScaleRewrite::Set(2)) };
const CLAMP_1000: HeaderRewrite = HeaderRewrite { window_field_max: Some(1000), window_scale: None };

/// Sends a packet through a link that rewrites from A to B.
fn pass(rewrite: HeaderRewrite, packet: &Packet) -> Packet {
    let forward = DirectionConfig { rewrite, ..DirectionConfig::default() };
    let mut link = Link::new(&LinkConfig { forward, ..LinkConfig::default() }, 0);
    assert_eq!(link.enqueue(End::A, packet.clone(), Nanos::ZERO), Verdict::QUEUED);
    link.pop(Nanos::ZERO).expect("no delay").packet
}

/// Checks that in every envelope `before` comes out as `after`, which was built and summed from scratch.
fn assert_becomes(rewrite: HeaderRewrite, before: &Segment, after: &Segment) {
    for (before, expected) in before.enveloped().iter().zip(after.enveloped()) {
        let passed = pass(rewrite, before);
        assert!(checksum_is_right(&passed, after), "{passed:02x?}");
        assert_eq!(passed, expected);
    }
}

fn assert_unchanged(rewrite: HeaderRewrite, packet: &Packet) {
    assert_eq!(&pass(rewrite, packet), packet);
}

#[test]
fn the_window_field_is_bounded_in_every_segment_without_syn() {
    for flags in [ACK, ACK | PSH, ACK | FIN, RST, 0] {
        for window in [1001, 0x1234, u16::MAX] {
            let segment = |window| Segment::new(flags, window, &LINUX_OPTIONS[4..16]).with_payload(b"odd");
            assert_becomes(CLAMP_1000, &segment(window), &segment(1000));
        }
        for window in [0, 1, 999, 1000] {
            let segment = Segment::new(flags, window, &[]);
            segment.enveloped().iter().for_each(|packet| assert_unchanged(CLAMP_1000, packet));
        }
    }
    let zero = HeaderRewrite { window_field_max: Some(0), window_scale: None };
    assert_becomes(zero, &Segment::new(ACK, 64_240, &[]), &Segment::new(ACK, 0, &[]));
}

#[test]
fn the_window_of_a_syn_is_left_alone() {
    for flags in [SYN, SYN | ACK] {
        let segment = Segment::new(flags, u16::MAX, &LINUX_OPTIONS);
        segment.enveloped().iter().for_each(|packet| assert_unchanged(CLAMP_1000, packet));
    }
}

#[test]
fn stripping_overwrites_window_scale_with_nops() {
    for flags in [SYN, SYN | ACK] {
        let mut linux = LINUX_OPTIONS;
        linux[17..20].fill(1);
        assert_becomes(
            STRIP,
            &Segment::new(flags, 64_240, &LINUX_OPTIONS),
            &Segment::new(flags, 64_240, &linux),
        );
        let mut early = EARLY_SCALE;
        early[4..7].fill(1);
        assert_becomes(STRIP, &Segment::new(flags, 9, &EARLY_SCALE), &Segment::new(flags, 9, &early));
    }
}

#[test]
fn setting_replaces_the_shift_at_even_and_odd_offsets() {
    let mut linux = LINUX_OPTIONS;
    linux[19] = 2;
    assert_becomes(SET_2, &Segment::new(SYN, 64_240, &LINUX_OPTIONS), &Segment::new(SYN, 64_240, &linux));
    let mut early = EARLY_SCALE;
    early[6] = 2;
    assert_becomes(SET_2, &Segment::new(SYN, 64_240, &EARLY_SCALE), &Segment::new(SYN, 64_240, &early));
}

#[test]
fn window_scale_is_found_at_every_offset() {
    for nops in 0..=37 {
        let options = |shift| [vec![1; nops], vec![3, 3, shift]].concat();
        let before = Segment::new(SYN, 512, &options(14));
        assert_becomes(SET_2, &before, &Segment::new(SYN, 512, &options(2)));
        assert_becomes(STRIP, &before, &Segment::new(SYN, 512, &vec![1; nops + 3]));
    }
}

#[test]
fn every_window_scale_option_is_met() {
    let before = Segment::new(SYN, 512, &[3, 3, 7, 3, 3, 9, 1, 1]);
    assert_becomes(STRIP, &before, &Segment::new(SYN, 512, &[1; 8]));
    assert_becomes(SET_2, &before, &Segment::new(SYN, 512, &[3, 3, 2, 3, 3, 2, 1, 1]));
}

#[test]
fn window_scale_outside_a_syn_is_left_alone() {
    let segment = Segment::new(ACK, 512, &EARLY_SCALE);
    segment.enveloped().iter().for_each(|packet| assert_unchanged(STRIP, packet));
}

#[test]
fn options_that_are_absent_or_malformed_are_left_alone() {
    for options in [
        &[][..],
        // Behind the end of options.
        &[0, 3, 3, 7],
        // Of another length.
        &[3, 4, 7, 7],
        &[3, 2, 3, 3],
        // Lengths of zero and one: an endless walk.
        &[8, 0, 3, 3],
        &[8, 1, 3, 3, 7, 0, 0, 0],
        // Past the header's end.
        &[1, 1, 3, 3],
        &[2, 4, 5, 0xb4, 1, 1, 1, 3],
        &[8, 200, 3, 3],
        // Inside another option.
        &[254, 5, 3, 3, 7, 0, 0, 0],
    ] {
        let segment = Segment::new(SYN, 512, options).with_payload(&[7, 7, 7]);
        for packet in segment.enveloped() {
            assert_unchanged(STRIP, &packet);
            assert_unchanged(SET_2, &packet);
        }
    }
}

#[test]
fn what_is_no_first_fragment_of_tcp_is_left_alone() {
    let rewrite = HeaderRewrite { window_field_max: Some(0), window_scale: Some(WindowScaleRewrite::Strip) };
    let [v4, v6] = {
        let segment = Segment::new(ACK, 64_240, &[]);
        [segment.v4(&[]), segment.v6(&[])]
    };
    assert_ne!(pass(rewrite, &v4), v4);
    assert_ne!(pass(rewrite, &v6), v6);

    let changed = |packet: &Packet, at: usize, byte: u8| {
        let mut packet = packet.clone();
        packet.data[at] = byte;
        packet
    };
    assert_unchanged(rewrite, &changed(&v4, 7, 1)); // fragment offset 8
    assert_unchanged(rewrite, &changed(&v4, 6, 0x1f)); // a large one
    assert_unchanged(rewrite, &changed(&v4, 9, 17)); // UDP
    // A header of 16 bytes, with what would be a TCP header behind them.
    assert_unchanged(rewrite, &changed(&changed(&v4, 28, 0x50), 0, 0x44));
    assert_unchanged(rewrite, &changed(&v4, 0, 0x54)); // no version 5
    assert_unchanged(rewrite, &changed(&v4, 2, 1)); // longer than it is
    assert_unchanged(rewrite, &changed(&v4, 3, 33)); // ends within the TCP header
    assert_unchanged(rewrite, &changed(&v4, 32, 0x40)); // data offset 4
    assert_unchanged(rewrite, &changed(&v4, 32, 0x60)); // data offset past the end
    assert_unchanged(rewrite, &changed(&v6, 6, 17));
    assert_unchanged(rewrite, &changed(&v6, 6, 51)); // authentication header
    assert_unchanged(rewrite, &changed(&v6, 4, 1));
    assert_unchanged(rewrite, &changed(&v6, 5, 13));

    let later_fragment = (44, vec![0, 0, 0, 8, 0xde, 0xad, 0xbe, 0xef]);
    assert_unchanged(rewrite, &Segment::new(ACK, 64_240, &[]).v6(&[later_fragment]));
    let endless = (60, vec![0, 255, 1, 4, 0, 0, 0, 0]);
    assert_unchanged(rewrite, &Segment::new(ACK, 64_240, &[]).v6(&[endless]));

    // A trailer behind the IP packet is not part of it.
    let mut padded = v4.clone();
    padded.data.extend([0; 6]);
    assert_eq!(pass(rewrite, &padded).data[..40], pass(rewrite, &v4).data);
}

#[test]
fn a_wrong_checksum_stays_wrong_by_as_much() {
    let right = Segment::new(ACK, 64_240, &[]).v4(&[]);
    let mut wrong = right.clone();
    wrong.data[36] ^= 0x40;
    let [right, mut wrong] = [right, wrong].map(|packet| pass(CLAMP_1000, &packet));
    assert_ne!(right, wrong);
    assert!(!checksum_is_right(&wrong, &Segment::new(ACK, 1000, &[])));
    wrong.data[36..38].copy_from_slice(&right.data[36..38]);
    assert_eq!(right, wrong);
}

#[test]
fn only_the_configured_direction_rewrites() {
    let forward = DirectionConfig { rewrite: CLAMP_1000, ..DirectionConfig::default() };
    let mut link = Link::new(&LinkConfig { forward, ..LinkConfig::default() }, 0);
    let packet = Segment::new(ACK, 64_240, &[]).v4(&[]);
    link.enqueue(End::B, packet.clone(), Nanos::ZERO);
    assert_eq!(link.pop(Nanos::ZERO).expect("no delay").packet, packet);
}

#[test]
fn the_checksum_goes_by_equation_3_where_equation_2_fails() {
    // RFC 1624, section 4: the older equation 2 gives 0xffff where the checksum should be 0x0000. Every bound is
    // tried, so that the checksum passes through zero.
    let mut zeros = 0;
    for max in 0..=u16::MAX {
        let rewrite = HeaderRewrite { window_field_max: Some(max), window_scale: None };
        let passed = pass(rewrite, &Segment::new(ACK, u16::MAX, &[]).v4(&[]));
        zeros += u32::from(passed.data[36..38] == [0, 0]);
        assert_eq!(passed, Segment::new(ACK, max, &[]).v4(&[]), "bound {max}");
    }
    assert!(zeros > 0);
}

fn any_rewrite() -> impl Strategy<Value = HeaderRewrite> {
    let scale = prop_oneof![
        Just(None),
        Just(Some(WindowScaleRewrite::Strip)),
        any::<u8>().prop_map(|n| Some(WindowScaleRewrite::Set(n))),
    ];
    (any::<Option<u16>>(), scale)
        .prop_map(|(window_field_max, window_scale)| HeaderRewrite { window_field_max, window_scale })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_pass_with_their_length(
        rewrite in any_rewrite(),
        mut data in prop::collection::vec(any::<u8>(), 0..200),
        version in prop_oneof![Just(None), Just(Some(0x45)), Just(Some(0x60))],
    ) {
        if let (Some(first), Some(version)) = (data.first_mut(), version) {
            *first = version;
        }
        let packet = Packet::from(data);
        prop_assert_eq!(pass(rewrite, &packet).data.len(), packet.data.len());
    }

    #[test]
    fn damaged_segments_pass_with_their_length(
        rewrite in any_rewrite(),
        flags in any::<u8>(),
        options in prop::collection::vec(prop_oneof![0..12u8, any::<u8>()], 0..40),
        envelope in 0..6usize,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        cut in any::<prop::sample::Index>(),
        keep in any::<bool>(),
    ) {
        let mut packet = Segment::new(flags, 64_240, &options).enveloped().swap_remove(envelope);
        for (at, byte) in damage {
            let at = at.index(packet.data.len());
            packet.data[at] = byte;
        }
        if !keep {
            packet.data.truncate(cut.index(packet.data.len()));
        }
        prop_assert_eq!(pass(rewrite, &packet).data.len(), packet.data.len());
    }

    #[test]
    fn whatever_the_options_the_checksum_stays_right(
        rewrite in any_rewrite(),
        flags in any::<u8>(),
        window in any::<u16>(),
        options in prop::collection::vec(prop_oneof![3 => 0..5u8, 1 => any::<u8>()], 0..=40),
        payload in prop::collection::vec(any::<u8>(), 0..50),
        envelope in 0..6usize,
    ) {
        let segment = Segment::new(flags, window, &options).with_payload(&payload);
        let passed = pass(rewrite, &segment.enveloped().swap_remove(envelope));
        prop_assert!(checksum_is_right(&passed, &segment));
    }
}
