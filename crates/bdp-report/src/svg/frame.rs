//! What surrounds a plot: hairlines, values beside and below it, level lines. No text stands where data may be: names of lines are
//! for the figure's key.

use super::{Anchor, Axis, Drawing};

/// Left and right edge of a plot.
pub(crate) const MARGIN: f64 = 2.0;
/// Left edge of a plot with values beside it; they have room in the larger type of a narrow page, too.
pub(crate) const GUTTER: f64 = 78.0;
/// From a value to the plot.
const GAP: f64 = 8.0;

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
            drawing.text([edge, self.y.start + 16.0], Anchor::End, "tick", unit);
        }
    }

    /// The bottom line with short marks and labels under it.
    pub fn bottom(&self, drawing: &mut Drawing, ticks: &[f64], format: impl Fn(f64) -> String) {
        let y = self.y.start;
        drawing.line([self.x.start, y], [self.x.end, y], "axis");
        for &tick in ticks {
            let x = self.x.at(tick);
            drawing.line([x, y], [x, y + 4.0], "axis");
            let anchor = match x {
                x if x < self.x.start + 14.0 => Anchor::Start,
                x if x > self.x.end - 24.0 => Anchor::End,
                _ => Anchor::Middle,
            };
            drawing.text([x, y + 16.0], anchor, "tick", &format(tick));
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
