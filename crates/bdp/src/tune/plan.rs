//! `bdp tune plan`: the smallest change of settings for a path.

use bdp_model::Nanos;
use bdp_model::measurement::ends::End;
use bdp_model::tuning::Plan;
use bdp_run::tuning::{self, Described};
use serde_json::json;

use super::measured::MeasuredArgs;
use crate::absurd;
use crate::exit::{self, Outcome};
use crate::guest;
use crate::output::{print, style};

/// Arguments of `bdp tune plan`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp tune plan 7f3a\n  bdp tune plan 7f3a --also 81c0     81c0 used more streams and shows the path's rate\n  bdp tune plan --rate 1G --rtt 80ms\n\nChanges nothing. 'bdp rehearse' tries the plan on an emulated twin; 'bdp tune apply' applies it."
)]
pub struct PlanArgs {
    #[command(flatten)]
    measured: MeasuredArgs,

    /// Round-trip time of an unmeasured path, with --rate
    #[arg(long, value_name = "TIME", requires = "rate", conflicts_with_all = ["run", "also", "direction"])]
    rtt: Option<Nanos>,

    /// Number of connections that share the path, with --rate and --rtt
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000), requires = "rtt")]
    streams: u32,

    /// Print JSON ('bdp help plan.schema'), the input of 'bdp tune apply' and 'bdp tune export'
    #[arg(long)]
    json: bool,
}

impl PlanArgs {
    /// Makes the plan, stores it with its run and prints it.
    pub fn run(self) -> Outcome {
        if let Some(rtt) = self.rtt {
            return self.print_described(rtt);
        }
        let measured = self.measured.find()?;
        self.print(&measured.plan(&self.measured)?, measured.path.run.as_deref())
    }

    fn print_described(&self, rtt: Nanos) -> Outcome {
        absurd::note_time("--rtt", rtt);
        absurd::note_rate("--rate", self.measured.rate);
        let rate_bps = self.measured.rate.map_or(0.0, |rate| tuning::goodput_of(rate.as_bps() as f64));
        if rate_bps <= 0.0 || rtt.as_ns() == 0 {
            return Err(exit::usage("--rate and --rtt must be above 0"));
        }
        let path = Described { rate_bps, rtt_ns: rtt.as_ns(), streams: self.streams };
        self.print(&tuning::plan_described(&path), None)
    }

    fn print(&self, plan: &Plan, run: Option<&str>) -> Outcome {
        if self.json {
            return print(&format!("{:#}\n", json!(plan)));
        }
        let mut text = bdp_report::tuning::plan(plan, &style());
        if let Some(run) = run.filter(|_| !plan.changes.is_empty()) {
            let store = self.measured.store.option();
            let then = match plan.changes_at(End::Near).next() {
                Some(_) => format!("bdp tune apply {run}{store} --for 10m"),
                // No command on this host alone changes the far end.
                None => format!("bdp tune export {run}{store} --as sh --end far"),
            };
            // A step that can't run here is not suggested.
            text.push_str(&match guest::obstacle() {
                None => format!("next        bdp rehearse {run}{store} | {then}\n"),
                Some(obstacle) => {
                    format!("next        {then}\nnot here    bdp rehearse {run}{store}: {obstacle}\n")
                }
            });
        }
        print(&text)
    }
}
