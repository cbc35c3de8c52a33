//! Values derived from the facts of a transfer.

use super::{End, Facts, Source, WindowUse};
use crate::facts::ramp_up::RampUp;
use crate::finding::threshold::{
    BUSY_THREAD, HOST_PAUSE, LONG_ENOUGH, QUEUE_NOISE, QUEUE_SHARE, RATE_EXCEEDED, RATE_KEPT, REACHED,
    SAMPLES_MIN,
};
use crate::flow::udp::OneWayDelay;
use crate::measurement::ends::Task;
use crate::path::delayed_ack;
use crate::probes::latency_parts::LatencyParts;
use crate::record::{ReceiverSample, SenderSample};
use crate::statistics::percentile;
use crate::units::Nanos;

/// A queue that lasts as long as the load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Queue {
    /// Delay that it adds, median.
    pub added: Nanos,
    /// Whether it was measured in the data's own direction; otherwise by the round trip.
    pub own_way: bool,
}

/// The rate that the receive window allows: one window per round trip.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowBound {
    /// Receive window per stream, median.
    pub bytes: f64,
    /// Median round trip under load, or idle if no other is known.
    pub rtt: Nanos,
    /// The most that each stream can carry, bit/s.
    pub stream_bps: f64,
    /// The most that all streams can carry, bit/s.
    pub bps: f64,
    /// The least that each stream carries with that window: whole segments, and the ACK of one may be delayed ([`delayed_ack`]).
    pub stream_least_bps: f64,
}

/// Gap between samples, in intervals, that counts as a pause of the receiver: a busy machine is late by less.
pub(super) const PAUSED_INTERVALS: u64 = 3;

impl Facts {
    /// The rate that the receive window allows, by the sender's samples, or the receiver's if the sender has none.
    pub fn window_bound(&self) -> Option<WindowBound> {
        let on_the_wire = || self.window.on_the_wire_bytes.map(|bytes| bytes as f64);
        let bytes = self.window_use().map(|used| used.receive_bytes).or_else(on_the_wire)?;
        let rtt = self.rtt_loaded().or_else(|| self.rtt_idle()).filter(|&rtt| rtt > Nanos::ZERO)?;
        let stream_bps = bytes * 8.0 / rtt.as_secs_f64();
        let bps = stream_bps * f64::from(self.streams());
        let stream_least_bps = self.mss_bytes.map_or(stream_bps, |mss| match bytes as u64 / mss.max(1) {
            0 => stream_bps,
            segments => delayed_ack::least_bps(segments, mss, rtt),
        });
        (bytes > 0.0).then_some(WindowBound { bytes, rtt, stream_bps, bps, stream_least_bps })
    }

    /// How the windows were used; `None` if the samples after omit show too little.
    pub fn window_use(&self) -> Option<WindowUse> {
        WindowUse::of(self.sent_after_omit(), self.mss_bytes, self.asked_window_bytes())
    }

    /// The requested receive window.
    pub fn asked_window_bytes(&self) -> Option<u64> {
        self.asked.window.map(|window| u64::from(window.get()))
    }

    /// The sender's samples after omit.
    pub fn sent_after_omit(&self) -> impl DoubleEndedIterator<Item = &SenderSample> + Clone {
        self.sent.iter().filter(|s| s.at_ns >= self.omit_ns)
    }

    /// Time limited by the receive window / busy time, as the kernel counts it; known to be under-reported.
    pub fn rwnd_limited(&self) -> Option<f64> {
        self.share_of_busy(|s| s.rwnd_limited_ns)
    }

    /// Time limited by the send buffer / busy time, as the kernel counts it.
    pub fn sndbuf_limited(&self) -> Option<f64> {
        self.share_of_busy(|s| s.sndbuf_limited_ns)
    }

    fn share_of_busy(&self, limited: impl Fn(&SenderSample) -> Option<u64>) -> Option<f64> {
        let mut samples = self.sent_after_omit();
        let first = samples.next()?;
        let last = samples.next_back().unwrap_or(first);
        let busy = last.busy_ns?.checked_sub(first.busy_ns?).filter(|&busy| busy > 0)?;
        let limited = limited(last)?.saturating_sub(limited(first)?);
        Some((limited as f64 / busy as f64).min(1.0))
    }

