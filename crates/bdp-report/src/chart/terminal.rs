//! A curve drawn as text, with both axes logarithmic.

use bdp_model::units::format_bps;

use super::{Chart, Marks, Unit};
use crate::grid::width;
use crate::number::size;
use crate::style::{Style, Tint};

/// Lines of the plot area.
const HEIGHT: usize = 12;
/// Columns of the plot area if there is room.
const WIDTH: usize = 66;
/// Columns of `100 Mbit/s`, the widest label of the vertical axis.
const LABEL: usize = 10;
/// Columns needed by one label of the horizontal axis.
const TICK: usize = 10;

/// Characters of a chart.
struct Glyphs {
    here: char,
    model: char,
    both: char,
    product: char,
    knee: char,
    vertical: char,
    tick_left: char,
    corner: char,
    horizontal: char,
    tick_down: char,
    times: char,
}

const UNICODE: Glyphs = Glyphs {
    here: '●',
    model: '○',
    both: '◉',
    product: '┊',
    knee: '▲',
    vertical: '│',
    tick_left: '┤',
    corner: '└',
    horizontal: '─',
    tick_down: '┬',
    times: '×',
};

const ASCII: Glyphs = Glyphs {
    here: 'o',
    model: 'x',
    both: '*',
    product: ':',
    knee: '^',
    vertical: '|',
    tick_left: '+',
    corner: '+',
    horizontal: '-',
    tick_down: '|',
    times: 'x',
};

/// Returns the lines of a chart of positive values: plot, axis, axis labels, legend. The series are known by their labels.
pub(crate) fn lines(chart: &Chart, style: &Style) -> Vec<String> {
    let glyphs = if style.unicode { &UNICODE } else { &ASCII };
    let columns = style.columns().saturating_sub(LABEL + 2).min(WIDTH);
    let marks = |label: &str| {
        let mut all = chart.panels.iter().flat_map(|panel| &panel.series);
        all.find(|series| series.label == label).map(|series| &series.marks)
    };
    let points = |label: &str| -> Vec<[f64; 2]> {
        match marks(label) {
            Some(Marks::Line(points)) => points.iter().flatten().copied().collect(),
            Some(Marks::Dots(_, points)) => points.clone(),
            _ => Vec::new(),
        }
    };
    let (here, model) = (points("here"), points("model"));
    let all = || here.iter().chain(&model);
    let x = Axis::over(all().map(|p| p[0]), columns);
    let y = Axis::rounded(all().map(|p| p[1]), HEIGHT);

    let mut canvas = Canvas::new(columns);
    let product = match marks("product") {
        Some(Marks::Upright(at)) => at.first().and_then(|&at| x.cell(at)),
        _ => None,
    };
    if let Some(column) = product {
        canvas.column(column, glyphs.product);
    }
    for pair in here.windows(2) {
        let [from, to] = [pair[0], pair[1]].map(|p| [x.share(p[0]), y.share(p[1])]);
        canvas.line(from, to, style);
    }
    canvas.marks(&here, &model, &x, &y, glyphs);

    let mut lines = canvas.lines(&y, glyphs, style);
    let knee = points("knee").first().and_then(|knee| x.cell(knee[0]));
    lines.extend(x.bottom(glyphs, knee, chart.x.unit));
    let times_rtt = format!("rate {} RTT", glyphs.times);
    let legend = [
        (true, glyphs.here, Tint::None, "here"),
        (!model.is_empty(), glyphs.model, Tint::Model, "model"),
        (!model.is_empty(), glyphs.both, Tint::None, "both"),
        (knee.is_some(), glyphs.knee, Tint::None, "knee"),
        (product.is_some(), glyphs.product, Tint::Faint, times_rtt.as_str()),
    ];
    let shown = legend.into_iter().filter(|entry| entry.0);
    lines.extend(lay_out(shown.map(|(_, glyph, tint, meaning)| (glyph, tint, meaning)), style));
    lines
}

/// Lays out signs and their meanings side by side as far as there is room.
fn lay_out<'a>(legend: impl Iterator<Item = (char, Tint, &'a str)>, style: &Style) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut used = 0;
    for (glyph, tint, meaning) in legend {
        let entry = format!("{} {meaning}", style.paint(tint, &glyph.to_string()));
        let taken = 3 + 2 + width(meaning);
        match lines.last_mut() {
            Some(line) if used + taken <= style.columns() => {
                line.push_str("   ");
                line.push_str(&entry);
                used += taken;
            }
            _ => {
                lines.push(format!("{}{entry}", " ".repeat(LABEL + 2)));
                used = LABEL + 2 + taken - 3;
            }
        }
    }
    lines
}

/// A logarithmic axis over a number of cells.
struct Axis {
    low: f64,
    high: f64,
    cells: usize,
}

