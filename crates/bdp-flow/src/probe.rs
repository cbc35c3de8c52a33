//! The probe flow, timed by the monotonic clock: small UDP datagrams at a steady rate that the other host echoes, or
//! TCP connections at a steady rate, each reset once established. Each is due at a random moment of its interval,
//! drawn from a seed.

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bdp_model::case::ProbeKind;
use bdp_model::probes::ProbeTimes;
use bdp_model::probes::flight::{ProbeFlow, Schedule};
use bdp_sys::poll::wait_readable;
use bdp_sys::socket::TcpOptions;
use bdp_sys::{clock, process};
use bdp_wire::control::{ProbeOrder, ProbeSample, Probed};
use bdp_wire::probe::{EchoCount, PROBE_BYTES, Probe};

use crate::error::{FlowError, Result};
use crate::handshakes::{self, MOST_UNDER_WAY};
use crate::pause::{looks_seldom, wait_until};
use crate::probe_flow::{self, Arrival, Carrier};
use crate::session::dial::any_address;

/// Connections that may wait to be taken, and as many that are kept once they are: two seconds of the lab's probe flows.
const PROBE_CONNECTIONS: usize = 128;
/// Most senders whose probes an echo counts; a lab has a handful.
const MOST_COUNTED: usize = 1024;

