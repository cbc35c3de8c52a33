//! Probes that may be in flight concurrently: each sent when it is due, whatever happened to earlier ones, and
//! identified by its number when it returns.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bdp_model::probes::flight::{Flight, Schedule, Sent, State};
use bdp_model::probes::ping::{Fate, PingRequest};
use bdp_sys::stamp::{Stamp, StampedSocket};
use bdp_sys::{clock, process};
use bdp_wire::echo::FarStamps;

use super::connect::fate_of;
use super::ledger::{Ledger, Parts};
use super::schedule::{SPIN_AFTER_NS, schedule, sleep_before};
use bdp_flow::spin::Spin;

/// Most probes in flight; beyond, the oldest is given up.
const MOST_UNDER_WAY: u64 = 1 << 18;
/// Turns that are later than this and ten intervals are left out: sent all at once they would be a burst.
const LATEST_NS: u64 = 10_000_000;
/// Lateness limit for short intervals.
const LATEST_SHORT_NS: u64 = 100_000;
/// Intervals up to this are comparable to the cost of a probe for the machines: sending all probes that are late by
/// more than one interval would measure the queue that this makes.
const SHORT_NS: u64 = 100_000;
/// Approximate cost of a probe for the machines: this many are in flight on a longer path.
const COST_NS: u64 = 10_000;
/// Least time that a late sender waits for probes in flight, which may be lost; on a long path four round trips.
const HELD_NS: u64 = 200_000;
/// Longest wait of this kind, which doubles while nothing comes back: a remote end that does not run for a moment
/// finds few probes in its socket, and has room for them.
const HELD_AT_MOST_NS: u64 = 10_000_000;
/// Longest sleep of a sender that is held back.
const HELD_SLEEP_NS: u64 = 50_000;
/// Packets that are read before a probe that is due is sent.
const MOST_READS: u32 = 64;
/// Pause of a closed loop after an error, which returns at once and would otherwise cause a flood.
const PAUSE: Duration = Duration::from_millis(10);

/// The transport of probes.
pub(super) trait Carrier {
    /// Sends a probe.
    fn send(&mut self, number: u64) -> io::Result<()>;
    /// Receives what has arrived; never waits.
    fn receive(&mut self) -> io::Result<Took>;
    /// The socket of probes that the kernel stamps.
    fn stamped(&self) -> Option<&StampedSocket> {
        None
    }
    /// Takes the stamp of a probe that has left.
    fn sent_stamp(&mut self) -> Option<(u32, Stamp)> {
        self.stamped()?.sent_stamp()
    }
    /// Returns how many packets this machine dropped for lack of room, if known.
    fn dropped(&self) -> Option<u64> {
        self.stamped()?.drops().map(u64::from)
    }
    /// Waits until an answer arrives or the time has passed.
    fn wait(&self, wait_ns: u64) {
        if let Some(socket) = self.stamped() {
            socket.wait(wait_ns);
        }
    }
}

/// The result of a receive.
#[derive(Debug, Clone, Copy)]
pub(super) enum Took {
    /// An answer.
    Answer(Arrival),
    /// Another packet, or part of an answer; there may be more.
    Other,
    /// Nothing.
    Nothing,
}

/// An answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) number: u64,
    pub(super) stamp: Stamp,
    pub(super) far: Option<FarStamps>,
}

/// Sends probes until the schedule ends, and waits for the last answers. On `stop` it ends at once; probes in flight
/// then count as never sent.
pub(super) fn run(
    carrier: &mut dyn Carrier,
    request: &PingRequest,
    ledger: &mut Ledger,
    stop: &AtomicBool,
) -> io::Result<()> {
    process::sharpen_timers();
    let interval = request.interval.as_ns().max(1);
    let most = (request.patience.as_ns() / interval + 1024).min(MOST_UNDER_WAY).next_power_of_two();
    let mut exchange = Exchange {
        ledger,
        warm_up: request.warm_up,
        patience_ns: request.patience.as_ns(),
        interval_ns: request.interval.as_ns(),
        most,
        flight: Flight::remembering(most),
        answered: 0,
        rtt_min_ns: None,
        last_sent_ns: 0,
        held_ns: HELD_NS,
        is_away: false,
    };
    exchange.run(carrier, &schedule(request, clock::monotonic_ns()), stop)?;
    if let Some(packets) = carrier.dropped() {
        ledger.drop_here(packets);
    }
    Ok(())
}

