//! A direction of the path, and its target goodput.

use bdp_model::facts::Facts;
use bdp_model::finding::Finding;
use bdp_model::finding::limit::Consequence;
use bdp_model::measurement::ends::{Direction, End};
use bdp_model::tuning::PlanDirection;

use crate::capacity;

/// The request for a plan, besides the measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Wish {
    /// Target goodput of each direction, bit/s, if the caller knows the path's capacity.
    pub rate_bps: Option<f64>,
    /// The only direction to improve; both if none is named.
    pub direction: Option<Direction>,
}

/// A path described by figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Described {
    /// Target goodput, bit/s.
    pub rate_bps: f64,
    /// Round trip.
    pub rtt_ns: u64,
    /// Connections that share the rate.
    pub streams: u32,
}

/// A direction of a measured path.
#[derive(Debug)]
pub(super) struct Way {
    /// The direction.
    pub(super) direction: Direction,
    /// The facts of its transfer.
    pub(super) facts: Facts,
    /// Its findings: the limit first, then what else is true.
    pub(super) findings: Vec<Finding>,
    /// Target goodput, bit/s; `None` if the path's capacity is unknown.
    pub(super) rate_bps: Option<f64>,
}

impl Way {
    /// The sending end.
    pub(super) const fn sender(&self) -> End {
        self.direction.sender()
    }

    /// The receiving end.
    pub(super) const fn receiver(&self) -> End {
        self.direction.receiver()
    }

    /// The direction as stated in the plan.
    pub(super) fn planned(&self) -> PlanDirection {
        PlanDirection {
            direction: self.direction,
            limit: self.findings.first().map(|finding| finding.limit),
            goodput_bps: Some(self.facts.goodput_bps),
            rate_bps: self.rate_bps,
        }
    }
}

/// The direction's capacity: from another measurement, the devices' ceiling, or the goodput if the path itself was full.
pub(super) fn rate(facts: &Facts, findings: &[Finding], shown: Option<f64>) -> Option<f64> {
    let full = findings.iter().any(|finding| finding.limit.has(Consequence::IsCapacity));
    if full {
        return Some(facts.goodput_bps);
    }
    // The goodput with a short queue or another limit is not the path's capacity.
    let known = capacity::known(facts).map(|known| known.goodput_bps);
    let shown = shown.filter(|&bps| bps > facts.goodput_bps);
    match (shown, known) {
        (Some(shown), Some(known)) => Some(shown.min(known)),
        (shown, known) => shown.or(known),
    }
}
