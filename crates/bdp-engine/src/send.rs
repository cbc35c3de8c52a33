//! The sending end of bulk TCP: one thread, all streams in one poll loop, `TCP_INFO` read as it goes.

use std::io::{ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use bdp_model::record::SenderSample;
use bdp_sys::poll::{Interest, Poll};
use bdp_sys::{clock, process, socket, tcp_info};
use bdp_wire::control::{SendOrder, Sent};

use crate::EngineError;

/// Largest buffer for one write.
const LONGEST_WRITE: u64 = 64 << 20;
/// Writes to one stream before the others have their turn.
const TURN: u32 = 16;
/// Longest wait before a raised stop flag is seen.
const STOP_CHECK_NS: u64 = 50_000_000;

/// Connects, then writes until the receiver ends the flow, until the ordered bytes are through, or until `stop`.
pub fn run(order: &SendOrder, stop: &AtomicBool) -> Result<Sent, EngineError> {
    process::sharpen_timers();
    let options = socket::TcpOptions {
        congestion: Some(order.congestion.clone()),
        mss: order.mss,
        nodelay: order.nodelay,
        receive_buffer: None,
    };
    let mut streams = Vec::new();
    for _ in 0..order.streams {
        let stream = socket::connect(order.to, &options, order.patience.to_duration())?;
        stream.set_nonblocking(true).map_err(EngineError::io("connect"))?;
        streams.push(stream);
    }
    let poll = Poll::new()?;
    for (token, stream) in streams.iter().enumerate() {
        poll.add(stream, token as u64, Interest::Write)?;
    }
    let mut sending = Sending {
        order,
        poll,
        open: vec![true; streams.len()],
        streams,
        block: vec![0; order.length_bytes.clamp(1, LONGEST_WRITE) as usize],
        written: 0,
        samples: Vec::new(),
        retransmits: 0,
    };
    sending.run(stop)
}

struct Sending<'a> {
    order: &'a SendOrder,
    poll: Poll,
    streams: Vec<TcpStream>,
    open: Vec<bool>,
    block: Vec<u8>,
    written: u64,
    samples: Vec<SenderSample>,
    retransmits: u64,
}

impl Sending<'_> {
    fn run(&mut self, stop: &AtomicBool) -> Result<Sent, EngineError> {
        let started = clock::monotonic_ns();
        let cpu_before = process::cpu_time_ns();
        let congestion = self.streams.first().map(socket::congestion).transpose()?.unwrap_or_default();
        let end = started + self.order.duration.as_ns() + self.order.patience.as_ns();
        let interval = self.order.interval.as_ns().max(1_000_000);
        let mut next_sample = started;
        let mut ready = Vec::new();
        let mut mss = None;
        loop {
            let now = clock::monotonic_ns();
            if now >= next_sample {
                mss = self.sample(now - started).or(mss);
                next_sample = now - (now - started) % interval + interval;
            }
            if stop.load(Ordering::Relaxed) || now >= end || !self.open.contains(&true) {
                break;
            }
            self.poll.wait(&mut ready, Some(next_sample.saturating_sub(now).min(STOP_CHECK_NS)))?;
            for &token in &ready {
                self.write_turn(token as usize)?;
            }
        }
        if self.samples.len() < 2 {
            mss = self.sample(clock::monotonic_ns() - started).or(mss);
        }
        let elapsed = (clock::monotonic_ns() - started).max(1);
        Ok(Sent {
            bytes: self.written,
            congestion,
            mss,
            retransmits: self.samples.last().and_then(|s| s.retransmits),
            samples: std::mem::take(&mut self.samples),
            cpu: (process::cpu_time_ns() - cpu_before) as f64 / elapsed as f64,
        })
    }

    /// Some writes to one stream. A stream that the receiver ended, or whose bytes are through, leaves the loop.
    fn write_turn(&mut self, token: usize) -> Result<(), EngineError> {
        if !self.open.get(token).copied().unwrap_or(false) {
            return Ok(());
        }
        let Some(mut stream) = self.streams.get(token) else { return Ok(()) };
        for _ in 0..TURN {
            let left = self.order.bytes.map_or(u64::MAX, |total| total.saturating_sub(self.written));
            if left == 0 {
                return self.finish(token);
            }
            let length = self.block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            match stream.write(&self.block[..length]) {
                Ok(accepted) => self.written += accepted as u64,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => break,
                Err(e) if matches!(e.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                    self.open[token] = false;
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
        self.poll.remove(&self.streams[token])?;
        match self.streams[token].shutdown(Shutdown::Write) {
            Err(e) if e.kind() != ErrorKind::NotConnected => Err(EngineError::io("shutdown")(e)),
            _ => Ok(()),
        }
    }

    /// Reads `TCP_INFO` of all streams; returns the first one's segment size.
    fn sample(&mut self, at_ns: u64) -> Option<u64> {
        let mut sample = SenderSample { at_ns, ..Default::default() };
        let mut mss = None;
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
                mss = info.snd_mss.map(u64::from);
            }
        }
        // A socket that was reset reports zeros; what was seen before stands.
        self.retransmits = self.retransmits.max(sample.retransmits.unwrap_or(0));
        sample.retransmits = sample.retransmits.map(|_| self.retransmits);
        self.samples.push(sample);
        mss
    }
}
