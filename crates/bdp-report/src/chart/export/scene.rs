//! A chart with its title and key in one drawing.

use maud::{Markup, html};

use super::paint::{Paint, SHEER, hex};
use crate::chart::shape::Shape;
use crate::chart::{Anchor, Chart, Drawing, MARGIN, WIDTH, layout, number};

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
    /// Returns a chart with this title above it.
    pub fn of_chart(title: &str, chart: &Chart) -> Self {
        let mut head = Drawing::default();
        let mut y = LINE;
        head.text([MARGIN, y], Anchor::Start, "title", title);
        for line in chart.notes.first().map(|note| lines(note)).unwrap_or_default() {
            y += LINE;
            head.text([MARGIN, y], Anchor::Start, "tick", line);
        }
        let mut x = WIDTH;
        for (sign, meaning) in chart.keys() {
            let width = SIGN + text_width(meaning, Paint::of_text("name").1) + LINE;
            if x + width > WIDTH {
                (x, y) = (MARGIN, y + LINE);
            }
            head.body.extend(sign.shapes([x, y - 4.0]));
            head.text([x + SIGN, y], Anchor::Start, "name", meaning);
            x += width;
        }
        let (height, drawing) = layout::layout(chart);
        let down = y + LINE;
        let placed = |down: f64| move |shape: &Shape| Placed { shape: shape.clone(), down };
        let shapes = head.shapes().map(placed(0.0)).chain(drawing.shapes().map(placed(down)));
        Self { title: title.to_owned(), height: down + height, shapes: shapes.collect() }
    }

    /// Returns an SVG document.
    pub fn svg(&self) -> String {
        let [width, height] = [WIDTH, self.height].map(number);
        let svg = html! {
            svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) }
                font-family="Helvetica, Arial, sans-serif" {
                "\n"
                title { (self.title) }
                "\n"
                rect width=(width) height=(height) fill="#ffffff" {}
                "\n"
                @for placed in &self.shapes { (placed.svg()) "\n" }
            }
            "\n"
        };
        crate::html::printable(svg)
    }
}

impl Placed {
    fn svg(&self) -> Markup {
        let place = (self.down > 0.0).then(|| format!("translate(0 {})", number(self.down)));
        let paint = |class: &str| {
            let Paint { fill, stroke, width, dashes, sheer } = Paint::of(class);
            let dashes: Vec<String> = dashes.iter().map(|&dash| number(dash)).collect();
            (
                fill.map_or_else(|| "none".to_owned(), hex),
                stroke.map(hex),
                stroke.map(|_| number(width)),
                (!dashes.is_empty()).then(|| dashes.join(" ")),
                sheer.then(|| number(SHEER)),
            )
        };
        html! {
            @match &self.shape {
                Shape::Text { class, at: [x, y], anchor, text } => {
                    @let (color, size) = Paint::of_text(class);
                    text transform=[place] x=(number(*x)) y=(number(*y)) font-size=(number(size)) fill=(hex(color))
                        text-anchor=(anchor.name()) { (text) }
                }
                Shape::Path { class, d } => {
                    @let (fill, stroke, width, dashes, opacity) = paint(class);
                    path transform=[place] d=(d) fill=(fill) stroke=[stroke] stroke-width=[width]
                        stroke-dasharray=[dashes] opacity=[opacity] {}
                }
                Shape::Rect { class, at: [x, y], size: [wide, high] } => {
                    @let (fill, stroke, width, dashes, opacity) = paint(class);
                    rect transform=[place] x=(number(*x)) y=(number(*y)) width=(number(*wide)) height=(number(*high))
                        fill=(fill) stroke=[stroke] stroke-width=[width] stroke-dasharray=[dashes] opacity=[opacity] {}
                }
                Shape::Dot { class, at: [x, y], radius } => {
                    @let (fill, stroke, width, dashes, opacity) = paint(class);
                    circle transform=[place] cx=(number(*x)) cy=(number(*y)) r=(number(*radius))
                        fill=(fill) stroke=[stroke] stroke-width=[width] stroke-dasharray=[dashes] opacity=[opacity] {}
                }
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
