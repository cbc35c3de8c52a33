//! State shared by a flow's threads, and each thread's streams in one poll loop.

use std::io::{ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bdp_model::flow::method::SendMethod;
use bdp_sys::clock;
use bdp_sys::payload::Payload;
use bdp_sys::poll::{Interest, Poll, Waker};

use super::plan::SendPlan;
use crate::effort::Busiest;
use crate::error::{FlowError, Result};
use crate::gate::Gate;
use crate::meter::Meter;
use crate::outlet::Outlet;
use crate::waiting::{WaitFor, Waiting};
use crate::ways::{self, SendStrategy};
use crate::yielding::Yielding;

/// Bytes per write of the pattern: fits into the processor's cache.
const PATTERN_BYTES: usize = 256 << 10;
/// The token of the leader's wake-up.
pub(super) const WAKE: u64 = u64::MAX;

/// State shared by the threads of one flow.
pub(super) struct Flow<'a> {
    pub(super) plan: &'a SendPlan,
    pub(super) meter: &'a Meter,
    pub(super) streams: Vec<TcpStream>,
    pub(super) payload: Payload,
    /// Ways to give bytes to the kernel, and the current one.
    pub(super) ways: Vec<SendStrategy>,
    pub(super) way: AtomicUsize,
    /// Payload bytes of a full segment of the first stream, which grow with its window; 0 if unknown.
    pub(super) mss: AtomicU64,
    /// Whether a thread yields its processor after each turn: a receiver there takes the bytes while they are in the
    /// cache.
    pub(super) yields: bool,
    /// Whether the system refused to switch a stream to another way.
    pub(super) refuses: AtomicBool,
    /// Initial gate of each stream that is given its bytes when they are due.
    pub(super) gate: Option<Gate>,
    /// Bytes not yet taken by any thread, if a fixed number is to be sent.
    pub(super) left: Option<AtomicU64>,
    pub(super) written: AtomicU64,
    /// Streams that are still sending.
    pub(super) open: AtomicUsize,
    /// Sends by reference that the kernel reported complete, and those that it copied.
    pub(super) completed: AtomicU64,
    pub(super) copied: AtomicU64,
    pub(super) over: AtomicBool,
    /// Processor use of the threads.
    pub(super) busiest: Busiest,
    /// Wakes the leader when the last stream has closed.
    pub(super) wake: Waker,
}

impl Flow<'_> {
    /// Takes up to `length` of the bytes that are left.
    fn take(&self, length: usize) -> usize {
        let Some(left) = &self.left else { return length };
        let mut taken = 0;
        // The closure never declines.
        let _ = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            taken = left.min(length as u64);
            Some(left - taken)
        });
        taken as usize
    }

    fn give_back(&self, bytes: usize) {
        if let Some(left) = &self.left {
            left.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    fn way(&self) -> SendStrategy {
        self.ways[self.way.load(Ordering::Relaxed)]
    }

    pub(super) fn method(&self) -> SendMethod {
        let (completed, copied) =
            (self.completed.load(Ordering::Relaxed), self.copied.load(Ordering::Relaxed));
        match ways::recorded(self.way().method) {
            // Loopback traffic, and traffic through a device that cannot gather, is copied after all.
            SendMethod::ZeroCopy { .. } => SendMethod::ZeroCopy { copied: copied * 2 > completed },
            method => method,
        }
    }
}

/// How a stream ended.
enum End {
    /// Everything to be sent has been written.
    Through,
    /// The receiver ended the stream.
    Ended,
}

/// The streams of one thread.
pub(super) struct Share<'a> {
    flow: &'a Flow<'a>,
    pub(super) first: usize,
    pub(super) poll: Poll,
    /// The outlets of its streams; `None` for a stream that has ended.
    pub(super) outlets: Vec<Option<Outlet<'a>>>,
    pub(super) open: usize,
    /// Streams that are given their bytes when they are due; empty if bytes are given at once.
    paced: Vec<Paced>,
    /// Waiting time of the thread so far; the leader's only.
    pub(super) waiting: Waiting,
    /// Buffer for bytes of the pattern.
    room: Vec<u8>,
    ready: Vec<u64>,
    yielding: Yielding,
}

