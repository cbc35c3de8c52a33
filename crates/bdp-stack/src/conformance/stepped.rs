//! A stack that runs in steps, as a subject of the suite.

use bdp_model::case::tcp_settings::TcpSettings;
use bdp_model::units::Nanos;

use super::subject::{MTU, PREFIX, SUBJECT, Subject};
use crate::{Command, Done, Settings, SocketReport, Stack, StackError, Step};

/// Returns the settings of a subject that runs in steps.
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
    /// Wraps a stack that was started with [`settings`].
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
