//! One suite for every stack: what TCP asks of an end of a connection (RFC 9293 and those it names), each point by itself, against a
//! counterpart that is no stack but a list of segments. A subject is a stack that runs in steps, or a kernel that does the same
//! commands by sockets.

mod bench;
mod closing;
mod opening;
mod points;
mod segment;
mod stepped;
mod subject;
mod transfer;
mod windows;

use serde::{Deserialize, Serialize};

use crate::StackError;
use bench::Bench;
pub use points::{POINTS, Point};
pub use stepped::{Stepped, settings};
use subject::Miss;
pub use subject::{COUNTERPART, MTU, PREFIX, SUBJECT, Subject};

/// What came of a point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its name.
    pub point: String,
    /// Whether it was met; null where it could not be tried.
    pub met: Option<bool>,
    /// How, or why not.
    pub note: String,
}

/// Tries every point, each on a subject of its own.
pub fn run(mut subject: impl FnMut() -> Result<Box<dyn Subject>, StackError>) -> Vec<Outcome> {
    let one = |point: &Point| {
        let verdict = subject().map_err(Miss::Broken).and_then(|mut subject| {
            let mut bench = Bench::new(subject.as_mut());
            (point.check)(&mut bench)
        });
        let (met, note) = match verdict {
            Ok(note) => (Some(true), note),
            Err(Miss::Differs(note)) => (Some(false), note),
            Err(Miss::Broken(error)) => (None, error.to_string()),
        };
        Outcome { point: point.name.to_owned(), met, note }
    };
    POINTS.iter().map(one).collect()
}
