//! The probe flow of a session: small datagrams, or messages on a connection where no datagram comes back, all the
//! time from the greeting to the end.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bdp_model::record::RttSummary;
use bdp_sys::{clock, process, socket};
use bdp_wire::session::{Key, PROBE_BYTES, Probe};

use crate::EngineError;

/// From one probe to the next: 20 a second.
pub(super) const INTERVAL_NS: u64 = 50_000_000;

/// What carries probes.
pub(super) enum Carrier {
    /// Datagrams, connected to the server.
    Udp(UdpSocket),
    /// A probe connection that the server has let in.
    Tcp(TcpStream),
}

/// A running probe flow. Dropped, it ends.
pub(super) struct Prober {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    key: Key,
    stop: AtomicBool,
    /// Each probe by its number: when it was sent, and its round trip once it has come back.
    probes: Mutex<Vec<(u64, Option<u64>)>>,
}

impl Prober {
    /// Starts probing.
    pub(super) fn start(key: Key, carrier: Carrier) -> Result<Self, EngineError> {
        let shared = Arc::new(Shared { key, stop: AtomicBool::new(false), probes: Mutex::default() });
        let on_thread = Arc::clone(&shared);
        let thread = Some(crate::agent::start(move || on_thread.run(carrier))?);
        Ok(Self { shared, thread })
    }

    /// Round trips of the probes that were sent from one moment (monotonic, nanoseconds) to another; `None` where none
    /// came back.
    pub(super) fn summary(&self, from_ns: u64, to_ns: u64) -> Option<RttSummary> {
        let probes = self.shared.probes();
        let these = || probes.iter().filter(|(at, _)| (from_ns..to_ns).contains(at));
        RttSummary::of(these().count() as u64, these().filter_map(|&(_, rtt)| rtt))
    }

    /// Round trips a minute of the probes that were sent from one moment to another; `None` where none came back.
    pub(super) fn responsiveness_rpm(&self, from_ns: u64, to_ns: u64) -> Option<f64> {
        let probes = self.shared.probes();
        let mut round_trips_ns: Vec<u64> = probes
            .iter()
            .filter(|(at, _)| (from_ns..to_ns).contains(at))
            .filter_map(|&(_, rtt)| rtt)
            .collect();
        drop(probes);
        bdp_model::stats::responsiveness_rpm(&mut round_trips_ns)
    }

    /// The round trip that came last.
    pub(super) fn last(&self) -> Option<u64> {
        self.shared.probes().iter().rev().find_map(|&(_, rtt)| rtt)
    }

    /// The smallest of all.
    pub(super) fn smallest(&self) -> Option<u64> {
        self.shared.probes().iter().filter_map(|&(_, rtt)| rtt).min()
    }

    /// Whether every probe that was sent until a moment has come back.
    pub(super) fn is_complete(&self, until_ns: u64) -> bool {
        self.shared.probes().iter().all(|&(at, rtt)| at >= until_ns || rtt.is_some())
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn probes(&self) -> MutexGuard<'_, Vec<(u64, Option<u64>)>> {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, mut carrier: Carrier) {
        process::sharpen_timers();
        let start = clock::monotonic_ns();
        let mut number = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let now = clock::monotonic_ns();
            let due = start + number * INTERVAL_NS;
            if now >= due {
                let sent_ns = clock::monotonic_ns();
                self.probes().push((sent_ns, None));
                carrier.send(&Probe { key: self.key, number, sent_ns }.encode());
                number += 1;
                continue;
            }
            if let Some(probe) = carrier.receive(due - now) {
                self.note(probe, clock::monotonic_ns());
            }
        }
    }

    /// Notes an answer: of this session, to a probe that was sent, and its first.
    fn note(&self, probe: Probe, now: u64) {
        if probe.key != self.key {
            return;
        }
        if let Some((sent_ns, rtt @ None)) = self.probes().get_mut(probe.number as usize) {
            *rtt = Some(now.saturating_sub(*sent_ns));
        }
    }
}

impl Carrier {
    fn send(&mut self, bytes: &[u8; PROBE_BYTES]) {
        // A full queue or an unreachable peer shows as a probe without answer.
        match self {
            Self::Udp(socket) => drop(socket.send(bytes)),
            Self::Tcp(stream) => drop(stream.write_all(bytes)),
        }
    }

    /// The next probe that comes back within the time.
    fn receive(&mut self, wait_ns: u64) -> Option<Probe> {
        let wait = Duration::from_nanos(wait_ns.max(1_000));
        let mut room = [0; PROBE_BYTES + 1];
        match self {
            Self::Udp(socket) => {
                socket::set_receive_deadline(socket, wait).ok()?;
                match socket.recv(&mut room) {
                    Ok(length) => Probe::decode(&room[..length]),
                    Err(e) => {
                        pause_unless_waited(&e, wait);
                        None
                    }
                }
            }
            Self::Tcp(stream) => {
                stream.set_read_timeout(Some(wait)).ok()?;
                // A probe is one segment: its first byte comes with its last.
                match stream.peek(&mut room[..1]) {
                    Ok(1..) => {
                        stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
                        stream.read_exact(&mut room[..PROBE_BYTES]).ok()?;
                        Probe::decode(&room[..PROBE_BYTES])
                    }
                    Ok(0) => {
                        std::thread::sleep(wait);
                        None
                    }
                    Err(e) => {
                        pause_unless_waited(&e, wait);
                        None
                    }
                }
            }
        }
    }
}

/// An error that came at once (an ICMP refusal, a reset) would make a loop of it spin.
fn pause_unless_waited(error: &std::io::Error, wait: Duration) {
    if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) {
        std::thread::sleep(wait.min(Duration::from_millis(10)));
    }
}
