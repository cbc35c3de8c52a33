//! `bdp lab selftest`: shows how faithful the emulator is on this machine, and how exact in guests.

mod in_guests;
mod printed;

use std::time::Duration;

use anyhow::Context;
use bdp_lab::synthetic::Offered;
use bdp_model::case::stack::Clock;
use bdp_model::link::queue::Queue;
use bdp_model::record::{DirectionFidelity, Record};
use bdp_model::units::{Nanos, Rate, format_bps, significant};
use bdp_run::selftest::{Check, carry_undisturbed};
use bdp_scenario::{PlanOptions, Scenario};
use clap::ValueEnum;

use in_guests::BesideNetem;
use printed::{document, table};

use crate::exit::{Exit, Outcome};
use crate::lab::Work;
use crate::output;

/// What is run, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Trial {
    /// One case alone
    Alone,
    /// One case that saturates a link
    Rate,
    /// One case with loss
    Loss,
    /// Synthetic frames at up to 11 Gbit/s
    Fast,
    /// A hundred parallel cases
    Hundred,
}

impl Trial {
    /// The scenario of a trial that runs one, and its checks.
    fn scenario(self) -> Option<(&'static str, &'static str, Checks)> {
        match self {
            Self::Alone => Some(("selftest-alone", include_str!("selftest/alone.toml"), alone)),
            Self::Rate => Some(("selftest-rate", include_str!("selftest/rate.toml"), rate)),
            Self::Loss => Some(("selftest-loss", include_str!("selftest/loss.toml"), loss)),
            Self::Hundred => Some(("selftest-hundred", include_str!("selftest/hundred.toml"), hundred)),
            Self::Fast => None,
        }
    }
}

/// Load for the emulator alone, without TCP stacks that compete for the CPU.
struct Fast {
    /// Link, in a scenario's syntax.
    link: &'static str,
    offered: Rate,
    least: Rate,
    /// Names of the checks of throughput, lateness and loss.
    names: [&'static str; 3],
}

impl Fast {
    /// Creates a load; rates in Mbit/s: offered, and least to be carried.
    const fn new(link: &'static str, [offered, least]: [u64; 2], names: [&'static str; 3]) -> Self {
        Self { link, offered: Rate::mbps(offered), least: Rate::mbps(least), names }
    }
}

const FAST: [Fast; 3] = [
    Fast::new(
        "delay = \"5ms\"",
        [11_000, 10_000],
        ["5 ms: carried", "5 ms: release lateness p99", "5 ms: lost"],
    ),
    Fast::new(
        "delay = \"20ms\"",
        [11_000, 10_000],
        ["20 ms: carried", "20 ms: release lateness p99", "20 ms: lost"],
    ),
    Fast::new(
        "rate = \"5G\"\ndelay = \"5ms\"\nloss = \"1e-4\"\nlimit = \"6.25MB\"",
        [4_400, 4_000],
        ["5 Gbit/s and 5 ms: carried", "5 Gbit/s: release lateness p99", "5 Gbit/s: loss of 0.01 %"],
    ),
];

/// Arguments of `bdp lab selftest`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp lab selftest\n  bdp lab selftest --json > selftest.json\n  bdp lab selftest --clock virtual\n  bdp lab selftest --netem\n  bdp lab selftest --queues\n\n\
    With --clock virtual, frames cross the emulator in a guest, and each is compared with its computed arrival.\n\n\
    Exit codes: 0 all bounds were met; 1 one was exceeded; 3 the lab is not available here."
)]
pub struct SelftestArgs {
    /// Run these trials only
    #[arg(value_name = "TRIAL")]
    trials: Vec<Trial>,

    /// Clock: real, or virtual, which tests the emulator's arithmetic in a guest [default: real]
    #[arg(long, value_name = "CLOCK", value_parser = Clock::NAMES.map(|(name, _)| name), conflicts_with = "trials")]
    clock: Option<String>,

    /// Compare with the kernel's netem in a guest: frames and exports take seconds, TCP flows minutes [default: all]
    #[arg(long, conflicts_with = "trials", value_name = "PART", num_args = 0..=1, default_missing_value = "all")]
    netem: Option<BesideNetem>,

    /// Compare AQM queues with the kernel's in a guest: the same arrivals, frame by frame [default: all]
    #[arg(long, value_name = "KIND", conflicts_with_all = ["trials", "netem"], num_args = 0..=1, default_missing_value = "all", value_parser = queue_kinds())]
    queues: Option<String>,

    /// Print JSON: the checks, and every case ('bdp help record')
    #[arg(long)]
    json: bool,
}

/// Kinds of actively managed queues.
fn queue_kinds() -> Vec<&'static str> {
    ["all"].iter().chain(Queue::KINDS).copied().collect()
}

/// Checks of a trial's cases.
type Checks = fn(&[Record]) -> Vec<Check>;

