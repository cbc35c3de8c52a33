//! The fate of each probe, summed up incrementally: nothing is allocated while probes are in flight.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bdp_model::probes::ping::{Bucket, Distribution, Fate, Ping, Sample, Shares, Tally};
use bdp_model::statistics::histogram::Histogram;

use bdp_flow::lock::lock;

/// Most samples kept, 40 bytes each.
pub(super) const MOST_SAMPLES: usize = 5_000_000;
/// Room for samples that is made before the first probe.
const SAMPLES_AT_FIRST: u64 = 100_000;
/// Above any time that is counted, so that a histogram has all its buckets before the first probe.
const LONGEST_NS: u64 = 1 << 42;

/// Most settled probes to be read: far more than those of a tenth of a second.
const MOST_SETTLED: usize = 4096;

/// Figures that another thread may read while probes are in flight.
#[derive(Debug, Default)]
pub(super) struct Live {
    /// Probes settled since the last read, if each is to be shown.
    settled: Option<Mutex<Vec<Sample>>>,
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
    /// Round trip of the last answer; 0 before the first.
    pub(super) rtt_ns: AtomicU64,
}

impl Live {
    /// Creates it, with every settled probe or only their counts.
    pub(super) fn showing(each: bool) -> Self {
        let settled = each.then(|| Mutex::new(Vec::with_capacity(MOST_SETTLED)));
        Self { settled, ..Self::default() }
    }

    /// Returns the probes settled since the previous call.
    pub(super) fn take_settled(&self) -> Vec<Sample> {
        let Some(settled) = &self.settled else { return Vec::new() };
        let mut settled = lock(settled);
        let taken = settled.clone();
        settled.clear();
        taken
    }

    fn settle(&self, sample: Sample) {
        let Some(settled) = &self.settled else { return };
        let mut settled = lock(settled);
        if settled.len() < MOST_SETTLED {
            settled.push(sample);
        }
    }
}

/// The account of all probes.
#[derive(Default)]
pub(super) struct Ledger {
    live: Arc<Live>,
    scheduled: bool,
    tally: Tally,
    rtt: Histogram,
    from_due: Histogram,
    lateness: Histogram,
    near: Histogram,
    far: Histogram,
    path: Histogram,
    by_device: bool,
    far_by_kernel: Option<bool>,
    last_rtt_ns: Option<u64>,
    differences_ns: u128,
    differences: u64,
    began_ns: u64,
    ended_ns: u64,
    keep: bool,
    samples: Vec<Sample>,
}

/// The parts of an answered probe's round trip, as far as timestamps show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) near_ns: Option<u64>,
    pub(super) far_ns: Option<u64>,
    pub(super) path_ns: Option<u64>,
    /// Whether this end's timestamps are taken by the device.
    pub(super) by_device: bool,
    /// Whether the remote end's arrival timestamp is its kernel's; `None` without one.
    pub(super) far_by_kernel: Option<bool>,
}

impl Ledger {
    /// Creates a ledger for probes with or without a schedule; `keep` says whether to keep each, of which `expected`
    /// will come.
    pub(super) fn new(live: Arc<Live>, scheduled: bool, keep: bool, expected: Option<u64>) -> Self {
        let room = if keep { expected.unwrap_or(SAMPLES_AT_FIRST).min(SAMPLES_AT_FIRST * 10) } else { 0 };
        let samples = Vec::with_capacity(room as usize);
        let [rtt, from_due, lateness, near, far, path] = std::array::from_fn(|_| roomy());
        Self { live, scheduled, rtt, from_due, lateness, near, far, path, keep, samples, ..Self::default() }
    }

    /// Notes that the first probe that counts is due now.
    pub(super) fn begin(&mut self, now_ns: u64) {
        (self.began_ns, self.ended_ns) = (now_ns, now_ns);
    }

    /// Notes a sent probe.
    pub(super) fn send(&mut self, due_ns: u64, sent_ns: u64) {
        self.tally.sent += 1;
        self.live.sent.store(self.tally.sent, Ordering::Relaxed);
        if self.scheduled {
            self.lateness.record(sent_ns.saturating_sub(due_ns));
        }
    }

    /// Discounts a sent probe whose answer is no longer awaited.
    pub(super) fn take_back(&mut self) {
        self.tally.sent -= 1;
    }

    /// Notes the fate of a sent probe.
    pub(super) fn settle(&mut self, number: u64, due_ns: u64, sent_ns: u64, fate: Fate, now_ns: u64) {
        match fate {
            Fate::Answered(rtt_ns) => {
                self.tally.received += 1;
                self.rtt.record(rtt_ns);
                if self.scheduled {
                    self.from_due.record(rtt_ns + sent_ns.saturating_sub(due_ns));
                }
                if let Some(last) = self.last_rtt_ns.replace(rtt_ns) {
                    self.differences_ns += u128::from(last.abs_diff(rtt_ns));
                    self.differences += 1;
                }
                self.live.received.store(self.tally.received, Ordering::Relaxed);
                self.live.rtt_ns.store(rtt_ns, Ordering::Relaxed);
            }
            Fate::Lost => self.tally.lost += 1,
            Fate::Refused => self.tally.refused += 1,
            Fate::Unreachable => self.tally.unreachable += 1,
        }
        self.ended_ns = self.ended_ns.max(now_ns);
        let since = |moment: u64| moment.saturating_sub(self.began_ns);
        let sample = Sample { number, due_ns: since(due_ns), sent_ns: since(sent_ns), outcome: fate };
        self.live.settle(sample);
        if self.keep && self.samples.len() < MOST_SAMPLES {
            self.samples.push(sample);
        }
    }

