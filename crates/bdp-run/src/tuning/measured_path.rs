//! A measured path, as twins, plans and verifications start from it.

use bdp_model::measurement::Measurement;
use bdp_model::measurement::ends::Direction;
use bdp_model::tuning::Plan;
use bdp_store::DocumentKind;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::job::context::Context;
use crate::tuning::{self, Wish};
use crate::twin::TwinOptions;

/// A measurement of a path, and what other measurements show of the same path.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredPath {
    /// The measurement's run, if it has an id.
    pub run: Option<String>,
    /// Whether that run is in the store, which then also keeps what is concluded from it.
    pub is_stored: bool,
    /// The measurement.
    pub measurement: Measurement,
    /// Other measurements of the path, which may have seen more of it.
    pub others: Vec<Measurement>,
    /// Bottleneck rate on the wire, if it is known otherwise.
    pub rate_bps: Option<f64>,
}

impl MeasuredPath {
    /// What a twin needs to know besides the measurement.
    pub fn twin_options(&self) -> TwinOptions {
        TwinOptions { rate_bps: self.rate_bps, also: self.others.last().cloned().map(Box::new) }
    }

    /// The smallest change of settings for the path, or for one direction.
    pub fn plan(&self, direction: Option<Direction>) -> Plan {
        let wish = Wish { rate_bps: self.rate_bps.map(tuning::goodput_of), direction };
        tuning::plan(self.run.as_deref(), &self.measurement, &self.others, &wish)
    }

    /// Keeps a document with the run, if that is stored.
    pub(crate) fn keep(
        &self,
        context: &mut Context<'_>,
        kind: DocumentKind,
        document: &impl Serialize,
    ) -> Result<()> {
        match &self.run {
            Some(run) if self.is_stored => context.keep(run, kind, document),
            _ => Ok(()),
        }
    }
}
