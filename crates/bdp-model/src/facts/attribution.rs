//! Which state each moment of a sender belongs to.
//!
//! Between two samples of `TCP_INFO`, the kernel's chronographs (`tcp_chrono_start` in Linux) count the time with nothing to send, with the receive
//! window full, and with the send buffer full. The rest belongs to the congestion window; congestion events, slow start threshold, round trip and
//! processors show what it was doing. If the chronographs are known to count too little, other data is used: an interval at whose ends no further
//! segment fits the receive window belongs to it as a whole; and the program's use of its socket shows whether it had nothing to write or no room to
//! write.

mod processor;

use super::derived::PAUSED_INTERVALS;
use super::{Facts, Source, Stretch, TimeSpent, TimeState};
use crate::finding::threshold::{
    AT_CEILING, AT_PEAK, BUFFER_PAYLOAD, FULL_BESIDE_PROCESSOR, QUEUE_NOISE, QUEUE_SHARE, REACHED, UNREAD,
    UNREAD_MIN_BYTES, WINDOW_FULL, WINDOW_SHRUNK,
};
use crate::measurement::ends::Task;
use crate::path::delayed_ack;
use crate::record::{CongestionState, EpisodeKind, LossEpisode, ReceiverSample, SenderSample};
use crate::units::Nanos;
use processor::Processor;

/// Samples up to this time belong to the start.
const AT_THE_START: Nanos = Nanos::millis(1);

/// The kernel's clocks are wrong by a few ticks at most: by less than this time, and by less than this part of an interval.
const STOPPED: (Nanos, f64) = (Nanos::millis(30), 0.25);

/// Share of an interval that counts as most of it.
const MOSTLY: f64 = 0.5;

impl Facts {
    /// Where the time of the first stream went since its connection was established; `None` if the sender's kernel does not count it.
    pub fn time_spent(&self) -> Option<TimeSpent> {
        if self.udp.is_some() || self.through_tunnel {
            return None;
        }
        if let Some(conversation) = &self.conversation {
            return (!conversation.spent.stretches.is_empty()).then(|| conversation.spent.clone());
        }
        let mut readings: Vec<SenderSample> =
            self.sent.iter().copied().filter(|s| s.busy_ns.is_some()).collect();
        let first = readings.first()?;
        // All clocks are zero when the connection is established. A watched connection was established earlier, and one in a capture may have been.
        let is_whole = !matches!(self.source, Source::Watched | Source::Captured);
        if is_whole && first.at_ns > AT_THE_START.as_ns() {
            readings.insert(0, at_the_start());
        }
        let rules = Rules::of(self);
        let (mut largest_window, mut largest_cwnd) = (0, 0);
        // The window of the handshake shrinks to the requested one.
        let asked_window = self.asked_window_bytes();
        let stretches: Vec<Stretch> = readings
            .windows(2)
            .filter(|pair| pair[1].at_ns > pair[0].at_ns)
            .map(|pair| {
                let window = pair[1].snd_wnd_bytes.unwrap_or(0);
                largest_window = largest_window.max(asked_window.map_or(window, |asked| window.min(asked)));
                largest_cwnd = largest_cwnd.max(pair[0].cwnd.unwrap_or(0));
                rules.stretch(&pair[0], &pair[1], Largest { window: largest_window, cwnd: largest_cwnd })
            })
            .collect();
        (!stretches.is_empty()).then_some(TimeSpent { stretches })
    }

    /// Where the time went in the stretches that begin after omit; `None` if there are none.
    pub fn time_counted(&self) -> Option<TimeSpent> {
        // A conversation has no beginning to omit.
        let omit_ns = if self.conversation.is_some() { 0 } else { self.omit_ns };
        let counted = self.time_spent()?.since(omit_ns);
        (!counted.stretches.is_empty()).then_some(counted)
    }
}

