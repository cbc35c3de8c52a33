//! The receiving end of bulk TCP: one thread, all streams in one poll loop, bytes counted as the application reads them.

use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use bdp_model::record::ReceiverSample;
use bdp_sys::poll::{Interest, Poll};
use bdp_sys::{clock, process, socket, tcp_info};
use bdp_wire::control::{ListenOrder, Mark, Received};

use crate::EngineError;

/// Bytes of one read.
const READ_BYTES: usize = 256 << 10;
/// Longest wait before a raised stop flag is seen.
const STOP_CHECK_NS: u64 = 50_000_000;

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

    /// Accepts the streams, reads them until `duration` has passed since the first byte, until all have closed, or
    /// until `stop`. Ending closes the connections, with a reset where the sender still sends.
    pub fn run(self, stop: &AtomicBool) -> Result<Received, EngineError> {
        process::sharpen_timers();
        let streams = self.accept(stop)?;
        let poll = Poll::new()?;
        for (token, stream) in streams.iter().enumerate() {
            poll.add(stream, token as u64, Interest::Read)?;
        }
        Reading::new(&self.order, &streams).run(&poll, stop)
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
                Ok((stream, _)) => {
                    stream.set_nonblocking(true).map_err(EngineError::io("accept"))?;
                    streams.push(stream);
                }
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

/// The reading of one flow.
struct Reading<'a> {
    order: &'a ListenOrder,
    streams: &'a [TcpStream],
    /// Bytes of each stream so far.
    read: Vec<u64>,
    /// Bytes of each stream when counting began.
    read_before: Vec<u64>,
    counted_from: Option<Mark>,
    samples: Vec<ReceiverSample>,
    open: usize,
    ended: &'static str,
}

impl<'a> Reading<'a> {
    fn new(order: &'a ListenOrder, streams: &'a [TcpStream]) -> Self {
        Self {
            order,
            streams,
            read: vec![0; streams.len()],
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
            if let Some(first) = first_byte {
                last = Mark { at_ns: now - first, bytes: self.read.iter().sum() };
                if self.counted_from.is_none() && last.at_ns >= self.order.omit.as_ns() {
                    self.counted_from = Some(last);
                    self.read_before.clone_from(&self.read);
                }
                let over = last.at_ns >= self.order.duration.as_ns();
                if last.at_ns >= next_sample || over {
                    self.sample(last);
                    next_sample = last.at_ns - last.at_ns % self.interval() + self.interval();
                }
                if over {
                    break;
                }
            } else if now - started >= self.order.patience.as_ns() {
                return Err(EngineError::Deadline(format!("no data came within {}", self.order.patience)));
            }
            if stop.load(Ordering::Relaxed) {
                self.ended = "stopped";
                break;
            }
            let wait = first_byte.map_or(STOP_CHECK_NS, |first: u64| {
                let mark = if self.counted_from.is_none() { self.order.omit.as_ns() } else { u64::MAX };
                let until = next_sample.min(mark).min(self.order.duration.as_ns());
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
            last = Mark { at_ns: clock::monotonic_ns() - first, bytes: self.read.iter().sum() };
            self.sample(last);
        }
        let elapsed = (clock::monotonic_ns() - started).max(1);
        Ok(Received {
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
            ended: self.ended.to_owned(),
        })
    }

    fn interval(&self) -> u64 {
        self.order.interval.as_ns().max(1_000_000)
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
        let Some(mut stream) = self.streams.get(token) else { return Ok(false) };
        let ended = match stream.read(room) {
            Ok(0) => "closed",
            Ok(length) => {
                self.read[token] += length as u64;
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
