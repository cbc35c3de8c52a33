//! A direction of the path, and what it is to carry.

use bdp_model::ends::{Direction, End};
use bdp_model::facts::Facts;
use bdp_model::finding::{Finding, Limit};
use bdp_model::tuning::PlanDirection;

use crate::capacity;

/// What is asked of a plan besides the measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Wish {
    /// Goodput that each direction is to carry, bit/s, where the caller knows what the path can.
    pub rate_bps: Option<f64>,
    /// The direction alone that is to be better; both where none is named.
    pub direction: Option<Direction>,
}

/// A path that is described by figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Described {
    /// Goodput that it is to carry, bit/s.
    pub rate_bps: f64,
    /// Round trip.
    pub rtt_ns: u64,
    /// Connections that share the rate.
    pub streams: u32,
}

/// A direction of a path that was measured.
#[derive(Debug)]
pub(super) struct Way {
    /// Which.
    pub(super) direction: Direction,
    /// All that is known of it.
    pub(super) facts: Facts,
    /// What limits it, the first, and what is true besides.
    pub(super) findings: Vec<Finding>,
    /// Goodput that it is to carry, bit/s; `None` where nobody knows what the path can.
    pub(super) rate_bps: Option<f64>,
}

impl Way {
    /// The end that sends.
    pub(super) const fn sender(&self) -> End {
        self.direction.sender()
    }

    /// The end that receives.
    pub(super) const fn receiver(&self) -> End {
        self.direction.receiver()
    }

    /// As the plan states it.
    pub(super) fn planned(&self) -> PlanDirection {
        PlanDirection {
            direction: self.direction,
            limit: self.findings.first().map(|finding| finding.limit),
            goodput_bps: Some(self.facts.goodput_bps),
            rate_bps: self.rate_bps,
        }
    }
}

/// What the direction can carry: as another measurement showed, or its ceiling by the devices; where the path itself was full, what came through.
pub(super) fn rate(facts: &Facts, findings: &[Finding], shown: Option<f64>) -> Option<f64> {
    let full = findings.iter().any(|finding| {
        matches!(finding.limit, Limit::PathRate | Limit::Ceiling | Limit::Policer | Limit::HalfDuplex)
    });
    if full {
        return Some(facts.goodput_bps);
    }
    // What a short queue lets through is not all that the path carries; nor is what other limits did.
    let known = capacity::known(facts).map(|known| known.goodput_bps);
    let shown = shown.filter(|&bps| bps > facts.goodput_bps);
    match (shown, known) {
        (Some(shown), Some(known)) => Some(shown.min(known)),
        (shown, known) => shown.or(known),
    }
}
