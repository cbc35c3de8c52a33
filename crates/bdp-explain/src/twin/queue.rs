//! The queue before the bottleneck: its size and its discipline.

use bdp_model::facts::Facts;
use bdp_model::finding::Limit;
use bdp_model::statistics::{median, percentile};
use bdp_model::twin::{Discipline, Parameter, Source, Unseen};

use super::rate::Known;
use super::view::{Notes, Path};

/// Size of a queue of which nothing is known, packets, as in Linux and the lab.
const USUAL: u64 = 1000;

/// A queue as observed.
pub struct Found {
    /// Its size.
    pub packets: u64,
    /// Its discipline.
    pub discipline: Discipline,
    /// Marking threshold in packets.
    pub mark_packets: Option<u64>,
}

impl Found {
    /// Derives the queue of a bottleneck with this rate.
    pub fn of(path: &Path<'_>, rate: &Known, limit: Limit, notes: &mut Notes) -> Self {
        let probed = most_waiting(path, rate);
        let smoothed = if path.facts.both_directions { 0.0 } else { smoothed_waiting(path, rate) };
        let packets = |bytes: f64| (bytes / path.wire_bytes()).ceil() as u64 + 1;
        let ecn = path.facts.connection.and_then(|c| c.ecn) == Some(true);
        if let Some(discipline) = managed(path, ecn) {
            notes.learned(path.way, Parameter::Discipline, Source::RttUnderLoad);
            let limit = match discipline {
                Discipline::FqCodel { .. } => 10_240,
                _ => packets(probed.max(smoothed)).max(USUAL),
            };
            return Self { packets: limit, discipline, mark_packets: None };
        }
        if limit == Limit::EcnMarks {
            notes.learned(path.way, Parameter::Queue, Source::RttUnderLoad);
            let marks = packets(smoothed);
            return Self {
                packets: (4 * marks).max(USUAL),
                discipline: Discipline::DropTail,
                mark_packets: Some(marks),
            };
        }
        let lost = path.facts.retransmits.unwrap_or(0) > path.facts.needless_retransmits.unwrap_or(0);
        if !lost {
            let at_least_packets = packets(probed.max(smoothed));
            notes.unseen.push(Unseen::QueueDepth { way: path.way, at_least_packets });
            notes.learned(path.way, Parameter::Queue, Source::Assumed);
            return Self {
                packets: USUAL.max(2 * at_least_packets),
                discipline: Discipline::DropTail,
                mark_packets: None,
            };
        }
        let (bytes, how) = match probed >= smoothed {
            true => (probed, Source::ProbesUnderLoad),
            false => (smoothed, Source::RttBeforeLosses),
        };
        notes.learned(path.way, Parameter::Queue, how);
        Self { packets: packets(bytes).max(2), discipline: Discipline::DropTail, mark_packets: None }
    }
}

/// Most bytes that a probe found waiting in the data's own direction.
fn most_waiting(path: &Path<'_>, rate: &Known) -> f64 {
    let waits = path.waits();
    let mut waited: Vec<f64> = waits.iter().map(|&(at, ns)| ns * rate.at(at) / 8e9).collect();
    percentile(&mut waited, 99.0).unwrap_or(0.0)
}

/// Bytes waiting just before losses (or the maximum, if none is reported), from the sender's smoothed round trip.
fn smoothed_waiting(path: &Path<'_>, rate: &Known) -> f64 {
    let above =
        |at: u64, srtt: u64| srtt.saturating_sub(path.base_ns + path.noise_ns) as f64 * rate.at(at) / 8e9;
    let losses: Vec<f64> = path
        .facts
        .loss_episodes
        .iter()
        .filter(|e| e.srtt_ns > 0)
        .map(|e| above(e.at_ns, e.srtt_ns))
        .collect();
    let all = path.facts.sent.iter().filter_map(|s| Some(above(s.at_ns, s.srtt_ns?)));
    match losses.is_empty() {
        true => all.fold(0.0, f64::max),
        false => losses.into_iter().fold(0.0, f64::max),
    }
}

/// A discipline that keeps the delay near a target, if recognisable: the standing delay is far below the one at the end of slow start, and losses are
/// few and single; with a queue per flow, probes do not wait at all.
fn managed(path: &Path<'_>, ecn: bool) -> Option<Discipline> {
    /// Standing delay with active queue management.
    const STANDS_NS: (f64, f64) = (1.5e6, 30e6);
    /// Smallest highest delay / standing delay.
    const ONCE: f64 = 2.5;
    /// Largest wait of probes / wait of the flow's own segments.
    const OWN_QUEUE: f64 = 0.3;
    let facts = path.facts;
    if facts.both_directions {
        return None;
    }
    let waits = |srtt: u64| srtt.saturating_sub(path.base_ns) as f64;
    let mut settled: Vec<f64> = second_half(facts).filter_map(|s| s.srtt_ns).map(waits).collect();
    let stands = median(&mut settled)?;
    let high = percentile(&mut settled, 95.0)?;
    let once = facts.sent.iter().filter_map(|s| s.srtt_ns).map(waits).fold(0.0, f64::max);
    let probes = facts.own_way_added().or_else(|| {
        let loaded = facts.rtt_ns.loaded?;
        Some(bdp_model::Nanos(loaded.answers().p50.saturating_sub(path.base_ns)))
    })?;
    let noise = path.noise_ns as f64;
    let by_itself = stands > STANDS_NS.0 + 2.0 * noise && (probes.as_ns() as f64) < OWN_QUEUE * stands;
    let target_ns = 5_000_000;
    if by_itself {
        return Some(Discipline::FqCodel { target_ns, ecn });
    }
    let picture = facts.loss_picture();
    let few = picture.as_ref().is_some_and(|p| p.settled >= 2 && p.lost_each <= 3.0);
    let in_range = (STANDS_NS.0..=STANDS_NS.1).contains(&stands) && stands > 2.0 * noise;
    (in_range && once >= ONCE * high && few).then_some(Discipline::Codel { target_ns, ecn })
}

fn second_half(facts: &Facts) -> impl Iterator<Item = &bdp_model::record::SenderSample> {
    let from = facts.omit_ns.max(facts.duration_ns / 3);
    facts.sent.iter().filter(move |s| s.at_ns >= from)
}
