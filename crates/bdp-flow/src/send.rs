//! The sending end of bulk TCP: each thread of the crew has its share of the streams in one poll loop, and the leader reads
//! `TCP_INFO` of all as it goes.

use std::io::{ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bdp_model::application::Application;
use bdp_model::flow::{FlowSpec, USUAL_LENGTH};
use bdp_model::method::{SendMethod, TriedWay};
use bdp_model::payload::Zerocopy;
use bdp_model::record::{SenderSample, StreamReport};
use bdp_model::units::Nanos;
use bdp_sys::payload::{self, Method, Payload};
use bdp_sys::poll::{Interest, Poll, Waker};
use bdp_sys::tcp_info::{self, TcpInfo};
use bdp_sys::{clock, process, socket, still_clock};
use bdp_wire::control::Sent;

use crate::connection;
use crate::counting::Cadence;
use crate::crew::Crew;
use crate::effort::Busiest;
use crate::error::{FlowError, Result};
use crate::gate::Gate;
use crate::loss_episodes::LossEpisodes;
use crate::meter::Meter;
use crate::outlet::Outlet;
use crate::pace::Pace;
use crate::pause::{looks_seldom, stop_check_ns};
use crate::sender_reading;
use crate::waiting::{WaitFor, Waiting};
use crate::ways::{self, Reading, SendStrategy, Step, Trial};
use crate::yielding::Yielding;

/// Largest buffer for one write.
const LONGEST_WRITE: u64 = 64 << 20;
/// Bytes of one write of the pattern: what a processor keeps near it.
const PATTERN_BYTES: usize = 256 << 10;
/// `TCP_CLOSE` of `include/net/tcp_states.h`.
const CLOSED: u8 = 7;
/// The token of the leader's wake-up.
const WAKE: u64 = u64::MAX;

/// What a sender does with its streams.
#[derive(Debug, Clone, PartialEq)]
pub struct SendPlan {
    /// Bytes of one write.
    pub length_bytes: u64,
    /// Ends, at the latest, after this time since the start; the receiver ends a flow earlier.
    pub longest: Nanos,
    /// Ends after so many bytes in total, and closes.
    pub bytes: Option<u64>,
    /// Rate that each stream is held to, bit/s of payload: by the kernel, and a low one by when bytes are given to it, too.
    pub rate_bps: Option<u64>,
    /// Whether a low rate is kept by whole writes, for a receiver that counts by them; the lowest by these alone, since the kernel
    /// would spread each over all the time until the next.
    pub whole_writes: bool,
    /// From one sample to the next.
    pub interval: Nanos,
    /// How bytes are given to the kernel.
    pub zerocopy: Zerocopy,
    /// Whether they are those that a receiver can check, [`bdp_wire::pattern`]; such bytes are always copied.
    pub patterned: bool,
    /// What the program does, where it does not write as fast as it can.
    pub application: Application,
    /// Who sends.
    pub crew: Crew,
}

impl SendPlan {
    /// Of a flow that its receiver may end so long after its duration.
    pub fn of(spec: &FlowSpec, patience: Nanos, crew: Crew) -> Self {
        Self {
            length_bytes: spec.length.as_bytes(),
            longest: spec.duration + patience,
            bytes: spec.bytes.map(|b| b.as_bytes()),
            rate_bps: spec.pacing_bps,
            whole_writes: false,
            interval: spec.interval,
            zerocopy: spec.zerocopy,
            patterned: spec.check_payload,
            application: spec.application,
            crew,
        }
    }
}

/// Writes to connected streams until the receiver ends the flow, until the planned bytes are through, or until `stop`.
/// The meter shows bytes acknowledged, as of the last sample.
pub fn over(streams: Vec<TcpStream>, plan: &SendPlan, stop: &AtomicBool, meter: &Meter) -> Result<Sent> {
    let length = plan.length_bytes.clamp(1, LONGEST_WRITE) as usize;
    let pace = plan
        .rate_bps
        .and_then(|rate_bps| Pace::of(rate_bps, clock::monotonic_ns(), length, plan.whole_writes));
    let alone = plan.whole_writes && pace.is_some_and(|pace| pace.is_coarse());
    if let Some(rate_bps) = plan.rate_bps.filter(|_| !alone) {
        streams.iter().try_for_each(|stream| socket::pace(stream, rate_bps))?;
    }
    let program = Gate::writer(&plan.application, clock::monotonic_ns(), length);
    let gate = program.or(pace.map(Gate::Rate));
    let is_free = gate.is_none() && !plan.patterned && !looks_seldom();
    let methods = methods(plan, length, is_free);
    let payload = Payload::new(length, methods[0])?;
    // Where the one that was asked for is not to be had, the payload has another.
    let methods = if let [_] = methods[..] { vec![payload.method()] } else { methods };
    let gathers = is_free && plan.length_bytes == USUAL_LENGTH.as_bytes();
    let flow = Flow {
        plan,
        meter,
        ways: ways::candidates(&methods, payload.length(), gathers, streams.len()),
        mss: AtomicU64::new(0),
        way: AtomicUsize::new(0),
        yields: is_free,
        refuses: AtomicBool::new(false),
        payload,
        gate,
        left: plan.bytes.map(AtomicU64::new),
        written: AtomicU64::new(0),
        open: AtomicUsize::new(streams.len()),
        completed: AtomicU64::new(0),
        copied: AtomicU64::new(0),
        over: AtomicBool::new(false),
        busiest: Busiest::default(),
        wake: Waker::new()?,
        streams,
    };
    let busiest = &flow.busiest;
    let lead = |share| busiest.watch(|| Leading::new(&flow, Share::new(&flow, share)?).run(stop));
    let follow = |share| {
        let mut share = Share::new(&flow, share)?;
        while !flow.over.load(Ordering::Relaxed) && share.open > 0 {
            share.turn(stop_check_ns())?;
        }
        share.leave();
        Ok(())
    };
    let follow = |share| busiest.watch(|| follow(share));
    let mut sent = plan.crew.run(flow.streams.len(), &flow.over, lead, follow)?;
    sent.thread_cpu = Some(busiest.share());
    sent.bytes = flow.written.load(Ordering::Relaxed);
    sent.method = flow.method();
    Ok(sent)
}

/// Ways of giving bytes to the kernel that fit the plan: the first to begin with, and more where the quickest is to be found out.
fn methods(plan: &SendPlan, length: usize, is_free: bool) -> Vec<Method> {
    match plan.zerocopy {
        _ if plan.patterned => vec![Method::Write],
        // Few bytes at a time are copied sooner than handed over; in a guest nothing takes time.
        Zerocopy::Auto if is_free && payload::can_splice(length) => vec![Method::Write, Method::Splice],
        Zerocopy::Auto | Zerocopy::Off => vec![Method::Write],
        Zerocopy::Sendfile => vec![Method::Sendfile],
        Zerocopy::Splice => vec![Method::Splice],
        Zerocopy::Msg => vec![Method::ZeroCopy],
    }
}

/// What the threads of one flow share.
struct Flow<'a> {
    plan: &'a SendPlan,
    meter: &'a Meter,
    streams: Vec<TcpStream>,
    payload: Payload,
    /// Ways of giving bytes to the kernel, and which of them it is now.
    ways: Vec<SendStrategy>,
    way: AtomicUsize,
    /// Payload bytes of a full segment of the first stream, which grow with its window; 0 before they are known.
    mss: AtomicU64,
    /// Whether a thread lets others on its processor run after each turn: a receiver there takes the bytes while they are near.
    yields: bool,
    /// Whether the system refused a way that a stream was to change to.
    refuses: AtomicBool,
    /// How each stream begins that is given its bytes when they are due.
    gate: Option<Gate>,
    /// Bytes that nobody has taken yet, where a number of them is to be sent.
    left: Option<AtomicU64>,
    written: AtomicU64,
    /// Streams that still send.
    open: AtomicUsize,
    /// Sends by reference of which the kernel reported that they are done, and those that it copied.
    completed: AtomicU64,
    copied: AtomicU64,
    over: AtomicBool,
    /// What the threads use of their processors.
    busiest: Busiest,
    /// Wakes the leader when the last stream has closed.
    wake: Waker,
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

    fn method(&self) -> SendMethod {
        let (completed, copied) =
            (self.completed.load(Ordering::Relaxed), self.copied.load(Ordering::Relaxed));
        match ways::recorded(self.way().method) {
            // What is delivered on this machine, or goes out by a device that can't gather, is copied after all.
            SendMethod::ZeroCopy { .. } => SendMethod::ZeroCopy { copied: copied * 2 > completed },
            method => method,
        }
    }
}

