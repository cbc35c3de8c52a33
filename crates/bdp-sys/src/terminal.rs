//! The terminal: its size, its keys one by one, and a question whose answer is not echoed.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::BorrowedFd;

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

use crate::{Result, SysError};

/// Columns of the terminal behind a descriptor; `None` if it is no terminal, or does not report them.
pub fn columns(descriptor: BorrowedFd<'_>) -> Option<u16> {
    tcgetwinsize(descriptor).ok().map(|size| size.ws_col).filter(|&columns| columns > 0)
}

/// Lines and columns of the terminal behind a descriptor; `None` if it is no terminal, or does not report them.
pub fn size(descriptor: BorrowedFd<'_>) -> Option<(u16, u16)> {
    let size = tcgetwinsize(descriptor).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
}

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character, including Ctrl with a letter.
    Character(char),
    /// Return.
    Enter,
    /// Escape by itself.
    Escape,
    /// Backspace.
    Backspace,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
}

/// The keys of the controlling terminal, one by one without echo; restored when dropped. Ctrl-C is a key meanwhile, and ends nothing by itself.
pub struct Keys {
    // Dropped first: it needs the terminal.
    _quiet: Quiet<'static>,
    terminal: &'static File,
}

impl Keys {
    /// Takes over the keys. The terminal stays open as long as the process runs.
    pub fn take() -> Result<Self> {
        let opened = OpenOptions::new().read(true).write(true).open("/dev/tty");
        let terminal: &'static File =
            Box::leak(Box::new(opened.map_err(|e| SysError::new("open", "/dev/tty", e))?));
        Ok(Self { _quiet: Quiet::begin(terminal)?, terminal })
    }

    /// Returns pending keys; waits up to 100 ms for the first.
    pub fn wait(&mut self) -> Vec<Key> {
        const MOST_NS: u64 = 100_000_000;
        use std::os::fd::AsFd;
        let mut bytes = [0; 64];
        match crate::poll::wait_readable(self.terminal.as_fd(), MOST_NS) {
            Ok(true) => match self.terminal.read(&mut bytes) {
                Ok(got) if got > 0 => keys(&bytes[..got]),
                // The terminal was closed.
                _ => vec![Key::Character('\u{4}')],
            },
            _ => Vec::new(),
        }
    }
}

/// Parses bytes as keys; unknown ones are skipped.
fn keys(bytes: &[u8]) -> Vec<Key> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.chars().peekable();
    let mut all = Vec::new();
    while let Some(c) = rest.next() {
        all.push(match c {
            '\x1b' => match rest.next_if(|&next| next == '[' || next == 'O') {
                None => Key::Escape,
                Some(_) => {
                    // Parameters, and the letter that ends them (ECMA-48, section 5.4).
                    let end = rest.by_ref().find(|c| ('@'..='~').contains(c));
                    match end {
                        Some('A') => Key::Up,
                        Some('B') => Key::Down,
                        _ => continue,
                    }
                }
            },
            '\r' | '\n' => Key::Enter,
            '\u{8}' | '\u{7f}' => Key::Backspace,
            c => Key::Character(c),
        });
    }
    all
}

/// The foreground process group of standard input's terminal. A shell puts itself there, and restores nobody if
/// it can't see whose it was; dropping this restores it.
pub struct Front(Option<rustix::process::Pid>);

impl Front {
    /// Remembers the current one.
    pub fn remember() -> Self {
        Self(rustix::termios::tcgetpgrp(std::io::stdin()).ok())
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        let Some(group) = self.0 else { return };
        // A background process would be stopped by this otherwise.
        crate::signal::hold_output_stop();
        let _ = rustix::termios::tcsetpgrp(std::io::stdin(), group);
    }
}

/// Longest accepted answer.
const LONGEST: usize = 1024;

/// Typed input.
#[derive(Clone, PartialEq, Eq)]
pub enum Typed {
    /// A line, without its end.
    Line(String),
    /// Ctrl-C, Ctrl-D, or a closed terminal.
    Nothing,
}

