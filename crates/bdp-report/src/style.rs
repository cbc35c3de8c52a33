//! Capabilities of the output to which text is written.

use crate::number::RateUnit;

/// How text is laid out and marked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Style {
    /// Whether to use ANSI colours. Colour is never the only sign: each coloured word is meaningful without it.
    pub colour: bool,
    /// Whether to use characters beyond ASCII.
    pub unicode: bool,
    /// Maximum line length in columns; at least 40.
    pub width: u16,
    /// Unit of goodputs; chosen to fit if `None`.
    pub rate_unit: Option<RateUnit>,
    /// Whether to print a row for every stream, however many.
    pub every_stream: bool,
    /// Whether to print all details below the answer and the main figures.
    pub details: bool,
}

/// Columns assumed for a terminal that does not report its width.
const TERMINAL_WIDTH: u16 = 80;
/// Columns of text written to a file or pipe.
const FILE_WIDTH: u16 = 100;
/// Minimum width for tables; narrower outputs get wrapped lines.
const LEAST_WIDTH: u16 = 40;

impl Style {
    /// Returns a style that is the same on every machine: ASCII without colour, 100 columns.
    pub const fn plain() -> Self {
        Self {
            colour: false,
            unicode: false,
            width: FILE_WIDTH,
            rate_unit: None,
            every_stream: false,
            details: false,
        }
    }

    /// Detects the style from properties of standard output, `NO_COLOR` (<https://no-color.org>: any non-empty value),
    /// `LC_ALL` and `LANG` (POSIX: the first that is set and not empty) and `COLUMNS`. `terminal_width` is the
    /// width reported by the terminal, if any.
    pub fn detect(
        is_terminal: bool,
        terminal_width: Option<u16>,
        no_color: Option<&str>,
        lc_all: Option<&str>,
        lang: Option<&str>,
        columns: Option<&str>,
    ) -> Self {
        let set = |value: Option<&str>| value.is_some_and(|v| !v.is_empty());
        let locale = if set(lc_all) { lc_all } else { lang }.unwrap_or_default().to_ascii_lowercase();
        let default = if is_terminal { terminal_width.unwrap_or(TERMINAL_WIDTH) } else { FILE_WIDTH };
        Self {
            colour: is_terminal && !set(no_color),
            unicode: locale.contains("utf-8") || locale.contains("utf8"),
            width: columns
                .and_then(|c| c.trim().parse().ok())
                .filter(|&c: &u16| c > 0)
                .unwrap_or(default)
                .max(LEAST_WIDTH),
            rate_unit: None,
            every_stream: false,
            details: false,
        }
    }

    /// Returns the width in characters, at least the minimum for a layout.
    pub(crate) fn columns(&self) -> usize {
        usize::from(self.width.max(LEAST_WIDTH))
    }

    /// Returns `text` in a tint, if colours are used.
    pub(crate) fn paint(&self, tint: Tint, text: &str) -> String {
        let code = match tint {
            Tint::None => return text.to_owned(),
            Tint::Strong => "1",
            Tint::Faint => "2",
            Tint::Bad => "31",
            Tint::Good => "32",
            Tint::Doubtful => "33",
            Tint::Model => "36",
        };
        if self.colour && !text.trim().is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Meaning of a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tint {
    /// Ordinary text.
    #[default]
    None,
    /// A heading.
    Strong,
    /// Secondary text.
    Faint,
    /// Failed or missed.
    Bad,
    /// As expected.
    Good,
    /// INVALID.
    Doubtful,
    /// Output of the model.
    Model,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_needs_a_terminal_and_no_no_color() {
        assert!(Style::detect(true, None, None, None, None, None).colour);
        assert!(Style::detect(true, None, Some(""), None, None, None).colour);
        assert!(!Style::detect(true, None, Some("1"), None, None, None).colour);
        assert!(!Style::detect(false, None, None, None, None, None).colour);
    }

    #[test]
    fn lc_all_overrules_lang_unless_empty() {
        let unicode = |lc_all, lang| Style::detect(true, None, None, lc_all, lang, None).unicode;
        assert!(unicode(None, Some("de_DE.UTF-8")));
        assert!(unicode(Some(""), Some("C.utf8")));
        assert!(!unicode(Some("C"), Some("de_DE.UTF-8")));
        assert!(!unicode(None, None));
    }

    #[test]
    fn width_comes_from_columns_or_the_kind_of_output() {
        let width = |terminal, columns| Style::detect(terminal, None, None, None, None, columns).width;
        let of_terminal = |columns| Style::detect(true, Some(132), None, None, None, columns).width;
        assert_eq!((of_terminal(None), of_terminal(Some("90"))), (132, 90));
        assert_eq!(Style::detect(false, Some(132), None, None, None, None).width, 100);
        assert_eq!(width(true, Some("132")), 132);
        assert_eq!(width(true, Some("nonsense")), 80);
        assert_eq!(width(true, Some("0")), 80);
        assert_eq!(width(false, None), 100);
        assert_eq!(width(true, Some("12")), 40);
    }
}
