//! Drawings: paths, boxes, dots and text. Colours are classes of the page's style sheet.

use bdp_model::names;
use std::fmt::Write as _;

use maud::{Markup, Render, html};

/// Width of a chart in its own units; the page scales it.
pub(crate) const WIDTH: f64 = 720.0;
/// Left and right margin of a plot.
pub(crate) const MARGIN: f64 = 2.0;
/// A drawing.
#[derive(Debug, Default)]
pub(crate) struct Drawing {
    pub(super) body: Vec<Shape>,
    /// Text, drawn above everything else.
    pub(super) over: Vec<Shape>,
}

/// Element of a drawing.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    /// A path of `M`, `L`, `H`, `V` and `Z`, absolute.
    Path { class: &'static str, d: String },
    /// A rectangle: corner, then width and height.
    Rect { class: &'static str, at: [f64; 2], size: [f64; 2] },
    /// A circle.
    Dot { class: &'static str, at: [f64; 2], radius: f64 },
    /// Text, positioned at its baseline.
    Text { class: &'static str, at: [f64; 2], anchor: Anchor, text: String },
}

/// Horizontal alignment of text relative to its point.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

names!(Anchor: Start = "start", Middle = "middle", End = "end");

/// Sign of a key, as in the chart.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sign {
    Line(&'static str),
    Dot(&'static str),
    DotOnLine(&'static str, &'static str),
    Field(&'static str),
    Cross(&'static str),
    Tick(&'static str),
}

impl Sign {
    /// Returns the sign to the right of a point.
    pub fn shapes(self, [x, y]: [f64; 2]) -> Vec<Shape> {
        let mut drawing = Drawing::default();
        let middle = [x + 12.0, y];
        match self {
            Self::Line(class) => drawing.line([x, y], [x + 24.0, y], class),
            Self::Dot(class) => drawing.dot(middle, 3.2, class),
            Self::DotOnLine(class, dotted) => {
                drawing.line([x, y], [x + 24.0, y], class);
                drawing.dot(middle, 3.2, dotted);
            }
            Self::Field(class) => drawing.rect([x + 2.0, y - 5.0], [20.0, 10.0], class),
            Self::Cross(class) => drawing.cross(middle, class),
            Self::Tick(class) => drawing.line([x + 12.0, y - 5.0], [x + 12.0, y + 5.0], class),
        }
        drawing.body
    }
}

impl Render for Shape {
    fn render(&self) -> Markup {
        html! {
            @match self {
                Self::Path { class, d } => { path class=(class) d=(d) {} }
                Self::Rect { class, at: [x, y], size: [width, height] } => {
                    rect class=(class) x=(number(*x)) y=(number(*y)) width=(number(*width)) height=(number(*height)) {}
                }
                Self::Dot { class, at: [x, y], radius } => {
                    circle class=(class) cx=(number(*x)) cy=(number(*y)) r=(number(*radius)) {}
                }
                Self::Text { class, at: [x, y], anchor, text } => {
                    text class=(class) x=(number(*x)) y=(number(*y)) text-anchor=(anchor.name()) { (text) }
                }
            }
        }
    }
}

impl Drawing {
    /// Returns all shapes, in drawing order.
    pub fn shapes(&self) -> impl Iterator<Item = &Shape> {
        self.body.iter().chain(&self.over)
    }

    /// Returns the drawing as an element with its text alternative.
    pub fn svg(&self, height: f64, title: &str, description: &str) -> Markup {
        html! {
            svg viewBox={ "0 0 " (number(WIDTH)) " " (number(height)) } role="img" class="chart" aria-label=(title) {
                title { (title) }
                desc { (description) }
                @for shape in self.shapes() { (shape) }
            }
            "\n"
        }
    }

    /// Draws an upright, level or slanting line.
    pub fn line(&mut self, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2], class: &'static str) {
        let [a, b, c, d] = [x1, y1, x2, y2].map(number);
        let d = match (a == c, b == d) {
            (_, true) => format!("M{a} {b}H{c}"),
            (true, false) => format!("M{a} {b}V{d}"),
            (false, false) => format!("M{a} {b}L{c} {d}"),
        };
        self.path(d, class);
    }

    pub fn path(&mut self, d: String, class: &'static str) {
        if !d.is_empty() {
            self.body.push(Shape::Path { class, d });
        }
    }

    /// Draws straight lines between points, with a gap at each missing point.
    pub fn polyline(&mut self, points: impl IntoIterator<Item = Option<[f64; 2]>>, class: &'static str) {
        let mut d = String::new();
        let mut drawing = false;
        for point in points {
            if let Some([x, y]) = point {
                let _ = write!(d, "{}{} {}", if drawing { "L" } else { "M" }, number(x), number(y));
            }
            drawing = point.is_some();
        }
        self.path(d, class);
    }

    pub fn rect(&mut self, at: [f64; 2], [width, height]: [f64; 2], class: &'static str) {
        self.body.push(Shape::Rect { class, at, size: [width.max(0.0), height.max(0.0)] });
    }

    pub fn dot(&mut self, at: [f64; 2], radius: f64, class: &'static str) {
        self.body.push(Shape::Dot { class, at, radius });
    }

    /// Draws a cross, for values that do not count.
    pub fn cross(&mut self, [x, y]: [f64; 2], class: &'static str) {
        let [left, right, top, bottom] = [x - 4.0, x + 4.0, y - 4.0, y + 4.0].map(number);
        self.path(format!("M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}"), class);
    }

    pub fn text(&mut self, at: [f64; 2], anchor: Anchor, class: &'static str, text: impl Into<String>) {
        self.over.push(Shape::Text { class, at, anchor, text: text.into() });
    }
}

/// Formats a coordinate to one decimal, without trailing zeros.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let tenths = (value * 10.0).round() as i64;
    match (tenths / 10, (tenths % 10).abs()) {
        (whole, 0) => whole.to_string(),
        (0, tenth) if tenths < 0 => format!("-.{tenth}"),
        (0, tenth) => format!(".{tenth}"),
        (whole, tenth) => format!("{whole}.{tenth}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (12.04, "12"),
            (12.06, "12.1"),
            (-0.26, "-.3"),
            (-3.25, "-3.3"),
            (0.96, "1"),
            (f64::NAN, "0"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn a_missing_point_is_a_gap() {
        let mut drawing = Drawing::default();
        drawing.polyline([Some([0.0, 1.0]), Some([1.0, 1.0]), None, Some([2.0, 1.0]), Some([3.0, 2.0])], "a");
        let text = drawing.svg(10.0, "t", "d").into_string();
        assert!(text.contains("d=\"M0 1L1 1M2 1L3 2\""), "{text}");
    }
}
