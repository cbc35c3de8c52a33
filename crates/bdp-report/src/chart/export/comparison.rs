//! Differences of a comparison: the change at each point with its interval, relative to no change.

use bdp_model::sweep::run_comparison::{Compared, Metric, Row};

use super::scene::Scene;
use crate::chart::{Axis, Chart, Marks, Panel, Series, Unit};
use crate::comparison::{MetricText, effect};

/// Smallest range to either side.
const LEAST: f64 = 0.05;

/// Returns a scene for each quantity with relative changes.
pub(super) fn scenes(compared: &Compared, a: &str, b: &str) -> Vec<(String, Scene)> {
    let scene = |metric: Metric| {
        let rows = compared.rows.iter().filter(|row| row.metric == metric);
        let rows: Vec<(&Row, f64)> = rows.filter_map(|row| Some((row, row.comparison.effect?))).collect();
        let title = format!("{} of {b} against {a}", first_upper(metric.words()));
        let scene = Scene::of_chart(&title, &chart(&title, metric, &rows));
        (!rows.is_empty()).then(|| (format!("{} {b} {a}", metric.words()), scene))
    };
    Metric::ALL.into_iter().filter_map(scene).collect()
}

fn chart(title: &str, metric: Metric, rows: &[(&Row, f64)]) -> Chart {
    let interval = |row: &Row| row.comparison.effect_interval.map(|interval| [interval.low, interval.high]);
    let ends = rows.iter().flat_map(|(row, effect)| interval(row).into_iter().flatten().chain([*effect]));
    let furthest =
        1.06 * ends.filter(|share| share.is_finite()).fold(LEAST, |most, share| share.abs().max(most));
    let named = rows.iter().map(|(row, _)| {
        let c = &row.comparison;
        let medians = format!("{} to {}", metric.printed(c.a.p50), metric.printed(c.b.p50));
        [row.point.clone(), format!("{medians}, {}", effect(row))]
    });
    let (mut ranges, mut known, mut unsure) = (Vec::new(), Vec::new(), Vec::new());
    for ((row, effect), y) in rows.iter().zip((0u32..).map(f64::from)) {
        ranges.extend(interval(row).map(|ends| ends.map(|share| [share, y])));
        if interval(row).is_some() { &mut known } else { &mut unsure }.push([*effect, y]);
    }
    let mut series = vec![
        Series::new("range", "interval of the change", Marks::Spans(ranges)),
        Series::new("here-dot", "change of the median", Marks::Dots(3.6, known)),
    ];
    if !unsure.is_empty() {
        series.push(Series::new("hollow", "too few runs for an interval", Marks::Dots(3.6, unsure)));
    }
    series.push(Series::and("axis", Marks::Upright(vec![0.0])));
    Chart {
        heading: "Difference".to_owned(),
        title: title.to_owned(),
        description: format!("{} points.", rows.len()),
        x: Axis::linear([-furthest, furthest], Unit::Change, 7),
        panels: vec![Panel::rows(named.collect(), series)],
        notes: vec![format!("{}; medians of both, and the change with its interval.", metric.name())],
        zoom: None,
    }
}

fn first_upper(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
}
