//! The frame of a plot: grid lines, tick labels, level lines. No text is placed over the data; line names belong in
//! the figure's key.

use super::{Anchor, Axis, Drawing, WIDTH};

/// Left and right margin of a plot.
pub(crate) const MARGIN: f64 = 2.0;
/// Left margin of a plot with labels beside it, wide enough for the larger type of a narrow page.
pub(crate) const GUTTER: f64 = 78.0;
/// Distance between a label and the plot.
const GAP: f64 = 8.0;
/// Distance from the bottom line to the baseline of its labels, also enough for the larger type of a narrow page.
const DROP: f64 = 20.0;
/// Width of a character in the larger type used on narrow pages.
const CHARACTER: f64 = 10.5;

/// The two axes of a plot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub x: Axis,
    pub y: Axis,
}

impl Frame {
    /// Returns the position of a pair of values.
    pub fn at(&self, x: f64, y: f64) -> [f64; 2] {
        [self.x.at(x), self.y.at(y)]
    }

    /// Draws grid lines at `ticks` with labels on the left and the unit below them.
    pub fn rules(&self, drawing: &mut Drawing, ticks: &[f64], unit: &str, format: impl Fn(f64) -> String) {
        let edge = self.x.start - GAP;
        for &tick in ticks {
            let y = self.y.at(tick);
            let base = (y - self.y.start).abs() < 0.5;
            drawing.line([self.x.start, y], [self.x.end, y], if base { "axis" } else { "grid" });
            if !base || tick != 0.0 {
                drawing.text([edge, y + 4.0], Anchor::End, "tick", &format(tick));
            }
        }
        if !unit.is_empty() {
            drawing.text([edge, self.y.start + DROP], Anchor::End, "tick", unit);
        }
    }

    /// Draws the bottom line with tick marks and as many labels as fit in the larger type of a narrow page.
    pub fn bottom(&self, drawing: &mut Drawing, ticks: &[f64], format: impl Fn(f64) -> String) {
        let y = self.y.start;
        drawing.line([self.x.start, y], [self.x.end, y], "axis");
        let mut taken = 0.0;
        for &tick in ticks {
            let x = self.x.at(tick);
            drawing.line([x, y], [x, y + 4.0], "axis");
            let label = format(tick);
            let half = CHARACTER * label.chars().count() as f64 / 2.0;
            let middle = x.min(WIDTH - half).max(self.x.start + half);
            if middle - half >= taken {
                drawing.text([middle, y + DROP], Anchor::Middle, "tick", &label);
                taken = middle + half + CHARACTER / 2.0;
            }
        }
    }

    /// Draws a level line if its value lies on the axis.
    pub fn level(&self, drawing: &mut Drawing, value: f64, class: &str) {
        if self.y.holds(value) {
            let y = self.y.at(value);
            drawing.line([self.x.start, y], [self.x.end, y], class);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_neither_cut_nor_on_top_of_each_other() {
        let x = Axis::linear([0.0, 5000.0], [10.0, WIDTH - 10.0]);
        let frame = Frame { x, y: Axis::linear([0.0, 1.0], [100.0, 0.0]) };
        let mut drawing = Drawing::default();
        let label = |v: f64| format!("{v:.0} Mbit/s");
        frame.bottom(&mut drawing, &[100.0, 1000.0, 1400.0, 2000.0, 3000.0, 4000.0, 4990.0], label);
        let drawn = drawing.finish(120.0, "", "").into_markup().into_string();
        let mut end = 0.0;
        let mut labels = 0;
        for text in drawn.split("<text ").skip(1) {
            let middle: f64 = text.split(" x=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
            let words = text.split('>').nth(1).unwrap().split('<').next().unwrap();
            let half = CHARACTER * words.len() as f64 / 2.0;
            assert!(middle - half >= end && middle + half <= WIDTH, "{words}: {drawn}");
            end = middle + half;
            labels += 1;
        }
        assert_eq!(labels, 4, "{drawn}");
    }
}
