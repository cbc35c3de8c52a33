//! The requesting end of a control stream: numbers requests and keeps answers, which arrive in any order, until they
//! are needed.

use std::collections::{BTreeSet, HashMap};
use std::io::{ErrorKind, Read, Write};

use bdp_wire::control::{Answer, FAREWELL_ID, Numbered, Request};
use bdp_wire::frame::{self, FrameError, LONGEST_BODY};

/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// The requester's view of one agent.
pub(crate) struct Requester<S> {
    stream: S,
    next_id: u64,
    arrived: Vec<u8>,
    /// Requests without an answer yet: only their answers are kept.
    asked: BTreeSet<u64>,
    answers: HashMap<u64, Answer>,
    /// Longest answer accepted.
    longest: usize,
}

impl<S: Read + Write> Requester<S> {
    /// Creates a requester on a stream that carries only answers.
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            next_id: 1,
            arrived: Vec::new(),
            asked: BTreeSet::new(),
            answers: HashMap::new(),
            longest: LONGEST_BODY,
        }
    }

    /// Returns the number of the next request.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Returns the stream.
    pub(crate) fn stream(&self) -> &S {
        &self.stream
    }

    /// Limits answers to this many bytes from now on.
    pub(crate) fn bound_answers(&mut self, longest: usize) {
        self.longest = longest.min(LONGEST_BODY);
    }

    /// Sends a request; returns the number of its answer.
    pub(crate) fn ask(&mut self, body: Request) -> Result<u64, FrameError> {
        let id = self.next_id;
        self.next_id += 1;
        frame::write(&mut self.stream, &Numbered { id, body })?;
        self.asked.insert(id);
        Ok(id)
    }

    /// Reads once from a ready stream, and keeps complete answers.
    pub(crate) fn read_ready(&mut self) -> Result<(), FrameError> {
        let mut room = [0; READ_BYTES];
        match self.stream.read(&mut room) {
            Ok(0) => return Err(FrameError::Closed),
            Ok(length) => self.arrived.extend_from_slice(&room[..length]),
            Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => return Ok(()),
            // The kernel has given up on a peer that acknowledges nothing.
            Err(e) if e.kind() == ErrorKind::TimedOut => return Err(FrameError::Closed),
            Err(e) => return Err(e.into()),
        }
        let mut taken = 0;
        while let Some((Numbered { id, body }, length)) =
            frame::decode_bounded(&self.arrived[taken..], self.longest)?
        {
            taken += length;
            if self.asked.remove(&id) || id == FAREWELL_ID {
                self.answers.insert(id, body);
            }
        }
        self.arrived.drain(..taken);
        Ok(())
    }

    /// Returns the reason that the agent gave for ending.
    pub(crate) fn farewell(&mut self) -> Option<String> {
        match self.answers.remove(&FAREWELL_ID)? {
            Answer::Failed { error } => Some(error),
            _ => None,
        }
    }

    /// Returns the answer of this number, once it has been read.
    pub(crate) fn take(&mut self, id: u64) -> Option<Answer> {
        self.answers.remove(&id)
    }

    /// Returns why the agent refused the first refused request, if any, except those that may be refused.
    pub(crate) fn take_refusal(&mut self, may_be: &BTreeSet<u64>) -> Option<String> {
        let refused = |(&id, answer): (&u64, &Answer)| {
            (matches!(answer, Answer::Failed { .. }) && !may_be.contains(&id)).then_some(id)
        };
        let id = self.answers.iter().filter_map(refused).min()?;
        match self.answers.remove(&id) {
            Some(Answer::Failed { error }) => Some(error),
            _ => None,
        }
    }
}
