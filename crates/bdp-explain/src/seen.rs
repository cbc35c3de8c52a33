//! What the rules look at: one direction of a measurement, its samples condensed.

use bdp_model::measurement::{DirectionResult, HostFacts, Measurement, Way};
use bdp_model::ramp_up::RampUp;
use bdp_model::record::{ReceiverSample, SenderSample};
use bdp_model::stats::{median, percentile};
use bdp_model::units::{Nanos, format_bps, in_binary_unit};

pub use bdp_model::units::format_percent as percent;

/// A direction, and what its samples after omit come to.
pub struct Seen<'a> {
    /// All of it.
    pub measurement: &'a Measurement,
    /// The direction in question.
    pub direction: &'a DirectionResult,
    /// The end that sends.
    pub sender: &'a HostFacts,
    /// How a sentence calls it.
    pub sender_name: String,
    /// The end that receives.
    pub receiver: &'a HostFacts,
    /// How a sentence calls it.
    pub receiver_name: String,
    /// Samples that tell segments in flight, congestion window and receive window; nothing without them.
    pub window: Option<WindowUse>,
    /// Time limited by the receive window / busy time, as the kernel counts it; known to under-report.
    pub rwnd_limited: Option<f64>,
    /// Time limited by the send buffer / busy time, as the kernel counts it.
    pub sndbuf_limited: Option<f64>,
    /// Median round trip under load, of the probe flow or as the sender's kernel smoothed it, whichever is less: an end
    /// that is late to answer lengthens either of them.
    pub rtt_loaded: Option<Nanos>,
    /// Median round trip before the load.
    pub rtt_idle: Option<Nanos>,
    /// Goodput of the stream that the samples are of.
    pub stream_bps: f64,
}

/// How the first stream used its windows.
pub struct WindowUse {
    /// Receive window as the sender saw it, median.
    pub receive_bytes: f64,
    /// In flight, median.
    pub in_flight_bytes: f64,
    /// Share of samples in which no further segment fits the receive window while the congestion window has room.
    pub receive_full: f64,
    /// Share of samples in which the congestion window has no room, and the receive window has.
    pub congestion_full: f64,
    /// Share of samples in which both windows have room for much more: the sender's kernel has nothing to send.
    pub starved: f64,
    /// The largest receive window seen.
    pub receive_largest_bytes: f64,
    /// The smallest.
    pub receive_smallest_bytes: f64,
    /// Share of samples in which the receive window is less than half of the largest so far. A receiver that reads what
    /// comes never shrinks its window.
    pub receive_shrunk: f64,
}

/// A queue that stands while the load lasts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Queue {
    /// What it adds to the median delay.
    pub added: Nanos,
    /// Whether it was measured on the data's own way; otherwise by the round trip.
    pub own_way: bool,
}

/// Fewer samples than these say nothing about shares of time.
pub const SAMPLES_MIN: usize = 5;

impl<'a> Seen<'a> {
    pub fn of(way: Way, measurement: &'a Measurement) -> Option<Self> {
        let direction = measurement.directions.iter().find(|d| d.direction == way)?;
        let (near, far) = names(measurement);
        let (sender, sender_name, receiver, receiver_name) = match way {
            Way::To => (&measurement.near, near, &measurement.far, far),
            Way::From => (&measurement.far, far, &measurement.near, near),
        };
        let samples: Vec<&SenderSample> =
            direction.sent.iter().filter(|s| s.at_ns >= direction.omit_ns).collect();
        let probed = direction.rtt_ns.loaded.filter(|rtt| rtt.received > 0).map(|rtt| Nanos(rtt.p50));
        Some(Self {
            measurement,
            direction,
            sender,
            sender_name,
            receiver,
            receiver_name,
            window: WindowUse::of(&samples, direction.mss_bytes),
            rwnd_limited: share_of_busy(&samples, |s| s.rwnd_limited_ns),
            sndbuf_limited: share_of_busy(&samples, |s| s.sndbuf_limited_ns),
            rtt_loaded: probed.into_iter().chain(smoothed(&samples)).min(),
            rtt_idle: idle(measurement, direction).map(|rtt| Nanos(rtt.p50)),
            stream_bps: direction.stream_goodput_bps.first().copied().unwrap_or(direction.goodput_bps),
        })
    }

    /// What so many bytes in flight carry in the round trip under load, bit/s.
    pub fn rate_bps(&self, bytes: f64) -> Option<f64> {
        let rtt = self.rtt_loaded?.as_secs_f64();
        (rtt > 0.0).then(|| bytes * 8.0 / rtt)
    }

