//! Signals: which of them end the process, and how.

use std::mem::MaybeUninit;

/// Signals by which people and service managers ask a process to end.
const ENDING: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// From now on a write beyond the limit on file sizes (`ulimit -f`) is an error (`EFBIG`) and not the end of the process.
pub fn survive_file_size_limit() {
    // SAFETY: a disposition that runs no code of ours.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// From now on only `SIGKILL` ends this process from outside: for a process whose parent decides when it ends, and
/// which a terminal would signal together with its parent.
pub fn leave_ending_to_parent() {
    for signal in ENDING {
        // SAFETY: as above.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// A signal that asked the process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending(libc::c_int);

/// Keeps [`Ending`]s from the calling thread and from every thread that it starts afterwards, so that one of them can
/// [`wait`].
pub fn hold() {
    let set = ending_set();
    // SAFETY: `set` is initialised; the mask concerns only the calling thread.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Waits for one that is held.
pub fn wait() -> Ending {
    let set = ending_set();
    let mut signal = 0;
    // SAFETY: both pointers refer to live locals. It fails only for a set with an invalid signal.
    while unsafe { libc::sigwait(&raw const set, &raw mut signal) } != 0 {}
    Ending(signal)
}

impl Ending {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self.0 {
            libc::SIGINT => "SIGINT",
            libc::SIGTERM => "SIGTERM",
            libc::SIGHUP => "SIGHUP",
            _ => "SIGQUIT",
        }
    }

    /// Ends the process by this signal, so that whoever started it sees which one it was.
    pub fn carry_out(self) -> ! {
        let set = ending_set();
        // SAFETY: the default disposition runs no code of ours; `set` is initialised; raise takes a number.
        unsafe {
            libc::signal(self.0, libc::SIG_DFL);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
            libc::raise(self.0);
        }
        // Only where something else keeps the signal away.
        std::process::exit(128 + self.0)
    }
}

fn ending_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set, which sigaddset then changes.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in ENDING {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}
