//! Locks whose holder may have panicked: their content is consistent all the same.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Locks `mutex`.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until `changed` is notified or the time has passed; returns the lock again.
pub fn wait<'a, T>(changed: &Condvar, held: MutexGuard<'a, T>, patience: Duration) -> MutexGuard<'a, T> {
    changed.wait_timeout(held, patience).unwrap_or_else(PoisonError::into_inner).0
}
