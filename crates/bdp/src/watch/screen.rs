//! The live table on a terminal: a thread that reads keys and draws on the alternate screen, and restores the terminal.

use std::io::Write;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use bdp_model::watch::WatchInterval;
use bdp_sys::terminal::{self, Keys};

use super::view::{Asked, View};
use crate::output;

/// Switches to the alternate screen without a cursor, and back (xterm's control sequences, which terminals share).
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Default lines and columns, if the terminal does not report them.
const USUAL_LINES: u16 = 24;

/// The display, until it is dropped.
pub struct Screen {
    view: Arc<Mutex<(View, bool)>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Screen {
    /// Takes over the terminal; `None` if that is impossible. The quit key raises `cancel`.
    pub fn open(asked: &str, cancel: &'static AtomicBool) -> Option<Self> {
        let keys = Keys::take().ok()?;
        let view = Arc::new(Mutex::new((View::new(asked), true)));
        let over = Arc::new(AtomicBool::new(false));
        let (shared, ended) = (Arc::clone(&view), Arc::clone(&over));
        let work = move || draw(keys, &shared, &ended, cancel);
        let thread = std::thread::Builder::new().name("bdp-screen".to_owned()).spawn(work).ok()?;
        Some(Self { view, over, thread: Some(thread) })
    }

    /// Shows an interval.
    pub fn show(&mut self, interval: WatchInterval) {
        let mut shared = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        shared.0.take(interval);
        shared.1 = true;
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Until the end: handles keys as they arrive, and draws a frame after a change.
fn draw(mut keys: Keys, shared: &Mutex<(View, bool)>, over: &AtomicBool, cancel: &AtomicBool) {
    put(ENTER);
    let mut size = None;
    while !over.load(Ordering::Relaxed) {
        let frame = {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let now = terminal::size(std::io::stdout().as_fd());
            let changed = std::mem::take(&mut shared.1) || now != size;
            size = now;
            let lines = size.map_or(USUAL_LINES, |(lines, _)| lines);
            changed.then(|| shared.0.frame(usize::from(lines), &output::style()))
        };
        if let Some(frame) = frame {
            // The rest of each line is cleared, and everything below, so that nothing flickers.
            put(&format!("\x1b[H{}\x1b[K\x1b[J", frame.replace('\n', "\x1b[K\n")));
        }
        for key in keys.wait() {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.1 = true;
            if shared.0.press(key) == Asked::Quit {
                cancel.store(true, Ordering::Relaxed);
            }
        }
    }
    put(LEAVE);
}

fn put(text: &str) {
    let mut out = std::io::stdout().lock();
    // A closed terminal ends the process by SIGHUP.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