impl SelftestArgs {
    /// Runs the trials and prints the checks.
    pub fn run(self) -> Outcome {
        let named = |name: &String| Clock::NAMES.iter().find(|(known, _)| known == name).map(|known| known.1);
        let clock = self.clock.as_ref().and_then(named);
        if let Some(kind) = &self.queues {
            if clock == Some(Clock::Real) {
                return Err(crate::exit::usage("--queues needs the virtual clock; omit --clock real"));
            }
            return in_guests::beside_kernel_queues(
                Some(kind.as_str()).filter(|kind| *kind != "all"),
                self.json,
            );
        }
        if let Some(part) = self.netem {
            if clock == Some(Clock::Real) {
                return Err(crate::exit::usage("--netem needs the virtual clock; omit --clock real"));
            }
            return in_guests::beside_netem(part, self.json);
        }
        if clock == Some(Clock::Virtual) {
            return in_guests::exact(self.json);
        }
        let mut all = Vec::new();
        let mut checks = Vec::new();
        let chosen = |trial: &Trial| self.trials.is_empty() || self.trials.contains(trial);
        for trial in Trial::value_variants().iter().filter(|t| chosen(t)) {
            let Some((name, text, check)) = trial.scenario() else {
                for fast in &FAST {
                    checks.extend(fast.checks()?);
                }
                continue;
            };
            // These ship with the binary: an error in one is a bug.
            let scenario = Scenario::parse(name, text)?;
            let mut work = Work::plan(vec![scenario], &PlanOptions::default())?;
            work.limit_attempts(1);
            let records = work.run(None).map_err(|(_, error)| error)?;
            if let Some(error) = records.iter().find_map(|r| r.error.clone()) {
                return Err(crate::exit::environment(format!("{name}: {error}")));
            }
            checks.extend(check(&records));
            all.extend(records);
        }
        let exit = if checks.iter().all(|c| c.held) { Exit::Done } else { Exit::Missed };
        if self.json {
            output::print(&format!("{:#}\n", document(&all, &checks)))?;
        } else {
            output::print(&table(&checks))?;
        }
        Ok(exit)
    }
}

fn at_most(what: &str, measured: Nanos, bound: Nanos) -> Check {
    Check {
        what: what.to_owned(),
        measured: measured.to_string(),
        bound: format!("<= {bound}"),
        held: measured <= bound,
    }
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
        what: "rate on the wire against the configured 100 Mbit/s".to_owned(),
        measured: off.map_or("never busy".to_owned(), |off| format!("{:+.3} %", off * 100.0)),
        bound: "within 0.5 %".to_owned(),
        held: off.is_some_and(|off| off.abs() <= 0.005),
    }]
}

fn loss(records: &[Record]) -> Vec<Check> {
    let Some(direction) = records.first().and_then(|r| r.fidelity.directions.first()) else {
        return Vec::new();
    };
    vec![
        lost("independent loss against the configured 1 %", direction),
        Check {
            what: "conservation: in = out + dropped + queued".to_owned(),
            measured: format!("{} packets", direction.packets_in),
            bound: "exact".to_owned(),
            held: records.iter().flat_map(|r| &r.fidelity.directions).all(|d| d.conserved),
        },
    ]
}

fn lost(what: &str, direction: &DirectionFidelity) -> Check {
    let (n, p) = (direction.packets_in as f64, direction.loss_configured);
    let off = (direction.loss_achieved - p) * n;
    Check {
        what: what.to_owned(),
        measured: format!("{} %", significant(direction.loss_achieved * 100.0)),
        bound: if p > 0.0 { "5 sigma".to_owned() } else { "none".to_owned() },
        held: n > 0.0 && off.abs() <= 5.0 * (n * p * (1.0 - p)).sqrt(),
    }
}

impl Fast {
    /// Carries frames for two seconds, and repeats if the machine was disturbed.
    fn checks(&self) -> anyhow::Result<Vec<Check>> {
        let text = format!(
            "title = \"x\"\n[[link]]\nbetween = [\"near\", \"far\"]\ndelivery = \"super\"\n{}\n[[flow]]\n",
            self.link
        );
        let scenario = Scenario::parse("selftest-fast", &text)?;
        let plan = scenario.plan(&PlanOptions::default())?;
        let link = plan.first().and_then(|case| case.links.first()).context("a link")?;
        let offered = Offered { rate: self.offered, time: Duration::from_secs(2) };
        let [what, late, loss] = self.names.map(|name| format!("synthetic frames, {name}"));
        let carried = carry_undisturbed(&link.config, offered, &mut |attempt, fidelity| {
            output::note(&format!(
                "{what}: INVALID (attempt {attempt}): {}",
                bdp_report::why_invalid(fidelity)
            ));
        })?;
        Ok(vec![
            Check {
                what,
                measured: format_bps(carried.bps),
                bound: format!(">= {}", self.least),
                held: carried.bps >= self.least.as_bps() as f64,
            },
            at_most(&late, Nanos(carried.fidelity.release_lateness_ns.p99), Nanos::millis(1)),
            lost(&loss, &carried.direction),
        ])
    }
}

fn hundred(records: &[Record]) -> Vec<Check> {
    let valid = records.iter().filter(|r| r.valid).count();
    let worst = |f: fn(&Record) -> u64| Nanos(records.iter().map(f).max().unwrap_or(u64::MAX));
    let busy = records.iter().map(|r| r.fidelity.host_cpu_busy).fold(0.0, f64::max);
    vec![
        Check {
            what: "100 cases of 2 Mbit/s at once: valid".to_owned(),
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
            what: "100 at once: processors busy".to_owned(),
            measured: format!("{:.0} %", busy * 100.0),
            bound: "-".to_owned(),
            held: true,
        },
    ]
}
