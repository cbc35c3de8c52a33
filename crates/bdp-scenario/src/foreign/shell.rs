//! Splits text into commands like a shell: continued lines, comments, quotes, variables set in the text itself.

use super::draft::ImportError;

/// Control-flow keywords of a shell.
const FLOW: [&str; 12] =
    ["for", "while", "until", "if", "case", "do", "done", "then", "fi", "esac", "function", "else"];

/// Returns the words of each command.
pub(super) fn commands(text: &str) -> Result<Vec<Vec<String>>, ImportError> {
    let mut set: Vec<(String, String)> = Vec::new();
    let mut all = Vec::new();
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    for line in joined.lines() {
        for words in split(line, &set)? {
            match words.first().and_then(|first| assignment(first)) {
                Some((name, value)) if words.len() == 1 => {
                    set.retain(|(known, _)| known != name);
                    set.push((name.to_owned(), value.to_owned()));
                }
                _ => all.push(words),
            }
        }
    }
    Ok(all)
}

/// Whether a command controls which others run.
pub(super) fn is_control_flow(words: &[String]) -> bool {
    words.first().is_some_and(|first| FLOW.contains(&first.as_str()) || first.ends_with("()"))
}

fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_name) && !name.starts_with(|c: char| c.is_ascii_digit()))
        .then_some((name, value))
}

/// Returns the commands of a line.
fn split(line: &str, set: &[(String, String)]) -> Result<Vec<Vec<String>>, ImportError> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '#' if word.is_none() => break,
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('\'') => break,
                        Some(c) => word.push(c),
                        None => return Err(open_quote(line)),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('"') => break,
                        Some('\\') => word.extend(chars.next()),
                        Some('$') => word.push_str(&variable(&mut chars, set)),
                        Some(c) => word.push(c),
                        None => return Err(open_quote(line)),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(chars.next()),
            '$' => {
                let value = variable(&mut chars, set);
                word.get_or_insert_default().push_str(&value);
            }
            ';' | '&' | '|' => {
                while chars.next_if(|next| ";&|".contains(*next)).is_some() {}
                end(&mut commands, &mut word);
                commands.push(Vec::new());
            }
            c if c.is_whitespace() => end(&mut commands, &mut word),
            c => word.get_or_insert_default().push(c),
        }
    }
    end(&mut commands, &mut word);
    commands.retain(|words| !words.is_empty());
    Ok(commands)
}

fn end(commands: &mut [Vec<String>], word: &mut Option<String>) {
    if let (Some(last), Some(word)) = (commands.last_mut(), word.take()) {
        last.push(word);
    }
}

/// Expands a variable; one that the text does not set stays as written, so that whoever needs its value can refuse it.
fn variable(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, set: &[(String, String)]) -> String {
    let has_brace = chars.next_if_eq(&'{').is_some();
    let mut name = String::new();
    while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
        name.push(c);
    }
    if has_brace {
        // `${NAME:-value}` is kept as written.
        while let Some(c) = chars.next_if(|c| *c != '}') {
            name.push(c);
        }
        chars.next();
    }
    let known = set.iter().find(|(known, _)| *known == name);
    known.map_or_else(|| format!("${name}"), |(_, value)| value.clone())
}

fn open_quote(line: &str) -> ImportError {
    let shown: String = line.trim().chars().take(60).collect();
    ImportError::new(format!("a quote is not closed: {}", shown.escape_debug()))
}
