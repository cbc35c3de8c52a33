//! The table of figures of measurements, and how it names their ends.

use std::collections::BTreeMap;

use bdp_model::measurement::{Direction, DirectionResult, HostFacts, Measurement};
use bdp_model::record::RttSummary;
use bdp_model::units::significant;
use serde_json::Value;

use super::page::{Heading, numbers, words};
use crate::markup::Markup;
use crate::number::{RateUnit, asked_size, percent, size};

/// A measurement, and what was varied for it.
pub type Varied<'a> = (&'a BTreeMap<String, Value>, &'a Measurement);

/// A host as a reader knows it.
pub(super) fn name(host: &HostFacts, otherwise: &str) -> String {
    [host.name.as_str(), host.address.as_str()]
        .into_iter()
        .find(|n| !n.is_empty())
        .unwrap_or(otherwise)
        .to_owned()
}

/// `→ ams1`, `← ams1`.
pub(super) fn arrow(m: &Measurement, way: Direction) -> String {
    let far = name(&m.far, &m.request.host);
    match way {
        Direction::To => format!("→ {far}"),
        Direction::From => format!("← {far}"),
    }
}

/// The heads of the table of figures, with a column for what was varied or without.
pub(super) fn headings(unit: RateUnit, varied: bool) -> Vec<Heading> {
    let mut all = vec![words("")];
    if varied {
        all.push(words("varied"));
    }
    all.extend([
        numbers(format!("goodput, {}", unit.name)),
        numbers("p5 to p95 of intervals"),
        numbers("of ceiling"),
        numbers("retransmits"),
        numbers("RTT p50 / p95 / p99, ms"),
        numbers("window on the wire"),
        words("window asked"),
    ]);
    all
}

/// A direction of a run in that table.
pub(super) fn row(
    m: &mut Markup,
    name: &str,
    varied: Option<&str>,
    run: &Measurement,
    direction: &DirectionResult,
    unit: RateUnit,
) {
    let dash = || "–".to_owned();
    let bytes = |b: Option<u64>| b.map_or_else(dash, |b| size(b as f64));
    let spread = direction.spread.filter(|s| s.intervals > 1);
    let cells = [
        spread
            .and_then(|s| s.range())
            .map_or_else(dash, |(low, high, _)| format!("{} to {}", unit.format(low), unit.format(high))),
        run.ceiling.as_ref().map_or_else(dash, |c| percent(direction.goodput_bps / c.goodput_bps)),
        direction.retransmits.map_or_else(dash, |n| n.to_string()),
        direction.rtt_ns.loaded.as_ref().map_or_else(dash, quantiles),
        bytes(direction.window.on_the_wire_bytes),
    ];
    m.element("tr", &[], |m| {
        m.leaf("td", &[], name);
        if let Some(varied) = varied {
            m.leaf("td", &[], varied);
        }
        m.leaf("td", &[("class", "n strong")], &unit.format(direction.goodput_bps));
        for cell in &cells {
            m.leaf("td", &[("class", "n")], cell);
        }
        let otherwise = || if direction.udp.is_some() { dash() } else { "autotuned".to_owned() };
        m.leaf("td", &[], &direction.window.asked_bytes.map_or_else(otherwise, asked_size));
    });
    m.line();
}

pub(super) fn quantiles(summary: &RttSummary) -> String {
    let ms = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), |ns| significant(ns as f64 / 1e6));
    format!("{} / {} / {}", ms(Some(summary.p50)), ms(summary.p95), ms(summary.p99))
}
