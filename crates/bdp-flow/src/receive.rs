//! The receiving end of bulk TCP: each thread of the crew serves its share of the streams in one poll loop. Bytes are
//! counted as the application takes them out of the kernel, without copying them unless each is to be checked.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use bdp_model::flow::FlowSpec;
use bdp_model::flow::application::Application;
use bdp_model::flow::connection::Connection;
use bdp_model::flow::method::{EndReason, ReceiveMethod};
use bdp_model::flow::payload::{PayloadCheck, WrongByte};
use bdp_model::flow::window::WindowBytes;
use bdp_model::record::ReceiverSample;
use bdp_model::units::Nanos;
use bdp_sys::poll::{Interest, Poll, Waker};
use bdp_sys::tcp_info::{self, TcpInfo};
use bdp_sys::{clock, socket, still_clock};
use bdp_wire::control::{Mark, Received};
use bdp_wire::pattern::Checker;

use crate::coalesce::Coalescing;
use crate::connection;
use crate::counting::{Cadence, Counting};
use crate::crew::Crew;
use crate::effort::{Busiest, ProcessShare};
use crate::error::{FlowError, Result};
use crate::gate::{Answering, Gate};
use crate::lock::lock;
use crate::meter::Meter;
use crate::pause::{looks_seldom, stop_check_ns};
use crate::waiting::{WaitFor, Waiting};
use crate::window_hold::WindowHold;
use crate::worker::Worker;

/// Bytes per read.
const READ_BYTES: usize = 1 << 20;
/// Bytes per read if every byte is checked: fits into the processor's cache.
const CHECKED_READ_BYTES: usize = 256 << 10;
/// Shortest interval between two sums over all streams' bytes.
const LOOK_NS: u64 = 20_000_000;
/// Most streams that have a thread each in a guest.
const ALONE_AT_MOST: usize = 64;
/// Longest sleep of a slow reader before it checks whether its flow is over.
const LONGEST_SLEEP_NS: u64 = 50_000_000;
/// The token of the leader's wake-up.
const WAKE: u64 = u64::MAX;

/// A receiver's plan for its streams.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivePlan {
    /// Duration since the first byte.
    pub duration: Nanos,
    /// Beginning that is not counted.
    pub omit: Nanos,
    /// Interval of samples.
    pub interval: Nanos,
    /// How long to wait for the first byte.
    pub patience: Nanos,
    /// Window kept on the wire for each stream ([`WindowHold`]).
    pub window_bytes: Option<u32>,
    /// Whether bytes of fast streams may accumulate before they are read, if no window is set by buffers.
    pub coalesce: bool,
    /// Whether every byte is compared with [`bdp_wire::pattern`], which requires copying it.
    pub check: bool,
    /// The application's behaviour, if it does not read as fast as it can; applies to as many streams as have a
    /// thread each.
    pub application: Application,
    /// The threads that read.
    pub crew: Crew,
}

impl ReceivePlan {
    /// Returns the plan of a flow whose first byte is awaited for `patience`.
    pub fn of(spec: &FlowSpec, patience: Nanos, crew: Crew) -> Self {
        Self {
            duration: spec.duration,
            omit: spec.omit,
            interval: spec.interval,
            patience,
            window_bytes: spec.window.map(WindowBytes::get),
            coalesce: spec.window.is_none() && spec.socket_buffer.is_none(),
            check: spec.check_payload,
            application: spec.application,
            crew,
        }
    }
}

