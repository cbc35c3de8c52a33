//! A chart as data: what is drawn, in the units of its axes. [`layout`] makes a drawing for pages of it, [`zoom`] one that
//! zooms, [`export`] files, and [`terminal`] text.

mod axis;
pub(crate) mod export;
mod layout;
mod shape;
pub(crate) mod terminal;
mod zoom;

use maud::{Markup, html};
use serde::Serialize;

pub(crate) use axis::{Axis, Unit, plain};
pub(crate) use layout::{MARGIN, WIDTH};
use shape::Sign;
pub(crate) use shape::{Anchor, Drawing, number};
pub(crate) use zoom::room_for;

/// A chart: panels above each other on a common horizontal axis.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Chart {
    pub heading: String,
    /// What is drawn, and its main figures: the text alternative.
    pub title: String,
    pub description: String,
    pub x: Axis,
    pub panels: Vec<Panel>,
    pub notes: Vec<String>,
    /// How the vertical axis follows the time shown, if the chart zooms.
    pub zoom: Option<Fit>,
}

/// How the vertical axis of a chart that zooms follows the visible time range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Fit {
    /// From minimum to maximum.
    Both,
    /// From zero to the maximum.
    FromZero,
}

/// Series with one vertical axis.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Panel {
    pub y: Vertical,
    /// In the units of a chart's width, which is 720.
    pub height: f64,
    /// The first is drawn above the others of its kind.
    pub series: Vec<Series>,
}

/// The vertical axis of a panel.
#[derive(Debug, Clone, Serialize)]
pub(crate) enum Vertical {
    Values(Axis),
    /// A row for each thing, with its name on the left and figures on the right. A row's value is its index.
    Rows(Vec<[String; 2]>),
    /// None: a strip from 0 to 1.
    Strip,
    /// None, with a horizontal axis of shares in place of the common one.
    Shares,
}

/// Marks of one meaning.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Series {
    /// Its meaning in the key. One without belongs to the series before it.
    pub name: String,
    /// A short name: at the pointer of a chart that zooms, in the key of a terminal, and beside a share.
    pub label: String,
    /// Style of the page's sheet.
    pub class: &'static str,
    pub marks: Marks,
    /// Whether values above the axis leave the drawing.
    pub is_cut: bool,
}

/// Where a series is drawn: pairs of values of the two axes.
#[derive(Debug, Clone, Serialize)]
pub(crate) enum Marks {
    /// Straight lines between points, with a gap at each missing one.
    Line(Vec<Option<[f64; 2]>>),
    /// Values that each apply until the next one.
    Steps(Vec<(f64, Option<f64>)>),
    Dots(f64, Vec<[f64; 2]>),
    Crosses(Vec<[f64; 2]>),
    /// Straight segments between two points.
    Spans(Vec<[[f64; 2]; 2]>),
    /// Short upright lines of this half height at points.
    Ticks(f64, Vec<[f64; 2]>),
    /// Filled boxes between two corners.
    Boxes(Vec<[[f64; 2]; 2]>),
    /// A horizontal line.
    Level(f64),
    /// Upright lines.
    Upright(Vec<f64>),
    /// An area across all panels.
    Band([f64; 2]),
}

impl Series {
    pub fn new(class: &'static str, name: impl Into<String>, marks: Marks) -> Self {
        Self { name: name.into(), label: String::new(), class, marks, is_cut: false }
    }

    /// Returns marks that belong to the series before.
    pub fn and(class: &'static str, marks: Marks) -> Self {
        Self::new(class, "", marks)
    }

    pub fn line(
        class: &'static str,
        name: impl Into<String>,
        points: impl IntoIterator<Item = [f64; 2]>,
    ) -> Self {
        Self::new(class, name, Marks::Line(points.into_iter().map(Some).collect()))
    }

    pub fn labelled(self, label: impl Into<String>) -> Self {
        Self { label: label.into(), ..self }
    }

    /// Whether nothing would be drawn.
    pub fn is_empty(&self) -> bool {
        match &self.marks {
            Marks::Line(points) => points.iter().flatten().next().is_none(),
            Marks::Steps(points) => points.iter().all(|point| point.1.is_none()),
            Marks::Dots(_, points) | Marks::Crosses(points) | Marks::Ticks(_, points) => points.is_empty(),
            Marks::Spans(pairs) | Marks::Boxes(pairs) => pairs.is_empty(),
            Marks::Upright(at) => at.is_empty(),
            Marks::Band([from, to]) => from > to,
            Marks::Level(_) => false,
        }
    }
}