impl Axis {
    /// Returns an axis from the smallest to the largest value.
    fn over(values: impl Iterator<Item = f64>, cells: usize) -> Self {
        let (low, high) = values.fold((f64::INFINITY, 0.0), |(l, h), v| (v.min(l), v.max(h)));
        if low < high { Self { low, high, cells } } else { Self { low: low / 2.0, high: low * 2.0, cells } }
    }

    /// Like [`Axis::over`], extended to the next of 1, 2, 5 x 10^n.
    fn rounded(values: impl Iterator<Item = f64>, cells: usize) -> Self {
        let exact = Self::over(values, cells);
        let steps = steps(exact.low / 10.0, exact.high * 10.0);
        let low = steps.iter().copied().rfind(|&s| s <= exact.low).unwrap_or(exact.low);
        let high = steps.iter().copied().find(|&s| s >= exact.high).unwrap_or(exact.high);
        Self { low, high, cells }
    }

    /// Returns the position of a value on the axis, 0..=1.
    fn share(&self, value: f64) -> f64 {
        ((value / self.low).ln() / (self.high / self.low).ln()).clamp(0.0, 1.0)
    }

    /// Returns the cell of a value, counted from the low end; `None` outside the axis.
    fn cell(&self, value: f64) -> Option<usize> {
        (self.low..=self.high).contains(&value).then(|| cell(self.share(value), self.cells))
    }

    /// Returns the labels of a vertical axis by row from the top: decades, or 1, 2, 5 if there are few.
    fn labels(&self) -> Vec<(usize, String)> {
        let decades: Vec<f64> = steps(self.low, self.high).into_iter().filter(|&s| is_decade(s)).collect();
        let ticks = if decades.len() >= 3 { decades } else { steps(self.low, self.high) };
        let mut labels: Vec<(usize, String)> = Vec::new();
        for tick in ticks {
            let row = self.cells - 1 - cell(self.share(tick), self.cells);
            if labels.iter().all(|(r, _)| r.abs_diff(row) > 1) {
                labels.push((row, format_bps(tick)));
            }
        }
        labels
    }

    /// Returns the horizontal axis and its labels: as many powers of two as fit, or the ends if there is none.
    fn bottom(&self, glyphs: &Glyphs, knee: Option<usize>, unit: Unit) -> [String; 2] {
        let octaves = (self.high / self.low).log2();
        let per_octave = self.cells as f64 / octaves;
        let stride = (1..=40).find(|&s| f64::from(s) * per_octave >= TICK as f64).unwrap_or(40);
        let mut ticks: Vec<f64> = (0..63)
            .filter(|k| k % stride == 0)
            .map(|k| 2f64.powi(k))
            .filter(|t| self.cell(*t).is_some())
            .collect();
        if ticks.len() < 2 {
            ticks = vec![self.low, self.high];
        }
        let mut axis: Vec<char> = vec![glyphs.horizontal; self.cells];
        let mut labels: Vec<char> = Vec::new();
        for tick in ticks {
            let column = cell(self.share(tick), self.cells);
            let text = match unit {
                Unit::Bytes if tick.fract() == 0.0 => bdp_model::ByteCount::bytes(tick as u64).to_string(),
                Unit::Bytes => size(tick),
                _ => tick.to_string(),
            };
            let start =
                (column + 1).saturating_sub(text.len() / 2).min((self.cells + 1).saturating_sub(text.len()));
            if start < labels.len() + usize::from(!labels.is_empty()) {
                continue;
            }
            axis[column] = glyphs.tick_down;
            labels.resize(start, ' ');
            labels.extend(text.chars());
        }
        if let Some(column) = knee {
            axis[column] = glyphs.knee;
        }
        let indent = " ".repeat(LABEL + 1);
        [
            format!("{indent}{}{}", glyphs.corner, axis.into_iter().collect::<String>()),
            format!("{indent}{}", labels.into_iter().collect::<String>()),
        ]
    }
}

/// Returns the cell, of `cells`, for a position on the axis.
fn cell(share: f64, cells: usize) -> usize {
    (share * (cells - 1) as f64).round() as usize
}

/// Returns 1, 2, 5 x 10^n from `low` to `high`.
fn steps(low: f64, high: f64) -> Vec<f64> {
    let slack = 1e-9;
    (-3..19)
        .flat_map(|n| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(n)))
        .filter(|&s| s >= low * (1.0 - slack) && s <= high * (1.0 + slack))
        .collect()
}

fn is_decade(value: f64) -> bool {
    (value.log10() - value.log10().round()).abs() < 1e-6
}

/// The plot area.
struct Canvas {
    columns: usize,
    cells: Vec<(char, Tint)>,
}

impl Canvas {
    fn new(columns: usize) -> Self {
        Self { columns, cells: vec![(' ', Tint::None); columns * HEIGHT] }
    }

    fn at(&mut self, column: usize, row: usize) -> &mut (char, Tint) {
        &mut self.cells[row * self.columns + column]
    }

