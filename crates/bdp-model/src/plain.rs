//! Sanitises text from other sources.

use serde_json::error::Category;

/// Returns the text with spaces in place of control characters, which a terminal would obey, and of characters that
/// change the display order of text (Unicode Standard Annex 9, explicit directional formatting).
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if is_command(c) { ' ' } else { c }).collect()
}

/// Returns the text as by [`plain`], trimmed and with single spaces between words.
pub fn one_line(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Messages of Rust's library, and their replacements.
const PHRASES: [(&str, &str); 10] = [
    ("invalid digit found in string", "expected a whole number"),
    ("cannot parse integer from empty string", "expected a whole number"),
    ("number too large to fit in target type", "the number is too large"),
    ("number too small to fit in target type", "the number is too small"),
    ("failed to fill whole buffer", "it ended too early"),
    ("unexpected end of file", "it ended too early"),
    ("failed to write whole buffer", "it accepts no more data"),
    ("stream did not contain valid UTF-8", "it is not UTF-8 text"),
    ("invalid socket address syntax", "not an address with a port"),
    ("invalid IP address syntax", "not an IP address"),
];

/// Returns an error in the system's words, without those of Rust's library: `No such file or directory (os error 2)`.
pub fn in_words(error: &str) -> String {
    let mut parts = error.split(" (os error ");
    let mut clean = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        clean.push_str(rest.strip_prefix(')').unwrap_or(rest));
    }
    PHRASES.iter().fold(clean, |text, (phrase, words)| text.replace(phrase, words))
}

/// Returns the start of untrusted text as one line of limited length.
pub fn beginning(text: &str) -> String {
    const MOST: usize = 200;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line,
    }
}

/// Describes an error in JSON of bdp's own formats, without the words of the parsing library: `line 3: 'run' is
/// missing`.
pub fn of_json(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        Category::Eof => "it ends too early".to_owned(),
        Category::Syntax => "it is not JSON".to_owned(),
        Category::Io => in_words(&error.to_string()),
        Category::Data => {
            let said = error.to_string();
            of_data(said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said))
        }
    };
    match error.line() {
        0 => what,
        line => format!("line {line}, column {}: {what}", error.column()),
    }
}

/// Rewords a message about a value: `` missing field `run` ``, `invalid type: map, expected u32`.
fn of_data(said: &str) -> String {
    let name = || said.split('`').nth(1).unwrap_or("a member");
    let what = || said.split(": ").nth(1).and_then(|rest| rest.split([' ', ',']).next()).unwrap_or_default();
    match said.split(['`', ':']).next().unwrap_or_default().trim() {
        "missing field" => format!("'{}' is missing", name()),
        "duplicate field" => format!("'{}' is given twice", name()),
        "unknown field" | "unknown variant" => format!("'{}' is unknown", name()),
        "invalid type" | "invalid value" | "invalid length" => match what() {
            "map" => "an unexpected object".to_owned(),
            "sequence" => "an unexpected array".to_owned(),
            "string" => "an unexpected string".to_owned(),
            "null" => "an unexpected null".to_owned(),
            "boolean" => "an unexpected true or false".to_owned(),
            "integer" | "floating" => "an unexpected number".to_owned(),
            _ => "a value of the wrong type".to_owned(),
        },
        said if said.starts_with("data did not match") => "a value of unknown type".to_owned(),
        _ => in_words(said),
    }
}

/// Whether a character changes how other text is displayed.
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
    fn what_is_wrong_with_json_is_said_without_the_words_of_a_library() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(rename_all = "snake_case", deny_unknown_fields)]
        #[expect(dead_code)]
        enum Kind {
            One { run: u32 },
        }
        for (text, words) in [
            ("", "line 1, column 0: it ends too early"),
            ("{\"one\": {\n", "line 2, column 0: it ends too early"),
            ("no", "column 1: it is not JSON"),
            ("{\"one\": {}}", "'run' is missing"),
            ("{\"one\": {\"run\": {}}}", "an unexpected object"),
            ("{\"one\": {\"run\": \"a at line 9\"}}", "an unexpected string"),
            ("{\"one\": {\"run\": -1}}", "an unexpected number"),
            ("{\"one\": {\"run\": 1.5}}", "an unexpected number"),
            ("{\"one\": {\"run\": null}}", "an unexpected null"),
            ("{\"one\": {\"run\": 1, \"run\": 1}}", "'run' is given twice"),
            ("{\"one\": {\"runs\": 1}}", "'runs' is unknown"),
            ("{\"two\": {}}", "'two' is unknown"),
        ] {
            let said = of_json(&serde_json::from_str::<Kind>(text).unwrap_err());
            assert!(said.starts_with("line ") && said.ends_with(words), "{text}: {said}");
        }
        let error = serde_json::from_value::<Kind>(serde_json::json!({ "one": {} })).unwrap_err();
        assert_eq!(of_json(&error), "'run' is missing");
    }

    #[test]
    fn commands_are_spaces_and_letters_stay() {
        assert_eq!(plain("a\u{1b}[2J\n\u{202e}b\u{2069} é"), "a [2J  b  é");
    }
}
