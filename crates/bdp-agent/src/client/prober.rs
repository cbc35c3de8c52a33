//! The probe flow of a session: small datagrams, or messages on a connection where no datagram comes back, all the
//! time from the greeting to the end.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use bdp_model::one_way::{ClockOffset, EachWay, Exchange};
use bdp_model::record::ProbeOutcome;
use bdp_sys::poll::{is_wait, wait_readable};
use bdp_sys::{clock, process, socket};
use bdp_wire::echo::{ECHO_BYTES, Echo, FarStamps};
use bdp_wire::session::{Key, PROBE_BYTES, Probe};

use bdp_flow::error::FlowError;
use bdp_flow::lock::lock;
use bdp_flow::session::peer::Probes;

/// From one probe to the next: 20 a second.
pub(super) const INTERVAL_NS: u64 = 50_000_000;
/// How long an answer is possible at least, and at most.
const PATIENCE_NS: Range<u64> = 1_000_000_000..10_000_000_000;

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
    /// By their numbers.
    probes: Mutex<Vec<Sent>>,
}

/// A probe that was sent.
struct Sent {
    at_ns: u64,
    /// Once it has come back.
    back: Option<Back>,
}

struct Back {
    rtt_ns: u64,
    /// What the server's clock said; not of probes on a connection.
    far: Option<FarStamps>,
}

impl Sent {
    fn rtt_ns(&self) -> Option<u64> {
        self.back.as_ref().map(|back| back.rtt_ns)
    }

    fn exchange(&self) -> Option<Exchange> {
        let back = self.back.as_ref()?;
        let FarStamps { arrived_ns, returned_ns, .. } = back.far?;
        Some(Exchange { sent_ns: self.at_ns, arrived_ns, returned_ns, received_ns: self.at_ns + back.rtt_ns })
    }
}

impl Prober {
    /// Starts probing.
    pub(super) fn start(key: Key, carrier: Carrier) -> Result<Self, FlowError> {
        let shared = Arc::new(Shared { key, stop: AtomicBool::new(false), probes: Mutex::default() });
        let on_thread = Arc::clone(&shared);
        let thread = Some(bdp_flow::worker::start(move || on_thread.run(carrier))?);
        Ok(Self { shared, thread })
    }

    /// How long after a probe its answer is possible: twice the longest round trip so far, within bounds.
    pub(super) fn patience_ns(&self) -> u64 {
        let longest = lock(&self.shared.probes).iter().filter_map(Sent::rtt_ns).max().unwrap_or(0);
        longest.saturating_mul(2).clamp(PATIENCE_NS.start, PATIENCE_NS.end)
    }

    /// Whether every probe that was sent until a moment has come back.
    pub(super) fn is_complete(&self, until_ns: u64) -> bool {
        lock(&self.shared.probes).iter().all(|sent| sent.at_ns >= until_ns || sent.back.is_some())
    }
}

impl Probes for Prober {
    /// Of those without an answer the younger ones are in flight: an answer may yet come.
    fn outcomes(&self, sent_within: &Range<u64>) -> Vec<ProbeOutcome> {
        let patience_ns = self.patience_ns();
        outcomes(&lock(&self.shared.probes), sent_within, clock::monotonic_ns(), patience_ns)
    }

    fn each_way(&self, sent_within: &Range<u64>) -> Option<EachWay> {
        let probes = lock(&self.shared.probes);
        let exchanges: Vec<Exchange> = probes.iter().filter_map(Sent::exchange).collect();
        drop(probes);
        let these = exchanges.iter().filter(|e| sent_within.contains(&e.sent_ns));
        EachWay::of(these, ClockOffset::of(&exchanges)?)
    }

    fn responsiveness_rpm(&self, sent_within: &Range<u64>) -> Option<f64> {
        let probes = lock(&self.shared.probes);
        let these = probes.iter().filter(|sent| sent_within.contains(&sent.at_ns));
        let mut round_trips_ns: Vec<u64> = these.filter_map(Sent::rtt_ns).collect();
        drop(probes);
        bdp_model::stats::responsiveness_rpm(&mut round_trips_ns)
    }

    fn last_ns(&self) -> Option<u64> {
        lock(&self.shared.probes).iter().rev().find_map(Sent::rtt_ns)
    }

    fn smallest_ns(&self) -> Option<u64> {
        lock(&self.shared.probes).iter().filter_map(Sent::rtt_ns).min()
    }
}