/// Reads connected streams until the plan's duration has passed since the first byte, until all have closed, or until
/// `stop`. Ending closes the connections, with a reset if the sender still sends. The meter shows bytes read.
pub fn over(
    streams: Vec<TcpStream>,
    plan: &ReceivePlan,
    stop: &AtomicBool,
    meter: &Meter,
) -> Result<Received> {
    let flow = Flow {
        plan,
        meter,
        read: streams.iter().map(|_| Count::default()).collect(),
        first_byte_ns: AtomicU64::new(0),
        last_byte_ns: AtomicU64::new(0),
        open: AtomicUsize::new(streams.len()),
        last_end: Mutex::new((0, EndReason::Closed)),
        check: Mutex::default(),
        over: AtomicBool::new(false),
        busiest: Busiest::default(),
        program: Program { began_ns: clock::monotonic_ns(), ..Default::default() },
        wake: Waker::new()?,
        streams,
    };
    let busiest = &flow.busiest;
    let holds_back = plan.application.reader.is_some() || plan.application.messages.is_some();
    let apart = (looks_seldom() || holds_back) && flow.streams.len() <= ALONE_AT_MOST;
    let lead = |share| {
        busiest.watch(|| match apart {
            true => lead_apart(&flow, share, stop),
            false => Leading::new(&flow, Share::new(&flow, share)?).run(stop),
        })
    };
    let follow = |share| {
        let mut share = Share::new(&flow, share)?;
        while !flow.over.load(Ordering::Relaxed) && share.open > 0 {
            share.poll_windows(clock::monotonic_ns());
            share.turn(stop_check_ns())?;
        }
        share.leave();
        Ok(())
    };
    let follow = |share| busiest.watch(|| follow(share));
    let mut received = plan.crew.run(flow.streams.len(), &flow.over, lead, follow)?;
    received.thread_cpu = Some(busiest.share());
    meter.set_last_byte(flow.last_byte_ns.load(Ordering::Relaxed));
    received.check = plan.check.then(|| *lock(&flow.check));
    Ok(received)
}

/// Reads each stream of the share on a thread of its own, which waits in the read itself: one system call instead of
/// a poll loop's three. The leader takes the readings when they are due, and does nothing else.
fn lead_apart(flow: &Flow<'_>, share: Range<usize>, stop: &AtomicBool) -> Result<Received> {
    thread::scope(|scope| {
        let mut readers = Vec::new();
        let mut led = Ok(());
        for index in share.clone() {
            let read = move || flow.busiest.watch(|| Share::new(flow, index..index + 1)?.read_alone());
            match Worker::start(scope, read) {
                Ok(reader) => readers.push(reader),
                Err(error) => led = Err(error),
            }
        }
        let led = led.and_then(|()| Leading::new(flow, Share::new(flow, 0..0)?).run(stop));
        flow.over.store(true, Ordering::Relaxed);
        for stream in &flow.streams[share] {
            // A thread that waits in a read returns from it.
            let _ = stream.shutdown(Shutdown::Read);
        }
        let failed = readers.into_iter().filter_map(|reader| reader.join().err()).next();
        failed.map_or(led, Err)
    })
}

/// State shared by the threads of one flow.
struct Flow<'a> {
    plan: &'a ReceivePlan,
    meter: &'a Meter,
    streams: Vec<TcpStream>,
    /// Bytes of each stream so far.
    read: Vec<Count>,
    /// When the first byte of any stream was read; 0 before.
    first_byte_ns: AtomicU64,
    /// When the last byte of any stream was read, set after all threads have finished; 0 before.
    last_byte_ns: AtomicU64,
    /// Streams that are still open.
    open: AtomicUsize,
    /// When and how the last stream ended.
    last_end: Mutex<(u64, EndReason)>,
    check: Mutex<PayloadCheck>,
    over: AtomicBool,
    /// Processor use of the threads.
    busiest: Busiest,
    program: Program,
    /// Wakes the leader at the first byte and when the last stream has ended.
    wake: Waker,
}

/// Activity of the program that reads the first stream.
#[derive(Debug, Default)]
struct Program {
    began_ns: u64,
    /// Time it waited for data; in a guest it is the remaining time, since reading takes none there.
    waited_ns: AtomicU64,
    /// Time it paused on purpose.
    paused_ns: AtomicU64,
}

