//! Busy waits, as long as they pay off.
//!
//! An answer within microseconds is noticed sooner by a thread that is awake. If none comes that soon, because the
//! path is long or because the answering program needs this very processor, spinning only delays, and the next waits
//! sleep.

use bdp_sys::process;

/// Waits that sleep after the first that was in vain; each further one doubles them.
const SKIPPED_AT_FIRST: u32 = 16;
/// And at most.
const SKIPPED_AT_MOST: u32 = 1024;

/// Decides whether to spin, by past results.
#[derive(Debug, Clone, Copy)]
pub struct Spin {
    /// Longest spin; 0 with a single processor.
    budget_ns: u64,
    until_ns: u64,
    skip: u32,
    skipped: u32,
}

impl Spin {
    /// Creates it with this longest spin.
    pub fn new(budget_ns: u64) -> Self {
        let budget_ns = if process::allowed_cpus().len() > 1 { budget_ns } else { 0 };
        Self { budget_ns, until_ns: 0, skip: 0, skipped: 0 }
    }

    /// Notes that a wait begins.
    pub fn begin(&mut self, now_ns: u64) {
        self.until_ns = 0;
        if self.skip > 0 {
            self.skip -= 1;
        } else if self.budget_ns > 0 {
            self.until_ns = now_ns + self.budget_ns;
        }
    }

    /// Whether to keep spinning; notes a spin that was in vain.
    pub fn goes_on(&mut self, now_ns: u64) -> bool {
        if self.until_ns == 0 {
            return false;
        }
        if now_ns < self.until_ns {
            return true;
        }
        self.until_ns = 0;
        self.skipped = (self.skipped * 2).clamp(SKIPPED_AT_FIRST, SKIPPED_AT_MOST);
        self.skip = self.skipped;
        false
    }

    /// Notes that the awaited event has come.
    pub fn end(&mut self) {
        if self.until_ns > 0 {
            self.skipped = 0;
            self.until_ns = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spin_in_vain_backs_off_until_it_pays() {
        let mut spin = Spin { budget_ns: 50, until_ns: 0, skip: 0, skipped: 0 };
        let spins = |spin: &mut Spin| {
            spin.begin(1000);
            spin.goes_on(1049)
        };
        assert!(spins(&mut spin) && !spin.goes_on(1050));
        for _ in 0..SKIPPED_AT_FIRST {
            assert!(!spins(&mut spin));
        }
        assert!(spins(&mut spin) && !spin.goes_on(1050));
        for _ in 0..2 * SKIPPED_AT_FIRST {
            assert!(!spins(&mut spin));
        }
        assert!(spins(&mut spin));
        spin.end();
        assert!(spins(&mut spin));
        spin.end();
        assert!(spins(&mut spin) && !spin.goes_on(1050));
        assert_eq!(spin.skip, SKIPPED_AT_FIRST);
        let mut single = Spin { budget_ns: 0, ..spin };
        assert!(!spins(&mut single));
    }
}
