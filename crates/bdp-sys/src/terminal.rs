//! The terminal: how wide it is, and a question at it whose answer is not shown.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::BorrowedFd;

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

use crate::{Result, SysError};

/// Columns of the terminal behind a descriptor; `None` where it is none, or one that does not say.
pub fn columns(descriptor: BorrowedFd<'_>) -> Option<u16> {
    tcgetwinsize(descriptor).ok().map(|size| size.ws_col).filter(|&columns| columns > 0)
}

/// Which process group is in front of the terminal of standard input. A shell puts itself there, and leaves it to nobody where it can't see
/// whose it was; dropped, this gives it back.
pub struct Front(Option<rustix::process::Pid>);

impl Front {
    /// As it is now.
    pub fn remember() -> Self {
        Self(rustix::termios::tcgetpgrp(std::io::stdin()).ok())
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        let Some(group) = self.0 else { return };
        // Who is not in front would be stopped by this otherwise.
        crate::signal::hold_output_stop();
        let _ = rustix::termios::tcsetpgrp(std::io::stdin(), group);
    }
}

/// The longest answer that is taken.
const LONGEST: usize = 1024;

/// What was typed.
#[derive(Clone, PartialEq, Eq)]
pub enum Typed {
    /// A line, without its end.
    Line(String),
    /// Ctrl-C, Ctrl-D, or the terminal went away.
    Nothing,
}

/// Asks at the controlling terminal, whatever standard input and output are. Keys that would end the process are only
/// characters meanwhile, so that the terminal is put back however it ends.
pub fn ask_secretly(question: &str) -> Result<Typed> {
    let opened = OpenOptions::new().read(true).write(true).open("/dev/tty");
    let mut terminal = opened.map_err(|e| SysError::new("open", "/dev/tty", e))?;
    let failed = |e| SysError::new("use", "/dev/tty", e);
    terminal.write_all(question.as_bytes()).map_err(failed)?;
    let quiet = Quiet::begin(&terminal)?;
    let typed = read_line(&mut &terminal).map_err(failed);
    drop(quiet);
    terminal.write_all(b"\n").map_err(failed)?;
    typed
}

/// A terminal that shows nothing and gives every key at once; put back when this is dropped.
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
        // What was typed before the question is no answer to it.
        tcsetattr(terminal, OptionalActions::Flush, &settings)
            .map_err(|e| SysError::new("set", "/dev/tty", e.into()))?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        // A terminal that went away has nothing to be put back.
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

/// Keys until the end of the line, with those that correct it.
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
            // Backspace takes back a character, whatever its bytes.
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
    fn an_endless_line_is_bounded() {
        let keys = "x".repeat(3 * LONGEST) + "\n";
        assert!(read_line(&mut keys.as_bytes()).unwrap() == Typed::Line("x".repeat(LONGEST)));
    }
}
