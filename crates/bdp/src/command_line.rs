//! The typed command, as it is stored and printed.

use crate::output;

/// The command that started this process, without its private and its passing parts.
pub fn typed() -> String {
    repeatable(std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()))
}

/// A command of these words, without the token, which is private, and without `--resume`, which is added if a run can
/// be resumed.
pub fn repeatable(words: impl Iterator<Item = String>) -> String {
    let mut command = vec!["bdp".to_owned()];
    let mut words = words;
    while let Some(word) = words.next() {
        if word == "--token" {
            words.next();
        } else if !word.starts_with("--token=") && word != "--resume" {
            command.push(output::quote(&word));
        }
    }
    command.join(" ")
}