/// A stream that is given its bytes when they are due.
struct Paced {
    gate: Gate,
    /// The event that the poll loop awaits for it: the kernel accepts nothing at present, or an answer is
    /// outstanding.
    waits_for: Option<Interest>,
}

impl<'a> Share<'a> {
    pub(super) fn new(flow: &'a Flow<'a>, range: Range<usize>) -> Result<Self> {
        let poll = Poll::new()?;
        let first = range.start;
        let mut outlets = Vec::new();
        for index in range.clone() {
            let stream = &flow.streams[index];
            stream.set_nonblocking(true).map_err(FlowError::io("send"))?;
            if flow.gate.is_none() {
                poll.add(stream, index as u64, Interest::Write)?;
            }
            outlets.push(Some(if flow.plan.patterned {
                Outlet::patterned(u32::try_from(index).unwrap_or(u32::MAX))
            } else {
                Outlet::Same(flow.payload.writer(stream)?)
            }));
        }
        let room_bytes = if flow.plan.patterned { flow.payload.length().min(PATTERN_BYTES) } else { 0 };
        let paced = range.filter_map(|_| flow.gate).map(|gate| Paced { gate, waits_for: None }).collect();
        let waiting = Waiting::default();
        let room = vec![0; room_bytes];
        let (open, ready, yielding) = (outlets.len(), Vec::new(), Yielding::default());
        Ok(Self { flow, first, poll, open, outlets, paced, waiting, room, ready, yielding })
    }

    /// Waits for writable streams, and writes to them.
    pub(super) fn turn(&mut self, wait_ns: u64) -> Result<()> {
        let wait_ns = self.write_due()?.map_or(wait_ns, |due_ns| wait_ns.min(due_ns));
        let mut ready = std::mem::take(&mut self.ready);
        self.waiting.begin(self.waits_for());
        self.poll.wait(&mut ready, Some(wait_ns))?;
        self.waiting.end();
        for &token in &ready {
            if token == WAKE {
                self.flow.wake.clear();
            } else if let Some(paced) = self.paced.get_mut(token as usize - self.first) {
                if paced.waits_for == Some(Interest::Read) {
                    self.read_answer(token as usize)?;
                } else {
                    paced.waits_for = None;
                    self.poll.remove(&self.flow.streams[token as usize])?;
                }
            } else {
                self.write_turn(token as usize)?;
            }
        }
        self.ready = ready;
        Ok(())
    }

    /// Returns what the current wait is for: room in a socket, or a time or an answer at which there is something to
    /// write.
    fn waits_for(&self) -> WaitFor {
        let full = |paced: &Paced| paced.waits_for == Some(Interest::Write);
        match self.paced.is_empty() || self.paced.iter().any(full) {
            true => WaitFor::Socket,
            false => WaitFor::Program,
        }
    }

