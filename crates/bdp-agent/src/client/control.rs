//! The client's end of a session's control connection.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bdp_sys::poll::{Interest, Poll};
use bdp_sys::random;
use bdp_wire::control::{Answer, Request};
use bdp_wire::frame::{self, FrameError};
use bdp_wire::proof::{Exchange, Prover, hex, unhex};
use bdp_wire::session::{
    Admission, Greeting, Hello, Key, Kind, LONGEST_GREETING, Limits, PREAMBLE_BYTES, Preamble, Refusal,
    VERSION,
};

use crate::requester::Requester;
use bdp_flow::session::deadline::{self, Until};
use bdp_flow::session::error::{Result, SessionError};

/// How long the server may take for each step of the greeting.
pub(crate) const GREETING_DEADLINE: Duration = Duration::from_secs(5);

/// Longest answer but for the outcome of a flow.
const LONGEST_ANSWER: usize = 1 << 20;

/// An admitted session.
pub(crate) struct Control {
    requests: Requester<TcpStream>,
    pub(crate) address: SocketAddr,
    pub(crate) key: Key,
    pub(crate) limits: Limits,
    poll: Poll,
}

/// The tokens that a client knows.
pub(crate) struct Tokens<'a> {
    /// The token for measuring.
    pub(crate) token: Option<&'a str>,
    /// The token for tuning; a server that does not allow tuning is an error.
    pub(crate) tune: Option<&'a str>,
}

/// A request whose answer is outstanding.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub(crate) struct Pending(u64);

impl Pending {
    /// Returns the request's number.
    pub(crate) const fn number(self) -> u64 {
        self.0
    }
}

impl Control {
    /// Greets the server on a fresh connection, and is admitted; `patience` is how long it may take to identify
    /// itself as a bdp.
    pub(crate) fn greet(
        stream: TcpStream,
        address: SocketAddr,
        token: Option<&str>,
        patience: Duration,
    ) -> Result<Self> {
        Self::greet_within(stream, address, &Tokens { token, tune: None }, patience)
            .map(|(control, _)| control)
    }

    /// Like `greet`, with the available tokens; also returns the exchange that proved them.
    pub(crate) fn greet_with(
        stream: TcpStream,
        address: SocketAddr,
        tokens: &Tokens<'_>,
    ) -> Result<(Self, Exchange)> {
        Self::greet_within(stream, address, tokens, GREETING_DEADLINE)
    }

    fn greet_within(
        stream: TcpStream,
        address: SocketAddr,
        tokens: &Tokens<'_>,
        patience: Duration,
    ) -> Result<(Self, Exchange)> {
        deadline::bound(&stream, "greet the server")?;
        let greeting = Greeter { stream: &stream, address, patience };
        let (key, limits, exchange) = greeting.exchange(tokens)?;
        let poll = Poll::new()?;
        poll.add(&stream, 0, Interest::Read)?;
        let mut requests = Requester::new(stream);
        requests.bound_answers(LONGEST_ANSWER);
        Ok((Self { requests, address, key, limits, poll }, exchange))
    }

    /// Returns the local address.
    pub(crate) fn local_address(&self) -> Option<SocketAddr> {
        self.requests.stream().local_addr().ok()
    }

    /// Returns the number of the next request.
    pub(crate) fn next_number(&self) -> u64 {
        self.requests.next_id()
    }

    /// Accepts answers this many bytes longer than those without lists.
    pub(crate) fn expect_bytes(&mut self, bytes: usize) {
        self.requests.bound_answers(LONGEST_ANSWER.saturating_add(bytes));
    }

    /// Sends a request.
    pub(crate) fn ask(&mut self, body: Request) -> Result<Pending> {
        match self.requests.ask(body) {
            Ok(asked) => Ok(Pending(asked)),
            Err(error) => {
                // It may have said why it ends before it did.
                let _ = self.requests.read_ready();
                self.check_farewell()?;
                Err(self.lost(error, "a request"))
            }
        }
    }

    /// Returns the answer, if it arrives within `patience`; a refusal of any request is an error.
    pub(crate) fn poll(&mut self, pending: Pending, patience: Duration) -> Result<Option<Answer>> {
        let until = Instant::now() + patience;
        let mut ready = Vec::new();
        loop {
            if let Some(answer) = self.requests.take(pending.0) {
                return match answer {
                    Answer::Failed { error } => Err(SessionError::Far { address: self.address, error }),
                    answer => Ok(Some(answer)),
                };
            }
            let left = until.saturating_duration_since(Instant::now());
            self.poll.wait(&mut ready, Some(left.as_nanos() as u64))?;
            if !ready.is_empty() {
                let read = self.requests.read_ready();
                self.check_farewell()?;
                read.map_err(|e| self.lost(e, "the measurement"))?;
            } else if left.is_zero() {
                return Ok(None);
            }
        }
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn call(
        &mut self,
        request: Request,
        patience: Duration,
        doing: &'static str,
    ) -> Result<Answer> {
        let pending = self.ask(request)?;
        self.fetch(pending, patience, doing)
    }

    /// Waits for an answer.
    pub(crate) fn fetch(
        &mut self,
        pending: Pending,
        patience: Duration,
        doing: &'static str,
    ) -> Result<Answer> {
        self.poll(pending, patience)?.ok_or(SessionError::Silent { address: self.address, doing })
    }

    /// Returns the error for an answer that does not match the request.
    pub(crate) fn out_of_turn(&self) -> SessionError {
        SessionError::NotBdp {
            address: self.address,
            what: "its answer does not match the request".to_owned(),
        }
    }

    /// A server that ends a session says why.
    fn check_farewell(&mut self) -> Result<()> {
        let address = self.address;
        self.requests
            .farewell()
            .map_or(Ok(()), |text| Err(SessionError::Denied { address, refusal: Refusal::Other { text } }))
    }

    fn lost(&self, error: FrameError, doing: &'static str) -> SessionError {
        lost(self.address, error, doing)
    }
}

fn lost(address: SocketAddr, error: FrameError, doing: &'static str) -> SessionError {
    match error {
        FrameError::Closed => SessionError::Lost { address, doing },
        FrameError::Silent => SessionError::Silent { address, doing },
        FrameError::Io(_) => SessionError::Lost { address, doing },
        other => SessionError::NotBdp { address, what: other.to_string() },
    }
}

/// The exchange before the server admits.
struct Greeter<'a> {
    stream: &'a TcpStream,
    address: SocketAddr,
    /// For the first message; a server that has identified itself as a bdp has [`GREETING_DEADLINE`] for each further
    /// one.
    patience: Duration,
}

