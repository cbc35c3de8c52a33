//! Compares TCP flows over the emulator and over the kernel's netem: goodput, retransmits and loaded round trip.
//!
//! A cell's path over the kernel has four hosts: a router sends through a netem with the rate, the loss and the
//! queue's limit, and the next one through a netem with the delay, each way, since netem's limit also counts packets
//! that merely propagate.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use bdp_lab::LabCommands;
use bdp_model::case::{CaseSpec, HostSpec, LinkSpec};
use bdp_model::link::LinkConfig;
use bdp_model::link::netem::Netem;
use bdp_model::record::Record;
use bdp_model::statistics::Moments;
use bdp_model::units::{Nanos, Probability, Rate};
use bdp_scenario::{PlanOptions, Scenario};
use serde::Serialize;

use crate::lab::LabPlan;
use crate::{Event, Result, RunError};

/// Repetitions if anything is random, with draws of their own: losses, and the phase in which BBR begins its cycles.
const DRAWN: u32 = 5;
/// Quantile of Student's distribution with about 8 degrees of freedom, exceeded in one case in a thousand.
const T: f64 = 5.04;
/// Bytes on the wire in addition to the IP packet.
const OVERHEAD: u32 = 38;
/// Share by which the goodput may differ if nothing is random.
const GOODPUT: f64 = 0.01;
/// Share by which the median loaded round trip may differ if nothing is random.
const ROUND_TRIP: f64 = 0.02;

/// Conditions, and the result of a TCP flow over the emulator and over netem.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// Rate of the path, each way.
    pub rate_bps: u64,
    /// One-way delay.
    pub delay_ns: u64,
    /// Limit of the queue, including the packet on the wire.
    pub limit_packets: u32,
    /// Share of packets lost in the forward direction, before the queue.
    pub loss: f64,
    /// The sender's congestion control.
    pub congestion_control: String,
    /// Duration of the flow.
    pub duration_ns: u64,
    /// Number of repetitions, each with draws of its own.
    pub repetitions: u32,
    /// Result over the emulator.
    pub emulator: Side,
    /// Result over the kernel's netem.
    pub netem: Side,
    /// The emulator's goodput / netem's.
    pub goodput_ratio: f64,
    /// Largest difference allowed.
    pub tolerance: String,
    /// Whether the difference is within the tolerance.
    pub agrees: bool,
}

/// Result of a flow; means if it was repeated.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Side {
    /// Bytes that the receiver read, bit/s.
    pub goodput_bps: f64,
    /// Standard deviation of the goodput between repetitions; null for a single one.
    pub goodput_sd_bps: Option<f64>,
    /// Segments retransmitted.
    pub retransmits: f64,
    /// Standard deviation of the retransmits; null for a single repetition.
    pub retransmits_sd: Option<f64>,
    /// Median round trip of probes during the flow.
    pub rtt_loaded_ns: f64,
}

/// Conditions of a cell.
struct Conditions {
    rate: Rate,
    delay: Nanos,
    limit: u32,
    loss: Probability,
    congestion: &'static str,
    duration: Nanos,
}

/// Runs a flow for each cell over both, and `tell`s how many attempts of how many are done.
pub fn flows_beside_netem(commands: LabCommands, tell: &mut dyn FnMut(usize, usize)) -> Result<Vec<Cell>> {
    let all = conditions();
    let mut cases = Vec::new();
    for (conditions, number) in all.iter().zip(0usize..) {
        let ours = conditions.cases(number)?;
        cases.extend(ours.iter().map(by_netem));
        cases.extend(ours);
    }
    let planned = cases.len();
    let mut plan = LabPlan::new(&[], cases, 1, String::new());
    plan.attempts = Some(1);
    let mut over = 0;
    let mut watch = |event: Event<'_>| {
        if matches!(event, Event::CaseEnded { .. }) {
            over += 1;
            tell(over, planned);
        }
    };
    let run = plan.run(commands, None, &mut watch, &AtomicBool::new(false));
    run.result?;
    if let Some(error) = run.records.iter().find_map(|record| record.error.clone()) {
        return Err(RunError::Case(error));
    }
    Ok(all.iter().zip(0..).map(|(conditions, number)| conditions.cell(number, &run.records)).collect())
}

