//! Limits on the size of messages.

/// Longest parameters accepted, bytes; iperf3 itself has the same limit since 3.18.
pub const LONGEST_PARAMETERS: usize = 8 << 10;
/// Longest results accepted, bytes: 128 streams, and the server's output over a day with one sample per second.
pub const LONGEST_RESULTS: usize = 16 << 20;
/// Most streams per direction.
pub const MOST_STREAMS: u32 = 128;
/// Longest test, seconds.
pub const LONGEST_SECONDS: u64 = 86_400;
/// Longest payload of a datagram, bytes.
pub(super) const LONGEST_DATAGRAM: u64 = 65_507;
