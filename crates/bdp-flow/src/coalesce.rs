//! Sets how much data accumulates before a reader is woken (`SO_RCVLOWAT`).
//!
//! At tens of gigabits per second, a wake-up per segment costs both ends more than the data. A reader that is woken
//! at most two thousand times a second serves the window as well as one that reads at once: it leaves half a
//! millisecond of all its streams in the queue, no more than fits into the processor's cache, and never more than an
//! eighth of a stream's buffer.

use std::net::TcpStream;

use bdp_sys::socket;

/// Time span of data that may accumulate in all streams of a reader, and in a single one.
const TOGETHER_NS: f64 = 500e3;
const ALONE_NS: f64 = 5e6;
/// Most bytes that accumulate: read later, they have left the processor's cache.
const MOST_BYTES: u64 = 512 << 10;
/// Least bytes worth waiting for: two of the largest segments are read as soon as they arrive.
const LEAST_BYTES: f64 = 128.0 * 1024.0;
/// Part of the receive buffer, at most.
const OF_BUFFER: u64 = 8;
/// Interval at which the rates are checked.
const LOOK_NS: u64 = 10_000_000;

/// The low-water marks of one flow's streams.
#[derive(Debug)]
pub struct Coalescing {
    looked_at_ns: u64,
    streams: Vec<Stream>,
}

#[derive(Debug, Clone, Copy)]
struct Stream {
    bytes: u64,
    mark: u64,
}

impl Coalescing {
    /// Creates marks for this many streams, each woken by the first byte.
    pub fn new(streams: usize) -> Self {
        Self { looked_at_ns: 0, streams: vec![Stream { bytes: 0, mark: 1 }; streams] }
    }

    /// Whether any stream is woken by more than a byte.
    pub fn has_marks(&self) -> bool {
        self.streams.iter().any(|stream| stream.mark > 1)
    }

    /// Whether a stream's mark may need adjusting: not if so few bytes have arrived since that the stream is slow,
    /// whatever the time.
    pub fn is_due(&self, bytes: u64) -> bool {
        let before: u64 = self.streams.iter().map(|stream| stream.bytes).sum();
        self.has_marks() || (bytes - before.min(bytes)) as f64 * TOGETHER_NS >= LEAST_BYTES * LOOK_NS as f64
    }

    /// Adjusts the marks to the rates, by the bytes of each stream so far, when it is time.
    pub fn fit(&mut self, now_ns: u64, sockets: &[TcpStream], read: impl Iterator<Item = u64>) {
        let passed_ns = now_ns - self.looked_at_ns.min(now_ns);
        if passed_ns < LOOK_NS {
            return;
        }
        self.looked_at_ns = now_ns;
        let rates = self.streams.iter_mut().zip(read).map(|(stream, bytes)| {
            let rate = (bytes - stream.bytes) as f64 / passed_ns as f64;
            stream.bytes = bytes;
            rate
        });
        let rates: Vec<f64> = rates.collect();
        let all: f64 = rates.iter().sum();
        for ((stream, socket), rate) in self.streams.iter_mut().zip(sockets).zip(rates) {
            let buffer = || socket::receive_buffer(socket).unwrap_or(0) as u64;
            if let Some(mark) = mark_for(rate, all, stream.mark, buffer) {
                // If the system does not support marks, the reader is woken more often.
                let _ = socket::set_receive_low_water(socket, mark as usize);
                stream.mark = mark;
            }
        }
    }
}

/// Returns the mark for a stream's rate among those of all, bytes/ns; `None` if the current one is close enough.
fn mark_for(rate: f64, all: f64, present: u64, buffer_bytes: impl Fn() -> u64) -> Option<u64> {
    let together = (all * TOGETHER_NS).min(rate * ALONE_NS);
    if together < LEAST_BYTES {
        return (present > 1).then_some(1);
    }
    let mark = (together as u64).min(MOST_BYTES).min(buffer_bytes() / OF_BUFFER).max(1);
    (mark > present * 3 / 2 || mark * 3 / 2 < present).then_some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_streams_are_read_less_often_and_slow_ones_at_once() {
        let alone =
            |gigabits: f64, present, buffer| mark_for(gigabits / 8.0, gigabits / 8.0, present, || buffer);
        let roomy = 6 << 20;
        assert_eq!(alone(1.0, 1, roomy), None);
        assert_eq!(alone(4.0, 1, roomy), Some(250_000));
        assert_eq!(alone(4.2, 250_000, roomy), None);
        assert_eq!(alone(40.0, 250_000, roomy), Some(MOST_BYTES));
        assert_eq!(alone(1.0, 250_000, roomy), Some(1));
        // A small buffer bounds what stays in it.
        assert_eq!(alone(20.0, 1, 131_072), Some(16_384));
    }

    #[test]
    fn many_streams_count_together_and_none_waits_for_long() {
        let among = |gigabits: f64, all: f64| mark_for(gigabits / 8.0, all / 8.0, 1, || 6 << 20);
        assert_eq!(among(1.0, 64.0), Some(MOST_BYTES));
        // A slow stream among fast ones, which would accumulate that much in 40 ms.
        assert_eq!(among(0.1, 64.0), None);
        assert_eq!(among(0.4, 64.0), Some(250_000));
    }

    #[test]
    fn a_stream_of_which_little_came_is_slow() {
        let mut coalescing = Coalescing::new(1);
        // 128 KiB within 0.5 ms are 2.5 MiB within 10 ms.
        assert!(!coalescing.is_due(0) && !coalescing.is_due(2_621_439) && coalescing.is_due(2_621_440));
        coalescing.streams[0].bytes = 2_000_000;
        assert!(!coalescing.is_due(2_621_440) && !coalescing.has_marks());
        coalescing.streams[0].mark = 2;
        assert!(coalescing.is_due(2_621_440) && coalescing.has_marks());
    }
}
