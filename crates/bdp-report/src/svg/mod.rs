//! SVG charts: elements, axes, a frame. Colours are classes of the page's style sheet.

mod axis;
mod frame;

pub(crate) use axis::{Axis, ticks_of_bytes};
pub(crate) use frame::{Frame, GUTTER, MARGIN};

use crate::markup::Markup;

/// Width of a chart in its own units; the page scales it.
pub(crate) const WIDTH: f64 = 720.0;

/// A drawing.
#[derive(Debug, Default)]
pub(crate) struct Drawing {
    body: Vec<Shape>,
    /// Text, drawn above everything else.
    over: Vec<Shape>,
}

/// Element of a drawing.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    /// A path of `M`, `L`, `H`, `V` and `Z`, absolute.
    Path { class: String, d: String },
    /// A rectangle: corner, then width and height.
    Rect { class: String, at: [f64; 2], size: [f64; 2] },
    /// A circle.
    Dot { class: String, at: [f64; 2], radius: f64 },
    /// Text, positioned at its baseline.
    Text { class: String, at: [f64; 2], anchor: Anchor, text: String },
}

/// A finished drawing.
#[derive(Debug)]
pub(crate) struct Chart {
    pub height: f64,
    pub title: String,
    pub description: String,
    pub shapes: Vec<Shape>,
}

/// Horizontal alignment of text relative to its point.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Chart {
    /// Returns the chart as an element with its text alternative.
    pub fn into_markup(self) -> Markup {
        let mut svg = Markup::default();
        let view = format!("0 0 {} {}", number(WIDTH), number(self.height));
        let attributes = [
            ("viewBox", view.as_str()),
            ("role", "img"),
            ("class", "chart"),
            ("aria-label", self.title.as_str()),
        ];
        svg.element("svg", &attributes, |m| {
            m.leaf("title", &[], &self.title);
            m.leaf("desc", &[], &self.description);
            self.shapes.iter().for_each(|shape| shape.write(m));
        });
        svg.line();
        svg
    }
}

impl Shape {
    fn write(&self, m: &mut Markup) {
        match self {
            Self::Path { class, d } => m.void("path", &[("class", class), ("d", d)]),
            Self::Rect { class, at: [x, y], size: [width, height] } => {
                let [x, y, width, height] = [*x, *y, *width, *height].map(number);
                m.void(
                    "rect",
                    &[("class", class), ("x", &x), ("y", &y), ("width", &width), ("height", &height)],
                );
            }
            Self::Dot { class, at: [x, y], radius } => {
                let [x, y, radius] = [*x, *y, *radius].map(number);
                m.void("circle", &[("class", class), ("cx", &x), ("cy", &y), ("r", &radius)]);
            }
            Self::Text { class, at: [x, y], anchor, text } => {
                let [x, y] = [*x, *y].map(number);
                let attributes =
                    [("class", class.as_str()), ("x", &x), ("y", &y), ("text-anchor", anchor.name())];
                m.leaf("text", &attributes, text);
            }
        }
    }
}

impl Anchor {
    /// Returns the SVG name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

impl Drawing {
    /// Returns the finished drawing with its text alternative.
    pub fn finish(self, height: f64, title: &str, description: &str) -> Chart {
        let shapes = self.body.into_iter().chain(self.over).collect();
        Chart { height, title: title.to_owned(), description: description.to_owned(), shapes }
    }

    /// Returns the shapes as a group for use in another drawing.
    pub fn into_group(self, class: &str) -> Markup {
        let mut group = Markup::default();
        group.element("g", &[("class", class)], |m| {
            self.body.iter().chain(&self.over).for_each(|shape| shape.write(m));
        });
        group
    }

    pub fn line(&mut self, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2], class: &str) {
        let d = if (y1 - y2).abs() < 1e-9 {
            format!("M{} {}H{}", number(x1), number(y1), number(x2))
        } else {
            format!("M{} {}L{} {}", number(x1), number(y1), number(x2), number(y2))
        };
        self.path(&d, class);
    }

    pub fn path(&mut self, d: &str, class: &str) {
        if !d.is_empty() {
            self.body.push(Shape::Path { class: class.to_owned(), d: d.to_owned() });
        }
    }

    /// Draws straight lines between points, with a gap at each missing point.
    pub fn polyline(&mut self, points: impl IntoIterator<Item = Option<[f64; 2]>>, class: &str) {
        let mut d = String::new();
        let mut drawing = false;
        for point in points {
            match point {
                Some([x, y]) => {
                    d.push_str(if drawing { "L" } else { "M" });
                    d.push_str(&format!("{} {}", number(x), number(y)));
                    drawing = true;
                }
                None => drawing = false,
            }
        }
        self.path(&d, class);
    }

    pub fn rect(&mut self, at: [f64; 2], [width, height]: [f64; 2], class: &str) {
        let size = [width.max(0.0), height.max(0.0)];
        self.body.push(Shape::Rect { class: class.to_owned(), at, size });
    }

    pub fn dot(&mut self, at: [f64; 2], radius: f64, class: &str) {
        self.body.push(Shape::Dot { class: class.to_owned(), at, radius });
    }

    /// Draws a cross, for values that do not count.
    pub fn cross(&mut self, [x, y]: [f64; 2], arm: f64, class: &str) {
        let [left, right, top, bottom] = [x - arm, x + arm, y - arm, y + arm].map(number);
        self.path(&format!("M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}"), class);
    }

    pub fn text(&mut self, at: [f64; 2], anchor: Anchor, class: &str, text: &str) {
        self.over.push(Shape::Text { class: class.to_owned(), at, anchor, text: text.to_owned() });
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
        let text = drawing.finish(10.0, "t", "d").into_markup().into_string();
        assert!(text.contains("d=\"M0 1L1 1M2 1L3 2\""), "{text}");
    }
}
