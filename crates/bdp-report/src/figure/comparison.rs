//! Differences of a comparison: the change at each point with its interval, relative to no change.

use bdp_model::sweep::run_comparison::{Compared, Metric, Row};

use super::scene::Scene;
use crate::comparison::{MetricText, effect};
use crate::html::{Figure, Sign};
use crate::number::percent;
use crate::svg::{Anchor, Axis, Drawing, MARGIN, WIDTH};

/// Height of a row: text and interval.
const ROW: f64 = 40.0;
/// Distance from a row's text to its interval.
const BELOW: f64 = 14.0;
/// Height of the labels below the rows.
const LABELS: f64 = 30.0;
/// Smallest range to either side.
const LEAST: f64 = 0.05;

/// Returns a scene for each quantity with relative changes.
pub(super) fn scenes(compared: &Compared, a: &str, b: &str) -> Vec<(String, Scene)> {
    let scene = |metric: Metric| {
        let rows: Vec<&Row> = compared
            .rows
            .iter()
            .filter(|row| row.metric == metric && row.comparison.effect.is_some())
            .collect();
        if rows.is_empty() {
            return None;
        }
        let title = format!("{} of {b} against {a}", first_upper(metric.words()));
        let scene = Scene::of_figure(&title, figure(&title, metric, &rows))?;
        Some((format!("{} {b} {a}", metric.words()), scene))
    };
    Metric::ALL.into_iter().filter_map(scene).collect()
}

fn figure(title: &str, metric: Metric, rows: &[&Row]) -> Figure<'static> {
    let furthest = rows
        .iter()
        .flat_map(|row| {
            let interval = row.comparison.effect_interval;
            [row.comparison.effect, interval.map(|i| i.low), interval.map(|i| i.high)]
        })
        .flatten()
        .filter(|share| share.is_finite())
        .fold(LEAST, |most, share| share.abs().max(most));
    let x = Axis::linear([-furthest * 1.06, furthest * 1.06], [MARGIN + 20.0, WIDTH - 20.0]);
    let bottom = ROW * rows.len() as f64 + 8.0;
    let mut drawing = Drawing::default();
    for tick in x.ticks(7) {
        drawing.line([x.at(tick), 0.0], [x.at(tick), bottom], "grid");
        let sign = if tick > 0.0 { "+" } else { "" };
        drawing.text(
            [x.at(tick), bottom + 18.0],
            Anchor::Middle,
            "tick",
            &format!("{sign}{}", percent(tick)),
        );
    }
    drawing.line([x.at(0.0), 0.0], [x.at(0.0), bottom], "axis");
    let mut without = false;
    for (index, row) in rows.iter().enumerate() {
        let top = ROW * index as f64 + 16.0;
        let c = &row.comparison;
        drawing.text([MARGIN, top], Anchor::Start, "name", &row.point);
        let figures = format!("{} to {}", metric.printed(c.a.p50), metric.printed(c.b.p50));
        drawing.text([WIDTH - MARGIN, top], Anchor::End, "tick", &format!("{figures}, {}", effect(row)));
        let Some(share) = c.effect else { continue };
        if let Some(interval) = c.effect_interval {
            drawing.line([x.at(interval.low), top + BELOW], [x.at(interval.high), top + BELOW], "range");
        }
        without |= c.effect_interval.is_none();
        let class = if c.effect_interval.is_some() { "here-dot" } else { "hollow" };
        drawing.dot([x.at(share), top + BELOW], 3.6, class);
    }
    let mut keys =
        vec![(Sign::DotOnLine("range", "here-dot"), "change of the median, and its interval".to_owned())];
    if without {
        keys.push((Sign::Dot("hollow"), "too few runs for an interval".to_owned()));
    }
    let notes = vec![format!("{}; medians of both, and the change with its interval.", metric.name())];
    let description = format!("{} points.", rows.len());
    Figure {
        title: "Difference",
        keys,
        notes,
        chart: drawing.finish(bottom + LABELS, title, &description).into(),
    }
}

fn first_upper(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
}
