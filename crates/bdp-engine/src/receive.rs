//! The receiving end of bulk TCP: one thread, all streams in one poll loop, bytes counted as the application takes them out
//! of the kernel, which it does without having them copied.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use bdp_model::record::ReceiverSample;
use bdp_model::units::Nanos;
use bdp_sys::poll::{Interest, Poll};
use bdp_sys::{clock, process, socket, tcp_info, window};
use bdp_wire::control::{ListenOrder, Mark, Received};

use crate::EngineError;
use crate::coalesce::Coalescing;
use crate::meter::Meter;
use crate::pause::STOP_CHECK_NS;

/// Bytes of one read.
const READ_BYTES: usize = 1 << 20;
/// How bytes are read, as it is recorded.
pub const READ_METHOD: &str = "MSG_TRUNC";
/// From one look at the windows to the next, for each stream; and the longest time for all of them.
const HOLD_NS: u64 = 2_000_000;
const LONGEST_HOLD_NS: u64 = 200_000_000;

/// A listening socket, ready for the streams of one flow.
#[derive(Debug)]
pub struct Receiver {
    listener: TcpListener,
    port: u16,
    order: ListenOrder,
}

impl Receiver {
    /// Listens as ordered.
    pub fn listen(order: ListenOrder) -> Result<Self, EngineError> {
        let options = socket::TcpOptions { mss: order.mss, ..Default::default() };
        let backlog = i32::try_from(order.streams).unwrap_or(i32::MAX).clamp(16, 4096);
        let listener = socket::listen(order.address, &options, backlog)?;
        let port = listener.local_addr().map_err(EngineError::io("listen"))?.port();
        Ok(Self { listener, port, order })
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Accepts the streams, reads them until `duration` has passed since the first byte (since the last connection, where
    /// no byte comes), until all have closed, or until `stop`. Ending closes the connections, with a reset where the sender still sends.
    pub fn run(self, stop: &AtomicBool) -> Result<Received, EngineError> {
        process::sharpen_timers();
        let streams = self.accept(stop)?;
        let plan = ReceivePlan {
            duration: self.order.duration,
            omit: self.order.omit,
            interval: self.order.interval,
            patience: self.order.duration,
            window_bytes: None,
            coalesce: false,
        };
        match over(streams, &plan, stop, &Meter::default()) {
            // A path that lets the handshake through and no segment, as a black hole does, is one that was measured.
            Err(EngineError::Silence { within }) => Ok(nothing_within(within, &self.order)),
            outcome => outcome,
        }
    }

    fn accept(&self, stop: &AtomicBool) -> Result<Vec<TcpStream>, EngineError> {
        self.listener.set_nonblocking(true).map_err(EngineError::io("accept"))?;
        let poll = Poll::new()?;
        poll.add(&self.listener, 0, Interest::Read)?;
        let deadline = clock::monotonic_ns() + self.order.patience.as_ns();
        let mut ready = Vec::new();
        let mut streams = Vec::new();
        while streams.len() < self.order.streams as usize {
            match self.listener.accept() {
                Ok((stream, _)) => streams.push(stream),
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    let now = clock::monotonic_ns();
                    if now >= deadline || stop.load(Ordering::Relaxed) {
                        return Err(EngineError::Deadline(format!(
                            "{} of {} connections came within {}",
                            streams.len(),
                            self.order.streams,
                            self.order.patience
                        )));
                    }
                    poll.wait(&mut ready, Some((deadline - now).min(STOP_CHECK_NS)))?;
                }
                Err(e) => return Err(EngineError::io("accept")(e)),
            }
        }
        Ok(streams)
    }
}

/// The outcome of a flow of which no byte came.
fn nothing_within(duration: Nanos, order: &ListenOrder) -> Received {
    let ends = |at_ns| ReceiverSample { at_ns, ..Default::default() };
    Received {
        duration_ns: duration.as_ns(),
        counted_from: Mark { at_ns: order.omit.as_ns(), bytes: 0 },
        stream_bytes: vec![0; order.streams as usize],
        samples: vec![ends(0), ends(duration.as_ns())],
        ended: "silence".to_owned(),
        ..Default::default()
    }
}

/// What a receiver does with its streams.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivePlan {
    /// Ends after this time since the first byte.
    pub duration: Nanos,
    /// Beginning that does not count.
    pub omit: Nanos,
    /// From one sample to the next.
    pub interval: Nanos,
    /// How long to wait for the first byte.
    pub patience: Nanos,
    /// Window that is held on the wire of each stream ([`window::hold`]).
    pub window_bytes: Option<u32>,
    /// Whether bytes of fast streams may come together before they are read, where no window is set by buffers.
    pub coalesce: bool,
}