/// The rate from which the path is full: the ceiling's or, if a program pauses, the rate that the sender reaches in between.
fn full_bps(facts: &Facts) -> Option<f64> {
    const PAUSES: f64 = 0.2;
    if let Some(ceiling) = &facts.ceiling {
        return Some(ceiling.goodput_bps * AT_CEILING);
    }
    let pauses = |share: Option<f64>| share.is_some_and(|share| share >= PAUSES);
    let is_paused = pauses(facts.sender_idle()) || pauses(facts.receiver_held_back());
    facts.delivery_peak_bps().filter(|_| is_paused).map(|peak| peak * AT_PEAK)
}

fn at_the_start() -> SenderSample {
    SenderSample {
        acked_bytes: Some(0),
        busy_ns: Some(0),
        rwnd_limited_ns: Some(0),
        sndbuf_limited_ns: Some(0),
        write_blocked_ns: Some(0),
        write_idle_ns: Some(0),
        thread_cpu_ns: Some(0),
        run_wait_ns: Some(0),
        ..SenderSample::default()
    }
}

/// Properties that are constant over a transfer's intervals.
struct Rules<'a> {
    mss: u64,
    send_buffer: Option<u64>,
    /// Idle round trip.
    idle_ns: Option<u64>,
    /// Rate from which the path is full, bit/s.
    full_bps: Option<f64>,
    /// The whole transfer reaches the ceiling's rate: nothing else holds it back.
    is_at_ceiling: bool,
    /// Rate from which pacing is the limit, bit/s.
    paced_bps: Option<f64>,
    /// The requested rate is kept: nothing else holds the transfer back.
    keeps_rate: bool,
    /// The program is not bdp: its host may hold back data.
    is_watched: bool,
    /// A queue stands in the data's own direction, according to the probes.
    queue_stands: bool,
    /// The bottleneck is never idle, according to the probes.
    never_drains: bool,
    /// Only one end uses window scaling, so the sender takes the window for a fraction of its size.
    window_is_misread: bool,
    /// The receive window shrinks repeatedly, which happens only if a program leaves data unread.
    window_shrinks: bool,
    /// The send buffer is smaller than a round trip needs, and the sender runs out of data.
    buffer_runs_dry: bool,
    is_probing: bool,
    /// Whether Nagle's algorithm may hold small writes back.
    is_nagle: bool,
    episodes: &'a [LossEpisode],
    /// End of the last episode without an end.
    endless_until: Option<u64>,
    receiver: ReceiverTimes<'a>,
    sender_processor: Processor,
    receiver_processor: Processor,
}

/// The largest receive window, and congestion window in segments, before an interval.
#[derive(Clone, Copy)]
struct Largest {
    window: u64,
    cwnd: u32,
}

/// An interval with the parts already attributed to a state.
struct Parts {
    states: Vec<(TimeState, u64)>,
}

impl Parts {
    fn add(&mut self, state: TimeState, ns: u64) {
        if ns == 0 {
            return;
        }
        match self.states.iter_mut().find(|(other, _)| *other == state) {
            Some((_, sum)) => *sum += ns,
            None => self.states.push((state, ns)),
        }
    }

    /// Attributes up to this much of the remaining time to a state.
    fn take(&mut self, left: &mut u64, state: TimeState, ns: u64) {
        let taken = ns.min(*left);
        *left -= taken;
        self.add(state, taken);
    }
}