impl Conditions {
    /// Returns the emulated cases, one for each repetition.
    fn cases(&self, number: usize) -> Result<Vec<CaseSpec>> {
        let Self { rate, delay, limit, loss, congestion, duration } = self;
        let text = format!(
            "title = \"beside netem\"\nclock = \"virtual\"\nrepetitions = {}\nidle = \"200ms\"\n\
             [[link]]\nbetween = [\"near\", \"far\"]\nrate = \"{}\"\ndelay = \"{}ns\"\nlimit = \"{limit}p\"\n\
             delivery = \"segment\"\n[link.forward]\nloss = \"{}\"\n\
             [[flow]]\ncongestion = \"{congestion}\"\nduration = \"{}ns\"\nomit = 0\n",
            self.repetitions(),
            rate.as_bps(),
            delay.as_ns(),
            loss.fraction(),
            duration.as_ns(),
        );
        let refused = |error: bdp_scenario::ScenarioError| RunError::Case(error.to_string());
        let scenario = Scenario::parse("beside-netem", &text).map_err(refused)?;
        let mut cases = scenario.plan(&PlanOptions::default()).map_err(refused)?;
        for case in &mut cases {
            // Draws of its own for each cell, or one sequence of losses would decide all of them.
            case.seed = case.seed.wrapping_add(0x9e37_79b9 * (number as u64 + 1));
            case.params =
                BTreeMap::from([("by".to_owned(), "emulator".into()), ("cell".to_owned(), number.into())]);
        }
        Ok(cases)
    }

    fn repetitions(&self) -> u32 {
        if self.loss.fraction() > 0.0 || self.congestion == "bbr" { DRAWN } else { 1 }
    }

    fn cell(&self, number: usize, records: &[Record]) -> Cell {
        let side = |by: &str| {
            let of = |record: &&Record| {
                let params = &record.params;
                params.get("by") == Some(&by.into()) && params.get("cell") == Some(&number.into())
            };
            Side::of(&records.iter().filter(of).collect::<Vec<_>>())
        };
        let (emulator, netem) = (side("emulator"), side("netem"));
        let (tolerance, agrees) = judge(&emulator, &netem, self.repetitions(), self.rate);
        Cell {
            rate_bps: self.rate.as_bps(),
            delay_ns: self.delay.as_ns(),
            limit_packets: self.limit,
            loss: self.loss.fraction(),
            congestion_control: self.congestion.to_owned(),
            duration_ns: self.duration.as_ns(),
            repetitions: self.repetitions(),
            goodput_ratio: emulator.goodput_bps / netem.goodput_bps,
            tolerance,
            agrees,
            emulator,
            netem,
        }
    }
}

fn judge(a: &Side, b: &Side, repetitions: u32, rate: Rate) -> (String, bool) {
    if let (Some(sd_a), Some(sd_b)) = (a.goodput_sd_bps, b.goodput_sd_bps) {
        let interval = |sds: [f64; 2], least: f64| {
            (T * ((sds[0] * sds[0] + sds[1] * sds[1]) / f64::from(repetitions)).sqrt()).max(least)
        };
        let goodput = interval([sd_a, sd_b], GOODPUT * b.goodput_bps);
        let retransmits = interval([a.retransmits_sd.unwrap_or(0.0), b.retransmits_sd.unwrap_or(0.0)], 2.0);
        let agrees = (a.goodput_bps - b.goodput_bps).abs() <= goodput
            && (a.retransmits - b.retransmits).abs() <= retransmits;
        return (format!("+-{:.0}%", 100.0 * goodput / b.goodput_bps), agrees);
    }
    let close = |a: f64, b: f64, part: f64, more: f64| (a - b).abs() <= part * b.abs() + more;
    // A median queue that is one packet longer.
    let packet_ns = rate.serialisation(1538).as_ns() as f64;
    let agrees = close(a.goodput_bps, b.goodput_bps, GOODPUT, 0.0)
        && close(a.rtt_loaded_ns, b.rtt_loaded_ns, ROUND_TRIP, packet_ns)
        && close(a.retransmits, b.retransmits, 0.1, 3.0);
    (format!("+-{:.0}%", 100.0 * GOODPUT), agrees)
}

impl Side {
    fn of(records: &[&Record]) -> Self {
        let moments = |value: &dyn Fn(&Record) -> f64| {
            Moments::of(&records.iter().map(|record| value(record)).collect::<Vec<_>>())
        };
        let flow = |record: &Record| record.flows.first().cloned();
        let goodput = moments(&|record| record.goodput_bps.unwrap_or(0.0));
        let retransmits =
            moments(&|record| flow(record).and_then(|flow| flow.retransmits).unwrap_or(0) as f64);
        let rtt = moments(&|record| record.rtt_ns.loaded.as_ref().map_or(0.0, |rtt| rtt.p50 as f64));
        let mean = |moments: &Option<Moments>| moments.as_ref().map_or(0.0, |m| m.mean);
        Self {
            goodput_bps: mean(&goodput),
            goodput_sd_bps: goodput.and_then(|m| m.sd),
            retransmits: mean(&retransmits),
            retransmits_sd: retransmits.and_then(|m| m.sd),
            rtt_loaded_ns: mean(&rtt),
        }
    }
}