impl Program {
    fn paused_ns(&self) -> u64 {
        self.paused_ns.load(Ordering::Relaxed)
    }

    fn waited_ns(&self, now_ns: u64) -> u64 {
        match looks_seldom() {
            true => now_ns.saturating_sub(self.began_ns).saturating_sub(self.paused_ns()),
            false => self.waited_ns.load(Ordering::Relaxed),
        }
    }
}

/// A counter that one thread sets, in a cache line of its own to avoid false sharing.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Count(AtomicU64);

impl Flow<'_> {
    fn first_byte(&self) -> Option<u64> {
        Some(self.first_byte_ns.load(Ordering::Relaxed)).filter(|&at| at > 0)
    }

    fn note_first_byte(&self) {
        if self.first_byte().is_none() {
            let now = clock::monotonic_ns().max(1);
            if self.first_byte_ns.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                self.wake.wake();
            }
        }
    }

    /// Bytes of each stream so far.
    fn bytes(&self) -> Vec<u64> {
        self.read.iter().map(|count| count.0.load(Ordering::Relaxed)).collect()
    }
}

/// The streams of one thread.
struct Share<'a> {
    flow: &'a Flow<'a>,
    range: Range<usize>,
    streams: &'a [TcpStream],
    poll: Poll,
    open: usize,
    /// Whether bytes were read since the clock was last checked, and when that last was.
    has_read: bool,
    last_byte_ns: u64,
    coalescing: Option<Coalescing>,
    checkers: Vec<Checker>,
    window: Option<WindowHold>,
    /// The gate of the only stream of a slow reader, or of one that answers messages.
    gate: Option<Gate>,
    /// Waiting time of the first stream's thread.
    waiting: Waiting,
    answering: Option<Answering>,
    room: Vec<u8>,
    ready: Vec<u64>,
}

impl<'a> Share<'a> {
    fn new(flow: &'a Flow<'a>, range: Range<usize>) -> Result<Self> {
        let poll = Poll::new()?;
        let streams = &flow.streams[range.clone()];
        for (token, stream) in range.clone().zip(streams) {
            stream.set_nonblocking(true).map_err(FlowError::io("receive"))?;
            poll.add(stream, token as u64, Interest::Read)?;
        }
        let plan = flow.plan;
        let checked = if plan.check { range.clone() } else { 0..0 };
        Ok(Self {
            window: plan
                .window_bytes
                .zip(streams.first())
                .map(|(window, stream)| WindowHold::of(stream, window)),
            coalescing: plan.coalesce.then(|| Coalescing::new(streams.len())),
            checkers: checked.map(|i| Checker::new(u32::try_from(i).unwrap_or(u32::MAX))).collect(),
            waiting: match range.contains(&0) && !looks_seldom() {
                true => Waiting::counted_from(clock::monotonic_ns()),
                false => Waiting::default(),
            },
            gate: Gate::reader(&plan.application, clock::monotonic_ns(), READ_BYTES),
            answering: plan.application.messages.as_ref().map(Answering::of),
            room: vec![0; if plan.check { CHECKED_READ_BYTES } else { READ_BYTES }],
            ready: Vec::new(),
            open: streams.len(),
            has_read: false,
            last_byte_ns: 0,
            flow,
            range,
            streams,
            poll,
        })
    }

    /// Sees to windows and marks.
    fn poll_windows(&mut self, now: u64) {
        self.note_read(now);
        if let Some(window) = &mut self.window {
            window.keep(now, self.streams);
        }
        if let Some(coalescing) = &mut self.coalescing {
            let read = &self.flow.read[self.range.clone()];
            coalescing.fit(now, self.streams, read.iter().map(|count| count.0.load(Ordering::Relaxed)));
        }
    }

    /// Notes when bytes were read: once for all that one wait gave, since reading the clock each time would cost.
    fn note_read(&mut self, now: u64) {
        if std::mem::take(&mut self.has_read) {
            self.last_byte_ns = now;
        }
    }

