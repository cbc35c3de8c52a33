//! Sends answers back to the requester: whole frames, from whichever thread has an answer.

use std::sync::Mutex;

use bdp_wire::control::{Answer, Numbered};
use bdp_wire::frame;

use crate::remote::ControlStream;
use bdp_flow::error::FlowError;
use bdp_flow::lock::lock;

/// ServerState by the threads of one agent.
pub(crate) struct Answers {
    stream: Mutex<Box<dyn ControlStream>>,
    gave_up: Mutex<Option<String>>,
}

impl Answers {
    pub(crate) fn new(stream: impl ControlStream + 'static) -> Self {
        Self { stream: Mutex::new(Box::new(stream)), gave_up: Mutex::default() }
    }

    /// Answers request `id`. A send failure means that the other end has gone, which the reading side notices by
    /// itself.
    pub(crate) fn give(&self, id: u64, answer: Result<Answer, FlowError>) {
        let body = answer.unwrap_or_else(|e| Answer::Failed { error: e.to_string() });
        let mut stream = lock(&self.stream);
        if frame::write(&mut *stream, &Numbered { id, body }).is_err() {
            // Half a frame can't be followed by another; the reading side ends the session.
            stream.hang_up();
        }
    }

    /// Ends the session, whose client has gone.
    pub(crate) fn give_up(&self, why: String) {
        *lock(&self.gave_up) = Some(why);
        lock(&self.stream).hang_up();
    }

    /// Returns why the session was given up, if it was.
    pub(crate) fn why_given_up(&self) -> Option<String> {
        lock(&self.gave_up).clone()
    }
}
