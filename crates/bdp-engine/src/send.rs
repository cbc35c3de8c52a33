//! The sending end of bulk TCP: one thread, all streams in one poll loop, `TCP_INFO` read as it goes.

use std::io::ErrorKind;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use bdp_model::record::SenderSample;
use bdp_model::units::Nanos;
use bdp_sys::payload::Payload;
use bdp_sys::poll::{Interest, Poll};
use bdp_sys::tcp_info::{self, TcpInfo};
use bdp_sys::{clock, process, socket};
use bdp_wire::control::{SendOrder, Sent};

use crate::EngineError;
use crate::meter::Meter;
use crate::pause::{STOP_CHECK_NS, wait_until};

/// Largest buffer for one write.
const LONGEST_WRITE: u64 = 64 << 20;
/// Writes to one stream before the others have their turn.
const TURN: u32 = 16;

/// What a sender does with its streams.
#[derive(Debug, Clone, PartialEq)]
pub struct SendPlan {
    /// Bytes of one write.
    pub length_bytes: u64,
    /// Ends, at the latest, after this time since the start; the receiver ends a flow earlier.
    pub longest: Nanos,
    /// Ends after so many bytes in total, and closes.
    pub bytes: Option<u64>,
    /// From one sample to the next.
    pub interval: Nanos,
    /// Whether the kernel may take the bytes by reference, without copying them first.
    pub by_reference: bool,
}

/// Connects when it is time, then sends as [`over`] does.
pub fn run(order: &SendOrder, stop: &AtomicBool) -> Result<Sent, EngineError> {
    process::sharpen_timers();
    if !wait_until(clock::monotonic_ns() + order.start.as_ns(), stop) {
        return Ok(Sent::default());
    }
    let options = socket::TcpOptions {
        congestion: Some(order.congestion.clone()),
        mss: order.mss,
        nodelay: order.nodelay,
        ..Default::default()
    };
    let mut streams = Vec::new();
    for _ in 0..order.streams {
        streams.push(socket::connect(order.to, &options, order.patience.to_duration())?);
    }
    let plan = SendPlan {
        length_bytes: order.length_bytes,
        longest: order.duration + order.patience,
        bytes: order.bytes,
        interval: order.interval,
        by_reference: false,
    };
    over(streams, &plan, stop, &Meter::default())
}

/// Writes to connected streams until the receiver ends the flow, until the planned bytes are through, or until `stop`.
/// The meter shows bytes acknowledged, as of the last sample.
pub fn over(
    streams: Vec<TcpStream>,
    plan: &SendPlan,
    stop: &AtomicBool,
    meter: &Meter,
) -> Result<Sent, EngineError> {
    process::sharpen_timers();
    let poll = Poll::new()?;
    for (token, stream) in streams.iter().enumerate() {
        stream.set_nonblocking(true).map_err(EngineError::io("send"))?;
        poll.add(stream, token as u64, Interest::Write)?;
    }
    let mut sending = Sending {
        plan,
        meter,
        poll,
        open: vec![true; streams.len()],
        open_count: streams.len(),
        streams,
        payload: Payload::new(plan.length_bytes.clamp(1, LONGEST_WRITE) as usize, plan.by_reference),
        written: 0,
        samples: Vec::new(),
        retransmits: 0,
        acked: 0,
        first: TcpInfo::default(),
    };
    sending.run(stop)
}

struct Sending<'a> {
    plan: &'a SendPlan,
    meter: &'a Meter,
    poll: Poll,
    streams: Vec<TcpStream>,
    open: Vec<bool>,
    open_count: usize,
    payload: Payload,
    written: u64,
    samples: Vec<SenderSample>,
    retransmits: u64,
    acked: u64,
    /// The first stream's last reading that told anything.
    first: TcpInfo,
}

