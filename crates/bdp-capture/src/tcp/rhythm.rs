//! Regularity of a sender and lateness of a reader: these distinguish a rate kept by a host from a writing program, and a reader from a window.

/// Share of gaps close to the mean from which a host keeps a rate: a congestion control that probes changes its pace by a quarter.
const EVEN: f64 = 0.9;
const WITHIN: u64 = 10;
/// Precision of a kernel's timers.
const TIMER_NS: u64 = 60_000;
/// Most segments that end a write, as a share, if the kernel always has more to send.
const ENDS_SHORT: f64 = 0.1;
/// Gaps averaged.
const MEAN_OF: u64 = 16;

/// Gaps between the times at which a sender resumes.
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

/// Window updates caused by a program's reads rather than by arriving data: windows acknowledged at once and late, or opened after that.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LateReads {
    late: u64,
    late_bytes: u64,
    bytes: u64,
}

impl LateReads {
    /// Occurrences from which this is certain.
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