    /// Goodput as a share of the ceiling.
    pub fn of_ceiling(&self) -> Option<f64> {
        let ceiling = self.measurement.ceiling.as_ref()?;
        (ceiling.goodput_bps > 0.0).then(|| self.direction.goodput_bps / ceiling.goodput_bps)
    }

    /// Bytes in flight that the ceiling needs of each stream in the idle round trip.
    pub fn needed_bytes(&self) -> Option<f64> {
        let ceiling = self.measurement.ceiling.as_ref()?.goodput_bps;
        let streams = f64::from(self.measurement.request.streams.max(1));
        Some(ceiling * self.rtt_idle?.as_secs_f64() / 8.0 / streams)
    }

    /// The queue that stands on the data's own way under load, where it is more than noise. Without times of the far end the
    /// round trip tells of it, unless both directions run at once: then nobody knows on which way the queue is.
    pub fn standing_queue(&self) -> Option<Queue> {
        /// Less than this share of the idle round trip doesn't change what a window reaches.
        const SHARE: f64 = 0.2;
        self.queue_of(SHARE)
    }

    /// The same, of at least this share of the idle round trip.
    pub fn queue_of(&self, share: f64) -> Option<Queue> {
        /// Less than this is what timers and schedulers of the two ends add.
        const NOISE: Nanos = Nanos::millis(2);
        let idle = self.rtt_idle?;
        // Without probes nobody has seen how others fare.
        self.direction.rtt_ns.loaded.filter(|rtt| rtt.received > 0)?;
        let round_trip = self.rtt_loaded?.saturating_sub(idle);
        let queue = match self.own_way_added() {
            // An end that is late to answer lengthens its probes alone.
            Some(own) => Queue { added: own.min(round_trip), own_way: true },
            None if self.both_at_once() => return None,
            None => Queue { added: round_trip, own_way: false },
        };
        (queue.added > NOISE && queue.added.as_secs_f64() > share * idle.as_secs_f64()).then_some(queue)
    }

    /// Whether the other direction was loaded at the same time.
    pub fn both_at_once(&self) -> bool {
        self.measurement.request.bidirectional && self.measurement.directions.len() > 1
    }

    /// What the other direction's load adds to this one's round trip, where that is known and more than noise.
    pub fn queue_of_the_other_way(&self) -> Option<Nanos> {
        const NOISE: Nanos = Nanos::millis(2);
        let own = self.own_way_added().filter(|_| self.both_at_once())?;
        let added = self.rtt_loaded?.saturating_sub(self.rtt_idle?).saturating_sub(own);
        (added > NOISE && added > own).then_some(added)
    }

    /// What the load adds to the median delay of the data's own way: the offset of the clocks is the same in both terms.
    fn own_way_added(&self) -> Option<Nanos> {
        let ways = self.direction.each_way_ns?;
        let own = |ways: bdp_model::one_way::EachWay| match self.direction.direction {
            Way::To => ways.there.p50,
            Way::From => ways.back.p50,
        };
        let added = own(ways.loaded?).saturating_sub(own(ways.idle?));
        Some(Nanos(u64::try_from(added).unwrap_or(0)))
    }

    /// How steady the goodput is: lower / upper quartile over stretches of several round trips, slow start left out. Within a
    /// round trip or two a lost segment holds back what came after it, and the reader gets all of it at once.
    pub fn steadiness(&self) -> Option<f64> {
        /// Round trips of a stretch.
        const ROUND_TRIPS: u64 = 5;
        /// Fewer stretches have no quartiles.
        const STRETCHES_MIN: usize = 4;
        let d = self.direction;
        // What takes longer than a quarter of the time is no slow start.
        let ramp_up = RampUp::of(&d.received, d.omit_ns).map(|ramp_up| ramp_up.took.as_ns());
        let ramp_up = ramp_up.filter(|&ns| ns <= d.duration_ns / 4).unwrap_or(0);
        let from = d.omit_ns.max(ramp_up);
        let span = ROUND_TRIPS * self.rtt_loaded?.as_ns();
        let mut rates = stretches(d.received.iter().filter(|s| s.at_ns >= from), span.max(1));
        if rates.len() < STRETCHES_MIN {
            let spread = d.spread.filter(|s| s.intervals >= SAMPLES_MIN as u64)?;
            let (low, high, _) = spread.range().filter(|&(_, high, _)| high > 0.0)?;
            return Some(low / high);
        }
        let (low, high) = (percentile(&mut rates, 25.0)?, percentile(&mut rates, 75.0)?);
        (high > 0.0).then(|| low / high)
    }

