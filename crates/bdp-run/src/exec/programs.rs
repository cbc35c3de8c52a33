//! Programs on the hosts of a testbed: started in order, watched, and stopped together.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use bdp_model::record::{ProgramEnd, ProgramRecord};
use bdp_sys::signal::Ending;
use bdp_sys::supervise::exit_code;
use serde::{Deserialize, Serialize};

use crate::{Result, RunError};

/// Longest wait for a service to listen; after that, the programs that it serves start anyway.
const LISTENS_WITHIN: Duration = Duration::from_secs(5);
/// Time between two checks whether a service listens.
const LOOK: Duration = Duration::from_millis(5);
/// How long a program may take to exit after it was asked to.
const GRACE: Duration = Duration::from_secs(2);
/// How long to wait for remaining output of programs that have exited.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Longest line; a longer one is passed on in parts.
const LONGEST_LINE: u64 = 64 << 10;
/// Most messages in the queue; beyond it, programs that write block.
pub const MESSAGES_MOST: usize = 256;

/// A program to run on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramOrder {
    /// The host.
    pub host: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Whether it is a service: it starts before the other programs and is stopped after them.
    pub service: bool,
}

/// A message from a program or from the user.
#[derive(Debug)]
pub enum Message {
    /// A line that a program wrote, with its line end; part of the line if it is long.
    Output {
        /// Index of the program, in the order of the command line.
        program: usize,
        /// Whether it was written to standard error.
        errors: bool,
        /// The line.
        line: Vec<u8>,
    },
    /// A stream of a program ended.
    Closed,
    /// A program ended.
    Ended {
        /// Index of the program.
        program: usize,
        /// Its exit status.
        status: ExitStatus,
    },
    /// The user asked to stop; the flag says whether by the terminal, which has signalled the programs too.
    Asked(Ending, bool),
}

/// A program that runs or has exited.
struct Running {
    process: u32,
    started: Instant,
    /// Bytes written.
    written: u64,
    ended: Option<(Duration, u8)>,
    end: ProgramEnd,
}

/// How to run programs.
pub(crate) struct Programs<'a> {
    pub(crate) orders: &'a [ProgramOrder],
    /// Starts a program.
    pub(crate) start: &'a mut dyn FnMut(usize) -> Result<Child>,
    /// Returns the number of listening sockets of a host.
    pub(crate) listeners: &'a dyn Fn(&str) -> usize,
    pub(crate) inbox: Receiver<Message>,
    pub(crate) outbox: SyncSender<Message>,
    pub(crate) time_limit: Option<Duration>,
    /// Most output of each program if all of it is kept until the end; output is then passed on as it comes, not by
    /// line.
    pub(crate) output_limit: Option<u64>,
    /// Receives the output of programs.
    pub(crate) output: &'a mut dyn FnMut(usize, bool, &[u8]),
}

