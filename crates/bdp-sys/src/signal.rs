//! Signals that end the process, and their handling.

use std::mem::MaybeUninit;

/// Signals by which people and service managers ask a process to end.
const ENDING: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// From now on a write beyond the limit on file sizes (`ulimit -f`) is an error (`EFBIG`) and does not end the process.
pub fn survive_file_size_limit() {
    // SAFETY: a disposition that runs no code of ours.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// From now on only `SIGKILL` ends this process from outside: for a process whose parent decides when it ends,
/// and which a terminal would signal together with its parent.
pub fn leave_ending_to_parent() {
    for signal in ENDING {
        // SAFETY: as above.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// A signal that asked the process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending(libc::c_int);

/// Blocked signals to wait for.
#[derive(Clone, Copy)]
pub struct Held(libc::sigset_t);

/// Blocks the signals that ask for an end in the calling thread, and in every thread and process that it starts
/// afterwards, so that one thread can [`Held::wait`] for them. Ignored ones, as under `nohup`, stay ignored.
pub fn hold() -> Held {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set, which sigaddset then changes; sigaction with a null new action only
    // fills `current`, for which all-zero is valid; the mask concerns only the calling thread.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in ENDING {
            let mut current: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut current);
            if current.sa_sigaction != libc::SIG_IGN {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
        Held(set.assume_init())
    }
}

/// As [`hold`], with the signal of a child's end.
pub fn hold_with_children() -> Held {
    let Held(mut set) = hold();
    // SAFETY: the set is initialised; the mask concerns only the calling thread.
    unsafe {
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
    }
    Held(set)
}

/// Unblocks all signals in the calling thread. It allocates nothing and takes no lock.
pub fn hold_none() {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set; the mask concerns only the calling thread.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Blocks in the calling thread the signal that stops a background process which uses the terminal.
pub fn hold_output_stop() {
    let mut set = MaybeUninit::uninit();
    // SAFETY: as above.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGTTOU);
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// A blocked signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldSignal {
    /// A signal that asks for an end.
    Ending(Ending),
    /// A child ended.
    Child,
}

impl Held {
    /// Waits for the next signal, at most `most`; `None` if none came. Also returns whether the kernel sent it, as it
    /// does for a terminal, to every process of the foreground group.
    pub fn wait_for(&self, most: Option<std::time::Duration>) -> Option<(HeldSignal, bool)> {
        loop {
            // SAFETY: all pointers refer to live values, of which siginfo is plain data for which all-zero is valid.
            let (signal, by_kernel) = unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                let signal = match most {
                    None => libc::sigwaitinfo(&raw const self.0, &raw mut info),
                    Some(most) => {
                        let most = libc::timespec {
                            tv_sec: most.as_secs() as libc::time_t,
                            tv_nsec: libc::c_long::from(most.subsec_nanos()),
                        };
                        libc::sigtimedwait(&raw const self.0, &raw mut info, &raw const most)
                    }
                };
                (signal, info.si_code == libc::SI_KERNEL)
            };
            match signal {
                libc::SIGCHLD => return Some((HeldSignal::Child, by_kernel)),
                1.. => return Some((HeldSignal::Ending(Ending(signal)), by_kernel)),
                _ if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
                _ if most.is_some() => return None,
                // Only of a set that is empty or broken: no signal is to come.
                _ => std::thread::park(),
            }
        }
    }

    /// Waits for the next signal.
    pub fn wait(&self) -> Ending {
        let mut signal = 0;
        // SAFETY: both pointers refer to live values. It fails only if the set is empty or broken, and then no signal is
        // to come: this thread waits for ever.
        while unsafe { libc::sigwait(&raw const self.0, &raw mut signal) } != 0 {
            std::thread::park();
        }
        Ending(signal)
    }

    /// Unblocks them in the calling thread.
    pub fn release(&self) {
        // SAFETY: the set is initialised; the mask concerns only the calling thread.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const self.0, std::ptr::null_mut()) };
    }
}

impl Ending {
    /// Sends it to a process. One already gone is no error.
    pub fn send(self, process: u32) {
        // SAFETY: it takes two numbers, and touches no memory of this process.
        unsafe { libc::kill(process as libc::pid_t, self.0) };
    }

    /// Sends it to every process of a namespace of which this is the first; elsewhere to none.
    pub fn send_to_all(self) {
        if rustix::process::getpid().is_init() {
            // SAFETY: as above.
            unsafe { libc::kill(-1, self.0) };
        }
    }

    /// The signal by which service managers ask for an end.
    pub fn polite() -> Self {
        Self(libc::SIGTERM)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self.0 {
            libc::SIGINT => "SIGINT",
            libc::SIGTERM => "SIGTERM",
            libc::SIGHUP => "SIGHUP",
            _ => "SIGQUIT",
        }
    }

    /// Exit code that a shell reports for it.
    pub fn exit_code(self) -> u8 {
        u8::try_from(128 + self.0).unwrap_or(u8::MAX)
    }

    /// Ends the process by this signal, so that its parent sees which one it was.
    pub fn carry_out(self) -> ! {
        // SAFETY: the default disposition runs no code of ours; the set is initialised before it is used.
        unsafe {
            let mut set = MaybeUninit::uninit();
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), self.0);
            libc::signal(self.0, libc::SIG_DFL);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut());
            libc::raise(self.0);
        }
        // Only if something else blocks the signal.
        std::process::exit(128 + self.0)
    }
}
