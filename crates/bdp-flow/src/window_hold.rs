//! Keeps a receive window at its size on the wire while data arrives: the kernel widens it again as it learns the
//! path.

use std::net::TcpStream;

use bdp_sys::window;

/// Interval at which each stream's window is checked, and the longest interval for all of them.
const HOLD_NS: u64 = 2_000_000;
const LONGEST_HOLD_NS: u64 = 200_000_000;

/// For streams that have the same window.
pub struct WindowHold {
    /// The clamp that keeps it.
    clamp: u32,
    /// When it is checked next, monotonic.
    next_ns: u64,
}

impl WindowHold {
    /// Creates it for a window of this size and streams like this one.
    pub fn of(stream: &TcpStream, window_bytes: u32) -> Self {
        Self { clamp: window::clamp_for(stream, window_bytes), next_ns: 0 }
    }

    /// Resets windows that the kernel has widened, if it is time to check.
    pub fn keep(&mut self, now_ns: u64, streams: &[TcpStream]) {
        if now_ns < self.next_ns {
            return;
        }
        self.next_ns = now_ns + (streams.len() as u64 * HOLD_NS).min(LONGEST_HOLD_NS);
        for stream in streams {
            // If the kernel refuses, the window that the sender saw shows it.
            let _ = window::hold(stream, self.clamp);
        }
    }
}