/// Echoes every datagram of a probe's size, for as long as the process lives.
pub fn echo(socket: &UdpSocket) {
    process::sharpen_timers();
    let mut room = [0; PROBE_BYTES];
    let mut counts: HashMap<SocketAddr, EchoCount> = HashMap::new();
    loop {
        match socket.recv_from(&mut room) {
            // The echo has the same size: a forged source gains nothing.
            Ok((PROBE_BYTES, from)) => {
                if let Some(probe) = Probe::decode(&room) {
                    if counts.len() >= MOST_COUNTED && !counts.contains_key(&from) {
                        counts.clear();
                    }
                    let count = counts.entry(from).or_default().note(probe.number);
                    Probe::note_arrival(&mut room, clock::monotonic_ns(), count);
                }
                drop(socket.send_to(&room, from));
            }
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            // A refused datagram (ICMP) is reported here and concerns only its sender.
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Returns a listener for probe connections.
pub fn listen(address: SocketAddr) -> Result<TcpListener> {
    Ok(bdp_sys::socket::listen(address, &TcpOptions::default(), PROBE_CONNECTIONS as i32)?)
}

/// Accepts every connection, for as long as the process lives. The kernel answers the SYN by itself, so this thread's
/// timing does not matter. Each connection is closed only after many later ones: the end that times it resets it, and
/// an earlier reset from here would look like a refusal. If that end's reset was lost, ours ends it.
pub fn take(listener: &TcpListener) {
    let mut taken = VecDeque::new();
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                if bdp_sys::socket::reset_on_close(&stream).is_ok() {
                    taken.push_back(stream);
                }
                if taken.len() > PROBE_CONNECTIONS {
                    taken.pop_front();
                }
            }
            Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Sends probes and collects their round trips until the order's end or until `stop`.
pub fn run(order: &ProbeOrder, stop: &AtomicBool) -> Result<Probed> {
    process::sharpen_timers();
    match order.kind {
        ProbeKind::Udp => send_datagrams(order, stop),
        ProbeKind::TcpConnect => connect(order, stop),
    }
}

/// Connects at every interval, whatever happened to earlier connections. A refused connection, or one not answered
/// within the order's patience, counts as sent and not received. A lost SYN shows as the one second that Linux waits
/// before the next, and the three before another.
fn connect(order: &ProbeOrder, stop: &AtomicBool) -> Result<Probed> {
    let schedule = schedule(order, clock::monotonic_ns() + order.offset.as_ns());
    let mut probes = Vec::new();
    let mut note = |number, sample| probe_flow::enter(&mut probes, number, sample);
    handshakes::run(order.to, schedule, order.patience, MOST_UNDER_WAY, stop, &mut note)?;
    Ok(Probed { probes, awaited_until_ns: clock::monotonic_ns() })
}

fn schedule(order: &ProbeOrder, start_ns: u64) -> Schedule {
    let times = ProbeTimes::within(order.seed, order.interval.as_ns().max(10_000), order.jitter.as_ns());
    Schedule { start_ns, times: Some(times), count: None, end_ns: start_ns + order.duration.as_ns() }
}

fn send_datagrams(order: &ProbeOrder, stop: &AtomicBool) -> Result<Probed> {
    let socket = UdpSocket::bind((any_address(order.to), 0)).map_err(FlowError::io("bind probe"))?;
    socket.connect(order.to).map_err(FlowError::io("connect probe"))?;
    socket.set_nonblocking(true).map_err(FlowError::io("prepare probe"))?;
    if !wait_until(clock::monotonic_ns() + order.offset.as_ns(), stop) {
        return Ok(Probed::default());
    }
    let start = clock::monotonic_ns();
    let (schedule, patience_ns) = (schedule(order, start), order.patience.as_ns());
    let until_ns = schedule.end_ns + patience_ns;
    let flow = ProbeFlow::new(schedule, patience_ns, Some(until_ns), usize::MAX);
    let mut datagrams = Datagrams { socket, probes: Vec::new() };
    let awaited_until_ns = probe_flow::run(&mut datagrams, flow, start, stop)?;
    Ok(Probed { probes: datagrams.probes, awaited_until_ns })
}

struct Datagrams {
    socket: UdpSocket,
    probes: Vec<ProbeSample>,
}

impl Carrier for Datagrams {
    fn send(&mut self, number: u64, now_ns: u64) -> Result<(u64, bool)> {
        // A full queue or an unreachable peer shows as a probe that never left.
        let sent = self.socket.send(&Probe { number, sent_at_ns: now_ns }.encode());
        Ok((now_ns, sent.is_err()))
    }

    fn receive(&mut self, wait_ns: u64, arrivals: &mut Vec<Arrival>) -> Result<u64> {
        let mut room = [0; PROBE_BYTES + 1];
        // A socket's own deadline is rounded up to the kernel's tick, 4 ms on many: probes would be sent so late.
        let readable = wait_readable(self.socket.as_fd(), wait_ns.max(1_000))
            .map_err(FlowError::io("wait for a probe"))?;
        let received = readable && matches!(self.socket.recv(&mut room), Ok(PROBE_BYTES));
        let now = clock::monotonic_ns();
        let answer = &room[..PROBE_BYTES];
        if let Some(Probe { number, sent_at_ns }) = Probe::decode(answer).filter(|_| received) {
            let (there_ns, echoed) = (Probe::there_ns(answer), Probe::echoed(answer));
            let sent_at_ns = Some(sent_at_ns);
            arrivals.push(Arrival { number, sent_at_ns, refused: false, there_ns, echoed });
        }
        Ok(now)
    }

    fn note(&mut self, number: u64, sample: ProbeSample) {
        probe_flow::enter(&mut self.probes, number, sample);
    }

    fn now_ns(&self, known_ns: u64) -> u64 {
        // In a guest a reading is a system call, and time stands still until the next wait.
        if looks_seldom() { known_ns } else { clock::monotonic_ns() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use bdp_model::record::ProbeOutcome;
    use bdp_model::units::Nanos;

    use super::*;

    fn order(kind: ProbeKind, to: SocketAddr) -> ProbeOrder {
        ProbeOrder {
            flow: 1,
            kind,
            to,
            offset: Nanos::millis(2),
            interval: Nanos::millis(1),
            jitter: Nanos::millis(1),
            seed: 7,
            duration: Nanos::millis(20),
            patience: Nanos::secs(5),
        }
    }

    #[test]
    fn every_probe_over_loopback_comes_back() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        std::thread::spawn(move || echo(&socket));
        let before = clock::monotonic_ns();
        let outcome = run(&order(ProbeKind::Udp, to), &AtomicBool::new(false)).unwrap();
        assert_eq!(outcome.sent(), 20);
        assert_eq!(outcome.round_trips_ns().count(), 20);
        assert!(outcome.round_trips_ns().all(|r| r > 0));
        let sent_at: Vec<u64> = outcome.probes.iter().map(|probe| probe.sent_at_ns).collect();
        assert!(sent_at[0] >= before && sent_at.is_sorted(), "{sent_at:?}");
        // One in each of 20 ms, the first of which may itself be late.
        assert!(sent_at[19] - sent_at[0] >= 10_000_000, "{sent_at:?}");
        let due = |i: usize| outcome.probes[i].due_at_ns;
        let times = ProbeTimes::new(7, 1_000_000);
        assert!((1..20).all(|i| due(i) - due(0) == times.due_ns(i as u64) - times.due_ns(0)), "{outcome:?}");
    }

    #[test]
    fn every_connection_over_loopback_is_answered() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let to = listener.local_addr().unwrap();
        std::thread::spawn(move || take(&listener));
        let outcome = run(&order(ProbeKind::TcpConnect, to), &AtomicBool::new(false)).unwrap();
        // A busy machine is late, and leaves no turn out.
        assert_eq!((outcome.sent(), outcome.round_trips_ns().count()), (20, 20));
        assert!(outcome.round_trips_ns().all(|r| r > 0));
    }

    #[test]
    fn a_refused_connection_counts_as_sent_and_a_stop_ends_the_flow() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let outcome = run(&order(ProbeKind::TcpConnect, closed), &AtomicBool::new(false)).unwrap();
        assert_eq!((outcome.sent(), outcome.round_trips_ns().count()), (20, 0));
        assert!(outcome.probes.iter().all(|probe| probe.failed), "{outcome:?}");
        let stopped = run(&order(ProbeKind::TcpConnect, closed), &AtomicBool::new(true)).unwrap();
        assert_eq!(stopped.sent(), 0);
    }

    #[test]
    fn a_probe_that_a_stop_leaves_without_an_answer_is_in_flight() {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let order = ProbeOrder {
            duration: Nanos::secs(3600),
            patience: Nanos::secs(3600),
            ..order(ProbeKind::Udp, silent.local_addr().unwrap())
        };
        let stop = AtomicBool::new(false);
        let outcome = std::thread::scope(|scope| {
            let probing = scope.spawn(|| run(&order, &stop).unwrap());
            // One is in flight: what it sends is here, and never answered.
            silent.recv(&mut [0; 64]).unwrap();
            stop.store(true, Ordering::Relaxed);
            probing.join().unwrap()
        });
        let outcomes: Vec<ProbeOutcome> = outcome.outcomes(&(0..u64::MAX), order.patience).collect();
        assert!(!outcomes.is_empty(), "{outcome:?}");
        assert!(
            outcomes.iter().all(|outcome| matches!(outcome, ProbeOutcome::InFlight { .. })),
            "{outcome:?}"
        );
        // It is known to be lost after the longest time that an answer can take.
        let lost = |outcome| matches!(outcome, ProbeOutcome::Lost { .. });
        assert!(outcome.outcomes(&(0..u64::MAX), Nanos(0)).all(lost));
    }
}
