//! A chart's drawing: panels with grid lines and labels, and the marks of their series. No text is placed over the data; names
//! belong in the key.

use std::fmt::Write as _;

use super::axis::Axis;
use super::description::{Chart, Marks, Panel, Series, Vertical};
use super::shape::{Anchor, Drawing, MARGIN, WIDTH, number};
use crate::number::percent;

/// Left margin of a plot with labels beside it, wide enough for the larger type of a narrow page.
pub(super) const GUTTER: f64 = 78.0;
/// Distance between a label and the plot.
const GAP: f64 = 8.0;
/// Distance from the bottom line to the baseline of its labels, also enough for the larger type of a narrow page.
const DROP: f64 = 20.0;
/// Width of a character in the larger type used on narrow pages, and in the other.
const CHARACTER: f64 = 10.5;
const SMALL_CHARACTER: f64 = 6.4;
/// Space above the first panel, between panels, and before and after a strip.
const TOP: f64 = 10.0;
const BETWEEN: f64 = 26.0;
const BESIDE_STRIP: f64 = 12.0;
/// Height of the labels below the last panel.
const LABELS: f64 = 26.0;
/// Height of a row, and its position within it.
const ROW: f64 = 36.0;
const ROW_BASE: f64 = 26.0;
/// By how much a band rises above the next.
const RISE: f64 = 12.0;

impl Panel {
    pub fn new(y: Axis, height: f64, series: Vec<Series>) -> Self {
        Self { y: Vertical::Values(y), height, series }
    }

    pub fn strip(height: f64, series: Vec<Series>) -> Self {
        Self { y: Vertical::Strip, height, series }
    }

    pub fn rows(rows: Vec<[String; 2]>, series: Vec<Series>) -> Self {
        let height = ROW * rows.len() as f64;
        Self { y: Vertical::Rows(rows), height, series }
    }

    fn is_strip(&self) -> bool {
        matches!(self.y, Vertical::Strip)
    }
}

/// Returns a chart's height and drawing.
pub(super) fn layout(chart: &Chart) -> (f64, Drawing) {
    let mut drawing = Drawing::default();
    let mut frames: Vec<Frame<'_>> = Vec::new();
    let mut top = TOP;
    let mut before: Option<&Panel> = None;
    for panel in &chart.panels {
        top += match before {
            None => 0.0,
            Some(before)
                if !matches!(before.y, Vertical::Shares) && (before.is_strip() || panel.is_strip()) =>
            {
                BESIDE_STRIP
            }
            Some(_) => BETWEEN,
        };
        frames.push(Frame::new(&chart.x, panel, top));
        top += panel.height;
        before = Some(panel);
    }
    bands(&mut drawing, &frames);
    for frame in &frames {
        frame.rules(&mut drawing);
    }
    if let Some(last) = frames.last() {
        last.bottom(&mut drawing);
    }
    for frame in &frames {
        // The first series is above the others of its layer.
        let mut series: Vec<&Series> = frame.panel.series.iter().rev().collect();
        series.sort_by_key(|series| series.marks.layer());
        series.into_iter().for_each(|series| frame.draw(&mut drawing, series));
    }
    (top + LABELS, drawing)
}

