//! The downloading connections, each on a thread of its own.

use std::io::Read;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bdp_flow::background::Passed;
use bdp_flow::counting::{Cadence, Counting};
use bdp_flow::lock::lock;
use bdp_flow::receive;
use bdp_flow::session::error::Result;
use bdp_flow::session::peer::Polled;
use bdp_flow::window_hold::WindowHold;
use bdp_model::flow::FlowSpec;
use bdp_model::flow::method::{EndReason, ReceiveMethod};
use bdp_model::record::ReceiverSample;
use bdp_sys::poll::is_wait;
use bdp_sys::{clock, process, socket, tcp_info};
use bdp_wire::control::{Mark, Received};

use super::chunks::Chunks;
use super::failure::failed;
use super::http::{Connection, Head};
use super::url::Url;

/// A shorter file is fetched once: repeated requests would measure the requests.
pub(super) const WORTH_REPEATING: u64 = 1 << 20;
/// Bytes of one read.
const READ_BYTES: usize = 256 << 10;
/// Interval at which the counts are checked.
const LOOK: Duration = Duration::from_millis(5);
/// Interval of checks before the first byte.
const FIRST_LOOK: Duration = Duration::from_millis(1);
/// How long the first byte of a body may take.
const FIRST_BYTE: Duration = Duration::from_secs(15);

/// The downloading connections, each on a thread of its own. Dropping it ends them.
pub(super) struct Flow {
    sockets: Vec<TcpStream>,
    counts: Arc<Vec<AtomicU64>>,
    /// When the first byte of any body arrived; `u64::MAX` before.
    first_byte_ns: Arc<AtomicU64>,
    open: Arc<AtomicU32>,
    /// Connections that have read the file to its end, and do not request it again.
    whole: Arc<AtomicU32>,
    stop: Arc<AtomicBool>,
    failure: Arc<Mutex<Option<String>>>,
    threads: Vec<JoinHandle<()>>,
    cpu_before_ns: u64,
    since: Instant,
    /// When the first byte arrived, once it has.
    first_ns: Option<u64>,
    samples: Vec<ReceiverSample>,
    cadence: Cadence,
    counting: Counting,
    /// How it ended, once it has.
    over: Option<EndReason>,
    shown: Vec<u64>,
}

impl Flow {
    /// Starts reading.
    pub(super) fn start(connections: Vec<Connection>, url: &Url, spec: &FlowSpec) -> Result<Self> {
        let (count, window) = (connections.len(), spec.window);
        let mut flow = Self {
            sockets: Vec::new(),
            counts: Arc::new((0..count).map(|_| AtomicU64::new(0)).collect()),
            first_byte_ns: Arc::new(AtomicU64::new(u64::MAX)),
            open: Arc::new(AtomicU32::new(u32::try_from(count).unwrap_or(u32::MAX))),
            whole: Arc::default(),
            stop: Arc::default(),
            failure: Arc::default(),
            threads: Vec::new(),
            cpu_before_ns: process::cpu_time_ns(),
            since: Instant::now(),
            first_ns: None,
            samples: Vec::new(),
            cadence: Cadence::every(spec.interval),
            counting: Counting::new(spec.omit, count),
            over: None,
            shown: vec![0; count],
        };
        for (index, mut connection) in connections.into_iter().enumerate() {
            let clone = connection.socket().try_clone().map_err(|e| failed(url, e.to_string()))?;
            flow.sockets.push(clone);
            let (counts, open, stop) =
                (Arc::clone(&flow.counts), Arc::clone(&flow.open), Arc::clone(&flow.stop));
            let (failure, whole, url) = (Arc::clone(&flow.failure), Arc::clone(&flow.whole), url.clone());
            let first_byte_ns = Arc::clone(&flow.first_byte_ns);
            flow.threads.push(bdp_flow::worker::start(move || {
                let window = window.map(|window| WindowHold::of(connection.socket(), window.get()));
                let count = &counts[index];
                let fetched = Fetch { connection: &mut connection, count, stop: &stop, window };
                match fetched.run(&url, &first_byte_ns) {
                    Ok(is_whole) => drop(whole.fetch_add(u32::from(is_whole), Ordering::Relaxed)),
                    Err(why) => *lock(&failure) = Some(why),
                }
                open.fetch_sub(1, Ordering::Release);
            })?);
        }
        Ok(flow)
    }

