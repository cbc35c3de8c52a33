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
    /// Waits until then; less long where it is cancelled.
    fn wait_until(&mut self, at_ns: u64, cancel: &AtomicBool);
    /// Which sockets are wanted is found anew, as programs open others; with what is worth a line.
    fn refresh(&mut self, tracker: &Tracker) -> Vec<String>;
    /// What is followed by now may be asked for alone.
    fn narrow(&mut self, tracker: &Tracker);
    /// Hands over the sockets, each with the number of its namespace and whether it is wanted; returns whether none is missing. With
    /// `everything`, with what seldom changes.
    fn list(&mut self, everything: bool, each: &mut Each<'_>) -> bdp_sys::Result<bool>;
    /// The programs that have these sockets open; `None` where it is too early to look again.
    fn holders(&mut self, sockets: &[u32]) -> Option<Vec<(u32, Option<Arc<Holder>>)>>;
    /// Whether nothing is to come any more, once no socket is open.
    fn is_over(&self) -> bool;
}
