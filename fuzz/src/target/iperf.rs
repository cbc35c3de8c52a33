//! What iperf's clients and servers say.

use bdp_wire::iperf2::{ServerReport, Stamp, Tally, TestHeader, read_acknowledgement};

use crate::parser::Target;

/// Targets of the protocols of iperf.
pub const IPERF: &[Target] = &[
    Target { name: "iperf2", run: headers, seeds: header_seeds },
    Target { name: "iperf2-datagrams", run: datagrams, seeds: datagram_seeds },
];

/// A header that was read is written as one that reads, and in the end as the same.
fn headers(bytes: &[u8]) {
    if let Some(length) = TestHeader::length_of(bytes) {
        assert!(length <= 0xffff, "a header of {length} bytes");
    }
    if let Some(header) = TestHeader::decode(bytes) {
        for datagram in [false, true] {
            let read = |header: &TestHeader| {
                TestHeader::decode(&header.encode(datagram)).expect("what is written is a header")
            };
            // The first reading adds what flags imply; after that nothing changes any more.
            let again = read(&read(&header));
            assert_eq!(read(&again), again);
        }
    }
    let mut before = read_acknowledgement(&[]);
    for end in 0..=bytes.len().min(64) {
        let now = read_acknowledgement(&bytes[..end]);
        assert!(matches!(before, Ok(None)) || now == before, "{before:?}, then {now:?}");
        before = now;
    }
}

fn header_seeds() -> Vec<Vec<u8>> {
    let header = TestHeader::default();
    vec![
        header.encode(false),
        header.encode(true),
        TestHeader { reverse: true, acknowledge: true, streams: 4, ..header }.encode(false),
        TestHeader { full_duplex: true, rate_bps: Some(1 << 40), version: Some([2, 1, 8]), ..header }
            .encode(false),
        bdp_wire::iperf2::acknowledgement([2, 1, 8]).to_vec(),
    ]
}

/// Whatever arrives, in pieces of 20 bytes as datagrams with a time: the report adds up, and comes back as it was.
fn datagrams(bytes: &[u8]) {
    let mut tally = Tally::default();
    for piece in bytes.chunks_exact(20) {
        let Some(stamp) = Stamp::decode(piece, piece[0] & 1 == 0) else { continue };
        assert_eq!(Stamp::decode(&stamp.encode(), true).map(|s| s.number), Some(stamp.number));
        let now = piece[16..].iter().fold(0, |now, &b| now << 8 | u64::from(b));
        tally.take(&stamp, piece.len(), now);
    }
    let report = tally.report();
    assert!(report.lost <= report.datagrams);
    let datagram = report.encode(&[0; 16]);
    assert!(ServerReport::decode(&datagram).is_some());
    if let Some(report) = ServerReport::decode(bytes) {
        assert!(ServerReport::decode(&report.encode(&[0; 16])).is_some());
    }
}

fn datagram_seeds() -> Vec<Vec<u8>> {
    let flow = |numbers: &[i64]| {
        let mut bytes = Vec::new();
        for (i, &number) in numbers.iter().enumerate() {
            bytes.extend(Stamp { number, sent_us: 1_000 * i as u64 }.encode());
            bytes.extend((500 + 1_000 * i as u32).to_be_bytes());
        }
        bytes
    };
    vec![
        flow(&[1, 2, 4, 3, 7, -7, -7]),
        flow(&[i64::MIN, 1]),
        Tally::default().report().encode(&[0; 16]).to_vec(),
    ]
}
