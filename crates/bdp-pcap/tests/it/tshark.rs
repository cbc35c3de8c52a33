//! tshark reads what is written, where it is installed.

use std::process::Command;

use crate::untested;
use bdp_model::units::Nanos;
use bdp_pcap::{Direction, Interface, LINKTYPE_RAW, Packet, Section, Statistics, Writer};

/// IPv4 and UDP headers of an empty datagram from 198.18.0.1 to 198.18.0.2.
const DATAGRAM: [u8; 28] = [
    0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0x6d, 0xa8, 198, 18, 0, 1, 198, 18, 0, 2, 0x30, 0x39, 0, 7, 0, 8,
    0, 0,
];

#[test]
fn tshark_shows_stamps_directions_and_comments() {
    if Command::new("tshark").arg("--version").output().is_err() {
        return untested::skip("tshark is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture.pcapng");
    let section = Section { application: "bdp 0.1.0", ..Section::default() };
    let mut writer = Writer::new(std::fs::File::create(&path).unwrap(), &section).unwrap();
    writer
        .interface(&Interface {
            name: "link0",
            description: "near, to far",
            link_type: LINKTYPE_RAW,
            snap_length: 28,
        })
        .unwrap();
    let packets = [
        (1_700_000_000_000_000_001, Direction::Outbound, 28, "dropped: loss"),
        (1_700_000_000_000_000_777, Direction::Inbound, 1500, "delivered, 3.1 us late"),
    ];
    for (at, direction, length, comment) in packets {
        let packet = Packet { interface: 0, at: Nanos(at), direction, length, data: &DATAGRAM, comment };
        writer.packet(&packet).unwrap();
    }
    let (started, ended) = (Nanos(1_700_000_000_000_000_000), Nanos(1_700_000_000_000_001_000));
    writer.statistics(&Statistics { interface: 0, started, ended, received: 5, dropped: 3 }).unwrap();
    drop(writer);

    let fields = [
        "frame.time_epoch",
        "frame.interface_name",
        "frame.len",
        "frame.packet_flags_direction",
        "frame.comment",
        "ip.src",
    ];
    let output = Command::new("tshark")
        .args(["-n", "-r"])
        .arg(&path)
        .args(["-T", "fields", "-E", "separator=;"])
        .args(fields.iter().flat_map(|f| ["-e", f]))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("damaged") && !said.contains("truncated"), "{said}");
    let lines: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    assert_eq!(
        lines,
        [
            "1700000000.000000001;link0;28;0x00000002;dropped: loss;198.18.0.1",
            "1700000000.000000777;link0;1500;0x00000001;delivered, 3.1 us late;198.18.0.1",
        ]
    );
}
