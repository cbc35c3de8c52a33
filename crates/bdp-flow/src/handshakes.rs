//! TCP handshakes at a steady rate that measure round trips. Several may be in progress: one whose SYN was lost takes
//! the one or three seconds that Linux waits before it sends another, without delaying later ones.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use bdp_model::probes::flight::{ProbeFlow, Schedule};
use bdp_model::units::Nanos;
use bdp_sys::clock;
use bdp_sys::handshake::{Handshake, UnderWay};
use bdp_sys::poll::{Interest, Poll};
use bdp_sys::socket::TcpOptions;
use bdp_wire::control::ProbeSample;

use crate::error::Result;
use crate::probe_flow::{self, Arrival, Carrier};

/// Most concurrent handshakes: more than the lab's shortest interval starts within its longest time limit on most
/// paths. If none is free, a turn waits for one, and counts from when it was due.
pub const MOST_UNDER_WAY: usize = 512;

/// Makes each handshake when it is due, at most this many at once, and waits for the last answer or its time limit.
/// After `stop` no more are started, and those in progress get twice the longest round trip so far. `note` receives
/// each handshake by its number when it starts and again when its result is known.
pub fn run(
    to: SocketAddr,
    schedule: Schedule,
    patience: Nanos,
    most: usize,
    stop: &AtomicBool,
    note: &mut dyn FnMut(u64, ProbeSample),
) -> Result<()> {
    let start_ns = schedule.start_ns;
    let flow = ProbeFlow::new(schedule, patience.as_ns(), None, most);
    let (poll, ready, under_way) = (Poll::new()?, Vec::new(), BTreeMap::new());
    probe_flow::run(&mut Handshakes { to, poll, ready, under_way, note }, flow, start_ns, stop).map(drop)
}

struct Handshakes<'n> {
    to: SocketAddr,
    poll: Poll,
    ready: Vec<u64>,
    under_way: BTreeMap<u64, UnderWay>,
    note: &'n mut dyn FnMut(u64, ProbeSample),
}

impl Carrier for Handshakes<'_> {
    fn send(&mut self, number: u64, now_ns: u64) -> Result<(u64, bool)> {
        let prepared = Handshake::prepare(self.to, None, &TcpOptions::default());
        let Some(started) = prepared.ok().and_then(|handshake| handshake.start().ok()) else {
            return Ok((now_ns, true));
        };
        let started_ns = started.started_ns;
        self.poll.add(&started, number, Interest::Write)?;
        self.under_way.insert(number, started);
        Ok((started_ns, false))
    }

    fn receive(&mut self, wait_ns: u64, arrivals: &mut Vec<Arrival>) -> Result<u64> {
        self.poll.wait(&mut self.ready, Some(wait_ns))?;
        let now = clock::monotonic_ns();
        for &number in &self.ready {
            let Some(handshake) = self.under_way.remove(&number) else { continue };
            arrivals.push(Arrival { number, refused: handshake.outcome().is_err(), ..Arrival::default() });
        }
        Ok(now)
    }

    fn note(&mut self, number: u64, sample: ProbeSample) {
        (self.note)(number, sample);
    }

    fn give_up(&mut self, number: u64) {
        self.under_way.remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use bdp_model::probes::ProbeTimes;

    use super::*;

    /// Makes one at each interval.
    fn carried_out(
        to: SocketAddr,
        start_ns: u64,
        [interval, duration, patience]: [Nanos; 3],
        most: usize,
    ) -> Vec<ProbeSample> {
        let times = Some(ProbeTimes::within(0, interval.as_ns(), 0));
        let schedule = Schedule { start_ns, times, count: None, end_ns: start_ns + duration.as_ns() };
        let mut probes = Vec::new();
        let mut note = |number, sample| probe_flow::enter(&mut probes, number, sample);
        run(to, schedule, patience, most, &AtomicBool::new(false), &mut note).unwrap();
        probes
    }

    /// A listener whose queue of connections is full: the kernel drops every further SYN in silence, as a path that loses it.
    fn deaf() -> (TcpListener, Vec<std::net::TcpStream>) {
        let listener =
            bdp_sys::socket::listen("127.0.0.1:0".parse().unwrap(), &TcpOptions::default(), 0).unwrap();
        let to = listener.local_addr().unwrap();
        let mut held = Vec::new();
        while let Ok(stream) =
            std::net::TcpStream::connect_timeout(&to, std::time::Duration::from_millis(200))
        {
            held.push(stream);
        }
        (listener, held)
    }

    #[test]
    fn lost_syns_hold_up_no_later_turn_and_count_with_their_retransmission() {
        let (listener, held) = deaf();
        let to = listener.local_addr().unwrap();
        let start_ns = clock::monotonic_ns();
        let freed = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(300));
            drop(held);
            // Accepts all further connections.
            listener.set_nonblocking(true).unwrap();
            let until = std::time::Instant::now() + std::time::Duration::from_secs(6);
            let mut taken = Vec::new();
            while std::time::Instant::now() < until && taken.len() < 30 {
                taken.extend(listener.accept().ok());
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        });
        let times = [Nanos::millis(20), Nanos::millis(200), Nanos::secs(5)];
        let probes = carried_out(to, start_ns, times, MOST_UNDER_WAY);
        // All ten turns passed while the first SYN was unanswered, for at least a second.
        assert_eq!(probes.len(), 10);
        let first_answer = probes[0].sent_at_ns + probes[0].rtt_ns.unwrap();
        assert!(probes.iter().all(|probe| probe.sent_at_ns < first_answer), "{probes:?}");
        assert!(probes.iter().all(|probe| probe.rtt_ns.is_some_and(|rtt| rtt >= 700_000_000)), "{probes:?}");
        drop(freed);
    }

    #[test]
    fn a_turn_that_waits_for_a_place_counts_from_when_it_was_due() {
        let (listener, _held) = deaf();
        let to = listener.local_addr().unwrap();
        let start_ns = clock::monotonic_ns();
        let times = [Nanos::millis(10), Nanos::millis(60), Nanos::millis(100)];
        // Two places: the third turn, due after 20 ms, gets one when the first handshake is given up after 100 ms.
        let probes = carried_out(to, start_ns, times, 2);
        assert_eq!(probes.len(), 6);
        let from: Vec<u64> = probes.iter().map(|probe| probe.counts_from_ns() - start_ns).collect();
        assert_eq!(from[2..], [20_000_000, 30_000_000, 40_000_000, 50_000_000], "{from:?}");
        assert!(probes[2..].iter().all(|probe| probe.sent_at_ns - start_ns >= 100_000_000), "{probes:?}");
        assert!(probes.iter().all(|probe| probe.rtt_ns.is_none() && !probe.failed));
    }

    #[test]
    fn a_refusal_is_no_answer_that_may_still_come() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let start_ns = clock::monotonic_ns();
        let times = [Nanos::millis(1), Nanos::millis(5), Nanos::secs(5)];
        let probes = carried_out(closed, start_ns, times, MOST_UNDER_WAY);
        assert_eq!(probes.len(), 5);
        assert!(probes.iter().all(|probe| probe.failed && probe.rtt_ns.is_none()), "{probes:?}");
    }
}
