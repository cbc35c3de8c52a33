//! Runs a program that leaves nothing behind: a keeper process between it and its starter adopts all that the
//! program leaves, in whatever session, and kills it when the program ends, on request, or when the starter ends.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::signal;

/// Rounds of killing: each reaches the processes that the previous round orphaned.
const ROUNDS: u32 = 2_000;
const BETWEEN_NS: i64 = 1_000_000;
/// How long to wait for a keeper that was asked to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Makes `command` start through a keeper: the child is the keeper, which ends as the program does. Later
/// additions to the command concern the program alone. Everything ends with the thread that starts it.
pub fn contain(command: &mut Command) {
    let starter = std::process::id() as libc::pid_t;
    command.process_group(0);
    // SAFETY: between fork and exec, and in the keeper, which never returns, run only calls of the system, which allocate nothing and take no lock.
    unsafe {
        command.pre_exec(move || {
            let awaited = hold_for_keeper();
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            if libc::getppid() != starter {
                libc::_exit(0);
            }
            let keeper = libc::getpid();
            match libc::fork() {
                -1 => return Err(std::io::Error::last_os_error()),
                0 => {}
                program => keep(program, &awaited),
            }
            libc::setpgid(0, 0);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid() != keeper {
                libc::_exit(0);
            }
            signal::hold_none();
            Ok(())
        });
    }
}

/// Ends a contained program with all that it started, and waits for it.
pub fn end(keeper: &mut Child) {
    let process = Pid::from_raw(keeper.id() as i32);
    if matches!(keeper.try_wait(), Ok(None)) {
        let _ = process.map(|process| kill_process(process, Signal::TERM));
    }
    let until = Instant::now() + PATIENCE;
    while matches!(keeper.try_wait(), Ok(None)) {
        if Instant::now() > until {
            let _ = keeper.kill();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Blocks in the calling thread the signals that a keeper waits for.
unsafe fn hold_for_keeper() -> libc::sigset_t {
    // SAFETY: sigemptyset initialises the set; the mask concerns only the calling thread.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut set);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        set
    }
}

/// Runs the keeper.
unsafe fn keep(program: libc::pid_t, awaited: &libc::sigset_t) -> ! {
    // SAFETY: calls of the system on this process, its children and memory of this function.
    unsafe {
        // The program's sockets must close with the program.
        if libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) != 0 {
            for descriptor in 0..1024 {
                libc::close(descriptor);
            }
        }
        let mut end = None;
        while reap(program, &mut end) && end.is_none() {
            let mut came: libc::siginfo_t = std::mem::zeroed();
            if libc::sigwaitinfo(awaited, &raw mut came) == libc::SIGTERM {
                break;
            }
        }
        for _ in 0..ROUNDS {
            kill_children();
            if !reap(program, &mut end) {
                break;
            }
            let pause = libc::timespec { tv_sec: 0, tv_nsec: BETWEEN_NS };
            libc::nanosleep(&raw const pause, std::ptr::null_mut());
        }
        match end {
            Some(status) if libc::WIFSIGNALED(status) => {
                let signal = libc::WTERMSIG(status);
                libc::prctl(libc::PR_SET_DUMPABLE, 0);
                libc::signal(signal, libc::SIG_DFL);
                signal::hold_none();
                libc::kill(libc::getpid(), signal);
                libc::_exit(128 + signal)
            }
            status => libc::_exit(status.map_or(1, |status| libc::WEXITSTATUS(status))),
        }
    }
}

/// Reaps all children that have ended; returns whether any is left.
unsafe fn reap(program: libc::pid_t, end: &mut Option<libc::c_int>) -> bool {
    loop {
        let mut status = 0;
        // SAFETY: fills `status`.
        match unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } {
            0 => return true,
            -1 => return false,
            process if process == program => *end = Some(status),
            _ => {}
        }
    }
}

/// Kills all children of this process.
unsafe fn kill_children() {
    let mut text = [0_u8; 4096];
    // SAFETY: reads into memory of this function.
    let length = unsafe {
        let file = libc::open(c"/proc/thread-self/children".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let length = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        usize::try_from(length).unwrap_or(0)
    };
    let mut number: libc::pid_t = 0;
    for &byte in &text[..length] {
        if byte.is_ascii_digit() {
            number = number.wrapping_mul(10).wrapping_add(libc::pid_t::from(byte - b'0'));
        } else {
            // A number cut off at the end of the text is handled in the next round.
            if number > 1 {
                // SAFETY: ends another process, a child of this one.
                unsafe { libc::kill(number, libc::SIGKILL) };
            }
            number = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;

    use super::*;

    fn shell(line: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::piped());
        contain(&mut command);
        command
    }

    /// Whether a process runs; one that has ended but was not reaped does not.
    fn runs(process: &str) -> bool {
        std::fs::read_to_string(format!("/proc/{process}/stat"))
            .is_ok_and(|text| !text.rsplit(") ").next().unwrap_or("").starts_with('Z'))
    }

    #[test]
    fn it_ends_as_the_program_does() {
        assert_eq!(shell("exit 7").status().unwrap().code(), Some(7));
        assert_eq!(shell("kill -ABRT $$").status().unwrap().signal(), Some(libc::SIGABRT));
        let mut missing = Command::new("/no/such/program");
        contain(&mut missing);
        assert_eq!(missing.spawn().unwrap_err().kind(), std::io::ErrorKind::NotFound);
    }

    #[test]
    fn what_a_program_leaves_in_another_session_ends_with_it() {
        let line = "setsid sh -c 'setsid sleep 300 & echo $!'";
        let mut child = shell(line).spawn().unwrap();
        let mut process = [0; 16];
        let length = child.stdout.as_mut().unwrap().read(&mut process).unwrap();
        let process = String::from_utf8_lossy(&process[..length]).trim().to_owned();
        child.wait().unwrap();
        assert!(!runs(&process), "{process}");
    }

    #[test]
    fn asked_to_end_all_of_it_ends_and_no_signal_is_held_from_the_program() {
        let held = signal::hold();
        let mut child =
            shell("setsid sleep 300 & echo $! $(grep SigBlk /proc/self/status); sleep 300").spawn().unwrap();
        let _ = held;
        signal::hold_none();
        let mut line = [0; 64];
        let length = child.stdout.as_mut().unwrap().read(&mut line).unwrap();
        let line = String::from_utf8_lossy(&line[..length]).into_owned();
        let (process, blocked) = line.trim().split_once(' ').unwrap();
        assert_eq!(blocked, "SigBlk: 0000000000000000");
        assert!(runs(process));
        end(&mut child);
        assert!(!runs(process));
    }
}
