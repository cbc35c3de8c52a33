//! Conformance suite for every stack: requirements on a TCP endpoint (RFC 9293 and those it names), each tested by itself against a
//! scripted list of segments. A subject is a stack that runs in steps, or a kernel that carries out the same commands through
//! sockets.

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

/// The result of a point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Name of the point.
    pub point: String,
    /// Whether it was met; null if it could not be tested.
    pub met: Option<bool>,
    /// How it was met, or why not.
    pub note: String,
}

/// Tests every point, each on a new subject.
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
