//! `bdp verify`: a run measured again after a change, compared with the earlier result and the prediction.

use bdp_model::measurement::Measurement;
use bdp_model::tuning::{Rehearsal, Verification};
use bdp_run::Event;
use bdp_run::job::context::Context;
use bdp_run::job::{Job, Results};
use bdp_run::tuning::verify::VerifyPlan;
use bdp_store::DocumentKind;
use serde_json::json;

use crate::exit::{Exit, Outcome};
use crate::measure::access::AccessArgs;
use crate::measure::live::Live;
use crate::measure::{NOTHING, end_if_asked, refusal};
use crate::output::{print, style};
use crate::planned::Planned;
use crate::store::of_job;
use crate::tune::measured::MeasuredArgs;
use crate::{command_line, guest, interrupt};

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
    /// The job that measures again and judges.
    pub fn planned(&self) -> anyhow::Result<Planned> {
        Ok(Planned::new(Job::Verify(Box::new(self.plan()?)), |ended| match &ended.results {
            Results::Verified(Some(verified)) => Some(json!(verified.verification)),
            _ => None,
        }))
    }

    fn plan(&self) -> anyhow::Result<VerifyPlan> {
        let measured = MeasuredArgs::of(self.run.clone(), self.store.clone()).find()?;
        let rehearsal = measured.found.newest_document(DocumentKind::Rehearsal);
        // A prediction of another version is ignored.
        let rehearsal =
            rehearsal.and_then(|kept| serde_json::from_value::<Rehearsal>(kept.document.clone()).ok());
        Ok(VerifyPlan {
            path: measured.path,
            rehearsal,
            credentials: self.access.credentials()?,
            command: command_line::typed(),
        })
    }

    /// Measures again, judges, stores and prints.
    pub fn run(self) -> Outcome {
        let plan = self.plan()?;
        let host = plan.path.measurement.request.host.clone();
        let mut store = self.store.open()?;
        let cancel = interrupt::cancel_instead();
        let mut live = Live::new(1);
        let mut watch = |event: Event<'_>| live.show(&event);
        let context = Context::new(&guest::commands, &mut watch, cancel).storing(of_job(&mut store));
        let ended = Job::Verify(Box::new(plan)).run(context);
        live.end();
        end_if_asked(cancel, NOTHING);
        let exit = Exit::of(&ended, false);
        ended.result.map_err(|error| refusal(error, &host))?;
        let Results::Verified(Some(verified)) = ended.results else { return Ok(exit) };
        if self.json {
            print(&format!("{:#}\n", json!(verified.verification)))?;
        } else {
            print(&text(&verified.verification, &verified.now))?;
        }
        Ok(exit)
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
