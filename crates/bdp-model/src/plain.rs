//! Text from elsewhere, made harmless for whoever reads it.

/// The text with spaces in place of control characters, which would reach a terminal as commands, and of those that have
/// text read in another order than it stands (Unicode Standard Annex 9, explicit directional formatting).
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if is_command(c) { ' ' } else { c }).collect()
}

/// As [`plain`], with single spaces between words and none around them.
pub fn one_line(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a character says how others are to be shown.
pub fn is_command(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_spaces_and_letters_stay() {
        assert_eq!(plain("a\u{1b}[2J\n\u{202e}b\u{2069} é"), "a [2J  b  é");
    }
}
