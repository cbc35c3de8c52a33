//! Standard output: data alone goes there, laid out for whoever reads it.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use bdp_report::Style;
pub use bdp_report::quote;

use crate::Outcome;
use crate::exit::{self, Exit};
pub use bdp_report::plain as tame;

/// Whether [`print`] was called.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// Writes data to standard output; a reader that has seen enough, as `head` does, is no error.
pub fn print(data: &str) -> Outcome {
    PRINTED.store(true, Ordering::Relaxed);
    let mut out = io::stdout().lock();
    ended(out.write_all(data.as_bytes()).and_then(|()| out.flush()))
}

/// Whether anything went to standard output, or was to.
pub fn has_printed() -> bool {
    PRINTED.load(Ordering::Relaxed)
}

/// What became of writing to standard output.
pub fn ended(written: io::Result<()>) -> Outcome {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Done),
        Err(error) => Err(exit::environment(format!("cannot write to standard output: {error}"))),
        Ok(()) => Ok(Exit::Done),
    }
}

/// Writes a line to standard error, where everything goes that is not data. Where nobody reads it, it is gone: that is
/// no reason to lose what is being measured.
pub fn note(line: &str) {
    let line = tame(&exit::without_number(line)) + "\n";
    // One write, so that lines of several threads stay whole.
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

/// What standard output can show.
pub fn style() -> Style {
    let variable = |name| env::var(name).ok();
    Style::detect(
        io::stdout().is_terminal(),
        bdp_sys::terminal::columns(io::stdout().as_fd()),
        variable("NO_COLOR").as_deref(),
        variable("LC_ALL").as_deref(),
        variable("LANG").as_deref(),
        variable("COLUMNS").as_deref(),
    )
}

/// Milliseconds since 1970 as UTC to the second: `2026-01-01T00:00:00Z` (RFC 3339, ISO 8601).
pub fn utc(unix_ms: u64) -> String {
    let seconds = unix_ms / 1000;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days: years begin in March, so that the
    // leap day is the last of its year; an era is 400 of them.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utc_agrees_with_date() {
        // As `date -u -d @SECONDS +%FT%TZ` prints them.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (1_767_225_600, "2026-01-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds * 1000 + 999), text);
        }
        assert!(utc(u64::MAX).ends_with('Z'));
    }

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
