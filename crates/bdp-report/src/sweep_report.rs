//! Report of a sweep as text and JSON: curve, table, knee, recommended values and their cost.

use bdp_model::measurement::Measurement;
use bdp_model::record::Record;
use bdp_model::sweep::curve::{
    Axis, Curve, DELAY_RESOLUTION, DeliveryDelay, KNEE_CONFIDENCE, KNEE_SHARE, Knee, LATENCY_SHARE, Memory,
    Need, Plateau, Point, Range, Unmeasured,
};
use bdp_model::units::format_bps;
use serde::Serialize;
use serde_json::{Value, json};

use crate::grid::{Align, Cell, Column, render, total_width, wrap};
use crate::json::{measurement_json, record_json};
use crate::number::{RateUnit, percent, size, three_digits};
use crate::style::{Style, Tint};
use crate::summary::in_order;
use crate::sweep::{chart, knees, place, quantity, unmeasured_words};

/// Name and version of the schema; readers refuse a larger major version.
pub const SWEEP_SCHEMA: &str = "bdp.sweep/1";

/// Returns the knee and recommendation of every curve, then `conditions`, then each curve's table and chart, and the memory that windows and
/// streams need.
pub fn sweep(curves: &[Curve], conditions: &str, style: &Style) -> String {
    let mut text = knees(curves, style);
    let drawn: Vec<&Curve> = curves.iter().filter(|c| !c.points.is_empty()).collect();
    // With several curves, the advice follows each curve.
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

/// Returns the document of `--json`: `docs/sweep.md`, `docs/sweep.schema.json`. `run` is the run's id if it is stored;
/// the records or measurements are included complete.
pub fn sweep_json(
    run: Option<&str>,
    curves: &[Curve],
    cases: &[Record],
    measurements: &[Measurement],
) -> Value {
    let memory = Memory::by_path(curves);
    json!(Document {
        schema: SWEEP_SCHEMA,
        bdp: env!("CARGO_PKG_VERSION"),
        run,
        curves: curves.iter().map(CurveDocument::of).collect(),
        memory: memory.into_iter().map(|(path, memory)| PathMemory { path, memory }).collect(),
        cases: in_order(cases).into_iter().map(record_json).collect(),
        measurements: measurements.iter().map(measurement_json).collect(),
    })
}

/// Result of a sweep.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// Name and version of the schema.
    #[cfg_attr(feature = "schema", schemars(extend("const" = SWEEP_SCHEMA)))]
    schema: &'static str,
    /// Version of bdp that wrote the document.
    bdp: &'static str,
    /// The run's id in the store; null if it is not stored.
    run: Option<&'a str>,
    /// Curves of the sweep.
    curves: Vec<CurveDocument<'a>>,
    /// Per path, the memory needed by one window that fits and by parallel streams.
    memory: Vec<PathMemory>,
    /// Complete records of a sweep in the lab: docs/lab-run.schema.json.
    cases: Vec<Value>,
    /// Complete measurements of a sweep between machines: docs/measurement.schema.json.
    measurements: Vec<Value>,
}

/// Memory needed on a path.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PathMemory {
    /// Path.
    path: String,
    /// Memory needed by windows and streams.
    #[serde(flatten)]
    memory: Memory,
}

/// A curve and its evaluation.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Curve"))]
struct CurveDocument<'a> {
    /// What distinguishes the curve within the sweep: scenario and other parameters, or the direction.
    name: &'a str,
    /// Path on which it was measured.
    path: &'a str,
    /// Parameter on the x axis.
    axis: Axis,
    /// Bit rate of the path if known: the configured rate in a lab, otherwise that of the slower device.
    rate_bps: Option<u64>,
    /// Highest median goodput; 0 if the curve has no points.
    best_bps: f64,
    /// Level that the curve reaches and keeps.
    plateau: Plateau,
    /// Points with a goodput, in ascending order of `x`.
    points: Vec<PointDocument<'a>>,
    /// Values that were tried but have no valid run.
    unmeasured: &'a [Unmeasured],
    /// Where the curve stops rising; null if it has too few points, or falls.
    knee: Option<KneeDocument>,
    /// Range in which goodput falls again; null if it does not fall.
    fall: Option<Span>,
    /// Values recommended for throughput; null if unknown.
    for_throughput: Option<Span>,
    /// Values recommended for latency; null if unknown.
    for_latency: Option<Span>,
    /// Bandwidth-delay product: rate (if unknown, best goodput) x smallest idle round trip.
    product_bytes: Option<f64>,
}

