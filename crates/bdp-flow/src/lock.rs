//! Locks whose holder may have panicked: what they guard is whole all the same.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The lock of `mutex`.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lock again, once `changed` was notified or the time has passed.
pub fn wait<'a, T>(changed: &Condvar, held: MutexGuard<'a, T>, patience: Duration) -> MutexGuard<'a, T> {
    changed.wait_timeout(held, patience).unwrap_or_else(PoisonError::into_inner).0
}