struct Exchange<'a> {
    ledger: &'a mut Ledger,
    warm_up: u64,
    patience_ns: u64,
    /// Interval; 0 for a closed loop.
    interval_ns: u64,
    /// Probes, at most so many, with this end's stamps of when they left.
    most: u64,
    flight: Flight<Stamp>,
    /// One more than the highest number that was answered.
    answered: u64,
    rtt_min_ns: Option<u64>,
    last_sent_ns: u64,
    /// How long the next late probe waits for those in flight.
    held_ns: u64,
    /// Whether something was sent since the socket was last empty: what arrived meanwhile waited there.
    is_away: bool,
}

impl Exchange<'_> {
    fn run(&mut self, carrier: &mut dyn Carrier, schedule: &Schedule, stop: &AtomicBool) -> io::Result<()> {
        let closed = self.interval_ns == 0;
        let mut spin = Spin::new(SPIN_AFTER_NS);
        let (mut turn, mut reads, mut was_held) = (0, 0, false);
        while !stop.load(Ordering::Relaxed) {
            let now = clock::monotonic_ns();
            self.expire(now);
            let next_due = schedule.due(turn, self.flight.next(), now);
            let is_waiting = self.flight.open_count() > 0;
            if next_due.is_none() && !is_waiting {
                return Ok(());
            }
            let may_send = !(closed && is_waiting);
            let due = next_due.filter(|&due| may_send && now >= due);
            // Answers first: while only probes are sent they fill the socket.
            if due.is_none() || is_waiting && reads < MOST_READS {
                reads += 1;
                if self.receive(carrier, &mut spin, closed)? {
                    continue;
                }
            }
            reads = 0;
            let is_held = due.is_some_and(|due| self.is_held(now - due, now));
            if let Some(due) = due.filter(|_| !is_held) {
                if !closed && (was_held || now - due > latest(self.interval_ns).0) {
                    turn = self.leave_out(schedule, turn, now);
                    if was_held && self.is_enough_under_way() {
                        self.held_ns = (2 * self.held_ns).min(HELD_AT_MOST_NS);
                    }
                    was_held = false;
                    continue;
                }
                turn += 1;
                spin.begin(self.send(carrier, due)?);
                continue;
            }
            was_held |= is_held;
            if is_waiting && spin.goes_on(now) {
                std::hint::spin_loop();
                continue;
            }
            let wake = match next_due.filter(|_| may_send) {
                Some(_) if is_held => HELD_SLEEP_NS,
                Some(due) => sleep_before(due, now),
                None => sleep_before(self.flight.oldest().map_or(now, |(_, until)| until), now),
            };
            if wake > 0 {
                // Pending timestamps would end the wait at once.
                self.take_stamps(carrier);
                carrier.wait(wake);
            }
        }
        self.take_back();
        Ok(())
    }

    /// Receives one packet that has arrived; returns false if there was none.
    fn receive(&mut self, carrier: &mut dyn Carrier, spin: &mut Spin, closed: bool) -> io::Result<bool> {
        match carrier.receive() {
            Ok(Took::Answer(arrival)) => {
                let at_ns = self.came_at(&arrival);
                spin.end();
                self.take_stamps(carrier);
                self.settle(&arrival, at_ns);
            }
            Ok(Took::Other) => {}
            Ok(Took::Nothing) => {
                self.is_away = false;
                return Ok(false);
            }
            Err(error) => {
                self.fail_oldest(&error)?;
                if closed {
                    std::thread::sleep(PAUSE);
                }
            }
        }
        Ok(true)
    }

    /// Skips the turns that passed too long ago, and returns the one that follows them.
    fn leave_out(&mut self, schedule: &Schedule, mut turn: u64, now: u64) -> u64 {
        let (latest_ns, is_short) = latest(self.interval_ns);
        // A request at a turn that this machine missed would have waited until now.
        let (keep_ns, freed_ns) = if is_short { (self.interval_ns, Some(now)) } else { (latest_ns, None) };
        let due = |turn, next| schedule.due(turn, next, now).filter(|&due| now - due.min(now) > keep_ns);
        let sent = self.flight.next();
        while let Some(passed) = due(turn, sent) {
            if sent > self.warm_up {
                self.ledger.leave_out(passed, freed_ns);
            }
            turn += 1;
        }
        turn
    }

    /// Probes in flight at the end count as never sent.
    fn take_back(&mut self) {
        for _ in self.flight.open().filter(|&(number, _)| number >= self.warm_up) {
            self.ledger.take_back();
        }
    }

    /// Whether a probe that is this late waits for answers in flight: these machines are slower than the schedule.
    fn is_held(&self, late_ns: u64, now: u64) -> bool {
        (1..=SHORT_NS).contains(&self.interval_ns)
            && late_ns > self.interval_ns
            && self.is_enough_under_way()
            && now < self.last_sent_ns + self.held_ns.max(4 * self.rtt_min_ns.unwrap_or(0))
    }

    /// Whether as many probes are in flight as the path and the machines take without a queue.
    fn is_enough_under_way(&self) -> bool {
        self.flight.next() - self.answered > self.rtt_min_ns.unwrap_or(0) / COST_NS
    }

    /// Returns when a received answer arrived: by its timestamp if it waited while a probe was sent.
    fn came_at(&self, arrival: &Arrival) -> u64 {
        let lain = arrival
            .stamp
            .kernel_ns
            .filter(|_| self.is_away)
            .map(|came| clock::unix_ns().saturating_sub(came));
        // Read after the other clock, so that a pause between the two makes no round trip too short.
        let now = clock::monotonic_ns();
        let came = now.saturating_sub(lain.unwrap_or(0));
        // If the clock was set meanwhile, its time is unusable.
        if self.flight.get(arrival.number).is_none_or(|sent| came > sent.sent_ns) { came } else { now }
    }

    /// Sends the next probe, and returns when.
    fn send(&mut self, carrier: &mut dyn Carrier, due_ns: u64) -> io::Result<u64> {
        if let Some((oldest, _)) = self.flight.oldest()
            && self.flight.next() - oldest >= self.most
        {
            self.note(oldest, Fate::Lost, clock::monotonic_ns());
        }
        if self.flight.next() == self.warm_up {
            self.ledger.begin(due_ns);
        }
        let sent_ns = clock::monotonic_ns();
        (self.last_sent_ns, self.is_away) = (sent_ns, true);
        let number = self.flight.send(due_ns, sent_ns, sent_ns + self.patience_ns, Stamp::default());
        if number >= self.warm_up {
            self.ledger.send(due_ns, sent_ns);
        }
        match carrier.send(number) {
            Ok(()) => self.take_stamps(carrier),
            Err(error) => {
                refuse_end(&error)?;
                self.note(number, fate_of(&error), clock::monotonic_ns());
                std::thread::sleep(PAUSE.min(Duration::from_nanos(self.patience_ns)));
            }
        }
        Ok(sent_ns)
    }

    fn take_stamps(&mut self, carrier: &mut dyn Carrier) {
        while let Some((number, stamp)) = carrier.sent_stamp() {
            // The kernel counts in 32 bits, and fewer probes are remembered.
            let Some(last) = self.flight.next().checked_sub(1) else { continue };
            let number = last.checked_sub((last as u32).wrapping_sub(number).into());
            if let Some(Sent { of_kind: left, .. }) = number.and_then(|number| self.flight.get_mut(number)) {
                left.kernel_ns = stamp.kernel_ns.or(left.kernel_ns);
                left.device_ns = stamp.device_ns.or(left.device_ns);
            }
        }
    }

    fn settle(&mut self, arrival: &Arrival, at_ns: u64) {
        // Older than all that are remembered, or never sent.
        let Some(&Sent { sent_ns, state, of_kind: left, .. }) = self.flight.get(arrival.number) else {
            return;
        };
        let rtt_ns = at_ns.saturating_sub(sent_ns);
        self.answered = self.answered.max(arrival.number + 1);
        self.held_ns = HELD_NS;
        self.rtt_min_ns = Some(self.rtt_min_ns.map_or(rtt_ns, |least| least.min(rtt_ns)));
        self.note(arrival.number, Fate::Answered(rtt_ns), at_ns);
        if arrival.number < self.warm_up || state == State::Closed {
            // An answer after its time limit was lost, and is not a duplicate.
            return;
        }
        if state == State::Answered {
            self.ledger.repeat();
            return;
        }
        let device = left.device_ns.zip(arrival.stamp.device_ns);
        let kernel = left.kernel_ns.zip(arrival.stamp.kernel_ns);
        let parts = parts(rtt_ns, device.or(kernel), arrival.far);
        self.ledger.share(Parts { by_device: device.is_some(), ..parts });
    }

    /// Gives up probes older than the time limit.
    fn expire(&mut self, now: u64) {
        while let Some(number) = self.flight.expired(now) {
            self.note(number, Fate::Lost, now);
        }
    }

    /// Fails the probe that a socket error belongs to: an earlier one, presumably the oldest.
    fn fail_oldest(&mut self, error: &io::Error) -> io::Result<()> {
        refuse_end(error)?;
        self.expire(clock::monotonic_ns());
        if let Some((oldest, _)) = self.flight.oldest() {
            self.note(oldest, fate_of(error), clock::monotonic_ns());
        }
        Ok(())
    }

    /// Notes the fate of a probe, if it was open.
    fn note(&mut self, number: u64, fate: Fate, now: u64) {
        let state = if matches!(fate, Fate::Answered(_)) { State::Answered } else { State::Closed };
        let Some(&mut Sent { due_ns, sent_ns, .. }) = self.flight.settle(number, state) else { return };
        if let Some(counted) = number.checked_sub(self.warm_up) {
            self.ledger.settle(counted, due_ns, sent_ns, fate, now);
        }
    }
}