    /// Median round trip before the load.
    pub fn rtt_idle(&self) -> Option<Nanos> {
        let idle = self.rtt_ns.idle.filter(|rtt| rtt.received > 0)?;
        Some(Nanos(if self.probes_fill_a_way() { idle.min } else { idle.answers().p50 }))
    }

    /// Median round trip under load, of the probes or as smoothed by the sender's kernel, whichever is smaller: an end
    /// that is slow to answer lengthens either.
    pub fn rtt_loaded(&self) -> Option<Nanos> {
        let probed = self.rtt_ns.loaded.filter(|rtt| rtt.received > 0).map(|rtt| Nanos(rtt.answers().p50));
        let mut smoothed: Vec<f64> =
            self.sent_after_omit().filter_map(|s| s.srtt_ns).map(|ns| ns as f64).collect();
        let smoothed = percentile(&mut smoothed, 50.0).map(|ns| Nanos(ns as u64));
        probed.into_iter().chain(smoothed).min()
    }

    /// Round trip added by load, 95th percentile; `None` if either round trip is unknown.
    pub fn rtt_added_p95(&self) -> Option<Nanos> {
        let idle = self.rtt_ns.idle.filter(|rtt| rtt.received > 0)?;
        Some(Nanos(self.rtt_ns.loaded?.answers().p95?).saturating_sub(Nanos(idle.answers().p95?)))
    }

    /// Goodput of the stream that the samples belong to.
    pub fn stream_bps(&self) -> f64 {
        self.stream_goodput_bps.first().copied().unwrap_or(self.goodput_bps)
    }

    /// The rate of this many bytes in flight with the round trip under load, bit/s.
    pub fn rate_bps(&self, bytes: f64) -> Option<f64> {
        let rtt = self.rtt_loaded()?.as_secs_f64();
        (rtt > 0.0).then(|| bytes * 8.0 / rtt)
    }

    /// Goodput as a share of the ceiling.
    pub fn of_ceiling(&self) -> Option<f64> {
        let ceiling = self.ceiling.as_ref()?;
        (ceiling.goodput_bps > 0.0).then(|| self.goodput_bps / ceiling.goodput_bps)
    }

    /// Bytes in flight that each stream needs to reach the ceiling with the idle round trip.
    pub fn needed_bytes(&self) -> Option<f64> {
        let ceiling = self.ceiling.as_ref()?.goodput_bps;
        Some(ceiling * self.rtt_idle()?.as_secs_f64() / 8.0 / f64::from(self.streams()))
    }

    /// The standing queue in the data's own direction under load, if it exceeds noise. Without times of the far end it is taken from the
    /// round trip, unless both directions run at once: then the queue's direction is unknown.
    pub fn standing_queue(&self) -> Option<Queue> {
        self.queue_of(QUEUE_SHARE)
    }

    /// The standing queue, if it adds at least this share of the idle round trip.
    pub fn queue_of(&self, share: f64) -> Option<Queue> {
        let idle = self.rtt_idle()?;
        // Without probes the delay of other packets is unknown.
        self.rtt_ns.loaded.filter(|rtt| rtt.received > 0)?;
        let round_trip = self.rtt_loaded()?.saturating_sub(idle);
        let queue = match self.own_way_added() {
            // An end that is slow to answer lengthens only its own probes.
            Some(own) => Queue { added: own.min(round_trip), own_way: true },
            None if self.both_directions => return None,
            None => Queue { added: round_trip, own_way: false },
        };
        (queue.added > QUEUE_NOISE && queue.added.as_secs_f64() > share * idle.as_secs_f64()).then_some(queue)
    }

