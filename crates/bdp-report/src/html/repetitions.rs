//! Repetitions as dots, and beside each row its median with the range of the values.

use super::overview::TEXT;
use super::page::{Figure, Sign};
use super::timeline::plain;
use crate::number::RateUnit;
use crate::summary::{Ending, Point, ending};
use crate::svg::{Anchor, Axis, Drawing, Frame, MARGIN, WIDTH};
use crate::varied::varied;

const ROW: f64 = 34.0;
/// Rows at the most; the table has all.
const MOST_ROWS: usize = 24;
/// Values further apart than this need a logarithmic axis.
const LOGARITHMIC_FROM: f64 = 20.0;

/// The figure; `None` where nothing was repeated.
pub(crate) fn figure(points: &[Point<'_>], title: &str) -> Option<Figure<'static>> {
    let repeated: Vec<&Point<'_>> =
        points.iter().filter(|p| p.records.iter().filter(|r| r.goodput_bps.is_some()).count() > 1).collect();
    if repeated.is_empty() {
        return None;
    }
    let shown = &repeated[..repeated.len().min(MOST_ROWS)];
    let values: Vec<f64> = shown
        .iter()
        .flat_map(|p| p.records.iter().filter_map(|r| r.goodput_bps))
        .filter(|v| *v > 0.0)
        .collect();
    let (low, high) = values.iter().fold((f64::INFINITY, 0.0f64), |(l, h), &v| (l.min(v), h.max(v)));
    let bottom = shown.len() as f64 * ROW + 6.0;
    let ends = [MARGIN + 8.0, WIDTH - MARGIN - 8.0];
    let x = if high > LOGARITHMIC_FROM * low {
        Axis::logarithmic(values.iter().copied(), ends)
    } else {
        let room = ((high - low) * 0.06).max(high * 0.002);
        Axis::linear([(low - room).max(0.0), high + room], ends)
    };
    let unit = RateUnit::fitting([high]);
    let frame = Frame { x, y: Axis::linear([0.0, 1.0], [bottom, 0.0]) };
    let mut drawing = Drawing::default();
    frame
        .bottom(&mut drawing, &x.ticks_in(unit.bps, 6), |v| format!("{} {}", plain(v / unit.bps), unit.name));
    let mut crossed = false;
    for (i, point) in shown.iter().enumerate() {
        let y = i as f64 * ROW + 26.0;
        let what = varied(point, &TEXT, Some("segment"));
        let name = if what.is_empty() { point.scenario.to_owned() } else { what };
        drawing.text([0.0, y - 11.0], Anchor::Start, "name", &name);
        drawing.line([0.0, y], [WIDTH, y], "grid");
        if let Some(spread) = point.goodput_bps() {
            drawing.line([x.at(spread.min), y], [x.at(spread.max), y], "range");
            drawing.line([x.at(spread.median), y - 7.0], [x.at(spread.median), y + 7.0], "hollow-line");
        }
        if let Some(model) = point.expected_bps().filter(|m| x.holds(m.median)) {
            drawing.line([x.at(model.median), y - 9.0], [x.at(model.median), y + 9.0], "model");
        }
        for record in &point.records {
            let Some(goodput) = record.goodput_bps.filter(|&g| g > 0.0) else { continue };
            match ending(record) {
                Ending::Valid => drawing.dot([x.at(goodput), y], 3.2, "here-dot"),
                Ending::Invalid => {
                    crossed = true;
                    drawing.cross([x.at(goodput), y], 4.0, "cross");
                }
                Ending::Failed => {}
            }
        }
    }
    let mut keys = vec![
        (Sign::Dot("here-dot"), "one repetition".to_owned()),
        (Sign::Tick("hollow-line"), "median".to_owned()),
        (Sign::Line("range"), "smallest to largest".to_owned()),
        (Sign::Tick("model"), "model".to_owned()),
    ];
    if crossed {
        keys.push((Sign::Cross, "INVALID: counts for nothing".to_owned()));
    }
    let mut notes = Vec::new();
    if repeated.len() > shown.len() {
        notes.push(format!(
            "The first {} of {} repeated points; the table has all.",
            shown.len(),
            repeated.len()
        ));
    }
    let description = format!("{} points, each with its repetitions.", shown.len());
    let chart = drawing.finish(bottom + 22.0, &format!("{title}: repetitions"), &description);
    Some(Figure { title: "Repetitions", keys, notes, chart })
}
