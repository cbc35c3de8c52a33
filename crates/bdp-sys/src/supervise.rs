//! A process that supervises one child: it passes on the signals that ask for an end, reaps every orphan, and ends as the child does.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Signal, WaitOptions};

use crate::signal;
use crate::{Result, SysError};

/// Exit code that a shell reports: the process's own, or 128 plus the signal number.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Supervises one child. It starts before the child does, so that no signal is lost.
pub struct Supervisor {
    held: signal::Held,
}

impl Supervisor {
    /// From now on the signals that ask for an end wait for [`Supervisor::wait`].
    pub fn begin() -> Self {
        Self { held: signal::hold_with_children() }
    }

    /// Starts `command` with the usual signals. With `tied` it is killed when this process ends.
    pub fn start(&self, command: &mut Command, tied: bool) -> io::Result<u32> {
        // SAFETY: what runs between fork and exec are calls of the system, which allocate nothing and take no lock.
        unsafe {
            command.pre_exec(move || {
                if tied {
                    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                } else {
                    signal::hold_none();
                }
                Ok(())
            });
        }
        command.spawn().map(|child| child.id())
    }

    /// Waits for the end of the child, and passes on signals that ask this process to end; the terminal has sent its
    /// own to the child too. With `grace` the child is killed this long after the first signal passed on.
    pub fn wait(&self, child: u32, grace: Option<Duration>) -> Result<ExitStatus> {
        let mut kill_at: Option<Instant> = None;
        loop {
            if let Some(status) = ended(child)? {
                return Ok(status);
            }
            let left = kill_at.map(|at| at.saturating_duration_since(Instant::now()));
            match self.held.wait_for(left) {
                Some((signal::HeldSignal::Ending(ending), false)) => {
                    ending.send(child);
                    kill_at = kill_at.or(grace.map(|grace| Instant::now() + grace));
                }
                Some(_) => {}
                None => {
                    let _ = crate::process::kill(child);
                    kill_at = None;
                }
            }
        }
    }
}

impl Supervisor {
    /// Waits until no child is left, including adopted ones. For the first process of a namespace, which passes
    /// signals that ask for an end on to all of it.
    pub fn wait_for_orphans(&self) {
        loop {
            loop {
                match rustix::process::wait(WaitOptions::NOHANG) {
                    Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
            if let Some((signal::HeldSignal::Ending(ending), _)) = self.held.wait_for(None) {
                ending.send_to_all();
            }
        }
    }
}

/// Reaps every process that has ended; returns the child's status if it was among them.
fn ended(child: u32) -> Result<Option<ExitStatus>> {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((process, status))) if process.as_raw_nonzero().get() as u32 == child => {
                return Ok(Some(ExitStatus::from_raw(status.as_raw())));
            }
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return Ok(None),
            Err(error) => return Err(SysError::new("wait for", format!("process {child}"), error.into())),
        }
    }
}