impl Sending<'_> {
    fn run(&mut self, stop: &AtomicBool) -> Result<Sent, EngineError> {
        let started = clock::monotonic_ns();
        let cpu_before = process::cpu_time_ns();
        let congestion = self.streams.first().map(socket::congestion).transpose()?.unwrap_or_default();
        let end = started.saturating_add(self.plan.longest.as_ns());
        let mut send_buffer = self.send_buffer();
        let interval = self.plan.interval.as_ns().max(1_000_000);
        let mut next_sample = started;
        let mut ready = Vec::new();
        loop {
            let now = clock::monotonic_ns();
            if now >= next_sample {
                self.sample(now - started);
                send_buffer = self.send_buffer().or(send_buffer);
                next_sample = now - (now - started) % interval + interval;
            }
            if stop.load(Ordering::Relaxed) || now >= end || self.open_count == 0 {
                break;
            }
            self.poll.wait(&mut ready, Some(next_sample.saturating_sub(now).min(STOP_CHECK_NS)))?;
            for &token in &ready {
                self.write_turn(token as usize)?;
            }
        }
        if self.samples.len() < 2 {
            self.sample(clock::monotonic_ns() - started);
        }
        let elapsed = (clock::monotonic_ns() - started).max(1);
        Ok(Sent {
            bytes: self.written,
            congestion,
            mss: self.first.snd_mss.map(u64::from),
            retransmits: self.samples.last().and_then(|s| s.retransmits),
            samples: std::mem::take(&mut self.samples),
            cpu: (process::cpu_time_ns() - cpu_before) as f64 / elapsed as f64,
            send_buffer_bytes: send_buffer,
            path_mtu: self.first.pmtu,
            method: self.payload.method().to_owned(),
        })
    }

    fn send_buffer(&self) -> Option<u64> {
        self.streams.first().and_then(|s| socket::send_buffer(s).ok()).map(|b| b as u64)
    }

    /// Some writes to one stream. A stream that the receiver ended, or whose bytes are through, leaves the loop.
    fn write_turn(&mut self, token: usize) -> Result<(), EngineError> {
        if !self.open.get(token).copied().unwrap_or(false) {
            return Ok(());
        }
        let Some(stream) = self.streams.get(token) else { return Ok(()) };
        for _ in 0..TURN {
            let left = self.plan.bytes.map_or(u64::MAX, |total| total.saturating_sub(self.written));
            if left == 0 {
                return self.finish(token);
            }
            let length = self.payload.length().min(usize::try_from(left).unwrap_or(usize::MAX));
            match self.payload.send(stream, length) {
                Ok(accepted) => self.written += accepted as u64,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => break,
                Err(e) if matches!(e.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                    self.open[token] = false;
                    self.open_count -= 1;
                    self.poll.remove(stream)?;
                    break;
                }
                Err(e) => return Err(EngineError::io("write")(e)),
            }
        }
        Ok(())
    }

    /// Closes the sending side of a stream in order, its bytes being all written.
    fn finish(&mut self, token: usize) -> Result<(), EngineError> {
        self.open[token] = false;
        self.open_count -= 1;
        self.poll.remove(&self.streams[token])?;
        match self.streams[token].shutdown(Shutdown::Write) {
            Err(e) if e.kind() != ErrorKind::NotConnected => Err(EngineError::io("shutdown")(e)),
            _ => Ok(()),
        }
    }

    /// Reads `TCP_INFO` of all streams.
    fn sample(&mut self, at_ns: u64) {
        let mut sample = SenderSample { at_ns, ..Default::default() };
        for (i, stream) in self.streams.iter().enumerate() {
            let Ok(info) = tcp_info::read(stream) else { continue };
            if let Some(acked) = info.bytes_acked {
                *sample.acked_bytes.get_or_insert(0) += acked;
            }
            if let Some(count) = info.total_retrans {
                *sample.retransmits.get_or_insert(0) += u64::from(count);
            }
            if i == 0 {
                sample.unacked = info.unacked_segments;
                sample.cwnd = info.cwnd_segments;
                sample.snd_wnd_bytes = info.snd_wnd.map(u64::from);
                sample.srtt_ns = info.rtt_ns;
                sample.busy_ns = info.busy_ns;
                sample.rwnd_limited_ns = info.rwnd_limited_ns;
                sample.sndbuf_limited_ns = info.sndbuf_limited_ns;
                if self.open[0] || self.first == TcpInfo::default() {
                    self.first = info;
                }
            }
        }
        // A socket that was reset reports zeros; what was seen before stands.
        self.retransmits = self.retransmits.max(sample.retransmits.unwrap_or(0));
        sample.retransmits = sample.retransmits.map(|_| self.retransmits);
        self.acked = self.acked.max(sample.acked_bytes.unwrap_or(0));
        self.meter.set(self.acked);
        self.samples.push(sample);
    }
}
