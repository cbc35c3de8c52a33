//! What surrounds a plot: hairlines, their labels inside the plot, values along the bottom, lines with a name.

use super::{Anchor, Axis, Drawing};

/// Left and right edge of a plot.
pub(crate) const MARGIN: f64 = 2.0;

/// A plot's two axes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub x: Axis,
    pub y: Axis,
}

/// A horizontal line with its name.
pub(crate) struct Label {
    pub value: f64,
    pub text: String,
    pub class: &'static str,
}

impl Frame {
    /// Where a pair of values lies.
    pub fn at(&self, x: f64, y: f64) -> [f64; 2] {
        [self.x.at(x), self.y.at(y)]
    }

    /// Hairlines at `ticks` with labels above them; the topmost alone says the unit.
    pub fn rules(&self, drawing: &mut Drawing, ticks: &[f64], unit: &str, format: impl Fn(f64) -> String) {
        for (i, &tick) in ticks.iter().enumerate() {
            let y = self.y.at(tick);
            let base = (y - self.y.start).abs() < 0.5;
            drawing.line([self.x.start, y], [self.x.end, y], if base { "axis" } else { "grid" });
            let last = i + 1 == ticks.len();
            let text =
                if last && !unit.is_empty() { format!("{} {unit}", format(tick)) } else { format(tick) };
            if !base || tick != 0.0 {
                drawing.text([self.x.start, y - 3.0], Anchor::Start, "tick", &text);
            }
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

    /// Horizontal lines with their names at the right end, moved apart where they would touch.
    pub fn levels(&self, drawing: &mut Drawing, mut labels: Vec<Label>) {
        labels.retain(|l| self.y.holds(l.value));
        labels.sort_by(|a, b| b.value.total_cmp(&a.value));
        let mut least = self.y.end.min(self.y.start) + 9.0;
        for label in labels {
            let y = self.y.at(label.value);
            drawing.line([self.x.start, y], [self.x.end, y], label.class);
            let baseline = (y - 3.0).max(least);
            drawing.text([self.x.end, baseline], Anchor::End, "name", &label.text);
            least = baseline + 13.0;
        }
    }
}
