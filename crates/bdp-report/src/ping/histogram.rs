//! A histogram drawn in text: rows of equal ratio, so that a long tail fits.

use bdp_model::ping::Bucket;

use crate::number::{percent, three_digits};
use crate::style::{Style, Tint};

/// Rows at most.
const ROWS: usize = 14;
/// Round trips for each row at the least, so that few make few rows.
const PER_ROW: u64 = 2;
/// A row's upper edge is at least so much of its lower one: no bucket is wider.
const BUCKET: f64 = 1.0 + 1.0 / 64.0;

/// Rows with their range, count, share of all that came until there, and bar; empty ones in between are left in.
pub(super) fn draw(buckets: &[Bucket], style: &Style) -> String {
    let (Some(first), Some(last)) = (buckets.first(), buckets.last()) else { return String::new() };
    let (unit, factor) = if first.to_ns < 10_000_000 { ("us", 1e3) } else { ("ms", 1e6) };
    let (low, high) = (first.from_ns.max(1) as f64, (last.to_ns.max(1) as f64) + 1.0);
    let total: u64 = buckets.iter().map(|bucket| bucket.count).sum();
    let filled = usize::try_from(total / PER_ROW).unwrap_or(ROWS).clamp(1, ROWS);
    // Nor is a row narrower than a nanosecond.
    let rows = (((high / low).ln() / BUCKET.ln()).min(high - low) as usize).clamp(1, filled);
    let edge = |row: usize| low * (high / low).powf(row as f64 / rows as f64);
    let mut counts = vec![0u64; rows];
    for bucket in buckets {
        // By its lower edge, so that the first is in the first row: rows are no narrower than buckets.
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

/// As long as the count is of the most; a count that is not 0 shows.
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
