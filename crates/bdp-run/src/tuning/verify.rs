//! A path measured again after a change, and compared with the earlier measurement and the prediction.

use bdp_model::measurement::Measurement;
use bdp_model::tuning::{Rehearsal, Verification};
use bdp_store::DocumentKind;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::job::context::Context;
use crate::measure::measure_again;
use crate::measure::session::Credentials;
use crate::tuning::measured_path::MeasuredPath;

/// A measurement to repeat and to compare.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VerifyPlan {
    /// The path as it was measured.
    pub path: MeasuredPath,
    /// What was predicted for it, if anything.
    pub rehearsal: Option<Rehearsal>,
    /// Credentials for the server; never stored.
    #[serde(skip)]
    pub credentials: Credentials,
    /// The command that repeats it.
    pub command: String,
}

/// A verification, and the measurement that it rests on.
#[derive(Debug, Clone)]
pub struct Verified {
    /// The verdicts.
    pub verification: Verification,
    /// The measurement after the change.
    pub now: Measurement,
}

impl VerifyPlan {
    /// Measures again as before, and stores the result of the change with the run.
    pub fn run(&self, context: &mut Context<'_>) -> Result<Verified> {
        let path = &self.path;
        let label = path.run.as_ref().map(|run| format!("verify {run}"));
        let request = &path.measurement.request;
        let again = measure_again(request, &self.credentials, label, &self.command, context)?;
        let mut verification =
            Verification::of(&path.measurement, &again.measurement, self.rehearsal.as_ref());
        verification.run.clone_from(&path.run);
        verification.again = again.run;
        path.keep(context, DocumentKind::Verification, &verification)?;
        Ok(Verified { verification, now: again.measurement })
    }
}
