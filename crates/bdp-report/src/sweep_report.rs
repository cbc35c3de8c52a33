//! What a sweep comes to: curve, table, knee, what to choose and what it costs; as text and as JSON.

use bdp_model::curve::{
    Axis, Curve, DELAY_RESOLUTION, DeliveryDelay, KNEE_CONFIDENCE, KNEE_SHARE, Knee, LATENCY_SHARE, Memory,
    Need, Point, Range,
};
use bdp_model::measurement::Measurement;
use bdp_model::record::Record;
use bdp_model::units::format_bps;
use serde_json::{Value, json};

use crate::grid::{Align, Cell, Column, render, total_width, wrap};
use crate::json::{measurement_json, record_json};
use crate::number::{RateUnit, percent, size, three_digits};
use crate::style::{Style, Tint};
use crate::summary::in_order;
use crate::sweep::{chart, knees, place, quantity, unmeasured_words};

/// Version of the document's shape; a reader refuses a larger major number.
pub const SWEEP_SCHEMA: &str = "bdp.sweep/1";

/// The knee of every curve and what to choose, then `conditions`, then each curve's table and chart, and the memory that windows and
/// streams need.
pub fn sweep(curves: &[Curve], conditions: &str, style: &Style) -> String {
    let mut text = knees(curves, style);
    let drawn: Vec<&Curve> = curves.iter().filter(|c| !c.points.is_empty()).collect();
    // Of several curves the advice stands below each.
    if let [only] = drawn.as_slice() {
        text.push_str(&advice(only, style));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(conditions);
    for curve in &drawn {
        text.push_str(&table(curve, style));
        if drawn.len() > 1 {
            text.push_str(&advice(curve, style));
        }
        text.push('\n');
        text.push_str(&chart(curve, style));
        text.push('\n');
    }
    let memory = Memory::by_path(curves);
    for (path, of_it) in &memory {
        let path = if memory.len() > 1 { format!("{path}: ") } else { String::new() };
        text.push_str(&wrap("memory      ", Tint::Strong, &(path + &memory_words(of_it, style)), style));
    }
    text
}

/// The document of `--json`: `docs/sweep.md`, `docs/sweep.schema.json`. `run` names the run in the store, where it is kept;
/// the records or the measurements come along complete.
pub fn sweep_json(
    run: Option<&str>,
    curves: &[Curve],
    cases: &[Record],
    measurements: &[Measurement],
) -> Value {
    json!({
        "schema": SWEEP_SCHEMA,
        "bdp": env!("CARGO_PKG_VERSION"),
        "run": run,
        "curves": curves.iter().map(curve_json).collect::<Vec<_>>(),
        "memory": Memory::by_path(curves)
            .iter()
            .map(|(path, memory)| json!({"path": path, "one": memory.one, "parallel": memory.parallel}))
            .collect::<Vec<_>>(),
        "cases": in_order(cases).into_iter().map(record_json).collect::<Vec<_>>(),
        "measurements": measurements.iter().map(measurement_json).collect::<Vec<_>>(),
    })
}

fn curve_json(curve: &Curve) -> Value {
    let points = curve.points.iter().map(|point| {
        let mut value = json!(point);
        let (delay_ns, below) = match point.delivery_delay() {
            None => (None, None),
            Some(DeliveryDelay::Ns(ns)) => (Some(ns), Some(false)),
            Some(DeliveryDelay::BelowResolution) => (None, Some(true)),
        };
        value["delivery_delay_ns"] = json!(delay_ns);
        value["delivery_delay_below_resolution"] = json!(below);
        value["memory_bytes"] = json!(point.memory_bytes());
        value
    });
    let range = |range: Option<Range>| {
        range.map(|r| json!({"from": curve.points[r.from].x, "to": curve.points[r.to].x}))
    };
    let interval = curve.knee_interval();
    let (above, up_to) = (interval.and_then(|i| i.above), interval.and_then(|i| i.up_to));
    let knee = |place: &str, at: Option<&Point>| {
        json!({
            "where": place,
            "x": at.map(|p| p.x),
            "goodput_bps": at.map(|p| p.goodput_bps.p50),
            "interval": interval.map(|_| json!({"above": above, "up_to": up_to, "confidence": KNEE_CONFIDENCE})),
        })
    };
    json!({
        "name": curve.name,
        "path": curve.path,
        "axis": curve.axis,
        "rate_bps": curve.rate_bps,
        "best_bps": curve.best_bps(),
        "plateau": curve.plateau(),
        "points": points.collect::<Vec<_>>(),
        "unmeasured": curve.unmeasured,
        "knee": curve.knee().map(|found| match found {
            Knee::At(index) => knee("at", Some(&curve.points[index])),
            Knee::Below => knee("below", None),
            Knee::Above => knee("above", None),
        }),
        "fall": curve.fall().map(|fall| json!({"from": curve.points[fall.from].x, "to": curve.points[fall.to].x})),
        "for_throughput": range(curve.for_throughput()),
        "for_latency": range(curve.for_latency()),
        "product_bytes": curve.product().map(|p| p.bytes),
    })
}

/// The columns in which some point says something.
fn columns(curve: &Curve, unit: RateUnit) -> Vec<Column> {
    let points = &curve.points;
    let each = |cell: &dyn Fn(&Point) -> Option<String>| -> Vec<Cell> {
        points.iter().map(|p| Cell::plain(cell(p).unwrap_or_else(|| "-".to_owned()))).collect()
    };
    let numbers = |head, cell: &dyn Fn(&Point) -> Option<String>| Column::new(head, Align::Point, each(cell));
    let bytes = |b: Option<u64>| b.map(|b| size(b as f64));
    let ms = |ns: Option<u64>| ns.map(|ns| three_digits(ns as f64 / 1e6));
    let several = points.iter().any(|p| p.goodput_bps.n > 1);
    let best = curve.best_bps();
    let asked = if curve.axis.is_window() { "asked" } else { "" };
    let asked = Column::new([quantity(curve.axis), asked], Align::Left, each(&|p| Some(p.asked.clone())));
    let range = |p: &Point| format!("{}..{}", unit.format(p.goodput_bps.min), unit.format(p.goodput_bps.max));
    let optional = [
        numbers(["socket", "buffer"], &|p| bytes(p.socket_buffer_bytes)),
        numbers(["on the", "wire"], &|p| bytes(p.on_the_wire_bytes)),
        numbers(["goodput", unit.name], &|p| Some(unit.format(p.goodput_bps.p50))),
        numbers(["min..max", unit.name], &|p| several.then(|| range(p))),
        numbers(["", "n"], &|p| several.then(|| p.goodput_bps.n.to_string())),
        numbers(["of", "best"], &|p| (best > 0.0).then(|| percent(p.goodput_bps.p50 / best))),
        numbers(["model", unit.name], &|p| p.expected_bps.map(|e| unit.format(e))),
        numbers(["RTT idle", "p95 ms"], &|p| ms(p.rtt_idle_p95_ns)),
        numbers(["loaded", "p95 ms"], &|p| ms(p.rtt_loaded_p95_ns)),
        numbers(["delivery", "delay ms"], &|p| match p.delivery_delay()? {
            DeliveryDelay::Ns(ns) => Some(three_digits(ns as f64 / 1e6)),
            DeliveryDelay::BelowResolution => Some("below".to_owned()),
        }),
    ];
    std::iter::once(asked).chain(optional.into_iter().filter(|c| !c.is_blank())).collect()
}

fn table(curve: &Curve, style: &Style) -> String {
    let points = &curve.points;
    let unit = RateUnit::fitting(points.iter().map(|p| p.goodput_bps.max));
    let mut columns = columns(curve, unit);
    // What is given up first where columns are short.
    for head in [
        ["of", "best"],
        ["min..max", unit.name],
        ["RTT idle", "p95 ms"],
        ["model", unit.name],
        ["socket", "buffer"],
    ] {
        if total_width(&columns) > style.columns() {
            columns.retain(|c| c.head != head);
        }
    }
    let mut text = render(&columns, &[], style);
    if points.iter().any(|p| p.delivery_delay() == Some(DeliveryDelay::BelowResolution)) {
        let line =
            format!("below: under {} of the idle RTT, which is below resolution", percent(DELAY_RESOLUTION));
        text.push_str(&wrap("", Tint::Faint, &line, style));
    }
    if !curve.unmeasured.is_empty() {
        text.push_str(&wrap("", Tint::Strong, &unmeasured_words(curve), style));
    }
    let in_vain = curve.unmeasured.iter().map(|one| one.runs);
    let left_out: usize = points.iter().map(|p| p.not_counted).chain(in_vain).sum();
    if left_out > 0 {
        text.push_str(&wrap(
            "",
            Tint::Faint,
            &format!("{left_out} INVALID or FAILED attempts do not count"),
            style,
        ));
    }
    text
}

fn advice(curve: &Curve, style: &Style) -> String {
    let line = |(what, line): (&str, String)| wrap(&format!("{what:<12}"), Tint::Strong, &line, style);
    advised(curve).into_iter().map(line).collect()
}

/// What to choose for throughput and for latency, and what for.
pub(crate) fn advised(curve: &Curve) -> Vec<(&'static str, String)> {
    let what = quantity(curve.axis);
    let span = |r: Range| {
        let kind = if curve.axis == Axis::WindowOnTheWire { " on the wire" } else { "" };
        if r.from == r.to {
            format!("{}{kind}", place(curve, r.from))
        } else {
            format!("{} to {}{kind}", place(curve, r.from), place(curve, r.to))
        }
    };
    let throughput = match (curve.knee(), curve.for_throughput()) {
        (None, _) if curve.points.len() < 2 => None,
        (None, _) if curve.fall().is_some() => {
            Some("unknown: goodput falls where it must rise, so that these points have no knee".to_owned())
        }
        (None, _) => curve
            .points
            .iter()
            .max_by(|a, b| a.goodput_bps.p50.total_cmp(&b.goodput_bps.p50))
            .map(|best| format!("most with {what} {}: {}", best.asked, format_bps(best.goodput_bps.p50)))
            .map(|most| match curve.unmeasured.is_empty() {
                true => most,
                false => format!("{most}; {}", unmeasured_words(curve)),
            }),
        (Some(_), Some(range)) => Some(format!(
            "{}: {} of the plateau and more; beyond it nothing is gained",
            span(range),
            percent(KNEE_SHARE)
        )),
        (Some(_), None) if curve.may_go_on() => Some(format!("unknown: {}", unmeasured_words(curve))),
        (Some(_), None) => Some(format!("more {what} than was swept: goodput still rises at the largest")),
    };
    let mut all: Vec<(&str, String)> = throughput.map(|line| ("throughput", line)).into_iter().collect();
    if curve.axis.is_window() && curve.points.len() > 1 {
        let line = match curve.for_latency() {
            Some(range) => format!(
                "{}: the smallest window that holds a few packets, {}, gives {}; up to {} load adds under {} to the RTT; \
                 parallel streams of small windows win back rate",
                span(range),
                place(curve, range.from),
                format_bps(curve.points[range.from].goodput_bps.p50),
                place(curve, range.to),
                percent(LATENCY_SHARE)
            ),
            None if curve.points.iter().all(|p| p.rtt_loaded_p95_ns.is_none()) => {
                "unknown: the loaded round trip was not measured".to_owned()
            }
            None => format!(
                "no window of the sweep holds a few packets and leaves the loaded RTT within {} of the idle one",
                percent(LATENCY_SHARE)
            ),
        };
        all.push(("latency", line));
    }
    all
}

/// What one fitting window and parallel streams need, in words.
pub(crate) fn memory_words(memory: &Memory, style: &Style) -> String {
    let times = if style.unicode { "×" } else { "x" };
    let side = |need: &Need| {
        let shape = if need.streams == 1 {
            format!("one window of {}", size(need.window_bytes as f64))
        } else {
            format!("{} streams {times} {}", need.streams, size(need.window_bytes as f64))
        };
        let cost = need.buffer_bytes.map_or_else(|| "unknown".to_owned(), |b| size(b as f64));
        format!("{shape}: {cost} ({})", if need.measured { "measured" } else { "calculated" })
    };
    format!(
        "of socket buffer for {} of the plateau: {}; {}",
        percent(KNEE_SHARE),
        side(&memory.one),
        side(&memory.parallel)
    )
}
