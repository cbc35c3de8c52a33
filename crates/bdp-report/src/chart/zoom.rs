//! A chart over time that zooms. The curves are in a nested drawing with its own units; the script of the page zooms by changing
//! its `viewBox`. Axes and keys surround it.

use std::fmt::Write;

use maud::{Markup, html};

use super::axis::{Axis, Unit};
use super::description::{Chart, Fit, Marks, Panel, Series, Vertical};
use super::layout::{Frame, GUTTER};
use super::shape::{Drawing, MARGIN, WIDTH, number};

/// Top of the curves, with space for values at the pointer above, and their height.
const TOP: f64 = 22.0;
const HEIGHT: f64 = 184.0;
/// Height of the chart with its axis.
const WHOLE: f64 = 232.0;
const PLOT_WIDTH: f64 = WIDTH - MARGIN - GUTTER;

impl Chart {
    /// Returns a chart that zooms, over `seconds` seconds and for values up to `largest`.
    pub fn zooming(
        [heading, title, description]: [String; 3],
        (seconds, largest, unit): (f64, f64, Unit),
        fit: Fit,
        series: Vec<Series>,
    ) -> Self {
        let most = if unit == Unit::Bytes { 4 } else { 5 };
        let y = Axis::from_zero(largest, unit, most);
        let panels =
            vec![Panel::new(y, HEIGHT, series.into_iter().filter(|series| !series.is_empty()).collect())];
        let x = Axis::linear([0.0, seconds], Unit::SECONDS, 8);
        Self { heading, title, description, x, panels, notes: Vec::new(), zoom: Some(fit) }
    }

    pub fn noted(self, notes: impl IntoIterator<Item = String>) -> Self {
        Self { notes: notes.into_iter().collect(), ..self }
    }
}

/// Returns the top of the value axis for values up to `own`, next to a clipped curve up to `other`: a curve far above would flatten
/// them.
pub(crate) fn room_for(own: f64, other: f64) -> f64 {
    const NEAR: f64 = 2.5;
    if other <= NEAR * own { own.max(other) } else { own }
}

/// Returns the drawing of a chart with one panel of values.
pub(super) fn drawing(chart: &Chart, fit: Fit) -> Markup {
    let Some((panel, Vertical::Values(y))) = chart.panels.first().map(|panel| (panel, &panel.y)) else {
        return Markup::default();
    };
    let frame = Frame::new(&chart.x, panel, TOP);
    let (mut values, mut times) = (Drawing::default(), Drawing::default());
    frame.rules(&mut values);
    frame.bottom(&mut times);
    let inner = Inner { x: &chart.x, y };
    let unit = if y.unit == Unit::Bytes { "bytes" } else { y.unit.name() };
    html! {
        svg viewBox={ "0 0 " (number(WIDTH)) " " (number(WHOLE)) } role="img" class="chart" aria-label=(chart.title) {
            title { (chart.title) }
            desc { (chart.description) }
            g class="values" { @for shape in values.shapes() { (shape) } }
            svg class="plot" x=(number(GUTTER)) y=(number(TOP)) width=(number(PLOT_WIDTH)) height=(number(HEIGHT))
                viewBox={ "0 0 " (number(PLOT_WIDTH)) " " (number(HEIGHT)) } preserveAspectRatio="none"
                data-low=(y.low) data-high=(y.high) data-fit=(if fit == Fit::Both { "both" } else { "zero" })
                data-unit=(unit) {
                @for series in &panel.series { (inner.series(series)) }
            }
            g class="times" { @for shape in times.shapes() { (shape) } }
        }
        "\n"
    }
}

/// The nested drawing.
struct Inner<'a> {
    x: &'a Axis,
    y: &'a Axis,
}

impl Inner<'_> {
    fn series(&self, series: &Series) -> Markup {
        let mut d = String::new();
        match &series.marks {
            Marks::Band(_, ends) => {
                let [from, to] = ends.map(|at| self.x(at));
                let width = fine(to - from);
                return html! {
                    rect class=(series.class) x=(fine(from)) y="0" width=(width) height=(fine(HEIGHT)) {}
                };
            }
            Marks::Steps(points) => {
                let within = if series.is_cut { "no" } else { "yes" };
                let d = self.steps(points);
                return html! { path class=(series.class) d=(d) data-name=(series.label) data-within=(within) {} };
            }
            Marks::Dots(_, points) => {
                for &[at, value] in points {
                    let _ = write!(d, "M{} {}h0", fine(self.x(at)), fine(self.height_of(value)));
                }
            }
            Marks::Spans(spans) => {
                for &[[from, value], [to, _]] in spans {
                    let (from, to) = (fine(self.x(from)), fine(self.x(to)));
                    let _ = write!(d, "M{from} {}H{to}", fine(self.height_of(value)));
                }
            }
            _ => {}
        }
        html! { path class=(series.class) d=(d) {} }
    }

    fn x(&self, seconds: f64) -> f64 {
        self.x.share(seconds) * PLOT_WIDTH
    }

    fn steps(&self, points: &[(f64, Option<f64>)]) -> String {
        let mut d = String::new();
        // Current height of the curve, and the height last drawn.
        let (mut at, mut drawn) = (String::new(), None::<String>);
        for &(seconds, value) in points {
            let x = fine(self.x(seconds));
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
        let share = (value - self.y.low) / (self.y.high - self.y.low);
        HEIGHT * (1.0 - if share.is_finite() { share.clamp(-1.0, 1000.0) } else { 0.0 })
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
        let x = Axis::linear([0.0, 10.0], Unit::SECONDS, 8);
        let y = Axis::linear([0.0, 100.0], Unit::Bytes, 4);
        Inner { x: &x, y: &y }.steps(points)
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
        assert!(drawn(&[(0.0, Some(1e4)), (1.0, None)]).starts_with("M0 -18216"));
    }
}
