//! TCP handshakes at a steady rate that measure round trips. Several may be in progress: one whose SYN was lost takes
//! the one or three seconds that Linux waits before it sends another, without delaying later ones.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use bdp_model::probes::ProbeTimes;
use bdp_model::units::Nanos;
use bdp_sys::clock;
use bdp_sys::handshake::{Handshake, UnderWay};
use bdp_sys::poll::{Interest, Poll};
use bdp_sys::socket::TcpOptions;
use bdp_wire::control::ProbeSample;

use crate::error::FlowError;
use crate::pause::stop_check_ns;

/// Most concurrent handshakes: more than the lab's shortest interval starts within its longest time limit on most
/// paths. If none is free, a turn waits for one, and counts from when it was due.
const MOST_UNDER_WAY: usize = 512;

/// A schedule of handshakes.
pub struct Handshakes {
    /// Destination address.
    pub to: SocketAddr,
    /// Start of the schedule, monotonic.
    pub start_ns: u64,
    /// When each is due, after the start.
    pub times: ProbeTimes,
    /// Duration of the schedule.
    pub duration: Nanos,
    /// Time limit of each handshake.
    pub patience: Nanos,
    /// Most handshakes in progress.
    most: usize,
}

impl Handshakes {
    /// Creates a schedule of handshakes to an address.
    pub fn new(to: SocketAddr, start_ns: u64, times: ProbeTimes, duration: Nanos, patience: Nanos) -> Self {
        Self { to, start_ns, times, duration, patience, most: MOST_UNDER_WAY }
    }

    /// Starts each handshake when it is due, and waits for the last answer or its time limit. After `stop` no more
    /// are started, and those in progress get twice the longest round trip so far. `note` receives each handshake by
    /// its number when it starts and again when its result is known.
    pub fn run(&self, stop: &AtomicBool, note: &mut dyn FnMut(usize, ProbeSample)) -> Result<(), FlowError> {
        let patience_ns = self.patience.as_ns();
        let poll = Poll::new()?;
        let mut under_way: BTreeMap<u64, (ProbeSample, UnderWay)> = BTreeMap::new();
        let (mut number, mut longest_ns) = (0, 0);
        let mut stopped_until = None;
        let mut ready = Vec::new();
        loop {
            let now = clock::monotonic_ns();
            while under_way.first_key_value().is_some_and(|(_, (_, h))| now >= h.started_ns + patience_ns) {
                under_way.pop_first();
            }
            if stop.load(Ordering::Relaxed) {
                stopped_until.get_or_insert(now + (2 * longest_ns).min(patience_ns));
            }
            let since_start = self.times.due_ns(number);
            let due = self.start_ns.saturating_add(since_start);
            let is_sending = stopped_until.is_none() && since_start < self.duration.as_ns();
            if !is_sending && (under_way.is_empty() || stopped_until.is_some_and(|until| now >= until)) {
                return Ok(());
            }
            let has_room = under_way.len() < self.most;
            if is_sending && has_room && now >= due {
                let prepared = Handshake::prepare(self.to, None, &TcpOptions::default());
                let started = prepared.ok().and_then(|handshake| handshake.start().ok());
                let called = started.as_ref().map_or(now, |handshake| handshake.started_ns);
                let sample = ProbeSample { failed: started.is_none(), ..ProbeSample::sent(due, called) };
                note(number as usize, sample);
                if let Some(handshake) = started {
                    poll.add(&handshake, number, Interest::Write)?;
                    under_way.insert(number, (sample, handshake));
                }
                number += 1;
                continue;
            }
            let oldest = under_way.first_key_value().map(|(_, (_, h))| h.started_ns + patience_ns);
            let next = (is_sending && has_room).then_some(due);
            let until = [oldest, next, stopped_until].into_iter().flatten().min().unwrap_or(u64::MAX);
            // Bounded, so that a stop is seen.
            poll.wait(&mut ready, Some(until.saturating_sub(now).min(stop_check_ns())))?;
            let arrived = clock::monotonic_ns();
            for token in &ready {
                let Some((sample, handshake)) = under_way.remove(token) else { continue };
                let took = arrived.saturating_sub(sample.sent_at_ns);
                let rtt_ns = handshake.outcome().is_ok().then_some(took);
                longest_ns = longest_ns.max(rtt_ns.unwrap_or(0));
                note(*token as usize, ProbeSample { rtt_ns, failed: rtt_ns.is_none(), ..sample });
            }
        }
    }
}

/// Records what [`Handshakes::run`] reports.
pub fn enter(probes: &mut Vec<ProbeSample>, number: usize, sample: ProbeSample) {
    match probes.get_mut(number) {
        Some(known) => *known = sample,
        None => probes.push(sample),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// One at each interval.
    fn every(interval: Nanos) -> ProbeTimes {
        ProbeTimes::within(0, interval.as_ns(), 0)
    }

    fn carried_out(handshakes: &Handshakes) -> Vec<ProbeSample> {
        let mut probes = Vec::new();
        let mut note = |number, sample| enter(&mut probes, number, sample);
        handshakes.run(&AtomicBool::new(false), &mut note).unwrap();
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
        let (interval, duration) = (Nanos::millis(20), Nanos::millis(200));
        let probes = carried_out(&Handshakes::new(to, start_ns, every(interval), duration, Nanos::secs(5)));
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
        let (interval, duration, patience) = (Nanos::millis(10), Nanos::millis(60), Nanos::millis(100));
        let all = Handshakes::new(to, start_ns, every(interval), duration, patience);
        // Two places: the third turn, due after 20 ms, gets one when the first handshake is given up after 100 ms.
        let probes = carried_out(&Handshakes { most: 2, ..all });
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
        let (interval, duration) = (Nanos::millis(1), Nanos::millis(5));
        let probes =
            carried_out(&Handshakes::new(closed, start_ns, every(interval), duration, Nanos::secs(5)));
        assert_eq!(probes.len(), 5);
        assert!(probes.iter().all(|probe| probe.failed && probe.rtt_ns.is_none()), "{probes:?}");
    }
}
