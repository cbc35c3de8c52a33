//! `bdp __tune-guard`: the process that puts changes back when their time is over. Not for people.

use std::cell::Cell;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bdp_sys::signal::{self, Came, Ending};
use bdp_tune::{GuardCommand, HostWorld, Places, Supervision, supervise};

/// The hidden subcommand.
pub const NAME: &str = "__tune-guard";

/// How it is started.
pub fn command() -> GuardCommand {
    GuardCommand { path: "/proc/self/exe".into(), arguments: vec![NAME.to_owned()] }
}

/// Looks after the journal that the arguments name. It puts back at once where it is asked to end, as by a machine that shuts down, and
/// where the process that started it ends before it says that all was written.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.collect();
    let [folder, persistent_file, id, at] = &arguments[..] else { return ExitCode::from(2) };
    let number = |text: &OsString| text.to_str().and_then(|text| text.parse::<u64>().ok());
    let (Some(id), Some(at_uptime_ns)) = (number(id).and_then(|id| u32::try_from(id).ok()), number(at))
    else {
        return ExitCode::from(2);
    };
    let held = signal::hold();
    let places = Places { folder: folder.into(), persistent_file: persistent_file.into() };
    let mut world = HostWorld::new(places, command());
    let Ok(mark) = world.guard(id) else { return ExitCode::from(3) };
    if write!(std::io::stdout(), "{}", bdp_tune::GUARD_READY).is_err() || std::io::stdout().flush().is_err() {
        return ExitCode::from(3);
    }
    let is_applied = Arc::new(AtomicBool::new(false));
    let applied = Arc::clone(&is_applied);
    let listen = move || {
        let mut said = String::new();
        let _ = std::io::stdin().read_to_string(&mut said);
        if said == bdp_tune::GUARD_APPLIED {
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
            // What it does now is tried again until the lock is free.
            std::thread::sleep(time.min(Duration::from_millis(10)));
        } else if let Some((Came::Ending(_), _)) = held.wait_for(Some(time)) {
            is_asked.set(true);
        }
        is_asked.get()
    };
    let supervised =
        supervise(&mut world, Supervision { id, at_uptime_ns }, wait, || is_applied.load(Ordering::Acquire));
    world.end_guard(id);
    drop(mark);
    if supervised.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(3) }
}
