//! Two captures of one path: a table of the connections that passed both places, and what happened to each in between.

use std::net::IpAddr;

use bdp_model::capture::pair::{
    BetweenDirection, CapturePair, Change, Changed, ChangedValue, OrderBy, PairedConnection, QueueingDelay,
    Recognised,
};
use bdp_model::capture::{ExplainedFlow, ReadCapture};
use bdp_model::units::Nanos;

use super::table::with_limits;
use super::words::{ends, figures};
use crate::finding::{size, time};
use crate::grid::{Align, Cell, Column, tame, wrap};
use crate::number::{loss, three_digits};
use crate::style::{Style, Tint};

/// A pair and its captures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paired<'a> {
    pub captures: [&'a ReadCapture; 2],
    pub pair: &'a CapturePair,
}

impl<'a> Paired<'a> {
    /// Returns `None` if the pair does not belong to these captures.
    pub fn of(captures: &'a [ReadCapture], pair: &'a CapturePair) -> Option<Self> {
        let [first, second] = pair.captures;
        Some(Self { captures: [captures.get(first)?, captures.get(second)?], pair })
    }

    /// Returns the flow of a connection from the capture that explains it.
    pub fn flow(&self, connection: &PairedConnection) -> Option<&'a ExplainedFlow> {
        let place = connection.explained_by.min(1);
        self.captures[place].flows.get(connection.flows[place].checked_sub(1)?)
    }

    /// Returns the file name of a capture.
    pub fn name(&self, place: usize) -> String {
        let name = &self.captures[place.min(1)].name;
        tame(name.rsplit('/').next().unwrap_or(name))
    }

    /// `near.pcapng and far.pcapng: 1 connection passed both`.
    pub fn title(&self) -> String {
        let count = self.pair.connections.len();
        let plural = if count == 1 { "" } else { "s" };
        format!("{} and {}: {count} connection{plural} passed both", self.name(0), self.name(1))
    }

    /// Returns the caveats of the pair.
    pub fn caveats(&self) -> Vec<String> {
        let mut all = Vec::new();
        for place in 0..2 {
            let name = self.name(place);
            let (unpaired, left) = (self.pair.unpaired[place], self.pair.not_compared[place]);
            if unpaired > 0 {
                all.push(format!("{unpaired} TCP connections are in {name} alone"));
            }
            if left > 0 {
                all.push(format!("the last {left} segments of {name} are not compared: too many"));
            }
            if self.captures[place].summary.dropped > 0 {
                all.push(format!(
                    "{name} lacks packets that were dropped while it was captured: some losses may be its own"
                ));
            }
        }
        all
    }

    /// Returns what happened to a connection between the two places, a line for each subject with something to report.
    pub fn lines(&self, connection: &PairedConnection) -> Vec<(&'static str, String)> {
        let mut lines = vec![("places", self.places(connection))];
        if connection.terminated {
            let words = "something between the two ends TCP and begins it anew, as a proxy does: each side has losses, \
                         retransmissions and windows of its own, which are not compared";
            lines.push(("proxy", words.to_owned()));
        } else {
            let main = self.main(connection);
            let [data, back] = [main, 1 - main].map(|d| &connection.directions[d]);
            lines.extend([
                ("lost", lost(data, "segments")),
                ("lost back", lost(back, "segments")),
                ("retries", retries(data)),
                ("order", [order(data, ""), order(back, " on the way back")].concat().join("; ")),
                ("queueing", queueing(data.queueing, back.queueing)),
            ]);
        }
        lines.push(("changed", self.changes(connection)));
        lines.retain(|(_, words)| !words.is_empty());
        lines
    }

    /// Returns the direction with the most data, numbered as in the first capture.
    pub fn main(&self, connection: &PairedConnection) -> usize {
        if connection.explained_by == connection.nearer_a { 0 } else { 1 }
    }

    fn places(&self, connection: &PairedConnection) -> String {
        let recognised = match connection.recognised {
            Recognised::Ends => "same addresses and ports",
            Recognised::SequenceNumbers => "through NAT: same initial sequence numbers",
            Recognised::Timestamps => "through NAT: same timestamps in both SYNs",
        };
        let by = match connection.order_by {
            OrderBy::Times => "by times",
            OrderBy::HopLimit => "by TTL",
            OrderBy::RoundTrip => "by round trips",
            OrderBy::Losses => "by losses",
            OrderBy::Named => "as named: nothing shows the order",
        };
        let main = self.main(connection);
        let first = if main == 0 { connection.nearer_a } else { 1 - connection.nearer_a };
        let mut words = format!("{recognised}; data pass {} first, {by}", self.name(first));
        match connection.rtt_between_ns {
            Some(ns) => words.push_str(&format!("; {} there and back between the two", time(Nanos(ns)))),
            None if connection.terminated => {}
            None => words.push_str("; the round trip between the two is unknown"),
        }
        if let Some(clock) = self.pair.clock {
            let [low, high] = clock
                .offset_ns
                .map(|ns| format!("{}{}", if ns < 0 { "-" } else { "" }, time(Nanos(ns.unsigned_abs()))));
            words.push_str(&format!(
                "; the clock of {} is ahead by {low} to {high}, so that the delay of either way alone is unknown",
                self.name(1)
            ));
            match clock.drift_ppm {
                Some(ppm) if ppm.abs() >= 0.1 => {
                    words.push_str(&format!("; its drift of {} ppm is removed", signed(ppm)));
                }
                Some(_) => {}
                None => words.push_str("; too short to remove a drift"),
            }
        }
        if connection.super_packets {
            words.push_str("; a network card cuts or joins segments at one place: bytes are compared, and delays are blurred");
        }
        words
    }

    fn changes(&self, connection: &PairedConnection) -> String {
        let all: Vec<String> = connection
            .changes
            .iter()
            .map(|change| {
                let flow = self.captures[0]
                    .flows
                    .get(connection.flows[0].saturating_sub(1))
                    .map(|found| &found.flow);
                let from = flow.map(|flow| if change.direction == 0 { flow.a.ip() } else { flow.b.ip() });
                changed(change, from)
            })
            .collect();
        if all.is_empty() { "nothing".to_owned() } else { all.join("; ") }
    }
}