    /// Whether the bottleneck is busy all the time: the standing queue exceeds the variation of idle round trips, and nearly no probe found it empty.
    /// A larger window or buffer would then only lengthen the queue.
    pub fn queue_never_drains(&self) -> bool {
        /// Smallest share of the idle round trip.
        const SHARE: f64 = 0.05;
        /// Share of the probes that waited, and their smallest number.
        const WAITED: (f64, usize) = (0.95, 10);
        let spread = self.rtt_ns.idle.map(|idle| {
            let answers = idle.answers();
            answers.p95.unwrap_or(answers.p50).saturating_sub(idle.min)
        });
        // Jitter that keeps segments in order looks like a queue of its size.
        let stands =
            |share| self.queue_of(share).zip(spread).is_some_and(|(queue, spread)| queue.added.0 > spread);
        match self.probes_that_waited(QUEUE_NOISE) {
            Some((waited, of)) => stands(SHARE) && of >= WAITED.1 && waited as f64 >= WAITED.0 * of as f64,
            // Without a series, the shortest round trip must have waited.
            None => self.rtt_ns.loaded.zip(self.rtt_idle()).is_some_and(|(loaded, idle)| {
                stands(QUEUE_SHARE) && loaded.received > 0 && loaded.min >= (idle + QUEUE_NOISE).as_ns()
            }),
        }
    }

    /// Delay that the other direction's load adds to this direction's round trip, if known and above noise.
    pub fn queue_of_the_other_way(&self) -> Option<Nanos> {
        let own = self.own_way_added().filter(|_| self.both_directions)?;
        let added = self.rtt_loaded()?.saturating_sub(self.rtt_idle()?).saturating_sub(own);
        (added > QUEUE_NOISE && added > own).then_some(added)
    }

    /// Median delay added by load in the data's own direction: the clocks' offset cancels out.
    pub fn own_way_added(&self) -> Option<Nanos> {
        let own = self.one_way?;
        let added = own.loaded?.p50.saturating_sub(self.unloaded(own.idle?));
        Some(Nanos(u64::try_from(added).unwrap_or(0)))
    }

    /// One-way delay without load: the median, or the minimum if the probes alone fill that direction.
    fn unloaded(&self, idle: OneWayDelay) -> i64 {
        if self.probes_fill_a_way() { idle.min } else { idle.p50 }
    }

    /// Whether round trips were longer before the load than during it, by far more than clocks and chance explain: the probes then stood in
    /// a queue of their own, and their minimum is the path's.
    pub fn probes_fill_a_way(&self) -> bool {
        let both = self
            .rtt_ns
            .idle
            .zip(self.rtt_ns.loaded)
            .filter(|(idle, loaded)| idle.received.min(loaded.received) > 0);
        both.is_some_and(|(idle, loaded)| {
            let (idle, loaded) = (idle.answers().p50 as f64, loaded.answers().p50 as f64);
            idle > loaded + (QUEUE_SHARE * loaded).max(QUEUE_NOISE.0 as f64)
        })
    }

    /// Delay added by load in the data's own direction, 95th percentile.
    pub fn own_way_added_p95(&self) -> Option<Nanos> {
        let own = self.one_way?;
        let added = own.loaded?.p95?.saturating_sub(self.unloaded(own.idle?));
        Some(Nanos(u64::try_from(added).unwrap_or(0)))
    }

    /// Median delay added by load on the reverse path.
    pub fn way_back_added(&self) -> Option<Nanos> {
        let ways = self.one_way?;
        let added = ways.back_loaded?.p50.saturating_sub(self.unloaded(ways.back_idle?));
        Some(Nanos(u64::try_from(added).unwrap_or(0)))
    }

    /// Delay added by load on the reverse path, 95th percentile.
    pub fn way_back_added_p95(&self) -> Option<Nanos> {
        let ways = self.one_way?;
        let added = ways.back_loaded?.p95?.saturating_sub(self.unloaded(ways.back_idle?));
        Some(Nanos(u64::try_from(added).unwrap_or(0)))
    }

    /// The start of the transfer, if slow start can be told apart from the rest.
    pub fn ramp_up(&self) -> Option<RampUp> {
        RampUp::of(&self.received, self.omit_ns)
    }

