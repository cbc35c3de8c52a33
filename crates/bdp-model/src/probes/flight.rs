//! The engine of every kind of probe: when each is due, which one an answer belongs to, and when one is given up.
//! Time is an argument.

use std::collections::VecDeque;

use super::ProbeTimes;

/// When probes are due.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// Start of the first turn.
    pub start_ns: u64,
    /// Turns since the start; `None` to send each probe as soon as the previous one is settled.
    pub times: Option<ProbeTimes>,
    /// Number of probes, if limited.
    pub count: Option<u64>,
    /// No probe is sent from this time on.
    pub end_ns: u64,
}

impl Schedule {
    /// Returns when a turn is due, given the number of probes sent and the time `now`; `None` if the schedule has
    /// ended. A skipped turn sends nothing, and another replaces it.
    pub fn due(&self, turn: u64, sent: u64, now_ns: u64) -> Option<u64> {
        let due =
            self.times.as_ref().map_or(now_ns, |times| self.start_ns.saturating_add(times.due_ns(turn)));
        (self.count.is_none_or(|count| sent < count) && due < self.end_ns).then_some(due)
    }
}

/// Whether a probe is still awaited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum State {
    /// Its answer is awaited.
    #[default]
    Open,
    /// It was answered.
    Answered,
    /// It could not be sent, was refused, or was given up: an answer that still arrives does not count.
    Closed,
}

/// A probe that was sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sent<T> {
    /// When it was due.
    pub due_ns: u64,
    /// When it was sent.
    pub sent_ns: u64,
    /// When it is given up.
    pub until_ns: u64,
    /// Whether it is awaited.
    pub state: State,
    /// What its kind keeps of it.
    pub of_kind: T,
}

/// Probes by number, in the order in which they were sent.
#[derive(Debug)]
pub struct Flight<T> {
    /// The latest probes; the last one has the number `next - 1`.
    sent: VecDeque<Sent<T>>,
    next: u64,
    /// The oldest one that may be open.
    oldest: u64,
    open: usize,
    /// Most probes that are remembered.
    most: u64,
}

impl<T> Default for Flight<T> {
    fn default() -> Self {
        Self { sent: VecDeque::new(), next: 0, oldest: 0, open: 0, most: u64::MAX }
    }
}

impl<T: Clone + Default> Flight<T> {
    /// Remembers this many probes, and allocates nothing later.
    pub fn remembering(most: u64) -> Self {
        let mut sent = VecDeque::from(vec![Sent::default(); most as usize]);
        sent.clear();
        Self { sent, most, ..Self::default() }
    }
}

impl<T> Flight<T> {
    /// Returns the number of the next probe.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Returns how many are open.
    pub fn open_count(&self) -> usize {
        self.open
    }

    /// Notes a probe that is sent now, and returns its number. Forgets the oldest if there are too many.
    pub fn send(&mut self, due_ns: u64, sent_ns: u64, until_ns: u64, of_kind: T) -> u64 {
        if self.sent.len() as u64 >= self.most {
            self.sent.pop_front();
        }
        self.sent.push_back(Sent { due_ns, sent_ns, until_ns, state: State::Open, of_kind });
        self.open += 1;
        self.next += 1;
        self.next - 1
    }

    /// Returns a probe, if it is remembered.
    pub fn get(&self, number: u64) -> Option<&Sent<T>> {
        self.sent.get(self.index(number)?)
    }

    /// Returns a probe, if it is remembered.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut Sent<T>> {
        let index = self.index(number)?;
        self.sent.get_mut(index)
    }

    fn index(&self, number: u64) -> Option<usize> {
        Some(number.checked_sub(self.next - self.sent.len() as u64)? as usize)
    }

    /// Ends the wait for a probe; returns it if it was open.
    pub fn settle(&mut self, number: u64, state: State) -> Option<&mut Sent<T>> {
        let index = self.index(number)?;
        let sent = self.sent.get_mut(index).filter(|sent| sent.state == State::Open)?;
        sent.state = state;
        self.open -= 1;
        Some(sent)
    }

    /// Returns the oldest open probe, with the time at which it is given up. If it is this flight's `most` behind the
    /// next, it must be settled before that is sent.
    pub fn oldest(&mut self) -> Option<(u64, u64)> {
        while self.oldest < self.next {
            match self.get(self.oldest) {
                Some(sent) if sent.state == State::Open => return Some((self.oldest, sent.until_ns)),
                _ => self.oldest += 1,
            }
        }
        None
    }

    /// Returns the oldest open probe if its time is over. Probes are given up in the order in which they were sent.
    pub fn expired(&mut self, now_ns: u64) -> Option<u64> {
        self.oldest().filter(|&(_, until_ns)| now_ns >= until_ns).map(|(number, _)| number)
    }

    /// Returns the probes that are remembered, with their numbers.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &Sent<T>)> + Clone {
        let first = self.next - self.sent.len() as u64;
        (first..self.next).map(move |number| (number, &self.sent[(number - first) as usize]))
    }

    /// Returns the open probes, oldest first.
    pub fn open(&self) -> impl DoubleEndedIterator<Item = (u64, &Sent<T>)> + Clone {
        self.iter().filter(|(_, sent)| sent.state == State::Open)
    }
}

