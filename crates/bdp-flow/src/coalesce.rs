//! How much a reader lets come together before it is woken (`SO_RCVLOWAT`).
//!
//! At tens of gigabits per second a wake-up for each segment costs both ends more than the data. A reader that is woken
//! ten thousand times a second at most is as good to the window as one that reads at once: what it leaves in the queue is
//! a tenth of a millisecond of the stream, and never more than an eighth of its buffer.

use std::net::TcpStream;

use bdp_sys::socket;

/// What may come together.
const TOGETHER_NS: f64 = 100e3;
/// Less is not worth it: a segment as large as they come is read as soon as it is there.
const LEAST_BYTES: f64 = 64.0 * 1024.0;
/// Part of the receive buffer, at most.
const OF_BUFFER: u64 = 8;
/// From one look at the rates to the next.
const LOOK_NS: u64 = 10_000_000;

/// The marks of one flow's streams.
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
    /// Of so many streams, each woken by the first byte.
    pub fn new(streams: usize) -> Self {
        Self { looked_at_ns: 0, streams: vec![Stream { bytes: 0, mark: 1 }; streams] }
    }

    /// Whether a stream is woken by more than a byte.
    pub fn has_marks(&self) -> bool {
        self.streams.iter().any(|stream| stream.mark > 1)
    }

    /// Of one stream, whether the marks may have to be fitted: not where so few bytes came since that it is slow, whatever the time.
    pub fn is_due(&self, bytes: u64) -> bool {
        let before: u64 = self.streams.iter().map(|stream| stream.bytes).sum();
        self.has_marks() || (bytes - before.min(bytes)) as f64 * TOGETHER_NS >= LEAST_BYTES * LOOK_NS as f64
    }

    /// Fits the marks to the rates, given the bytes of each stream so far, when it is time.
    pub fn fit(&mut self, now_ns: u64, sockets: &[TcpStream], read: impl Iterator<Item = u64>) {
        let passed_ns = now_ns - self.looked_at_ns.min(now_ns);
        if passed_ns < LOOK_NS {
            return;
        }
        self.looked_at_ns = now_ns;
        for ((stream, socket), bytes) in self.streams.iter_mut().zip(sockets).zip(read) {
            let bytes_per_ns = (bytes - stream.bytes) as f64 / passed_ns as f64;
            stream.bytes = bytes;
            let buffer = || socket::receive_buffer(socket).unwrap_or(0) as u64;
            if let Some(mark) = mark_for(bytes_per_ns, stream.mark, buffer) {
                // Where the system knows no mark, the reader is woken more often.
                let _ = socket::set_receive_low_water(socket, mark as usize);
                stream.mark = mark;
            }
        }
    }
}

/// The mark for a rate; `None` where the present one is near enough.
fn mark_for(bytes_per_ns: f64, present: u64, buffer_bytes: impl Fn() -> u64) -> Option<u64> {
    let together = bytes_per_ns * TOGETHER_NS;
    if together < LEAST_BYTES {
        return (present > 1).then_some(1);
    }
    let mark = (together as u64).min(buffer_bytes() / OF_BUFFER).max(1);
    (mark > present * 3 / 2 || mark * 3 / 2 < present).then_some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_streams_are_read_less_often_and_slow_ones_at_once() {
        let gigabits = |rate: f64| rate / 8.0;
        let roomy = || 6 << 20;
        assert_eq!(mark_for(gigabits(1.0), 1, roomy), None);
        assert_eq!(mark_for(gigabits(20.0), 1, roomy), Some(250_000));
        assert_eq!(mark_for(gigabits(21.0), 250_000, roomy), None);
        assert_eq!(mark_for(gigabits(40.0), 250_000, roomy), Some(500_000));
        assert_eq!(mark_for(gigabits(1.0), 250_000, roomy), Some(1));
    }

    #[test]
    fn a_stream_of_which_little_came_is_slow() {
        let mut coalescing = Coalescing::new(1);
        // 64 KiB within 0.1 ms are 6.4 MiB within 10 ms.
        assert!(!coalescing.is_due(0) && !coalescing.is_due(6_553_599) && coalescing.is_due(6_553_600));
        coalescing.streams[0].bytes = 6_000_000;
        assert!(!coalescing.is_due(6_553_600) && !coalescing.has_marks());
        coalescing.streams[0].mark = 2;
        assert!(coalescing.is_due(6_553_600) && coalescing.has_marks());
    }

    #[test]
    fn a_small_buffer_bounds_what_stays_in_it() {
        assert_eq!(mark_for(2.5, 1, || 131_072), Some(16_384));
    }
}
