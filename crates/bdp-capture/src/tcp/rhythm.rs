//! How regularly a sender goes on, and how late a receiver's program reads: what tells a rate that a host keeps from a program that writes, and a reader from a window.

use super::half::HalfConnection;

/// Of the times that a sender goes on, those that no acknowledgement sets off, where none does.
const BY_ITSELF: f64 = 0.85;
/// The part that lies within this of the mean, where a host keeps a rate: a congestion control that probes changes its pace by a quarter.
const EVEN: f64 = 0.9;
const WITHIN: u64 = 10;
/// Timers of a kernel are as sharp.
const TIMER_NS: u64 = 60_000;
/// The part that ends a write, of a kernel that has more to send.
const ENDS_SHORT: f64 = 0.1;
/// What a program reads by this time it reads at once.
const LATE_NS: u64 = 3_000_000;
/// Gaps that a mean is of.
const MEAN_OF: u64 = 16;

/// The gaps between the times that a sender goes on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rhythm {
    mean_ns: u64,
    gaps: u64,
    even: u64,
    ends_short: u64,
}

impl Rhythm {
    pub(super) fn add(&mut self, gap_ns: u64, ended_short: bool) {
        self.gaps += 1;
        self.ends_short += u64::from(ended_short);
        if self.gaps <= MEAN_OF {
            self.mean_ns += (gap_ns.saturating_sub(self.mean_ns)) / self.gaps;
        } else {
            self.even += u64::from(gap_ns.abs_diff(self.mean_ns) <= self.mean_ns / WITHIN + TIMER_NS);
            self.mean_ns = self.mean_ns - self.mean_ns / MEAN_OF + gap_ns / MEAN_OF;
        }
    }

    fn is_even(&self) -> bool {
        self.gaps > 2 * MEAN_OF && self.even as f64 >= EVEN * (self.gaps - MEAN_OF) as f64
    }

    fn ends_short(&self) -> bool {
        self.ends_short as f64 > ENDS_SHORT * self.gaps as f64
    }
}

/// Room that came when a program read, and not when the data came: windows that were acknowledged at a stroke, and late, or were opened after that.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LateReads {
    late: u64,
    late_bytes: u64,
    bytes: u64,
}

impl LateReads {
    /// So many times say it.
    const TIMES: u64 = 4;

    pub(super) const fn add(&mut self, bytes: u64, is_late: bool) {
        self.bytes += bytes;
        if is_late {
            self.late += 1;
            self.late_bytes += bytes;
        }
    }

    pub(super) const fn are_usual(&self) -> bool {
        self.are_seen() && self.late_bytes * 2 > self.bytes
    }

    pub(super) const fn are_seen(&self) -> bool {
        self.late >= Self::TIMES
    }
}

impl HalfConnection {
    /// An acknowledgement of so many bytes, which took this long since the last of them passed here, or was sent.
    pub(super) fn note_read(&mut self, bytes: u64, took_ns: u64) {
        let (Some(window), Some(least)) = (self.window_most, self.rtt.min()) else { return };
        let is_late = took_ns > least + LATE_NS.max(self.least_rtt().unwrap_or(0) / 4);
        self.late_reads.add(bytes, is_late && bytes >= window / 2 && window > 0);
    }

    /// The window was opened by so many bytes, so long after data was acknowledged last.
    pub(super) const fn note_opened(&mut self, bytes: u64, after_ns: u64) {
        if after_ns > LATE_NS {
            self.late_reads.add(bytes, true);
        }
    }

    /// No acknowledgement sets off what is sent, no queue stands, and nothing is lost: neither the path nor a window holds the sender back.
    pub(super) fn sends_by_its_own_clock(&self) -> bool {
        self.paced_share().is_some_and(|share| share >= BY_ITSELF) && self.is_at_floor()
    }

    /// It goes on evenly, whether acknowledgements happen to come just then or not, and has more to send all the time: its host keeps a rate.
    pub(super) fn keeps_a_rate(&self) -> bool {
        self.paced_share().is_some()
            && self.is_at_floor()
            && self.rhythm.is_even()
            && !self.rhythm.ends_short()
    }

    /// No queue stands, and nothing is lost.
    fn is_at_floor(&self) -> bool {
        let is_low = self.whole.report().is_some_and(|rtt| {
            let above = rtt.p95.as_ns().saturating_sub(rtt.min.as_ns());
            let even = if self.rhythm.is_even() { self.rhythm.mean_ns } else { 0 };
            above <= (rtt.min.as_ns() / 20).max(1_000_000) + even
        });
        is_low && self.retransmissions.segments == 0
    }
}
