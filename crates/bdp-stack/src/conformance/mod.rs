//! One suite for every stack: what TCP asks of an end of a connection (RFC 9293 and those it names), each point by itself, against a
//! counterpart that is no stack but a list of segments. A subject is a stack that runs in steps, or a kernel that does the same
//! commands by sockets.

mod bench;
mod points;
mod segment;

use std::net::Ipv4Addr;

use bdp_model::tcp_settings::TcpSettings;
use bdp_model::units::Nanos;
use serde::{Deserialize, Serialize};

use crate::{Command, Done, Settings, SocketReport, Stack, StackError, Step};
use bench::Bench;
pub use points::POINTS;

/// The subject's address.
pub const SUBJECT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The counterpart's.
pub const COUNTERPART: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// Both are in a network of this prefix.
pub const PREFIX: u8 = 24;
/// Of the path between them.
pub const MTU: u32 = 1500;

/// What the suite is held against.
pub trait Subject {
    /// The moment.
    fn now(&self) -> Nanos;

    /// Carries out a command now.
    fn command(&mut self, command: Command) -> Result<(), StackError>;

    /// A packet arrives now.
    fn arrive(&mut self, packet: Vec<u8>) -> Result<(), StackError>;

    /// Goes on until a moment, or until it has sent something: what it sent, each with the moment.
    fn advance(&mut self, until: Nanos) -> Result<Vec<(Nanos, Vec<u8>)>, StackError>;

    /// What it says of a socket.
    fn socket(&mut self, socket: u32) -> Result<SocketReport, StackError>;
}

/// A point of the suite.
pub struct Point {
    /// In a word or two.
    pub name: &'static str,
    /// What is held against it.
    pub what: &'static str,
    /// Where it is asked.
    pub source: &'static str,
    /// Tries it: how it was met in few words (nothing to add: empty), or why it was not.
    check: fn(&mut Bench<'_>) -> Verdict,
}

type Verdict = Result<String, Miss>;

/// Why a point was not met.
#[derive(Debug)]
enum Miss {
    /// The stack did something else.
    Differs(String),
    /// It could not be tried.
    Broken(StackError),
}

impl From<StackError> for Miss {
    fn from(error: StackError) -> Self {
        Self::Broken(error)
    }
}

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

/// The settings of a subject that runs in steps.
pub fn settings() -> Settings {
    Settings {
        host: "subject".to_owned(),
        addresses: vec![(SUBJECT.into(), PREFIX)],
        mtu: MTU,
        seed: 1,
        tcp: TcpSettings::default(),
    }
}

/// A stack that runs in steps, as a subject.
pub struct Stepped {
    stack: Box<dyn Stack>,
    now: Nanos,
    next: Option<Nanos>,
    sent: Vec<(Nanos, Vec<u8>)>,
    sockets: Vec<SocketReport>,
}

impl Stepped {
    /// Of a stack that was started with [`settings`].
    pub fn new(stack: Box<dyn Stack>) -> Self {
        Self { stack, now: Nanos::millis(1), next: None, sent: Vec::new(), sockets: Vec::new() }
    }

    fn step(&mut self, commands: Vec<Command>, packets: Vec<Vec<u8>>) -> Result<(), StackError> {
        let mut done = Done::default();
        self.stack.step(Step { now: self.now, commands, packets }, &mut done)?;
        self.next = done.next;
        self.sent.extend(done.packets.into_iter().map(|packet| (self.now, packet)));
        for report in done.sockets {
            match self.sockets.iter_mut().find(|known| known.socket == report.socket) {
                Some(known) => *known = report,
                None => self.sockets.push(report),
            }
        }
        Ok(())
    }
}

impl Subject for Stepped {
    fn now(&self) -> Nanos {
        self.now
    }

    fn command(&mut self, command: Command) -> Result<(), StackError> {
        self.step(vec![command], Vec::new())
    }

    fn arrive(&mut self, packet: Vec<u8>) -> Result<(), StackError> {
        self.step(Vec::new(), vec![packet])
    }

    fn advance(&mut self, until: Nanos) -> Result<Vec<(Nanos, Vec<u8>)>, StackError> {
        while self.sent.is_empty() {
            let Some(next) = self.next.filter(|&next| next <= until) else {
                self.now = self.now.max(until);
                break;
            };
            self.now = self.now.max(next);
            self.step(Vec::new(), Vec::new())?;
        }
        Ok(std::mem::take(&mut self.sent))
    }

    fn socket(&mut self, socket: u32) -> Result<SocketReport, StackError> {
        let known = self.sockets.iter().find(|known| known.socket == socket);
        Ok(known.cloned().unwrap_or(SocketReport { socket, ..SocketReport::default() }))
    }
}
