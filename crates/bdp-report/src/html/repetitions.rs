//! Repetitions as dots, with median and range next to each row.

use bdp_model::statistics::comparison::Interval;

use super::overview::TEXT;
use super::page::{Figure, Sign, head, numbers, words};
use super::timeline::plain;
use crate::markup::Markup;
use crate::number::RateUnit;
use crate::repeated::{self, MOMENTS, Of, Table};
use crate::summary::{Ending, Point, Spread, ending};
use crate::svg::{Anchor, Axis, Drawing, Frame, MARGIN, WIDTH};
use crate::varied::varied;

/// Writes the figures of all repetitions, with loss models and published values; nothing if there are too few repetitions.
pub(crate) fn table(m: &mut Markup, points: &[Point<'_>]) {
    for table in Table::all(points, &TEXT) {
        m.element("div", &[("class", "scroll")], |m| {
            m.element("table", &[], |m| {
                m.leaf("caption", &[], &format!("Repetitions of {}, {}", table.scenario, table.unit.name));
                let mut heads = vec![words("varied"), numbers("n")];
                heads.extend(MOMENTS.map(numbers));
                heads.push(numbers("95 %: mean lies in"));
                head(m, &heads);
                m.element("tbody", &[], |m| table.rows.iter().for_each(|row| table_row(m, row, table.unit)));
            });
        });
        for note in &table.notes {
            m.leaf("p", &[("class", "note")], note);
        }
        m.line();
    }
}

fn table_row(m: &mut Markup, row: &repeated::Row, unit: RateUnit) {
    m.element("tr", &[], |m| {
        let whose = match row.of {
            Of::Ours => "",
            Of::Model => " (model)",
            Of::Source => " (published)",
        };
        m.leaf("td", &[], &format!("{}{whose}", row.name));
        let number = |m: &mut Markup, text: Option<String>| {
            m.leaf("td", &[("class", "n")], &text.unwrap_or_default());
        };
        number(m, row.n.map(|n| n.to_string()));
        for figure in row.moments() {
            number(m, figure.map(|bps| unit.format(bps)));
        }
        number(m, row.interval.map(|ends| repeated::interval(ends, unit)));
    });
    m.line();
}

const ROW: f64 = 34.0;
/// Most rows; the table has all.
const MOST_ROWS: usize = 24;
/// Ratio of values above which a logarithmic axis is needed.
const LOGARITHMIC_FROM: f64 = 20.0;

/// A row: name, values, which of them are valid, and the model's figure.
pub(crate) struct Row {
    pub name: String,
    pub values_bps: Vec<(f64, bool)>,
    pub model_bps: Option<f64>,
}

/// Returns the figure of a lab run; `None` if nothing was repeated.
pub(crate) fn figure(points: &[Point<'_>], title: &str) -> Option<Figure<'static>> {
    let rows = points.iter().map(|point| {
        let what = varied(point, &TEXT, Some("segment"));
        let values = point.records.iter().filter(|r| matches!(ending(r), Ending::Valid | Ending::Invalid));
        Row {
            name: if what.is_empty() { point.scenario.to_owned() } else { what },
            values_bps: values.filter_map(|r| Some((r.goodput_bps?, r.valid))).collect(),
            model_bps: point.expected_bps().map(|e| e.median),
        }
    });
    draw(rows.collect(), title)
}

impl Row {
    fn counting(&self) -> impl Iterator<Item = f64> {
        self.values_bps.iter().filter(|v| v.1).map(|v| v.0)
    }

    fn draw(&self, drawing: &mut Drawing, x: &Axis, y: f64) {
        drawing.text([0.0, y - 11.0], Anchor::Start, "name", &self.name);
        drawing.line([0.0, y], [WIDTH, y], "grid");
        if let Some(spread) = Spread::of(self.counting()) {
            drawing.line([x.at(spread.min), y], [x.at(spread.max), y], "range");
            drawing.line([x.at(spread.median), y - 7.0], [x.at(spread.median), y + 7.0], "hollow-line");
        }
        if let Some(model) = self.model_on(x) {
            drawing.line([x.at(model), y - 9.0], [x.at(model), y + 9.0], "model");
        }
        for &(bps, counts) in &self.values_bps {
            if counts {
                drawing.dot([x.at(bps), y], 3.2, "here-dot");
            } else {
                drawing.cross([x.at(bps), y], 4.0, "cross");
            }
        }
    }

    fn model_on(&self, x: &Axis) -> Option<f64> {
        self.model_bps.filter(|&model| x.holds(model))
    }

    /// Returns the confidence interval of the median, as a sentence.
    fn interval(&self, unit: RateUnit) -> Option<String> {
        let counting: Vec<f64> = self.counting().collect();
        let interval = Interval::of_median(&counting)?;
        Some(format!(
            "{}: the median lies between {} and {} {} with {} % confidence ({} runs).",
            self.name,
            unit.format(interval.low),
            unit.format(interval.high),
            unit.name,
            (interval.confidence * 100.0).floor(),
            counting.len()
        ))
    }

    fn description(&self, unit: RateUnit) -> String {
        let words = Spread::of(self.counting()).map_or_else(
            || "none counts".to_owned(),
            |s| format!("{} to {}, median {}", unit.format(s.min), unit.format(s.max), unit.format(s.median)),
        );
        format!("{}: {words} {}", self.name, unit.name)
    }
}

/// Returns the figure of any rows; `None` if none has several values.
pub(crate) fn draw(mut rows: Vec<Row>, title: &str) -> Option<Figure<'static>> {
    for row in &mut rows {
        row.values_bps.retain(|(bps, _)| bps.is_finite() && *bps > 0.0);
    }
    rows.retain(|row| row.values_bps.len() > 1);
    if rows.is_empty() {
        return None;
    }
    let shown = &rows[..rows.len().min(MOST_ROWS)];
    let values = || shown.iter().flat_map(|row| row.values_bps.iter().map(|v| v.0));
    let (low, high) = values().fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
    let bottom = shown.len() as f64 * ROW + 6.0;
    let ends = [MARGIN + 8.0, WIDTH - MARGIN - 8.0];
    let x = if high > LOGARITHMIC_FROM * low {
        Axis::logarithmic(values(), ends)
    } else {
        let room = ((high - low) * 0.06).max(high * 0.002);
        Axis::linear([(low - room).max(0.0), high + room], ends)
    };
    let unit = RateUnit::fitting([high]);
    let frame = Frame { x, y: Axis::linear([0.0, 1.0], [bottom, 0.0]) };
    let mut drawing = Drawing::default();
    let label = |bps: f64| format!("{} {}", plain(bps / unit.bps), unit.name);
    frame.bottom(&mut drawing, &x.ticks_in(unit.bps, 6), label);
    for (i, row) in shown.iter().enumerate() {
        row.draw(&mut drawing, &x, i as f64 * ROW + 26.0);
    }
    let mut keys = vec![
        (Sign::Dot("here-dot"), "one repetition".to_owned()),
        (Sign::Tick("hollow-line"), "median".to_owned()),
        (Sign::Line("range"), "smallest to largest".to_owned()),
    ];
    if shown.iter().any(|row| row.model_on(&x).is_some()) {
        keys.push((Sign::Tick("model"), "model".to_owned()));
    }
    if shown.iter().any(|row| row.values_bps.iter().any(|v| !v.1)) {
        keys.push((Sign::Cross, "INVALID: counts for nothing".to_owned()));
    }
    let mut notes = Vec::new();
    if rows.len() > shown.len() {
        let (shown, all) = (shown.len(), rows.len());
        notes.push(format!("The first {shown} of {all} repeated points; the table has all."));
    }
    notes.extend(shown.iter().filter_map(|row| row.interval(unit)));
    let description = shown.iter().map(|row| row.description(unit)).collect::<Vec<_>>().join("; ");
    let chart = drawing.finish(bottom + 22.0, &format!("{title}: repetitions"), &description);
    Some(Figure { title: "Repetitions", keys, notes, chart: chart.into() })
}
