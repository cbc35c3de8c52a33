//! The requesting end of agents' control streams.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use bdp_sys::poll::{Interest, Poll};
use bdp_wire::control::{Answer, Request};
use bdp_wire::frame::FrameError;

use crate::requester::Requester;
use bdp_flow::error::{FlowError, Result};

/// How long an agent may leave a request unread.
const WRITE_DEADLINE: Duration = Duration::from_secs(20);

/// A control stream: its writes can have a deadline, and it can be shut down while another thread reads it.
pub trait ControlStream: Read + Write + Send + AsFd {
    /// Bounds the next writes.
    fn set_write_deadline(&self, deadline: Duration) -> std::io::Result<()>;

    /// Ends it both ways.
    fn hang_up(&self);
}

macro_rules! control_stream {
    ($($stream:ty),*) => {$(
        impl ControlStream for $stream {
            fn set_write_deadline(&self, deadline: Duration) -> std::io::Result<()> {
                self.set_write_timeout(Some(deadline))
            }

            fn hang_up(&self) {
                // One that is gone is as good.
                let _ = self.shutdown(Shutdown::Both);
            }
        }
    )*};
}
control_stream!(UnixStream, TcpStream);

/// The agents of one case, asked in parallel.
///
/// Every wait for an answer ends when any of the agents ends or refuses a request: the case has failed then, and the
/// first to fail knows why.
pub struct Agents {
    poll: Poll,
    remotes: Vec<Remote>,
}

/// A request that was sent and whose answer is outstanding.
#[derive(Debug)]
#[must_use]
pub struct Pending {
    remote: usize,
    id: u64,
}

/// One agent.
struct Remote {
    name: String,
    requests: Requester<Box<dyn ControlStream>>,
    /// Requests that may be refused without ending the case.
    may_be_refused: BTreeSet<u64>,
}

impl Agents {
    /// Creates the agents behind these streams, each under the name of its host.
    pub fn new<S: ControlStream + 'static>(agents: impl IntoIterator<Item = (String, S)>) -> Result<Self> {
        let poll = Poll::new()?;
        let mut remotes = Vec::new();
        for (token, (name, stream)) in (0..).zip(agents) {
            poll.add(&stream, token, Interest::Read)?;
            stream.set_write_deadline(WRITE_DEADLINE).map_err(FlowError::io("set deadline"))?;
            remotes.push(Remote {
                name,
                requests: Requester::new(Box::new(stream)),
                may_be_refused: BTreeSet::new(),
            });
        }
        Ok(Self { poll, remotes })
    }

    /// Sends a request to the agent of `host`.
    pub fn ask(&mut self, host: &str, request: Request) -> Result<Pending> {
        let Some(remote) = self.remotes.iter().position(|r| r.name == host) else {
            return Err(FlowError::Refused(format!("host '{host}' does not exist")));
        };
        let agent = &mut self.remotes[remote];
        let id = agent.requests.ask(request).map_err(|e| agent.lost(e))?;
        Ok(Pending { remote, id })
    }

    /// Sends a request for which [`Answer::Failed`] is an answer like any other.
    pub fn try_to_ask(&mut self, host: &str, request: Request) -> Result<Pending> {
        let pending = self.ask(host, request)?;
        self.remotes[pending.remote].may_be_refused.insert(pending.id);
        Ok(pending)
    }

    /// Waits for the answer until the deadline.
    pub fn fetch(&mut self, pending: Pending, deadline: Duration) -> Result<Answer> {
        let Pending { remote, id } = pending;
        let until = Instant::now() + deadline;
        let mut ready = Vec::new();
        loop {
            if let Some(answer) = self.remotes[remote].requests.take(id) {
                return Ok(answer);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.remotes[remote].lost(FrameError::Silent));
            }
            self.poll.wait(&mut ready, Some(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX)))?;
            for &token in &ready {
                if let Some(agent) = self.remotes.get_mut(token as usize) {
                    agent.read_ready()?;
                }
            }
        }
    }

    /// Sends a request and waits for its answer.
    pub fn call(&mut self, host: &str, request: Request, deadline: Duration) -> Result<Answer> {
        let pending = self.ask(host, request)?;
        self.fetch(pending, deadline)
    }
}

