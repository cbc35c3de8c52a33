//! A figure with its title and key in one drawing.

use super::paint::{Paint, SHEER, hex};
use crate::html::{Drawn, Figure, Sign};
use crate::markup::Markup;
use crate::svg::{Anchor, MARGIN, Shape, WIDTH, number};

/// Line height of text.
const LINE: f64 = 18.0;
/// Width of a key's sign, and the space after it.
const SIGN: f64 = 30.0;

/// Everything to draw, in drawing order.
#[derive(Debug)]
pub(super) struct Scene {
    pub title: String,
    pub height: f64,
    pub shapes: Vec<Placed>,
}

/// A shape with a vertical offset.
#[derive(Debug)]
pub(super) struct Placed {
    pub shape: Shape,
    pub down: f64,
}

impl Scene {
    /// Returns a figure of the report with this title; `None` if it does not consist of shapes.
    pub fn of_figure(title: &str, figure: Figure<'_>) -> Option<Self> {
        let Drawn::Chart(chart) = figure.chart else { return None };
        let mut shapes = Vec::new();
        let text = |at: [f64; 2], class: &str, text: &str| {
            let (class, text) = (class.to_owned(), text.to_owned());
            Placed { shape: Shape::Text { class, at, anchor: Anchor::Start, text }, down: 0.0 }
        };
        let mut y = LINE;
        shapes.push(text([MARGIN, y], "title", title));
        for line in figure.notes.first().map(|note| lines(note)).unwrap_or_default() {
            y += LINE;
            shapes.push(text([MARGIN, y], "tick", &line));
        }
        let mut x = WIDTH;
        for (sign, meaning) in &figure.keys {
            let width = SIGN + text_width(meaning, Paint::of_text("name").1) + LINE;
            if x + width > WIDTH {
                (x, y) = (MARGIN, y + LINE);
            }
            shapes.extend(
                sign_shapes(*sign, [x, y - 4.0]).into_iter().map(|shape| Placed { shape, down: 0.0 }),
            );
            shapes.push(text([x + SIGN, y], "name", meaning));
            x += width;
        }
        let down = y + LINE;
        shapes.extend(chart.shapes.into_iter().map(|shape| Placed { shape, down }));
        Some(Self { title: title.to_owned(), height: down + chart.height, shapes })
    }

    /// Returns an SVG document.
    pub fn svg(&self) -> String {
        let [width, height] = [WIDTH, self.height].map(number);
        let view = format!("0 0 {width} {height}");
        let attributes = [
            ("xmlns", "http://www.w3.org/2000/svg"),
            ("width", width.as_str()),
            ("height", height.as_str()),
            ("viewBox", view.as_str()),
            ("font-family", "Helvetica, Arial, sans-serif"),
        ];
        let mut m = Markup::default();
        m.element("svg", &attributes, |m| {
            m.line();
            m.leaf("title", &[], &self.title);
            m.line();
            m.void("rect", &[("width", &width), ("height", &height), ("fill", "#ffffff")]);
            m.line();
            for placed in &self.shapes {
                placed.write(m);
                m.line();
            }
        });
        m.line();
        m.into_string()
    }
}

impl Placed {
    fn write(&self, m: &mut Markup) {
        let place = format!("translate(0 {})", number(self.down));
        let mut attributes: Vec<(&str, String)> = Vec::new();
        if self.down > 0.0 {
            attributes.push(("transform", place));
        }
        match &self.shape {
            Shape::Text { class, at: [x, y], anchor, text } => {
                let (color, size) = Paint::of_text(class);
                attributes.extend([
                    ("x", number(*x)),
                    ("y", number(*y)),
                    ("font-size", number(size)),
                    ("fill", hex(color)),
                    ("text-anchor", anchor.name().to_owned()),
                ]);
                m.leaf("text", &refer(&attributes), text);
            }
            Shape::Path { class, d } => {
                attributes.push(("d", d.clone()));
                painted(&mut attributes, class);
                m.void("path", &refer(&attributes));
            }
            Shape::Rect { class, at: [x, y], size: [width, height] } => {
                let [x, y, width, height] = [*x, *y, *width, *height].map(number);
                attributes.extend([("x", x), ("y", y), ("width", width), ("height", height)]);
                painted(&mut attributes, class);
                m.void("rect", &refer(&attributes));
            }
            Shape::Dot { class, at: [x, y], radius } => {
                let [x, y, radius] = [*x, *y, *radius].map(number);
                attributes.extend([("cx", x), ("cy", y), ("r", radius)]);
                painted(&mut attributes, class);
                m.void("circle", &refer(&attributes));
            }
        }
    }
}

/// Breaks text into lines that fit.
fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line)
                if text_width(&format!("{line} {word}"), Paint::of_text("tick").1)
                    <= WIDTH - 2.0 * MARGIN =>
            {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn refer<'a>(attributes: &'a [(&'a str, String)]) -> Vec<(&'a str, &'a str)> {
    attributes.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

fn painted(attributes: &mut Vec<(&str, String)>, class: &str) {
    let paint = Paint::of(class);
    attributes.push(("fill", paint.fill.map_or_else(|| "none".to_owned(), hex)));
    if let Some(stroke) = paint.stroke {
        attributes.push(("stroke", hex(stroke)));
        attributes.push(("stroke-width", number(paint.width)));
    }
    if !paint.dashes.is_empty() {
        let dashes: Vec<String> = paint.dashes.iter().map(|&dash| number(dash)).collect();
        attributes.push(("stroke-dasharray", dashes.join(" ")));
    }
    if paint.sheer {
        attributes.push(("opacity", number(SHEER)));
    }
}

/// Returns the sign of a key at the left end of its line.
fn sign_shapes(sign: Sign, [x, y]: [f64; 2]) -> Vec<Shape> {
    let line = |class: &str| Shape::Path {
        class: class.to_owned(),
        d: format!("M{} {}H{}", number(x), number(y), number(x + 24.0)),
    };
    let dot = |class: &str| Shape::Dot { class: class.to_owned(), at: [x + 12.0, y], radius: 3.2 };
    let path = |class: &str, d: String| Shape::Path { class: class.to_owned(), d };
    match sign {
        Sign::Line(class) => vec![line(class)],
        Sign::Dot(class) => vec![dot(class)],
        Sign::DotOnLine(class, dotted) => vec![line(class), dot(dotted)],
        Sign::Field(class) => {
            vec![Shape::Rect { class: class.to_owned(), at: [x + 2.0, y - 5.0], size: [20.0, 10.0] }]
        }
        Sign::Cross => {
            let [left, right, top, bottom] = [x + 8.0, x + 16.0, y - 4.0, y + 4.0].map(number);
            vec![path("cross", format!("M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}"))]
        }
        Sign::Tick(class) => {
            let [at, top, bottom] = [x + 12.0, y - 5.0, y + 5.0].map(number);
            vec![path(class, format!("M{at} {top}V{bottom}"))]
        }
    }
}

/// Widths of the characters from the blank to the tilde in Helvetica, thousandths of its size (Adobe's font metrics).
const WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556,
    556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278,
    500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469,
    556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500,
    278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];

/// Returns the width of text in Helvetica.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let width = |c: char| {
        let index = (c as usize).checked_sub(' ' as usize);
        index.and_then(|index| WIDTHS.get(index)).copied().unwrap_or(556)
    };
    text.chars().map(|c| f64::from(width(c))).sum::<f64>() * size / 1000.0
}
