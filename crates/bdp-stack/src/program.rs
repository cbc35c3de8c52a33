//! A stack in a separate program: starts it, drives it step by step through the contract, and ends it.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::time::Duration;

use bdp_model::plain::{beginning, in_words};
use bdp_model::units::Nanos;
use bdp_sys::messages::{self, Messages, Received};
use bdp_sys::{clock, contain, isolate};

use crate::contract::{Answer, CONTRACT, MESSAGE_BYTES, Order, Settings};
use crate::{Done, Stack, StackError, Step};

/// How long a program may take for a step, in real time.
const PATIENCE_NS: u64 = 20_000_000_000;
/// Environment variable that overrides this timeout, in seconds.
const PATIENCE_VARIABLE: &str = "BDP_STACK_PATIENCE";
/// How long to wait for announced packets, in real time: they are sent before the answer.
const SHORT_WAIT_NS: u64 = 1_000_000_000;
/// Maximum packets per step; more counts as a flood.
const PACKETS_MOST: usize = 100_000;
/// Maximum steps within one millisecond of the virtual clock; more counts as an endless loop.
const STEPS_IN_PLACE: u32 = 100_000;
const PLACE_NS: u64 = 1_000_000;
/// Maximum bytes of its standard error that are passed on.
const ERRORS_MOST: usize = 16 << 10;
/// How long to wait for it to exit after it was told to.
const LAST_WAIT: Duration = Duration::from_millis(200);

/// A running program, ended when dropped.
pub struct Program {
    name: String,
    version: String,
    child: Child,
    control: Messages,
    packets: Messages,
    room: Vec<u8>,
    patience_ns: u64,
    /// Start of the millisecond in which steps are counted.
    now: Nanos,
    in_place: u32,
    /// Set after a failed step: no further request is sent.
    broken: bool,
}

impl Program {
    /// Starts a program, known to the user by this name, and waits until it is ready.
    pub fn start(
        name: &str,
        path: &Path,
        arguments: &[&str],
        settings: &Settings,
        root: Option<&Path>,
    ) -> Result<Self, StackError> {
        let failed = |what: &str, e: io::Error| {
            let text = in_words(&e.to_string());
            StackError::Failed(format!("{what} '{name}': {text}{}", bdp_sys::more_room(&e.to_string())))
        };
        let (control, its_control) = messages::pair().map_err(|e| failed("make a socket for", e))?;
        let (packets, its_packets) = messages::pair().map_err(|e| failed("make a socket for", e))?;
        let mut command = Process::new(path);
        command.args(arguments).stdin(Stdio::from(its_control)).stdout(Stdio::from(its_packets));
        command.stderr(Stdio::piped());
        contain::contain(&mut command);
        if let Some(root) = root {
            isolate::start_in(&mut command, root);
        }
        let mut child = command.spawn().map_err(|e| failed("start", e))?;
        drop(command);
        if let Some(errors) = child.stderr.take() {
            let name = name.to_owned();
            std::thread::spawn(move || pass_on(errors, &name));
        }
        let seconds = std::env::var(PATIENCE_VARIABLE).ok().and_then(|text| text.parse::<f64>().ok());
        let patience_ns =
            seconds.filter(|s| s.is_finite() && *s > 0.0).map_or(PATIENCE_NS, |s| (s * 1e9) as u64);
        let mut program = Self {
            name: name.to_owned(),
            version: String::new(),
            child,
            control,
            packets,
            room: vec![0; MESSAGE_BYTES],
            patience_ns,
            now: Nanos::ZERO,
            in_place: 0,
            broken: false,
        };
        let order = Order::Start { contract: CONTRACT, settings };
        match program.ask(&order, VecDeque::new(), &mut Vec::new())? {
            Answer::Ready { version } => program.version = beginning(&in_words(&version)),
            _ => return Err(program.fault("did not answer \"ready\" at start")),
        }
        Ok(program)
    }

