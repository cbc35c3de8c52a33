//! Text from elsewhere, made harmless for whoever reads it.

/// The text with spaces in place of control characters, which would reach a terminal as commands, and of those that
/// change the order in which text is shown (Unicode Standard Annex 9, explicit directional formatting).
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if is_command(c) { ' ' } else { c }).collect()
}

/// As [`plain`], with single spaces between words and none around them.
pub fn one_line(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Messages of Rust's library, and what replaces them.
const PHRASES: [(&str, &str); 10] = [
    ("invalid digit found in string", "a whole number is needed"),
    ("cannot parse integer from empty string", "a whole number is needed"),
    ("number too large to fit in target type", "the number is too large"),
    ("number too small to fit in target type", "the number is too small"),
    ("failed to fill whole buffer", "it ended too early"),
    ("unexpected end of file", "it ended too early"),
    ("failed to write whole buffer", "it accepts no more"),
    ("stream did not contain valid UTF-8", "it is not UTF-8 text"),
    ("invalid socket address syntax", "not an address with a port"),
    ("invalid IP address syntax", "not an IP address"),
];

/// An error in the system's own words, without those of Rust's library: `No such file or directory (os error 2)`.
pub fn in_words(error: &str) -> String {
    let mut parts = error.split(" (os error ");
    let mut clean = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        clean.push_str(rest.strip_prefix(')').unwrap_or(rest));
    }
    PHRASES.iter().fold(clean, |text, (phrase, words)| text.replace(phrase, words))
}

/// Whether a character changes how others are shown.
pub fn is_command(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_in_the_systems_words_alone() {
        for (text, words) in [
            (
                "read x: No such file or directory (os error 2); try y",
                "read x: No such file or directory; try y",
            ),
            ("a (os error 111)", "a"),
            ("a (os error 2), b (os error 13)", "a, b"),
            ("read frame: failed to fill whole buffer", "read frame: it ended too early"),
            ("as it is", "as it is"),
        ] {
            assert_eq!(in_words(text), words);
        }
    }

    #[test]
    fn commands_are_spaces_and_letters_stay() {
        assert_eq!(plain("a\u{1b}[2J\n\u{202e}b\u{2069} é"), "a [2J  b  é");
    }
}
