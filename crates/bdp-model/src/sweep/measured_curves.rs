//! Curves from measurements between two machines: those of one direction that differ in one parameter.

use std::collections::BTreeMap;

use crate::flow::FlowSpec;
use crate::measurement::{Direction, DirectionResult, Measurement};
use crate::record::RttSummary;
use crate::statistics::comparison::Values;
use crate::statistics::median;
use crate::sweep::curve::{Axis, Curve, Point, Unmeasured};
use serde_json::Value;

use crate::plain::one_line;
use crate::sweep::parameter::Parameter;
use crate::sweep::points::value_words as words;
use crate::sweep::record_curves::{by_the_wire, on_axis};
use crate::units::typed_size;

/// A measurement and its varied parameters, as typed, by name: `window`, `streams`, `length`, `mss`, `congestion`.
pub type Varied<'a> = (&'a BTreeMap<String, Value>, &'a Measurement);

/// Returns the curves of a sweep: for each direction and each value of its other parameters, goodput over the swept
/// parameter, which is the window if that is one of several.
pub fn measured_curves(all: &[Varied<'_>]) -> Vec<Curve> {
    let Some((name, axis)) = swept(all) else { return Vec::new() };
    let mut curves = Vec::new();
    for way in [Direction::To, Direction::From] {
        let mut groups: Vec<(String, Vec<Varied<'_>>)> = Vec::new();
        for &(params, measurement) in all {
            if !measurement.request.directions.contains(&way) {
                continue;
            }
            let title = title(way, params, measurement, name);
            match groups.iter_mut().find(|(t, _)| *t == title) {
                Some((_, members)) => members.push((params, measurement)),
                None => groups.push((title, vec![(params, measurement)])),
            }
        }
        curves.extend(groups.into_iter().map(|(title, members)| curve(title, name, axis, way, &members)));
    }
    curves
}

/// Returns the varied parameters of each measurement, by the names of `Varied`, from the requests of a sweep: those that differ, and
/// those that are set.
pub fn varied_params(measurements: &[Measurement]) -> Vec<BTreeMap<String, Value>> {
    let mut all = vec![BTreeMap::new(); measurements.len()];
    for (parameter, axis) in Parameter::swept() {
        let values: Vec<_> = measurements.iter().map(|m| asked(&m.request.spec, axis)).collect();
        // Every request has streams and a length, whether or not they were set.
        let is_always_there = matches!(axis, Axis::Streams | Axis::Length);
        if is_always_there && values.iter().all(|value| *value == values[0]) {
            continue;
        }
        for (params, value) in all.iter_mut().zip(values) {
            params.extend(value.map(|value| (parameter.name.to_owned(), Value::from(value))));
        }
    }
    all
}

fn asked(request: &FlowSpec, axis: Axis) -> Option<String> {
    match axis {
        Axis::WindowOnTheWire | Axis::WindowAsked => request.window.map(|window| typed_size(window.into())),
        Axis::Streams => Some(request.streams.to_string()),
        Axis::Length => Some(typed_size(request.length)),
        Axis::Mss => request.mss.map(|mss| mss.to_string()),
        Axis::Congestion => request.congestion.clone(),
    }
}

fn swept(all: &[Varied<'_>]) -> Option<(&'static str, Axis)> {
    let first = all.first()?.0;
    Parameter::swept()
        .map(|(parameter, axis)| (parameter.name, axis))
        .find(|(name, _)| all.iter().any(|(params, _)| params.get(*name) != first.get(*name)))
}

/// Returns the start of its curves' titles: `-> ams1`.
pub fn toward(way: Direction, measurement: &Measurement) -> String {
    let host = one_line(&measurement.request.host);
    match way {
        Direction::To => format!("-> {host}"),
        Direction::From => format!("<- {host}"),
    }
}

fn title(
    way: Direction,
    params: &BTreeMap<String, Value>,
    measurement: &Measurement,
    except: &str,
) -> String {
    let mut title = toward(way, measurement);
    for (name, value) in params.iter().filter(|(name, _)| *name != except) {
        title.push_str(&format!(" {} {}", one_line(name), words(value)));
    }
    title
}

fn curve(title: String, name: &str, axis: Axis, way: Direction, members: &[Varied<'_>]) -> Curve {
    let mut asked: Vec<&Value> = Vec::new();
    for (params, _) in members {
        if let Some(value) = params.get(name).filter(|v| !asked.contains(v)) {
            asked.push(value);
        }
    }
    let (mut points, mut unmeasured) = (Vec::new(), Vec::new());
    for (index, &value) in asked.iter().enumerate() {
        let these: Vec<&Measurement> =
            members.iter().filter(|(p, _)| p.get(name) == Some(value)).map(|&(_, m)| m).collect();
        if let Some(point) = point(value, axis, index, way, &these) {
            points.push(point);
        } else if let Some((x, asked)) = on_axis(value, axis, index) {
            unmeasured.push(Unmeasured { asked, x, runs: these.len() });
        }
    }
    let axis = by_the_wire(axis, &mut points);
    let rate = members.iter().find_map(|(_, m)| slower_device_bps(m));
    let path = members.first().map(|(_, m)| toward(way, m)).unwrap_or_default();
    Curve::new(title, path, axis, rate, points).with_unmeasured(unmeasured)
}

fn point(asked: &Value, axis: Axis, index: usize, way: Direction, these: &[&Measurement]) -> Option<Point> {
    let whole: Vec<(&Measurement, &DirectionResult)> = these
        .iter()
        .filter(|m| m.error.is_none())
        .filter_map(|m| Some((*m, m.directions.iter().find(|d| d.direction == way)?)))
        .collect();
    let goodputs: Vec<f64> = whole.iter().map(|(_, d)| d.goodput_bps).collect();
    let goodput_bps = Values::of(&goodputs).filter(|g| g.p50 > 0.0)?;
    let middle = |of: &dyn Fn(&Measurement, &DirectionResult) -> Option<u64>| {
        let mut all: Vec<f64> = whole.iter().filter_map(|(m, d)| of(m, d)).map(|v| v as f64).collect();
        median(&mut all).map(|m| m as u64)
    };
    let (x, text) = on_axis(asked, axis, index)?;
    let (first, direction) = whole.first()?;
    let rtt_idle_ns = whole.iter().filter_map(|(m, d)| smallest(m, d)).min();
    let on_the_wire_bytes = middle(&|_, d| d.window.on_the_wire_bytes);
    let streams = first.request.spec.streams;
    // Window / RTT, limited by the ceiling; without a known ceiling there is no model above the knee.
    let expected_bps =
        first.ceiling.as_ref().zip(on_the_wire_bytes).zip(rtt_idle_ns).map(|((ceiling, window), rtt)| {
            let by_window = window as f64 * 8.0 * f64::from(streams) / (rtt as f64 / 1e9);
            by_window.min(ceiling.goodput_bps)
        });
    let p95 = |summary: &Option<RttSummary>| summary.as_ref().and_then(|s| s.p95);
    Some(Point {
        asked: text,
        x,
        goodput_bps,
        not_counted: these.len() - whole.len(),
        expected_bps,
        streams,
        mss_bytes: direction.mss_bytes,
        window_asked_bytes: direction.window.asked_bytes,
        socket_buffer_bytes: middle(&|_, d| d.window.socket_buffer_bytes),
        on_the_wire_bytes,
        rtt_idle_ns,
        rtt_idle_p95_ns: middle(&|m, d| p95(&d.rtt_ns.idle).or(p95(&m.rtt_idle_ns))),
        rtt_loaded_p95_ns: middle(&|_, d| p95(&d.rtt_ns.loaded)),
        retransmits: middle(&|_, d| d.retransmits),
    })
}

fn smallest(measurement: &Measurement, direction: &DirectionResult) -> Option<u64> {
    direction.rtt_ns.idle.as_ref().or(measurement.rtt_idle_ns.as_ref()).map(|s| s.min)
}

/// Returns the speed of the slower device; `None` if neither speed is known.
fn slower_device_bps(measurement: &Measurement) -> Option<u64> {
    let speed = |facts: &crate::measurement::HostFacts| facts.device.as_ref().and_then(|d| d.speed_bps);
    [speed(&measurement.near), speed(&measurement.far)].into_iter().flatten().min()
}
