//! How regularly a sender goes on, and how late a receiver's program reads: what tells a rate that a host keeps from a program that writes, and a reader from a window.

/// The part that lies within this of the mean, where a host keeps a rate: a congestion control that probes changes its pace by a quarter.
const EVEN: f64 = 0.9;
const WITHIN: u64 = 10;
/// Timers of a kernel are as sharp.
const TIMER_NS: u64 = 60_000;
/// The part that ends a write, of a kernel that has more to send.
const ENDS_SHORT: f64 = 0.1;
/// Gaps that a mean is of.
const MEAN_OF: u64 = 16;

/// The gaps between the times that a sender goes on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rhythm {
    pub(super) mean_ns: u64,
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

    pub(super) fn is_even(&self) -> bool {
        self.gaps > 2 * MEAN_OF && self.even as f64 >= EVEN * (self.gaps - MEAN_OF) as f64
    }

    pub(super) fn ends_short(&self) -> bool {
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
