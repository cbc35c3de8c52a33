//! The search for the highest rate that a path carries without loss: which rate is tried next, given what came of those before.
//!
//! The measure is that of RFC 2544, section 26.1: the highest rate at which as many datagrams come out as went in. Trials go
//! from the highest rate that the sender can do downwards, then between the highest rate that passed and the lowest that
//! failed, until these are [`RESOLUTION`] apart. What was received of a trial that failed is where the next one tries, in turn
//! with the geometric middle: it finds a path with one narrow place in few trials, and the middle finds every other.
//!
//! A little loss may be an accident, of a host more often than of a path: such a trial is made once again, and fails if that
//! loses too (ETSI GS NFV-TST 009, binary search with loss verification). Trials are short, and a queue or a policer's bucket may
//! hide a rate that does not last: the rate found is held for the whole duration at last, and lower ones where it fails.

use crate::threshold::OVERLOAD;
use crate::udp::{RateSearch, SearchEnd, Trial};

/// The lowest rate that failed / the highest that passed, at the end.
pub const RESOLUTION: f64 = 1.02;
/// Loss beyond what is allowed that may have been an accident.
const ACCIDENT: f64 = 0.01;
/// Rates that are held at most.
const MOST_HOLDS: u32 = 5;
/// A trial of fewer datagrams says nothing of loss.
const FEWEST_DATAGRAMS: u64 = 100;
/// Loss that is still this share of what it was at [`STEADY_SPAN`] times the rate does not depend on the rate.
const STEADY_LOSS: f64 = 0.5;
const STEADY_SPAN: f64 = 1.9;
/// So many datagrams have to be lost for loss to be compared.
const STEADY_LOST: u64 = 10;

/// What is to be done next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// A trial at this rate, bit/s; nothing is as fast as the sender can.
    Try(Option<f64>),
    /// Hold this rate for the whole duration, bit/s.
    Hold(f64),
    /// It is over; the result is that of the rate held last.
    End(SearchEnd),
}

/// A search under way.
#[derive(Debug, Clone)]
pub struct RateSearcher {
    allowed: f64,
    next: Step,
    /// Highest rate that passed, below every one that failed.
    low: Option<f64>,
    /// Lowest rate that failed.
    high: Option<f64>,
    /// What was received when a trial failed last.
    carried: Option<f64>,
    /// Whether the trial before followed [`RateSearcher::carried`], and failed.
    misled: bool,
    /// Whether the trial before failed by so little that it is made again.
    again: bool,
    /// Rates that failed while none had passed, and their losses.
    failures: Vec<(f64, f64)>,
    holds: u32,
    hopeless: bool,
}

impl RateSearcher {
    /// Begins; `most_bps` is the most that may be sent, where there is a bound.
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

    /// What is to be done.
    pub fn next(&self) -> Step {
        self.next
    }

    /// Takes what came of it.
    pub fn note(&mut self, trial: &Trial) {
        self.next = match self.next {
            Step::Try(asked) => self.after_trial(asked, trial),
            Step::Hold(rate) => self.after_hold(rate, trial),
            Step::End(end) => Step::End(end),
        };
    }

    fn after_trial(&mut self, asked: Option<f64>, trial: &Trial) -> Step {
        // A sender that fell short has tried what it sent.
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
            // Of one that fell below what has passed, only what was asked is known to fail.
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

    /// The next rate below one that failed, where none has passed yet.
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
            // A little below what came through, which is what the path carries, or less.
            loss if loss > OVERLOAD && trial.received_bps > 0.0 => {
                trial.received_bps.min(failed) / RESOLUTION
            }
            _ => failed / 2.0,
        }))
    }

    /// The next rate between the highest that passed and the lowest that failed.
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
        // One step below, then two more, then four: what lasted for a trial and not for the whole may be far above.
        let steps = 1 << (self.holds - 1);
        let below = rate / RESOLUTION.powi(steps);
        // Of a sender that fell short it was not the path that let so little through.
        Step::Hold(if trial.fell_short() { below } else { below.min(trial.received_bps) })
    }
}
