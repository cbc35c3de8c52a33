//! What is said when somebody ends bdp before it is done: `Ctrl-C`, a service manager, a terminal that closes.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;

use bdp_sys::signal::{self, Ending};

use crate::{failure, output};

static LISTENER: Once = Once::new();
static LAST_WORDS: Mutex<Option<String>> = Mutex::new(None);

/// From now on such an end is preceded by these words, in one line, or by none. To be called before the first thread
/// starts.
pub fn set_last_words(words: Option<String>) {
    LISTENER.call_once(|| {
        let held = signal::hold();
        // Without a listener nothing could end bdp any more but SIGKILL.
        if thread::Builder::new().name("bdp-signals".to_owned()).spawn(move || speak(held)).is_err() {
            held.release();
        }
    });
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = words;
}

static CANCEL: AtomicBool = AtomicBool::new(false);
static ASKED: Mutex<Option<Ending>> = Mutex::new(None);

/// From now on the first such end raises the flag that is given and no more, so that what was done so far can be shown;
/// a second one ends bdp at once. To be called before the first thread starts, and not beside [`set_last_words`].
pub fn cancel_instead() -> &'static AtomicBool {
    LISTENER.call_once(|| {
        let held = signal::hold();
        let listen = move || {
            *ASKED.lock().unwrap_or_else(PoisonError::into_inner) = Some(held.wait());
            CANCEL.store(true, Ordering::Relaxed);
            held.wait().carry_out()
        };
        if thread::Builder::new().name("bdp-signals".to_owned()).spawn(listen).is_err() {
            held.release();
        }
    });
    &CANCEL
}

/// From now on every such end is handed over, with whether the terminal asked for it, and ends nothing by itself. To be called before the first
/// thread starts, and not beside the others.
pub fn hand_over(take: impl Fn(Ending, bool) + Send + 'static) {
    LISTENER.call_once(|| {
        let held = signal::hold();
        let listen = move || loop {
            if let Some((signal::HeldSignal::Ending(ending), by_terminal)) = held.wait_for(None) {
                take(ending, by_terminal);
            }
        };
        if thread::Builder::new().name("bdp-signals".to_owned()).spawn(listen).is_err() {
            held.release();
        }
    });
}

/// Ends bdp by the signal that raised the flag, with these words where JSON was asked for and none was printed; does nothing
/// where none did.
pub fn carry_out(words: &str) {
    if let Some(ending) = ASKED.lock().unwrap_or_else(PoisonError::into_inner).take() {
        failure::report_ending(ending, words);
        ending.carry_out();
    }
}

fn speak(held: signal::Held) {
    let ending = held.wait();
    if let Some(words) = LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner).take() {
        if io::stderr().is_terminal() {
            // The line of progress, or the terminal's own `^C`, stands where the words would begin.
            let _ = io::stderr().write_all(b"\n");
        }
        output::note(&format!("bdp: ended by {}; {words}", ending.name()));
        failure::report_ending(ending, &words);
    }
    ending.carry_out()
}
