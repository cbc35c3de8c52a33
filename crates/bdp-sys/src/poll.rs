//! Waits for descriptors with a deadline in nanoseconds.

use std::io::{self, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, PollFd, PollFlags, epoll, eventfd, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::clock::timespec;
use crate::{Result, SysError};

/// Event to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Readable.
    Read,
    /// Writable.
    Write,
}

/// An epoll instance, level-triggered. Each descriptor is registered under a token of the caller's.
#[derive(Debug)]
pub struct Poll {
    epoll: OwnedFd,
}

impl Poll {
    /// Creates an empty one.
    pub fn new() -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC);
        Ok(Self { epoll: epoll.map_err(|e| SysError::new("create", "epoll", e.into()))? })
    }

    /// Waits for `fd` under `token` from now on.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> Result<()> {
        let events = match interest {
            Interest::Read => epoll::EventFlags::IN,
            Interest::Write => epoll::EventFlags::OUT,
        };
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(token), events)
            .map_err(|e| SysError::new("watch", "descriptor", e.into()))
    }

    /// Stops waiting for `fd`.
    pub fn remove(&self, fd: impl AsFd) -> Result<()> {
        epoll::delete(&self.epoll, fd).map_err(|e| SysError::new("unwatch", "descriptor", e.into()))
    }

    /// Waits until a descriptor is ready or `timeout_ns` have passed (`None`: for ever); puts the ready tokens into
    /// `ready`, which is cleared first. Precise to the timer slack if the kernel has `epoll_pwait2` (5.11), else
    /// rounded up to milliseconds. An interrupting signal ends the wait early with nothing ready.
    pub fn wait(&self, ready: &mut Vec<u64>, timeout_ns: Option<u64>) -> Result<()> {
        ready.clear();
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        // rustix chooses between the calls at build time: milliseconds, or a kernel with the newer one.
        let timespec = timeout_ns.map(|ns| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as _,
            tv_nsec: (ns % 1_000_000_000) as _,
        });
        let pointer = timespec.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: `events` has room for 64 entries, `pointer` is null or points to a live timespec, no signal mask.
        let mut count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                events.as_mut_ptr(),
                events.len() as libc::c_int,
                pointer,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        if count < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) {
            let ms = timeout_ns.map_or(-1, |ns| i32::try_from(ns.div_ceil(1_000_000)).unwrap_or(i32::MAX));
            // SAFETY: as above.
            count = libc::c_long::from(unsafe {
                libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), events.len() as libc::c_int, ms)
            });
        }
        if count < 0 {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                return Ok(());
            }
            return Err(SysError::new("wait for", "epoll", error));
        }
        ready.extend(events[..count as usize].iter().map(|e| e.u64));
        Ok(())
    }
}

/// A timer that wakes a [`Poll`] to the nanosecond: the kernel's own timeouts are late by up to a thousandth.
#[derive(Debug)]
pub struct Alarm {
    timer: OwnedFd,
}

impl Alarm {
    /// Creates one that is not set.
    pub fn new() -> Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK);
        Ok(Self { timer: timer.map_err(|e| SysError::new("create", "timerfd", e.into()))? })
    }

    /// Sets it to a moment of the monotonic clock, replacing the previous one; a past moment fires at once.
    pub fn set(&self, moment_ns: u64) -> Result<()> {
        let moment = moment_ns.clamp(1, i64::MAX as u64);
        let at = Timespec { tv_sec: (moment / 1_000_000_000) as _, tv_nsec: (moment % 1_000_000_000) as _ };
        let once = Itimerspec { it_interval: Timespec::default(), it_value: at };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)
            .map(drop)
            .map_err(|e| SysError::new("set", "timerfd", e.into()))
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

/// A counter that wakes a [`Poll`] of another thread.
#[derive(Debug)]
pub struct Waker {
    event: OwnedFd,
}

impl Waker {
    /// Creates one with no wake pending.
    pub fn new() -> Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Self { event: event.map_err(|e| SysError::new("create", "eventfd", e.into()))? })
    }

    /// Wakes the waiting thread. Waking twice before it reads is one wake.
    pub fn wake(&self) {
        // A full counter refuses, but then a wake is pending anyway.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    /// Clears the pending wakes.
    pub fn clear(&self) {
        // If nothing is pending it returns EAGAIN, which is harmless.
        let _ = rustix::io::read(&self.event, &mut [0u8; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// Whether a descriptor becomes readable, ends or fails within the time.
pub fn wait_readable(fd: BorrowedFd<'_>, wait_ns: u64) -> io::Result<bool> {
    wait_for(fd, PollFlags::IN, wait_ns)
}

/// Waits until one of the descriptors is ready or has failed, or the time has passed.
pub fn wait_any(all: &[(BorrowedFd<'_>, Interest)], wait_ns: u64) {
    let flags = |interest| match interest {
        Interest::Read => PollFlags::IN,
        Interest::Write => PollFlags::OUT,
    };
    let mut all: Vec<PollFd<'_>> =
        all.iter().map(|&(fd, interest)| PollFd::from_borrowed_fd(fd, flags(interest))).collect();
    // If the wait fails, the caller simply tries again.
    let _ = poll(&mut all, Some(&timespec(wait_ns)));
}

/// Writes all bytes to a nonblocking connection; `BrokenPipe` if it stays full for longer than the time.
pub fn write_whole(mut stream: &TcpStream, bytes: &[u8], patience_ns: u64) -> io::Result<()> {
    let mut written = 0;
    while written < bytes.len() {
        match stream.write(&bytes[written..]) {
            Ok(more) => written += more,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                if !wait_for(stream.as_fd(), PollFlags::OUT, patience_ns)? {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Whether a descriptor becomes ready for `events` within the time.
pub(crate) fn wait_for(fd: BorrowedFd<'_>, events: PollFlags, wait_ns: u64) -> io::Result<bool> {
    match poll(&mut [PollFd::from_borrowed_fd(fd, events)], Some(&timespec(wait_ns))) {
        Err(rustix::io::Errno::INTR) => Ok(false),
        ready => Ok(ready? > 0),
    }
}

/// Whether a socket error only means that the call would block.
pub fn is_wait(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_is_seen_and_cleared() {
        let (poll, waker) = (Poll::new().unwrap(), Waker::new().unwrap());
        poll.add(&waker, 7, Interest::Read).unwrap();
        let mut ready = Vec::new();
        poll.wait(&mut ready, Some(0)).unwrap();
        assert!(ready.is_empty());
        waker.wake();
        waker.wake();
        poll.wait(&mut ready, Some(1_000_000_000)).unwrap();
        assert_eq!(ready, [7]);
        waker.clear();
        poll.wait(&mut ready, Some(0)).unwrap();
        assert!(ready.is_empty());
    }
}