    /// Whether the sending kernel spaces segments by itself, and keeps windows that it does not fill.
    pub fn is_paced(&self) -> bool {
        self.direction.congestion_control.starts_with("bbr") || self.asked_bps().is_some()
    }

    /// Rate that all connections together were asked to keep to.
    pub fn asked_bps(&self) -> Option<f64> {
        let request = &self.measurement.request;
        let each = self.direction.pacing.as_ref().map(|pacing| pacing.rate_bps).or(request.pacing_bps)?;
        Some(each as f64 * f64::from(request.streams.max(1)))
    }

    /// What load adds at the 95th percentile, as a sentence; nothing where it adds less than one notices.
    pub fn load_adds(&self) -> Option<String> {
        let idle = idle(self.measurement, self.direction)?;
        let loaded = self.direction.rtt_ns.loaded?;
        let added = Nanos(loaded.p95?).saturating_sub(Nanos(idle.p95?));
        (added > Nanos::millis(5)).then(|| format!("load adds {} to the round trip at p95", time(added)))
    }

    /// The end, and its share, of which a thread has used up the processor that it runs on.
    pub fn busy_thread(&self) -> Option<(&'static str, f64)> {
        const BUSY: f64 = 0.9;
        /// A shorter flow has waited for nothing yet.
        const LONG_ENOUGH_NS: u64 = 100_000_000;
        if self.direction.duration_ns < LONG_ENOUGH_NS {
            return None;
        }
        let ends = [("sending", self.sender_thread()), ("receiving", self.receiver_thread())];
        ends.into_iter().find(|&(_, cpu)| cpu >= BUSY)
    }

    /// Processor time of the busiest sending thread / wall clock. An end that reports its process alone has, as far as is
    /// known, a thread for each stream.
    pub fn sender_thread(&self) -> f64 {
        let d = self.direction;
        d.sender_thread_cpu.unwrap_or_else(|| self.each_thread(d.sender_cpu, d.sender_threads))
    }

    /// The same of the receiving threads.
    pub fn receiver_thread(&self) -> f64 {
        let d = self.direction;
        d.receiver_thread_cpu.unwrap_or_else(|| self.each_thread(d.receiver_cpu, d.receiver_threads))
    }

    fn each_thread(&self, process: f64, threads: Option<u32>) -> f64 {
        process / f64::from(threads.unwrap_or(self.measurement.request.streams).max(1))
    }

    /// The longest that the receiver took no sample, where that is far longer than it was to.
    pub fn receiver_paused(&self) -> Option<Nanos> {
        /// A sample of a machine with other work to do is late by less.
        const INTERVALS: u64 = 3;
        let d = self.direction;
        let counted: Vec<&ReceiverSample> = d.received.iter().filter(|s| s.at_ns >= d.omit_ns).collect();
        let longest = counted.windows(2).map(|w| w[1].at_ns.saturating_sub(w[0].at_ns)).max()?;
        (longest > INTERVALS * self.measurement.request.interval.as_ns()).then_some(Nanos(longest))
    }

    /// Segments sent again / segments that carried what was received.
    pub fn resent(&self) -> Option<(u64, f64)> {
        let (again, mss) = (self.direction.retransmits?, self.direction.mss_bytes.filter(|&m| m > 0)?);
        let segments = (self.direction.bytes as f64 / mss as f64).max(1.0);
        Some((again, again as f64 / segments))
    }
}

