//! Yes-or-no questions on the terminal.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::output;

/// Whether there is a terminal to ask on.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks on standard error; returns whether the answer is yes. The end of standard input is a no.
pub fn ask(question: &str) -> bool {
    output::note_text(question);
    let _ = io::stderr().flush();
    let mut answer = String::new();
    let _ = io::stdin().lock().read_line(&mut answer);
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}
