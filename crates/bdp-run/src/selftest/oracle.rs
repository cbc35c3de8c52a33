//! Computes when frames leave a wire with a rate and a bounded queue: arithmetic that shares nothing with the
//! emulator's.

use bdp_lab::frame_train::Frame;

/// Limit of the queue, including the frame on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bound {
    None,
    Frames(usize),
    WireBytes(u64),
}

/// A wire.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wire {
    pub(super) rate_bps: u64,
    pub(super) overhead_bytes: u32,
    pub(super) delay_ns: u64,
    pub(super) bound: Bound,
}

impl Wire {
    /// Returns when each frame leaves; `None` if the queue had no room. Time is counted in units of 1 / rate of a
    /// nanosecond, so that nothing is rounded before the end.
    pub(super) fn departures(&self, frames: &[Frame], sent_ns: &[u64]) -> Vec<Option<u64>> {
        let rate = u128::from(self.rate_bps);
        let mut free = 0u128;
        let mut inside: Vec<u128> = Vec::new();
        let out = |(frame, &sent): (&Frame, &u64)| {
            let now = u128::from(sent) * rate;
            let work = u128::from(frame.ip_bytes + self.overhead_bytes) * 8 * 1_000_000_000;
            let end = free.max(now) + work;
            inside.retain(|&end| end > now);
            let fits = match self.bound {
                Bound::None => true,
                Bound::Frames(most) => inside.len() < most,
                Bound::WireBytes(most) => end - now <= u128::from(most) * 8 * 1_000_000_000,
            };
            if !fits {
                return None;
            }
            free = end;
            inside.push(end);
            Some((end / rate) as u64 + self.delay_ns)
        };
        frames.iter().zip(sent_ns).map(out).collect()
    }
}

/// Returns the largest difference between moments, and how many frames are in one list but not in the other.
pub(super) fn compare(a: &[Option<u64>], b: &[Option<u64>]) -> (Option<u64>, usize) {
    let off = a.iter().zip(b).filter_map(|(a, b)| Some((*a)?.abs_diff((*b)?))).max();
    let unlike = a.iter().zip(b).filter(|(a, b)| a.is_some() != b.is_some()).count();
    (off, unlike + a.len().abs_diff(b.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wire_serves_one_after_the_other_and_drops_what_finds_no_room() {
        let frames: Vec<Frame> = (0..4).map(|_| Frame { ip_bytes: 1000, ..Frame::default() }).collect();
        let wire = |bound| Wire { rate_bps: 3_000_000_000, overhead_bytes: 0, delay_ns: 10, bound };
        // 8,000 bits at 3 Gbit/s take 2,666 and two thirds nanoseconds.
        let at = |bound| wire(bound).departures(&frames, &[0, 0, 0, 2667]);
        assert_eq!(at(Bound::None), [2676, 5343, 8010, 10676].map(Some));
        assert_eq!(at(Bound::Frames(2)), [Some(2676), Some(5343), None, Some(8010)]);
        assert_eq!(at(Bound::WireBytes(2000)), [Some(2676), Some(5343), None, Some(8010)]);
        assert_eq!(compare(&[Some(1), None, Some(9)], &[Some(4), Some(5), Some(8)]), (Some(3), 1));
    }
}