impl<'a> Rules<'a> {
    fn of(facts: &'a Facts) -> Self {
        let least = facts.sent.iter().filter_map(|s| s.min_rtt_ns).min();
        let idle = facts.rtt_idle().map(|rtt| rtt.as_ns()).into_iter().chain(least).min();
        let ends_in = facts.sent.last().filter(|s| s.congestion_state.is_some_and(is_event));
        let window = facts.window_use();
        let needed = facts.rtt_idle().map(|rtt| facts.stream_bps() / 8.0 * rtt.as_secs_f64());
        let queue_stands = facts.standing_queue().is_some();
        let mut all = Self {
            mss: facts.mss_bytes.unwrap_or(0),
            send_buffer: facts.send_buffer_bytes.filter(|&bytes| bytes > 0),
            idle_ns: idle,
            full_bps: full_bps(facts).filter(|&bps| bps > 0.0),
            is_at_ceiling: facts.of_ceiling().is_some_and(|share| share >= AT_CEILING),
            paced_bps: facts.held_bps().map(|bps| bps * REACHED),
            keeps_rate: facts.kept_rate_bps().is_some(),
            is_watched: facts.source == Source::Watched,
            queue_stands,
            never_drains: facts.queue_never_drains(),
            window_is_misread: facts
                .sender
                .window_scaling
                .zip(facts.receiver.window_scaling)
                .is_some_and(|(sender, receiver)| sender != receiver),
            window_shrinks: window.is_some_and(|window| window.receive_shrunk >= WINDOW_SHRUNK),
            buffer_runs_dry: !facts.is_paced()
                && window.is_some_and(|w| w.starved >= WINDOW_FULL && w.receive_full < WINDOW_FULL)
                && needed
                    .zip(facts.send_buffer_bytes)
                    .is_some_and(|(needed, buffer)| (buffer as f64) < needed),
            is_probing: facts.sends_by_model(),
            is_nagle: facts.paced_bps.is_none() && !facts.asked.nodelay,
            episodes: &facts.loss_episodes,
            endless_until: ends_in.map(|s| s.at_ns),
            // The receiver's actions reach the sender a round trip after it sent: the receiver's clock starts with the first byte.
            receiver: ReceiverTimes {
                samples: &facts.received,
                delay_ns: idle.unwrap_or(0),
                stopped_ns: facts.receiver_paused().map(|_| PAUSED_INTERVALS * facts.asked.interval.as_ns()),
            },
            sender_processor: Processor::default(),
            receiver_processor: Processor::default(),
        };
        let counted = facts.sent_after_omit();
        let queued =
            counted.clone().filter(|s| all.is_queued(s)).count() as f64 / counted.count().max(1) as f64;
        let is_full = queue_stands && queued >= FULL_BESIDE_PROCESSOR;
        all.sender_processor = Processor::of(facts, Task::Sending, is_full);
        all.receiver_processor = Processor::of(facts, Task::Receiving, is_full);
        all
    }

    fn stretch(&self, a: &SenderSample, b: &SenderSample, largest: Largest) -> Stretch {
        let took = b.at_ns - a.at_ns;
        let grown =
            |count: fn(&SenderSample) -> Option<u64>| Some(count(b)?.saturating_sub(count(a)?).min(took));
        let now = Interval {
            a,
            b,
            took,
            largest,
            is_held: self.is_nagle && [a, b].iter().any(|s| s.holds_small_write(self.mss) == Some(true)),
            program_idle: grown(|s| s.write_idle_ns),
            program_blocked: grown(|s| s.write_blocked_ns),
            bps: grown_bytes(a, b).map(|bytes| bytes as f64 * 8e9 / took as f64),
        };
        let mut parts = Parts { states: Vec::new() };
        let busy = grown(|s| s.busy_ns).unwrap_or(0);
        let not_idle = self.idle(&now, took - busy, &mut parts);
        let mut window = grown(|s| s.rwnd_limited_ns).unwrap_or(0).min(busy);
        let buffer = grown(|s| s.sndbuf_limited_ns).unwrap_or(0).min(busy - window);
        if self.window_is_full(a) && self.window_is_full(b) {
            window = busy - buffer;
        }
        if window > 0 {
            parts.add(self.of_window(&now), window);
        }
        parts.add(self.of_buffer(), buffer);
        self.rest(&now, busy - window - buffer + not_idle, &mut parts);
        Stretch { from_ns: a.at_ns, to_ns: b.at_ns, states: parts.states }
    }

