//! What every request of the page needs.

use std::sync::Arc;

use tokio::sync::{Semaphore, watch};

use crate::door::Door;
use crate::jobs::Jobs;
use crate::{Captures, Host, Refused, RefusedBy};

/// Most event streams at once.
pub const MOST_STREAMS: usize = 64;

/// What every request needs.
#[derive(Clone)]
pub struct Shared {
    /// The program behind the page.
    pub host: Arc<dyn Host>,
    /// The jobs.
    pub jobs: Arc<Jobs>,
    /// Who may ask.
    pub door: Arc<Door>,
    /// Uploaded captures.
    pub captures: Arc<Captures>,
    /// Places of event streams.
    pub streams: Arc<Semaphore>,
    /// Becomes true when the server ends, so that no stream keeps it.
    pub ending: watch::Receiver<bool>,
}

impl Shared {
    /// State of a server that ends when `ending` becomes true.
    pub fn new(host: Arc<dyn Host>, door: Door, ending: watch::Receiver<bool>) -> Self {
        Self {
            jobs: Arc::new(Jobs::new(host.clone())),
            host,
            door: Arc::new(door),
            captures: Arc::default(),
            streams: Arc::new(Semaphore::new(MOST_STREAMS)),
            ending,
        }
    }
}

/// Runs work that may wait for a disk apart from the threads that answer.
pub async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refused> + Send + 'static,
) -> Result<T, Refused> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Refused::new(RefusedBy::Bug, "internal error in bdp; please report it")))
}