    /// Steadiness of the goodput: lower / upper quartile over stretches of several round trips, without slow start. Within a
    /// round trip or two a lost segment holds back later data, which is then read all at once.
    pub fn steadiness(&self) -> Option<f64> {
        /// Round trips per stretch: fewer for a short transfer.
        const ROUND_TRIPS: [u64; 3] = [5, 2, 1];
        /// Fewer stretches have no quartiles.
        const STRETCHES_MIN: usize = 4;
        /// Segments per stretch at the goodput: with fewer, a single segment changes the rate noticeably.
        const SEGMENTS: f64 = 20.0;
        // Slow start takes at most a quarter of the time.
        let ramp_up = self.ramp_up().map(|ramp_up| ramp_up.took.as_ns());
        let ramp_up = ramp_up.filter(|&ns| ns <= self.duration_ns / 4).unwrap_or(0);
        let from = self.omit_ns.max(ramp_up);
        let rtt = self.rtt_loaded()?.as_ns();
        let segments_ns = SEGMENTS * self.mss_bytes.unwrap_or(0) as f64 * 8e9 / self.goodput_bps.max(1.0);
        let of = |trips: u64| -> Vec<f64> {
            let counted = self.received.iter().filter(|s| s.at_ns >= from);
            let span_ns = (trips * rtt).max(segments_ns as u64).max(1);
            stretches(counted, span_ns).into_iter().map(|(_, bps)| bps).collect()
        };
        let mut rates =
            ROUND_TRIPS.map(of).into_iter().find(|rates| rates.len() >= STRETCHES_MIN).unwrap_or_default();
        if rates.is_empty() {
            let spread = self.spread.filter(|s| s.intervals >= SAMPLES_MIN as u64)?;
            let (low, high, _) = spread.range().filter(|&(_, high, _)| high > 0.0)?;
            return Some(low / high);
        }
        let (low, high) = (percentile(&mut rates, 25.0)?, percentile(&mut rates, 75.0)?);
        (high > 0.0).then(|| low / high)
    }

    /// Whether the sender's congestion control follows a model of rate and round trip instead of losses: any version of BBR.
    pub fn sends_by_model(&self) -> bool {
        self.congestion_control.starts_with("bbr")
    }

    /// Whether the sending kernel paces segments, and keeps windows that it does not fill.
    pub fn is_paced(&self) -> bool {
        self.sends_by_model() || self.paced_bps.is_some()
    }

    /// The requested rate of all connections together.
    pub fn asked_bps(&self) -> Option<f64> {
        Some(self.paced_bps? as f64 * f64::from(self.streams()))
    }

    /// The requested rate, or the sender's own limit, if the goodput keeps to it.
    pub fn kept_rate_bps(&self) -> Option<f64> {
        /// Goodput of the median interval / the rate.
        const MOSTLY: f64 = 0.97;
        /// Goodput after slow start / the rate, with a standing queue: anything less is the path's rate, not the requested one.
        const BESIDE_A_QUEUE: f64 = 0.99;
        /// Headers of Ethernet, IPv4 and TCP with timestamps.
        const FRAME_HEADERS: u64 = 14 + 20 + 32;
        let asked = match self.source {
            // A server's limit applies to a sender as a request does.
            Source::Measured => self.held_bps(),
            // The kernel paces whole frames.
            Source::Watched => self
                .asked_bps()
                .zip(self.mss_bytes)
                .map(|(bps, mss)| bps * mss as f64 / (mss + FRAME_HEADERS) as f64),
            Source::Emulated | Source::Captured => self.asked_bps(),
        };
        let asked = asked.filter(|&asked| asked > 0.0)?;
        let usual = self.spread.map_or(self.goodput_bps, |spread| spread.p50.max(self.goodput_bps));
        let is_within = (RATE_KEPT..=RATE_EXCEEDED).contains(&(self.goodput_bps / asked));
        let after_start = || self.ramp_up().map_or(self.goodput_bps, |ramp_up| ramp_up.goodput_after_bps);
        // A standing queue means that the path is full or nearly so.
        let is_kept = self.standing_queue().is_none() || after_start() >= BESIDE_A_QUEUE * asked;
        (usual >= MOSTLY * asked && is_within && is_kept).then_some(asked)
    }

    /// Rate limit of all connections together: the requested rate, or a limit that the sender set itself, such as a server's
    /// rate limit. The kernel paces at that rate in every sample, and the rate is reached; a steady window is paced at 1.2 times the
    /// rate that it carries.
    pub fn held_bps(&self) -> Option<f64> {
        let bound = || {
            let at_work = self.sent.iter().filter(|s| s.busy_ns > Some(0));
            let paced: Vec<u64> = at_work.filter_map(|s| s.pacing_bps).collect();
            let first = *paced.first().filter(|&&bps| bps > 0)?;
            let is_bound = paced.len() >= SAMPLES_MIN && paced.iter().all(|&bps| bps == first);
            let is_reached = self.stream_bps() >= REACHED * first as f64;
            (is_bound && is_reached).then_some(first as f64 * f64::from(self.streams()))
        };
        self.asked_bps().or_else(bound)
    }