impl Chart {
    /// Returns the signs of the key with their meanings.
    fn keys<'a>(&'a self) -> Vec<(Sign, &'a str)> {
        let all: Vec<&'a Series> = self.panels.iter().flat_map(|panel| &panel.series).collect();
        let named = all.iter().enumerate().filter(|(_, series)| !series.name.is_empty());
        let key = |(index, series): (usize, &&'a Series)| {
            let class = series.class;
            let sign = match (&series.marks, all.get(index + 1)) {
                (Marks::Line(_), Some(next))
                    if next.name.is_empty() && matches!(next.marks, Marks::Dots(..)) =>
                {
                    Sign::DotOnLine(class, next.class)
                }
                (Marks::Line(_) | Marks::Steps(_) | Marks::Spans(_) | Marks::Level(_), _) => {
                    Sign::Line(class)
                }
                (Marks::Dots(..), _) => Sign::Dot(class),
                (Marks::Crosses(_), _) => Sign::Cross(class),
                (Marks::Boxes(_) | Marks::Band(_), _) => Sign::Field(class),
                (Marks::Ticks(..) | Marks::Upright(_), _) => Sign::Tick(class),
            };
            (sign, series.name.as_str())
        };
        named.map(key).collect()
    }

    /// Returns the figure: heading, key and notes beside the drawing.
    pub fn figure(&self) -> Markup {
        let drawing = match self.zoom {
            Some(fit) => zoom::drawing(self, fit),
            None => {
                let (height, drawing) = layout::layout(self);
                drawing.svg(height, &self.title, &self.description)
            }
        };
        let keys = self.keys();
        html! {
            figure {
                figcaption {
                    h3 { (self.heading) }
                    @if !keys.is_empty() {
                        ul.keys {
                            @for (sign, meaning) in keys {
                                li {
                                    svg viewBox="0 0 24 12" aria-hidden="true" {
                                        @for shape in sign.shapes([0.0, 6.0]) { (shape) }
                                    }
                                    span { (meaning) }
                                }
                            }
                        }
                    }
                    @for note in self.notes.iter().filter(|note| !note.is_empty()) { p { (note) } }
                }
                (drawing)
            }
            "\n"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let points = [[0.0, 1.0], [2.0, 3.0]];
        let series = vec![
            Series::line("here", "goodput", points),
            Series::and("here-dot", Marks::Dots(2.0, points.to_vec())),
            Series::new("shade", "not in the figures", Marks::Band([0.0, 1.0])),
        ];
        Chart {
            heading: "Goodput".to_owned(),
            title: "a → b".to_owned(),
            description: "2 points".to_owned(),
            x: Axis::linear([0.0, 2.0], Unit::SECONDS, 3),
            panels: vec![Panel::new(Axis::from_zero(3.0, Unit::BitsPerSecond, 3), 100.0, series)],
            notes: Vec::new(),
            zoom: None,
        }
    }

    #[test]
    fn marks_without_a_name_share_the_key_of_those_before() {
        let chart = chart();
        let keys = chart.keys();
        assert!(matches!(keys[0], (Sign::DotOnLine("here", "here-dot"), "goodput")), "{keys:?}");
        assert!(matches!(keys[1], (Sign::Field("shade"), "not in the figures")), "{keys:?}");
        assert_eq!(keys.len(), 2);
    }

    #[test]
    fn areas_are_below_lines_and_those_below_dots() {
        let page = chart().figure().into_string();
        let drawn = page.split("class=\"chart\"").nth(1).unwrap();
        let place = |class: &str| drawn.find(&format!("class=\"{class}\"")).unwrap();
        assert!(place("shade") < place("here") && place("here") < place("here-dot"), "{drawn}");
    }

    #[test]
    fn chart_is_data() {
        let data = serde_json::to_value(chart()).unwrap();
        assert_eq!(data["panels"][0]["series"][0]["marks"]["Line"][1], serde_json::json!([2.0, 3.0]));
        assert_eq!(data["x"]["unit"], serde_json::json!({"Named": ["s", 1.0]}));
    }
}
