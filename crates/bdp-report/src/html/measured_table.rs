//! Table of measured figures, and the names of both ends.

use std::collections::BTreeMap;

use bdp_model::measurement::{Direction, DirectionResult, Measurement};
use bdp_model::units::significant;
use maud::Markup;
use serde_json::Value;

use super::page::{Heading, numbers, strong, table, words};
use crate::number::{RateUnit, asked_size, loss, percent, size};

/// A measurement and its varied parameters.
pub type Varied<'a> = (&'a BTreeMap<String, Value>, &'a Measurement);

/// Returns distinct names of both ends, near and remote.
pub(super) fn ends<'a>(m: &'a Measurement) -> [&'a str; 2] {
    let known = |names: [&'a str; 2]| names.into_iter().find(|name| !name.is_empty());
    let (address, host) = (m.far.address.as_str(), m.request.host.as_str());
    let near = known([&m.near.name, &m.near.address]).unwrap_or("near");
    let far = known([&m.far.name, address]).unwrap_or(host);
    let other = [far, host, address].into_iter().find(|name| !name.is_empty() && *name != near);
    [near, other.unwrap_or("far end")]
}

/// Returns the names of the sender and the receiver.
pub(super) fn from_to(m: &Measurement, way: Direction) -> [&str; 2] {
    let [near, far] = ends(m);
    match way {
        Direction::To => [near, far],
        Direction::From => [far, near],
    }
}

/// `→ ams1`, `← ams1`.
pub(super) fn arrow(m: &Measurement, way: Direction) -> String {
    let [_, far] = ends(m);
    match way {
        Direction::To => format!("→ {far}"),
        Direction::From => format!("← {far}"),
    }
}

/// Number of possible columns.
const COLUMNS: usize = 11;

/// A row of all columns.
pub(super) type Cells = [String; COLUMNS];

/// Columns of a table; only those with values.
pub(super) struct Columns {
    unit: RateUnit,
    /// What the ranges cover, each kind once.
    ranges: Vec<&'static str>,
    varied: bool,
    ceiling: bool,
    udp: bool,
    tcp: bool,
}

impl Columns {
    /// Returns the columns for these runs, with or without one for the varied parameter.
    pub fn of<'a>(runs: impl Iterator<Item = &'a Measurement> + Clone, varied: bool) -> Self {
        let directions = || runs.clone().flat_map(|run| &run.directions);
        let mut ranges: Vec<&str> = directions().filter_map(|d| Some(range(d)?.2)).collect();
        ranges.sort_unstable();
        ranges.dedup();
        Self {
            unit: RateUnit::fitting(directions().map(|d| d.goodput_bps)),
            ranges,
            varied,
            ceiling: runs.clone().any(|run| run.ceiling.is_some()),
            udp: directions().any(|d| d.udp.is_some()),
            tcp: directions().any(|d| d.udp.is_none()),
        }
    }

    fn wanted(&self) -> [bool; COLUMNS] {
        let Self { varied, ceiling, udp, tcp, .. } = *self;
        [true, varied, true, !self.ranges.is_empty(), ceiling, udp, udp, tcp, true, tcp, tcp]
    }

    fn headings(&self) -> [Heading; COLUMNS] {
        let range = match self.ranges.as_slice() {
            [one] => format!("{} of intervals", one.replace("..", " to ")),
            _ => "of intervals".to_owned(),
        };
        [
            words(""),
            words("varied"),
            strong(format!("goodput, {}", self.unit.name)),
            numbers(range),
            numbers("of ceiling"),
            numbers("lost"),
            numbers("jitter, ms"),
            numbers("retransmits"),
            numbers("RTT p50 / p95 / p99, ms"),
            numbers("window on the wire"),
            words("window asked"),
        ]
    }

    /// Returns the table of these rows.
    pub fn table(&self, rows: Vec<Cells>) -> Markup {
        let wanted = self.wanted();
        let headings =
            self.headings().into_iter().zip(wanted).filter_map(|(heading, wanted)| wanted.then_some(heading));
        let shown =
            |row: Cells| row.into_iter().zip(wanted).filter_map(|(cell, wanted)| wanted.then_some(cell));
        table("", &headings.collect::<Vec<_>>(), rows.into_iter().map(shown))
    }

    /// Returns the idle round trips.
    pub fn idle(name: String, round_trips: String) -> Cells {
        let mut cells = Cells::default();
        (cells[0], cells[8]) = (name, round_trips);
        cells
    }

    /// Returns a direction of a run.
    pub fn row(&self, name: &str, varied: &str, run: &Measurement, direction: &DirectionResult) -> Cells {
        let dash = || "–".to_owned();
        let unit = self.unit;
        let (udp, window) = (direction.udp.as_ref(), &direction.window);
        let range = range(direction).map(|(low, high, of)| {
            let of = if self.ranges.len() > 1 { format!(" ({of})") } else { String::new() };
            format!("{} to {}{of}", unit.format(low), unit.format(high))
        });
        let share = run.ceiling.as_ref().map(|c| percent(direction.goodput_bps / c.goodput_bps));
        let asked = || if udp.is_some() { dash() } else { "autotuned".to_owned() };
        [
            name.to_owned(),
            varied.to_owned(),
            unit.format(direction.goodput_bps),
            range.unwrap_or_else(dash),
            share.unwrap_or_else(dash),
            udp.map_or_else(dash, |udp| loss(udp.loss_ratio)),
            udp.and_then(|udp| udp.jitter_ns).map_or_else(dash, |ns| significant(ns as f64 / 1e6)),
            direction.retransmits.filter(|_| udp.is_none()).map_or_else(dash, |n| n.to_string()),
            direction.rtt_ns.loaded.map_or_else(dash, |rtt| {
                quantiles([Some(rtt.p50), rtt.p95, rtt.p99].map(|ns| ns.map(|ns| ns as f64)))
            }),
            window.on_the_wire_bytes.map_or_else(dash, |bytes| size(bytes as f64)),
            window.asked_bytes.map_or_else(asked, asked_size),
        ]
    }
}

fn range(direction: &DirectionResult) -> Option<(f64, f64, &'static str)> {
    direction.spread.filter(|spread| spread.intervals > 1)?.range()
}

/// Returns p50, p95 and p99 in milliseconds, from nanoseconds.
pub(super) fn quantiles(ns: [Option<f64>; 3]) -> String {
    ns.map(|ns| ns.map_or_else(|| "–".to_owned(), |ns| significant(ns / 1e6))).join(" / ")
}