    /// The task of the end whose thread uses all of its processor, with the share.
    pub fn busy_thread(&self) -> Option<(Task, f64)> {
        if self.duration_ns < LONG_ENOUGH.as_ns() {
            return None;
        }
        let ends = [(Task::Sending, self.sender_thread()), (Task::Receiving, self.receiver_thread())];
        ends.into_iter().find(|&(_, cpu)| cpu >= BUSY_THREAD)
    }

    /// Processor time of the busiest sending thread / wall clock. An end that reports only its process is assumed to have
    /// a thread per stream.
    pub fn sender_thread(&self) -> f64 {
        self.thread(&self.sender)
    }

    /// Processor time of the busiest receiving thread / wall clock.
    pub fn receiver_thread(&self) -> f64 {
        self.thread(&self.receiver)
    }

    fn thread(&self, end: &End) -> f64 {
        let threads = end.threads.unwrap_or(self.asked.streams).max(1);
        // Two clocks read one after the other can give a busy thread slightly more than one processor.
        end.thread_cpu.unwrap_or(end.cpu / f64::from(threads)).min(1.0)
    }

    /// Number of connections that carry the data.
    pub fn streams(&self) -> u32 {
        self.asked.streams.max(1)
    }

    /// Longest time without a sample at the receiver, if far longer than its interval.
    pub fn receiver_paused(&self) -> Option<Nanos> {
        let counted: Vec<&ReceiverSample> =
            self.received.iter().filter(|s| s.at_ns >= self.omit_ns).collect();
        let longest = counted.windows(2).map(|w| w[1].at_ns.saturating_sub(w[0].at_ns)).max()?;
        (longest > PAUSED_INTERVALS * self.asked.interval.as_ns()).then_some(Nanos(longest))
    }

    /// Longest time for which a host paused the transfer's own programs: a probe's answer waited between kernel and program, or the receiver took no
    /// sample. `None` if nothing was delayed by more than a timer's lateness.
    pub fn host_pause(&self) -> Option<Nanos> {
        if !matches!(self.source, Source::Measured | Source::Emulated) {
            return None;
        }
        let waited = self.probes.as_ref().and_then(|series| series.counted().filter_map(|p| p.host_ns).max());
        let waited = waited.map(Nanos).filter(|&waited| waited > HOST_PAUSE);
        waited.into_iter().chain(self.receiver_paused().filter(|&paused| paused > HOST_PAUSE)).max()
    }

    /// The hosts' part of the probes' round trips, 95th percentile; zero if unknown.
    pub fn hosts_took_p95(&self) -> Nanos {
        let parts = self.probes.as_ref().and_then(LatencyParts::of);
        parts.and_then(|parts| parts.host.p95).map_or(Nanos::ZERO, Nanos)
    }

    /// Retransmitted segments, and their share of the segments that carried the received data.
    pub fn retransmitted(&self) -> Option<(u64, f64)> {
        let (again, mss) = (self.retransmits?, self.mss_bytes.filter(|&m| m > 0)?);
        let segments = (self.bytes as f64 / mss as f64).max(1.0);
        Some((again, again as f64 / segments))
    }
}

/// Goodput of stretches of at least `span_ns` each, bit/s, with the end of each.
pub(super) fn stretches<'a>(
    samples: impl Iterator<Item = &'a ReceiverSample>,
    span_ns: u64,
) -> Vec<(u64, f64)> {
    let (mut rates, mut first) = (Vec::new(), None::<&ReceiverSample>);
    for sample in samples {
        let Some(from) = first else {
            first = Some(sample);
            continue;
        };
        let took = sample.at_ns.saturating_sub(from.at_ns);
        if took >= span_ns {
            let bps = sample.bytes.saturating_sub(from.bytes) as f64 * 8e9 / took as f64;
            rates.push((sample.at_ns, bps));
            first = Some(sample);
        }
    }
    rates
}