impl WindowUse {
    fn of(samples: &[&SenderSample], mss_bytes: Option<u64>) -> Option<Self> {
        let mss = mss_bytes.filter(|&mss| mss > 0)?;
        let whole: Vec<(u64, u64, u64)> = samples
            .iter()
            .filter_map(|s| Some((u64::from(s.unacked?), u64::from(s.cwnd?), s.snd_wnd_bytes?)))
            .collect();
        if whole.len() < SAMPLES_MIN {
            return None;
        }
        let share = |full: &dyn Fn(u64, u64, u64) -> bool| {
            whole.iter().filter(|&&(unacked, cwnd, window)| full(unacked, cwnd, window)).count() as f64
                / whole.len() as f64
        };
        let (mut largest, mut smallest, mut shrunk) = (0, u64::MAX, 0);
        for &(_, _, window) in &whole {
            largest = largest.max(window);
            smallest = smallest.min(window);
            shrunk += u64::from(window < largest / 2);
        }
        let mut windows: Vec<f64> = whole.iter().map(|w| w.2 as f64).collect();
        let mut in_flight: Vec<f64> = whole.iter().map(|w| (w.0 * mss) as f64).collect();
        Some(Self {
            receive_bytes: median(&mut windows)?,
            in_flight_bytes: median(&mut in_flight)?,
            receive_full: share(&|unacked, cwnd, window| unacked * mss + mss > window && cwnd > unacked),
            congestion_full: share(&|unacked, cwnd, window| {
                unacked + 1 >= cwnd && unacked * mss + mss <= window
            }),
            starved: share(&|unacked, cwnd, window| {
                unacked * 5 < cwnd * 4 && unacked * mss * 5 < window * 4 && unacked * mss + mss <= window
            }),
            receive_largest_bytes: largest as f64,
            receive_smallest_bytes: smallest as f64,
            receive_shrunk: shrunk as f64 / whole.len() as f64,
        })
    }
}

/// Goodput of stretches of at least `span_ns` each, bit/s.
fn stretches<'a>(samples: impl Iterator<Item = &'a ReceiverSample>, span_ns: u64) -> Vec<f64> {
    let (mut rates, mut first) = (Vec::new(), None::<&ReceiverSample>);
    for sample in samples {
        let Some(from) = first else {
            first = Some(sample);
            continue;
        };
        let took = sample.at_ns.saturating_sub(from.at_ns);
        if took >= span_ns {
            rates.push(sample.bytes.saturating_sub(from.bytes) as f64 * 8e9 / took as f64);
            first = Some(sample);
        }
    }
    rates
}

fn share_of_busy(samples: &[&SenderSample], limited: impl Fn(&SenderSample) -> Option<u64>) -> Option<f64> {
    let (first, last) = (samples.first()?, samples.last()?);
    let busy = last.busy_ns?.checked_sub(first.busy_ns?).filter(|&busy| busy > 0)?;
    let limited = limited(last)?.saturating_sub(limited(first)?);
    Some((limited as f64 / busy as f64).min(1.0))
}

fn smoothed(samples: &[&SenderSample]) -> Option<Nanos> {
    let mut all: Vec<f64> = samples.iter().filter_map(|s| s.srtt_ns).map(|ns| ns as f64).collect();
    percentile(&mut all, 50.0).map(|ns| Nanos(ns as u64))
}

fn idle(m: &Measurement, d: &DirectionResult) -> Option<bdp_model::record::RttSummary> {
    d.rtt_ns.idle.or(m.rtt_idle_ns).filter(|rtt| rtt.received > 0)
}

/// Names that tell the two ends apart, near and far.
fn names(measurement: &Measurement) -> (String, String) {
    let (near, far) = (measurement.near.name.trim(), measurement.far.name.trim());
    if near == far || near.is_empty() || far.is_empty() {
        ("the near end".to_owned(), "the far end".to_owned())
    } else {
        (near.to_owned(), far.to_owned())
    }
}

/// A size as sentences have it: `2.72 MiB`, `78.6 KiB`; three digits, or as many as it has before its point.
pub fn size(bytes: f64) -> String {
    let (value, unit) = in_binary_unit(bytes.round().max(0.0));
    let decimals = if unit == "B" || value >= 99.95 { 0 } else { usize::from(value < 9.995) + 1 };
    let digits = format!("{value:.decimals$}");
    let digits = if decimals > 0 { digits.trim_end_matches('0').trim_end_matches('.') } else { &digits };
    format!("{digits} {unit}")
}

/// A rate as sentences have it: `347 Mbit/s`, three digits or as many as it has before its point.
pub fn rate(bps: f64) -> String {
    let digits = if bps > 0.0 { 10f64.powf(bps.log10().floor() - 2.0) } else { 1.0 };
    format_bps((bps / digits).round() * digits)
}

/// A time as sentences have it: `24.2 ms`.
pub fn time(nanos: Nanos) -> String {
    let digits = if nanos.0 > 0 { 10f64.powf((nanos.0 as f64).log10().floor() - 2.0) } else { 1.0 };
    Nanos(((nanos.0 as f64 / digits).round() * digits).round() as u64).to_string()
}

/// The last of the three numbers of `tcp_rmem` or `tcp_wmem`.
pub fn maximum(host: &HostFacts, sysctl: &str) -> Option<u64> {
    host.sysctls.get(sysctl)?.split_whitespace().nth(2)?.parse().ok()
}
