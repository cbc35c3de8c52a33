//! Data sent to a client with `--trip-times`: the server's own header, followed on a connection by bursts that each
//! start with the time of sending.

use super::header::{LENGTH_MASK, NO_REPORT, TRIP_TIMES, UDP_TESTS};
use super::{TestHeader, halves, put, word};

/// Length of the header before the first burst, bytes.
pub const OPENING_BYTES: usize = 80;
/// Length of a burst's header, bytes; counted in the burst's length.
pub const BURST_BYTES: usize = 92;
/// Positions of the extension's flags and the test's start time.
const UPPER: usize = 8;
const BEGAN: usize = 16;
/// Length of the header after a datagram's stamp, and the position of the test's start time in it.
const DATAGRAM_BYTES: usize = 108;
const DATAGRAM_BEGAN: usize = 24;

/// Returns the header before the first burst for a client with this header; `began_us` is the start time since 1970.
pub fn opening(client: &TestHeader, version: [u16; 3], began_us: u64) -> Vec<u8> {
    let mut bytes = own(client, version).encode(false);
    bytes.resize(OPENING_BYTES, 0);
    set_flags(&mut bytes, OPENING_BYTES, 0, TRIP_TIMES);
    put_time(&mut bytes, BEGAN, began_us);
    bytes
}

/// Returns the header after the stamp of every datagram for a client with this header.
pub fn datagram_header(client: &TestHeader, version: [u16; 3], began_us: u64) -> Vec<u8> {
    let mut bytes = TestHeader { rate_bps: client.rate_bps, ..own(client, version) }.encode(true);
    bytes.resize(DATAGRAM_BYTES, 0);
    set_flags(&mut bytes, DATAGRAM_BYTES, UDP_TESTS, TRIP_TIMES | NO_REPORT);
    put_time(&mut bytes, DATAGRAM_BEGAN, began_us);
    bytes
}

/// Returns the server's own header.
fn own(client: &TestHeader, version: [u16; 3]) -> TestHeader {
    TestHeader {
        reverse: false,
        connect_back: None,
        acknowledge: false,
        rate_bps: None,
        version: Some(version),
        ..*client
    }
}

fn set_flags(bytes: &mut [u8], length: usize, more: u32, more_upper: u32) {
    let flags = word(bytes, 0).unwrap_or(0) & !LENGTH_MASK | (length as u32) << 1 | more;
    let upper = word(bytes, UPPER).unwrap_or(0) | more_upper;
    put(bytes, 0, flags);
    put(bytes, UPPER, upper);
}

/// Header of a burst. Times are microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    /// Burst number, from 1.
    pub number: u32,
    /// Length of the burst, this header included, bytes.
    pub bytes: u32,
    /// Length of all bursts so far, this one included, bytes.
    pub total_bytes: u64,
    /// Time at which the first burst was sent.
    pub began_us: u64,
    /// Time at which this burst is sent.
    pub sent_us: u64,
}

impl Burst {
    /// Encodes the header.
    pub fn encode(&self) -> [u8; BURST_BYTES] {
        let mut bytes = [0; BURST_BYTES];
        let [high, low] = halves(self.total_bytes);
        put_time(&mut bytes, 3, self.began_us);
        put_time(&mut bytes, 5, self.sent_us);
        for (index, value) in [self.number, self.bytes, low, high].into_iter().enumerate() {
            put(&mut bytes, 11 + index, value);
        }
        bytes
    }
}

fn put_time(bytes: &mut [u8], index: usize, us: u64) {
    put(bytes, index, u32::try_from(us / 1_000_000).unwrap_or(u32::MAX));
    put(bytes, index + 1, (us % 1_000_000) as u32);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Header sent by iperf 2.1.8 for `-R -t 1 --trip-times`, without and with `--full-duplex`, on port 34601.
    const OPENINGS: [(bool, u64, &str); 2] = [
        (
            false,
            1_795_312_136_903_423,
            "400100a0 00000001 00008729 00000000 00000000 ffffff9c 00000000 00000000 00100000 00020001 \
             00080003 00000000 00000000 00000000 00000000 00000000 6b024a08 000dc8ff 00000000 00000000",
        ),
        (
            true,
            1_795_312_137_974_422,
            "440100a0 00000001 00008729 00000000 00000000 ffffff9c 00000000 00000000 08100000 00020001 \
             00080003 00000000 00000000 00000000 00000000 00000000 6b024a09 000ede56 00000000 00000000",
        ),
    ];

    fn words(bytes: &[u8]) -> String {
        let words: Vec<String> =
            (0..bytes.len() / 4).map(|i| format!("{:08x}", word(bytes, i).unwrap())).collect();
        words.join(" ")
    }

    #[test]
    fn what_comes_first_is_that_of_the_original() {
        use super::super::Amount;
        for (full_duplex, began_us, theirs) in OPENINGS {
            let client = TestHeader {
                reverse: !full_duplex,
                full_duplex,
                trip_times: true,
                port: 34601,
                amount: Amount::Time(bdp_model::units::Nanos::secs(1)),
                rate_bps: Some(20 << 20),
                ..Default::default()
            };
            assert_eq!(words(&opening(&client, [2, 1, 8], began_us)), theirs);
        }
    }

    /// Header after the stamp in iperf 2.1.8 for `-u -b 1M -R -t 1 --trip-times`.
    const OF_DATAGRAMS: &str = "680100d8 00000001 00008729 00000000 00000000 ffffff9c 00000000 00000000 00180000 00020001 \
         00080003 00000000 00100000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 \
         00000000 00000000 00000000 00000000 6b02524a 000e3dc7 00000000";

    #[test]
    fn what_stands_in_datagrams_is_that_of_the_original() {
        use super::super::Amount;
        let client = TestHeader {
            reverse: true,
            trip_times: true,
            port: 34601,
            amount: Amount::Time(bdp_model::units::Nanos::secs(1)),
            rate_bps: Some(1 << 20),
            ..Default::default()
        };
        let ours = words(&datagram_header(&client, [2, 1, 8], 0x6b02_524a * 1_000_000 + 0xe3dc7));
        assert_eq!(ours, OF_DATAGRAMS);
    }

    #[test]
    fn a_burst_says_how_long_it_is_and_when_it_was_sent() {
        let burst = Burst {
            number: 2,
            bytes: 131_072,
            total_bytes: 1 << 32 | 5,
            began_us: 1_795_312_136_000_001,
            sent_us: 1_795_312_137_000_002,
        };
        assert_eq!(
            words(&burst.encode()),
            "00000000 00000000 00000000 6b024a08 00000001 6b024a09 00000002 00000000 00000000 00000000 \
             00000000 00000002 00020000 00000005 00000001 00000000 00000000 00000000 00000000 00000000 \
             00000000 00000000 00000000"
        );
    }
}