    /// Attributes time in which the kernel had nothing in flight and nothing to send. Returns the part that the program contradicts: the
    /// kernel's clocks tick in jiffies.
    fn idle(&self, now: &Interval<'_>, idle: u64, parts: &mut Parts) -> u64 {
        let mut left = idle;
        let nothing = self.nothing_to_send(now);
        let is_busy = !self.keeps_rate && self.sender_is_busy(now);
        let Some(program_idle) = now.program_idle else {
            parts.add(if is_busy { TimeState::SenderProcessor } else { nothing }, left);
            return 0;
        };
        parts.take(&mut left, nothing, program_idle);
        if is_busy {
            parts.add(TimeState::SenderProcessor, left);
            return 0;
        }
        // A program stopped while waiting for room still waits when it resumes, though there has long been room.
        let is_rounding = left < STOPPED.0.as_ns() || (left as f64) < STOPPED.1 * now.took as f64;
        let denied = if is_rounding { left.min(now.program_blocked.unwrap_or(0)) } else { 0 };
        parts.add(nothing, left - denied);
        denied
    }

    fn nothing_to_send(&self, now: &Interval<'_>) -> TimeState {
        match () {
            () if self.paced_bps.is_some() => TimeState::Pacing,
            () if now.is_held => TimeState::Nagle,
            () => TimeState::SenderApplication,
        }
    }

    /// The state of time in which the send buffer was full.
    fn of_buffer(&self) -> TimeState {
        match () {
            () if self.is_at_ceiling => TimeState::FullPath,
            () if self.keeps_rate => TimeState::Pacing,
            // A buffer that runs dry sends in bursts, which queue for a moment each time.
            () if self.stands_in_queue() && !self.buffer_runs_dry => TimeState::FullPath,
            () => TimeState::SendBuffer,
        }
    }

    /// The state of time in which the receive window was full.
    fn of_window(&self, now: &Interval<'_>) -> TimeState {
        let part = |time: fn(&ReceiverSample) -> Option<u64>| self.receiver.part(now, time);
        let window = now.b.snd_wnd_bytes;
        let unread = self.receiver.unread_bytes(now.b.at_ns);
        let is_unread = unread.zip(window).is_some_and(|(unread, window)| {
            unread >= UNREAD_MIN_BYTES && unread as f64 >= UNREAD * window as f64
        });
        match () {
            () if self.is_at_ceiling => TimeState::FullPath,
            () if self.keeps_rate => TimeState::Pacing,
            () if self.sender_is_full(now) => TimeState::SenderProcessor,
            () if self.reader_pauses(now) => TimeState::ReceiverApplication,
            () if self.receiver_is_busy(now) => TimeState::ReceiverProcessor,
            () if is_unread || self.window_shrinks => TimeState::ReceiverApplication,
            () if self.stands_in_queue() => TimeState::FullPath,
            () if part(|s| s.read_waited_ns).is_some_and(|part| part >= MOSTLY) => TimeState::ReceiveWindow,
            // The window never shrinks while the receiver reads what arrives.
            () if window.is_some_and(|bytes| bytes < now.largest.window / 2) => {
                TimeState::ReceiverApplication
            }
            () if self.queue_stands && self.is_queued(now.b) => TimeState::FullPath,
            () => TimeState::ReceiveWindow,
        }
    }

    /// Whether the data in flight stands in a queue: a larger window or buffer would only lengthen it.
    fn stands_in_queue(&self) -> bool {
        self.never_drains && !self.window_is_misread
    }

