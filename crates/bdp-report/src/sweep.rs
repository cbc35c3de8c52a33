//! Sweeps: the curve as a chart, its knee, and the recommended value.

use bdp_model::sweep::curve::{Axis, Curve, Fall, Knee, Product};
use bdp_model::units::format_bps;

use crate::chart::terminal::lines;
use crate::chart::{Axis as Ticks, Chart, Marks, Panel, Series, Unit};
use crate::grid::wrap;
use crate::number::{percent, size};
use crate::style::{Style, Tint};

/// Returns a heading and the chart of each curve with a knee.
pub(crate) fn sweeps(curves: &[Curve], style: &Style) -> String {
    let drawn = curves.iter().filter(|c| c.knee().is_some() || c.fall().is_some());
    drawn.map(|curve| chart(curve, style)).collect::<Vec<_>>().join("\n")
}

/// Returns the knee of each curve that has one, or where it falls although it should rise; several curves are named.
pub(crate) fn knees(curves: &[Curve], style: &Style) -> String {
    let words = |curve: &Curve| match (curve.knee(), curve.fall()) {
        (Some(knee), _) => Some(knee_words(curve, knee)),
        (None, Some(fall)) => Some(format!("none: {}", fall_words(curve, fall))),
        (None, None) => None,
    };
    let found: Vec<(&Curve, String)> = curves.iter().filter_map(|c| Some((c, words(c)?))).collect();
    let several = found.len() > 1;
    let mut text = String::new();
    for (curve, mut line) in found {
        if several {
            text.push_str(&wrap("", Tint::None, &curve.name, style));
        }
        if let Some(product) = curve.product().filter(|_| curve.axis.is_window()) {
            line.push_str("; ");
            line.push_str(&product_words(curve, &product, if style.unicode { "×" } else { "x" }));
        }
        text.push_str(&wrap("knee  ", Tint::Strong, &line, style));
    }
    text
}