impl Remote {
    /// Reads once from a stream that is ready.
    fn read_ready(&mut self) -> Result<()> {
        self.requests.read_ready().map_err(|e| self.lost(e))?;
        match self.requests.take_refusal(&self.may_be_refused) {
            Some(error) => Err(FlowError::Refused(format!("{}: {error}", self.name))),
            None => Ok(()),
        }
    }

    fn lost(&self, error: FrameError) -> FlowError {
        let name = &self.name;
        match error {
            FrameError::Closed => FlowError::Ended(format!(
                "the agent of host '{name}' ended early, possibly killed or out of memory; run the case again"
            )),
            FrameError::Silent => FlowError::Deadline(format!("the agent of host '{name}' timed out")),
            other => FlowError::Refused(format!("host '{name}': {other}")),
        }
    }
}

/// Takes one variant out of an answer, or returns an error that names the actual one.
#[macro_export]
macro_rules! expect_answer {
    ($answer:expr, $pattern:pat => $value:expr) => {
        match $answer {
            $pattern => Ok($value),
            other => {
                let text: String = format!("{other:?}").chars().take(80).collect();
                Err($crate::FlowError::OutOfTurn(text))
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use bdp_wire::control::Numbered;
    use bdp_wire::frame;

    use super::*;

    fn pair() -> (Agents, UnixStream, UnixStream) {
        let (near, near_agent) = UnixStream::pair().unwrap();
        let (far, far_agent) = UnixStream::pair().unwrap();
        let agents = Agents::new([("near".to_owned(), near), ("far".to_owned(), far)]).unwrap();
        (agents, near_agent, far_agent)
    }

    fn answer(mut agent: &UnixStream, body: Answer) {
        let asked: Numbered<Request> = frame::read(&mut agent).unwrap();
        frame::write(&mut agent, &Numbered { id: asked.id, body }).unwrap();
    }

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn answers_find_their_requests_in_any_order() {
        let (mut agents, near, far) = pair();
        let first = agents.ask("near", Request::Facts).unwrap();
        let second = agents.ask("near", Request::Collect { flow: 7 }).unwrap();
        let third = agents.ask("far", Request::Facts).unwrap();
        let ids: Vec<u64> =
            (0..2).map(|_| frame::read::<Numbered<Request>>(&mut &near).unwrap().id).collect();
        for (id, port) in [(ids[1], 2), (ids[0], 1)] {
            frame::write(&mut &near, &Numbered { id, body: Answer::Listening { port } }).unwrap();
        }
        answer(&far, Answer::Done);
        assert_eq!(agents.fetch(third, LONG).unwrap(), Answer::Done);
        assert_eq!(agents.fetch(first, LONG).unwrap(), Answer::Listening { port: 1 });
        assert_eq!(agents.fetch(second, LONG).unwrap(), Answer::Listening { port: 2 });
    }

    #[test]
    fn the_end_of_any_agent_ends_every_wait() {
        let (mut agents, near, far) = pair();
        let pending = agents.ask("far", Request::Facts).unwrap();
        drop(near);
        let started = Instant::now();
        let error = agents.fetch(pending, LONG).unwrap_err();
        assert!(matches!(&error, FlowError::Ended(text) if text.contains("'near'")), "{error}");
        assert!(started.elapsed() < LONG / 2);
        drop(far);
    }

    #[test]
    fn a_refusal_of_one_is_the_cause_for_all() {
        let (mut agents, near, _far) = pair();
        let collecting = agents.ask("far", Request::Collect { flow: 1 }).unwrap();
        let sending = agents.ask("near", Request::Facts).unwrap();
        answer(&near, Answer::Failed { error: "set TCP_CONGESTION".to_owned() });
        let error = agents.fetch(collecting, LONG).unwrap_err();
        assert_eq!(error.to_string(), "near: set TCP_CONGESTION");
        drop(sending);
    }

    #[test]
    fn silence_and_nonsense_are_errors() {
        let (mut agents, near, _far) = pair();
        let pending = agents.ask("near", Request::Facts).unwrap();
        let error = agents.fetch(pending, Duration::from_millis(5)).unwrap_err();
        assert!(error.to_string().contains("timed out"), "{error}");
        let pending = agents.ask("near", Request::Facts).unwrap();
        (&near).write_all(&[0, 0, 0, 2, b'{', b'}']).unwrap();
        assert!(matches!(agents.fetch(pending, LONG), Err(FlowError::Refused(_))));
        assert!(matches!(agents.ask("mid", Request::Facts), Err(FlowError::Refused(_))));
    }
}