    /// Attributes time that neither window nor buffer explains.
    fn rest(&self, now: &Interval<'_>, rest: u64, parts: &mut Parts) {
        let mut left = rest;
        for (state, ns) in self.events(now) {
            parts.take(&mut left, state, ns);
        }
        if left == 0 {
            return;
        }
        let is_dry = self.is_dry(now.b);
        if self.buffer_runs_dry && !self.is_at_ceiling && has_room(now.b) && !is_dry {
            parts.take(&mut left, TimeState::SendBuffer, u64::MAX);
        } else if is_dry && (self.paced_bps.is_some() || now.is_held) {
            parts.take(&mut left, self.nothing_to_send(now), u64::MAX);
        } else if is_dry {
            match now.program_idle.zip(now.program_blocked) {
                Some((idle, blocked)) => {
                    let so_far = parts.states.iter().find(|s| s.0 == TimeState::SenderApplication);
                    let counted = so_far.map_or(0, |s| s.1);
                    parts.take(&mut left, TimeState::SenderApplication, idle.saturating_sub(counted));
                    parts.take(&mut left, self.of_buffer(), blocked);
                }
                None if self.buffer_is_full(now.b) => {
                    parts.take(&mut left, self.of_buffer(), u64::MAX);
                }
                None if self.sender_is_busy(now) => {}
                None => parts.take(&mut left, TimeState::SenderApplication, u64::MAX),
            }
        }
        if left > 0 {
            parts.add(self.of_congestion_window(now, is_dry), left);
        }
    }

    /// Time of an interval in congestion events: as noticed about twice per round trip, or else from the state at its end.
    fn events(&self, now: &Interval<'_>) -> Vec<(TimeState, u64)> {
        let mut found = Vec::new();
        for (i, episode) in self.episodes.iter().enumerate() {
            let is_last = i + 1 == self.episodes.len();
            let end = match (episode.took_ns, self.endless_until) {
                (0, Some(until)) if is_last => until,
                (took, _) => episode.at_ns.saturating_add(took),
            };
            let ns = end.min(now.b.at_ns).saturating_sub(episode.at_ns.max(now.a.at_ns));
            if ns > 0 {
                found.push((of_event(episode.kind), ns));
            }
        }
        if found.is_empty() {
            let kind = match now.b.congestion_state {
                Some(CongestionState::Loss) => Some(EpisodeKind::Timeout),
                Some(CongestionState::Recovery) => Some(EpisodeKind::Recovery),
                Some(CongestionState::Reduced) => Some(EpisodeKind::Reduced),
                _ => None,
            };
            // An event that began just before the sample does not belong to the interval.
            let has_begun = |kind| !self.episodes.iter().any(|e| e.kind == kind && e.at_ns >= now.b.at_ns);
            found.extend(kind.filter(|&kind| has_begun(kind)).map(|kind| (of_event(kind), u64::MAX)));
        }
        found
    }

    /// What the congestion window was doing in time when nothing else held the sender back.
    fn of_congestion_window(&self, now: &Interval<'_>, is_dry: bool) -> TimeState {
        let (a, b) = (now.a, now.b);
        let reaches = |bound: Option<f64>| bound.zip(now.bps).is_some_and(|(bound, bps)| bps >= bound);
        let has_room = has_room(b);
        match () {
            () if self.is_at_ceiling && reaches(self.full_bps) => TimeState::FullPath,
            () if self.keeps_rate => TimeState::Pacing,
            () if self.sender_is_full(now) => TimeState::SenderProcessor,
            () if self.receiver_is_full(now) => TimeState::ReceiverProcessor,
            // The kernel of a program that does not read acknowledges late and has no window to advertise.
            () if self.reader_pauses(now) && !reaches(self.full_bps) => TimeState::ReceiverApplication,
            () if self.is_queued(b) && !is_dry => TimeState::FullPath,
            () if reaches(self.paced_bps) => TimeState::Pacing,
            () if reaches(self.full_bps) => TimeState::FullPath,
            () if has_room && self.sender_is_busy(now) => TimeState::SenderProcessor,
            () if has_room && self.receiver_is_busy(now) => TimeState::ReceiverProcessor,
            () if has_room && self.paced_bps.is_some() => TimeState::Pacing,
            // A model that has not found the path's rate yet lets its window grow.
            () if self.is_probing && b.cwnd > a.cwnd && b.cwnd > Some(now.largest.cwnd) => {
                TimeState::SlowStart
            }
            () if self.is_probing => TimeState::Probing,
            // Neither window holds the waiting data back: the host does, in its device's queue, or by a rate that a program requested.
            () if self.is_watched && self.is_held_by_host(a) && self.is_held_by_host(b) => TimeState::Pacing,
            // A window with room holds nothing back; without its size this is unknown.
            () if b.cwnd.is_none() || b.congestion_state.is_none() || has_room && self::has_room(a) => {
                TimeState::Unknown
            }
            () if b.ssthresh.or(a.ssthresh).is_none_or(|t| b.cwnd.is_some_and(|cwnd| cwnd < t)) => {
                TimeState::SlowStart
            }
            () => TimeState::CongestionAvoidance,
        }
    }

