//! Text columns with headings: widths, alignment, wrapping.

use crate::style::{Style, Tint};
pub(crate) use bdp_model::plain::one_line as tame;

/// Spaces between columns.
const GAP: usize = 2;

/// Alignment of the cells of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers, aligned at the end of the first one's integer part: `10.0-10.6` above ` 5.57-5.60`. Words are right-aligned.
    Point,
}

/// One cell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    pub text: String,
    pub tint: Tint,
}

impl Cell {
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), tint: Tint::None }
    }

    pub fn tinted(text: impl Into<String>, tint: Tint) -> Self {
        Self { text: text.into(), tint }
    }
}

/// A column: two heading lines, and a cell for each row.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub head: [&'static str; 2],
    pub align: Align,
    cells: Vec<Cell>,
    width: usize,
}

impl Column {
    /// Returns a column with cells padded to one width.
    pub fn new(head: [&'static str; 2], align: Align, mut cells: Vec<Cell>) -> Self {
        let heading = head.iter().map(|h| width(h)).max().unwrap_or(0);
        if align == Align::Point {
            let (numbers, words): (Vec<_>, Vec<_>) = cells.iter_mut().partition(|c| whole_part(&c.text) > 0);
            let whole = numbers.iter().map(|c| whole_part(&c.text)).max().unwrap_or(0);
            let rest = numbers.iter().map(|c| width(&c.text) - whole_part(&c.text)).max().unwrap_or(0);
            // If a word or the heading is wider, the numbers are right-aligned as a block.
            let block =
                words.iter().map(|c| width(&c.text)).max().unwrap_or(0).max(heading).max(whole + rest);
            for cell in numbers {
                let pad = block - rest - whole_part(&cell.text);
                cell.text.insert_str(0, &" ".repeat(pad));
            }
            for cell in words {
                let pad = block - width(&cell.text);
                cell.text.insert_str(0, &" ".repeat(pad));
            }
        }
        let body = cells.iter().map(|c| width(&c.text)).max().unwrap_or(0);
        Self { head, align, cells, width: body.max(heading) }
    }

    /// Whether all cells are empty.
    pub fn is_blank(&self) -> bool {
        self.cells.iter().all(|c| matches!(c.text.trim(), "" | "-"))
    }

    /// Truncates cells to `most` characters and marks the truncation.
    pub fn narrow(&mut self, most: usize, style: &Style) {
        for cell in &mut self.cells {
            cell.text = cut(&cell.text, most, style);
        }
        let heading = self.head.iter().map(|h| width(h)).max().unwrap_or(0);
        self.width = self.cells.iter().map(|c| width(&c.text)).max().unwrap_or(0).max(heading);
    }

    /// Returns both heading lines as one, rejoining a word broken across them.
    pub fn heading(&self) -> String {
        match self.head {
            [first, second] if first.ends_with('-') => first.trim_end_matches('-').to_owned() + second,
            [first, second] => format!("{first} {second}").trim().to_owned(),
        }
    }

    /// Returns the cells without padding.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.cells.iter().map(|cell| cell.text.trim())
    }

    /// Width of the widest cell or heading, in characters.
    pub fn width(&self) -> usize {
        self.width
    }
}

/// Number of leading digits; one for the dash that stands for no number.
fn whole_part(text: &str) -> usize {
    if text == "-" { 1 } else { text.chars().take_while(char::is_ascii_digit).count() }
}

/// Width of the widest row, in characters.
pub(crate) fn total_width(columns: &[Column]) -> usize {
    columns.iter().map(Column::width).sum::<usize>() + GAP * columns.len().saturating_sub(1)
}