/// Reads connected streams until the plan's duration has passed since the first byte, until all have closed, or until
/// `stop`. Ending closes the connections, with a reset where the sender still sends. The meter shows bytes read.
pub fn over(
    streams: Vec<TcpStream>,
    plan: &ReceivePlan,
    stop: &AtomicBool,
    meter: &Meter,
) -> Result<Received, EngineError> {
    process::sharpen_timers();
    let poll = Poll::new()?;
    for (token, stream) in streams.iter().enumerate() {
        stream.set_nonblocking(true).map_err(EngineError::io("receive"))?;
        poll.add(stream, token as u64, Interest::Read)?;
    }
    Reading::new(plan, &streams, meter).run(&poll, stop)
}

/// The reading of one flow.
struct Reading<'a> {
    plan: &'a ReceivePlan,
    meter: &'a Meter,
    streams: &'a [TcpStream],
    /// Bytes of each stream so far.
    read: Vec<u64>,
    /// Their sum.
    total: u64,
    /// Bytes of each stream when counting began.
    read_before: Vec<u64>,
    counted_from: Option<Mark>,
    samples: Vec<ReceiverSample>,
    open: usize,
    coalescing: Option<Coalescing>,
    /// What the window is held by.
    clamp: Option<u32>,
    /// When the window is looked at again.
    next_hold: u64,
    ended: &'static str,
}

impl<'a> Reading<'a> {
    fn new(plan: &'a ReceivePlan, streams: &'a [TcpStream], meter: &'a Meter) -> Self {
        Self {
            plan,
            meter,
            clamp: plan
                .window_bytes
                .zip(streams.first())
                .map(|(window, stream)| window::clamp_for(stream, window)),
            next_hold: 0,
            coalescing: plan.coalesce.then(|| Coalescing::new(streams.len())),
            streams,
            read: vec![0; streams.len()],
            total: 0,
            read_before: vec![0; streams.len()],
            counted_from: None,
            samples: Vec::new(),
            open: streams.len(),
            ended: "duration",
        }
    }

