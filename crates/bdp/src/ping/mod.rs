//! `bdp ping`: round trips to one address.

mod arguments;
mod live;

use std::sync::atomic::Ordering;

use bdp_model::measurement::expectation::Judgement;
use bdp_model::measurement::labels::Labels;
use bdp_model::probes::ping::{Ping, PingMode};
use bdp_report::{csv_of_ping, ping_text};
use bdp_run::job::context::Context;
use bdp_run::job::{Ended, Job, Results};
use bdp_run::{Event, RunError};
use serde_json::{Value, json};

pub use arguments::PingArgs;
use live::Live;

use crate::exit::{self, Exit, Outcome};
use crate::measure::judgement;
use crate::planned::Planned;
use crate::{guest, interrupt, output};

/// Message for an interrupt before any probe.
const NOTHING: &str = "ended before a probe was sent";

impl PingArgs {
    /// The job that sends the probes.
    pub fn planned(&self) -> anyhow::Result<Planned> {
        Ok(Planned::new(Job::Ping(Box::new(self.plan()?)), |ended| match &ended.results {
            Results::Ping(Some(pinged)) => Some(document(pinged, &ended.judgements, &ended.result)),
            _ => None,
        }))
    }

    /// Sends probes and prints the results.
    pub fn run(self) -> Outcome {
        let plan = self.plan()?;
        crate::report::check_place(self.prometheus.as_deref(), "metrics")?;
        let host = plan.request.host.clone();
        let port = (plan.request.mode != PingMode::Icmp).then_some(plan.request.port);
        let cancel = interrupt::cancel_instead();
        let mut live = Live::new(&plan.request, !(self.quiet || self.json || self.csv));
        let mut watch = |event: Event<'_>| {
            if let Event::Probes { progress } = event {
                live.show(&progress);
            }
        };
        let ended = Job::Ping(Box::new(plan)).run(Context::new(&guest::commands, &mut watch, cancel));
        live.end();
        let write_metrics = |pinged: Option<&Ping>, judged: &[Judgement]| match &self.prometheus {
            Some(path) => {
                let far = bdp_report::FarEnd { host: &host, port, own: &Labels::NONE };
                let text = bdp_report::prometheus_of_ping(pinged, judged, far, env!("CARGO_PKG_VERSION"));
                crate::report::write(path, &text, "metrics")
            }
            None => Ok(()),
        };
        let Ended { results, judgements: judged, result, .. } = ended;
        let (pinged, result) = match (results, result) {
            (Results::Ping(Some(pinged)), result) => (pinged, result),
            (_, Err(RunError::Session(error))) if error.is_request() => {
                return Err(exit::usage(error.to_string()));
            }
            (_, result) => {
                if cancel.load(Ordering::Relaxed) {
                    output::note(&format!("bdp: {NOTHING}"));
                    interrupt::carry_out(NOTHING);
                }
                let _ = write_metrics(None, &[]);
                let error = result.err().map(|error| error.to_string()).unwrap_or_default();
                return Err(exit::environment(format!("ping {host}: {error}")));
            }
        };
        let text = if self.json {
            format!("{:#}\n", document(&pinged, &judged, &result))
        } else if self.csv {
            csv_of_ping(&pinged)
        } else {
            ping_text(&pinged, &output::style())
        };
        output::print(&text)?;
        write_metrics(Some(&pinged), &judged)?;
        // If nothing else ends it, an interrupt is its regular end.
        let is_endless = pinged.request.count.is_none() && pinged.request.duration.is_none();
        if cancel.load(Ordering::Relaxed) && !is_endless {
            interrupt::carry_out("");
        }
        result.map_err(|error| exit::environment(error.to_string()))?;
        judgement::report(&judged, 1);
        let missed = |judgement: &&Judgement| !judgement.met;
        Ok(match judged.iter().filter(missed).collect::<Vec<_>>().as_slice() {
            [] => Exit::Done,
            missed if self.strict && missed.iter().all(|judgement| judgement.is_open()) => Exit::Open,
            _ => Exit::Missed,
        })
    }
}

fn document(pinged: &Ping, judged: &[Judgement], result: &bdp_run::Result<()>) -> Value {
    let mut document = bdp_report::ping_json(pinged);
    // It is not stored.
    document["run"] = Value::Null;
    document["expectations"] = json!(judged);
    document["error"] = result.as_ref().err().map(ToString::to_string).into();
    document
}