/// Asks at the controlling terminal, wherever standard input and output lead. Keys that would end the process are
/// only characters meanwhile, so that the terminal is restored in any case.
pub fn ask_secretly(question: &str) -> Result<Typed> {
    let opened = OpenOptions::new().read(true).write(true).open("/dev/tty");
    let mut terminal = opened.map_err(|e| SysError::new("open", "/dev/tty", e))?;
    let failed = |e| SysError::new("use", "/dev/tty", e);
    // Before the question, as it may be answered at once.
    let quiet = Quiet::begin(&terminal)?;
    let asked = (&terminal).write_all(question.as_bytes());
    let typed = asked.and_then(|()| read_line(&mut &terminal)).map_err(failed);
    drop(quiet);
    terminal.write_all(b"\n").map_err(failed)?;
    typed
}

/// A terminal without echo that delivers every key at once; restored when dropped.
struct Quiet<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Quiet<'a> {
    fn begin(terminal: &'a File) -> Result<Self> {
        let before =
            tcgetattr(terminal).map_err(|e| SysError::new("read settings of", "/dev/tty", e.into()))?;
        let mut settings = before.clone();
        settings.local_modes &=
            !(LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG);
        settings.special_codes[SpecialCodeIndex::VMIN] = 1;
        settings.special_codes[SpecialCodeIndex::VTIME] = 0;
        // Input typed before the question is no answer to it.
        tcsetattr(terminal, OptionalActions::Flush, &settings)
            .map_err(|e| SysError::new("set", "/dev/tty", e.into()))?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        // A closed terminal needs no restoring.
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

/// Reads keys until the end of the line, including those that correct it.
fn read_line(keys: &mut impl Read) -> std::io::Result<Typed> {
    let mut line = Vec::new();
    let mut key = [0];
    loop {
        match keys.read(&mut key) {
            Ok(0) => return Ok(Typed::Nothing),
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        }
        match key[0] {
            b'\n' | b'\r' => {
                return Ok(Typed::Line(String::from_utf8_lossy(&line).into_owned()));
            }
            // Ctrl-C, Ctrl-D, Ctrl-\.
            3 | 4 | 28 => return Ok(Typed::Nothing),
            // Backspace removes a character, whatever its bytes.
            8 | 127 => while line.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
            // Ctrl-U.
            21 => line.clear(),
            byte if line.len() < LONGEST => line.push(byte),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_its_keys_leave() {
        for (keys, line) in [
            ("rossi\n", Some("rossi")),
            ("rossi\rmore", Some("rossi")),
            ("rosso\x7fi\n", Some("rossi")),
            ("r\u{f6}\x08\x08\x08ab\n", Some("ab")),
            ("wrong\x15right\n", Some("right")),
            ("\n", Some("")),
            ("ros\x03si\n", None),
            ("\x04", None),
            ("no end", None),
        ] {
            let typed = read_line(&mut keys.as_bytes()).unwrap();
            let expected = line.map_or(Typed::Nothing, |line| Typed::Line(line.to_owned()));
            assert!(typed == expected, "{keys:?}");
        }
    }

    #[test]
    fn bytes_are_keys() {
        assert_eq!(keys(b"q"), [Key::Character('q')]);
        assert_eq!(keys(b"\x1b"), [Key::Escape]);
        assert_eq!(keys(b"\x1b[A\x1bOB\r\x7f"), [Key::Up, Key::Down, Key::Enter, Key::Backspace]);
        // An unknown key, whole or cut off, is skipped.
        assert_eq!(keys(b"\x1b[3~x\x1b[1;5"), [Key::Character('x')]);
        assert_eq!(keys("\u{e4}".as_bytes()), [Key::Character('\u{e4}')]);
        assert_eq!(keys(&[0xff, b'a'])[1], Key::Character('a'));
    }

    #[test]
    fn an_endless_line_is_bounded() {
        let keys = "x".repeat(3 * LONGEST) + "\n";
        assert!(read_line(&mut keys.as_bytes()).unwrap() == Typed::Line("x".repeat(LONGEST)));
    }
}