    fn run(mut self, poll: &Poll, stop: &AtomicBool) -> Result<Received, EngineError> {
        let started = clock::monotonic_ns();
        let cpu_before = process::cpu_time_ns();
        let mut first_byte = None;
        let mut next_sample = 0;
        let mut room = vec![0; READ_BYTES];
        let mut ready = Vec::new();
        let mut last = Mark::default();
        while self.open > 0 {
            let now = clock::monotonic_ns();
            self.hold_window(now);
            if let Some(coalescing) = &mut self.coalescing {
                coalescing.fit(now, self.streams, &self.read);
            }
            if let Some(first) = first_byte {
                last = Mark { at_ns: now - first, bytes: self.total };
                self.meter.set(self.total);
                if self.counted_from.is_none() && last.at_ns >= self.plan.omit.as_ns() {
                    // Without omit it is the first read that counting begins with.
                    let at_ns = if self.plan.omit == Nanos::ZERO { 0 } else { last.at_ns };
                    self.counted_from = Some(Mark { at_ns, ..last });
                    self.read_before.clone_from(&self.read);
                }
                let over = last.at_ns >= self.plan.duration.as_ns();
                if last.at_ns >= next_sample || over {
                    self.sample(last);
                    next_sample = last.at_ns - last.at_ns % self.interval() + self.interval();
                }
                if over {
                    break;
                }
            } else if now - started >= self.plan.patience.as_ns() {
                return Err(EngineError::Silence { within: self.plan.patience });
            }
            if stop.load(Ordering::Relaxed) {
                self.ended = "stopped";
                break;
            }
            let wait = first_byte.map_or(STOP_CHECK_NS, |first: u64| {
                let mark = if self.counted_from.is_none() { self.plan.omit.as_ns() } else { u64::MAX };
                let until = next_sample.min(mark).min(self.plan.duration.as_ns());
                (first + until).saturating_sub(now).min(STOP_CHECK_NS)
            });
            poll.wait(&mut ready, Some(wait))?;
            for &token in &ready {
                let got = self.read_once(token as usize, &mut room, poll)?;
                if got && first_byte.is_none() {
                    first_byte = Some(clock::monotonic_ns());
                }
            }
        }
        if let (0, Some(first)) = (self.open, first_byte) {
            last = Mark { at_ns: clock::monotonic_ns() - first, bytes: self.total };
            self.sample(last);
        }
        let elapsed = (clock::monotonic_ns() - started).max(1);
        Ok(Received {
            first_byte_at_ns: first_byte,
            bytes: last.bytes,
            duration_ns: last.at_ns,
            counted_from: self.counted_from.unwrap_or(last),
            stream_bytes: self.read.iter().zip(&self.read_before).map(|(now, before)| now - before).collect(),
            samples: self.samples,
            receive_buffer_bytes: self
                .streams
                .first()
                .and_then(|s| socket::receive_buffer(s).ok())
                .map(|b| b as u64),
            cpu: (process::cpu_time_ns() - cpu_before) as f64 / elapsed as f64,
            method: READ_METHOD.to_owned(),
            ended: self.ended.to_owned(),
            path_mtu: self.streams.first().and_then(|s| tcp_info::read(s).ok()).and_then(|info| info.pmtu),
        })
    }

    /// Sees to it that the kernel has not widened the window again.
    fn hold_window(&mut self, now: u64) {
        let Some(clamp) = self.clamp else { return };
        if now < self.next_hold {
            return;
        }
        self.next_hold = now + (self.streams.len() as u64 * HOLD_NS).min(LONGEST_HOLD_NS);
        for stream in self.streams {
            // Where the kernel refuses, the window that the sender saw tells.
            let _ = window::hold(stream, clamp);
        }
    }

    fn interval(&self) -> u64 {
        self.plan.interval.as_ns().max(1_000_000)
    }

    /// Notes a moment with what `TCP_INFO` says at it.
    fn sample(&mut self, at: Mark) {
        let mut sample = ReceiverSample { at_ns: at.at_ns, bytes: at.bytes, ..Default::default() };
        for (i, stream) in self.streams.iter().enumerate() {
            let Ok(info) = tcp_info::read(stream) else { continue };
            if let Some(count) = info.rcv_out_of_order {
                *sample.out_of_order.get_or_insert(0) += u64::from(count);
            }
            if i == 0 {
                sample.rcv_wnd_bytes = info.rcv_wnd.map(u64::from);
            }
        }
        self.samples.push(sample);
    }

    /// Reads a stream once; says whether data came. The end of a stream takes it out of the loop.
    fn read_once(&mut self, token: usize, room: &mut [u8], poll: &Poll) -> Result<bool, EngineError> {
        let Some(stream) = self.streams.get(token) else { return Ok(false) };
        let ended = match socket::discard(stream, room) {
            Ok(0) => "closed",
            Ok(length) => {
                self.read[token] += length as u64;
                self.total += length as u64;
                return Ok(true);
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(false),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => "reset",
            Err(e) => return Err(EngineError::io("read")(e)),
        };
        poll.remove(stream)?;
        self.open -= 1;
        self.ended = ended;
        Ok(false)
    }
}
