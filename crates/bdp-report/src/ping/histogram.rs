//! A text histogram with rows of equal ratio, so that a long tail fits.

use bdp_model::probes::ping::Bucket;

use crate::number::{percent, three_digits};
use crate::style::{Style, Tint};

/// Most rows.
const ROWS: usize = 14;
/// Fewest round trips per row, so that few round trips make few rows.
const PER_ROW: u64 = 2;
/// Smallest ratio of a row's upper to its lower edge: the width of the widest bucket.
const BUCKET: f64 = 1.0 + 1.0 / 64.0;

/// Draws rows with range, count, cumulative share and bar; empty rows in between are kept.
pub(super) fn draw(buckets: &[Bucket], style: &Style) -> String {
    let (Some(first), Some(last)) = (buckets.first(), buckets.last()) else { return String::new() };
    let (unit, factor) = if first.to_ns < 10_000_000 { ("us", 1e3) } else { ("ms", 1e6) };
    let (low, high) = (first.from_ns.max(1) as f64, (last.to_ns.max(1) as f64) + 1.0);
    let total: u64 = buckets.iter().map(|bucket| bucket.count).sum();
    let filled = usize::try_from(total / PER_ROW).unwrap_or(ROWS).clamp(1, ROWS);
    // A row is at least one nanosecond wide.
    let rows = (((high / low).ln() / BUCKET.ln()).min(high - low) as usize).clamp(1, filled);
    let edge = |row: usize| low * (high / low).powf(row as f64 / rows as f64);
    let mut counts = vec![0u64; rows];
    for bucket in buckets {
        // Assigned by its lower edge, so that the first bucket is in the first row: rows are at least as wide as buckets.
        let row = (1..rows).find(|&row| (bucket.from_ns as f64) < edge(row) * 0.999).unwrap_or(rows);
        counts[row - 1] += bucket.count;
    }
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    let room = style.columns().saturating_sub(44).clamp(8, 50);
    let mut text =
        style.paint(Tint::Faint, &format!("{:>16} {unit}  {:>9}  {:>7}", "round trip", "count", "up to"));
    text.push('\n');
    let mut seen = 0;
    for (row, &count) in counts.iter().enumerate() {
        seen += count;
        let range =
            format!("{:>8} -{:>8}", three_digits(edge(row) / factor), three_digits(edge(row + 1) / factor));
        let share = percent(seen as f64 / total.max(1) as f64);
        text.push_str(
            format!("{range}  {count:>9}  {share:>7}  {}", bar(count, most, room, style)).trim_end(),
        );
        text.push('\n');
    }
    text
}

/// Returns a bar proportional to the count; a count other than 0 is always visible.
fn bar(count: u64, most: u64, room: usize, style: &Style) -> String {
    let exact = count as f64 / most as f64 * room as f64;
    if !style.unicode {
        return "#".repeat(if count > 0 { (exact.round() as usize).max(1) } else { 0 });
    }
    let eighths = (exact * 8.0).round() as usize;
    let eighths = if count > 0 { eighths.max(1) } else { 0 };
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    format!("{}{}", "█".repeat(eighths / 8), PARTS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_is_in_one_row() {
        let bucket = |from_ns, to_ns, count| Bucket { from_ns, to_ns, count };
        let text = draw(
            &[bucket(1000, 1010, 90), bucket(2000, 2010, 9), bucket(900_000, 910_000, 1)],
            &Style::plain(),
        );
        let counts: u64 = text
            .lines()
            .skip(1)
            .map(|l| l[18..].split_whitespace().next().unwrap().parse::<u64>().unwrap())
            .sum();
        assert_eq!(counts, 100, "{text}");
        assert!(text.lines().last().unwrap().contains("100 %"), "{text}");
        assert_eq!(draw(&[bucket(5, 5, 3)], &Style::plain()).lines().count(), 2);
    }
}
