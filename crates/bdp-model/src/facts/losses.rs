//! Losses, as shown by the sender's samples and the probes.

use super::Facts;
use crate::probes::ProbePoint;
use crate::record::{EpisodeKind, LOSS_EPISODES_KEPT, LossEpisode, RttSummary, SenderSample};
use crate::statistics::{median, percentile};
use crate::units::Nanos;

/// Fewer probes give no share.
const PROBES_MIN: u64 = 10;

/// The circumstances of a sender's losses, as its kernel reported them just before each.
#[derive(Debug, Clone, PartialEq)]
pub struct LossPicture {
    /// Number of all events.
    pub events: usize,
    /// Number of events after slow start; the following figures are of these.
    pub settled: usize,
    /// Data in flight / round trip just before the events, median, bit/s; 0 if there were none.
    pub rate_bps: f64,
    /// Coefficient of variation of that rate: a full queue or a policer drops at about the same rate each time, losses that do not depend on
    /// the load occur at any rate.
    pub variation: f64,
    /// Segments retransmitted per event, median.
    pub lost_each: f64,
    /// Segments retransmitted per event / segments in flight, median.
    pub lost_share: f64,
    /// Round trip above the minimum just before the events, median.
    pub queue: Nanos,
    /// The largest loss of an event at the end of slow start: segments, and their share of those in flight. Slow start doubles the window and
    /// overshoots a threshold by far; a loss at any rate costs only a few segments.
    pub overshoot: Option<(u64, f64)>,
    /// Round trip just before that event, above the minimum.
    pub overshoot_queue: Nanos,
    /// Events that ended in a retransmission timeout.
    pub timeouts: usize,
}

impl Facts {
    /// The circumstances of the first stream's losses; `None` if there were none, or the sender's kernel does not report them.
    pub fn loss_picture(&self) -> Option<LossPicture> {
        let mss = self.mss_bytes? as f64;
        let least = self.rtt_least()?.as_ns();
        let above = |e: &LossEpisode| e.srtt_ns.saturating_sub(least);
        let mut lost = events(&self.loss_episodes);
        let stands_out = lost.len() > OTHERS;
        let first = lost.first_mut()?;
        first.slow_start |= stands_out && overshot_at_first(first);
        let settled: Vec<&LossEpisode> = lost.iter().filter(|e| !e.slow_start && e.srtt_ns > 0).collect();
        let rates: Vec<f64> =
            settled.iter().map(|e| f64::from(e.unacked) * mss * 8e9 / e.srtt_ns as f64).collect();
        let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        let variance = rates.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / rates.len().max(2) as f64;
        let middle =
            |values: &mut dyn Iterator<Item = f64>| median(&mut values.collect::<Vec<_>>()).unwrap_or(0.0);
        let overshoot = lost.iter().filter(|e| e.slow_start).max_by_key(|e| e.retransmits);
        Some(LossPicture {
            events: lost.len(),
            settled: settled.len(),
            rate_bps: middle(&mut rates.iter().copied()),
            variation: if mean > 0.0 { variance.sqrt() / mean } else { 0.0 },
            lost_each: middle(&mut settled.iter().map(|e| e.retransmits as f64)),
            lost_share: middle(&mut settled.iter().map(|e| e.retransmits as f64 / f64::from(e.unacked))),
            queue: Nanos(middle(&mut settled.iter().map(|e| above(e) as f64)) as u64),
            overshoot: overshoot.map(|e| (e.retransmits, e.retransmits as f64 / f64::from(e.unacked))),
            overshoot_queue: overshoot.map_or(Nanos::ZERO, |e| Nanos(above(e))),
            timeouts: lost.iter().filter(|e| e.kind == EpisodeKind::Timeout).count(),
        })
    }

    /// The sender's losses after slow start and omit: the overshoot of slow start is lost only once, however long the transfer runs.
    pub fn settled_losses(&self) -> Option<SettledLosses> {
        let lost: Vec<LossEpisode> = reductions(&self.loss_episodes).collect();
        let is_overshoot = |e: &LossEpisode, first: bool| {
            e.slow_start || first && lost.len() > OTHERS && overshot_at_first(e)
        };
        let (overshot, settled): (Vec<_>, Vec<_>) =
            lost.iter().enumerate().partition(|(i, e)| is_overshoot(e, *i == 0));
        let of_samples = self.delivered()?;
        let mut counters = self.sent_after_omit().filter_map(|s| s.delivered);
        let (first, last) = (counters.next()?, counters.next_back()?);
        let ended = overshot.last().map(|(_, e)| e.delivered + e.retransmits);
        let from = ended.unwrap_or(first).max(first).min(last);
        // If a connection loses all the time, its events are not kept to the end.
        let until = match lost.len() >= LOSS_EPISODES_KEPT {
            true => lost.last().map_or(last, |e| e.delivered).clamp(from, last),
            false => last,
        };
        let at_start = overshot.iter().filter(|(_, e)| e.at_ns >= self.omit_ns).map(|(_, e)| e.retransmits);
        Some(SettledLosses {
            reductions: settled.iter().filter(|(_, e)| e.at_ns >= self.omit_ns).count(),
            delivered: until.saturating_sub(from),
            share: self.counted(|s| s.retransmits)?.saturating_sub(at_start.sum()) as f64 / of_samples as f64,
        })
    }