    /// Records and returns an error; no further request is sent.
    fn fault(&mut self, what: &str) -> StackError {
        self.broken = true;
        StackError::Failed(format!("'{}' {what}", self.name))
    }

    /// Encodes an order to a program that waits for one.
    fn message(&mut self, order: &Order<'_>) -> Result<Vec<u8>, StackError> {
        if self.broken {
            return Err(self.fault("has ended"));
        }
        if let Some(length) = self.receive(Socket::Control)? {
            let said = serde_json::from_slice(&self.room[..length]);
            // It may report at any time what it does not support.
            said.map_or(Ok(()), |said| self.accepted(said).map(drop))?;
            return Err(self.fault("sent an answer without a request"));
        }
        let message = serde_json::to_vec(order).map_err(|e| self.fault(&format!("request failed: {e}")))?;
        if message.len() > MESSAGE_BYTES {
            return Err(self.fault("needs a message longer than the maximum"));
        }
        Ok(message)
    }

    /// Sends a request and waits for the answer and the packets that it announces.
    fn ask(
        &mut self,
        order: &Order<'_>,
        mut to_send: VecDeque<Vec<u8>>,
        sent: &mut Vec<Vec<u8>>,
    ) -> Result<Answer, StackError> {
        let mut order = Some(self.message(order)?);
        let mut answer: Option<Answer> = None;
        let deadline = clock::monotonic_ns().saturating_add(self.patience_ns);
        loop {
            if let Some(message) = &order
                && self.send(Socket::Control, message)?
            {
                order = None;
            }
            while let Some(packet) = to_send.front() {
                if !self.send(Socket::Packets, packet)? {
                    break;
                }
                to_send.pop_front();
            }
            while let Some(length) = self.receive(Socket::Packets)? {
                sent.push(self.room[..length].to_vec());
                if sent.len() > PACKETS_MOST {
                    return Err(self.fault(&format!("sent more than {PACKETS_MOST} packets in one step")));
                }
            }
            if answer.is_none()
                && let Some(length) = self.receive(Socket::Control)?
            {
                let read = serde_json::from_slice(&self.room[..length]);
                let read = read.map_err(|e| {
                    let what = beginning(&e.to_string());
                    self.fault(&format!("sent an answer that is not in the contract: {what}"))
                })?;
                answer = Some(self.accepted(read)?);
                continue;
            }
            if order.is_none()
                && let Some(Answer::Done { packets, .. }) = &answer
                && sent.len() < *packets
                && !messages::wait(&[(&self.packets, false)], SHORT_WAIT_NS).unwrap_or(false)
            {
                let text = format!("announced {packets} {} and sent {}", noun(*packets), sent.len());
                return Err(self.fault(&text));
            }
            let expected = match &answer {
                Some(Answer::Done { packets, .. }) => *packets,
                _ => 0,
            };
            if answer.is_some() && sent.len() > expected {
                let text = format!("announced {expected} {} and sent {} or more", noun(expected), sent.len());
                return Err(self.fault(&text));
            }
            if to_send.is_empty()
                && sent.len() >= expected
                && let Some(answer) = answer.take()
            {
                return Ok(answer);
            }
            let left_ns = deadline.saturating_sub(clock::monotonic_ns());
            let waits = [(&self.control, order.is_some()), (&self.packets, !to_send.is_empty())];
            if left_ns == 0
                || !messages::wait(&waits, left_ns).map_err(|e| StackError::Failed(e.to_string()))?
            {
                let seconds = self.patience_ns as f64 / 1e9;
                return Err(self.fault(&format!(
                    "did not answer within {seconds} s ({PATIENCE_VARIABLE} changes this limit)"
                )));
            }
        }
    }

    /// Returns the answer if it lets the case go on.
    fn accepted(&mut self, answer: Answer) -> Result<Answer, StackError> {
        match answer {
            Answer::Failed(cause) => Err(self.fault(&format!("failed: {}", beginning(&in_words(&cause))))),
            Answer::Unsupported(what) => {
                Err(StackError::Unsupported { stack: self.name.clone(), what: beginning(&in_words(&what)) })
            }
            answer => Ok(answer),
        }
    }

