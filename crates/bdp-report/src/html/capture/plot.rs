//! A zoomable chart over time. The curves are in a nested drawing with its own units; the script of the page zooms by changing
//! its `viewBox`. Axes and keys surround it.

use std::fmt::Write;

use crate::html::flight::{binary_unit, size_label};
use crate::html::page::{Figure, Sign};
use crate::html::timeline::plain;
use crate::markup::Markup;
use crate::svg::{Axis, Drawing, Frame, GUTTER, MARGIN, WIDTH, number};

/// Bottom and top of the curves; the space above is for values at the pointer.
const PLACE: [f64; 2] = [206.0, 22.0];
/// Height of the chart with its axis.
const HEIGHT: f64 = 232.0;
const PLOT_WIDTH: f64 = WIDTH - MARGIN - GUTTER;
const PLOT_HEIGHT: f64 = PLACE[0] - PLACE[1];

/// Unit of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Bytes, labelled with binary prefixes.
    Bytes,
    /// A unit with this name.
    Named(&'static str),
}

/// How the value axis follows the visible time range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// From minimum to maximum.
    Both,
    /// From zero to the maximum.
    FromZero,
}

/// Whether a curve extends the value axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Shown completely.
    Within,
    /// Clipped to the axis.
    AsFarAsThereIsRoom,
}

/// Returns the top of the value axis for values up to `own`, next to a clipped curve up to `other`: a curve far above would flatten
/// them.
pub(super) fn room_for(own: f64, other: f64) -> f64 {
    const NEAR: f64 = 2.5;
    if other <= NEAR * own { own.max(other) } else { own }
}

/// A chart under construction.
pub(super) struct Plot {
    x: Axis,
    y: Axis,
    unit: Unit,
    fit: Fit,
    inner: Markup,
    keys: Vec<(Sign, String)>,
}

impl Plot {
    /// Returns a plot over `seconds` seconds, for values up to `largest`.
    pub fn new(seconds: f64, largest: f64, unit: Unit, fit: Fit) -> Self {
        let x = Axis::linear([0.0, seconds], [0.0, PLOT_WIDTH]);
        let y = Axis::from_zero(largest, [PLOT_HEIGHT, 0.0]);
        Self { x, y, unit, fit, inner: Markup::default(), keys: Vec::new() }
    }

    /// Draws an area behind all curves, from one time to another.
    pub fn shade(&mut self, [from, to]: [f64; 2], meaning: &str) {
        let (left, width) = (self.x.at(from), self.x.at(to) - self.x.at(from));
        if width > 0.0 {
            let [x, width, height] = [left, width, PLOT_HEIGHT].map(fine);
            let place = [("class", "shade"), ("x", &*x), ("y", "0"), ("width", &width), ("height", &height)];
            self.inner.void("rect", &place);
            self.keys.push((Sign::Field("shade"), meaning.to_owned()));
        }
    }

    /// Draws a curve of values that each apply until the next one: pairs of seconds and value. A missing value is a gap. `name` is shown at the
    /// pointer.
    pub fn curve(
        &mut self,
        points: impl IntoIterator<Item = (f64, Option<f64>)>,
        class: &'static str,
        name: &str,
        meaning: &str,
        place: Place,
    ) {
        let d = self.steps(points);
        if d.is_empty() {
            return;
        }
        let within = if place == Place::Within { "yes" } else { "no" };
        let attributes = [("class", class), ("d", d.as_str()), ("data-name", name), ("data-within", within)];
        self.inner.void("path", &attributes);
        self.keys.push((Sign::Line(class), meaning.to_owned()));
    }

    /// Draws marks at pairs of seconds and value.
    pub fn marks(&mut self, points: impl IntoIterator<Item = [f64; 2]>, class: &'static str, meaning: &str) {
        let mut d = String::new();
        for [at, value] in points {
            let _ = write!(d, "M{} {}h0", fine(self.x.at(at)), fine(self.height_of(value)));
        }
        self.stretch(&d, Sign::Dot(class), class, meaning);
    }

    /// Draws horizontal segments: from, to, in seconds, and their value.
    pub fn stretches(
        &mut self,
        points: impl IntoIterator<Item = [f64; 3]>,
        class: &'static str,
        meaning: &str,
    ) {
        let mut d = String::new();
        for [from, to, value] in points {
            let (from, to) = (fine(self.x.at(from)), fine(self.x.at(to)));
            let _ = write!(d, "M{from} {}H{to}", fine(self.height_of(value)));
        }
        self.stretch(&d, Sign::Line(class), class, meaning);
    }

    fn stretch(&mut self, d: &str, sign: Sign, class: &str, meaning: &str) {
        if !d.is_empty() {
            self.inner.void("path", &[("class", class), ("d", d)]);
            self.keys.push((sign, meaning.to_owned()));
        }
    }

