//! What is known of the processes that hold sockets.

use std::collections::BTreeSet;

use bdp_sys::cgroup::Throttling;

/// This machine's processes, or a script's in tests.
pub(super) trait Processes {
    /// Returns how the quota of a process's control group has throttled it so far; `None` if there is none, or it is
    /// not visible.
    fn throttling(&mut self, _process: u32) -> Option<Throttling> {
        None
    }
    /// Returns whether a process's program set the sizes of a socket's send and receive buffers; `None` if not
    /// visible.
    fn buffers_asked(&mut self, _process: u32, _socket: u32) -> Option<(bool, bool)> {
        None
    }
    /// The ports on which programs of a network namespace listen, by its number.
    fn listening(&mut self, _network: u16) -> BTreeSet<u16> {
        BTreeSet::new()
    }
}
