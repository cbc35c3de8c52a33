//! A client's test header: at the start of a connection, or in every datagram after its stamp.

use bdp_model::units::{Nanos, Rate};

use super::{halves, put, word};

/// Flags of the first word.
const VERSION_1: u32 = 0x8000_0000;
const EXTENDED: u32 = 0x4000_0000;
const WIDE_NUMBERS: u32 = 0x0800_0000;
const VERSION_2: u32 = 0x0400_0000;
const ACKNOWLEDGE: u32 = 0x0200_0000;
pub(super) const UDP_TESTS: u32 = 0x2000_0000;
const LENGTH_GIVEN: u32 = 0x0001_0000;
pub(super) const LENGTH_MASK: u32 = 0x0000_01fe;
const RUN_NOW: u32 = 0x0000_0001;
/// A key follows the header (`--permit-key`).
const KEY_FOLLOWS: u32 = 0x1000_0000;
/// Bits of the first word that no release sets in a header.
const UNUSED: u32 = 0x007c_fe00;
/// Flags of the extension.
const ISOCHRONOUS: u32 = 0x0001_0000;
const PERIODIC_BURSTS: u32 = 0x2000_0000;
const REVERSE: u32 = 0x0400_0000;
const FULL_DUPLEX: u32 = 0x0800_0000;
pub(super) const TRIP_TIMES: u32 = 0x0010_0000;
pub(super) const NO_REPORT: u32 = 0x0008_0000;
/// Words of the original header, and of the extension added in 2.0.
const BASE_WORDS: usize = 6;
const EXTENSION_WORDS: usize = 9;
/// Length of a header made here, bytes.
pub const HEADER_BYTES: usize = (BASE_WORDS + EXTENSION_WORDS) * 4;
/// Length of an acknowledgement without clocks, bytes.
const ACKNOWLEDGEMENT_BYTES: usize = 28;
/// Type of an acknowledgement.
const ACKNOWLEDGEMENT: u32 = 2;
/// Unit of durations in the header: hundredths of a second.
const TICK: Nanos = Nanos::millis(10);

/// Amount of data to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// Duration.
    Time(Nanos),
    /// Bytes per stream.
    Bytes(u64),
}

/// A test announced by a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestHeader {
    /// The server sends on the same connection, and the client does not.
    pub reverse: bool,
    /// Both ends send on the same connection.
    pub full_duplex: bool,
    /// The server must connect back and send: at once (`-d`) or afterwards (`-r`). The only way before version
    /// 2.0.14.
    pub connect_back: Option<Back>,
    /// The server must send its version before the payload, on a connection; datagrams with this flag are not answered.
    pub acknowledge: bool,
    /// Data carries its time of sending (`--trip-times`).
    pub trip_times: bool,
    /// The client wants no report at the end of a datagram flow.
    pub no_report: bool,
    /// Datagrams have 64-bit sequence numbers.
    pub wide_numbers: bool,
    /// Streams per direction.
    pub streams: u32,
    /// Port on which the client listens for a connection back.
    pub port: u16,
    /// Length of a write or datagram, bytes, if given.
    pub length: Option<u32>,
    /// Amount of data that the server sends.
    pub amount: Amount,
    /// Rate, bit/s, if given.
    pub rate_bps: Option<u64>,
    /// Type of service.
    pub type_of_service: u8,
    /// Version of the client, such as 2.1.8, if given.
    pub version: Option<[u16; 3]>,
    /// A client option that changes the server's behaviour but is not supported.
    pub unserved: Option<Unserved>,
}

/// Unsupported client options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unserved {
    /// `--permit-key`.
    PermitKey,
    /// `--isochronous`, with the server sending.
    Isochronous,
    /// `--burst-period`, with the server sending.
    PeriodicBursts,
}

impl Unserved {
    /// Name of the option on iperf2's command line.
    pub const fn option(self) -> &'static str {
        match self {
            Self::PermitKey => "--permit-key",
            Self::Isochronous => "--isochronous with -R or --full-duplex",
            Self::PeriodicBursts => "--burst-period with -R or --full-duplex",
        }
    }
}

/// When the server connects back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Back {
    /// While it receives.
    AtOnce,
    /// After it has received.
    Afterwards,
}

impl Default for TestHeader {
    fn default() -> Self {
        Self {
            reverse: false,
            full_duplex: false,
            connect_back: None,
            acknowledge: false,
            trip_times: false,
            no_report: false,
            wide_numbers: true,
            streams: 1,
            port: super::PORT,
            length: None,
            amount: Amount::Time(Nanos::secs(10)),
            rate_bps: None,
            type_of_service: 0,
            version: None,
            unserved: None,
        }
    }
}

