//! What surrounds a plot: hairlines, values beside and below it, level lines. No text stands where data may be: names of lines are
//! for the figure's key.

use super::{Anchor, Axis, Drawing, WIDTH};

/// Left and right edge of a plot.
pub(crate) const MARGIN: f64 = 2.0;
/// Left edge of a plot with values beside it; they have room in the larger type of a narrow page, too.
pub(crate) const GUTTER: f64 = 78.0;
/// From a value to the plot.
const GAP: f64 = 8.0;
/// From the bottom line to the baseline of its labels: below the marks in the larger type of a narrow page, too.
const DROP: f64 = 20.0;
/// Width of a character in the larger type of a narrow page.
const CHARACTER: f64 = 10.5;

/// A plot's two axes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub x: Axis,
    pub y: Axis,
}

impl Frame {
    /// Where a pair of values lies.
    pub fn at(&self, x: f64, y: f64) -> [f64; 2] {
        [self.x.at(x), self.y.at(y)]
    }

    /// Hairlines at `ticks` with their values at the left, and the unit of all below them.
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

    /// The bottom line with short marks and labels under it: as many as have room in the larger type of a narrow page.
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

    /// A level line, where the plot has room for its value.
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
