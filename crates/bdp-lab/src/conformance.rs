//! A kernel as the subject of the conformance suite. For the first process of a guest, whose clock stands still while anything runs.

use std::collections::BTreeMap;

use bdp_model::units::Nanos;
use bdp_stack::conformance::{Outcome, Subject, run, settings};
use bdp_stack::{Command, Done, SocketReport, Stack, StackError, Step};
use bdp_sys::clock;
use bdp_sys::poll::{Interest, Poll};

use crate::KernelStack;

/// Runs the suite on this kernel, each point in its own namespace.
pub fn of_this_kernel() -> Vec<Outcome> {
    // Namespaces belong to the thread.
    let all = || run(|| Kernel::new().map(|kernel| Box::new(kernel) as Box<dyn Subject>));
    std::thread::scope(|scope| scope.spawn(all).join().unwrap_or_default())
}

struct Kernel {
    stack: KernelStack,
    poll: Poll,
    sent: Vec<(Nanos, Vec<u8>)>,
    sockets: BTreeMap<u32, SocketReport>,
}

fn failed(error: impl std::fmt::Display) -> StackError {
    StackError::Failed(error.to_string())
}

impl Kernel {
    fn new() -> Result<Self, StackError> {
        let stack = KernelStack::new(&settings(), &BTreeMap::new())?;
        let poll = Poll::new().map_err(failed)?;
        if let Some(wakes) = stack.wakes() {
            poll.add(wakes, 0, Interest::Read).map_err(failed)?;
        }
        Ok(Self { stack, poll, sent: Vec::new(), sockets: BTreeMap::new() })
    }

    fn step(&mut self, commands: Vec<Command>, packets: Vec<Vec<u8>>) -> Result<(), StackError> {
        let (now, mut done) = (self.now(), Done::default());
        self.stack.step(Step { now, commands, packets }, &mut done)?;
        self.sent.extend(done.packets.into_iter().map(|packet| (now, packet)));
        self.sockets.extend(done.sockets.into_iter().map(|report| (report.socket, report)));
        Ok(())
    }
}

impl Subject for Kernel {
    fn now(&self) -> Nanos {
        Nanos(clock::monotonic_ns())
    }

    fn command(&mut self, command: Command) -> Result<(), StackError> {
        self.step(vec![command], Vec::new())
    }

    fn arrive(&mut self, packet: Vec<u8>) -> Result<(), StackError> {
        self.step(Vec::new(), vec![packet])
    }

    fn advance(&mut self, until: Nanos) -> Result<Vec<(Nanos, Vec<u8>)>, StackError> {
        let mut ready = Vec::new();
        loop {
            self.step(Vec::new(), Vec::new())?;
            let now = self.now();
            if !self.sent.is_empty() || now >= until {
                return Ok(std::mem::take(&mut self.sent));
            }
            self.poll.wait(&mut ready, Some(until.saturating_sub(now).as_ns())).map_err(failed)?;
        }
    }

    fn socket(&mut self, socket: u32) -> Result<SocketReport, StackError> {
        self.step(Vec::new(), Vec::new())?;
        let known = self.sockets.get(&socket).cloned();
        Ok(known.unwrap_or(SocketReport { socket, ..SocketReport::default() }))
    }
}
