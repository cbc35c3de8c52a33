//! Curves from the records of a lab run: the points of a scenario that differ in one parameter.

use serde_json::Value;

use crate::ByteCount;
use crate::plain::one_line;
use crate::record::{Record, RttSummary};
use crate::statistics::comparison::Values;
use crate::statistics::median;
use crate::sweep::curve::{Axis, Curve, LEAST_POINTS, Point as Place, Unmeasured};
use crate::sweep::parameter::Parameter;
use crate::sweep::points::{SweepPoint as Point, name, points, value_words as words};
use crate::units::asked_size;

/// Returns the curves of `records`: for each scenario and each value of its other parameters, the valid records over the
/// swept parameter, which is the window if that is one of several.
pub fn curves(records: &[Record]) -> Vec<Curve> {
    let points = points(records);
    let mut all = Vec::new();
    let mut scenarios: Vec<&str> = points.iter().map(|p| p.scenario).collect();
    scenarios.dedup();
    for scenario in scenarios {
        let of_it: Vec<&Point<'_>> = points.iter().filter(|p| p.scenario == scenario).collect();
        if let Some((path, axis)) = swept(&of_it) {
            all.extend(along(&of_it, &path, axis));
        }
    }
    all
}

/// Returns the curves over windows with enough points to draw.
pub fn window_curves(points: &[Point<'_>]) -> Vec<Curve> {
    let mut groups: Vec<(String, &str, Vec<&Point<'_>>)> = Vec::new();
    for point in points {
        let Some(path) = point.params.keys().find(|path| axis_of(path) == Some(Axis::WindowOnTheWire)) else {
            continue;
        };
        let name = name(point, Some(path));
        match groups.iter_mut().find(|(n, p, _)| *n == name && p == path) {
            Some((_, _, members)) => members.push(point),
            None => groups.push((name, path, vec![point])),
        }
    }
    let curves =
        groups.into_iter().map(|(name, path, members)| curve(name, path, Axis::WindowOnTheWire, &members));
    curves.filter(|c| c.points.len() >= LEAST_POINTS).collect()
}

/// Returns the axis of a parameter's path.
pub fn axis_of(path: &str) -> Option<Axis> {
    Parameter::at(path).axis
}

/// Returns the swept parameter of the points: the first in the table's order that has several values.
fn swept(points: &[&Point<'_>]) -> Option<(String, Axis)> {
    let rank = |axis: &Axis| Parameter::swept().position(|(_, a)| a == *axis);
    let several = |path: &str| {
        let first = points.first().and_then(|p| p.params.get(path));
        points.iter().any(|p| p.params.get(path) != first)
    };
    let paths = points.first()?.params.keys();
    let mut found: Vec<(String, Axis)> =
        paths.filter(|p| several(p)).filter_map(|p| Some((p.clone(), axis_of(p)?))).collect();
    found.sort_by_key(|(_, axis)| rank(axis));
    found.into_iter().next()
}

fn along(points: &[&Point<'_>], path: &str, axis: Axis) -> Vec<Curve> {
    let mut groups: Vec<(String, Vec<&Point<'_>>)> = Vec::new();
    for point in points {
        let name = name(point, Some(path));
        match groups.iter_mut().find(|(n, _)| *n == name) {
            Some((_, members)) => members.push(point),
            None => groups.push((name, vec![point])),
        }
    }
    groups.into_iter().map(|(name, members)| curve(name, path, axis, &members)).collect()
}

/// Returns the curve of these points along the parameter at `path`.
pub fn curve(name: String, path: &str, axis: Axis, members: &[&Point<'_>]) -> Curve {
    let (mut places, mut unmeasured) = (Vec::new(), Vec::new());
    for (index, &member) in members.iter().enumerate() {
        if let Some(place) = place(member, path, axis, index) {
            places.push(place);
        } else if let Some((x, asked)) = member.params.get(path).and_then(|asked| on_axis(asked, axis, index))
        {
            unmeasured.push(Unmeasured { asked, x, runs: member.records.len() });
        }
    }
    places.retain(|place: &Place| place.x > 0.0);
    let axis = by_the_wire(axis, &mut places);
    let rate = members.iter().find_map(|p| p.valid().next()).and_then(configured_bps);
    let path = members.first().map(|p| over(p)).unwrap_or_default();
    Curve::new(name, path, axis, rate, places).with_unmeasured(unmeasured)
}

/// Positions window points by the window on the wire, if known for all; otherwise by the requested window.
pub(crate) fn by_the_wire(axis: Axis, points: &mut [Place]) -> Axis {
    if axis != Axis::WindowOnTheWire {
        return axis;
    }
    if !points.iter().all(|p| p.on_the_wire_bytes.is_some_and(|w| w > 0)) {
        return Axis::WindowAsked;
    }
    points.iter_mut().for_each(|p| p.x = p.on_the_wire_bytes.unwrap_or(1) as f64);
    axis
}

/// Returns the scenario with the parameters that change its path, without windows, streams and the like.
fn over(point: &Point<'_>) -> String {
    let mut path = one_line(point.scenario);
    for (name, value) in point.params.iter().filter(|(name, _)| axis_of(name).is_none()) {
        path.push_str(&format!(" {}={}", one_line(name), words(value)));
    }
    path
}

/// Returns the valid records of a point as a point of a curve; `None` if none has a goodput.
fn place(point: &Point<'_>, path: &str, axis: Axis, index: usize) -> Option<Place> {
    let asked = point.params.get(path)?;
    let goodputs: Vec<f64> = point.valid().filter_map(|r| r.goodput_bps).collect();
    let goodput_bps = Values::of(&goodputs).filter(|g| g.p50 > 0.0)?;
    let middle = |of: &dyn Fn(&Record) -> Option<u64>| {
        let mut all: Vec<f64> = point.valid().filter_map(of).map(|v| v as f64).collect();
        median(&mut all).map(|m| m as u64)
    };
    let p95 = |summary: &Option<RttSummary>| summary.as_ref().and_then(|s| s.p95);
    let (x, asked) = on_axis(asked, axis, index)?;
    let first = point.valid().next()?;
    Some(Place {
        asked,
        x,
        goodput_bps,
        not_counted: point.records.len() - point.valid().count(),
        expected_bps: point.expected_bps().map(|e| e.median),
        streams: first.case.flows.first().map_or(1, |f| f.spec.streams),
        mss_bytes: first.flows.first().and_then(|f| f.mss_bytes),
        window_asked_bytes: first.window.asked_bytes,
        socket_buffer_bytes: middle(&|r| r.window.socket_buffer_bytes),
        on_the_wire_bytes: middle(&|r| r.window.on_the_wire_bytes),
        rtt_idle_ns: point.rtt_idle_min_ns(),
        // For flows over several paths no single round trip applies.
        rtt_idle_p95_ns: middle(&|r| p95(&r.rtt_ns.idle)).filter(|_| point.has_one_path()),
        rtt_loaded_p95_ns: middle(&|r| p95(&r.rtt_ns.loaded)).filter(|_| point.has_one_path()),
        retransmits: middle(&|r| r.flows.iter().map(|f| f.retransmits).sum()),
    })
}

/// Returns the position of a value on the axis, and its text.
pub(crate) fn on_axis(asked: &Value, axis: Axis, index: usize) -> Option<(f64, String)> {
    Some(match axis {
        Axis::Congestion => ((index + 1) as f64, words(asked)),
        Axis::Streams | Axis::Mss => (asked.as_f64().or_else(|| words(asked).parse().ok())?, words(asked)),
        _ => {
            let bytes = serde_json::from_value::<ByteCount>(asked.clone()).ok()?.as_bytes();
            (bytes as f64, asked_size(bytes))
        }
    })
}

/// Returns the configured rate of the first flow's direction.
fn configured_bps(record: &Record) -> Option<u64> {
    let flow = record.case.flows.first()?;
    let rate = record.case.links.iter().find_map(|link| {
        let [a, b] = &link.between;
        if (a, b) == (&flow.from, &flow.to) {
            link.config.forward.rate
        } else if (b, a) == (&flow.from, &flow.to) {
            link.config.reverse.rate
        } else {
            None
        }
    });
    rate.map(crate::Rate::as_bps)
}
