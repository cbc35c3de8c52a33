//! Sources of sockets and time.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bdp_model::watch::Holder;
use bdp_sys::diag::SocketReport;

use super::processes::Processes;
use super::tracker::Tracker;

/// Receives a socket, the number of its namespace, and whether it is wanted.
pub(super) type Each<'a> = dyn FnMut(u16, &SocketReport<'_>, &dyn Fn() -> bool) + 'a;

/// This machine's kernel, or a script in tests.
pub(super) trait World: Processes {
    /// Since watching began.
    fn now_ns(&mut self) -> u64;
    /// Waits until a moment, or until cancelled.
    fn wait_until(&mut self, at_ns: u64, cancel: &AtomicBool);
    /// Resolves the wanted sockets again, as programs open others; returns messages to show.
    fn refresh(&mut self, tracker: &Tracker) -> Vec<String>;
    /// Limits the list to the sockets tracked by now.
    fn narrow(&mut self, tracker: &Tracker);
    /// Passes on the sockets, each with the number of its namespace and whether it is wanted; returns whether the
    /// list is complete. With `everything`, includes what seldom changes.
    fn list(&mut self, everything: bool, each: &mut Each<'_>) -> bdp_sys::Result<bool>;
    /// Returns the programs that have these sockets open; `None` if it is too early to look again.
    fn holders(&mut self, sockets: &[u32]) -> Option<Vec<(u32, Option<Arc<Holder>>)>>;
    /// Whether nothing more can come once no socket is open.
    fn is_over(&self) -> bool;
}
