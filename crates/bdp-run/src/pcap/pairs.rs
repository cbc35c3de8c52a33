//! Captures of one path at several places: which belong together, and what a second place adds to the first.

use bdp_capture::between::{LoggedFlow, Place, SegmentLog, compare};
use bdp_explain::explain;
use bdp_model::capture::pair::{BetweenDirection, CapturePair, PairedConnection, QueueingDelay};
use bdp_model::capture::{ExplainedFlow, Offer, ReadCapture, Vantage};
use bdp_model::facts::OneWay;
use bdp_model::flow::udp::OneWayDelay;

/// A capture, with the segments of each of its flows.
pub(crate) struct Logged {
    /// The capture's results.
    pub capture: ReadCapture,
    /// Segment logs in the order of its flows.
    pub logs: Vec<Option<Box<SegmentLog>>>,
}

/// Compares captures that hold the same connections, each with its neighbour on the path.
pub(crate) fn compared(logged: Vec<Logged>) -> (Vec<ReadCapture>, Vec<CapturePair>) {
    let mut pairs = Vec::new();
    let order = along_the_path(&logged);
    for neighbours in order.windows(2) {
        // As the user named them.
        let captures = [neighbours[0].min(neighbours[1]), neighbours[0].max(neighbours[1])];
        let places = captures.map(|i| place(&logged[i]));
        if let Some(pair) = compare([&places[0], &places[1]]) {
            pairs.push(CapturePair { captures, ..pair });
        }
    }
    let mut captures: Vec<ReadCapture> = logged.into_iter().map(|logged| logged.capture).collect();
    for pair in &pairs {
        pair.connections
            .iter()
            .for_each(|connection| explain_by_both(&mut captures, pair.captures, connection));
    }
    (captures, pairs)
}

fn place(logged: &Logged) -> Place<'_> {
    let flows = logged.capture.flows.iter().zip(&logged.logs);
    Place {
        summary: &logged.capture.summary,
        flows: flows.map(|(found, log)| LoggedFlow { flow: &found.flow, log: log.as_deref() }).collect(),
    }
}

/// Orders captures from the end that opened the first one's largest connection to the other, by the round trip to it;
/// in the given order if no capture shows it.
fn along_the_path(logged: &[Logged]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..logged.len()).collect();
    let connections =
        |i: usize| logged[i].capture.flows.iter().map(|found| &found.flow).filter(|f| f.tcp.is_some());
    let Some(largest) = order.first().and_then(|&first| connections(first).next()) else { return order };
    let to_a = |&i: &usize| {
        let same = connections(i).find(|flow| {
            [largest.a, largest.b].contains(&flow.a) && [largest.a, largest.b].contains(&flow.b)
        });
        let ends =
            same.and_then(|flow| Some(flow.tcp.as_ref()?.to_ends_ns[usize::from(flow.a != largest.a)]));
        ends.flatten().unwrap_or(u64::MAX)
    };
    if order.len() > 2 {
        order.sort_by_key(to_a);
    }
    order
}

/// Explains a connection again from the capture at its sender, with what the capture at the receiver adds.
fn explain_by_both(captures: &mut [ReadCapture], pair: [usize; 2], connection: &PairedConnection) {
    if connection.terminated {
        return;
    }
    let flow = |place: usize| &captures[pair[place]].flows[connection.flows[place] - 1];
    let near = connection.explained_by;
    let (ours, theirs) = (flow(near), flow(1 - near));
    let swapped = ours.flow.a != theirs.flow.a && ours.flow.a == theirs.flow.b;
    let main = ours.main_direction();
    // Counted from the first capture's a.
    let first_main = if near == 1 && swapped { 1 - main } else { main };
    let uses = window_scaling(ours, theirs, main, swapped);
    let vantages = [ours, theirs].map(|found| found.flow.tcp.as_ref().and_then(|tcp| tcp.vantage));
    let at_both_ends = matches!(
        vantages,
        [Some(Vantage::NearA), Some(Vantage::NearB)] | [Some(Vantage::NearB), Some(Vantage::NearA)]
    );
    let one_way = one_way(&connection.directions[first_main], &connection.directions[1 - first_main]);
    let found = &mut captures[pair[near]].flows[connection.flows[near] - 1];
    let Some(facts) = &mut found.facts[main] else { return };
    if let Some([sender, receiver]) = uses {
        (facts.sender.window_scaling, facts.receiver.window_scaling) = (Some(sender), Some(receiver));
    }
    if let Some(one_way) = one_way.filter(|_| at_both_ends) {
        facts.one_way = Some(one_way);
    }
    found.findings[main] = explain(facts);
}

/// Returns whether the sender and the receiver use window scaling, if a device between them removed the option from a
/// SYN: an end uses it if it offered it and received the other's offer (RFC 7323, section 2.2).
fn window_scaling(
    ours: &ExplainedFlow,
    theirs: &ExplainedFlow,
    main: usize,
    swapped: bool,
) -> Option<[bool; 2]> {
    let offers = |found: &ExplainedFlow| found.flow.tcp.as_ref().map(|tcp| tcp.offers);
    let (ours, mut theirs) = (offers(ours)?, offers(theirs)?);
    if swapped {
        theirs.swap(0, 1);
    }
    let scales = |offer: Option<Offer>| offer.map(|offer| offer.window_scale.is_some());
    let at_sender = [scales(ours[main])?, scales(ours[1 - main])?];
    let at_receiver = [scales(theirs[main])?, scales(theirs[1 - main])?];
    (at_sender != at_receiver).then(|| [at_sender, at_receiver].map(|both| both == [true, true]))
}

/// Returns the delays of the data and of the acknowledgements, each above its minimum.
fn one_way(data: &BetweenDirection, back: &BetweenDirection) -> Option<OneWay> {
    let loaded = |queueing: QueueingDelay| {
        let ns = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        OneWayDelay {
            min: 0,
            p50: ns(queueing.p50_ns),
            p95: (queueing.packets >= 20).then_some(ns(queueing.p95_ns)),
            p99: None,
            max: ns(queueing.max_ns),
            clock_error: 0,
        }
    };
    let idle = Some(OneWayDelay { p95: None, ..OneWayDelay::default() });
    let (data, back) = (data.queueing?, back.queueing?);
    Some(OneWay { idle, loaded: Some(loaded(data)), back_idle: idle, back_loaded: Some(loaded(back)) })
}