fn signed(ppm: f64) -> String {
    format!("{}{}", if ppm < 0.0 { "-" } else { "" }, three_digits(ppm.abs()))
}

/// `11 of 1651 segments (0.67 %), 15.6 KiB`.
fn lost(way: &BetweenDirection, what: &str) -> String {
    let share = |lost: u64, of: u64| {
        if lost == 0 {
            format!("none of {of}")
        } else {
            format!("{lost} of {of} ({})", loss(lost as f64 / of.max(1) as f64))
        }
    };
    let mut all = Vec::new();
    if way.segments > 0 {
        let bytes =
            if way.lost_segments > 0 { format!(", {}", size(way.lost_bytes as f64)) } else { String::new() };
        all.push(format!("{} {what}{bytes}", share(way.lost_segments, way.segments)));
    }
    if way.acks > 0 {
        all.push(format!("{} packets without payload", share(way.lost_acks, way.acks)));
    }
    if way.missed_by_capture > 0 {
        all.push(format!(
            "{} more are missing in the second capture alone: they were acknowledged",
            way.missed_by_capture
        ));
    }
    if way.outside > 0 {
        all.push(format!("{} passed while the other capture did not run, or go another way", way.outside));
    }
    all.join("; ")
}

fn retries(way: &BetweenDirection) -> String {
    let (after, otherwise) = (way.retransmitted_after_loss, way.retransmitted_otherwise);
    if after + otherwise == 0 {
        return String::new();
    }
    format!(
        "{after} segments retransmitted after a loss between the two, {otherwise} whose copy before had passed both"
    )
}

fn order(way: &BetweenDirection, which: &str) -> Vec<String> {
    let mut all = Vec::new();
    if way.reordered > 0 {
        all.push(format!("{} packets overtaken{which}, by {} at most", way.reordered, way.reordered_most));
    }
    if way.duplicated > 0 {
        all.push(format!("{} packets doubled{which}", way.duplicated));
    }
    if way.only_second > 0 {
        all.push(format!("{} packets{which} are at the second place alone", way.only_second));
    }
    all
}

fn queueing(data: Option<QueueingDelay>, back: Option<QueueingDelay>) -> String {
    let one = |queueing: QueueingDelay| {
        format!(
            "{} median, {} at the 95th percentile, {} at most",
            time(Nanos(queueing.p50_ns)),
            time(Nanos(queueing.p95_ns)),
            time(Nanos(queueing.max_ns))
        )
    };
    let ways = [data.map(|q| format!("data {}", one(q))), back.map(|q| format!("back {}", one(q)))];
    let all: Vec<String> = ways.into_iter().flatten().collect();
    if all.is_empty() {
        String::new()
    } else {
        format!("above the least delay of each way: {}", all.join("; "))
    }
}

