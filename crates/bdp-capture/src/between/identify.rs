//! Identifies the same connections in two captures: by their ends or, if addresses were translated in between, by their SYNs.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

use bdp_model::capture::pair::Recognised;
use bdp_model::capture::{CapturedFlow, FlowProtocol};

use super::log::SegmentLog;

/// A flow of a capture, with its segments if it is a TCP connection.
#[derive(Debug, Clone, Copy)]
pub struct LoggedFlow<'a> {
    /// Report of the flow.
    pub flow: &'a CapturedFlow,
    /// Segments of the flow.
    pub log: Option<&'a SegmentLog>,
}

/// Two flows that are one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Same {
    pub flows: [usize; 2],
    pub recognised: Recognised,
    /// Whether ends a and b are swapped in the second capture, because at least one of them missed the start.
    pub swapped: bool,
}

/// Returns the connections in both captures, in the order of the first.
pub(super) fn same(first: &[LoggedFlow<'_>], second: &[LoggedFlow<'_>]) -> Vec<Same> {
    let mut taken = HashSet::new();
    let mut found: Vec<Same> = Vec::new();
    let by_ends = index(second, |flow| Some(ends(flow.flow)));
    for (i, one) in connections(first) {
        let candidates = by_ends.get(&ends(one.flow)).map_or(&[][..], Vec::as_slice);
        let rated = candidates.iter().filter(|j| !taken.contains(*j)).filter_map(|&j| {
            let swapped = one.flow.a != second[j].flow.a;
            Some((likeness(one, &second[j], swapped, candidates.len())?, std::cmp::Reverse(j), swapped))
        });
        if let Some((_, std::cmp::Reverse(j), swapped)) = rated.max() {
            taken.insert(j);
            found.push(Same { flows: [i, j], recognised: Recognised::Ends, swapped });
        }
    }
    let known: HashSet<usize> = found.iter().map(|same| same.flows[0]).collect();
    for (recognised, key) in
        [(Recognised::SequenceNumbers, numbers as Key), (Recognised::Timestamps, timestamps as Key)]
    {
        let by_syns = index(second, key);
        let of_first = index(first, key);
        for (i, one) in connections(first).filter(|(i, _)| !known.contains(i)) {
            if found.iter().any(|same| same.flows[0] == i) {
                continue;
            }
            let Some(own) = key(one) else { continue };
            // Connections with equal numbers can't be distinguished by them.
            let is_alone = of_first.get(&own).is_some_and(|all| all.len() == 1);
            if let Some(&[j]) = by_syns.get(&own).map(Vec::as_slice)
                && is_alone
                && taken.insert(j)
            {
                found.push(Same { flows: [i, j], recognised, swapped: false });
            }
        }
    }
    found.sort_by_key(|same| same.flows);
    found
}

type Key = fn(&LoggedFlow<'_>) -> Option<(u64, u64)>;

fn connections<'a>(flows: &'a [LoggedFlow<'a>]) -> impl Iterator<Item = (usize, &'a LoggedFlow<'a>)> {
    flows.iter().enumerate().filter(|(_, one)| one.flow.protocol == FlowProtocol::Tcp && log(one).is_some())
}

fn log<'a>(one: &LoggedFlow<'a>) -> Option<&'a SegmentLog> {
    one.log.filter(|log| !log.passed.is_empty())
}

fn index<K: Eq + std::hash::Hash>(
    flows: &[LoggedFlow<'_>],
    key: impl Fn(&LoggedFlow<'_>) -> Option<K>,
) -> HashMap<K, Vec<usize>> {
    let mut all: HashMap<K, Vec<usize>> = HashMap::new();
    for (i, one) in connections(flows) {
        if let Some(key) = key(one) {
            all.entry(key).or_default().push(i);
        }
    }
    all
}

fn ends(flow: &CapturedFlow) -> (SocketAddr, SocketAddr) {
    (flow.a.min(flow.b), flow.a.max(flow.b))
}

/// Returns how much two flows between the same ends have in common; `None` if they differ.
fn likeness(one: &LoggedFlow<'_>, other: &LoggedFlow<'_>, swapped: bool, candidates: usize) -> Option<u8> {
    let (one, other) = (log(one)?, log(other)?);
    let side = usize::from(swapped);
    match (one.syn(0), other.syn(side)) {
        (Some((a, _)), Some((b, _))) if a.seq == b.seq => Some(3),
        (Some((a, _)), Some((b, _))) if a.stamps().is_some() && a.stamps() == b.stamps() => Some(2),
        // Sequence numbers are rewritten, or a proxy terminates the connection and opens it anew.
        (Some(_), Some(_)) => (candidates == 1).then_some(1),
        _ => Some(u8::from(overlap(one, other, side)) + 1),
    }
}

/// Whether the sequence numbers of both directions are in one range.
fn overlap(one: &SegmentLog, other: &SegmentLog, swapped: usize) -> bool {
    let range = |log: &SegmentLog, side: usize| {
        let mut own = log.passed.iter().filter(|passed| passed.side() == side);
        let first = own.next()?.seq;
        let furthest = own.map(|passed| passed.seq.wrapping_sub(first)).filter(|&d| d < 1 << 31).max();
        Some((first, furthest.unwrap_or(0)))
    };
    (0..2).any(|side| {
        let (Some((a, length_a)), Some((b, length_b))) = (range(one, side), range(other, side ^ swapped))
        else {
            return false;
        };
        b.wrapping_sub(a) <= length_a || a.wrapping_sub(b) <= length_b
    })
}

/// Returns the initial sequence numbers of both ends.
fn numbers(one: &LoggedFlow<'_>) -> Option<(u64, u64)> {
    let log = log(one)?;
    Some((u64::from(log.syn(0)?.0.seq), u64::from(log.syn(1)?.0.seq)))
}

/// Returns the timestamps of both SYNs.
fn timestamps(one: &LoggedFlow<'_>) -> Option<(u64, u64)> {
    let log = log(one)?;
    let both = [log.syn(0)?.0.stamps()?, log.syn(1)?.0.stamps()?];
    both.iter().all(|stamps| stamps.0 != 0).then_some((u64::from(both[0].0), u64::from(both[1].0)))
}
