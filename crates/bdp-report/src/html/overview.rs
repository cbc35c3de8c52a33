//! The terminal's table of all points, with each repetition as a dot relative to the model's 100 %.

use bdp_model::case::Published;

use super::page::{Heading, head, inline, numbers, words};
use crate::markup::Markup;
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

/// Writes the table.
pub(crate) fn table(m: &mut Markup, points: &[Point<'_>], caption: &str) {
    let unit = unit(points);
    let some = |has: &dyn Fn(&Point<'_>) -> bool| points.iter().any(has);
    let scenarios = points.windows(2).any(|p| p[0].scenario != p[1].scenario);
    let varied_at_all = some(&|p| !varied(p, &TEXT, Some("segment")).is_empty());
    let rtt = some(&|p| rtt_idle_text(p).is_some());
    let wire = some(&|p| p.on_the_wire_bytes().is_some());
    let published = some(&|p| p.published_bps().is_some());
    let model = some(&|p| p.expected_bps().is_some());
    let several = some(&|p| p.count(Ending::Valid) > 1);

    let mut headings: Vec<Heading> = Vec::new();
    let mut column = |wanted: bool, heading: Heading| {
        if wanted {
            headings.push(heading);
        }
    };
    column(scenarios, words("case"));
    column(varied_at_all, words("varied"));
    column(rtt, numbers("RTT, ms"));
    column(wire, numbers("window on the wire"));
    column(published, numbers(format!("published, {}", unit.name)));
    column(model, numbers(format!("model, {}", unit.name)));
    column(true, numbers(format!("here, {}", unit.name)));
    column(several, numbers(format!("min to max, {}", unit.name)));
    column(several, numbers("n"));
    column(model, numbers("here / model"));
    column(model, words(&format!("{} to {}, bar: 100 %", percent(STRIP[0]), percent(STRIP[1]))));
    column(true, words("fidelity"));

    m.element("div", &[("class", "scroll")], |m| {
        m.element("table", &[], |m| {
            if !caption.is_empty() {
                m.leaf("caption", &[], caption);
            }
            head(m, &headings);
            m.element("tbody", &[], |m| {
                for (i, point) in points.iter().enumerate() {
                    let first = i == 0 || points[i - 1].scenario != point.scenario;
                    let class: &[(&str, &str)] = if first && i > 0 { &[("class", "first")] } else { &[] };
                    m.element("tr", class, |m| {
                        let number = |m: &mut Markup, wanted: bool, text: Option<String>| {
                            if wanted {
                                m.leaf("td", &[("class", "n")], text.as_deref().unwrap_or("–"));
                            }
                        };
                        if scenarios {
                            m.leaf("td", &[], if first { point.scenario } else { "" });
                        }
                        if varied_at_all {
                            m.leaf("td", &[], &varied(point, &TEXT, Some("segment")));
                        }
                        number(m, rtt, rtt_idle_text(point));
                        number(m, wire, point.on_the_wire_bytes().map(|w| size(w.median)));
                        number(m, published, point.published_bps().map(|p| range(p, unit)));
                        number(m, model, point.expected_bps().map(|e| unit.format(e.median)));
                        let here = point.goodput_bps();
                        let text = here.map(|g| unit.format(g.median));
                        m.leaf("td", &[("class", "n strong")], text.as_deref().unwrap_or("–"));
                        let spread = here.filter(|_| point.count(Ending::Valid) > 1);
                        number(
                            m,
                            several,
                            spread.map(|g| format!("{} to {}", unit.format(g.min), unit.format(g.max))),
                        );
                        number(m, several, Some(point.count(Ending::Valid).to_string()));
                        number(m, model, point.model_ratio().map(|r| percent(r.median)));
                        if model {
                            m.element("td", &[], |m| strip(m, point));
                        }
                        fidelity(m, point);
                    });
                    m.line();
                }
            });
        });
    });
    m.line();
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
fn strip(m: &mut Markup, point: &Point<'_>) {
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
        return;
    }
    let label = point.model_ratio().map_or_else(|| "none valid".to_owned(), |r| percent(r.median));
    inline(m, STRIP_SIZE, &format!("{label} of the model"), |m| {
        let bar = crate::chart::number(at(1.0));
        m.void("path", &[("class", "grid"), ("d", "M0 8H150")]);
        m.void("path", &[("class", "axis"), ("d", &format!("M{bar} 1V15"))]);
        for &(ratio, valid) in ratios.iter().take(MOST_DOTS) {
            let x = at(ratio);
            let beyond = !(STRIP[0]..=STRIP[1]).contains(&ratio);
            let [x_text, left, right] = [x, x - 3.0, x + 3.0].map(crate::chart::number);
            match (valid, beyond) {
                (false, _) => {
                    let d = format!("M{left} 5L{right} 11M{left} 11L{right} 5");
                    m.void("path", &[("class", "cross"), ("d", &d)]);
                }
                // An arrow head marks a value beyond the end.
                (true, true) => {
                    let (tip, back) = if ratio < 1.0 { (left, right) } else { (right, left) };
                    let d = format!("M{back} 4L{tip} 8L{back} 12");
                    m.void("path", &[("class", "here"), ("d", &d)]);
                }
                (true, false) => m.void(
                    "circle",
                    &[
                        ("class", "here-dot"),
                        ("cx", &x_text),
                        ("cy", &crate::chart::number(height / 2.0)),
                        ("r", "3"),
                    ],
                ),
            }
        }
    });
}

fn fidelity(m: &mut Markup, point: &Point<'_>) {
    let (valid, invalid, failed) =
        (point.count(Ending::Valid), point.count(Ending::Invalid), point.count(Ending::Failed));
    let missed = point.missed().count();
    m.element("td", &[], |m| {
        let mut parts: Vec<(bool, String)> = Vec::new();
        if valid > 0 && invalid == 0 && failed == 0 {
            parts.push((false, "OK".to_owned()));
        }
        if invalid > 0 {
            let after =
                if valid > 0 { format!("OK after {invalid} INVALID") } else { format!("{invalid} INVALID") };
            parts.push((valid == 0, after));
        }
        if failed > 0 {
            parts.push((true, format!("{failed} FAILED")));
        }
        if point.count(Ending::Skipped) > 0 {
            parts.push((true, "SKIPPED".to_owned()));
        }
        if missed > 0 {
            parts.push((true, format!("{missed} of {valid} MISSED")));
        }
        for (i, (bad, text)) in parts.iter().enumerate() {
            if i > 0 {
                m.text(", ");
            }
            if *bad {
                m.leaf("span", &[("class", "bad")], text);
            } else {
                m.text(text);
            }
        }
    });
}
