//! The branches of each hop: uses as many flows as the multipath detection algorithm requires,
//! [`bdp_model::probes::hops::probes_needed`].
//!
//! Each hop is evaluated by itself, whatever branch a flow took before it.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;

use bdp_flow::session::error::Result;
use bdp_model::probes::hops::{Phase, probes_needed};

use super::engine::{Aim, Engine};

/// Interval of probes.
const STEP_NS: u64 = 20_000_000;
/// Before a flow without an answer is tried again: routers that limit their answers have one by then.
const AGAIN_NS: u64 = 1_100_000_000;
/// How often a flow is tried at a hop.
const TRIES: u32 = 2;
/// Time limit of the search.
const LONGEST_NS: u64 = 15_000_000_000;
/// How long an answer is waited for.
const PATIENCE_NS: u64 = 500_000_000;

/// What is known of a hop.
struct Known {
    hop: u8,
    seen: BTreeSet<IpAddr>,
    flows: u32,
    /// The next flow to try.
    next: u16,
}

/// Probes with up to `most` flows. Each flow is tried at all hops before the next.
pub(super) fn search(engine: &mut Engine, hops: &[u8], most: u16, cancel: &AtomicBool) -> Result<()> {
    let until = engine.now_ns() + LONGEST_NS;
    let wait = PATIENCE_NS.max(engine.longest_rtt_ns().unwrap_or(0) * 2);
    let patience = engine.set_patience(wait);
    let mut all: Vec<Known> =
        hops.iter().map(|&hop| Known { hop, seen: BTreeSet::new(), flows: 0, next: 0 }).collect();
    loop {
        let mut sent = Vec::new();
        for (at, known) in all.iter_mut().enumerate() {
            let needed = probes_needed((known.seen.len() as u32).max(1)).min(u32::from(most));
            while known.flows + flows_of(&sent, at) < needed && known.next < most.saturating_mul(2) {
                sent.push((at, known.next, None));
                known.next += 1;
            }
        }
        // One flow after the other, so that the probes of a hop are apart.
        sent.sort_by_key(|&(at, flow, _)| (flow, at));
        if sent.is_empty() || engine.now_ns() >= until {
            break;
        }
        for round in 0..TRIES {
            for (at, flow, number) in &mut sent {
                if number.is_some_and(|number| engine.answer(number).is_some()) || engine.now_ns() >= until {
                    continue;
                }
                let aim = Aim { phase: Phase::Branches, hop: all[*at].hop, flow: *flow, bytes: 0 };
                *number = Some(engine.send(aim, cancel)?);
                engine.run_until(engine.now_ns() + STEP_NS, cancel)?;
            }
            engine.settle(cancel)?;
            let is_open = sent.iter().any(|&(.., number)| number.is_none_or(|n| engine.answer(n).is_none()));
            if round + 1 < TRIES && is_open {
                engine.run_until((engine.now_ns() + AGAIN_NS).min(until), cancel)?;
            }
        }
        for (at, _, number) in sent {
            let from = number.and_then(|number| engine.answer(number)).and_then(|answer| answer.from);
            if let Some(from) = from {
                all[at].seen.insert(from);
                all[at].flows += 1;
            }
        }
    }
    engine.set_patience(patience);
    Ok(())
}

fn flows_of(sent: &[(usize, u16, Option<u32>)], at: usize) -> u32 {
    sent.iter().filter(|(other, ..)| *other == at).count() as u32
}