    fn steps(&self, points: impl IntoIterator<Item = (f64, Option<f64>)>) -> String {
        let mut d = String::new();
        // Current height of the curve, and the height last drawn.
        let (mut at, mut drawn) = (String::new(), None::<String>);
        for (seconds, value) in points {
            let x = fine(self.x.at(seconds));
            let y = value.map(|value| fine(self.height_of(value)));
            match (&drawn, &y) {
                (Some(before), Some(now)) if before == now => {}
                (Some(_), Some(now)) => {
                    let _ = write!(d, "H{x}V{now}");
                }
                (Some(_), None) => {
                    let _ = write!(d, "H{x}");
                }
                (None, Some(now)) => {
                    let _ = write!(d, "M{x} {now}");
                }
                (None, None) => {}
            }
            (at, drawn) = (x, y);
        }
        if drawn.is_some() {
            let _ = write!(d, "H{at}");
        }
        d
    }

    /// Returns the height on the axis, or above it for larger values: the drawing is clipped there.
    fn height_of(&self, value: f64) -> f64 {
        if self.y.holds(value) || !value.is_finite() {
            return self.y.at(value);
        }
        let share = (value - self.y.low) / (self.y.high - self.y.low);
        self.y.start + (self.y.end - self.y.start) * share.clamp(-1.0, 1000.0)
    }

    /// Returns the figure with heading, text alternative and caption.
    pub fn finish(
        self,
        heading: &'static str,
        title: &str,
        description: &str,
        notes: Vec<String>,
    ) -> Figure<'static> {
        let x = self.x.over([GUTTER, WIDTH - MARGIN]);
        let frame = Frame { x, y: self.y.over(PLACE) };
        let (mut values, mut times) = (Drawing::default(), Drawing::default());
        match self.unit {
            Unit::Bytes => {
                let ticks = frame.y.ticks_in(binary_unit(frame.y.high), 4);
                frame.rules(&mut values, &ticks, "", size_label);
            }
            Unit::Named(unit) => frame.rules(&mut values, &frame.y.ticks(5), unit, plain),
        }
        frame.bottom(&mut times, &x.ticks(8), |s| format!("{} s", plain(s)));
        let view = format!("0 0 {} {}", number(WIDTH), number(HEIGHT));
        let own = format!("0 0 {} {}", number(PLOT_WIDTH), number(PLOT_HEIGHT));
        let [left, top, width, height] = [GUTTER, PLACE[1], PLOT_WIDTH, PLOT_HEIGHT].map(number);
        let [low, high] = [self.y.low, self.y.high].map(|value| value.to_string());
        let plot = [
            ("class", "plot"),
            ("x", &*left),
            ("y", &top),
            ("width", &width),
            ("height", &height),
            ("viewBox", &own),
            ("preserveAspectRatio", "none"),
            ("data-low", &low),
            ("data-high", &high),
            ("data-fit", if self.fit == Fit::Both { "both" } else { "zero" }),
            ("data-unit", if let Unit::Named(unit) = self.unit { unit } else { "bytes" }),
        ];
        let mut chart = Markup::default();
        let outer = [("viewBox", view.as_str()), ("role", "img"), ("class", "chart"), ("aria-label", title)];
        chart.element("svg", &outer, |m| {
            m.leaf("title", &[], title);
            m.leaf("desc", &[], description);
            m.append(values.into_group("values"));
            m.element("svg", &plot, |m| m.append(self.inner));
            m.append(times.into_group("times"));
        });
        chart.line();
        Figure { title: heading, keys: self.keys, notes, chart: chart.into() }
    }
}

/// Formats a coordinate to three decimals, as needed for zooming in.
fn fine(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let digits = format!("{value:.3}");
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    if digits == "-0" { "0".to_owned() } else { digits.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(points: &[(f64, Option<f64>)]) -> String {
        Plot::new(10.0, 100.0 / 1.06, Unit::Bytes, Fit::Both).steps(points.iter().copied())
    }

    #[test]
    fn a_value_holds_until_the_next() {
        // 64 units per second, 1.84 per byte.
        let points = [(0.0, Some(0.0)), (1.0, Some(50.0)), (2.0, Some(50.0)), (10.0, Some(50.0))];
        assert_eq!(drawn(&points), "M0 184H64V92H640");
        assert_eq!(drawn(&[]), "");
    }

    #[test]
    fn what_is_not_known_is_a_gap() {
        let points = [(0.0, Some(0.0)), (1.0, None), (2.0, None), (5.0, Some(100.0)), (10.0, Some(100.0))];
        assert_eq!(drawn(&points), "M0 184H64M320 0H640");
    }

    #[test]
    fn a_curve_far_above_flattens_no_other() {
        assert_eq!(room_for(100.0, 200.0), 200.0);
        assert_eq!(room_for(100.0, 50.0), 100.0);
        assert_eq!(room_for(100.0, 1e6), 100.0);
        // It leaves the drawing at the top.
        assert!(Plot::new(10.0, 100.0, Unit::Bytes, Fit::Both).height_of(1e6) < -1000.0);
    }
}