/// How late a probe may be sent, and whether the interval is a short one.
fn latest(interval_ns: u64) -> (u64, bool) {
    let is_short = interval_ns <= SHORT_NS;
    (10 * interval_ns + if is_short { LATEST_SHORT_NS } else { LATEST_NS }, is_short)
}

/// A connection that has ended brings nothing back any more.
fn refuse_end(error: &io::Error) -> io::Result<()> {
    match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
            Err(io::Error::new(error.kind(), error.to_string()))
        }
        _ => Ok(()),
    }
}

/// Returns the parts of a round trip, by this end's timestamps of its departure and arrival and those of the remote
/// end. Timestamps that contradict the round trip belong to another probe, and are ignored.
fn parts(rtt_ns: u64, near: Option<(u64, u64)>, far: Option<FarStamps>) -> Parts {
    let below = near.and_then(|(left, came)| came.checked_sub(left)).filter(|&below| below <= rtt_ns);
    let outer = below.unwrap_or(rtt_ns);
    let far_ns = far.and_then(|far| far.returned_ns.checked_sub(far.arrived_ns)).filter(|&far| far <= outer);
    Parts {
        near_ns: below.map(|below| rtt_ns - below),
        far_ns,
        path_ns: (below.is_some() || far_ns.is_some()).then(|| outer - far_ns.unwrap_or(0)),
        by_device: false,
        far_by_kernel: far_ns.and(far).map(|far| far.by_kernel),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use bdp_model::probes::ping::{Distribution, Tally};

    use super::*;

    #[test]
    fn parts_add_up_and_contradictions_tell_nothing() {
        let far = |arrived_ns, returned_ns| Some(FarStamps { arrived_ns, by_kernel: true, returned_ns });
        let of = |near_ns, far_ns: Option<u64>, path_ns| {
            let far_by_kernel = far_ns.map(|_| true);
            Parts { near_ns, far_ns, path_ns, by_device: false, far_by_kernel }
        };
        assert_eq!(parts(100, Some((1000, 1080)), far(5, 15)), of(Some(20), Some(10), Some(70)));
        assert_eq!(parts(100, None, far(5, 15)), of(None, Some(10), Some(90)));
        assert_eq!(parts(100, Some((1000, 1080)), None), of(Some(20), None, Some(80)));
        assert_eq!(parts(100, None, None), Parts::default());
        // A stamp of another probe, clocks that were set meanwhile.
        assert_eq!(parts(100, Some((1000, 1200)), far(5, 500)), Parts::default());
        assert_eq!(parts(100, Some((1080, 1000)), far(15, 5)), Parts::default());
    }

    fn answer(number: u64) -> Took {
        Took::Answer(Arrival { number, stamp: Stamp::default(), far: None })
    }

    /// Brings each probe back at once, but every third one never and every fourth one twice.
    #[derive(Default)]
    struct Mirror {
        waiting: Vec<u64>,
    }

    impl Carrier for Mirror {
        fn send(&mut self, number: u64) -> io::Result<()> {
            match number % 12 {
                0 | 3 | 6 | 9 => {}
                4 => self.waiting.extend([number, number]),
                _ => self.waiting.push(number),
            }
            Ok(())
        }

        fn receive(&mut self) -> io::Result<Took> {
            Ok(self.waiting.pop().map_or(Took::Nothing, answer))
        }

        fn wait(&self, wait_ns: u64) {
            std::thread::sleep(Duration::from_nanos(wait_ns));
        }
    }

    #[test]
    fn answers_losses_and_copies_are_told_apart() {
        let mut request = super::super::ledger::tests::empty().request;
        request.count = Some(120);
        request.warm_up = 12;
        request.interval = bdp_model::units::Nanos::millis(1);
        request.patience = bdp_model::units::Nanos::secs(2);
        let mut ledger = Ledger::new(std::sync::Arc::default(), true, true, request.count);
        run(&mut Mirror::default(), &request, &mut ledger, &AtomicBool::new(false)).unwrap();
        let mut ping = super::super::ledger::tests::empty();
        ledger.enter(&mut ping);
        let tally = ping.probes;
        // A machine that stalls leaves turns out, and sends in later ones.
        assert_eq!((tally.sent, tally.lost, tally.duplicates), (120, 40, 10), "{tally:?}");
        assert_eq!(tally.received + tally.lost, tally.sent);
        assert_eq!(ping.samples.len() as u64, tally.sent);
    }

    /// A remote end that takes its time for each probe, and a socket that holds only a few answers.
    #[derive(Default)]
    struct Slow {
        /// Probes in flight, with the time of each answer.
        under_way: VecDeque<(u64, u64)>,
        most: usize,
        unread: VecDeque<u64>,
        dropped: u64,
    }

    impl Slow {
        const SERVICE_NS: u64 = 20_000;
        /// Duration of a send, as of a system call.
        const SENDING_NS: u64 = 3_000;
        const ROOM: usize = 16;

        fn go_on(&mut self) {
            let now = clock::monotonic_ns();
            while let Some((number, _)) = self.under_way.pop_front_if(|&mut (_, at)| at <= now) {
                match self.unread.len() {
                    Self::ROOM => self.dropped += 1,
                    _ => self.unread.push_back(number),
                }
            }
        }
    }

    impl Carrier for Slow {
        fn send(&mut self, number: u64) -> io::Result<()> {
            self.go_on();
            let free_at = self.under_way.back().map_or(0, |&(_, at)| at).max(clock::monotonic_ns());
            self.under_way.push_back((number, free_at + Self::SERVICE_NS));
            self.most = self.most.max(self.under_way.len());
            let until = clock::monotonic_ns() + Self::SENDING_NS;
            while clock::monotonic_ns() < until {}
            Ok(())
        }

        fn receive(&mut self) -> io::Result<Took> {
            self.go_on();
            Ok(self.unread.pop_front().map_or(Took::Nothing, answer))
        }

        fn dropped(&self) -> Option<u64> {
            Some(self.dropped)
        }

        fn wait(&self, wait_ns: u64) {
            std::thread::sleep(Duration::from_nanos(wait_ns));
        }
    }

    /// A remote end that does not run.
    struct Halted;

    impl Carrier for Halted {
        fn send(&mut self, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn receive(&mut self) -> io::Result<Took> {
            Ok(Took::Nothing)
        }

        fn wait(&self, wait_ns: u64) {
            std::thread::sleep(Duration::from_nanos(wait_ns));
        }
    }

    #[test]
    fn a_far_end_that_does_not_run_is_asked_less_and_less_often() {
        let mut request = super::super::ledger::tests::empty().request;
        request.duration = Some(bdp_model::units::Nanos::millis(300));
        request.patience = bdp_model::units::Nanos::millis(100);
        request.interval = bdp_model::units::Nanos::micros(1);
        let mut ledger = Ledger::new(std::sync::Arc::default(), true, false, None);
        run(&mut Halted, &request, &mut ledger, &AtomicBool::new(false)).unwrap();
        let mut ping = super::super::ledger::tests::empty();
        ledger.enter(&mut ping);
        // One every 0.2 ms would be 1500: more than a socket holds.
        assert!((2..100).contains(&ping.probes.sent), "{:?}", ping.probes);
    }

    #[test]
    fn a_schedule_that_is_too_fast_makes_no_queue_and_no_loss_of_its_own() {
        let mut request = super::super::ledger::tests::empty().request;
        request.duration = Some(bdp_model::units::Nanos::millis(200));
        request.interval = bdp_model::units::Nanos::micros(1);
        let mut ledger = Ledger::new(std::sync::Arc::default(), true, false, None);
        let mut slow = Slow::default();
        run(&mut slow, &request, &mut ledger, &AtomicBool::new(false)).unwrap();
        let mut ping = super::super::ledger::tests::empty();
        ledger.enter(&mut ping);
        let Tally { sent, received, lost, left_out, dropped_by_receiver, .. } = ping.probes;
        assert_eq!((received, lost, dropped_by_receiver), (sent, 0, Some(0)), "{:?}", ping.probes);
        assert!(sent > 0 && left_out > 10 * sent, "{:?}", ping.probes);
        // A stall outlasts what a probe is held back for, and adds one.
        assert!(slow.most <= Slow::ROOM, "{}", slow.most);
        let p50 = |of: Option<Distribution>| of.unwrap().p50;
        assert!(p50(ping.rtt_ns) < 10_000_000 && p50(ping.rtt_ns) >= Slow::SERVICE_NS, "{:?}", ping.rtt_ns);
        // Turns that were left out are in it, but such as a stall took.
        assert!(ping.from_due_ns.unwrap().count > sent, "{:?}", ping.probes);
    }
}
