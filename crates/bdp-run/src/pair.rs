//! The pairs of hosts that flows run between.

use bdp_model::record::RttSummary;
use bdp_model::scenario::{CaseFlow, CaseSpec};
use bdp_model::units::Nanos;
use bdp_wire::control::{Received, Sent};

/// Two hosts that flows run between, in either direction: what one probe flow measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    /// Where the probes come from: the sender of the first of the flows.
    pub(crate) from: String,
    /// Where they are answered.
    pub(crate) to: String,
}

impl Pair {
    /// Every pair of a case once, in the order of its flows.
    pub(crate) fn all(case: &CaseSpec) -> Vec<Self> {
        let mut pairs: Vec<Self> = Vec::new();
        for flow in &case.flows {
            if !pairs.iter().any(|pair| pair.joins(flow)) {
                pairs.push(Self { from: flow.from.clone(), to: flow.to.clone() });
            }
        }
        pairs
    }

    /// Whether a flow runs between the two. A round trip is the same from either end: it takes both paths.
    pub(crate) fn joins(&self, flow: &CaseFlow) -> bool {
        (&self.from, &self.to) == (&flow.from, &flow.to) || (&self.from, &self.to) == (&flow.to, &flow.from)
    }
}

/// Smallest round trip of a summary.
pub(crate) fn smallest(summary: Option<RttSummary>) -> Option<Nanos> {
    summary.map(|s| Nanos(s.min))
}

/// What a flow's two ends saw of it.
pub(crate) type Ends = (Received, Sent);
