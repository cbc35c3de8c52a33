//! tshark finds the same packets, where it is installed.

use std::process::Command;

use bdp_capture::decode::{Carries, packet};

use crate::untested;
use crate::wrapped::{FORMATS, Format, connection, is_v6};

/// Each packet in each format that tshark reads.
fn frames() -> Vec<(&'static Format, bool, Vec<u8>)> {
    let packets = [connection(false), connection(true)].concat();
    let read = FORMATS.iter().filter(|format| format.tshark);
    read.flat_map(|format| packets.iter().map(move |ip| (format, is_v6(ip), (format.wrap)(ip)))).collect()
}

/// Addresses, ports, sequence number and payload, as bdp reads them.
fn ours(format: &Format, frame: &[u8]) -> String {
    let found = packet(format.link_type, frame, frame.len() as u32).unwrap();
    let Carries::Tcp(segment) = found.carries else { panic!("{}: {found:?}", format.name) };
    let (source, destination) = (found.source, found.destination);
    format!(
        "{source} {destination} {} {} {} {}",
        segment.source, segment.destination, segment.seq, segment.payload
    )
}

/// Little-endian pcapng with an interface for each format.
fn capture(frames: &[(&'static Format, bool, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = block(0x0a0d_0d0a, &[&[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..], &[0xff; 8]].concat());
    let mut names: Vec<&str> = Vec::new();
    for (at, (format, _, frame)) in (1_u32..).zip(frames) {
        if names.last() != Some(&format.name) {
            names.push(format.name);
            bytes.extend(block(1, &[&format.link_type.to_le_bytes()[..], &[0; 6]].concat()));
        }
        let (interface, length) = (names.len() as u32 - 1, frame.len() as u32);
        let head = [interface, 0, at * 1_000, length, length].map(u32::to_le_bytes).concat();
        let padding = vec![0; frame.len().wrapping_neg() % 4];
        bytes.extend(block(6, &[head, frame.clone(), padding].concat()));
    }
    bytes
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}

#[test]
fn addresses_ports_numbers_and_payloads_are_those_of_tshark() {
    if Command::new("tshark").arg("--version").output().is_err() {
        return untested::skip("tshark is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("formats.pcapng");
    let frames = frames();
    std::fs::write(&path, capture(&frames)).unwrap();
    let fields =
        ["ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.len"];
    let output = Command::new("tshark")
        .args(["-n", "-r"])
        .arg(&path)
        .args(["-T", "fields", "-E", "separator=;", "-E", "occurrence=l"])
        .args(fields.iter().flat_map(|f| ["-e", f]))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let theirs: Vec<&str> = lines.lines().collect();
    assert_eq!(theirs.len(), frames.len());
    let mut differing = Vec::new();
    for ((format, is_v6, frame), line) in frames.iter().zip(theirs) {
        let found: Vec<&str> = line.split(';').collect();
        let addresses = if *is_v6 { &found[2..4] } else { &found[..2] };
        let theirs = [addresses, &found[4..]].concat().join(" ");
        let ours = ours(format, frame);
        if ours != theirs {
            differing.push(format!("{}: {ours}, tshark: {theirs}", format.name));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