/// Returns the heading of a curve, and its chart if it has a knee or falls.
pub(crate) fn chart(curve: &Curve, style: &Style) -> String {
    let heading = format!("{}: goodput against {}", curve.name, curve.axis.name());
    let mut text = wrap("", Tint::None, &heading, style);
    if curve.knee().is_none() && curve.fall().is_none() {
        return text;
    }
    for line in lines(&drawn(curve), style) {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// Returns the chart of a terminal: medians, model, knee and rate x RTT.
fn drawn(curve: &Curve) -> Chart {
    let medians = curve.points.iter().map(|p| [p.x, p.goodput_bps.p50]);
    let model = curve.points.iter().filter_map(|p| Some([p.x, p.expected_bps.filter(|&bps| bps > 0.0)?]));
    let mut series = vec![
        Series::line("here", "here", medians.clone()).labelled("here"),
        Series::line("model", "model", model).labelled("model"),
    ];
    if let Some(Knee::At(index)) = curve.knee() {
        let at = medians.clone().skip(index).take(1).collect();
        series.push(Series::new("ring", "knee", Marks::Dots(8.0, at)).labelled("knee"));
    }
    if let Some(product) = curve.product().filter(|_| curve.axis.is_window()) {
        let at = Marks::Upright(vec![product.bytes]);
        series.push(Series::new("level", "rate × RTT", at).labelled("product"));
    }
    let unit = if curve.axis.is_size() { Unit::Bytes } else { Unit::Number };
    Chart {
        heading: "Goodput".to_owned(),
        title: curve.name.clone(),
        description: String::new(),
        x: Ticks::logarithmic(medians.clone().map(|p| p[0]), unit, 7),
        panels: vec![Panel::new(
            Ticks::logarithmic(medians.map(|p| p[1]), Unit::BitsPerSecond, 6),
            284.0,
            series,
        )],
        notes: Vec::new(),
        zoom: None,
    }
}

/// Returns a position on the axis in words: `311 KiB`, `8 streams`.
pub(crate) fn place(curve: &Curve, index: usize) -> String {
    match curve.axis {
        Axis::Congestion => curve.points[index].asked.clone(),
        _ => place_at(curve, curve.points[index].x),
    }
}

/// Returns a position on an ordered axis in words.
fn place_at(curve: &Curve, x: f64) -> String {
    match curve.axis {
        Axis::Streams if x == 1.0 => "1 stream".to_owned(),
        Axis::Streams => format!("{x:.0} streams"),
        Axis::Mss => format!("{x:.0} B"),
        _ => size(x),
    }
}

/// Returns the name of the varied quantity: `window`.
pub(crate) fn quantity(axis: Axis) -> &'static str {
    match axis {
        Axis::WindowOnTheWire | Axis::WindowAsked => "window",
        Axis::Streams => "streams",
        Axis::Length => "length",
        Axis::Mss => "MSS",
        Axis::Congestion => "congestion control",
    }
}

/// Returns why a curve has no knee: it falls where it should rise.
pub(crate) fn fall_words(curve: &Curve, fall: Fall) -> String {
    let at = |index: usize| {
        format!("{} at {}", format_bps(curve.points[index].goodput_bps.p50), place(curve, index))
    };
    format!(
        "goodput falls from {} to {}, where more {} carries as much or more: something else decided; measure each point \
         several times, on a quieter path",
        at(fall.from),
        at(fall.to),
        quantity(curve.axis)
    )
}

fn knee_words(curve: &Curve, knee: Knee) -> String {
    let level = curve.plateau().bps;
    let goodput = |index: usize| curve.points[index].goodput_bps.p50;
    let share = |index: usize| percent(goodput(index) / level);
    let what = quantity(curve.axis);
    let kind = if curve.axis == Axis::WindowOnTheWire { " on the wire" } else { "" };
    let last = curve.points.len() - 1;
    match knee {
        Knee::Below => format!(
            "not in the sweep: the smallest {what}, {}{kind}, already gives {} of the plateau, {}",
            place(curve, 0),
            share(0),
            format_bps(level)
        ),
        Knee::Above if curve.may_go_on() => format!(
            "unknown: {}, and goodput still rises up to {}{kind}, {}",
            unmeasured_words(curve),
            place(curve, last),
            format_bps(goodput(last))
        ),
        Knee::Above => format!(
            "not in the sweep: goodput still rises at the largest {what}, {}{kind}, {}",
            place(curve, last),
            format_bps(goodput(last))
        ),
        Knee::At(at) => {
            let asked =
                if kind.is_empty() { String::new() } else { format!(" (asked {})", curve.points[at].asked) };
            let gain = if let Some(rate) = curve.rate_bps.filter(|_| at == last) {
                format!("{} fills the path's {}", format_bps(goodput(at)), bdp_model::Rate::bps(rate))
            } else if goodput(at) < level {
                format!("{}, {} of the plateau, {}", format_bps(goodput(at)), share(at), format_bps(level))
            } else {
                format!("{}, more {what} gains nothing", format_bps(goodput(at)))
            };
            let mut text = format!(
                "{}{kind}{asked}: {gain}; {} gives {} of the plateau",
                place(curve, at),
                place(curve, at - 1),
                share(at - 1)
            );
            if goodput(last) < bdp_model::sweep::curve::KNEE_SHARE * level {
                text.push_str(&format!(", {} falls back to {}", place(curve, last), share(last)));
            }
            text.push_str(&doubt(curve, at));
            let between: Vec<&str> = curve.unmeasured_below(at).map(|one| one.asked.as_str()).collect();
            if !between.is_empty() {
                text.push_str(&format!("; it may lie lower: {} without a valid run", between.join(", ")));
            }
            text
        }
    }
}

/// Returns the values without a valid run: `1 MiB has no valid run`.
pub(crate) fn unmeasured_words(curve: &Curve) -> String {
    let asked: Vec<&str> = curve.unmeasured.iter().map(|one| one.asked.as_str()).collect();
    format!("{} {} no valid run", asked.join(", "), if asked.len() == 1 { "has" } else { "have" })
}

/// Returns where else the knee may lie, given the noise of the plateau; empty if the points leave no doubt.
pub(crate) fn doubt(curve: &Curve, at: usize) -> String {
    let points = curve.plateau().points;
    let Some(interval) = curve.knee_interval() else {
        return format!("; no confidence interval: {points} on the plateau, 3 needed");
    };
    let before = at.checked_sub(1).map(|before| curve.points[before].x);
    if (interval.above, interval.up_to) == (before, Some(curve.points[at].x)) {
        return String::new();
    }
    let above = interval.above.map_or_else(|| "the smallest".to_owned(), |x| place_at(curve, x));
    let up_to = interval.up_to.map_or_else(|| "beyond the largest".to_owned(), |x| place_at(curve, x));
    format!("; with the plateau's noise it lies between {above} and {up_to} (90 %)")
}

fn product_words(curve: &Curve, product: &Product, times: &str) -> String {
    let rate = match curve.rate_bps {
        Some(bps) => bdp_model::Rate::bps(bps).to_string(),
        None => format!("best goodput {}", format_bps(product.rate_bps)),
    };
    format!("rate {times} RTT = {rate} {times} {} = {}", product.rtt, size(product.bytes))
}
