//! The typed command, as it is stored and printed.

use std::cell::RefCell;

use crate::output;

thread_local! {
    /// The command that this thread works for, if another than the process's.
    static TYPED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Options whose value is private.
const PRIVATE: [&str; 2] = ["--token", "--tune-token"];

/// The command that this thread works for, which is the one that started this process unless [`as_typed`] names another, without its
/// private and its passing parts.
pub fn typed() -> String {
    TYPED
        .with_borrow(Clone::clone)
        .unwrap_or_else(|| repeatable(std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned())))
}

/// Does work that was requested by this command.
pub fn as_typed<T>(command: &str, work: impl FnOnce() -> T) -> T {
    TYPED.set(Some(command.to_owned()));
    let made = work();
    TYPED.set(None);
    made
}

/// A command of these words, without tokens, which are private, and without `--resume`, which is added if a run can
/// be resumed.
pub fn repeatable(words: impl Iterator<Item = String>) -> String {
    let mut command = vec!["bdp".to_owned()];
    let mut words = words;
    while let Some(word) = words.next() {
        let is_private = |option: &&str| word.strip_prefix(*option).is_some_and(|rest| rest.starts_with('='));
        if PRIVATE.contains(&word.as_str()) {
            words.next();
        } else if !PRIVATE.iter().any(is_private) && word != "--resume" {
            command.push(output::quote(&word));
        }
    }
    command.join(" ")
}
