//! The asking end of an agent's control stream.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bdp_wire::control::{Answer, Numbered, Request};
use bdp_wire::frame;

use crate::EngineError;

/// A control stream whose reads have a deadline.
pub trait ControlStream: Read + Write + Send {
    /// Bounds the next reads.
    fn set_deadline(&self, deadline: Duration) -> std::io::Result<()>;
}

impl ControlStream for UnixStream {
    fn set_deadline(&self, deadline: Duration) -> std::io::Result<()> {
        self.set_read_timeout(Some(deadline))
    }
}

impl ControlStream for TcpStream {
    fn set_deadline(&self, deadline: Duration) -> std::io::Result<()> {
        self.set_read_timeout(Some(deadline))
    }
}

/// An agent, asked over its control stream.
pub struct Remote {
    name: String,
    stream: Box<dyn ControlStream>,
    next_id: u64,
    early: HashMap<u64, Answer>,
}

/// A request that was sent and whose answer has yet to be fetched.
#[derive(Debug)]
#[must_use]
pub struct Pending(u64);

impl Remote {
    /// The agent of host `name` behind `stream`.
    pub fn new(name: impl Into<String>, stream: impl ControlStream + 'static) -> Self {
        Self { name: name.into(), stream: Box::new(stream), next_id: 1, early: HashMap::new() }
    }

    /// Sends a request.
    pub fn ask(&mut self, request: Request) -> Result<Pending, EngineError> {
        let id = self.next_id;
        self.next_id += 1;
        frame::write(&mut self.stream, &Numbered { id, body: request }).map_err(|e| self.lost(&e))?;
        Ok(Pending(id))
    }

    /// Fetches the answer; a refusal is an error. No single wait is longer than `deadline`.
    pub fn fetch(&mut self, pending: Pending, deadline: Duration) -> Result<Answer, EngineError> {
        let Pending(id) = pending;
        let answer = loop {
            if let Some(answer) = self.early.remove(&id) {
                break answer;
            }
            self.stream
                .set_deadline(deadline.max(Duration::from_millis(1)))
                .map_err(EngineError::io("set deadline"))?;
            let got: Numbered<Answer> = frame::read(&mut self.stream).map_err(|e| self.lost(&e))?;
            self.early.insert(got.id, got.body);
        };
        match answer {
            Answer::Failed { error } => Err(EngineError::Refused(format!("{}: {error}", self.name))),
            answer => Ok(answer),
        }
    }

    /// Sends a request and fetches its answer.
    pub fn call(&mut self, request: Request, deadline: Duration) -> Result<Answer, EngineError> {
        let pending = self.ask(request)?;
        self.fetch(pending, deadline)
    }

    fn lost(&self, error: &frame::FrameError) -> EngineError {
        match error {
            frame::FrameError::Closed => EngineError::Deadline(format!(
                "the agent of host '{}' ended before its work was done",
                self.name
            )),
            frame::FrameError::Silent => {
                EngineError::Deadline(format!("the agent of host '{}' did not answer in time", self.name))
            }
            other => EngineError::Refused(format!("host '{}': {other}", self.name)),
        }
    }
}

/// Takes one variant out of an answer, or names what came instead.
#[macro_export]
macro_rules! expect_answer {
    ($answer:expr, $pattern:pat => $value:expr) => {
        match $answer {
            $pattern => Ok($value),
            other => {
                let mut text = format!("{other:?}");
                text.truncate(80);
                Err($crate::EngineError::OutOfTurn(text))
            }
        }
    };
}
