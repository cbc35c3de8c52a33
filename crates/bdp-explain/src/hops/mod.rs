//! Conclusions from the probes of a path: where the queue stands, where packets are lost, what sizes pass, where marks
//! change, and where there are branches.

mod branches;
mod extent;
mod loss;
mod marks;
mod queue;
mod sizes;

#[cfg(test)]
mod samples;

use std::collections::BTreeMap;
use std::net::IpAddr;

use bdp_model::probes::hops::{
    AnswerKind, Figures, Hop, HopAddress, HopKind, HopLoss, HopProbe, PathReport, Phase, Share,
};
use bdp_model::statistics::resolves;

use extent::{destination, end_of};

pub use loss::suspects;

/// Fills in the report from the probes.
pub fn conclude(report: &mut PathReport, probes: &[HopProbe]) {
    let Some(end) = end_of(probes) else {
        report.hops = Vec::new();
        return;
    };
    report.reached = destination(probes).is_some();
    let mut hops: Vec<Hop> = (1..=end).map(|number| describe(number, probes)).collect();
    let is_loaded = probes.iter().any(|p| p.phase == Phase::Loaded);
    report.queue = queue::judge(&mut hops, probes, is_loaded);
    report.loss = loss::judge(&mut hops, probes);
    report.mtu = sizes::judge(&mut hops, probes, report.request.sizes);
    report.marks = marks::judge(&mut hops, probes, report.request.octet(), report.quotes);
    report.branches = branches::judge(&hops, probes);
    report.probes = probes.len() as u64;
    report.hops = hops;
}

fn describe(number: u8, probes: &[HopProbe]) -> Hop {
    let mut addresses: BTreeMap<IpAddr, u64> = BTreeMap::new();
    let (mut unreachable, mut answers) = (0u64, 0u64);
    for probe in probes.iter().filter(|p| p.hop == number && p.is_answered()) {
        let Some(answer) = probe.answer else { continue };
        answers += 1;
        unreachable += u64::from(matches!(answer.kind, AnswerKind::Unreachable(_)));
        if let Some(from) = answer.from {
            *addresses.entry(from).or_default() += 1;
        }
    }
    let mut addresses: Vec<HopAddress> =
        addresses.into_iter().map(|(address, answers)| HopAddress { address, name: None, answers }).collect();
    addresses.sort_by_key(|known| std::cmp::Reverse(known.answers));
    let kind = match destination(probes) {
        Some(there) if there == number => HopKind::Destination,
        _ if answers == 0 => HopKind::Silent,
        _ if unreachable * 2 > answers => HopKind::Unreachable,
        _ => HopKind::Router,
    };
    Hop {
        number,
        kind,
        addresses,
        idle: figures(number, Phase::Idle, probes),
        loaded: figures(number, Phase::Loaded, probes),
        delay_ns: None,
        queue_ns: None,
        slow_answers_ns: None,
        loss: HopLoss::None,
        mtu_bytes: None,
        marks: None,
        congestion_marked: 0,
    }
}

/// Results of a hop's probes in a phase; `None` if none were sent.
fn figures(hop: u8, phase: Phase, probes: &[HopProbe]) -> Option<Figures> {
    let those = probes.iter().filter(|p| p.hop == hop && p.phase == phase);
    let sent = those.clone().count() as u64;
    let mut rtts: Vec<u64> = those.filter_map(HopProbe::rtt_ns).collect();
    rtts.sort_unstable();
    let lost = sent - rtts.len() as u64;
    let rank =
        |p: f64| Some(*rtts.get(bdp_model::statistics::nearest_rank(rtts.len() as u64, p) as usize - 1)?);
    (sent > 0).then(|| Figures {
        sent,
        lost,
        loss: Share::of(lost, sent),
        rtt_min_ns: rtts.first().copied(),
        rtt_p50_ns: (!rtts.is_empty()).then(|| rank(50.0)).flatten(),
        rtt_p95_ns: resolves(rtts.len() as u64, 95.0).then(|| rank(95.0)).flatten(),
    })
}