/// Returns the same case with the kernel's netem in place of the emulator.
fn by_netem(case: &CaseSpec) -> CaseSpec {
    let config = case.links.first().map(|link| link.config.clone()).unwrap_or_default();
    let wire = |direction: &bdp_model::link::DirectionConfig| Netem {
        rate: direction.rate,
        overhead_bytes: OVERHEAD,
        loss: Probability::new(direction.loss.probability()).unwrap_or_default(),
        limit_packets: match direction.limit {
            bdp_model::link::QueueLimit::Packets(packets) => u32::try_from(packets).unwrap_or(u32::MAX),
            _ => u32::MAX,
        },
        ..Default::default()
    };
    let delay = |delay| Some(Netem { delay, ..Default::default() });
    let link = |a: &str, b: &str, netem| LinkSpec {
        between: [a.to_owned(), b.to_owned()],
        config: LinkConfig { delivery: config.delivery, ..Default::default() },
        profile: None,
        netem,
        capture: [false; 2],
        capture_snap: bdp_model::case::WHOLE_PACKETS,
    };
    let router = |name: &str| HostSpec { name: name.to_owned(), router: true, ..Default::default() };
    let mut hosts = case.hosts.clone();
    hosts.extend([router("r1"), router("r2")]);
    let mut params = case.params.clone();
    params.insert("by".to_owned(), "netem".into());
    CaseSpec {
        hosts,
        params,
        links: vec![
            link("near", "r1", [None, delay(config.reverse.delay)]),
            link("r1", "r2", [Some(wire(&config.forward)), Some(wire(&config.reverse))]),
            link("r2", "far", [delay(config.forward.delay), None]),
        ],
        ..case.clone()
    }
}

/// Every rate with every delay and congestion control, with a queue of about the path's bandwidth-delay product; and losses.
fn conditions() -> Vec<Conditions> {
    let mut all = Vec::new();
    let controls = ["reno", "cubic", "bbr"];
    for (mbps, seconds) in [(1, 30), (10, 10), (100, 3), (1_000, 1)] {
        for (delay_ms, more) in [(0, 0), (5, 0), (25, 1), (100, 3)] {
            for congestion in controls {
                let rate = Rate::mbps(mbps);
                let delay = Nanos::millis(delay_ms);
                let bdp_packets = mbps * 1_000_000 / 8 * 2 * delay_ms / 1000 / 1538;
                all.push(Conditions {
                    rate,
                    delay,
                    limit: bdp_packets.clamp(20, 20_000) as u32,
                    loss: Probability::default(),
                    congestion,
                    duration: Nanos::secs(seconds + more),
                });
            }
        }
    }
    for (mbps, delay_ms, seconds) in [(10, 25, 20), (100, 5, 5)] {
        for loss in [0.001, 0.01, 0.05] {
            for congestion in controls {
                all.push(Conditions {
                    rate: Rate::mbps(mbps),
                    delay: Nanos::millis(delay_ms),
                    limit: 100,
                    loss: Probability::new(loss).unwrap_or_default(),
                    congestion,
                    duration: Nanos::secs(seconds),
                });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_cells_enough_and_each_has_a_twin() {
        let all = conditions();
        assert!(all.len() >= 50, "{}", all.len());
        let case = &all.last().unwrap().cases(7).unwrap()[0];
        let twin = by_netem(case);
        assert_eq!(twin.links.len(), 3);
        let wire = twin.links[1].netem[0].unwrap();
        assert_eq!((wire.rate, wire.limit_packets), (Some(Rate::mbps(100)), 100));
        assert_eq!(wire.loss.fraction(), 0.05);
        assert_eq!(twin.links[1].netem[1].unwrap().loss.fraction(), 0.0);
        assert_eq!(twin.links[2].netem[0].unwrap().delay, Nanos::millis(5));
        assert_ne!(case.key(), twin.key());
        assert_eq!(twin.seed, case.seed);
    }

    #[test]
    fn sides_agree_within_what_was_stated() {
        let side = |goodput_bps, goodput_sd_bps| Side {
            goodput_bps,
            goodput_sd_bps,
            rtt_loaded_ns: 1e6,
            ..Default::default()
        };
        assert!(judge(&side(100.0, None), &side(100.5, None), 1, Rate::mbps(1)).1);
        assert!(!judge(&side(100.0, None), &side(102.0, None), 1, Rate::mbps(1)).1);
        assert!(judge(&side(100.0, Some(5.0)), &side(102.0, Some(5.0)), 5, Rate::mbps(1)).1);
        assert!(!judge(&side(100.0, Some(0.1)), &side(102.0, Some(0.1)), 5, Rate::mbps(1)).1);
    }
}