/// How a stream ended.
enum End {
    /// All that it was to send has been written.
    Through,
    /// The receiver ended it.
    Ended,
}

/// The streams of one thread.
struct Share<'a> {
    flow: &'a Flow<'a>,
    first: usize,
    poll: Poll,
    /// `None` of a stream that has ended.
    outlets: Vec<Option<Outlet<'a>>>,
    open: usize,
    /// Of streams that are given their bytes when they are due; empty where all are given at once.
    paced: Vec<Paced>,
    /// What the thread waited for so far; of the leader alone.
    waiting: Waiting,
    /// For bytes of the pattern.
    room: Vec<u8>,
    ready: Vec<u64>,
    yielding: Yielding,
}

/// A stream that is given its bytes when they are due.
struct Paced {
    gate: Gate,
    /// What the poll loop waits for on its behalf: the kernel takes none at present, or an answer has yet to come.
    waits_for: Option<Interest>,
}

impl<'a> Share<'a> {
    fn new(flow: &'a Flow<'a>, range: Range<usize>) -> Result<Self> {
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

    /// Waits for streams that take more, and writes to them.
    fn turn(&mut self, wait_ns: u64) -> Result<()> {
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

    /// What a wait is for now: for room in a socket, or for a time or an answer at which there is something to write.
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

    /// Writes to streams to which bytes are due. Gives the time until the next ones are, where that is known.
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

    /// Whether a stream of this share that the receiver ended may not have been written to since.
    fn ends_unseen(&self, index: usize) -> bool {
        let place = index.checked_sub(self.first);
        self.flow.gate.is_some()
            && place.and_then(|place| self.outlets.get(place)).is_some_and(Option::is_some)
    }

    fn close(&mut self, place: usize) -> Result<()> {
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
    fn leave(&mut self) {
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

/// The leader's own: its share, and the readings of all streams.
struct Leading<'a> {
    flow: &'a Flow<'a>,
    share: Share<'a>,
    samples: Vec<SenderSample>,
    retransmits: u64,
    needless: Option<u64>,
    acked: u64,
    /// The first stream's last reading that held anything.
    first: TcpInfo,
    /// Congestion events of the first stream.
    episodes: LossEpisodes,
    /// Until it is known which way is the quickest, and what came of it.
    trial: Option<Trial>,
    tried: Vec<TriedWay>,
}

impl<'a> Leading<'a> {
    fn new(flow: &'a Flow<'a>, share: Share<'a>) -> Self {
        let first = TcpInfo::default();
        Self {
            flow,
            share,
            samples: Vec::new(),
            retransmits: 0,
            needless: None,
            acked: 0,
            first,
            episodes: LossEpisodes::default(),
            trial: (flow.ways.len() > 1).then(|| Trial::of(flow.ways.len())),
            tried: Vec::new(),
        }
    }

    fn run(&mut self, stop: &AtomicBool) -> Result<Sent> {
        let flow = self.flow;
        self.share.poll.add(&flow.wake, WAKE, Interest::Read)?;
        let started = clock::monotonic_ns();
        self.share.waiting = Waiting::counted_from(started);
        let cpu_before = process::cpu_time_ns();
        let congestion = flow.streams.first().map(socket::congestion).transpose()?.unwrap_or_default();
        let end = started.saturating_add(flow.plan.longest.as_ns());
        let mut send_buffer = self.send_buffer();
        let mut cadence = Cadence::every(flow.plan.interval);
        let mut look_ns = 0;
        loop {
            let now = still_clock::now_ns();
            self.share.waiting.note_time(now);
            self.choose_way(now);
            flow.meter.set_written(flow.written.load(Ordering::Relaxed));
            let at_ns = now - started;
            if cadence.take(at_ns) {
                self.sample(at_ns)?;
                send_buffer = self.send_buffer().or(send_buffer);
            } else if at_ns >= look_ns {
                self.look(at_ns);
            }
            if at_ns >= look_ns {
                look_ns = at_ns + self.episodes.cadence_ns(flow.plan.interval.as_ns());
            }
            if stop.load(Ordering::Relaxed)
                || flow.over.load(Ordering::Relaxed)
                || now >= end
                || flow.open.load(Ordering::Relaxed) == 0
            {
                break;
            }
            let next_ns = cadence.next_ns().min(look_ns);
            self.share.turn((started + next_ns).saturating_sub(now).min(stop_check_ns()))?;
        }
        if self.samples.len() < 2 {
            self.sample(clock::monotonic_ns() - started)?;
        }
        self.share.leave();
        let elapsed = (clock::monotonic_ns() - started).max(1);
        Ok(Sent {
            congestion,
            mss: self.first.snd_mss.map(u64::from),
            retransmits: self.samples.last().and_then(|s| s.retransmits),
            needless_retransmits: self.needless,
            streams: self.streams(),
            tried: std::mem::take(&mut self.tried),
            samples: std::mem::take(&mut self.samples),
            loss_episodes: std::mem::take(&mut self.episodes).finish(),
            cpu: (process::cpu_time_ns() - cpu_before) as f64 / elapsed as f64,
            window_scaling: self.first.window_scaling,
            connection: connection::of_sender(&self.first),
            send_buffer_bytes: send_buffer,
            path_mtu: self.first.pmtu,
            threads: u32::try_from(flow.plan.crew.threads()).ok(),
            patterned: flow.plan.patterned,
            ..Default::default()
        })
    }

    /// Goes on with the trial of ways.
    fn choose_way(&mut self, now: u64) {
        if self.flow.refuses.load(Ordering::Relaxed) {
            // The first one takes nothing that a system could refuse: all streams go by it.
            self.trial = None;
            self.tried.clear();
            return self.flow.way.store(0, Ordering::Relaxed);
        }
        let Some(trial) = &mut self.trial else { return };
        let bytes = self.flow.written.load(Ordering::Relaxed);
        let way = match trial.step(Reading { at_ns: now, bytes, cpu_ns: process::cpu_time_ns() }) {
            Step::Try(way) => way,
            Step::Take(way, rates) => {
                self.tried = ways::tried(&self.flow.ways, self.flow.mss.load(Ordering::Relaxed), &rates);
                self.trial = None;
                way
            }
        };
        self.flow.way.store(way, Ordering::Relaxed);
    }

    /// Of several streams, the last reading of each.
    fn streams(&self) -> Vec<StreamReport> {
        let infos = self.flow.meter.infos();
        let Some(last) = self.samples.last().filter(|_| infos.len() > 1) else { return Vec::new() };
        infos.iter().map(|info| sender_reading::stream_report(last.at_ns, info)).collect()
    }

    fn send_buffer(&self) -> Option<u64> {
        self.flow.streams.first().and_then(|s| socket::send_buffer(s).ok()).map(|b| b as u64)
    }

    /// Reads `TCP_INFO` of the first stream, for its congestion events alone.
    fn look(&mut self, at_ns: u64) {
        if let Some(Ok(info)) = self.flow.streams.first().map(tcp_info::read) {
            self.episodes.observe(at_ns, &info);
            self.note_mss(&info);
        }
    }

    fn note_mss(&self, info: &TcpInfo) {
        if let Some(mss) = info.snd_mss {
            self.flow.mss.store(mss.into(), Ordering::Relaxed);
        }
    }

    /// Reads `TCP_INFO` of all streams.
    fn sample(&mut self, at_ns: u64) -> Result<()> {
        let spent = self.flow.busiest.spent();
        let mut sample = SenderSample {
            at_ns,
            write_blocked_ns: self.share.waiting.for_socket_ns(),
            write_idle_ns: self.share.waiting.for_program_ns(),
            cpu_ns: spent.map(|spent| spent.cpu_ns),
            thread_cpu_ns: spent.map(|spent| spent.busiest_cpu_ns),
            run_wait_ns: spent.map(|spent| spent.run_wait_ns),
            ..Default::default()
        };
        let mut acked = vec![0; self.flow.streams.len()];
        // Of a connection that was reset the kernel reports zeros; what was read before stands.
        let mut infos = self.flow.meter.infos();
        infos.resize(self.flow.streams.len(), TcpInfo::default());
        let (mut needless, mut is_over) = (None, false);
        for (i, stream) in self.flow.streams.iter().enumerate() {
            let Ok(info) = tcp_info::read(stream) else { continue };
            if info.cwnd_segments.is_none_or(|segments| segments > 0) {
                infos[i] = info;
            }
            if info.state == Some(CLOSED) && self.share.ends_unseen(i) {
                // A program in a pause writes nothing that would be refused.
                self.share.close(i - self.share.first)?;
                is_over = i == 0;
            }
            if let Some(bytes) = info.bytes_acked {
                acked[i] = bytes;
                *sample.acked_bytes.get_or_insert(0) += bytes;
            }
            if let Some(count) = info.total_retrans {
                *sample.retransmits.get_or_insert(0) += u64::from(count);
            }
            add(&mut needless, info.dsack_dups);
            add(&mut sample.reorder_seen, info.reorder_seen);
            add(&mut sample.delivered, info.delivered_segments);
            add(&mut sample.delivered_ce, info.delivered_ce_segments);
            add(&mut sample.timeouts, info.timeouts);
            if i == 0 {
                self.episodes.observe(at_ns, &info);
                self.note_mss(&info);
                sender_reading::note_connection(&mut sample, &info);
                if self.share.outlets.first().is_some_and(Option::is_some) || self.first == TcpInfo::default()
                {
                    self.first = info;
                }
            }
        }
        // A socket that was reset reports zeros; what was seen before stands.
        self.retransmits = self.retransmits.max(sample.retransmits.unwrap_or(0));
        sample.retransmits = sample.retransmits.map(|_| self.retransmits);
        self.needless = self.needless.max(needless);
        sample.needless_retransmits = self.needless;
        self.acked = self.acked.max(sample.acked_bytes.unwrap_or(0));
        self.flow.meter.set(self.acked);
        self.flow.meter.set_streams(acked);
        self.flow.meter.set_infos(infos);
        if !is_over || self.samples.is_empty() {
            self.samples.push(sample);
        }
        Ok(())
    }
}

/// Adds a count to a sum that is unknown until one is known.
fn add(sum: &mut Option<u64>, count: Option<u32>) {
    if let Some(count) = count {
        *sum.get_or_insert(0) += u64::from(count);
    }
}