impl TestHeader {
    /// Returns the length of the header that starts with these bytes, at most 256; `None` if more bytes are needed (4), and 0 if it is
    /// payload without a header.
    pub fn length_of(arrived: &[u8]) -> Option<usize> {
        let flags = word(arrived, 0)?;
        if !is_header(flags) {
            return Some(0);
        }
        if flags & LENGTH_GIVEN != 0 {
            // At least as long as its flags say; missing words read as zero.
            return Some(((flags & LENGTH_MASK) >> 1) as usize);
        }
        let extended = flags & (EXTENDED | VERSION_2) != 0;
        Some((BASE_WORDS + if extended { EXTENSION_WORDS } else { 0 }) * 4)
    }

    /// Decodes a whole header; `None` if the bytes are not one. Missing words read as zero.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let flags = word(bytes, 0)?;
        if !is_header(flags) {
            return None;
        }
        let at = |index| word(bytes, index).unwrap_or(0);
        let extended = flags & EXTENDED != 0;
        let upper = if extended { at(8) } else { 0 };
        let trip_times = upper & TRIP_TIMES != 0;
        // With trip times, a client that only receives sets neither flag and expects no acknowledgement.
        let reverse = upper & REVERSE != 0 && (flags & VERSION_2 != 0 || trip_times);
        let amount = at(5) as i32;
        let rate = u64::from(at(13) >> 8) << 32 | u64::from(at(12));
        let back = if flags & RUN_NOW != 0 { Back::AtOnce } else { Back::Afterwards };
        let (major, minor) = (at(9), at(10));
        let full_duplex = flags & VERSION_2 != 0 && upper & FULL_DUPLEX != 0;
        let server_sends = reverse || full_duplex;
        Some(Self {
            reverse,
            full_duplex,
            connect_back: (flags & VERSION_1 != 0 && flags & VERSION_2 == 0).then_some(back),
            acknowledge: flags & ACKNOWLEDGE != 0 || (extended && flags & VERSION_2 == 0 && !reverse),
            trip_times,
            no_report: upper & NO_REPORT != 0,
            wide_numbers: flags & WIDE_NUMBERS != 0,
            streams: at(1),
            port: at(2) as u16,
            length: Some(at(3)).filter(|&length| length != 0),
            amount: if amount < 0 {
                Amount::Time(Nanos(u64::from(amount.unsigned_abs()) * TICK.as_ns()))
            } else {
                Amount::Bytes(amount as u64)
            },
            rate_bps: (extended && rate != 0).then_some(rate),
            type_of_service: if extended { at(11) as u8 } else { 0 },
            version: (extended && major != 0).then_some([
                (major >> 16) as u16,
                major as u16,
                (minor >> 16) as u16,
            ]),
            unserved: match () {
                () if flags & KEY_FOLLOWS != 0 => Some(Unserved::PermitKey),
                () if server_sends && upper & ISOCHRONOUS != 0 => Some(Unserved::Isochronous),
                () if server_sends && upper & PERIODIC_BURSTS != 0 => Some(Unserved::PeriodicBursts),
                () => None,
            },
        })
    }

    /// Returns the rate available to one stream, bit/s, if all streams of the test share `rate`; unlimited if there
    /// is no limit.
    pub fn share_of(&self, rate: Option<Rate>) -> u64 {
        rate.map_or(u64::MAX, |rate| (rate.as_bps() / u64::from(self.streams.max(1))).max(1))
    }

    /// Encodes the header, for the start of a connection or, with `datagram`, for a datagram after its stamp, whose length is included.
    pub fn encode(&self, datagram: bool) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        let counted = bytes.len() + if datagram { super::STAMP_BYTES } else { 0 };
        let mut flags = EXTENDED | LENGTH_GIVEN | ((counted as u32) << 1 & LENGTH_MASK);
        let mut upper = 0;
        if datagram && self.wide_numbers {
            flags |= WIDE_NUMBERS;
        }
        if datagram && (self.reverse || self.full_duplex || self.no_report) {
            flags |= UDP_TESTS;
        }
        if self.reverse || self.full_duplex {
            flags |= VERSION_2;
        }
        if self.acknowledge && !datagram {
            flags |= ACKNOWLEDGE | VERSION_2;
        }
        match self.connect_back {
            Some(Back::AtOnce) => flags |= VERSION_1 | RUN_NOW,
            Some(Back::Afterwards) => flags |= VERSION_1,
            None => {}
        }
        for (is, flag) in [
            (self.reverse, REVERSE),
            (self.full_duplex, FULL_DUPLEX),
            (self.trip_times, TRIP_TIMES),
            (self.no_report, NO_REPORT),
        ] {
            upper |= if is { flag } else { 0 };
        }
        let amount = match self.amount {
            Amount::Time(time) => {
                let ticks = i32::try_from(time.as_ns().div_ceil(TICK.as_ns())).unwrap_or(i32::MAX);
                ticks.wrapping_neg() as u32
            }
            Amount::Bytes(bytes) => u32::try_from(bytes).unwrap_or(u32::MAX) & 0x7fff_ffff,
        };
        let [high, low] = halves(self.rate_bps.unwrap_or(0));
        let [major, minor, patch] = self.version.unwrap_or_default();
        let words = [
            flags,
            self.streams,
            u32::from(self.port),
            self.length.unwrap_or(0),
            0,
            amount,
            0,
            0,
            upper,
            u32::from(major) << 16 | u32::from(minor),
            u32::from(patch) << 16 | 3,
            u32::from(self.type_of_service),
            low,
            high << 8,
            0,
        ];
        for (index, value) in words.into_iter().enumerate() {
            put(&mut bytes, index, value);
        }
        bytes
    }
}