/// Returns the columns of rows, without empty ones; the first `words` columns are left-aligned.
pub(crate) fn columns_of<const N: usize>(
    heads: [[&'static str; 2]; N],
    rows: &[[Cell; N]],
    words: usize,
) -> Vec<Column> {
    let column = |(index, head): (usize, _)| {
        let align = if index < words { Align::Left } else { Align::Point };
        Column::new(head, align, rows.iter().map(|row| row[index].clone()).collect())
    };
    heads.into_iter().enumerate().map(column).filter(|column| !column.is_blank()).collect()
}

/// Drops columns by their second heading until the rest fits; returns the names of those dropped.
pub(crate) fn drop_to_fit(
    columns: &mut Vec<Column>,
    expendable: &[(&str, &'static str)],
    style: &Style,
) -> Vec<&'static str> {
    let mut hidden = Vec::new();
    for (head, name) in expendable {
        let before = columns.len();
        if total_width(columns) > style.columns() {
            columns.retain(|column| column.head[1] != *head);
        }
        if columns.len() < before {
            hidden.push(*name);
        }
    }
    hidden
}

/// Truncates a column, to no less than `least` characters, so that all fit.
pub(crate) fn narrow_to_fit(columns: &mut [Column], index: usize, least: usize, style: &Style) {
    let excess = total_width(columns).saturating_sub(style.columns());
    if excess > 0 {
        let most = columns[index].width().saturating_sub(excess).max(least);
        columns[index].narrow(most, style);
    }
}

/// Returns the line that names the columns not shown, if there are any.
pub(crate) fn not_shown(hidden: &[&str], style: &Style) -> String {
    if hidden.is_empty() {
        return String::new();
    }
    let line = format!("not shown in {} columns: {}", style.columns(), hidden.join(", "));
    wrap("", Tint::None, &line, style)
}

/// Returns headings and rows, with an empty line before each row whose index is in `breaks`.
pub(crate) fn render(columns: &[Column], breaks: &[usize], style: &Style) -> String {
    let mut text = String::new();
    for line in 0..2 {
        let cells = columns.iter().map(|c| {
            let head = c.head[line];
            let pad = if c.align == Align::Point { c.width - width(head) } else { 0 };
            (format!("{}{head}", " ".repeat(pad)), Tint::Faint, c.width)
        });
        text.push_str(&row(cells, style));
    }
    for index in 0..columns.first().map_or(0, |c| c.cells.len()) {
        if breaks.contains(&index) {
            text.push('\n');
        }
        let cells = columns.iter().map(|c| (c.cells[index].text.clone(), c.cells[index].tint, c.width));
        text.push_str(&row(cells, style));
    }
    text
}

/// Returns a line without trailing spaces.
fn row(cells: impl Iterator<Item = (String, Tint, usize)>, style: &Style) -> String {
    let mut line = String::new();
    let mut owed = 0;
    for (text, tint, column) in cells {
        let word = text.trim();
        let before = width(&text) - width(text.trim_start());
        if !word.is_empty() {
            line.push_str(&" ".repeat(owed + before));
            line.push_str(&style.paint(tint, word));
            owed = column - before - width(word) + GAP;
        } else {
            owed += column + GAP;
        }
    }
    line.push('\n');
    line
}

/// Number of characters, each assumed to fill one column.
pub(crate) fn width(text: &str) -> usize {
    text.chars().count()
}

/// Truncates `text` to at most `most` characters.
pub(crate) fn cut(text: &str, most: usize, style: &Style) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let sign = if style.unicode { '…' } else { '~' };
    let mut short: String = text.chars().take(most.saturating_sub(1)).collect();
    short.push(sign);
    short
}

/// Wraps `text` after `lead` to the style's width; continuation lines are indented by the width of `lead`.
pub(crate) fn wrap(lead: &str, tint: Tint, text: &str, style: &Style) -> String {
    let indent = width(lead);
    let room = style.columns().saturating_sub(indent).max(8);
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for phrase in phrases(text) {
        if !line.is_empty() && width(&line) + 1 + width(&phrase) > room {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        // A word longer than a line is broken.
        for c in phrase.chars() {
            if width(&line) == room {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    lines.push(line);
    let mut out = style.paint(tint, lead.trim_end());
    out.push_str(&" ".repeat(indent - width(lead.trim_end())));
    out.push_str(&lines.join(&format!("\n{}", " ".repeat(indent))));
    out.push('\n');
    out
}

/// Splits a text into words, keeping a number and its unit together.
fn phrases(text: &str) -> Vec<String> {
    const UNITS: [&str; 16] = [
        "%", "B", "kB", "MB", "KiB", "MiB", "GiB", "TiB", "ns", "us", "ms", "s", "bit/s", "kbit/s", "Mbit/s",
        "Gbit/s",
    ];
    let mut phrases: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        let unit = UNITS.contains(&word.trim_end_matches([',', ';', ':', '.', ')']));
        match phrases.last_mut() {
            Some(number) if unit && number.ends_with(|c: char| c.is_ascii_digit()) => {
                number.push(' ');
                number.push_str(word);
            }
            _ => phrases.push(word.to_owned()),
        }
    }
    phrases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_by_their_point() {
        let cells = ["10.0-10.6", "5.57-5.60", "-", "941"].map(Cell::plain).to_vec();
        let columns = [
            Column::new(["", "case"], Align::Left, ["a", "b", "c", "d"].map(Cell::plain).to_vec()),
            Column::new(["published", "Mbit/s"], Align::Point, cells),
        ];
        let text = render(&columns, &[2], &Style::plain());
        let expected = [
            "        published",
            "case       Mbit/s",
            "a      10.0-10.6",
            "b       5.57-5.60",
            "",
            "c       -",
            "d     941",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn wrapped_text_stays_within_the_width() {
        let style = Style { width: 40, ..Style::plain() };
        let text = wrap("INVALID  ", Tint::Doubtful, &format!("some words and {}", "x".repeat(50)), &style);
        assert!(text.lines().all(|l| width(l) <= 40), "{text}");
        assert_eq!(text.matches('x').count(), 50);
        assert!(text.starts_with("INVALID  some words and\n         xxx"), "{text}");
    }

    #[test]
    fn a_number_stays_with_its_unit() {
        let style = Style { width: 40, ..Style::plain() };
        let text = wrap("", Tint::None, "a window of this size gives just about 87 % of it", &style);
        assert_eq!(text, "a window of this size gives just about\n87 % of it\n");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(tame("a\x1b[31mb\r\nc\u{9b}d"), "a [31mb c d");
    }
}
