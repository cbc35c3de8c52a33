//! `bdp lab selftest`: proves on this machine how well the emulator keeps its promises.

use std::fmt::Write;

use bdp_model::record::Record;
use bdp_model::scenario::{PlanOptions, Scenario};
use bdp_model::units::{Nanos, significant};
use serde_json::json;

use crate::exit::Exit;
use crate::lab::Work;
use crate::{Outcome, output};

/// What is run: one case with the machine to itself, one that keeps a link busy, one that loses, a hundred at once.
const TRIALS: [(&str, &str); 4] = [
    ("selftest-alone", include_str!("selftest/alone.toml")),
    ("selftest-rate", include_str!("selftest/rate.toml")),
    ("selftest-loss", include_str!("selftest/loss.toml")),
    ("selftest-hundred", include_str!("selftest/hundred.toml")),
];

/// Arguments of `bdp lab selftest`.
#[derive(clap::Args)]
#[command(after_help = "Exit codes: 0 every bound was held; 1 one was missed; 3 there is no lab here.")]
pub struct SelftestArgs {
    /// Print JSON: the checks, and every case
    #[arg(long)]
    json: bool,
}

/// One promise and what came of it.
struct Check {
    what: &'static str,
    measured: String,
    bound: String,
    held: bool,
}

impl SelftestArgs {
    /// Runs the trials and prints the checks.
    pub fn run(self) -> Outcome {
        let mut all = Vec::new();
        let mut checks = Vec::new();
        for (name, text) in TRIALS {
            // These ship with the binary: a mistake in one is a bug.
            let scenario = Scenario::parse(name, text)?;
            let mut work = Work::plan(vec![scenario], &PlanOptions::default())?;
            work.limit_attempts(1);
            let records = work.run(None, None).map_err(|(_, error)| error)?;
            if let Some(error) = records.iter().find_map(|r| r.error.clone()) {
                return Err(crate::exit::environment(format!("{name}: {error}")));
            }
            checks.extend(match name {
                "selftest-alone" => alone(&records),
                "selftest-rate" => rate(&records),
                "selftest-loss" => loss(&records),
                _ => hundred(&records),
            });
            all.extend(records);
        }
        let exit = if checks.iter().all(|c| c.held) { Exit::Done } else { Exit::Missed };
        if self.json {
            let checks: Vec<_> = checks
                .iter()
                .map(|c| json!({ "what": c.what, "measured": c.measured, "bound": c.bound, "held": c.held }))
                .collect();
            let cases = bdp_report::json(&all);
            output::print(&format!("{:#}\n", json!({ "checks": checks, "cases": cases["cases"] })))?;
        } else {
            output::print(&table(&checks))?;
        }
        Ok(exit)
    }
}

fn table(checks: &[Check]) -> String {
    let mut text = format!("{:<52}{:>16}{:>16}  verdict\n", "promise", "measured", "bound");
    for c in checks {
        let verdict = if c.held { "held" } else { "MISSED" };
        let _ = writeln!(text, "{:<52}{:>16}{:>16}  {verdict}", c.what, c.measured, c.bound);
    }
    text
}

fn at_most(what: &'static str, measured: Nanos, bound: Nanos) -> Check {
    Check { what, measured: measured.to_string(), bound: format!("<= {bound}"), held: measured <= bound }
}

fn alone(records: &[Record]) -> Vec<Check> {
    let Some(record) = records.first() else { return Vec::new() };
    let late = record.fidelity.release_lateness_ns;
    let excess = record
        .rtt_idle_ns
        .unwrap_or(u64::MAX)
        .saturating_sub(record.fidelity.rtt_idle_configured_ns.unwrap_or(0));
    vec![
        at_most("alone, 1 Gbit/s: release lateness p50", Nanos(late.p50), Nanos::micros(20)),
        at_most("alone, 1 Gbit/s: release lateness, mean", Nanos(late.mean), Nanos::micros(25)),
        at_most("alone, 1 Gbit/s: release lateness p99", Nanos(late.p99), Nanos::millis(1)),
        at_most("alone: idle RTT above the configured 2.55 ms", Nanos(excess), Nanos::micros(200)),
    ]
}

fn rate(records: &[Record]) -> Vec<Check> {
    let direction = records.first().and_then(|r| r.fidelity.directions.first());
    let off = direction.and_then(|d| Some(d.rate_achieved_bps? / d.rate_configured_bps? as f64 - 1.0));
    vec![Check {
        what: "rate on the wire against the configured 100 Mbit/s",
        measured: off.map_or("never busy".to_owned(), |off| format!("{:+.3} %", off * 100.0)),
        bound: "within 0.5 %".to_owned(),
        held: off.is_some_and(|off| off.abs() <= 0.005),
    }]
}

fn loss(records: &[Record]) -> Vec<Check> {
    let Some(direction) = records.first().and_then(|r| r.fidelity.directions.first()) else {
        return Vec::new();
    };
    let (n, p) = (direction.packets_in as f64, direction.loss_configured);
    let sigmas = (direction.loss_achieved - p) * n / (n * p * (1.0 - p)).sqrt().max(f64::MIN_POSITIVE);
    vec![
        Check {
            what: "independent loss against the configured 1 %",
            measured: format!("{} %", significant(direction.loss_achieved * 100.0)),
            bound: "5 sigma".to_owned(),
            held: n > 0.0 && sigmas.abs() <= 5.0,
        },
        Check {
            what: "conservation: in = out + dropped + queued",
            measured: format!("{} packets", direction.packets_in),
            bound: "exact".to_owned(),
            held: records.iter().flat_map(|r| &r.fidelity.directions).all(|d| d.conserved),
        },
    ]
}

fn hundred(records: &[Record]) -> Vec<Check> {
    let valid = records.iter().filter(|r| r.valid).count();
    let worst = |f: fn(&Record) -> u64| Nanos(records.iter().map(f).max().unwrap_or(u64::MAX));
    let busy = records.iter().map(|r| r.fidelity.host_cpu_busy).fold(0.0, f64::max);
    vec![
        Check {
            what: "100 cases of 2 Mbit/s at once: valid",
            measured: format!("{valid} of {}", records.len()),
            bound: "all 100".to_owned(),
            held: valid == 100,
        },
        at_most(
            "100 at once: worst release lateness p50 of a case",
            worst(|r| r.fidelity.release_lateness_ns.p50),
            Nanos::millis(1),
        ),
        at_most(
            "100 at once: worst p99 (1 % of the RTT of 100 ms)",
            worst(|r| r.fidelity.release_lateness_ns.p99),
            Nanos::millis(1),
        ),
        Check {
            what: "100 at once: processors busy",
            measured: format!("{:.0} %", busy * 100.0),
            bound: "-".to_owned(),
            held: true,
        },
    ]
}