fn outcomes(
    probes: &[Sent],
    sent_within: &Range<u64>,
    awaited_until_ns: u64,
    patience_ns: u64,
) -> Vec<ProbeOutcome> {
    let these = probes.iter().filter(|sent| sent_within.contains(&sent.at_ns));
    these.map(|sent| ProbeOutcome::of(sent.rtt_ns(), sent.at_ns, awaited_until_ns, patience_ns)).collect()
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
    fn run(&self, mut carrier: Carrier) {
        process::sharpen_timers();
        let start = clock::monotonic_ns();
        let mut number = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let now = clock::monotonic_ns();
            let due = start + number * INTERVAL_NS;
            if now >= due {
                let sent_ns = clock::monotonic_ns();
                lock(&self.probes).push(Sent { at_ns: sent_ns, back: None });
                carrier.send(self.key, number, sent_ns);
                number += 1;
                continue;
            }
            if let Some(answer) = carrier.receive(due - now) {
                self.note(answer, clock::monotonic_ns());
            }
        }
    }

    /// Notes an answer: of this session, to a probe that was sent, and its first.
    fn note(&self, answer: Answer, now: u64) {
        if answer.key != self.key {
            return;
        }
        if let Some(Sent { at_ns, back: back @ None }) = lock(&self.probes).get_mut(answer.number as usize) {
            *back = Some(Back { rtt_ns: now.saturating_sub(*at_ns), far: answer.far });
        }
    }
}

/// A probe that came back.
struct Answer {
    key: Key,
    number: u64,
    far: Option<FarStamps>,
}

impl Answer {
    fn of_datagram(bytes: &[u8]) -> Option<Self> {
        let Echo { key, number, far } = Echo::read(bytes).filter(|_| bytes.len() == ECHO_BYTES)?;
        Some(Self { key, number, far })
    }

    fn of_connection(bytes: &[u8]) -> Option<Self> {
        let Probe { key, number, .. } = Probe::decode(bytes)?;
        Some(Self { key, number, far: None })
    }
}

impl Carrier {
    fn send(&mut self, key: Key, number: u64, sent_ns: u64) {
        // A full queue or an unreachable peer shows as a probe without answer.
        match self {
            Self::Udp(socket) => {
                let mut message = [0; ECHO_BYTES];
                Echo { key, number, far: None }.put(&mut message);
                drop(socket.send(&message));
            }
            Self::Tcp(stream) => drop(stream.write_all(&Probe { key, number, sent_ns }.encode())),
        }
    }

    /// The next probe that comes back within the time.
    fn receive(&mut self, wait_ns: u64) -> Option<Answer> {
        let descriptor = match &*self {
            Self::Udp(socket) => AsFd::as_fd(socket),
            Self::Tcp(stream) => AsFd::as_fd(stream),
        };
        // A socket's own deadline is rounded up to the kernel's tick, 4 ms on many: the next probe would be sent so late.
        if !wait_readable(descriptor, wait_ns.max(1_000)).unwrap_or(true) {
            return None;
        }
        // What woke this thread may be gone already.
        let wait = Duration::from_millis(5);
        let mut room = [0; ECHO_BYTES + 1];
        match self {
            Self::Udp(socket) => {
                socket::set_receive_deadline(socket, wait).ok()?;
                match socket.recv(&mut room) {
                    Ok(length) => Answer::of_datagram(&room[..length]),
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
                        Answer::of_connection(&room[..PROBE_BYTES])
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
    if !is_wait(error) {
        std::thread::sleep(wait.min(Duration::from_millis(10)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bdp_model::record::RttSummary;

    const MS: u64 = 1_000_000;

    /// A probe sent so late, in milliseconds, that came back after so many.
    fn sent(at_ms: u64, rtt_ms: Option<u64>) -> Sent {
        Sent { at_ns: at_ms * MS, back: rtt_ms.map(|ms| Back { rtt_ns: ms * MS, far: None }) }
    }

    #[test]
    fn only_probes_sent_within_the_time_count() {
        // Idle at 10 ms, then a load of 200 ms that counts from 1 s to 3 s.
        let probes: Vec<Sent> =
            (0..80).map(|i| sent(i * 50, Some(if (10..60).contains(&i) { 200 } else { 10 }))).collect();
        let summary = |sent_within: Range<u64>| {
            RttSummary::of_probes(outcomes(&probes, &sent_within, 10_000 * MS, 1_000 * MS)).unwrap()
        };
        let all = summary(0..4_000 * MS);
        assert_eq!((all.sent, all.min), (80, 10 * MS));
        let loaded = summary(1_000 * MS..3_000 * MS);
        assert_eq!((loaded.sent, loaded.received, loaded.in_flight, loaded.lost()), (40, 40, 0, 0));
        assert!(loaded.min == 200 * MS && loaded.p50 >= 200 * MS, "{loaded:?}");
    }

    #[test]
    fn a_young_probe_without_an_answer_is_in_flight_and_an_old_one_lost() {
        let probes = [sent(0, Some(10)), sent(50, None), sent(900, None), sent(950, None)];
        let these = outcomes(&probes, &(0..1_000 * MS), 1_500 * MS, 1_000 * MS);
        let summary = RttSummary::of_probes(these).unwrap();
        assert_eq!((summary.sent, summary.received, summary.in_flight, summary.lost()), (4, 1, 2, 1));
    }
}