    /// Whether the round trip indicates a queue. With few segments, an acknowledgement may have been delayed.
    fn is_queued(&self, s: &SenderSample) -> bool {
        self.idle_ns.zip(s.srtt_ns).is_some_and(|(idle, srtt)| {
            let segments = s.unacked.or(s.cwnd).map_or(u64::MAX, u64::from);
            let turn = delayed_ack::longest_turn(segments, Nanos(idle)).as_ns();
            srtt > turn + QUEUE_NOISE.as_ns().max((idle as f64 * QUEUE_SHARE) as u64)
        })
    }

    /// Whether more than a segment waits to be sent though both windows have room.
    fn is_held_by_host(&self, s: &SenderSample) -> bool {
        let waits = s.not_sent_bytes.is_some_and(|bytes| bytes >= self.mss.max(1));
        let fits = s
            .unacked
            .zip(s.snd_wnd_bytes)
            .is_none_or(|(unacked, window)| (u64::from(unacked) + 1) * self.mss * 5 <= window * 4);
        waits && fits && has_room(s)
    }

    /// Whether no further segment fits the receive window while the congestion window has room.
    fn window_is_full(&self, s: &SenderSample) -> bool {
        let (Some(unacked), Some(cwnd), Some(window)) = (s.unacked, s.cwnd, s.snd_wnd_bytes) else {
            return false;
        };
        (u64::from(unacked) + 1) * self.mss > window && cwnd > unacked
    }

    /// Whether nothing is left to send, or less than a segment that waits for acknowledgements (RFC 9293, section 3.7.4), though both windows
    /// have room.
    fn is_dry(&self, s: &SenderSample) -> bool {
        let Some(left) = s.not_sent_bytes.filter(|&bytes| bytes < self.mss.max(1)) else { return false };
        (left > 0 || s.app_limited == Some(true)) && has_room(s) && !self.window_is_full(s)
    }

    /// Whether the data in flight may fill the send buffer.
    fn buffer_is_full(&self, s: &SenderSample) -> bool {
        let in_flight = s.unacked.map(|unacked| u64::from(unacked) * self.mss);
        in_flight.zip(self.send_buffer).is_some_and(|(b, buffer)| b as f64 >= BUFFER_PAYLOAD * buffer as f64)
    }

    fn sender_is_busy(&self, now: &Interval<'_>) -> bool {
        self.sender_processor.is_wanted(now.grown(|s| s.thread_cpu_ns), now.grown(|s| s.run_wait_ns))
    }

    /// Whether a sending thread ran all the time, or was runnable throughout the transfer: it could send no more, whatever else is full.
    fn sender_is_full(&self, now: &Interval<'_>) -> bool {
        self.sender_processor.is_full(now.grown(|s| s.thread_cpu_ns))
            || self.sender_processor.binds && self.sender_is_busy(now)
    }

    /// Whether the reading program deliberately did not read for most of an interval.
    fn reader_pauses(&self, now: &Interval<'_>) -> bool {
        self.receiver.part(now, |s| s.read_paused_ns).is_some_and(|part| part >= MOSTLY)
            || self.receiver.stood_still(now)
    }

    fn receiver_is_busy(&self, now: &Interval<'_>) -> bool {
        let part = |time: fn(&ReceiverSample) -> Option<u64>| self.receiver.part(now, time);
        self.receiver_processor.is_wanted(part(|s| s.thread_cpu_ns), part(|s| s.run_wait_ns))
    }