/// Returns a change as value sent and value received.
fn changed(change: &Change, from: Option<IpAddr>) -> String {
    let from = from.map_or_else(|| "one end".to_owned(), |from| from.to_string());
    let value = |value: Option<ChangedValue>| match value {
        None => "none".to_owned(),
        Some(ChangedValue::Number(number)) => number.to_string(),
        Some(ChangedValue::End(end)) => end.to_string(),
    };
    let (sent, arrived) = (value(change.sent), value(change.arrived));
    let (packets, of) = (change.packets, change.of);
    let number = |value: Option<ChangedValue>| match value {
        Some(ChangedValue::Number(number)) => number,
        _ => 0,
    };
    let in_syn = |name: &str| format!("{name} in the SYN of {from}: sent {sent}, arrived {arrived}");
    match change.what {
        Changed::Source => format!("source of {packets} packets: sent {sent}, arrived {arrived}"),
        Changed::Destination => format!("destination of {packets} packets: sent {sent}, arrived {arrived}"),
        Changed::Mss => in_syn("MSS"),
        Changed::WindowScale => in_syn("window scale"),
        Changed::SackPermitted => in_syn("SACK permitted"),
        Changed::TimestampsOffered => in_syn("timestamps"),
        Changed::EcnOffered => in_syn("ECN"),
        Changed::SequenceNumbers => {
            format!("sequence numbers of {from}: {sent} became {arrived}, and all by as much")
        }
        Changed::Timestamps if change.arrived.is_none() => {
            format!("timestamps of {from} removed from {packets} of {of} packets")
        }
        Changed::Timestamps if change.sent.is_none() => {
            format!("timestamps added to {packets} of {of} packets of {from}")
        }
        Changed::Timestamps => {
            format!("timestamps of {from} rewritten in {packets} of {of} packets, as {sent} to {arrived}")
        }
        Changed::Window => {
            format!("window of {from} rewritten in {packets} of {of} packets, as {sent} to {arrived}")
        }
        Changed::Ecn => {
            let name = |value: Option<ChangedValue>| {
                ["not ECT", "ECT(1)", "ECT(0)", "CE"].get(number(value) as usize).copied().unwrap_or("none")
            };
            let (sent, arrived) = (name(change.sent), name(change.arrived));
            let what = match arrived {
                "CE" => "marked on the way",
                "not ECT" => "bleached",
                _ => "rewritten",
            };
            format!("ECN {what} in {packets} of {of} packets of {from}: sent {sent}, arrived {arrived}")
        }
        Changed::Dscp => {
            format!("DSCP of {packets} of {of} packets of {from}: sent {sent}, arrived {arrived}")
        }
        Changed::HopLimit => {
            let hops = number(change.sent) as i64 - number(change.arrived) as i64;
            let plural = if hops.abs() == 1 { "" } else { "s" };
            match hops {
                1.. => format!(
                    "{hops} hop{plural} for {packets} of {of} packets of {from}: TTL {sent} to {arrived}"
                ),
                _ => format!("TTL of {packets} of {of} packets of {from} raised from {sent} to {arrived}"),
            }
        }
        Changed::Segments => {
            format!("{packets} of {of} segments of {from} came in other pieces, as {sent} B to {arrived} B")
        }
    }
}

/// Returns the connections of a pair as a table of flows, with the losses in between.
pub(super) fn table(paired: &Paired<'_>, rows: usize, style: &Style) -> String {
    let shown: Vec<(&PairedConnection, &ExplainedFlow)> = paired
        .pair
        .connections
        .iter()
        .filter_map(|connection| Some((connection, paired.flow(connection)?)))
        .take(rows)
        .collect();
    type Row<'a> = (&'a PairedConnection, &'a ExplainedFlow);
    let column = |head, align, of: &dyn Fn(&Row<'_>) -> String| {
        Column::new(head, align, shown.iter().map(|row| Cell::plain(of(row))).collect())
    };
    let way = |row: &Row<'_>, is_back: bool| {
        let main = paired.main(row.0);
        row.0.directions[if is_back { 1 - main } else { main }].clone()
    };
    let lost = |row: &Row<'_>, is_back: bool| {
        if row.0.terminated { "-".to_owned() } else { way(row, is_back).lost().to_string() }
    };
    let ms = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| three_digits(ns as f64 / 1e6));
    let columns = vec![
        column(["", "#"], Align::Point, &|row| row.0.flows[0].to_string()),
        column(["", "flow"], Align::Left, &|row| ends(row.1)),
        column(["", "Mbit/s"], Align::Point, &|row| figures(row.1).mbps),
        column(["", "MB"], Align::Point, &|row| figures(row.1).megabytes),
        column(["RTT ms", "min"], Align::Point, &|row| figures(row.1).rtt_min_ms),
        column(["RTT ms", "between"], Align::Point, &|row| ms(row.0.rtt_between_ns)),
        column(["lost", "there"], Align::Point, &|row| lost(row, false)),
        column(["lost", "back"], Align::Point, &|row| lost(row, true)),
        column(["queue", "p95 ms"], Align::Point, &|row| {
            ms(way(row, false).queueing.filter(|_| !row.0.terminated).map(|queueing| queueing.p95_ns))
        }),
    ];
    let more = paired.pair.connections.len() - shown.len();
    let found: Vec<&ExplainedFlow> = shown.iter().map(|(_, found)| *found).collect();
    with_limits(columns, &found, more, style)
}

/// Returns what happened to a connection between the two places.
pub(super) fn between(paired: &Paired<'_>, connection: &PairedConnection, style: &Style) -> String {
    let title = format!("between {} and {}", paired.name(0), paired.name(1));
    let mut text = wrap("", Tint::Strong, &title, style);
    for (lead, words) in paired.lines(connection) {
        text.push_str(&wrap(&format!("{lead:<11}"), Tint::Faint, &words, style));
    }
    text
}
