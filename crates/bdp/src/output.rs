//! Standard output: data only, formatted for its reader.

use std::cell::RefCell;
use std::env;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use bdp_model::plain::in_words;
use bdp_report::Style;
pub use bdp_report::quote;

use crate::exit::{self, Exit, Outcome};
pub use bdp_report::{plain as tame, utc};

/// Whether [`print`] was called.
static PRINTED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// What this thread prints, if it is captured.
    static CAPTURED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Does work, and returns what it printed instead of printing it.
pub fn captured<T>(work: impl FnOnce() -> T) -> (T, String) {
    CAPTURED.set(Some(String::new()));
    let made = work();
    (made, CAPTURED.take().unwrap_or_default())
}

/// Takes what is printed, if it is captured.
fn is_captured(data: &str) -> bool {
    CAPTURED.with_borrow_mut(|captured| captured.as_mut().map(|text| text.push_str(data)).is_some())
}

/// Whether its reader has gone.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Writes data to standard output; a reader that closes early, such as `head`, is no error.
pub fn print(data: &str) -> Outcome {
    if is_captured(data) {
        return Ok(Exit::Done);
    }
    PRINTED.store(true, Ordering::Relaxed);
    let mut out = io::stdout().lock();
    ended(out.write_all(data.as_bytes()).and_then(|()| out.flush()))
}

/// Writes a JSON document to standard output while it is generated; a reader that closes early is no error.
pub fn print_json(document: &impl serde::Serialize) -> Outcome {
    PRINTED.store(true, Ordering::Relaxed);
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let written = serde_json::to_writer_pretty(&mut out, document).map_err(io::Error::from);
    ended(written.and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()))
}

/// Whether anything was written to standard output, or was attempted.
pub fn has_printed() -> bool {
    PRINTED.load(Ordering::Relaxed)
}

/// Whether the reader of standard output has closed it.
pub fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Outcome of a write to standard output.
pub fn ended(written: io::Result<()>) -> Outcome {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            CLOSED.store(true, Ordering::Relaxed);
            Ok(Exit::Done)
        }
        Err(error) => Err(exit::environment(format!("cannot write to standard output: {error}"))),
        Ok(()) => Ok(Exit::Done),
    }
}

/// Writes a line to standard error, which takes everything that is not data. If nobody reads it, it is lost: the measurement goes on.
pub fn note(line: &str) {
    let line = tame(&in_words(line)) + "\n";
    // One write, so that lines of several threads stay whole.
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

/// Writes text of several lines to standard error.
pub fn note_text(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Passes on a program's output unchanged, or as a line after its host's name; lost if nobody reads it.
pub fn pass_on(host: Option<&str>, errors: bool, line: &[u8]) {
    let mut text = host.map_or_else(Vec::new, |host| format!("{host}: ").into_bytes());
    text.extend_from_slice(line);
    if host.is_some() && !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    let _ = match errors {
        true => io::stderr().lock().write_all(&text),
        false => {
            PRINTED.store(true, Ordering::Relaxed);
            io::stdout().lock().write_all(&text)
        }
    };
}

/// Capabilities of standard error.
pub fn style_of_errors() -> Style {
    style_of(&io::stderr())
}

/// Capabilities of standard output.
pub fn style() -> Style {
    style_of(&io::stdout())
}

fn style_of(stream: &(impl IsTerminal + AsFd)) -> Style {
    let variable = |name| env::var(name).ok();
    Style::detect(
        stream.is_terminal(),
        bdp_sys::terminal::columns(stream.as_fd()),
        variable("NO_COLOR").as_deref(),
        variable("LC_ALL").as_deref(),
        variable("LANG").as_deref(),
        variable("COLUMNS").as_deref(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_a_quoted_word_back() {
        for (word, quoted) in [
            ("flow.duration=5s", "flow.duration=5s"),
            ("", "''"),
            ("two words", "'two words'"),
            ("$HOME", "'$HOME'"),
            ("it's", r"'it'\''s'"),
        ] {
            assert_eq!(quote(word), quoted);
            let output =
                std::process::Command::new("sh").args(["-c", &format!("printf %s {quoted}")]).output();
            assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), word);
        }
    }

    #[test]
    fn no_control_character_is_left() {
        assert_eq!(tame("a\x1b[2Jb\nc\u{9b}d"), "a [2Jb c d");
    }
}
