//! What a job needs of the process that runs it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use bdp_flow::session::error::SessionError;
use bdp_lab::LabCommands;
use bdp_store::{DocumentKind, SqliteStore, Store, StoredDocument};
use bdp_sys::clock;
use bdp_tune::HostWorld;
use serde::Serialize;

use crate::{Event, Question, Result, RunError};

/// What a job needs of the process that runs it: a command line, a page, an agent of a fleet.
pub struct Context<'a> {
    /// Programs that create the hosts and guests of a lab.
    pub agents: &'a dyn Fn() -> LabCommands,
    /// Where results are stored; `None` to store nothing. Each result is durable before the next begins.
    pub store: Option<StoreAt<'a>>,
    /// This host's settings; `None` if the job must not change them.
    pub world: Option<&'a mut HostWorld>,
    /// Receives each event.
    pub watch: &'a mut dyn FnMut(Event<'_>),
    /// Answers a question of the job: whether yes. Without it, every answer is no.
    pub answer: Option<&'a mut dyn FnMut(&Question<'_>) -> bool>,
    /// Ends the job when raised: measurements within a second; running cases of the lab complete.
    pub cancel: &'a AtomicBool,
}

/// A store and the path of its file.
pub struct StoreAt<'a> {
    /// The store.
    pub store: &'a mut dyn Store,
    /// The store's file, which identifies it when a run is claimed.
    pub path: PathBuf,
}

impl<'a> Context<'a> {
    /// A context that stores nothing, changes nothing and answers nothing.
    pub fn new(
        agents: &'a dyn Fn() -> LabCommands,
        watch: &'a mut dyn FnMut(Event<'_>),
        cancel: &'a AtomicBool,
    ) -> Self {
        Self { agents, store: None, world: None, watch, answer: None, cancel }
    }

    /// Has the job store its results.
    #[must_use]
    pub fn storing(self, store: Option<StoreAt<'a>>) -> Self {
        Self { store, ..self }
    }

    /// Whether the job was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Refuses to go on once the job was cancelled.
    pub(crate) fn go_on(&self) -> Result<()> {
        if self.is_cancelled() { Err(SessionError::Cancelled.into()) } else { Ok(()) }
    }

    /// Stores a document with a run, if there is a store.
    pub(crate) fn keep(&mut self, run: &str, kind: DocumentKind, document: &impl Serialize) -> Result<()> {
        let Some(at) = &mut self.store else { return Ok(()) };
        let document = serde_json::to_value(document).map_err(|error| RunError::Case(error.to_string()))?;
        at.store.append_document(run, &StoredDocument { kind, at_unix_ms: clock::unix_ms(), document })?;
        Ok(())
    }

    pub(crate) fn ask(&mut self, question: &Question<'_>) -> bool {
        self.answer.as_mut().is_some_and(|answer| answer(question))
    }
}

impl<'a> StoreAt<'a> {
    /// Returns a store with the path of its file.
    pub fn of(store: &'a mut SqliteStore) -> Self {
        let path = store.path().to_owned();
        Self { store, path }
    }
}
