//! `bdp __tune-guard`: the process that reverts changes when their time is over. Internal.

use std::cell::Cell;
use std::ffi::OsString;
use std::io::{BufRead, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bdp_sys::signal::{self, Ending, HeldSignal};
use bdp_tune::{GuardCommand, HostWorld, Journal, Places, supervise};

/// The hidden subcommand.
pub const NAME: &str = "__tune-guard";

/// Command that starts it.
pub fn command() -> GuardCommand {
    GuardCommand { path: "/proc/self/exe".into(), arguments: vec![NAME.to_owned()] }
}

/// Larger journals are rejected.
const LARGEST_JOURNAL: usize = 4 << 20;

/// Guards the journal that it gets on its standard input. It reverts at once if it is asked to end, for example
/// at shutdown, and if the process that started it ends before confirming that everything was written.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.collect();
    let [folder, persistent_file, id] = &arguments[..] else { return ExitCode::from(2) };
    let id: Option<u32> = id.to_str().and_then(|text| text.parse().ok());
    let journal = read_journal(&mut std::io::stdin().lock());
    let Some(journal) = journal.filter(|journal| Some(journal.id) == id) else { return ExitCode::from(2) };
    let id = journal.id;
    let held = signal::hold();
    let places = Places { folder: folder.into(), persistent_file: persistent_file.into() };
    let mut world = HostWorld::new(places, command());
    let Ok(mark) = world.guard(id) else { return ExitCode::from(3) };
    if write!(std::io::stdout(), "{}", bdp_tune::GUARD_READY).is_err() || std::io::stdout().flush().is_err() {
        return ExitCode::from(3);
    }
    let is_applied = Arc::new(AtomicBool::new(false));
    let applied = Arc::clone(&is_applied);
    let mark = Arc::new(mark);
    let marked = Arc::clone(&mark);
    let listen = move || {
        let mut said = String::new();
        let _ = std::io::stdin().read_to_string(&mut said);
        if said == bdp_tune::GUARD_APPLIED {
            marked.note_applied();
            applied.store(true, Ordering::Release);
        } else {
            Ending::polite().send(std::process::id());
        }
    };
    if std::thread::Builder::new().name("bdp-stdin".to_owned()).spawn(listen).is_err() {
        return ExitCode::from(3);
    }
    let is_asked = Cell::new(false);
    let wait = |ns: u64| {
        let time = Duration::from_nanos(ns);
        if is_asked.get() {
            // It tries again until the lock is free.
            std::thread::sleep(time.min(Duration::from_millis(10)));
        } else if let Some((HeldSignal::Ending(_), _)) = held.wait_for(Some(time)) {
            is_asked.set(true);
        }
        is_asked.get()
    };
    let supervised = supervise(&mut world, &journal, wait, || is_applied.load(Ordering::Acquire));
    world.end_guard(id);
    drop(mark);
    if supervised.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(3) }
}

/// Reads the journal: a line with its length, and its bytes. Its file may be gone before it is read again.
fn read_journal(input: &mut impl BufRead) -> Option<Journal> {
    let mut line = String::new();
    input.by_ref().take(16).read_line(&mut line).ok()?;
    let length: usize = line.trim_end().parse().ok().filter(|&length| length <= LARGEST_JOURNAL)?;
    let mut bytes = vec![0; length];
    input.read_exact(&mut bytes).ok()?;
    Journal::decode(&bytes).ok()
}
