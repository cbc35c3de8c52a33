//! What the rules look at: one direction of a measurement, its samples condensed.

use bdp_model::measurement::{DirectionResult, HostFacts, Measurement, Way};
use bdp_model::record::SenderSample;
use bdp_model::stats::{median, percentile};
use bdp_model::units::{ByteCount, Nanos, format_bps};

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

    /// How much the load adds to the median round trip, where that is more than noise: a queue that stands somewhere.
    pub fn standing_queue(&self) -> Option<Nanos> {
        /// Less than this is what timers and schedulers of the two ends add.
        const NOISE: Nanos = Nanos::millis(2);
        /// Less than this share of the idle round trip doesn't change what a window reaches.
        const SHARE: f64 = 0.2;
        let idle = self.rtt_idle?;
        // Without probes nobody has seen how others fare.
        self.direction.rtt_ns.loaded.filter(|rtt| rtt.received > 0)?;
        let added = self.rtt_loaded?.saturating_sub(idle);
        (added > NOISE && added.as_secs_f64() > SHARE * idle.as_secs_f64()).then_some(added)
    }

    /// What load adds at the 95th percentile, as a sentence; nothing where it adds less than one notices.
    pub fn load_adds(&self) -> Option<String> {
        let idle = idle(self.measurement, self.direction)?;
        let loaded = self.direction.rtt_ns.loaded?;
        let added = Nanos(loaded.p95?).saturating_sub(Nanos(idle.p95?));
        (added > Nanos::millis(5)).then(|| format!("load adds {} to the round trip at p95", time(added)))
    }

    /// Whether an end's process has used up the processor that it runs on.
    pub fn busy_process(&self) -> Option<(&'static str, f64)> {
        const BUSY: f64 = 0.9;
        /// A shorter flow has waited for nothing yet.
        const LONG_ENOUGH_NS: u64 = 100_000_000;
        let d = self.direction;
        if d.duration_ns < LONG_ENOUGH_NS {
            return None;
        }
        [("sending", d.sender_cpu), ("receiving", d.receiver_cpu)].into_iter().find(|&(_, cpu)| cpu >= BUSY)
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
        let mut windows: Vec<f64> = whole.iter().map(|w| w.2 as f64).collect();
        let mut in_flight: Vec<f64> = whole.iter().map(|w| (w.0 * mss) as f64).collect();
        Some(Self {
            receive_bytes: median(&mut windows)?,
            in_flight_bytes: median(&mut in_flight)?,
            receive_full: share(&|unacked, cwnd, window| unacked * mss + mss > window && cwnd > unacked),
            congestion_full: share(&|unacked, cwnd, window| {
                unacked + 1 >= cwnd && unacked * mss + mss <= window
            }),
        })
    }
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

/// A share as sentences have it: `96 %`.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value > 0.0 && value < 9.5 { format!("{value:.1} %") } else { format!("{value:.0} %") }
}

/// A size as sentences have it: `2.72 MiB`.
pub fn size(bytes: f64) -> String {
    ByteCount::bytes(bytes.round().max(0.0) as u64).to_string()
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