    /// Adds the parts of an answered probe's round trip.
    pub(super) fn share(&mut self, parts: Parts) {
        self.by_device |= parts.by_device;
        self.far_by_kernel = parts.far_by_kernel.or(self.far_by_kernel);
        for (histogram, part) in
            [(&mut self.near, parts.near_ns), (&mut self.far, parts.far_ns), (&mut self.path, parts.path_ns)]
        {
            if let Some(part) = part {
                histogram.record(part);
            }
        }
    }

    /// Notes a turn that was skipped because another probe was in flight until `freed_ns`: a request made then would
    /// have waited for that one's end.
    pub(super) fn leave_out(&mut self, due_ns: u64, freed_ns: Option<u64>) {
        self.tally.left_out += 1;
        if let (true, Some(freed_ns)) = (self.scheduled, freed_ns) {
            self.from_due.record(freed_ns.saturating_sub(due_ns));
        }
    }

    /// Notes this many packets dropped because this machine's socket was full.
    pub(super) fn drop_here(&mut self, packets: u64) {
        self.tally.dropped_by_receiver = Some(packets);
    }

    /// Notes a duplicate answer.
    pub(super) fn repeat(&mut self) {
        self.tally.duplicates += 1;
    }

    /// Notes a connection whose SYN was retransmitted.
    pub(super) fn retransmit(&mut self) {
        self.tally.retransmitted += 1;
    }

    /// Adds the sums to the result.
    pub(super) fn enter(mut self, ping: &mut Ping) {
        ping.took_ms = (self.ended_ns - self.began_ns) / 1_000_000;
        let Tally { lost, dropped_by_receiver, .. } = self.tally;
        // Not every dropped packet may have been an answer.
        let dropped_by_receiver = dropped_by_receiver.map(|dropped| dropped.min(lost));
        ping.probes = Tally { dropped_by_receiver, ..self.tally };
        ping.rtt_ns = Distribution::of(&self.rtt);
        ping.from_due_ns = Distribution::of(&self.from_due);
        ping.lateness_ns = Distribution::of(&self.lateness);
        ping.jitter_ns = self
            .differences_ns
            .checked_div(u128::from(self.differences))
            .map(|mean| u64::try_from(mean).unwrap_or(u64::MAX));
        ping.histogram = Bucket::of(&self.rtt);
        self.samples.sort_by_key(|sample| sample.number);
        ping.samples = self.samples;
        let [near_ns, far_ns, path_ns] = [&self.near, &self.far, &self.path].map(Distribution::of);
        let of_kernel = |kernel: bool| if kernel { "kernel" } else { "user" }.to_owned();
        ping.shares = path_ns.is_some().then(|| Shares {
            near_stamps: if self.by_device { "hardware".to_owned() } else { of_kernel(near_ns.is_some()) },
            far_stamps: self.far_by_kernel.map(of_kernel),
            near_ns,
            far_ns,
            path_ns,
        });
    }
}

/// A histogram that will not have to grow.
fn roomy() -> Histogram {
    Histogram::with_room_to(LONGEST_NS)
}

#[cfg(test)]
pub(super) mod tests {
    use bdp_model::probes::ping::PingRequest;
    use bdp_model::units::Nanos;

    use super::*;

    pub(in super::super) fn empty() -> Ping {
        let request = PingRequest {
            host: "h".to_owned(),
            port: 1,
            interval: Nanos::millis(10),
            patience: Nanos::secs(1),
            ..PingRequest::default()
        };
        Ping { request, ..Ping::default() }
    }

    #[test]
    fn what_was_held_up_counts_from_when_it_was_due() {
        const MS: u64 = 1_000_000;
        let mut ledger = Ledger::new(Arc::default(), true, true, None);
        ledger.begin(0);
        // Due each 10 ms; the second takes 35 ms, and holds up those of 20, 30 and 40 ms.
        ledger.send(0, 0);
        ledger.settle(0, 0, 0, Fate::Answered(MS), MS);
        ledger.send(10 * MS, 10 * MS);
        ledger.settle(1, 10 * MS, 10 * MS, Fate::Answered(35 * MS), 45 * MS);
        for due in [20, 30, 40] {
            ledger.leave_out(due * MS, Some(45 * MS));
        }
        ledger.send(50 * MS, 52 * MS);
        ledger.settle(2, 50 * MS, 52 * MS, Fate::Lost, 1052 * MS);
        let mut ping = empty();
        ledger.enter(&mut ping);
        let (rtt, due, late) = (ping.rtt_ns.unwrap(), ping.from_due_ns.unwrap(), ping.lateness_ns.unwrap());
        assert_eq!((rtt.count, rtt.min, rtt.max, rtt.mean), (2, MS, 35 * MS, 18 * MS));
        // 1, 35, 25, 15 and 5 ms.
        assert_eq!((due.count, due.max, due.mean), (5, 35 * MS, 81 * MS / 5));
        assert_eq!((late.count, late.max), (3, 2 * MS));
        assert_eq!(ping.jitter_ns, Some(34 * MS));
        let wanted = Tally { sent: 3, received: 2, lost: 1, left_out: 3, ..Tally::default() };
        assert_eq!((ping.probes, ping.took_ms), (wanted, 1052));
        assert_eq!(ping.samples.len(), 3);
        assert_eq!(ping.histogram.iter().map(|b| b.count).sum::<u64>(), 2);
    }
}
