//! Rust source as tokens: comments and literals gone, lines kept, paths put together.

use std::iter::Peekable;
use std::str::CharIndices;

/// A word, `::`, or one other character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// From 1.
    pub line: usize,
    /// As it is written.
    pub text: &'a str,
}

/// What is code in `source`, in order.
pub fn tokens(source: &str) -> Vec<Token<'_>> {
    Lexer { source, chars: source.char_indices().peekable(), line: 1 }.run()
}

/// Every path that code names, with its line: `std::time::Instant` of an expression or type as it stands, and one path
/// for each leaf of a `use`, without `self` at its end and without the new name after `as`.
pub fn paths<'a>(tokens: &[Token<'a>]) -> Vec<(usize, Vec<&'a str>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let next = tokens.get(at + 1).map(|t| t.text);
        if token.text == "use" && next != Some("<") {
            at += 1;
            use_tree(tokens, &mut at, &[], &mut found);
        } else if is_word(token.text) && next == Some("::") {
            let mut path = vec![token.text];
            at += 1;
            while tokens.get(at).is_some_and(|t| t.text == "::")
                && let Some(segment) = tokens.get(at + 1).filter(|t| is_word(t.text))
            {
                path.push(segment.text);
                at += 2;
            }
            found.push((token.line, path));
        } else {
            at += 1;
        }
    }
    found
}

