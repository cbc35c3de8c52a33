//! What is written reads back.

use bdp_model::units::Nanos;
use bdp_pcap::{Block, Direction, Interface, LINKTYPE_RAW, Packet, Section, Statistics, Writer, blocks};
use proptest::prelude::*;

/// A packet with its own data.
#[derive(Debug, Clone)]
pub struct Owned {
    pub at: u64,
    pub direction: Direction,
    pub cut: u32,
    pub data: Vec<u8>,
    pub comment: String,
}

pub fn packets() -> impl Strategy<Value = Vec<Owned>> {
    let direction = prop_oneof![Just(Direction::Inbound), Just(Direction::Outbound)];
    let packet =
        (any::<u64>(), direction, 0u32..10_000, prop::collection::vec(any::<u8>(), 0..200), ".{0,40}");
    let packet =
        packet.prop_map(|(at, direction, cut, data, comment)| Owned { at, direction, cut, data, comment });
    prop::collection::vec(packet, 0..20)
}

pub fn write(packets: &[Owned], interfaces: u32) -> Vec<u8> {
    let section =
        Section { hardware: "x86_64", os: "Linux 6.12", application: "bdp 0.1.0", comment: "a case" };
    let mut writer = Writer::new(Vec::new(), &section).unwrap();
    for number in 0..interfaces {
        let name = format!("link{number}");
        let interface =
            Interface { name: &name, description: "near, to far", link_type: LINKTYPE_RAW, snap_length: 200 };
        assert_eq!(writer.interface(&interface).unwrap(), number);
    }
    for (i, packet) in packets.iter().enumerate() {
        let Owned { at, direction, cut, data, comment } = packet;
        let length = data.len() as u32 + cut;
        let interface = i as u32 % interfaces;
        let packet = Packet { interface, at: Nanos(*at), direction: *direction, length, data, comment };
        writer.packet(&packet).unwrap();
    }
    writer.statistics(&statistics(packets)).unwrap();
    writer.into_inner()
}

fn statistics(packets: &[Owned]) -> Statistics {
    let received = packets.len() as u64 + 5;
    Statistics { interface: 0, started: Nanos(1), ended: Nanos(u64::MAX - 1), received, dropped: 5 }
}

proptest! {
    #[test]
    fn every_block_reads_back(packets in packets(), interfaces in 1u32..4) {
        let bytes = write(&packets, interfaces);
        let found: Vec<Block<'_>> = blocks(&bytes).collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(found.len(), 2 + interfaces as usize + packets.len());
        prop_assert_eq!(&found[0], &Block::Section {
            hardware: Some("x86_64".into()),
            os: Some("Linux 6.12".into()),
            application: Some("bdp 0.1.0".into()),
            comments: vec!["a case".into()],
        });
        for (number, block) in found[1..=interfaces as usize].iter().enumerate() {
            prop_assert_eq!(block, &Block::Interface {
                link_type: LINKTYPE_RAW,
                snap_length: 200,
                name: Some(format!("link{number}")),
                description: Some("near, to far".into()),
            });
        }
        for (i, (block, packet)) in found[1 + interfaces as usize..].iter().zip(&packets).enumerate() {
            let comment = &packet.comment;
            prop_assert_eq!(block, &Block::Packet {
                interface: i as u32 % interfaces,
                at: Some(Nanos(packet.at)),
                direction: Some(packet.direction),
                length: packet.data.len() as u32 + packet.cut,
                data: &packet.data,
                comments: if comment.is_empty() { Vec::new() } else { vec![comment.clone()] },
            });
        }
        prop_assert_eq!(found.last(), Some(&Block::Statistics(statistics(&packets))));
    }
}

/// The layout of the draft, byte by byte: a reader that shared a mistake with the writer would not notice it.
#[test]
fn a_packet_is_laid_out_as_the_draft_says() {
    let mut writer = Writer::new(Vec::new(), &Section::default()).unwrap();
    writer
        .interface(&Interface { name: "l", description: "", link_type: LINKTYPE_RAW, snap_length: 96 })
        .unwrap();
    writer
        .packet(&Packet {
            interface: 0,
            at: Nanos(0x0123_4567_89ab_cdef),
            direction: Direction::Outbound,
            length: 1500,
            data: &[0x45, 0, 1],
            comment: "queued",
        })
        .unwrap();
    let bytes = writer.into_inner();
    let (header, rest) = bytes.split_at(32);
    #[rustfmt::skip]
    assert_eq!(header, [
        0x0a, 0x0d, 0x0d, 0x0a, 32, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 32, 0, 0, 0,
    ]);
    #[rustfmt::skip]
    assert_eq!(rest, [
        1, 0, 0, 0, 40, 0, 0, 0, 101, 0, 0, 0, 96, 0, 0, 0,
        2, 0, 1, 0, b'l', 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 0,
        6, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0, 0, 0x67, 0x45, 0x23, 0x01, 0xef, 0xcd, 0xab, 0x89,
        3, 0, 0, 0, 0xdc, 5, 0, 0, 0x45, 0, 1, 0,
        1, 0, 6, 0, b'q', b'u', b'e', b'u', b'e', b'd', 0, 0, 2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0, 60, 0, 0, 0,
    ]);
}

/// Text of more than an option holds is cut between two characters.
#[test]
fn overlong_text_is_cut() {
    let long = "é".repeat(40_000);
    let section = Section { comment: &long, ..Section::default() };
    let bytes = Writer::new(Vec::new(), &section).unwrap().into_inner();
    let Some(Ok(Block::Section { comments, .. })) = blocks(&bytes).next() else { panic!("no section") };
    assert_eq!(comments, ["é".repeat(32_767)]);
}