    /// Waits for bytes, and takes them.
    fn turn(&mut self, wait_ns: u64) -> Result<()> {
        let mut ready = std::mem::take(&mut self.ready);
        self.waiting.begin(WaitFor::Socket);
        self.poll.wait(&mut ready, Some(wait_ns))?;
        self.end_wait();
        for &token in &ready {
            if token == WAKE {
                self.flow.wake.clear();
            } else {
                self.read_once(token as usize)?;
            }
        }
        self.ready = ready;
        Ok(())
    }

    /// Reads the one stream of this share until it or the flow ends. The clock is read only if something depends on
    /// it.
    fn read_alone(&mut self) -> Result<()> {
        let index = self.range.start;
        self.streams.iter().try_for_each(|s| s.set_nonblocking(false)).map_err(FlowError::io("receive"))?;
        while !self.flow.over.load(Ordering::Relaxed) && self.open > 0 {
            let bytes = self.flow.read[index].0.load(Ordering::Relaxed);
            let coalescing = self.coalescing.as_ref();
            if self.window.is_some() || coalescing.is_some_and(|coalescing| coalescing.is_due(bytes)) {
                self.poll_windows(clock::monotonic_ns());
            }
            if self.coalescing.as_ref().is_some_and(Coalescing::has_marks) {
                self.turn(stop_check_ns())?;
            } else if self.may_read() {
                self.waiting.begin(WaitFor::Socket);
                self.read_once(index)?;
                self.end_wait();
            }
        }
        self.leave();
        Ok(())
    }

    fn end_wait(&mut self) {
        self.waiting.end();
        if let Some(waited_ns) = self.waiting.for_socket_ns() {
            self.flow.program.waited_ns.store(waited_ns, Ordering::Relaxed);
        }
    }

    /// Whether the program reads now; sleeps for a while if not.
    fn may_read(&self) -> bool {
        let Some(gate) = &self.gate else { return true };
        let now = clock::monotonic_ns();
        let wait_ns = gate.due_ns(now).saturating_sub(now);
        if wait_ns > 0 {
            let sleep_ns = wait_ns.min(LONGEST_SLEEP_NS);
            thread::sleep(Duration::from_nanos(sleep_ns));
            if self.range.contains(&0) {
                self.flow.program.paused_ns.fetch_add(sleep_ns, Ordering::Relaxed);
            }
        }
        wait_ns == 0
    }

    /// Reads a stream once. Its end takes it out of the loop.
    fn read_once(&mut self, index: usize) -> Result<()> {
        let place = index - self.range.start;
        let Some(mut stream) = self.streams.get(place) else { return Ok(()) };
        let most = self.gate.as_mut().map_or(usize::MAX, |gate| gate.allowed(clock::monotonic_ns()));
        let most = most.clamp(1, self.room.len());
        let room = &mut self.room[..most];
        let got = match self.checkers.get_mut(place) {
            None => socket::discard(stream, room),
            Some(checker) => stream.read(room).inspect(|&length| checker.check(&room[..length])),
        };
        let ended = match got {
            Ok(0) => EndReason::Closed,
            Ok(length) => {
                if let Some(gate) = &mut self.gate {
                    gate.give(length);
                }
                let messages = self.answering.as_mut().map_or(0, |answering| answering.complete(length));
                for _ in 0..messages {
                    // The sender sees that none comes: the end of the stream tells why.
                    let _ = stream.write(&[0]);
                }
                self.flow.read[index].0.fetch_add(length as u64, Ordering::Relaxed);
                self.has_read = true;
                self.flow.note_first_byte();
                return Ok(());
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(()),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => EndReason::Reset,
            Err(e) => return Err(FlowError::io("read")(e)),
        };
        self.poll.remove(stream)?;
        self.open -= 1;
        *lock(&self.flow.last_end) = (clock::monotonic_ns(), ended);
        if self.flow.open.fetch_sub(1, Ordering::Release) == 1 {
            self.flow.wake.wake();
        }
        Ok(())
    }

    /// Reports any error found, and the time of the last read.
    fn leave(&mut self) {
        self.note_read(clock::monotonic_ns());
        self.flow.last_byte_ns.fetch_max(self.last_byte_ns, Ordering::Relaxed);
        for (index, checker) in self.range.clone().zip(&self.checkers) {
            let first_wrong = checker.first_wrong().map(|offset| WrongByte { stream: index as u32, offset });
            let found = PayloadCheck {
                checked_bytes: checker.checked_bytes(),
                wrong_bytes: checker.wrong_bytes(),
                first_wrong,
            };
            let mut check = lock(&self.flow.check);
            *check = check.and(found);
        }
    }
}

/// The leader's own state: its share, and the readings of all streams.
struct Leading<'a> {
    flow: &'a Flow<'a>,
    share: Share<'a>,
    counting: Counting,
    cadence: Cadence,
    samples: Vec<ReceiverSample>,
    /// Window scaling of the first stream.
    window_scaling: Option<bool>,
    connection: Option<Connection>,
    ended: EndReason,
}