fn use_tree<'a>(
    tokens: &[Token<'a>],
    at: &mut usize,
    prefix: &[&'a str],
    found: &mut Vec<(usize, Vec<&'a str>)>,
) {
    let mut path = prefix.to_vec();
    while let Some(token) = tokens.get(*at) {
        *at += 1;
        match token.text {
            "::" => {}
            "{" => {
                while let Some(inner) = tokens.get(*at) {
                    match inner.text {
                        "}" => return *at += 1,
                        "," => *at += 1,
                        _ => use_tree(tokens, at, &path, found),
                    }
                }
            }
            word if is_word(word) || word == "*" => {
                if word != "self" || path.is_empty() {
                    path.push(word);
                }
                let following = tokens.get(*at).map(|t| t.text);
                if following != Some("::") {
                    if following == Some("as") {
                        *at += 2;
                    }
                    return found.push((token.line, path));
                }
            }
            _ => return,
        }
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c == '_' || c.is_alphabetic())
}

struct Lexer<'a> {
    source: &'a str,
    chars: Peekable<CharIndices<'a>>,
    line: usize,
}

impl<'a> Lexer<'a> {
    fn run(mut self) -> Vec<Token<'a>> {
        let mut tokens = Vec::new();
        while let Some((start, c)) = self.next() {
            let line = self.line;
            let rest = &self.source[start..];
            if c.is_whitespace() {
                continue;
            } else if rest.starts_with("//") {
                while self.chars.peek().is_some_and(|&(_, c)| c != '\n') {
                    self.next();
                }
            } else if rest.starts_with("/*") {
                self.block_comment();
            } else if c == '"' {
                self.string();
            } else if c == '\'' {
                self.quote();
            } else if c == '_' || c.is_alphanumeric() {
                let end = start + rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
                self.skip_to(end);
                let word = &self.source[start..end];
                if !self.literal_after(word) {
                    tokens.push(Token { line, text: word });
                }
            } else if rest.starts_with("::") {
                self.next();
                tokens.push(Token { line, text: &rest[..2] });
            } else {
                tokens.push(Token { line, text: &rest[..c.len_utf8()] });
            }
        }
        tokens
    }

    fn next(&mut self) -> Option<(usize, char)> {
        let next = self.chars.next();
        if next.is_some_and(|(_, c)| c == '\n') {
            self.line += 1;
        }
        next
    }

    fn skip_to(&mut self, end: usize) {
        while self.chars.peek().is_some_and(|&(at, _)| at < end) {
            self.next();
        }
    }

    fn rest(&mut self) -> &'a str {
        self.chars.peek().map_or("", |&(at, _)| &self.source[at..])
    }

    /// The slash is behind us. Comments nest.
    fn block_comment(&mut self) {
        let mut depth = 0;
        let mut at_opening = true;
        loop {
            let rest = self.rest();
            if rest.is_empty() {
                return;
            } else if at_opening || rest.starts_with("/*") {
                depth += 1;
                if !at_opening {
                    self.next();
                }
                at_opening = false;
            } else if rest.starts_with("*/") {
                depth -= 1;
                self.next();
            }
            self.next();
            if depth == 0 {
                return;
            }
        }
    }

    /// The opening quote is behind us.
    fn string(&mut self) {
        while let Some((_, c)) = self.next() {
            match c {
                '\\' => drop(self.next()),
                '"' => return,
                _ => {}
            }
        }
    }

    /// The quote is behind us: of a character, or of a lifetime or label, whose name is no keyword of interest.
    fn quote(&mut self) {
        let mut ahead = self.rest().chars();
        match (ahead.next(), ahead.next()) {
            (Some('\\'), _) => {
                self.next();
                self.next();
                while self.next().is_some_and(|(_, c)| c != '\'') {}
            }
            (Some(_), Some('\'')) => {
                self.next();
                self.next();
            }
            _ => {
                while self.chars.peek().is_some_and(|&(_, c)| c == '_' || c.is_alphanumeric()) {
                    self.next();
                }
            }
        }
    }

    /// Steps over the literal that `word` is the prefix of; `false` where it is a word of its own.
    fn literal_after(&mut self, word: &str) -> bool {
        let rest = self.rest();
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        match word {
            "b" | "c" if rest.starts_with('"') => {
                self.next();
                self.string();
                true
            }
            "b" if rest.starts_with('\'') => {
                self.next();
                self.quote();
                true
            }
            "r" | "br" | "cr" if rest[hashes..].starts_with('"') => {
                let end = format!("\"{}", "#".repeat(hashes));
                let body = &rest[hashes + 1..];
                let length = body.find(&end).map_or(body.len(), |at| at + end.len());
                let start = self.source.len() - rest.len();
                self.skip_to(start + hashes + 1 + length);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Vec<&str> {
        tokens(source).into_iter().map(|t| t.text).collect()
    }

    fn joined(source: &str) -> Vec<String> {
        paths(&tokens(source)).into_iter().map(|(_, path)| path.join("::")).collect()
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        for source in [
            "a // unsafe\nb",
            "a /* unsafe /* unsafe */ unsafe */ b",
            "a /**/ b",
            "a \"unsafe\" b",
            r#"a "\" unsafe" b"#,
            "a \"\\\\\" b",
            "a r\"unsafe\\\" b",
            "a r#\"unsafe \" unsafe\"# b",
            "a br##\"\"# unsafe\"## b",
            "a b\"unsafe\" b",
            "a c\"unsafe\" b",
            "a '\"' b",
            "a '\\'' b",
            "a b'\\'' b",
            "a '\\u{1F600}' b",
            "a '/' /* ' */ b",
        ] {
            assert_eq!(words(source), ["a", "b"], "{source}");
        }
    }

    #[test]
    fn code_is_code() {
        assert_eq!(words("fn f<'a>(x: &'a str) -> u8 { b'\"' }\nunsafe"), {
            ["fn", "f", "<", ">", "(", "x", ":", "&", "str", ")", "-", ">", "u8", "{", "}", "unsafe"]
        });
        assert_eq!(words("'outer: loop { break 'outer; }")[..3], [":", "loop", "{"]);
        assert_eq!(words("b + r::c"), ["b", "+", "r", "::", "c"]);
    }

    #[test]
    fn lines_count_through_everything() {
        let source = "/*\n\n*/ \"\n\\\n\" r#\"\n\"# '\n' // \n x";
        assert_eq!(tokens(source), [Token { line: 8, text: "x" }]);
    }

    #[test]
    fn paths_come_whole() {
        assert_eq!(joined("let t = std::time::Instant::now();"), ["std::time::Instant::now"]);
        assert_eq!(joined("Vec::<u8>::new()"), ["Vec"]);
        assert_eq!(
            joined("use std::{fs, io::{self, Read as R, *}, time::{Duration, Instant}}; a::b"),
            [
                "std::fs",
                "std::io",
                "std::io::Read",
                "std::io::*",
                "std::time::Duration",
                "std::time::Instant",
                "a::b"
            ]
        );
        assert_eq!(
            joined("pub(crate) use ::std::thread; fn f() -> impl Sized + use<'_> {}"),
            ["std::thread"]
        );
        // Unfinished source ends, and nothing more.
        assert_eq!(joined("use a::{b, c::{"), ["a::b"]);
    }
}