/// What a probe flow does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It sends the probe of this number, which was due at this time.
    Send(u64, u64),
    /// It waits for answers until this time.
    Wait(u64),
    /// It is over.
    End,
}

/// A probe flow: probes on a schedule, whatever happened to earlier ones.
#[derive(Debug)]
pub struct ProbeFlow {
    schedule: Schedule,
    patience_ns: u64,
    until_ns: Option<u64>,
    most: usize,
    flight: Flight<()>,
    longest_ns: u64,
    stopped_until_ns: Option<u64>,
}

impl ProbeFlow {
    /// Creates a probe flow. Each answer is awaited for `patience_ns`, or all of them until the same time; after a
    /// stop at most for `patience_ns`. If `most` probes are open, a turn waits, and counts from when it was due.
    pub fn new(schedule: Schedule, patience_ns: u64, until_ns: Option<u64>, most: usize) -> Self {
        let (flight, longest_ns, stopped_until_ns) = (Flight::default(), 0, None);
        Self { schedule, patience_ns, until_ns, most, flight, longest_ns, stopped_until_ns }
    }

    /// Gives up the next probe whose time is over, and returns its number.
    pub fn give_up(&mut self, now_ns: u64) -> Option<u64> {
        let number = self.flight.expired(now_ns)?;
        self.flight.settle(number, State::Closed).map(|_| number)
    }

    /// Returns what to do now. Once stopped it sends nothing more, and open probes get twice the longest round trip
    /// so far: the queue may have grown since.
    pub fn step(&mut self, now_ns: u64, is_stopped: bool) -> Step {
        if is_stopped {
            let rest_ns = (2 * self.longest_ns).min(self.patience_ns);
            self.stopped_until_ns.get_or_insert(now_ns + rest_ns);
        }
        let (next, open, stopped) = (self.flight.next, self.flight.open, self.stopped_until_ns);
        let due = self.schedule.due(next, next, now_ns).filter(|_| stopped.is_none());
        if due.is_none() && (open == 0 || stopped.is_some_and(|until| now_ns >= until)) {
            return Step::End;
        }
        match due.filter(|_| open < self.most) {
            Some(due) if now_ns >= due => Step::Send(next, due),
            due => {
                let wakes = [self.flight.oldest().map(|(_, until)| until), due, stopped];
                Step::Wait(wakes.into_iter().flatten().min().unwrap_or(u64::MAX))
            }
        }
    }

    /// Notes a sent probe, or one that could not be sent.
    pub fn send(&mut self, due_ns: u64, sent_ns: u64, failed: bool) {
        let until_ns = self.until_ns.unwrap_or(sent_ns.saturating_add(self.patience_ns));
        let number = self.flight.send(due_ns, sent_ns, until_ns, ());
        if failed {
            self.flight.settle(number, State::Closed);
        }
    }

