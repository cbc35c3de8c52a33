//! A thread of a flow: started in a scope, and joined with what it came to.

use std::thread::{Builder, Scope, ScopedJoinHandle};

use crate::EngineError;

/// One of them.
pub(crate) struct Worker<'scope, T>(ScopedJoinHandle<'scope, Result<T, EngineError>>);

impl<'scope, T: Send + 'scope> Worker<'scope, T> {
    /// Starts it.
    pub(crate) fn start(
        scope: &'scope Scope<'scope, '_>,
        work: impl FnOnce() -> Result<T, EngineError> + Send + 'scope,
    ) -> Result<Self, EngineError> {
        let started = Builder::new().spawn_scoped(scope, work);
        started.map(Self).map_err(EngineError::io("start a thread (a larger 'ulimit -u' helps)"))
    }

    /// Whether it is over.
    pub(crate) fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits for its end.
    pub(crate) fn join(self) -> Result<T, EngineError> {
        let refused = |_| Err(EngineError::Refused("a thread of a flow panicked".to_owned()));
        self.0.join().unwrap_or_else(refused)
    }
}
