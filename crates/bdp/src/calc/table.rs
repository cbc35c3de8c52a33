//! Numbers and columns of plain text.

/// `value` with this many significant digits, in plain decimals: 3.694, 116.8, 9493.
pub fn digits(value: f64, significant: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let before_point = value.abs().log10().floor() as i32 + 1;
    let decimals = usize::try_from(significant - before_point).unwrap_or(0);
    format!("{value:.decimals$}")
}

/// Lines of columns, two spaces apart, each as wide as its widest cell; columns named in `right` are right-aligned.
pub fn columns<const N: usize>(rows: &[[String; N]], right: &[usize]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let width = widths[column];
            if right.contains(&column) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_significant_ones() {
        for (value, text) in [
            (3.693_53, "3.694"),
            (116.8, "116.8"),
            (9492.8, "9493"),
            (94_928.0, "94928"),
            (0.0949, "0.09490"),
            (0.0, "0"),
        ] {
            assert_eq!(digits(value, 4), text);
        }
    }

    #[test]
    fn columns_align() {
        let row = |a: &str, b: &str, c: &str| [a.to_owned(), b.to_owned(), c.to_owned()];
        let text = columns(&[row("name", "n", "note"), row("a", "100", "")], &[1]);
        assert_eq!(text, "name    n  note\na     100\n");
    }
}