impl Programs<'_> {
    /// Runs all programs: services first, each until it listens, then the others at once. Returns when the others
    /// have exited.
    pub(crate) fn run(mut self) -> Result<Vec<ProgramRecord>> {
        if let Some(Message::Asked(ending, _)) = self.inbox.try_iter().last() {
            return Err(RunError::Case(format!("ended by {} before any program started", ending.name())));
        }
        let begun = Instant::now();
        let mut running: Vec<Option<Running>> = self.orders.iter().map(|_| None).collect();
        let mut streams = 0;
        let services_first = {
            let mut all: Vec<usize> = (0..self.orders.len()).collect();
            all.sort_by_key(|&i| !self.orders[i].service);
            all
        };
        let mut failed_service = false;
        for index in services_first {
            let service = self.orders[index].service;
            let before = (self.listeners)(&self.orders[index].host);
            match self.begin(index, &mut streams) {
                Ok(one) => running[index] = Some(one),
                Err(error) => {
                    self.end_all(&mut running, &mut streams);
                    return Err(error);
                }
            }
            if service {
                failed_service |= self.wait_until_it_listens(index, before, &mut running, &mut streams);
                if failed_service {
                    break;
                }
            }
        }
        let deadline = self.time_limit.map(|limit| begun + limit);
        while !failed_service && self.any(&running, false) {
            match self.next(deadline) {
                Ok(message) => self.take(message, &mut running, &mut streams),
                Err(RecvTimeoutError::Timeout) => {
                    for one in running.iter_mut().flatten().filter(|one| one.ended.is_none()) {
                        one.end = ProgramEnd::TimeLimit;
                    }
                    break;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.end_all(&mut running, &mut streams);
        let last = Instant::now() + LAST_WORDS;
        while streams > 0
            && let Ok(message) = self.next(Some(last))
        {
            self.take(message, &mut running, &mut streams);
        }
        Ok(self.records(begun, running))
    }

    fn begin(&mut self, index: usize, streams: &mut usize) -> Result<Running> {
        let mut child = (self.start)(index)?;
        let started = Instant::now();
        let process = child.id();
        let mut read = |stream: Option<Box<dyn Read + Send>>, errors| {
            if let Some(stream) = stream {
                *streams += 1;
                let (outbox, by_line) = (self.outbox.clone(), self.output_limit.is_none());
                std::thread::spawn(move || pass_on(stream, index, errors, by_line, &outbox));
            }
        };
        read(child.stdout.take().map(|stream| Box::new(stream) as _), false);
        read(child.stderr.take().map(|stream| Box::new(stream) as _), true);
        let outbox = self.outbox.clone();
        std::thread::spawn(move || {
            if let Ok(status) = child.wait() {
                let _ = outbox.send(Message::Ended { program: index, status });
            }
        });
        Ok(Running { process, started, written: 0, ended: None, end: ProgramEnd::Exited })
    }

    /// Waits until a service listens; returns whether it exited with a failure before that.
    fn wait_until_it_listens(
        &mut self,
        index: usize,
        before: usize,
        running: &mut [Option<Running>],
        streams: &mut usize,
    ) -> bool {
        let until = Instant::now() + LISTENS_WITHIN;
        while Instant::now() < until {
            if let Some((_, code)) = running[index].as_ref().and_then(|one| one.ended) {
                return code != 0;
            }
            if (self.listeners)(&self.orders[index].host) > before {
                return false;
            }
            if let Ok(message) = self.next(Some(Instant::now() + LOOK)) {
                self.take(message, running, streams);
            }
        }
        false
    }

    fn next(&self, deadline: Option<Instant>) -> Result<Message, RecvTimeoutError> {
        match deadline {
            None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => self.inbox.recv_timeout(at.saturating_duration_since(Instant::now())),
        }
    }

    fn take(&mut self, message: Message, running: &mut [Option<Running>], streams: &mut usize) {
        match message {
            Message::Output { program, errors, line } => {
                if self.may_write(running.get_mut(program).and_then(Option::as_mut), line.len()) {
                    (self.output)(program, errors, &line);
                }
            }
            Message::Closed => *streams = streams.saturating_sub(1),
            Message::Ended { program, status } => {
                if let Some(one) = running.get_mut(program).and_then(Option::as_mut) {
                    one.ended = Some((one.started.elapsed(), exit_code(status)));
                }
            }
            Message::Asked(_, true) => {}
            Message::Asked(ending, false) => {
                running
                    .iter()
                    .flatten()
                    .filter(|one| one.ended.is_none())
                    .for_each(|one| ending.send(one.process));
            }
        }
    }

    /// Whether a program may write this many more bytes; kills it if not.
    fn may_write(&self, one: Option<&mut Running>, bytes: usize) -> bool {
        let Some((one, limit)) = one.zip(self.output_limit) else { return true };
        one.written += bytes as u64;
        if one.written > limit && one.ended.is_none() && one.end != ProgramEnd::OutputLimit {
            one.end = ProgramEnd::OutputLimit;
            let _ = bdp_sys::process::kill(one.process);
        }
        one.written <= limit
    }

    /// Whether any program runs that is a service, or, with `service` false, that is not.
    fn any(&self, running: &[Option<Running>], service: bool) -> bool {
        let one = |(order, one): (&ProgramOrder, &Option<Running>)| {
            order.service == service && one.as_ref().is_some_and(|one| one.ended.is_none())
        };
        self.orders.iter().zip(running).any(one)
    }

    /// Asks all running programs to exit, and kills those that do not within two seconds.
    fn end_all(&mut self, running: &mut [Option<Running>], streams: &mut usize) {
        let alive = |running: &[Option<Running>]| {
            let alive = running.iter().flatten().filter(|one| one.ended.is_none());
            alive.map(|one| one.process).collect::<Vec<_>>()
        };
        for one in running.iter_mut().flatten().filter(|one| one.ended.is_none()) {
            if one.end == ProgramEnd::Exited {
                one.end = ProgramEnd::Stopped;
            }
            Ending::polite().send(one.process);
        }
        for (patience, kill) in [(GRACE + GRACE / 4, false), (GRACE, true)] {
            if kill {
                alive(running).into_iter().for_each(|process| drop(bdp_sys::process::kill(process)));
            }
            let until = Instant::now() + patience;
            while !alive(running).is_empty() {
                match self.next(Some(until)) {
                    Ok(message) => self.take(message, running, streams),
                    Err(_) => break,
                }
            }
        }
    }

    fn records(&self, begun: Instant, running: Vec<Option<Running>>) -> Vec<ProgramRecord> {
        let started = self.orders.iter().zip(running).filter_map(|(order, one)| Some((order, one?)));
        started
            .map(|(order, one)| {
                let (took, exit_code) = one.ended.unwrap_or((one.started.elapsed(), 137));
                ProgramRecord {
                    host: order.host.clone(),
                    command: order.command.clone(),
                    service: order.service,
                    started_ns: (one.started - begun).as_nanos() as u64,
                    duration_ns: took.as_nanos() as u64,
                    exit_code,
                    end: one.end,
                }
            })
            .collect()
    }
}

/// The exit code of a run: that of the first program, in the order of the command line, that failed; 124 on a
/// timeout, as with `timeout`.
pub fn exit_of(programs: &[ProgramRecord]) -> u8 {
    let rest = || programs.iter().filter(|one| !one.service);
    if programs.iter().any(|one| one.end == ProgramEnd::TimeLimit) {
        return TIMED_OUT;
    }
    let service = programs.iter().filter(|one| one.service && one.end == ProgramEnd::Exited);
    let first = rest().find(|one| one.exit_code != 0).map(|one| one.exit_code);
    match (rest().count(), first) {
        (_, Some(code)) => code,
        // A service that exits at once leaves nothing to serve.
        (0, None) => service.map(|one| one.exit_code).find(|&code| code != 0).unwrap_or(0),
        (_, None) => 0,
    }
}

/// The exit code if a program exceeded its time limit.
pub const TIMED_OUT: u8 = 124;

/// Reads the next line of a stream, with its line end; part of the line if it is long, `None` at the end.
pub(crate) fn line_of(stream: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    stream.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)?;
    Ok(Some(line).filter(|line| !line.is_empty()))
}

/// Passes on a program's output, by line or as it comes.
fn pass_on(
    stream: Box<dyn Read + Send>,
    program: usize,
    errors: bool,
    by_line: bool,
    outbox: &SyncSender<Message>,
) {
    let mut stream = BufReader::with_capacity(LONGEST_LINE as usize, stream);
    let mut next = || {
        if by_line {
            return line_of(&mut stream);
        }
        let came = stream.fill_buf()?.to_vec();
        stream.consume(came.len());
        Ok(Some(came).filter(|came| !came.is_empty()))
    };
    while let Ok(Some(line)) = next() {
        if outbox.send(Message::Output { program, errors, line }).is_err() {
            break;
        }
    }
    let _ = outbox.send(Message::Closed);
}
