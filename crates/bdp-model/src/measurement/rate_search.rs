//! Search for the highest rate that a path carries without loss: chooses the next rate from the results so far.
//!
//! The criterion is that of RFC 2544, section 26.1: the highest rate at which as many datagrams arrive as were sent. Trials go
//! down from the sender's highest rate, then between the highest rate that passed and the lowest that
//! failed, until these are [`RESOLUTION`] apart. The next trial uses the rate received in a failed trial, alternating
//! with the geometric mean: the former finds a single bottleneck in few trials, the latter works for every path.
//!
//! A little loss may be an accident, more often of a host than of a path: such a trial is repeated, and fails if the second
//! also loses (ETSI GS NFV-TST 009, binary search with loss verification). Trials are short, and a queue or a policer's bucket may
//! hide a rate that is not sustainable: the final rate is held for the whole duration, and lower ones if it fails.

use crate::finding::threshold::OVERLOAD;
use crate::flow::udp::{RateSearch, SearchEnd, Trial};

/// Lowest rate that failed / highest rate that passed, at the end.
pub const RESOLUTION: f64 = 1.02;
/// Loss beyond the acceptable share that may have been an accident.
const ACCIDENT: f64 = 0.01;
/// Most rates that are held.
const MOST_HOLDS: u32 = 5;
/// Fewest datagrams of a trial that can measure loss.
const FEWEST_DATAGRAMS: u64 = 100;
/// Loss does not depend on the rate if it is still this share of its value at [`STEADY_SPAN`] times the rate.
const STEADY_LOSS: f64 = 0.5;
const STEADY_SPAN: f64 = 1.9;
/// Fewest lost datagrams for that comparison.
const STEADY_LOST: u64 = 10;

/// Next step of the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// A trial at this rate, bit/s; `None` for as fast as the sender can.
    Try(Option<f64>),
    /// Holding this rate for the whole duration, bit/s.
    Hold(f64),
    /// The search has ended; the result is that of the last rate held.
    End(SearchEnd),
}

/// A search in progress.
#[derive(Debug, Clone)]
pub struct RateSearcher {
    allowed: f64,
    next: Step,
    /// Highest rate that passed, below every one that failed.
    low: Option<f64>,
    /// Lowest rate that failed.
    high: Option<f64>,
    /// Rate received in the last failed trial.
    carried: Option<f64>,
    /// Whether the previous trial used [`RateSearcher::carried`] and failed.
    misled: bool,
    /// Whether the previous trial failed narrowly and is repeated.
    again: bool,
    /// Rates that failed before any passed, and their loss.
    failures: Vec<(f64, f64)>,
    holds: u32,
    hopeless: bool,
}

impl RateSearcher {
    /// Starts a search; `most_bps` is the highest permitted rate, if limited.
    pub fn new(search: &RateSearch, most_bps: Option<f64>) -> Self {
        Self {
            allowed: search.loss_ratio,
            next: Step::Try(most_bps),
            low: None,
            high: None,
            carried: None,
            misled: false,
            again: false,
            failures: Vec::new(),
            holds: 0,
            hopeless: false,
        }
    }

    /// Returns the next step.
    pub fn next(&self) -> Step {
        self.next
    }

    /// Records the result of a step.
    pub fn note(&mut self, trial: &Trial) {
        self.next = match self.next {
            Step::Try(asked) => self.after_trial(asked, trial),
            Step::Hold(rate) => self.after_hold(rate, trial),
            Step::End(end) => Step::End(end),
        };
    }

    fn after_trial(&mut self, asked: Option<f64>, trial: &Trial) -> Step {
        // For a sender that fell short, the rate tried is the rate sent.
        let tried = asked.filter(|_| !trial.fell_short()).unwrap_or(trial.sent_bps);
        if trial.loss_ratio <= self.allowed {
            self.again = false;
            self.misled = false;
            self.low = Some(self.low.map_or(tried, |low| low.max(tried)));
            if trial.fell_short() {
                self.high = asked;
            }
        } else {
            if trial.loss_ratio <= self.allowed + ACCIDENT && !self.again {
                self.again = true;
                return Step::Try(asked.or(Some(tried)));
            }
            self.again = false;
            // If it fell below a rate that passed, only the requested rate is known to fail.
            let failed = if self.low.is_none_or(|low| tried > low) { tried } else { asked.unwrap_or(tried) };
            self.high = Some(self.high.map_or(failed, |high| high.min(failed)));
            self.carried = Some(trial.received_bps.min(tried));
        }
        match (self.low, self.high) {
            (None, _) => self.below(tried, trial),
            (Some(low), Some(high)) if high > low * RESOLUTION => Step::Try(Some(self.between(low, high))),
            (Some(low), _) => Step::Hold(low),
        }
    }

    /// Returns the next rate below one that failed, before any has passed.
    fn below(&mut self, failed: f64, trial: &Trial) -> Step {
        let steady = self
            .failures
            .iter()
            .any(|&(rate, loss)| rate >= STEADY_SPAN * failed && trial.loss_ratio >= STEADY_LOSS * loss);
        self.failures.push((failed, trial.loss_ratio));
        if trial.sent < FEWEST_DATAGRAMS || (steady && trial.lost >= STEADY_LOST) {
            self.hopeless = true;
            return Step::Hold(failed);
        }
        Step::Try(Some(match trial.loss_ratio {
            // Slightly less than the rate received, which is at most what the path carries.
            loss if loss > OVERLOAD && trial.received_bps > 0.0 => {
                trial.received_bps.min(failed) / RESOLUTION
            }
            _ => failed / 2.0,
        }))
    }

    /// Returns the next rate between the highest that passed and the lowest that failed.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        let least = low * RESOLUTION;
        let carried = self.carried.filter(|carried| !self.misled && carried * RESOLUTION >= low);
        self.misled = carried.is_some();
        match carried {
            Some(carried) => carried.clamp(least, (high / RESOLUTION).max(least)),
            None => (low * high).sqrt(),
        }
    }

    fn after_hold(&mut self, rate: f64, trial: &Trial) -> Step {
        self.holds += 1;
        if trial.loss_ratio <= self.allowed {
            return Step::End(SearchEnd::Held);
        }
        if self.hopeless {
            return Step::End(SearchEnd::LossAtAnyRate);
        }
        if self.holds >= MOST_HOLDS {
            return Step::End(SearchEnd::NotHeld);
        }
        // One step below, then two more, then four: a rate that passed a short trial may be far above a sustainable one.
        let steps = 1 << (self.holds - 1);
        let below = rate / RESOLUTION.powi(steps);
        // If the sender fell short, the low rate received was not caused by the path.
        Step::Hold(if trial.fell_short() { below } else { below.min(trial.received_bps) })
    }
}
