//! What is known of the processes that hold sockets.

use std::collections::BTreeSet;

use bdp_sys::cgroup::Throttling;

/// This machine's processes, or a script's in tests.
pub(super) trait Processes {
    /// How the quota of a process's control group has held that back so far; `None` where there is none, or that can't be seen.
    fn throttling(&mut self, _process: u32) -> Option<Throttling> {
        None
    }
    /// Whether the program of a process asked for the sizes of a socket's buffers, to send and to receive; `None` where that can't be seen.
    fn buffers_asked(&mut self, _process: u32, _socket: u32) -> Option<(bool, bool)> {
        None
    }
    /// The ports on which programs of a network namespace listen, by its number.
    fn listening(&mut self, _network: u16) -> BTreeSet<u16> {
        BTreeSet::new()
    }
}
