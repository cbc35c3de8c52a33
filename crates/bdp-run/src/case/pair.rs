//! The pairs of hosts that flows run between.

use bdp_model::case::{CaseFlow, CaseSpec};
use bdp_model::record::RttSummary;
use bdp_model::units::Nanos;
use bdp_wire::control::{Received, Sent};

/// Two hosts with flows in either direction: what one probe flow measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    /// The host that sends the probes: the sender of the first flow.
    pub(crate) from: String,
    /// The host that answers them.
    pub(crate) to: String,
}

impl Pair {
    /// Returns every pair of a case once: in the order of its flows, then of its traffic.
    pub(crate) fn all(case: &CaseSpec) -> Vec<Self> {
        let mut pairs: Vec<Self> = Vec::new();
        for flow in &case.flows {
            if !pairs.iter().any(|pair| pair.joins(flow)) {
                pairs.push(Self { from: flow.from.clone(), to: flow.to.clone() });
            }
        }
        for traffic in &case.traffic {
            if !pairs.iter().any(|pair| pair.is_of(&traffic.from, &traffic.to)) {
                pairs.push(Self { from: traffic.from.clone(), to: traffic.to.clone() });
            }
        }
        pairs
    }

    /// Whether a flow runs between the two hosts. A round trip is the same from either end, since it takes both
    /// paths.
    pub(crate) fn joins(&self, flow: &CaseFlow) -> bool {
        self.is_of(&flow.from, &flow.to)
    }

    fn is_of(&self, from: &String, to: &String) -> bool {
        (&self.from, &self.to) == (from, to) || (&self.from, &self.to) == (to, from)
    }
}

/// Returns the smallest round trip of a summary.
pub(crate) fn smallest(summary: Option<RttSummary>) -> Option<Nanos> {
    summary.map(|s| Nanos(s.min))
}

/// Both ends' reports of a flow.
pub(crate) type Ends = (Received, Sent);