/// Whether the first word belongs to a header: it has flags used only there, and at least one that names its kind.
fn is_header(flags: u32) -> bool {
    flags & (VERSION_1 | VERSION_2 | EXTENDED) != 0 && flags & UNUSED == 0
}

/// Returns the word after the stamp of datagrams too short for a header; it announces 64-bit sequence numbers.
pub const fn bare() -> [u8; 4] {
    WIDE_NUMBERS.to_be_bytes()
}

/// Returns the server's acknowledgement with its version, if a header asks for it.
pub fn acknowledgement(version: [u16; 3]) -> [u8; ACKNOWLEDGEMENT_BYTES] {
    let mut bytes = [0; ACKNOWLEDGEMENT_BYTES];
    put(&mut bytes, 0, ACKNOWLEDGEMENT);
    put(&mut bytes, 1, ACKNOWLEDGEMENT_BYTES as u32);
    put(&mut bytes, 3, u32::from(version[0]) << 16 | u32::from(version[1]));
    put(&mut bytes, 4, u32::from(version[2]) << 16);
    bytes
}

/// Reads the version in an acknowledgement: `None` until it is complete, an error if it is something else.
pub fn read_acknowledgement(arrived: &[u8]) -> Result<Option<[u16; 3]>, &'static str> {
    match (word(arrived, 0), word(arrived, 1)) {
        (Some(kind), _) if kind != ACKNOWLEDGEMENT => Err("it does not start with an iperf2 header"),
        (_, Some(length)) if length as usize != ACKNOWLEDGEMENT_BYTES => {
            Err("its length does not match iperf2")
        }
        _ if arrived.len() < ACKNOWLEDGEMENT_BYTES => Ok(None),
        _ => {
            let (major, minor) = (word(arrived, 3).unwrap_or(0), word(arrived, 4).unwrap_or(0));
            Ok(Some([(major >> 16) as u16, major as u16, (minor >> 16) as u16]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Header in the datagrams of iperf 2.1.8 with `-u -t 0.3`, after the stamp.
    const OF_218: &str = "48010098000000010000176f0000000000000000ffffffe2\
                          0000000000000000000000000002000100080003000000000010000000000000";

    fn unhex(text: &str) -> Vec<u8> {
        (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
    }

    #[test]
    fn a_header_of_the_original_is_read() {
        let bytes = unhex(OF_218);
        assert_eq!(TestHeader::length_of(&bytes), Some(76));
        let header = TestHeader::decode(&bytes).unwrap();
        assert_eq!(
            header,
            TestHeader {
                acknowledge: true,
                port: 5999,
                amount: Amount::Time(Nanos::millis(300)),
                rate_bps: Some(1 << 20),
                version: Some([2, 1, 8]),
                ..Default::default()
            }
        );
    }

    /// First bytes of iperf 2.1.8 with `-R -t 1 -b 20M --trip-times`.
    const REVERSE_TRIP_TIMES: &str = "400100a000000001000087290000000000000000ffffff9c0000000000000000\
                                      04100000000200010008000300000000014000000000000000000000000000006b024a08000dc66a\
                                      0000000000000000";

    #[test]
    fn a_client_that_only_receives_with_trip_times_is_known_by_these_and_awaits_no_acknowledgement() {
        let header = TestHeader::decode(&unhex(REVERSE_TRIP_TIMES)).unwrap();
        assert!(header.reverse && header.trip_times && !header.acknowledge, "{header:?}");
        assert_eq!((header.amount, header.rate_bps), (Amount::Time(Nanos::secs(1)), Some(20 << 20)));
    }

    #[test]
    fn what_a_server_would_have_to_do_otherwise_is_known() {
        // `-R -t 1 --isochronous=60:10M,1m`, `--isochronous` alone, `-R -t 1 --permit-key=abcdefg`.
        let reverse =
            "440100e000000001000064d40000000000000000ffffff9c0000000000000000040100000002000100080003";
        let forward =
            "400100a000000001000064ca0000000000000000ffffff9c0000000000000000000100000002000100080003";
        let keyed =
            "5401007c00000001000064ca0000000000000000ffffff9c0000000000000000040000000002000100080003";
        for (header, unserved) in
            [(reverse, Some(Unserved::Isochronous)), (forward, None), (keyed, Some(Unserved::PermitKey))]
        {
            assert_eq!(TestHeader::decode(&unhex(header)).unwrap().unserved, unserved, "{header}");
        }
    }

    #[test]
    fn headers_come_back() {
        for header in [
            TestHeader { reverse: true, acknowledge: true, ..Default::default() },
            TestHeader {
                full_duplex: true,
                streams: 8,
                rate_bps: Some(25_000_000_000),
                ..Default::default()
            },
            TestHeader {
                reverse: true,
                amount: Amount::Bytes(1 << 20),
                length: Some(8192),
                ..Default::default()
            },
        ] {
            let bytes = header.encode(false);
            assert_eq!(TestHeader::length_of(&bytes[..4]), Some(bytes.len()));
            let read = TestHeader::decode(&bytes).unwrap();
            assert_eq!(TestHeader { wide_numbers: true, ..read }, header);
        }
        let back = TestHeader { connect_back: Some(Back::AtOnce), acknowledge: true, ..Default::default() };
        let read = TestHeader::decode(&TestHeader { acknowledge: false, ..back }.encode(true)).unwrap();
        assert_eq!(read, back, "an extension without version 2 asks for an acknowledgement too");
    }

    #[test]
    fn the_version_is_asked_for_by_its_flag_or_as_before_there_was_one() {
        // Answer of iperf 2.1.8 if an acknowledgement is requested.
        for (flags, asks) in [
            (EXTENDED, true),
            (EXTENDED | ACKNOWLEDGE, true),
            (EXTENDED | VERSION_2, false),
            (EXTENDED | VERSION_2 | ACKNOWLEDGE, true),
            (VERSION_1, false),
        ] {
            let mut bytes = [0; HEADER_BYTES];
            put(&mut bytes, 0, flags);
            assert_eq!(TestHeader::decode(&bytes).unwrap().acknowledge, asks, "{flags:x}");
        }
    }

    #[test]
    fn payload_is_no_header_and_nothing_makes_it_panic() {
        for payload in [b"0123456789".as_slice(), &[0; 40], b"GET / HTTP/1.1", b"SSH-2.0-OpenSSH"] {
            assert_eq!(TestHeader::length_of(payload), Some(0));
        }
        assert_eq!(TestHeader::length_of(&[0x40, 0, 0]), None);
        let mut bytes = [0xff; 300];
        bytes[1..3].copy_from_slice(&[0x03, 0x01]);
        for cut in 0..bytes.len() {
            let _ = TestHeader::decode(&bytes[..cut]);
            let _ = read_acknowledgement(&bytes[..cut]);
        }
        assert!(TestHeader::length_of(&bytes).unwrap() <= 256);
        bytes[..4].copy_from_slice(&0x8000_0000_u32.to_be_bytes());
        assert_eq!(TestHeader::length_of(&bytes), Some(24));
    }

    #[test]
    fn acknowledgements_come_back_and_grow_byte_by_byte() {
        let bytes = acknowledgement([2, 1, 8]);
        for cut in 0..bytes.len() {
            assert_eq!(read_acknowledgement(&bytes[..cut]), Ok(None), "{cut}");
        }
        assert_eq!(read_acknowledgement(&bytes), Ok(Some([2, 1, 8])));
        assert!(read_acknowledgement(b"0123").is_err());
    }
}
