//! Finds which sizes reach each hop: probes that must not be fragmented (RFC 1191, RFC 8201).
//!
//! A router that cannot forward one reports the MTU of its next link. If nothing is reported and no hop beyond a
//! router answers, the size vanished after it; the longest working packet is then searched as on a path with silent
//! routers ([`bdp_model::probes::mtu_search`]), at the farthest hop that answers.

use std::sync::atomic::AtomicBool;

use bdp_flow::session::error::Result;
use bdp_model::probes::hops::{AnswerKind, HopProbe, Phase};
use bdp_model::probes::mtu_search::{MtuBounds, MtuSearcher, Step};
use bdp_model::units::Nanos;

use super::engine::{Aim, Engine};

/// Interval of probes.
const STEP_NS: u64 = 20_000_000;
/// How often a size is tried at each hop: a burst of loss is no black hole.
const TRIES: u32 = 3;
/// Before a size is tried again at a hop that limits its answers.
const SLOW_NS: u64 = 1_100_000_000;
/// Most sizes that routers may report one after the other.
const MOST_TOLD: u32 = 8;
/// How long a probe is waited for at least.
const PATIENCE_NS: u64 = 500_000_000;
/// Time limit of a search between two sizes.
const SEARCH: Nanos = Nanos::secs(4);
/// Below this a name for the MTU is a mistake, or an attack (RFC 791: every link carries 68 bytes).
const LEAST: u32 = 68;

/// Tries sizes, from the largest that this machine sends, at these hops.
pub(super) fn search(
    engine: &mut Engine,
    hops: &[u8],
    slow: &[u8],
    largest: u32,
    cancel: &AtomicBool,
) -> Result<()> {
    let rtt_ns = engine.longest_rtt_ns().unwrap_or(0);
    let patience = engine.set_patience(PATIENCE_NS.max(rtt_ns * 2));
    // For a prober other than that of the rounds, and to have an answer of each hop in this phase.
    let small = try_size(engine, hops, slow, engine.smallest(), cancel)?;
    let there: Vec<u8> = small.iter().filter(|found| found.came).map(|found| found.hop).collect();
    let mut size = largest;
    for _ in 0..MOST_TOLD {
        let found = try_size(engine, &there, slow, size, cancel)?;
        if let Some(told) = found.iter().filter_map(|found| found.told).min() {
            // A router that names no MTU predates RFC 1191; if it names less than it has passed, the search continues
            // as without a report.
            if (LEAST.max(engine.smallest())..size).contains(&told) {
                size = told;
                continue;
            }
        }
        let reached = found.iter().filter(|found| found.came).map(|found| found.hop).max().unwrap_or(0);
        if there.last().is_some_and(|&last| last > reached) {
            close_in(engine, &there, slow, reached, size, cancel)?;
        }
        break;
    }
    engine.set_patience(patience);
    Ok(())
}

/// The fate of a size at a hop.
struct Found {
    hop: u8,
    /// Whether it arrived.
    came: bool,
    /// The MTU that a router reported instead.
    told: Option<u32>,
}

fn try_size(
    engine: &mut Engine,
    hops: &[u8],
    slow: &[u8],
    size: u32,
    cancel: &AtomicBool,
) -> Result<Vec<Found>> {
    let mut all: Vec<Found> = hops.iter().map(|&hop| Found { hop, came: false, told: None }).collect();
    for tried in 0..TRIES {
        let mut sent = Vec::new();
        // A hop before one that answered needs no more tries: it was passed.
        let reached = all.iter().filter(|found| found.came).map(|found| found.hop).max().unwrap_or(0);
        let is_open = |found: &Found| !found.came && found.told.is_none() && found.hop > reached;
        if tried > 0 && all.iter().any(|found| is_open(found) && slow.contains(&found.hop)) {
            engine.run_until(engine.now_ns() + SLOW_NS, cancel)?;
        }
        for (at, found) in all.iter().enumerate().filter(|(_, found)| is_open(found)) {
            let aim = Aim { phase: Phase::Sizes, hop: found.hop, flow: 0, bytes: size };
            sent.push((at, engine.send(aim, cancel)?));
            engine.run_until(engine.now_ns() + STEP_NS, cancel)?;
        }
        engine.settle(cancel)?;
        for (at, number) in sent {
            match engine.answer(number).map(|answer| answer.kind) {
                Some(AnswerKind::TooLong(mtu)) => all[at].told = Some(mtu),
                Some(_) => all[at].came = true,
                None => {}
            }
        }
    }
    Ok(all)
}

/// Searches for the longest packet that reaches the farthest hop which answers short ones without rate-limiting.
fn close_in(
    engine: &mut Engine,
    hops: &[u8],
    slow: &[u8],
    reached: u8,
    size: u32,
    cancel: &AtomicBool,
) -> Result<()> {
    let mut beyond = hops.iter().rev().filter(|&&hop| hop > reached && !slow.contains(&hop));
    let Some(&hop) = beyond.next() else { return Ok(()) };
    let now = Nanos(engine.now_ns());
    let round_trip = engine.probes().filter(|p| p.hop == hop).filter_map(HopProbe::rtt_ns).max();
    let mut searcher = MtuSearcher::new(MtuBounds {
        smallest: engine.smallest(),
        // The vanished size is known; the largest that may pass is one byte less.
        largest: size - 1,
        round_trip: Nanos(round_trip.unwrap_or(0)),
        patience: now + SEARCH,
        until: now + SEARCH,
    });
    // Probes from here on whose answer has not been seen.
    let mut open: Vec<(u32, u32)> = Vec::new();
    loop {
        match searcher.next(Nanos(engine.now_ns())) {
            Step::Send(bytes) => {
                open.push((engine.send(Aim { phase: Phase::Sizes, hop, flow: 0, bytes }, cancel)?, bytes));
            }
            Step::Wait(until) => engine.run_until(until.as_ns(), cancel)?,
            Step::End(_) => break,
        }
        let now = Nanos(engine.now_ns());
        open.retain(|&(number, bytes)| {
            let answer = engine.answer(number);
            let is_answered = answer.is_some_and(|answer| !matches!(answer.kind, AnswerKind::TooLong(_)));
            if is_answered {
                searcher.note_answer(bytes, now);
            }
            !is_answered
        });
    }
    engine.settle(cancel)
}