    /// The smallest round trip of the probes before the load and of the sender's kernel.
    pub fn rtt_least(&self) -> Option<Nanos> {
        let kernel = self.sent.iter().filter_map(|s| s.min_rtt_ns).min();
        let probes = self.rtt_ns.idle.filter(|rtt| rtt.received > 0).map(|rtt| rtt.min);
        kernel.into_iter().chain(probes).filter(|&ns| ns > 0).min().map(Nanos)
    }

    /// The highest delivery rate that the sender's kernel sampled after omit, bit/s: the 95th percentile, since bursts of acknowledgements
    /// appear as a higher one.
    pub fn delivery_peak_bps(&self) -> Option<f64> {
        let sampled = self.sent_after_omit().filter(|s| s.app_limited != Some(true));
        percentile(
            &mut sampled.filter_map(|s| s.delivery_rate_bps).map(|bps| bps as f64).collect::<Vec<_>>(),
            95.0,
        )
    }

    /// Goodput of the first stream / its highest delivery rate: near 1 if the sender's rate is constant.
    pub fn of_peak(&self) -> Option<f64> {
        /// Above this, the two are not of the same streams, or the rate was sampled over too little data.
        const MOST: f64 = 1.1;
        let reached = self.stream_bps() / self.delivery_peak_bps().filter(|&peak| peak > 0.0)?;
        (reached <= MOST).then_some(reached)
    }

    /// Growth of one of the sender's counters after omit.
    pub fn counted(&self, count: impl Fn(&SenderSample) -> Option<u64>) -> Option<u64> {
        let mut samples = self.sent_after_omit();
        let first = samples.next()?;
        let last = samples.next_back()?;
        count(last)?.checked_sub(count(first)?)
    }

    /// Segments delivered after omit.
    pub fn delivered(&self) -> Option<u64> {
        self.counted(|s| s.delivered).filter(|&segments| segments > 0)
    }

    /// Retransmitted segments / delivered ones, after omit.
    pub fn retransmitted_share(&self) -> Option<f64> {
        Some(self.counted(|s| s.retransmits)? as f64 / self.delivered()? as f64)
    }

    /// Probes lost under load in the data's own direction (in either, if that is unknown), and the number of probes whose fate is
    /// known.
    pub fn probes_lost_there(&self) -> Option<(u64, u64)> {
        match self.probes_lost {
            Some(lost) => Some((lost.own_way, lost.known)),
            None => {
                self.rtt_ns.loaded.map(|loaded| (loaded.lost(), loaded.sent.saturating_sub(loaded.in_flight)))
            }
        }
    }

    /// Share of the probes under load that were lost on the reverse path; `None` if the other end does not count them.
    pub fn probes_lost_back(&self) -> Option<f64> {
        self.probes_lost
            .filter(|lost| lost.known >= PROBES_MIN)
            .map(|lost| lost.way_back as f64 / lost.known as f64)
    }

    /// Share of the probes under load that were lost in the data's own direction; `None` if the other end does not count them.
    pub fn probes_lost_own_way(&self) -> Option<f64> {
        self.probes_lost
            .filter(|lost| lost.known >= PROBES_MIN)
            .map(|lost| lost.own_way as f64 / lost.known as f64)
    }

    /// Shares of probes lost before the load and during it.
    pub fn probes_lost_shares(&self) -> Option<(f64, f64)> {
        let share = |probes: RttSummary| {
            let known = probes.sent.saturating_sub(probes.in_flight);
            (known >= PROBES_MIN).then(|| probes.lost() as f64 / known as f64)
        };
        Some((share(self.rtt_ns.idle?)?, share(self.rtt_ns.loaded?)?))
    }

    /// Probes under load with a round trip longer than before the load by this much, and all answered ones; `None` without a series of them.
    pub fn probes_that_waited(&self, added: Nanos) -> Option<(usize, usize)> {
        let least = self.rtt_idle()? + added;
        let series = self.probes.as_ref()?;
        let round_trips: Vec<u64> = series.counted().filter_map(ProbePoint::rtt_ns).collect();
        let waited = round_trips.iter().filter(|&&rtt| rtt >= least.as_ns()).count();
        Some((waited, round_trips.len()))
    }

    /// The longest time in which nothing arrived; `None` without samples.
    pub fn longest_gap(&self) -> Option<Gap> {
        let first = self.received.first()?;
        let last = self.received.last().filter(|last| last.at_ns > first.at_ns)?;
        let (mut longest, mut since, mut bytes) = ((first.at_ns, first.at_ns), first.at_ns, first.bytes);
        for sample in &self.received {
            if sample.bytes > bytes {
                if sample.at_ns - since > longest.1 - longest.0 {
                    longest = (since, sample.at_ns);
                }
                (since, bytes) = (sample.at_ns, sample.bytes);
            }
        }
        let took = longest.1 - longest.0;
        Some(Gap {
            took: Nanos(took),
            share: took as f64 / (last.at_ns - first.at_ns) as f64,
            probes: self.probes_within(longest.0, longest.1),
            silence: self.silence_within(longest.0, longest.1),
            retransmitted: self.retransmitted_within(longest.0, longest.1),
        })
    }

