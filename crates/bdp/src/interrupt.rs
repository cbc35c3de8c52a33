//! Last output if bdp is ended early: `Ctrl-C`, a service manager, a terminal that closes.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;

use bdp_sys::signal::{self, Ending};

use crate::{failure, output};

static LISTENER: Once = Once::new();
static LAST_WORDS: Mutex<Option<String>> = Mutex::new(None);

/// From now on such an end first prints these words, in one line, or nothing. Must be called before the first thread starts.
pub fn set_last_words(words: Option<String>) {
    LISTENER.call_once(|| {
        let held = signal::hold();
        // Without a listener nothing but SIGKILL could end bdp any more.
        if thread::Builder::new().name("bdp-signals".to_owned()).spawn(move || speak(held)).is_err() {
            held.release();
        }
    });
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = words;
}

static CANCEL: AtomicBool = AtomicBool::new(false);
static ASKED: Mutex<Option<Ending>> = Mutex::new(None);

/// From now on the first such end only raises the returned flag, so that the results so far can be shown; a
/// second one ends bdp at once. Must be called before the first thread starts, and not together with
/// [`set_last_words`].
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

/// From now on every such end is passed to `take`, with whether the terminal sent it, and ends nothing by itself.
/// Must be called before the first thread starts, and not together with the others.
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

/// Ends bdp by the signal that raised the flag, with these words if JSON was requested and none printed; does nothing if there was none.
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
            // The progress line, or the terminal's own `^C`, occupies the line of the words.
            let _ = io::stderr().write_all(b"\n");
        }
        output::note(&format!("bdp: ended by {}; {words}", ending.name()));
        failure::report_ending(ending, &words);
    }
    ending.carry_out()
}