    fn send(&mut self, socket: Socket, message: &[u8]) -> Result<bool, StackError> {
        let to = if socket == Socket::Control { &self.control } else { &self.packets };
        to.send(message).map_err(|_| self.ended())
    }

    /// Returns the length of the message received into the buffer; `None` if there is none.
    fn receive(&mut self, socket: Socket) -> Result<Option<usize>, StackError> {
        let from = if socket == Socket::Control { &self.control } else { &self.packets };
        match from.receive(&mut self.room) {
            Ok(Received::Message(length)) => Ok(Some(length)),
            Ok(Received::Nothing) => Ok(None),
            Ok(Received::End) | Err(_) => Err(self.ended()),
        }
    }

    /// Returns the error for a closed socket, most often because the program exited.
    fn ended(&mut self) -> StackError {
        // An error that it reported before takes precedence.
        if let Ok(Received::Message(length)) = self.control.receive(&mut self.room)
            && let Ok(answer) = serde_json::from_slice(&self.room[..length])
            && let Err(error) = self.accepted(answer)
        {
            return error;
        }
        let mut status = None;
        for _ in 0..20 {
            status = self.child.try_wait().ok().flatten();
            if status.is_some() {
                break;
            }
            std::thread::sleep(LAST_WAIT / 20);
        }
        match status {
            Some(status) => self.fault(&format!("ended during a case ({status})")),
            None => self.fault("closed its sockets during a case, or sent an empty message"),
        }
    }
}

fn noun(packets: usize) -> &'static str {
    if packets == 1 { "packet" } else { "packets" }
}

/// Passes on the beginning of a program's standard error.
fn pass_on(mut errors: impl Read, name: &str) {
    let mut room = [0; 4096];
    let mut left = ERRORS_MOST;
    while let Ok(length @ 1..) = errors.read(&mut room) {
        let shown = length.min(left);
        // There is nowhere else to report it.
        let _ = io::stderr().write_all(&room[..shown]);
        if left > 0 && length >= left {
            let kib = ERRORS_MOST >> 10;
            let _ = writeln!(
                io::stderr(),
                "\n'{name}' wrote more than {kib} KiB to standard error; the rest is omitted"
            );
        }
        left -= shown;
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Socket {
    Control,
    Packets,
}

impl Stack for Program {
    fn version(&self) -> &str {
        &self.version
    }

    fn step(&mut self, step: Step, done: &mut Done) -> Result<(), StackError> {
        let order =
            Order::Step { now_ns: step.now.as_ns(), commands: &step.commands, packets: step.packets.len() };
        let answer = self.ask(&order, step.packets.into(), &mut done.packets)?;
        let Answer::Done { next_ns, sockets, .. } = answer else {
            return Err(self.fault("did not answer \"done\" after a step"));
        };
        if let Some(next) = next_ns.filter(|&next| next <= step.now.as_ns()) {
            let text = format!(
                "requests its next run at {next} ns, not later than the step's {} ns",
                step.now.as_ns()
            );
            return Err(self.fault(&text));
        }
        if step.now.as_ns() >= self.now.as_ns() + PLACE_NS {
            (self.now, self.in_place) = (step.now, 0);
        } else {
            self.in_place += 1;
            if self.in_place > STEPS_IN_PLACE {
                return Err(self.fault("requests more than 100000 runs within a millisecond of virtual time"));
            }
        }
        done.next = next_ns.map(Nanos);
        done.sockets = sockets;
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if !self.broken {
            let _ = serde_json::to_vec(&Order::End).map(|end| self.control.send(&end));
        }
        // It may leave anything behind except a process.
        for _ in 0..20 {
            if self.broken || !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(LAST_WAIT / 20);
        }
        contain::end(&mut self.child);
    }
}