    fn retransmitted_within(&self, from_ns: u64, until_ns: u64) -> u64 {
        let at =
            |at_ns: u64| self.sent.iter().take_while(|s| s.at_ns <= at_ns).last().and_then(|s| s.retransmits);
        at(until_ns).unwrap_or(0).saturating_sub(at(from_ns).unwrap_or(0))
    }

    /// The longest run of unanswered probes between two times.
    fn silence_within(&self, from_ns: u64, until_ns: u64) -> Option<Silence> {
        let points = &self.probes.as_ref()?.points;
        let at = |point: &ProbePoint| u64::try_from(point.counts_from_ns()).unwrap_or(0);
        let is_silent = |p: &ProbePoint| p.rtt_ns().is_none() && (from_ns..until_ns).contains(&at(p));
        let runs = points.chunk_by(|a, b| is_silent(a) && is_silent(b)).filter(|run| is_silent(&run[0]));
        let longest = runs.max_by_key(|run| run.len())?;
        let unanswered = points.iter().filter(|p| p.rtt_ns().is_none()).count();
        Some(Silence {
            took: Nanos(at(longest.last()?) - at(longest.first()?)),
            others: (unanswered - longest.len()) as f64 / points.len() as f64,
        })
    }

    /// Answered and all probes sent between two times, of those that had time to be answered.
    fn probes_within(&self, from_ns: u64, until_ns: u64) -> Option<(usize, usize)> {
        // The median and a quarter more: the gap's own probes are among the slowest.
        let rtt =
            self.rtt_idle()?.as_ns().max(self.rtt_ns.loaded.map_or(0, |loaded| 5 * loaded.answers().p50 / 4));
        let (from, until) = (i64::try_from(from_ns + rtt).ok()?, i64::try_from(until_ns).ok()?);
        let sent = self
            .probes
            .as_ref()?
            .points
            .iter()
            .filter(|p| p.counts_from_ns() >= from && p.counts_from_ns() + 2 * (rtt as i64) < until);
        let answered =
            |p: &ProbePoint| p.rtt_ns().is_some_and(|rtt| p.counts_from_ns() + (rtt as i64) < until);
        Some((sent.clone().filter(|p| answered(p)).count(), sent.count()))
    }
}

/// With fewer other losses, the first does not stand out.
const OTHERS: usize = 3;

/// Losses after slow start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SettledLosses {
    /// Window reductions of the sender for these losses.
    pub reductions: usize,
    /// Segments delivered in that time.
    pub delivered: u64,
    /// Retransmitted segments / delivered ones.
    pub share: f64,
}

/// The events in which the sender reduced its window for losses.
fn reductions(episodes: &[LossEpisode]) -> impl Iterator<Item = LossEpisode> {
    episodes.iter().copied().filter(|e| e.kind != EpisodeKind::Reduced && e.unacked > 0)
}

/// Whether the first loss was so large that slow start must have caused it, although the sender had just left it: HyStart (RFC 9406) leaves
/// slow start when the round trip grows, and can still be far above a threshold not met yet.
fn overshot_at_first(first: &LossEpisode) -> bool {
    /// Segments, and their share of those in flight.
    const COST: (u64, f64) = (10, 0.5);
    first.retransmits >= COST.0 && first.retransmits as f64 >= COST.1 * f64::from(first.unacked)
}

/// Merges losses that follow within a few round trips of the end of another: after a recovery the sender sends in bursts,
/// which a short queue drops again.
fn events(episodes: &[LossEpisode]) -> Vec<LossEpisode> {
    const ROUND_TRIPS: u64 = 3;
    let mut all: Vec<LossEpisode> = Vec::new();
    for episode in reductions(episodes) {
        match all.last_mut() {
            Some(last) if episode.at_ns < last.at_ns + last.took_ns + ROUND_TRIPS * last.srtt_ns => {
                last.took_ns = (episode.at_ns + episode.took_ns).saturating_sub(last.at_ns);
                last.retransmits += episode.retransmits;
                last.kind = last.kind.max(episode.kind);
            }
            _ => all.push(episode),
        }
    }
    all
}

/// A period in which no probe was answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Silence {
    /// From the first probe to the last.
    pub took: Nanos,
    /// Share of the probes at other times that were not answered.
    pub others: f64,
}

/// A period in which nothing arrived.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gap {
    /// Its duration.
    pub took: Nanos,
    /// Its share of the whole time.
    pub share: f64,
    /// Answered and all probes of this period, of those that could have been answered; `None` without a series of them.
    pub probes: Option<(usize, usize)>,
    /// The longest run of unanswered probes in this period.
    pub silence: Option<Silence>,
    /// Segments retransmitted in this period, by the sender's samples.
    pub retransmitted: u64,
}