    /// Notes the first answer to an open probe, and returns the probe; `sent_ns` is the time that the answer names.
    pub fn answer(
        &mut self,
        number: u64,
        sent_ns: Option<u64>,
        now_ns: u64,
        refused: bool,
    ) -> Option<Sent<()>> {
        self.flight.get(number).filter(|sent| sent_ns.is_none_or(|named| named == sent.sent_ns))?;
        let state = if refused { State::Closed } else { State::Answered };
        let sent = *self.flight.settle(number, state)?;
        if !refused {
            self.longest_ns = self.longest_ns.max(now_ns.saturating_sub(sent.sent_ns));
        }
        Some(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// One each 10 ms, from 0 to 40 ms.
    fn schedule() -> Schedule {
        let times = Some(ProbeTimes::within(0, 10 * MS, 0));
        Schedule { start_ns: 0, times, count: None, end_ns: 40 * MS }
    }

    /// Sends each probe when it is due and answers it after `rtt_ns(number)`; returns (number, rtt) of each answer,
    /// the numbers that were given up, and the end.
    fn simulate(
        mut flow: ProbeFlow,
        rtt_ns: impl Fn(u64) -> Option<u64>,
        stop_ns: u64,
    ) -> (Vec<(u64, u64)>, Vec<u64>, u64) {
        let (mut now, mut coming, mut answers, mut given_up) = (0, Vec::new(), Vec::new(), Vec::new());
        loop {
            given_up.extend(std::iter::from_fn(|| flow.give_up(now)));
            match flow.step(now, now >= stop_ns) {
                Step::End => return (answers, given_up, now),
                Step::Send(number, due) => {
                    flow.send(due, now, false);
                    coming.extend(rtt_ns(number).map(|rtt| (now + rtt, number)));
                    coming.sort_unstable();
                }
                Step::Wait(until) => {
                    let until = if now < stop_ns { until.min(stop_ns) } else { until };
                    match coming.first().copied().filter(|&(at, _)| at <= until) {
                        Some((at, number)) => {
                            coming.remove(0);
                            now = at.max(now);
                            let sent = flow.answer(number, None, now, false);
                            answers.extend(sent.map(|sent| (number, now - sent.sent_ns)));
                        }
                        None => now = until,
                    }
                }
            }
        }
    }

    #[test]
    fn flow_sends_on_schedule_and_ends_with_the_last_answer() {
        let flow = ProbeFlow::new(schedule(), 100 * MS, None, usize::MAX);
        let (answers, given_up, end) = simulate(flow, |n| Some((40 - 10 * n) * MS + 1), u64::MAX);
        // Each overtakes the one before.
        let all: Vec<u64> = answers.iter().map(|&(number, _)| number).collect();
        assert_eq!((all, given_up.len(), end), (vec![0, 1, 2, 3], 0, 40 * MS + 1));
    }

    #[test]
    fn probe_without_an_answer_is_given_up_at_its_deadline() {
        let lossy = |n: u64| (n != 1).then_some(MS);
        let each = ProbeFlow::new(schedule(), 100 * MS, None, usize::MAX);
        let (answers, given_up, end) = simulate(each, lossy, u64::MAX);
        assert_eq!((answers.len(), given_up, end), (3, vec![1], 110 * MS));
        let all = ProbeFlow::new(schedule(), 0, Some(200 * MS), usize::MAX);
        assert_eq!(simulate(all, lossy, u64::MAX).2, 200 * MS);
    }

    #[test]
    fn turn_waits_for_a_place() {
        let flow = ProbeFlow::new(schedule(), 25 * MS, None, 2);
        let (_, given_up, end) = simulate(flow, |_| None, u64::MAX);
        // Sent at 0, 10, 25 and 35 ms.
        assert_eq!((given_up, end), (vec![0, 1, 2, 3], 60 * MS));
    }

    #[test]
    fn stop_leaves_twice_the_longest_round_trip_at_most() {
        let slow = |n: u64| (n == 0).then_some(8 * MS);
        let flow = |patience_ns| ProbeFlow::new(schedule(), patience_ns, Some(900 * MS), usize::MAX);
        assert_eq!(simulate(flow(100 * MS), slow, 15 * MS).2, 31 * MS);
        assert_eq!(simulate(flow(5 * MS), slow, 15 * MS).2, 20 * MS);
        assert_eq!(simulate(flow(0), slow, 15 * MS).2, 15 * MS);
    }

    #[test]
    fn only_the_first_answer_to_an_open_probe_counts() {
        let mut flow = ProbeFlow::new(schedule(), 100, None, usize::MAX);
        for (due_ns, sent_ns, failed) in [(0, 100, false), (10, 200, false), (20, 250, true)] {
            flow.send(due_ns, sent_ns, failed);
        }
        assert_eq!(flow.step(300, false), Step::Wait(200));
        assert!(flow.answer(0, Some(99), 150, false).is_none());
        assert_eq!(flow.answer(0, Some(100), 150, false).map(|sent| sent.due_ns), Some(0));
        assert!(flow.answer(0, None, 160, false).is_none());
        assert!(flow.answer(2, None, 160, false).is_none() && flow.answer(3, None, 160, false).is_none());
        assert_eq!((flow.give_up(299), flow.give_up(300), flow.give_up(300)), (None, Some(1), None));
        assert!(flow.answer(1, None, 310, false).is_none());
    }

    #[test]
    fn flight_remembers_the_latest_probes_only() {
        let mut flight = Flight::<u8>::remembering(4);
        for number in 0..4 {
            assert_eq!((flight.next(), flight.send(number, number, 100, 0)), (number, number));
        }
        assert!(flight.settle(1, State::Answered).is_some() && flight.settle(1, State::Closed).is_none());
        assert_eq!(flight.oldest(), Some((0, 100)));
        flight.settle(0, State::Closed);
        assert_eq!((flight.oldest(), flight.send(4, 4, 104, 0)), (Some((2, 100)), 4));
        assert!(flight.get(0).is_none() && flight.get(5).is_none());
        assert_eq!(flight.get(1).map(|sent| sent.state), Some(State::Answered));
        let open = |flight: &Flight<u8>| flight.open().map(|(number, _)| number).collect::<Vec<_>>();
        assert_eq!((open(&flight), flight.open_count()), (vec![2, 3, 4], 3));
        assert_eq!(flight.open().next_back().map(|(number, _)| number), Some(4));
        assert_eq!((flight.expired(99), flight.expired(100)), (None, Some(2)));
        for number in [2, 3] {
            flight.settle(number, State::Closed);
        }
        assert_eq!((flight.expired(103), flight.expired(104)), (None, Some(4)));
    }

    #[test]
    fn schedule_ends_by_count_or_time_and_a_closed_loop_is_always_due() {
        let counted = Schedule { count: Some(2), ..schedule() };
        assert_eq!([0, 1, 2].map(|n| counted.due(n, n, 5)), [Some(0), Some(10 * MS), None]);
        // Turn 2 was skipped, and turn 3 replaces it.
        assert_eq!((counted.due(3, 1, 5), counted.due(4, 1, 5)), (Some(30 * MS), None));
        let closed = Schedule { times: None, ..schedule() };
        assert_eq!((closed.due(9, 9, 7), closed.due(9, 9, 40 * MS)), (Some(7), None));
    }
}