impl<'a> Leading<'a> {
    fn new(flow: &'a Flow<'a>, share: Share<'a>) -> Self {
        Self {
            share,
            counting: Counting::new(flow.plan.omit, flow.streams.len()),
            cadence: Cadence::every(flow.plan.interval),
            samples: Vec::new(),
            window_scaling: None,
            connection: None,
            ended: EndReason::Duration,
            flow,
        }
    }

    fn run(mut self, stop: &AtomicBool) -> Result<Received> {
        let (flow, plan) = (self.flow, self.flow.plan);
        self.share.poll.add(&flow.wake, WAKE, Interest::Read)?;
        let started = clock::monotonic_ns();
        let cpu = ProcessShare::begin(started);
        while flow.open.load(Ordering::Acquire) > 0 {
            let now = still_clock::now_ns();
            self.share.poll_windows(now);
            let stopped = stop.load(Ordering::Relaxed) || flow.over.load(Ordering::Relaxed);
            if let Some(first) = flow.first_byte() {
                if self.look(now.saturating_sub(first), stopped)? {
                    break;
                }
            } else if now - started >= plan.patience.as_ns() {
                return Err(FlowError::Silence { within: plan.patience });
            }
            if stopped {
                self.ended = EndReason::Stopped;
                break;
            }
            let wait = self.wait_ns(now);
            self.share.turn(wait)?;
        }
        if flow.open.load(Ordering::Acquire) == 0 {
            self.end_with_streams();
        }
        self.share.leave();
        Ok(self.received(cpu.until_now()))
    }

    /// Takes the readings that are due; returns whether the time is over.
    fn look(&mut self, at_ns: u64, stopped: bool) -> Result<bool> {
        let plan = self.flow.plan;
        let begins = self.counting.begins(at_ns);
        let over = at_ns >= plan.duration.as_ns();
        let sampled = self.cadence.take(at_ns) || over;
        if begins && over && plan.omit > Nanos::ZERO {
            // This thread did not run until the end: the data waiting in its sockets counts.
            self.share.turn(0)?;
        }
        // Reading 1,000 streams is not free.
        if begins || sampled || stopped || at_ns - self.counting.last().at_ns >= LOOK_NS {
            self.mark(at_ns);
        }
        if sampled {
            self.sample();
        }
        Ok(over)
    }

    /// How long to wait for bytes until the next reading is due.
    fn wait_ns(&self, now: u64) -> u64 {
        let plan = self.flow.plan;
        self.flow.first_byte().map_or(stop_check_ns(), |first| {
            let until = self.cadence.next_ns().min(self.counting.due_ns()).min(plan.duration.as_ns());
            // A reader of the meter waits for the last bytes of a volume.
            let unmarked = self.share.last_byte_ns > first + self.counting.last().at_ns;
            (first + until).saturating_sub(now).min(if unmarked { LOOK_NS } else { stop_check_ns() })
        })
    }