    /// Reads the answer to a message; the next one may be written then.
    fn read_answer(&mut self, index: usize) -> Result<()> {
        let mut stream = &self.flow.streams[index];
        let place = index - self.first;
        match stream.read(&mut [0]) {
            Ok(0) => self.close(place),
            Ok(_) => {
                self.paced[place].waits_for = None;
                self.paced[place].gate.answered();
                Ok(self.poll.remove(stream)?)
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(()),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => self.close(place),
            Err(e) => Err(FlowError::io("read an answer")(e)),
        }
    }

    /// Writes to streams with bytes due. Returns the time until the next ones are, if known.
    fn write_due(&mut self) -> Result<Option<u64>> {
        if self.paced.is_empty() {
            return Ok(None);
        }
        let mut next_ns = None;
        for place in 0..self.paced.len() {
            let waits =
                |share: &Self| share.outlets[place].is_some() && share.paced[place].waits_for.is_none();
            let now = clock::monotonic_ns();
            let is_due = self.paced[place].gate.due_ns(now) <= now;
            if is_due && waits(self) {
                self.write_turn(self.first + place)?;
            }
            if waits(self) {
                let due_ns = self.paced[place].gate.due_ns(clock::monotonic_ns());
                next_ns = Some(next_ns.map_or(due_ns, |next: u64| next.min(due_ns)));
            }
        }
        let now = clock::monotonic_ns();
        Ok(next_ns.map(|next_ns| next_ns.saturating_sub(now)))
    }

    /// Some writes to one stream. A stream that the receiver ended, or whose bytes are through, leaves the loop.
    fn write_turn(&mut self, index: usize) -> Result<()> {
        let Some(stream) = self.flow.streams.get(index) else { return Ok(()) };
        let place = index - self.first;
        let Some(Some(outlet)) = self.outlets.get_mut(place) else { return Ok(()) };
        let mut written = 0;
        let mut end = None;
        let mut paced = self.paced.get_mut(place);
        let mut allowed = paced.as_mut().map(|paced| paced.gate.allowed(clock::monotonic_ns()));
        let mut is_full = false;
        let way = self.flow.way();
        let at_once = way.at_once(self.flow.mss.load(Ordering::Relaxed));
        for _ in 0..way.turn {
            if allowed == Some(0) {
                break;
            }
            let length = self.flow.take(at_once.min(allowed.unwrap_or(usize::MAX)));
            let done = outlet.change_to(way.method, stream).and_then(|changed| {
                if !changed {
                    self.flow.refuses.store(true, Ordering::Relaxed);
                }
                match length {
                    0 => outlet.flush(stream).map(|flushed| if flushed { None } else { Some(0) }),
                    _ => outlet.send(stream, length, &mut self.room).map(Some),
                }
            });
            self.flow.give_back(length - done.as_ref().map_or(0, |sent| sent.unwrap_or(0)).min(length));
            match done {
                Ok(Some(0)) if length == 0 => {
                    is_full = true;
                    break;
                }
                Ok(Some(accepted)) => {
                    written += accepted as u64;
                    allowed = allowed.map(|allowed| allowed.saturating_sub(accepted));
                }
                Ok(None) => {
                    end = Some(End::Through);
                    break;
                }
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    is_full = true;
                    break;
                }
                Err(e) if matches!(e.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                    end = Some(End::Ended);
                    break;
                }
                Err(e) => return Err(FlowError::io("write")(e)),
            }
        }
        self.flow.written.fetch_add(written, Ordering::Relaxed);
        if self.flow.yields && written > 0 {
            self.yielding.yield_now();
        }
        if let Some(paced) = paced {
            paced.gate.give(written as usize);
            let waits_for = match paced.gate.awaits_answer() {
                true => Some(Interest::Read),
                false => is_full.then_some(Interest::Write),
            };
            if let (Some(interest), None) = (waits_for, &end) {
                paced.waits_for = waits_for;
                self.poll.add(stream, index as u64, interest)?;
            }
        }
        match end {
            None => Ok(()),
            Some(End::Ended) => self.close(place),
            Some(End::Through) => {
                self.close(place)?;
                match stream.shutdown(Shutdown::Write) {
                    Err(e) if e.kind() != ErrorKind::NotConnected => Err(FlowError::io("shutdown")(e)),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Whether a stream of this share was ended by the receiver and possibly not written to since.
    pub(super) fn ends_unseen(&self, index: usize) -> bool {
        let place = index.checked_sub(self.first);
        self.flow.gate.is_some()
            && place.and_then(|place| self.outlets.get(place)).is_some_and(Option::is_some)
    }

    pub(super) fn close(&mut self, place: usize) -> Result<()> {
        let stream = &self.flow.streams[self.first + place];
        self.note_completed(place);
        self.outlets[place] = None;
        self.open -= 1;
        if self.paced.get(place).is_none_or(|paced| paced.waits_for.is_some()) {
            self.poll.remove(stream)?;
        }
        if self.flow.open.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.flow.wake.wake();
        }
        Ok(())
    }

    /// Leaves streams as they are.
    pub(super) fn leave(&mut self) {
        for place in 0..self.outlets.len() {
            self.note_completed(place);
        }
    }

    fn note_completed(&mut self, place: usize) {
        let Some(outlet) = &mut self.outlets[place] else { return };
        let (completed, copied) = outlet.completed(&self.flow.streams[self.first + place]);
        self.flow.completed.fetch_add(completed, Ordering::Relaxed);
        self.flow.copied.fetch_add(copied, Ordering::Relaxed);
    }
}
