//! How much of a message is taken.

/// Longest parameters that are taken; iperf3 itself takes as much since 3.18.
pub const LONGEST_PARAMETERS: usize = 8 << 10;
/// Longest results that are taken: of 128 streams, and the server's output of a day with samples of a second.
pub const LONGEST_RESULTS: usize = 16 << 20;
/// Most streams of one direction.
pub const MOST_STREAMS: u32 = 128;
/// Longest test.
pub const LONGEST_SECONDS: u64 = 86_400;
/// Longest payload of a datagram.
pub(super) const LONGEST_DATAGRAM: u64 = 65_507;
