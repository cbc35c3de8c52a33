//! What a chart shows, in the units of its axes.

use serde::Serialize;

use super::axis::Axis;
use super::shape::Sign;

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
    /// An area across all panels, drawn at least this wide.
    Band(f64, [f64; 2]),
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
            Marks::Band(_, [from, to]) => from > to,
            Marks::Level(_) => false,
        }
    }
}

impl Chart {
    /// Returns the signs of the key with their meanings.
    pub(super) fn keys<'a>(&'a self) -> Vec<(Sign, &'a str)> {
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
                (Marks::Boxes(_) | Marks::Band(..), _) => Sign::Field(class),
                (Marks::Ticks(..) | Marks::Upright(_), _) => Sign::Tick(class),
            };
            (sign, series.name.as_str())
        };
        named.map(key).collect()
    }
}
