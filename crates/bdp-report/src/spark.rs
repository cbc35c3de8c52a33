//! A curve in one line of text.

use crate::style::Style;

/// Returns one character per value, lowest at zero and highest at the largest value; a space for values that are not finite.
/// If there are more values than columns, neighbours are averaged.
pub fn spark(values: &[f64], style: &Style) -> String {
    const BLOCKS: &[char] = &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const ASCII: &[char] = &['.', ':', '-', '=', '+', '*', '#', '@'];
    let levels = if style.unicode { BLOCKS } else { ASCII };
    let values = condense(values, style.columns());
    let largest = values.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    values
        .iter()
        .map(|&v| {
            if !v.is_finite() {
                return ' ';
            }
            let share = if largest > 0.0 { (v / largest).clamp(0.0, 1.0) } else { 0.0 };
            // Equal steps; the top one includes the largest value.
            levels[((share * levels.len() as f64) as usize).min(levels.len() - 1)]
        })
        .collect()
}

/// Returns at most `columns` values, each the mean of the finite values it stands for.
fn condense(values: &[f64], columns: usize) -> Vec<f64> {
    if values.len() <= columns {
        return values.to_vec();
    }
    (0..columns)
        .map(|i| {
            let part = &values[i * values.len() / columns..(i + 1) * values.len() / columns];
            let finite: Vec<f64> = part.iter().copied().filter(|v| v.is_finite()).collect();
            finite.iter().sum::<f64>() / finite.len() as f64
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNICODE: Style = Style { unicode: true, width: 80, ..Style::plain() };

    #[test]
    fn height_is_the_share_of_the_largest() {
        assert_eq!(spark(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], &UNICODE), "▁▂▃▄▅▆▇██");
        assert_eq!(spark(&[0.0, 4.0, 8.0], &Style::plain()), ".+@");
    }

    #[test]
    fn nothing_and_what_is_no_number_stay_visible_as_such() {
        assert_eq!(spark(&[], &UNICODE), "");
        assert_eq!(spark(&[0.0, 0.0], &UNICODE), "▁▁");
        assert_eq!(spark(&[1.0, f64::NAN, 1.0], &UNICODE), "█ █");
    }

    #[test]
    fn long_rows_are_averaged_into_the_width() {
        let values: Vec<f64> = (0..400).map(|i| if i < 200 { 1.0 } else { 9.0 }).collect();
        let text = spark(&values, &UNICODE);
        assert_eq!(text.chars().count(), 80);
        assert_eq!(text, format!("{}{}", "▁".repeat(40), "█".repeat(40)));
    }
}