    /// All streams have ended: so has the flow, with the last of them.
    fn end_with_streams(&mut self) {
        let (at, ended) = lock(&self.flow.last_end).clone();
        self.ended = ended;
        if let Some(first) = self.flow.first_byte() {
            self.mark(at.saturating_sub(first).max(self.counting.last().at_ns));
            self.sample();
        }
    }

    /// The outcome of the flow, with its share of the processor.
    fn received(self, cpu: f64) -> Received {
        let (flow, plan) = (self.flow, self.flow.plan);
        let first = flow.streams.first();
        let info = first.and_then(|s| tcp_info::read(s).ok());
        let (last, (counted_from, stream_bytes)) = (self.counting.last().mark(), self.counting.counted());
        Received {
            first_byte_at_ns: flow.first_byte(),
            bytes: last.bytes,
            duration_ns: last.at_ns,
            counted_from,
            stream_bytes,
            samples: self.samples,
            receive_buffer_bytes: first.and_then(|s| socket::receive_buffer(s).ok()).map(|b| b as u64),
            cpu,
            thread_cpu: None,
            window_scaling: self.window_scaling.or(info.and_then(|info| info.window_scaling)),
            connection: self.connection,
            method: if plan.check { ReceiveMethod::Read } else { ReceiveMethod::Truncate },
            threads: u32::try_from(plan.crew.threads()).ok(),
            check: None,
            ended: self.ended,
            path_mtu: info.and_then(|info| info.pmtu),
            datagrams: None,
        }
    }

    /// Reads how far all streams are. The time of a flow begins when its first read has returned.
    fn mark(&mut self, at_ns: u64) {
        let read = self.flow.bytes();
        self.flow.meter.set(read.iter().sum());
        self.flow.meter.set_streams(read.iter().copied());
        self.counting.note_after_first_read(at_ns, read);
    }

    /// Adds the last reading with its `TCP_INFO`.
    fn sample(&mut self) {
        let (sample, first) = sample(self.counting.last().mark(), &self.flow.streams);
        let now = self.flow.first_byte().unwrap_or(0) + sample.at_ns;
        let spent = self.flow.busiest.spent();
        // A socket that was reset has forgotten it.
        self.window_scaling = self.window_scaling.or(first.and_then(|info| info.window_scaling));
        self.connection = self.connection.or(first.as_ref().and_then(connection::of_receiver));
        self.samples.push(ReceiverSample {
            read_waited_ns: Some(self.flow.program.waited_ns(now)),
            read_paused_ns: Some(self.flow.program.paused_ns()),
            cpu_ns: spent.map(|spent| spent.cpu_ns),
            thread_cpu_ns: spent.map(|spent| spent.busiest_cpu_ns),
            run_wait_ns: spent.map(|spent| spent.run_wait_ns),
            ..sample
        });
    }
}

/// Takes a sample of this many bytes, with the kernel's report of the streams, and its full report of the first.
pub fn sample(mark: Mark, streams: &[TcpStream]) -> (ReceiverSample, Option<TcpInfo>) {
    let mut sample = ReceiverSample { at_ns: mark.at_ns, bytes: mark.bytes, ..Default::default() };
    let infos: Vec<_> = streams.iter().map(|stream| tcp_info::read(stream).ok()).collect();
    for count in infos.iter().flatten().filter_map(|info| info.rcv_out_of_order) {
        *sample.out_of_order.get_or_insert(0) += u64::from(count);
    }
    sample.unread_bytes = streams.first().and_then(socket::unread_bytes);
    let first = infos.into_iter().next().flatten();
    sample.rcv_wnd_bytes = first.as_ref().and_then(|info| info.rcv_wnd).map(u64::from);
    (sample, first)
}