/// A point with derived figures.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Point"))]
struct PointDocument<'a> {
    /// Measured figures.
    #[serde(flatten)]
    point: &'a Point,
    /// Delay that, added to the idle round-trip time, explains the goodput by the window; null if unknown or below the resolution.
    delivery_delay_ns: Option<u64>,
    /// Whether the delivery delay is too small to distinguish from zero; null if unknown.
    delivery_delay_below_resolution: Option<bool>,
    /// Memory of the socket buffers of all streams.
    memory_bytes: Option<u64>,
}

/// Knee of a curve: where it stops rising.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Knee"))]
struct KneeDocument {
    /// Whether the knee is at a point, before the first or after the last.
    #[serde(rename = "where")]
    place: KneePlace,
    /// Position on the x axis; null if the knee is not at a point.
    x: Option<f64>,
    /// Median goodput at the knee; null if it is not at a point.
    goodput_bps: Option<f64>,
    /// Confidence interval of the position; null if there are too few runs.
    interval: Option<KneeInterval>,
}

/// Position of a knee relative to the points.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum KneePlace {
    /// At a point.
    At,
    /// Before the first point.
    Below,
    /// After the last point.
    Above,
}

/// Confidence interval of a knee's position.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct KneeInterval {
    /// Exclusive lower bound; null if the knee may lie below all points.
    above: Option<f64>,
    /// Inclusive upper bound; null if the knee may lie above all points.
    up_to: Option<f64>,
    /// Confidence level, 0 to 1.
    confidence: f64,
}

/// A range on the x axis.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Span {
    /// First value.
    from: f64,
    /// Last value.
    to: f64,
}

impl<'a> CurveDocument<'a> {
    fn of(curve: &'a Curve) -> Self {
        let span = |from: usize, to: usize| Span { from: curve.points[from].x, to: curve.points[to].x };
        let range = |range: Range| span(range.from, range.to);
        let knee = |place, at: Option<&Point>| KneeDocument {
            place,
            x: at.map(|p| p.x),
            goodput_bps: at.map(|p| p.goodput_bps.p50),
            interval: curve.knee_interval().map(|interval| KneeInterval {
                above: interval.above,
                up_to: interval.up_to,
                confidence: KNEE_CONFIDENCE,
            }),
        };
        Self {
            name: &curve.name,
            path: &curve.path,
            axis: curve.axis,
            rate_bps: curve.rate_bps,
            best_bps: curve.best_bps(),
            plateau: curve.plateau(),
            points: curve.points.iter().map(PointDocument::of).collect(),
            unmeasured: &curve.unmeasured,
            knee: curve.knee().map(|found| match found {
                Knee::At(index) => knee(KneePlace::At, Some(&curve.points[index])),
                Knee::Below => knee(KneePlace::Below, None),
                Knee::Above => knee(KneePlace::Above, None),
            }),
            fall: curve.fall().map(|fall| span(fall.from, fall.to)),
            for_throughput: curve.for_throughput().map(range),
            for_latency: curve.for_latency().map(range),
            product_bytes: curve.product().map(|p| p.bytes),
        }
    }
}

impl<'a> PointDocument<'a> {
    fn of(point: &'a Point) -> Self {
        let (delivery_delay_ns, delivery_delay_below_resolution) = match point.delivery_delay() {
            None => (None, None),
            Some(DeliveryDelay::Ns(ns)) => (Some(ns), Some(false)),
            Some(DeliveryDelay::BelowResolution) => (None, Some(true)),
        };
        Self { point, delivery_delay_ns, delivery_delay_below_resolution, memory_bytes: point.memory_bytes() }
    }
}

/// Returns the columns for which at least one point has a value.
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
    // Columns dropped first on a narrow terminal.
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

/// Returns the values recommended for throughput and for latency, each with its purpose.
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

/// Returns, in words, the memory needed by one window that fits and by parallel streams.
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
