//! Compares the commands that `bdp lab export` prints for some links, run by the kernel's netem, with the links
//! themselves. Guests have no `tc`: the command is parsed as by `bdp lab import`, and set by netlink.

use bdp_lab::Program;
use bdp_lab::frame_train::Frame;
use bdp_lab::kernel::Kernel;
use bdp_scenario::foreign::{netem_commands, netem_of};
use bdp_scenario::{PlanOptions, Scenario};

use super::beside::{Comparison, Pair, carry_both};
use super::check::{CLOCK_STEPS_NS, Check};
use super::frames::{ANY, LONGEST, bunches, gap_ns, scattered};
use crate::{Result, RunError};

/// Default overhead of a frame on the wire.
const OVERHEAD: u32 = 38;
const DRAWN: usize = 20_000;

/// A link as stated by a scenario, its train, and how both results are compared.
struct Link {
    keys: &'static str,
    frames: Vec<Frame>,
    comparison: Comparison,
}

/// Carries each train over the link and over the netem of its command.
pub fn exported_beside_netem(keeper: &Program) -> Result<(Kernel, Vec<Check>)> {
    let pairs = links().into_iter().map(Link::pair).collect::<Result<Vec<_>>>()?;
    carry_both(keeper, &pairs)
}

impl Link {
    fn pair(self) -> Result<Pair> {
        let wrong = |error: &dyn std::fmt::Display| RunError::Case(format!("{}: {error}", self.keys));
        let text = format!("title = \"x\"\n[[link]]\nbetween = [\"a\", \"b\"]\n{}\n[[flow]]\n", self.keys);
        let scenario = Scenario::parse("exported", &text).map_err(|e| wrong(&e))?;
        let plan = scenario.plan(&PlanOptions::default()).map_err(|e| wrong(&e))?;
        let case = plan.first().ok_or_else(|| wrong(&"no case"))?;
        let printed = netem_commands(case);
        let command =
            printed.lines().find(|line| line.starts_with("tc ")).ok_or_else(|| wrong(&"no command"))?;
        Ok(Pair {
            name: command.split_once("netem ").map_or(command, |(_, options)| options).to_owned(),
            ours: case.links[0].config.forward.clone(),
            netem: vec![netem_of(command).map_err(|e| wrong(&e))?],
            frames: self.frames,
            comparison: self.comparison,
        })
    }
}

fn links() -> Vec<Link> {
    let rated = |mbps: u64, percent| gap_ns(mbps * 1_000_000, OVERHEAD, percent);
    // netem cuts each serialisation to whole nanoseconds.
    let each = |frames: usize| Comparison::Each(CLOCK_STEPS_NS + frames as u64);
    // Full frames at one and a half times the rate, for long enough that the time to fill the queue is negligible.
    let too_many = || {
        let gap = u64::from(LONGEST + OVERHEAD) * 8 * 100 * 2 / 3;
        (0..8_000)
            .map(|i| Frame { at_ns: i * gap, ip_bytes: LONGEST, ..Frame::default() })
            .collect::<Vec<_>>()
    };
    // In the Gilbert-Elliott model with these parameters, losses within five packets are correlated, and the variance
    // of their number grows by (1 + m) / (1 - m), with m = 1 - to_bad - to_good, the part of a state that remains one
    // packet later.
    let memory = 1.0_f64 - 0.01 - 0.2;
    let in_runs = Comparison::LostInRuns { mean: 5.0, wider: ((1.0 + memory) / (1.0 - memory)).sqrt() };
    let link = |keys, frames, comparison| Link { keys, frames, comparison };
    vec![
        link("delay = \"20ms\"", scattered(1_000, 200_000, ANY, 11), Comparison::Each(CLOCK_STEPS_NS)),
        link("rate = \"10M\"", scattered(2_000, rated(10, 95), ANY, 12), each(2_000)),
        link("rate = \"10M\"\ndelay = \"20ms\"", scattered(2_000, rated(10, 95), ANY, 13), each(2_000)),
        link(
            "rate = \"100M\"\ndelay = \"5ms\"\noverhead = 14",
            scattered(2_000, rated(100, 90), ANY, 14),
            each(2_000),
        ),
        link("rate = \"10M\"\nlimit = 50", too_many(), each(8_000)),
        // Packets in the delay are counted by their bytes, and the last of the queue may be one more or less.
        link("rate = \"10M\"\ndelay = \"20ms\"\nlimit = 50", too_many(), Comparison::Sums),
        link("rate = \"10M\"\ndelay = \"20ms\"\nlimit = \"75KB\"", too_many(), Comparison::Sums),
        link("loss = \"2%\"", bunches(DRAWN, 1_000_000), Comparison::Lost),
        link("loss = { to_bad = \"1%\", to_good = \"20%\" }", bunches(DRAWN, 1_000_000), in_runs),
        link("duplicate = \"2%\"", bunches(DRAWN / 2, 1_000_000), Comparison::Copies),
        link(
            "delay = \"10ms\"\njitter = { uniform = \"2ms\", reorder = true }",
            scattered(4_000, 100_000, ANY, 15),
            Comparison::Transits,
        ),
        link(
            "reorder = { probability = \"95%\", by = \"10ms\" }",
            scattered(8_000, 100_000, ANY, 16),
            Comparison::Transits,
        ),
    ]
}
