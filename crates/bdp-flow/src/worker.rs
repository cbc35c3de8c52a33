//! Threads of a flow, which a limit on processes may forbid.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use crate::error::{FlowError, Result};

/// Starts a thread, which a limit on processes may forbid.
pub fn start<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    Builder::new().spawn(work).map_err(FlowError::io("start a thread (raise the limit 'ulimit -u')"))
}

/// A thread with a flag that asks it to stop. Dropping it raises the flag and waits.
pub struct Stoppable<T> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Stoppable<T> {
    /// Starts the thread.
    pub fn start(work: impl FnOnce(&Arc<AtomicBool>) -> T + Send + 'static) -> Result<Self> {
        let stop = Arc::<AtomicBool>::default();
        let flag = Arc::clone(&stop);
        Ok(Self { stop, thread: Some(start(move || work(&flag))?) })
    }
}

impl<T> Stoppable<T> {
    /// Raises the flag.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the thread has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the thread's end.
    pub fn join(&mut self) -> Option<T> {
        Some(self.thread.take()?.join().unwrap_or_else(|panic| resume_unwind(panic)))
    }
}

impl<T> Drop for Stoppable<T> {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A thread started in a scope, joined with its result.
pub struct Worker<'scope, T>(ScopedJoinHandle<'scope, Result<T>>);

impl<'scope, T: Send + 'scope> Worker<'scope, T> {
    /// Starts the thread.
    pub fn start(
        scope: &'scope Scope<'scope, '_>,
        work: impl FnOnce() -> Result<T> + Send + 'scope,
    ) -> Result<Self> {
        let started = Builder::new().spawn_scoped(scope, work);
        started.map(Self).map_err(FlowError::io("start a thread (raise the limit 'ulimit -u')"))
    }

    /// Whether the thread has ended.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits for the thread's end.
    pub fn join(self) -> Result<T> {
        let refused = |_| Err(FlowError::Refused("a thread of a flow panicked".to_owned()));
        self.0.join().unwrap_or_else(refused)
    }
}