    /// Draws a dotted vertical line.
    fn column(&mut self, column: usize, glyph: char) {
        for row in 0..HEIGHT {
            *self.at(column, row) = (glyph, Tint::Faint);
        }
    }

    /// Draws a straight line between two positions on the axes, in Braille dots or full stops.
    fn line(&mut self, [x0, y0]: [f64; 2], [x1, y1]: [f64; 2], style: &Style) {
        let steps = 8 * (self.columns + HEIGHT);
        for step in 0..=steps {
            let t = step as f64 / steps as f64;
            let (x, y) = (x0 + (x1 - x0) * t, y0 + (y1 - y0) * t);
            let (column, row) = (cell(x, self.columns), HEIGHT - 1 - cell(y, HEIGHT));
            let columns = self.columns;
            let place = self.at(column, row);
            if !style.unicode {
                *place = ('.', Tint::None);
                continue;
            }
            // Which of the cell's 2 x 4 dots, from the distance to the cell's centre.
            let across = x * (columns - 1) as f64 - column as f64 + 0.5;
            let down = (1.0 - y) * (HEIGHT - 1) as f64 - row as f64 + 0.5;
            let (dot_x, dot_y) = (((across * 2.0) as usize).min(1), ((down * 4.0) as usize).min(3));
            let before = if is_braille(place.0) { place.0 as u32 } else { BRAILLE };
            if let Some(glyph) = char::from_u32(before | DOTS[dot_x][dot_y]) {
                *place = (glyph, Tint::None);
            }
        }
    }

    /// Marks measured and modelled points, with a separate sign if both are in one cell.
    fn marks(&mut self, here: &[[f64; 2]], model: &[[f64; 2]], x: &Axis, y: &Axis, glyphs: &Glyphs) {
        let columns = self.columns;
        let place = |p: &[f64; 2]| (cell(x.share(p[0]), columns), HEIGHT - 1 - cell(y.share(p[1]), HEIGHT));
        let here: Vec<_> = here.iter().map(place).collect();
        let model: Vec<_> = model.iter().map(place).collect();
        for &(column, row) in &here {
            *self.at(column, row) = (glyphs.here, Tint::None);
        }
        for &(column, row) in &model {
            let both = here.contains(&(column, row));
            *self.at(column, row) =
                if both { (glyphs.both, Tint::None) } else { (glyphs.model, Tint::Model) };
        }
    }

    /// Returns the rows with the vertical axis in front.
    fn lines(&self, y: &Axis, glyphs: &Glyphs, style: &Style) -> Vec<String> {
        let labels = y.labels();
        self.cells
            .chunks(self.columns)
            .enumerate()
            .map(|(row, cells)| {
                let label = labels.iter().find(|(r, _)| *r == row).map(|(_, text)| text.as_str());
                let axis = if label.is_some() { glyphs.tick_left } else { glyphs.vertical };
                let label = label.unwrap_or_default();
                let used = cells.iter().rposition(|c| c.0 != ' ').map_or(0, |last| last + 1);
                let mut line = format!("{}{label} {axis}", " ".repeat(LABEL.saturating_sub(width(label))));
                for &(glyph, tint) in &cells[..used] {
                    line.push_str(&style.paint(tint, &glyph.to_string()));
                }
                line
            })
            .collect()
    }
}

/// The Braille pattern without dots.
const BRAILLE: u32 = 0x2800;
/// Bits of a Braille pattern by column and row.
const DOTS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

fn is_braille(glyph: char) -> bool {
    (BRAILLE..BRAILLE + 0x100).contains(&(glyph as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vertical_axis_reaches_out_to_round_numbers() {
        let axis = Axis::rounded([60e3, 941e6].into_iter(), HEIGHT);
        assert_eq!((axis.low, axis.high), (50e3, 1e9));
        let labels: Vec<String> = axis.labels().into_iter().map(|(_, l)| l).collect();
        assert_eq!(labels, ["100 kbit/s", "1 Mbit/s", "10 Mbit/s", "100 Mbit/s", "1 Gbit/s"]);
    }

    #[test]
    fn one_value_alone_still_has_an_axis() {
        let axis = Axis::over([7.0, 7.0].into_iter(), 10);
        assert!(axis.low < 7.0 && axis.high > 7.0);
    }

    #[test]
    fn labels_of_the_horizontal_axis_do_not_touch() {
        for cells in [28, 40, 66] {
            for (low, high) in [(512.0, 1e8), (1448.0, 65_536.0), (60_000.0, 61_000.0)] {
                let [axis, labels] = Axis { low, high, cells }.bottom(&ASCII, None, Unit::Bytes);
                let found = labels.split("  ").filter(|l| !l.trim().is_empty()).count();
                assert!(found >= 2, "{axis}\n{labels}");
                assert_eq!(axis.matches('|').count(), labels.matches('B').count(), "{axis}\n{labels}");
                assert!(width(&labels) <= LABEL + 2 + cells, "{labels}");
            }
        }
    }
}
