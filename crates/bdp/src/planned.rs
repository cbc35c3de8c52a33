//! A job as a command requests it, for a terminal and the page.

use bdp_run::job::{Ended, Job};
use serde_json::Value;

/// Makes the document of an ended job, as JSON.
pub type DocumentOf = Box<dyn Fn(&Ended) -> Option<String> + Send>;

/// A job, and how its result is told.
pub struct Planned {
    /// The job.
    pub job: Job,
    /// What its requester should know before it runs.
    pub notes: Vec<String>,
    /// What the command prints of the ended job with `--json`; `None` if it prints nothing.
    pub document: DocumentOf,
}

impl Planned {
    /// A job whose result is this document.
    pub fn new(job: Job, document: impl Fn(&Ended) -> Option<Value> + Send + 'static) -> Self {
        let document = move |ended: &Ended| document(ended).map(|document| document.to_string());
        Self { job, notes: Vec::new(), document: Box::new(document) }
    }

    /// A job whose events say all.
    pub fn by_events(job: Job) -> Self {
        Self::new(job, |_| None)
    }
}