    /// Returns the segment size that this end would send.
    pub(super) fn mss(&self) -> Option<u64> {
        // The server's is the same except for its options.
        self.sockets.first().and_then(|s| tcp_info::read(s).ok()?.snd_mss).map(u64::from)
    }

    /// Takes samples when due; over when the time is up, this many bytes have arrived, or nothing more comes.
    pub(super) fn poll(&mut self, spec: &FlowSpec, url: &Url) -> Result<Polled> {
        if self.over.is_some() {
            return Ok(Polled::Over);
        }
        let Some(first_ns) = self.first_ns else { return self.await_first_byte(url) };
        let at_ns = clock::monotonic_ns() - first_ns;
        self.counting.note(at_ns, self.read());
        let is_closed = self.open.load(Ordering::Acquire) == 0;
        let is_whole = self.whole.load(Ordering::Relaxed) as usize == self.counts.len();
        self.over = ending(spec, self.counting.last().mark(), is_closed, is_whole);
        if self.cadence.take(at_ns) || self.over.is_some() {
            self.sample();
        }
        if self.over.is_some() {
            return Ok(Polled::Over);
        }
        std::thread::sleep(LOOK);
        Ok(Polled::Running)
    }

    fn await_first_byte(&mut self, url: &Url) -> Result<Polled> {
        if self.read().iter().any(|&bytes| bytes > 0) {
            self.first_ns = Some(self.first_byte_ns.load(Ordering::Relaxed).min(clock::monotonic_ns()));
        } else if self.open.load(Ordering::Relaxed) == 0 || self.since.elapsed() > FIRST_BYTE {
            return Err(failed(url, self.why("no byte of the file arrived")));
        } else {
            std::thread::sleep(FIRST_LOOK);
        }
        Ok(Polled::Running)
    }

    /// Whether anything counts yet.
    pub(super) fn has_counted(&self) -> bool {
        let now_ns = self.first_ns.map(|first| clock::monotonic_ns().saturating_sub(first));
        now_ns.is_some_and(|now| self.counting.has_begun(now))
    }

    /// Ends the flow now.
    pub(super) fn cut_short(&mut self) {
        let Some(first_ns) = self.first_ns else { return };
        self.counting.note(clock::monotonic_ns() - first_ns, self.read());
        self.sample();
        self.over = Some(EndReason::Stopped);
    }

    /// Returns what has arrived since the previous call.
    pub(super) fn moved(&mut self) -> Passed {
        let streams = self.read();
        let moved: Vec<u64> = streams.iter().zip(&self.shown).map(|(now, before)| now - before).collect();
        self.shown = streams;
        Passed { bytes: moved.iter().sum(), streams: moved, ..Passed::default() }
    }

    /// Returns the flow's result, once it is over.
    pub(super) fn finish(&mut self, url: &Url) -> Received {
        self.stop.store(true, Ordering::Relaxed);
        let (last, (counted_from, stream_bytes)) = (self.counting.last().mark(), self.counting.counted());
        let elapsed = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1);
        let first_socket = self.sockets.first();
        Received {
            first_byte_at_ns: self.first_ns,
            bytes: last.bytes,
            duration_ns: last.at_ns,
            counted_from,
            stream_bytes,
            samples: std::mem::take(&mut self.samples),
            receive_buffer_bytes: first_socket.and_then(|s| socket::receive_buffer(s).ok()).map(|b| b as u64),
            cpu: (process::cpu_time_ns() - self.cpu_before_ns) as f64 / elapsed as f64,
            method: if url.secure { ReceiveMethod::ReadTls } else { ReceiveMethod::Read },
            threads: u32::try_from(self.counts.len()).ok(),
            ended: self.over.take().unwrap_or(EndReason::Stopped),
            path_mtu: first_socket.and_then(|s| tcp_info::read(s).ok()?.pmtu),
            ..Received::default()
        }
    }

    fn read(&self) -> Vec<u64> {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    fn sample(&mut self) {
        self.samples.push(receive::sample(self.counting.last().mark(), &self.sockets).0);
    }

    fn why(&self, otherwise: &str) -> String {
        let failure = lock(&self.failure);
        failure.clone().unwrap_or_else(|| otherwise.to_owned())
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The thread checks the flag at each glance.
            let _ = thread.join();
        }
    }
}

