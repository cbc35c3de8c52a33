//! Losses, as the sender's samples and the probes show them.

use super::Facts;
use crate::record::{RttSummary, SenderSample};
use crate::units::Nanos;

/// Windows at which a loss-based congestion control met losses.
#[derive(Debug, Clone, PartialEq)]
pub struct LossWindows {
    /// Times that the slow start threshold changed once the window had found its range.
    pub events: usize,
    /// Coefficient of variation of the windows at which it did: a full queue or a policer drops at about the same window each
    /// time, random losses come at any.
    pub variation: f64,
}

impl Facts {
    /// The windows at losses, as the slow start threshold keeps them: each is a fixed part of the window at a loss. The first, and
    /// those below it that follow it at once, are of the burst that ended slow start, and are left out.
    pub fn loss_windows(&self) -> Option<LossWindows> {
        let mut thresholds: Vec<f64> = Vec::new();
        for threshold in self.sent.iter().filter_map(|s| s.ssthresh).map(f64::from) {
            if thresholds.last() != Some(&threshold) {
                thresholds.push(threshold);
            }
        }
        let settled = thresholds.windows(2).position(|pair| pair[1] > pair[0])?;
        let settled = &thresholds[settled..];
        let mean = settled.iter().sum::<f64>() / settled.len() as f64;
        let variance = settled.iter().map(|w| (w - mean).powi(2)).sum::<f64>() / settled.len() as f64;
        (mean > 0.0).then(|| LossWindows { events: settled.len(), variation: variance.sqrt() / mean })
    }

    /// What a count of the sender's samples grew by after omit.
    pub fn counted(&self, count: impl Fn(&SenderSample) -> Option<u64>) -> Option<u64> {
        let mut samples = self.sent_after_omit();
        let first = samples.next()?;
        let last = samples.next_back()?;
        count(last)?.checked_sub(count(first)?)
    }

    /// Segments delivered after omit.
    pub fn delivered(&self) -> Option<u64> {
        self.counted(|s| s.delivered).filter(|&segments| segments > 0)
    }

    /// Retransmitted segments / delivered ones, after omit.
    pub fn retransmitted_share(&self) -> Option<f64> {
        Some(self.counted(|s| s.retransmits)? as f64 / self.delivered()? as f64)
    }

    /// Share of probes that were lost before the load, and under it.
    pub fn probes_lost(&self) -> Option<(f64, f64)> {
        /// Fewer have no share.
        const PROBES_MIN: u64 = 10;
        let share = |probes: RttSummary| {
            let known = probes.sent.saturating_sub(probes.in_flight);
            (known >= PROBES_MIN).then(|| probes.lost() as f64 / known as f64)
        };
        Some((share(self.rtt.idle?)?, share(self.rtt.loaded?)?))
    }

    /// Whether a queue is so short, if there is one, that no loss can come of it: load adds less than this to the round trip at the 95th
    /// percentile, and less than this share.
    pub fn no_queue(&self, most: Nanos, most_share: f64) -> bool {
        let Some(idle) = self.rtt_idle() else { return false };
        let Some(loaded) = self.rtt.loaded.and_then(|loaded| loaded.p95).map(Nanos) else { return false };
        let added = loaded.saturating_sub(idle);
        added <= most || added.as_secs_f64() <= most_share * idle.as_secs_f64()
    }

    /// The longest time after slow start in which nothing came, and its share of the time; `None` where samples are missing.
    pub fn longest_gap(&self) -> Option<(Nanos, f64)> {
        let first = self.received.first()?;
        let last = self.received.last().filter(|last| last.at_ns > first.at_ns)?;
        let (mut longest, mut since, mut bytes) = (0, first.at_ns, first.bytes);
        for sample in &self.received {
            if sample.bytes > bytes {
                longest = longest.max(sample.at_ns.saturating_sub(since));
                (since, bytes) = (sample.at_ns, sample.bytes);
            }
        }
        Some((Nanos(longest), longest as f64 / (last.at_ns - first.at_ns) as f64))
    }
}