    fn receiver_is_full(&self, now: &Interval<'_>) -> bool {
        self.receiver_processor.is_full(self.receiver.part(now, |s| s.thread_cpu_ns))
            || self.receiver_processor.binds && self.receiver_is_busy(now)
    }
}

/// Two neighbouring samples, with what the program and the connection did between them.
struct Interval<'a> {
    a: &'a SenderSample,
    b: &'a SenderSample,
    took: u64,
    largest: Largest,
    /// Nagle's algorithm held a small write back at one of them.
    is_held: bool,
    program_idle: Option<u64>,
    program_blocked: Option<u64>,
    bps: Option<f64>,
}

impl Interval<'_> {
    /// Growth of a cumulative time, as a part of the interval.
    fn grown(&self, time: fn(&SenderSample) -> Option<u64>) -> Option<f64> {
        Some(time(self.b)?.checked_sub(time(self.a)?)? as f64 / self.took as f64)
    }
}

fn grown_bytes(a: &SenderSample, b: &SenderSample) -> Option<u64> {
    b.acked_bytes?.checked_sub(a.acked_bytes?)
}

/// Whether the congestion window has much room.
fn has_room(s: &SenderSample) -> bool {
    s.unacked.zip(s.cwnd).is_some_and(|(unacked, cwnd)| u64::from(unacked) * 5 < u64::from(cwnd) * 4)
}

const fn is_event(state: CongestionState) -> bool {
    matches!(state, CongestionState::Reduced | CongestionState::Recovery | CongestionState::Loss)
}

const fn of_event(kind: EpisodeKind) -> TimeState {
    match kind {
        EpisodeKind::Reduced => TimeState::EcnReduction,
        EpisodeKind::Recovery => TimeState::Recovery,
        EpisodeKind::Timeout => TimeState::Timeout,
    }
}

/// The receiver's samples, shifted to the sender's time.
struct ReceiverTimes<'a> {
    samples: &'a [ReceiverSample],
    /// The shift.
    delay_ns: u64,
    /// Samples farther apart than this show a stopped program; `None` if there was none.
    stopped_ns: Option<u64>,
}

impl ReceiverTimes<'_> {
    /// Growth of a cumulative time as a part of the time, over the samples around an interval of the sender.
    fn part(&self, now: &Interval<'_>, time: impl Fn(&ReceiverSample) -> Option<u64>) -> Option<f64> {
        let (from, to) = (self.place(now.a.at_ns), self.place(now.b.at_ns));
        let last = self.samples.len().checked_sub(1)?;
        // From the sample before the interval to the first at or after its end.
        let (first, end) = (self.samples.get(from.saturating_sub(1))?, self.samples.get(to.min(last))?);
        let took = end.at_ns.checked_sub(first.at_ns).filter(|&ns| ns > 0)?;
        Some(time(end)?.checked_sub(time(first)?)? as f64 / took as f64)
    }

    /// Whether no sample was taken around an interval for much longer than the sampling interval.
    fn stood_still(&self, now: &Interval<'_>) -> bool {
        let at = self.place(now.b.at_ns);
        let around = at.checked_sub(1).and_then(|before| self.samples.get(before).zip(self.samples.get(at)));
        around.zip(self.stopped_ns).is_some_and(|((a, b), least)| b.at_ns.saturating_sub(a.at_ns) > least)
    }

    /// Unread bytes at the last sample before a time of the sender.
    fn unread_bytes(&self, at_ns: u64) -> Option<u64> {
        self.samples.get(self.place(at_ns).saturating_sub(1))?.unread_bytes
    }

    /// Index of the first sample at or after a time of the sender.
    fn place(&self, at_ns: u64) -> usize {
        let at_ns = at_ns.saturating_sub(self.delay_ns);
        self.samples.partition_point(|s| s.at_ns < at_ns)
    }
}

#[cfg(test)]
mod tests;