/// Returns how a download at this mark has ended, if it has: by its time, by its bytes, or because nothing more
/// comes.
fn ending(spec: &FlowSpec, mark: Mark, is_closed: bool, is_whole: bool) -> Option<EndReason> {
    let all = spec.bytes.is_some_and(|wanted| mark.bytes >= wanted.as_bytes());
    if mark.at_ns >= spec.duration.as_ns() {
        Some(EndReason::Duration)
    } else if all || is_closed && !is_whole {
        Some(EndReason::Closed)
    } else {
        is_closed.then_some(EndReason::Bytes)
    }
}

/// One connection's part.
struct Fetch<'a> {
    connection: &'a mut Connection,
    count: &'a AtomicU64,
    stop: &'a AtomicBool,
    window: Option<WindowHold>,
}

impl Fetch<'_> {
    /// Requests the file, repeatedly if worthwhile, and counts the bytes of its body. Returns whether it ended with a
    /// complete body.
    fn run(mut self, url: &Url, first_byte_ns: &AtomicU64) -> Result<bool, String> {
        let mut room = vec![0; READ_BYTES];
        while !self.is_stopped() {
            self.connection.ask(url).map_err(|e| e.to_string())?;
            let (head, body) = self.connection.read_head()?;
            first_byte_ns.fetch_min(clock::monotonic_ns(), Ordering::Relaxed);
            if !(200..300).contains(&head.status) {
                return Err(format!("the server answered {} to one of several connections", head.status));
            }
            self.connection.set_glances().map_err(|e| e.to_string())?;
            let ended = self.read_body(&head, &body, &mut room)?;
            if !ended {
                // Without a length it is the end of the connection that ends it (RFC 9112, section 6.3).
                return Ok(head.length.is_none() && !head.chunked && !self.is_stopped());
            }
            if head.closes || head.length.is_none_or(|length| length < WORTH_REPEATING) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads to the end of the body; whether that was reached with the connection still open.
    fn read_body(&mut self, head: &Head, begun: &[u8], room: &mut [u8]) -> Result<bool, String> {
        let (mut bytes, count) = (0, self.count);
        let mut chunks = head.chunked.then(Chunks::default);
        let mut take = |came: &[u8]| {
            let content = match &mut chunks {
                Some(chunks) => chunks.take(came)?,
                None => came.len() as u64,
            };
            bytes += content;
            count.fetch_add(content, Ordering::Relaxed);
            Ok::<bool, String>(match &chunks {
                Some(chunks) => chunks.is_over(),
                None => head.length.is_some_and(|length| bytes >= length),
            })
        };
        let mut is_over = take(begun)?;
        loop {
            if is_over {
                return Ok(true);
            }
            if self.is_stopped() {
                return Ok(false);
            }
            if let Some(window) = &mut self.window {
                window.keep(clock::monotonic_ns(), std::slice::from_ref(self.connection.socket()));
            }
            match self.connection.read(room) {
                Ok(0) => return Ok(false),
                Ok(length) => is_over = take(&room[..length])?,
                Err(e) if is_wait(&e) => {}
                Err(e) => return Err(e.to_string()),
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use bdp_model::units::{ByteCount, Nanos};

    use super::*;

    #[test]
    fn a_download_ends_by_its_time_its_bytes_or_when_nothing_more_comes() {
        let spec =
            FlowSpec { duration: Nanos::secs(1), bytes: Some(ByteCount::bytes(100)), ..FlowSpec::default() };
        let end =
            |at_ns, bytes, is_closed, is_whole| ending(&spec, Mark { at_ns, bytes }, is_closed, is_whole);
        assert_eq!(end(999_999_999, 99, false, false), None);
        assert_eq!(end(1_000_000_000, 100, true, true), Some(EndReason::Duration));
        assert_eq!(end(5, 100, false, false), Some(EndReason::Closed));
        assert_eq!(end(5, 50, true, false), Some(EndReason::Closed));
        assert_eq!(end(5, 50, true, true), Some(EndReason::Bytes));
    }
}