impl Greeter<'_> {
    fn exchange(&self, tokens: &Tokens<'_>) -> Result<(Key, Limits, Exchange)> {
        let token = tokens.token;
        let doing = "session setup";
        let address = self.address;
        (&mut &*self.stream)
            .write_all(&Preamble::new(Kind::Control).encode())
            .map_err(|e| lost(address, e.into(), doing))?;
        self.read_preamble()?;
        let (server_nonce, token_needed) = match self.read::<Greeting>()? {
            Greeting::Refused(refusal) => return Err(self.denied(refusal)),
            Greeting::Challenge { tune: None, .. } if tokens.tune.is_some() => {
                return Err(SessionError::TuningUnknown { address });
            }
            Greeting::Challenge { tune: Some(false), .. } if tokens.tune.is_some() => {
                return Err(SessionError::TuningNotAllowed { address });
            }
            Greeting::Challenge { token_needed: true, .. } if token.is_none() && tokens.tune.is_none() => {
                return Err(self.denied(Refusal::TokenNeeded));
            }
            Greeting::Challenge { nonce, token_needed, .. } => {
                (unhex(&nonce).ok_or_else(|| self.nonsense("its nonce"))?, token_needed)
            }
        };
        let exchange = Exchange { server_nonce, client_nonce: random::bytes()? };
        let hello = Hello {
            bdp: env!("CARGO_PKG_VERSION").to_owned(),
            nonce: hex(&exchange.client_nonce),
            proof: token.map(|token| exchange.prove(token, Prover::Client)),
            tune_proof: tokens.tune.map(|token| exchange.prove(token, Prover::TuneClient)),
        };
        frame::write(&mut &*self.stream, &hello).map_err(|e| lost(address, e, doing))?;
        match self.read::<Admission>()? {
            Admission::Refused(refusal) => Err(self.denied(refusal)),
            Admission::Welcome { key, proof, tune_proof, limits } => {
                // A token is proven both ways: an end that cannot prove it is somebody else.
                match (token, &proof) {
                    (Some(_), None) => {
                        return Err(SessionError::Unproven { address, has_none: !token_needed });
                    }
                    (Some(token), Some(proof)) if !exchange.verify(token, Prover::Server, proof) => {
                        return Err(self.nonsense("its proof that it knows the token"));
                    }
                    _ => {}
                }
                // The right to change settings must be proven, not merely undisputed.
                let knows = |token| {
                    tune_proof.as_ref().is_some_and(|proof| exchange.verify(token, Prover::TuneServer, proof))
                };
                if tokens.tune.is_some_and(|token| !knows(token)) {
                    return Err(self.nonsense("its proof that it knows the tune token"));
                }
                Ok((unhex(&key).ok_or_else(|| self.nonsense("its key"))?, limits, exchange))
            }
        }
    }

    fn read_preamble(&self) -> Result<()> {
        let address = self.address;
        let mut reader = Until::new(self.stream, self.patience);
        let (mut arrived, mut length) = ([0; PREAMBLE_BYTES], 0);
        loop {
            match reader.read(&mut arrived[length..]) {
                Ok(0) if length == 0 => {
                    let what = "it closed the connection without an answer".to_owned();
                    return Err(SessionError::NotBdp { address, what });
                }
                Ok(0) => return Err(SessionError::Lost { address, doing: "session setup" }),
                Ok(more) => length += more,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == ErrorKind::ConnectionReset => {
                    let what = "it reset the connection".to_owned();
                    return Err(SessionError::NotBdp { address, what });
                }
                Err(e) => return Err(lost(address, e.into(), "session setup")),
            }
            match Preamble::decode(&arrived[..length]) {
                Ok(None) => {}
                Ok(Some(preamble)) if preamble.version != VERSION => {
                    return Err(SessionError::Version { address, theirs: preamble.version, ours: VERSION });
                }
                Ok(Some(_)) => return Ok(()),
                Err(_) => {
                    let text = String::from_utf8_lossy(&arrived[..length]).escape_default().to_string();
                    return Err(SessionError::NotBdp { address, what: format!("it answered '{text}'") });
                }
            }
        }
    }

    fn read<M: serde::de::DeserializeOwned>(&self) -> Result<M> {
        frame::read_bounded(&mut Until::new(self.stream, GREETING_DEADLINE), LONGEST_GREETING)
            .map_err(|e| lost(self.address, e, "session setup"))
    }

    fn denied(&self, refusal: Refusal) -> SessionError {
        match refusal {
            Refusal::Version { speaks } => {
                SessionError::Version { address: self.address, theirs: speaks, ours: VERSION }
            }
            refusal => SessionError::Denied { address: self.address, refusal },
        }
    }

    fn nonsense(&self, subject: &str) -> SessionError {
        SessionError::NotBdp { address: self.address, what: format!("{subject} is invalid") }
    }
}