/// Draws the areas across all panels, the first of several the highest.
fn bands(drawing: &mut Drawing, frames: &[Frame<'_>]) {
    let bands = frames.iter().flat_map(|frame| &frame.panel.series).filter_map(|series| match series.marks {
        Marks::Band(least, ends) => Some((series.class, least, ends)),
        _ => None,
    });
    let (Some(first), Some(last)) = (frames.first(), frames.last()) else { return };
    let bands: Vec<_> = bands.collect();
    for (index, (class, least, ends)) in bands.iter().enumerate() {
        let [from, to] = ends.map(|x| first.x(x));
        let widened = ((least - (to - from)) / 2.0).max(0.0);
        let (from, to) = ((from - widened).max(first.left), (to + widened).min(first.right));
        let top = first.top - RISE.min(TOP) * (bands.len() - 1 - index) as f64;
        drawing.rect([from, top], [to - from, last.bottom - top], class);
    }
}

impl Marks {
    /// Returns the layer, which is above those with smaller numbers.
    const fn layer(&self) -> usize {
        match self {
            Self::Band(..) | Self::Boxes(_) => 0,
            Self::Level(_) | Self::Upright(_) => 1,
            Self::Line(_) | Self::Steps(_) => 2,
            Self::Spans(_) | Self::Ticks(..) => 3,
            Self::Dots(..) | Self::Crosses(_) => 4,
        }
    }
}

/// A panel in its place.
pub(super) struct Frame<'a> {
    axis: &'a Axis,
    panel: &'a Panel,
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl<'a> Frame<'a> {
    pub fn new(axis: &'a Axis, panel: &'a Panel, top: f64) -> Self {
        let [left, right] = match panel.y {
            Vertical::Rows(_) => [MARGIN + GAP, WIDTH - MARGIN - GAP],
            _ => [GUTTER, WIDTH - MARGIN],
        };
        Self { axis, panel, left, right, top, bottom: top + panel.height }
    }

    fn x(&self, value: f64) -> f64 {
        let share = if matches!(self.panel.y, Vertical::Shares) { value } else { self.axis.share(value) };
        self.left + (self.right - self.left) * share
    }

    fn y(&self, value: f64) -> f64 {
        match &self.panel.y {
            Vertical::Values(axis) => self.bottom - (self.bottom - self.top) * axis.share(value),
            Vertical::Rows(_) => self.top + ROW * value + ROW_BASE - TOP,
            Vertical::Strip | Vertical::Shares => self.bottom - (self.bottom - self.top) * value,
        }
    }

    fn at(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        [self.x(x), self.y(y)]
    }

    /// Draws the grid lines with their labels on the left and the unit below them, or the rows with their names.
    pub fn rules(&self, drawing: &mut Drawing) {
        let edge = self.left - GAP;
        match &self.panel.y {
            Vertical::Values(axis) => {
                for &tick in &axis.ticks {
                    let y = self.y(tick);
                    let base = (y - self.bottom).abs() < 0.5;
                    drawing.line([self.left, y], [self.right, y], if base { "axis" } else { "grid" });
                    if !base || tick != 0.0 {
                        drawing.text([edge, y + 4.0], Anchor::End, "tick", axis.unit.short_label(tick));
                    }
                }
                if !axis.unit.name().is_empty() {
                    drawing.text([edge, self.bottom + DROP], Anchor::End, "tick", axis.unit.name());
                }
            }
            Vertical::Rows(rows) => {
                for (index, [name, figures]) in rows.iter().enumerate() {
                    let y = self.y(index as f64);
                    drawing.line([0.0, y], [WIDTH, y], "grid");
                    drawing.text([0.0, y - 11.0], Anchor::Start, "name", name);
                    if !figures.is_empty() {
                        drawing.text([WIDTH, y - 11.0], Anchor::End, "tick", figures);
                    }
                }
            }
            Vertical::Strip | Vertical::Shares => {}
        }
    }

    /// Draws the bottom line with tick marks and as many labels as fit in the larger type of a narrow page.
    pub fn bottom(&self, drawing: &mut Drawing) {
        let y = self.bottom;
        drawing.line([self.left, y], [self.right, y], "axis");
        let mut taken = 0.0;
        for &tick in &self.axis.ticks {
            let x = self.x(tick);
            drawing.line([x, y], [x, y + 4.0], "axis");
            let label = self.axis.unit.label(tick);
            let half = CHARACTER * label.chars().count() as f64 / 2.0;
            let middle = x.min(WIDTH - half).max(self.left + half);
            if middle - half >= taken {
                drawing.text([middle, y + DROP], Anchor::Middle, "tick", label);
                taken = middle + half + CHARACTER / 2.0;
            }
        }
    }

    fn draw(&self, drawing: &mut Drawing, series: &Series) {
        let class = series.class;
        match &series.marks {
            Marks::Line(points) => {
                drawing.polyline(points.iter().map(|point| point.map(|at| self.at(at))), class)
            }
            Marks::Steps(points) => {
                let corners = points.windows(2).flat_map(|pair| {
                    let corner = |at: f64| pair[0].1.map(|value| self.at([at, value]));
                    [corner(pair[0].0), corner(pair[1].0)]
                });
                drawing.polyline(corners, class);
            }
            Marks::Dots(radius, points) => {
                points.iter().for_each(|&point| drawing.dot(self.at(point), *radius, class));
            }
            Marks::Crosses(points) => points.iter().for_each(|&point| drawing.cross(self.at(point), class)),
            Marks::Spans(spans) => {
                spans.iter().for_each(|&[from, to]| drawing.line(self.at(from), self.at(to), class));
            }
            Marks::Ticks(half, points) => {
                for [x, y] in points.iter().map(|&point| self.at(point)) {
                    drawing.line([x, y - half], [x, y + half], class);
                }
            }
            Marks::Boxes(boxes) => self.boxes(drawing, series, boxes),
            Marks::Level(value) => {
                if matches!(&self.panel.y, Vertical::Values(axis) if axis.holds(*value)) {
                    drawing.line([self.left, self.y(*value)], [self.right, self.y(*value)], class);
                }
            }
            Marks::Upright(values) => {
                for x in values.iter().map(|&value| self.x(value)) {
                    drawing.line([x, self.top], [x, self.bottom], class);
                }
            }
            Marks::Band(..) => {}
        }
    }

    /// Draws filled boxes as one path, or shares as a box each with its name below if there is room.
    fn boxes(&self, drawing: &mut Drawing, series: &Series, boxes: &[[[f64; 2]; 2]]) {
        let mut d = String::new();
        for [[from, low], [to, high]] in boxes {
            let [left, right] = [*from, *to].map(|x| self.x(x));
            let [bottom, top] = [*low, *high].map(|y| self.y(y));
            if matches!(self.panel.y, Vertical::Shares) {
                // A gap of one unit separates neighbours even without colour.
                drawing.rect([left, top], [(right - left - 1.0).max(0.5), bottom - top], series.class);
                let share = percent(to - from);
                let fits = |text: &String| text.chars().count() as f64 * SMALL_CHARACTER <= right - left;
                if let Some(text) =
                    [format!("{} {share}", series.label), share.clone()].into_iter().find(fits)
                {
                    drawing.text([left, bottom + 14.0], Anchor::Start, "name", text);
                }
                continue;
            }
            let [left, right, bottom, top] = [left, right, bottom, top].map(number);
            let _ = write!(d, "M{left} {bottom}H{right}V{top}H{left}Z");
        }
        drawing.path(d, series.class);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Unit;
    use crate::chart::shape::Shape;

    #[test]
    fn labels_are_neither_cut_nor_on_top_of_each_other() {
        let ticks = vec![100.0, 1000.0, 1400.0, 2000.0, 3000.0, 4000.0, 4990.0];
        let x = Axis::linear([0.0, 5000.0], Unit::Named("Mbit/s", 1.0), 7).with_ticks(ticks);
        let panel = Panel::strip(100.0, Vec::new());
        let mut drawing = Drawing::default();
        Frame::new(&x, &panel, 0.0).bottom(&mut drawing);
        let mut end = 0.0;
        for shape in &drawing.over {
            let Shape::Text { at: [middle, _], text, .. } = shape else { panic!("{shape:?}") };
            let half = CHARACTER * text.len() as f64 / 2.0;
            assert!(middle - half >= end && middle + half <= WIDTH, "{text}: {drawing:?}");
            end = middle + half;
        }
        assert_eq!(drawing.over.len(), 4, "{drawing:?}");
    }

    #[test]
    fn a_band_is_exact_or_has_its_least_width() {
        let x = Axis::linear([0.0, 100.0], Unit::SECONDS, 3);
        let widths = [0.0, 10.0].map(|least| {
            let panel = Panel::strip(100.0, vec![Series::new("shade", "", Marks::Band(least, [50.0, 50.5]))]);
            let mut drawing = Drawing::default();
            let frame = Frame::new(&x, &panel, 0.0);
            let exact = frame.x(50.5) - frame.x(50.0);
            bands(&mut drawing, &[frame]);
            let [Shape::Rect { size: [width, _], .. }] = drawing.body[..] else { panic!("{drawing:?}") };
            [width, exact]
        });
        let [[narrow, exact], [widened, _]] = widths;
        assert!((narrow - exact).abs() < 1e-9 && exact < 10.0 && (widened - 10.0).abs() < 1e-9, "{widths:?}");
    }
}
