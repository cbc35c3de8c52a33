//! `bdp verify`: a run measured again after a change, compared with the earlier result and the prediction.

use bdp_model::measurement::Measurement;
use bdp_model::tuning::{Rehearsal, Verification};
use bdp_store::DocumentKind;
use serde_json::json;

use crate::exit::{Exit, Outcome};
use crate::measure::again::AccessArgs;
use crate::output::{print, style};
use crate::tune::measured::{Measured, MeasuredArgs};

/// Arguments of `bdp verify`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp verify 7f3a\n  bdp verify 7f3a --json\n\nRepeats the measurement with the same parameters, and compares it with the run and with the prediction of 'bdp rehearse'.\n\n\
    Exit codes: 0 the prediction was met or exceeded, or there was none; 1 it was missed; 2 usage error; 3 environment error; 4 bug in bdp."
)]
pub struct VerifyArgs {
    /// Run before the change: its id, a prefix of the id, or its label [default: the newest run]
    #[arg(value_name = "RUN")]
    run: Option<String>,

    #[command(flatten)]
    access: AccessArgs,

    #[command(flatten)]
    store: crate::store::StoreArgs,

    /// Print JSON ('bdp help verification.schema')
    #[arg(long)]
    json: bool,
}

impl VerifyArgs {
    /// Measures again, judges, stores and prints.
    pub fn run(self) -> Outcome {
        let args = MeasuredArgs::of(self.run, self.store);
        let measured = args.find()?;
        let rehearsal = measured.found.newest_document(DocumentKind::Rehearsal);
        // A prediction of another version is ignored.
        let rehearsal =
            rehearsal.and_then(|kept| serde_json::from_value::<Rehearsal>(kept.document.clone()).ok());
        let (verification, now) = verify(&measured, rehearsal.as_ref(), &args, &self.access)?;
        if self.json {
            print(&format!("{:#}\n", json!(verification)))?;
        } else {
            print(&text(&verification, &now))?;
        }
        Ok(if verification.missed() { Exit::Missed } else { Exit::Done })
    }
}

/// The verdicts, and if one is missed the current limit of the transfer.
pub fn text(verification: &Verification, now: &Measurement) -> String {
    let mut text = bdp_report::tuning::verification(verification, &style());
    if verification.missed() {
        text.push_str(&bdp_report::explanation::measurements(std::slice::from_ref(now), &style()));
    }
    text
}

/// Measures the run's request again, and stores the result of the change with the run.
pub fn verify(
    measured: &Measured,
    rehearsal: Option<&Rehearsal>,
    args: &MeasuredArgs,
    access: &AccessArgs,
) -> anyhow::Result<(Verification, Measurement)> {
    let run = measured.run();
    let label = run.map(|run| format!("verify {run}"));
    let (again, now) = access.measure(&measured.measurement.request, label, &args.store)?;
    let mut verification = Verification::of(&measured.measurement, &now, rehearsal);
    verification.run = run.map(str::to_owned);
    verification.again = again;
    measured.keep(&args.store, DocumentKind::Verification, json!(verification))?;
    Ok((verification, now))
}
