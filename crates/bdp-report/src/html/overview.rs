//! The terminal's table of all points, with each repetition as a dot relative to the model's 100 %.

use bdp_model::case::Published;
use maud::{Markup, html};

use super::page::{cells, inline, numbers, strong, table_of, text, words};
use crate::chart::Drawing;
use crate::number::{RateUnit, percent, size};
use crate::style::Style;
use crate::summary::{Ending, Point, ending, rtt_idle_text};
use crate::varied::varied;

/// Range of ratios to the model shown in a strip.
const STRIP: [f64; 2] = [0.7, 1.2];
const STRIP_SIZE: [f64; 2] = [150.0, 16.0];
/// Most dots of a strip.
const MOST_DOTS: usize = 40;

/// Style of text in tables, with all characters available.
pub(crate) const TEXT: Style = Style { unicode: true, width: u16::MAX, ..Style::plain() };

/// Returns the table.
pub(crate) fn table(points: &[Point<'_>], caption: &str) -> Markup {
    let unit = unit(points);
    let some = |has: &dyn Fn(&Point<'_>) -> bool| points.iter().any(has);
    let model = some(&|p| p.expected_bps().is_some());
    let several = some(&|p| p.count(Ending::Valid) > 1);
    let strip_heading = format!("{} to {}, bar: 100 %", percent(STRIP[0]), percent(STRIP[1]));
    // Each column, and whether the table has it.
    let columns = [
        (points.windows(2).any(|p| p[0].scenario != p[1].scenario), words("case")),
        (some(&|p| !varied(p, &TEXT, Some("segment")).is_empty()), words("varied")),
        (some(&|p| rtt_idle_text(p).is_some()), numbers("RTT, ms")),
        (some(&|p| p.on_the_wire_bytes().is_some()), numbers("window on the wire")),
        (some(&|p| p.published_bps().is_some()), numbers(format!("published, {}", unit.name))),
        (model, numbers(format!("model, {}", unit.name))),
        (true, strong(format!("here, {}", unit.name))),
        (several, numbers(format!("min to max, {}", unit.name))),
        (several, numbers("n")),
        (model, numbers("here / model")),
        (model, words(strip_heading)),
        (true, words("fidelity")),
    ];
    let (wanted, headings): (Vec<bool>, Vec<_>) = columns.into_iter().unzip();
    let shown = |cells: Vec<Markup>| {
        cells.into_iter().zip(&wanted).filter_map(|(cell, wanted)| wanted.then_some(cell))
    };
    let headings: Vec<_> =
        headings.into_iter().zip(&wanted).filter_map(|(h, wanted)| wanted.then_some(h)).collect();
    let body = html! {
        @for (i, point) in points.iter().enumerate() {
            @let is_first = i == 0 || points[i - 1].scenario != point.scenario;
            tr class=[(is_first && i > 0).then_some("first")] { (cells(&headings, shown(row(point, is_first, unit)))) } "\n"
        }
    };
    table_of(caption, &headings, body)
}

fn row(point: &Point<'_>, is_first: bool, unit: RateUnit) -> Vec<Markup> {
    let number = |figure: Option<String>| text(figure.as_deref().unwrap_or("–"));
    let here = point.goodput_bps();
    let spread = here.filter(|_| point.count(Ending::Valid) > 1);
    vec![
        text(if is_first { point.scenario } else { "" }),
        text(varied(point, &TEXT, Some("segment"))),
        number(rtt_idle_text(point)),
        number(point.on_the_wire_bytes().map(|w| size(w.median))),
        number(point.published_bps().map(|p| range(p, unit))),
        number(point.expected_bps().map(|e| unit.format(e.median))),
        number(here.map(|g| unit.format(g.median))),
        number(spread.map(|g| format!("{} to {}", unit.format(g.min), unit.format(g.max)))),
        text(point.count(Ending::Valid)),
        number(point.model_ratio().map(|r| percent(r.median))),
        strip(point),
        fidelity(point),
    ]
}

/// Returns the common unit of a table's rates.
pub(crate) fn unit(points: &[Point<'_>]) -> RateUnit {
    RateUnit::fitting(points.iter().flat_map(|p| {
        [p.goodput_bps().map(|g| g.max), p.expected_bps().map(|e| e.median)].into_iter().flatten()
    }))
}

/// Formats a published figure or range.
pub(crate) fn range(published: Published, unit: RateUnit) -> String {
    match published {
        Published::Number(n) => unit.format(n),
        Published::Range([low, high]) => format!("{} to {}", unit.format(low), unit.format(high)),
    }
}

/// Draws each valid repetition as a dot by its ratio to the model; INVALID ones crossed.
fn strip(point: &Point<'_>) -> Markup {
    let [width, height] = STRIP_SIZE;
    let at = |ratio: f64| {
        let share = (ratio - STRIP[0]) / (STRIP[1] - STRIP[0]);
        share.clamp(0.0, 1.0) * (width - 10.0) + 5.0
    };
    let ratios: Vec<(f64, bool)> = point
        .records
        .iter()
        .filter(|r| matches!(ending(r), Ending::Valid | Ending::Invalid))
        .filter_map(|r| Some((r.goodput_bps? / r.expected_bps.filter(|&e| e > 0.0)?, r.valid)))
        .filter(|(ratio, _)| ratio.is_finite())
        .collect();
    if ratios.is_empty() {
        return Markup::default();
    }
    let mut drawing = Drawing::default();
    let middle = height / 2.0;
    drawing.line([0.0, middle], [width, middle], "grid");
    drawing.line([at(1.0), 1.0], [at(1.0), height - 1.0], "axis");
    for &(ratio, valid) in ratios.iter().take(MOST_DOTS) {
        let x = at(ratio);
        match (valid, (STRIP[0]..=STRIP[1]).contains(&ratio)) {
            (false, _) => drawing.cross([x, middle], "cross"),
            (true, true) => drawing.dot([x, middle], 3.0, "here-dot"),
            // An arrow head marks a value beyond the end.
            (true, false) => {
                let tip = if ratio < 1.0 { -3.0 } else { 3.0 };
                let corners = [[x - tip, middle - 4.0], [x + tip, middle], [x - tip, middle + 4.0]];
                drawing.polyline(corners.map(Some), "here");
            }
        }
    }
    let label = point.model_ratio().map_or_else(|| "none valid".to_owned(), |r| percent(r.median));
    inline(STRIP_SIZE, &format!("{label} of the model"), &drawing)
}

fn fidelity(point: &Point<'_>) -> Markup {
    let count = |ending| point.count(ending);
    let (valid, invalid, failed) = (count(Ending::Valid), count(Ending::Invalid), count(Ending::Failed));
    let missed = point.missed().count();
    let after = if valid > 0 { format!("OK after {invalid} INVALID") } else { format!("{invalid} INVALID") };
    // Whether to show it, whether it is bad, and the words.
    let parts = [
        (valid > 0 && invalid == 0 && failed == 0, false, "OK".to_owned()),
        (invalid > 0, valid == 0, after),
        (failed > 0, true, format!("{failed} FAILED")),
        (count(Ending::Skipped) > 0, true, "SKIPPED".to_owned()),
        (missed > 0, true, format!("{missed} of {valid} MISSED")),
    ];
    html! {
        @for (i, (_, is_bad, words)) in parts.into_iter().filter(|part| part.0).enumerate() {
            @if i > 0 { ", " }
            @if is_bad { span.bad { (words) } } @else { (words) }
        }
    }
}
