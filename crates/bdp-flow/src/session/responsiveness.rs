//! Working conditions: connections are added until goodput and responsiveness are stable, with separate probe
//! connections meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bdp_model::flow::method::EndReason;
use bdp_model::measurement::responsiveness::{
    AVERAGED, ForeignProbe, INTERVAL_NS, MOST_CONNECTIONS, Responsiveness, WorkingLoad,
};
use bdp_model::measurement::{Direction, DirectionResult, MeasureRequest};
use bdp_model::probes::ProbeTimes;
use bdp_model::record::ReceiverSample;
use bdp_sys::{clock, process};
use bdp_wire::control::{Mark, Received, Sent};

use super::error::{Result, SessionError};
use super::peer::{ForeignProber, Outcome, Polled, Probes};
use super::progress::Stage;
use super::reporter::Goodput;
use super::round::Rounds;
use crate::lock::lock;
use crate::pause::wait_until;
use crate::worker::Stoppable;

/// Mean interval of foreign probes, if the path is fast enough.
const PROBE_INTERVAL_NS: u64 = 100_000_000;
/// Bits of a foreign probe and its answer, handshake and headers included, with room to spare.
const PROBE_BITS: f64 = 8_000.0;
/// Share of the goodput that probes may take (the draft's PTC).
const PROBE_SHARE: f64 = 0.05;
/// Most foreign probes in flight; beyond, turns are skipped.
const MOST_UNDER_WAY: usize = 16;
/// How long a foreign probe may take.
const PROBE_PATIENCE: Duration = Duration::from_secs(5);
/// How long foreign probes run before the load.
const IDLE: Duration = Duration::from_secs(1);
/// Before its flows' time is over the load is ended, so that all end alike.
const MARGIN: Duration = Duration::from_millis(500);

/// Measures one direction.
pub(super) fn run(
    rounds: &mut Rounds<'_, '_>,
    request: &MeasureRequest,
    way: Direction,
) -> Result<Vec<DirectionResult>> {
    let prober = rounds.peer.foreign_prober(request).ok_or_else(|| {
        let text = "responsiveness needs bdp at the other end; start 'bdp serve' there";
        SessionError::Request(text.to_owned())
    })?;
    let foreign = Foreign::start(prober)?;
    wait(rounds, IDLE)?;
    let begun_ns = clock::monotonic_ns();
    let connections = request.spec.streams;
    let mut load = Load { tracker: WorkingLoad::default(), begun_ns, of_load: Vec::new(), connections };
    let outcomes = load.carry_out(rounds, request, way, &foreign)?;
    let was_cut_short = rounds.context.reporter.concludes;
    let probes = foreign.end(begun_ns);
    let within = load.tracker.averaged_ns();
    let counted = [within.start, within.end].map(|at| begun_ns.saturating_add_signed(at));
    if rounds.peer.await_probes(counted[1], &mut rounds.context).is_err() {
        rounds.context.reporter.concludes = true;
    }
    let of_load = match way {
        Direction::To => {
            load.of_load.iter().filter(|(at, _)| within.contains(at)).map(|&(_, ns)| ns).collect()
        }
        Direction::From => far_round_trips(&outcomes, (within.end - within.start) as u64),
    };
    let responsiveness = load.tracker.conclude(probes, of_load);
    let merged = merge(outcomes, counted[0]..counted[1]).ok_or(SessionError::Cancelled)?;
    let results = rounds.put_together(request, vec![merged], was_cut_short)?;
    // What the receiver read: acknowledgements come in bursts if segments are lost.
    let add = |result: DirectionResult| {
        let goodput_bps = result.goodput_bps;
        let responsiveness = Some(Responsiveness { goodput_bps, ..responsiveness.clone() });
        DirectionResult { responsiveness, ..result }
    };
    Ok(results.into_iter().map(add).collect())
}

fn wait(rounds: &mut Rounds<'_, '_>, time: Duration) -> Result<()> {
    let since = Instant::now();
    while since.elapsed() < time {
        std::thread::sleep(time.saturating_sub(since.elapsed()).min(Duration::from_millis(50)));
        rounds.context.reporter.check_cancel()?;
    }
    Ok(())
}

/// The load of a direction.
struct Load {
    tracker: WorkingLoad,
    begun_ns: u64,
    /// Round trips estimated by the local TCP, with their times since the beginning.
    of_load: Vec<(i64, u64)>,
    connections: u32,
}

impl Load {
    fn carry_out(
        &mut self,
        rounds: &mut Rounds<'_, '_>,
        request: &MeasureRequest,
        way: Direction,
        foreign: &Foreign,
    ) -> Result<Vec<Outcome>> {
        rounds.peer.begin(request, &[way], &mut rounds.context)?;
        let (since, mut reported, mut began) = (Instant::now(), Instant::now(), clock::monotonic_ns());
        let limit = request.spec.duration.to_duration().saturating_sub(MARGIN);
        let (mut is_ending, mut grows, mut bytes) = (false, true, 0);
        while rounds.peer.poll(request, &mut rounds.context)? == Polled::Running {
            if reported.elapsed() >= rounds.context.reporter.tick {
                let span = reported.elapsed();
                reported = Instant::now();
                let moved = rounds.peer.moved();
                bytes += moved.iter().map(|(_, moved)| moved.bytes).sum::<u64>();
                self.read_round_trips(rounds);
                let goodput = Goodput::of(span, moved, rounds.peer.sender_infos());
                let rtt = rounds.peer.probes().and_then(Probes::last_ns);
                let stage = Stage::Direction(way);
                rounds.context.reporter.show(stage, since.elapsed(), request.spec.duration, goodput, rtt);
            }
            let now = clock::monotonic_ns();
            if !is_ending && now - began >= INTERVAL_NS {
                self.note((now, now - began), std::mem::take(&mut bytes), foreign);
                began = now;
                is_ending = self.tracker.is_done() || since.elapsed() >= limit;
                if is_ending {
                    foreign.launcher.stop();
                    rounds.peer.interrupt(&mut rounds.context)?;
                } else if grows && self.connections < MOST_CONNECTIONS {
                    grows = rounds.peer.grow(request, way, &mut rounds.context)?;
                    self.connections += if grows { request.spec.streams } else { 0 };
                }
            }
            match rounds.context.reporter.begins_to_conclude(rounds.peer.has_begun()) {
                Ok(true) if !is_ending => {
                    is_ending = true;
                    rounds.peer.interrupt(&mut rounds.context)?;
                }
                Ok(_) => {}
                Err(cancelled) => {
                    rounds.peer.abandon();
                    return Err(cancelled);
                }
            }
        }
        let rest = Goodput::of(reported.elapsed(), rounds.peer.moved(), Vec::new());
        let rtt = rounds.peer.probes().and_then(Probes::last_ns);
        let over = since.elapsed();
        let outcomes = rounds.peer.finish(request, &mut rounds.context)?;
        rounds.context.reporter.show(
            Stage::Direction(way),
            over,
            request.spec.duration,
            rest.last(Vec::new()),
            rtt,
        );
        for outcome in &outcomes {
            let Outcome { way, sent, .. } = outcome;
            rounds.moved.add(*way, outcome.moved_bytes(), sent.retransmits.unwrap_or(0), sent.mss);
        }
        Ok(outcomes)
    }

    fn read_round_trips(&mut self, rounds: &Rounds<'_, '_>) {
        let at = (clock::monotonic_ns() - self.begun_ns) as i64;
        let infos = rounds.peer.sender_infos();
        let rtts = infos.iter().flat_map(|(_, infos)| infos).filter_map(|info| info.rtt_ns);
        self.of_load.extend(rtts.filter(|&ns| ns > 0).map(|ns| (at, ns)));
    }

    fn note(&mut self, (now, length_ns): (u64, u64), bytes: u64, foreign: &Foreign) {
        let at_ns = now - self.begun_ns;
        let probes = foreign.so_far(self.begun_ns);
        // Those of the intervals that are averaged from now on.
        let from = at_ns.saturating_sub(AVERAGED as u64 * length_ns) as i64;
        let mut of_load: Vec<u64> =
            self.of_load.iter().filter(|&&(at, _)| at >= from).map(|&(_, ns)| ns).collect();
        self.tracker.note((at_ns, length_ns), bytes, self.connections, &probes, &mut of_load);
        foreign.keep_below(self.tracker.goodput_bps());
    }
}

/// Returns the remote TCP's estimates, in its flows' last `length_ns`.
fn far_round_trips(outcomes: &[Outcome], length_ns: u64) -> Vec<u64> {
    let of = |outcome: &Outcome| -> Vec<u64> {
        let samples = &outcome.sent.samples;
        let last = samples.last().map_or(0, |sample| sample.at_ns);
        let late = samples.iter().filter(|sample| sample.at_ns.saturating_add(length_ns) >= last);
        late.filter_map(|sample| sample.srtt_ns).filter(|&ns| ns > 0).collect()
    };
    outcomes.iter().flat_map(of).collect()
}

/// Foreign probes, each on a thread of its own.
struct Foreign {
    shared: Arc<Shared>,
    launcher: Stoppable<()>,
}

#[derive(Default)]
struct Shared {
    /// When each probe began, monotonic, and its times.
    probes: Mutex<Vec<(u64, ForeignProbe)>>,
    under_way: AtomicUsize,
    interval_ns: AtomicU64,
}

impl Foreign {
    fn start(prober: Arc<dyn ForeignProber>) -> Result<Self> {
        let shared = Arc::<Shared>::default();
        shared.interval_ns.store(PROBE_INTERVAL_NS, Ordering::Relaxed);
        let on_thread = Arc::clone(&shared);
        let launcher = Stoppable::start(move |stop| on_thread.launch(&prober, stop))?;
        Ok(Self { shared, launcher })
    }

    /// All that are over, since a moment.
    fn so_far(&self, since_ns: u64) -> Vec<ForeignProbe> {
        let at = |began: u64| began.wrapping_sub(since_ns) as i64;
        let mut all: Vec<ForeignProbe> = lock(&self.shared.probes)
            .iter()
            .map(|&(began, probe)| ForeignProbe { at_ns: at(began), ..probe })
            .collect();
        all.sort_by_key(|probe| probe.at_ns);
        all
    }

    /// Has them take no more than their share of a goodput.
    fn keep_below(&self, goodput_bps: f64) {
        let least = PROBE_BITS / (PROBE_SHARE * goodput_bps.max(1.0)) * 1e9;
        self.shared.interval_ns.store((least as u64).max(PROBE_INTERVAL_NS), Ordering::Relaxed);
    }

    /// Ends the probes; those in progress are discarded.
    fn end(mut self, since_ns: u64) -> Vec<ForeignProbe> {
        self.launcher.stop();
        self.launcher.join();
        self.so_far(since_ns)
    }
}

impl Shared {
    fn launch(self: &Arc<Self>, prober: &Arc<dyn ForeignProber>, stop: &Arc<AtomicBool>) {
        process::sharpen_timers();
        let seed = clock::unix_ns();
        let mut turn_ns = clock::monotonic_ns();
        for number in 0.. {
            // An interval that grows moves all turns after it.
            let interval_ns = self.interval_ns.load(Ordering::Relaxed);
            let within =
                ProbeTimes::new(seed, interval_ns).due_ns(number) - number.saturating_mul(interval_ns);
            if !wait_until(turn_ns + within, stop) {
                return;
            }
            turn_ns += interval_ns;
            let began = clock::monotonic_ns();
            if self.under_way.load(Ordering::Relaxed) >= MOST_UNDER_WAY {
                lock(&self.probes).push((began, ForeignProbe::default()));
                continue;
            }
            self.under_way.fetch_add(1, Ordering::Relaxed);
            let (shared, prober, stop) = (Arc::clone(self), Arc::clone(prober), Arc::clone(stop));
            let started = crate::worker::start(move || {
                let (tcp_ns, exchange_ns) = prober.probe(PROBE_PATIENCE, &stop);
                // One that the end of the load cut off is none.
                if exchange_ns.is_some() || !stop.load(Ordering::Relaxed) {
                    lock(&shared.probes).push((began, ForeignProbe { at_ns: 0, tcp_ns, exchange_ns }));
                }
                shared.under_way.fetch_sub(1, Ordering::Relaxed);
            });
            if started.is_err() {
                self.under_way.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

/// Merges the outcomes of the flows of a load, counted within a time span of the local clock. Figures of a first
/// stream are those of the first flow.
fn merge(outcomes: Vec<Outcome>, counted: std::ops::Range<u64>) -> Option<Outcome> {
    let first = outcomes.first()?.begun_at_ns?;
    // One clock, the receiver's, has seen the first byte of each.
    let arrived: Vec<u64> =
        outcomes.iter().map(|outcome| outcome.received.first_byte_at_ns).collect::<Option<_>>()?;
    let begun: Vec<u64> =
        arrived.iter().map(|&at| first.saturating_add(at).saturating_sub(arrived[0])).collect();
    let bytes_at = |at_ns: u64| -> u64 {
        let of = |(outcome, &begun): (&Outcome, &u64)| {
            bytes_at(&outcome.received.samples, at_ns.checked_sub(begun))
        };
        outcomes.iter().zip(&begun).map(of).sum()
    };
    let samples: Vec<ReceiverSample> = outcomes[0]
        .received
        .samples
        .iter()
        .filter(|sample| first + sample.at_ns <= counted.end)
        .map(|sample| ReceiverSample { bytes: bytes_at(first + sample.at_ns), ..*sample })
        .collect();
    let counted_from = Mark { at_ns: counted.start.saturating_sub(first), bytes: bytes_at(counted.start) };
    let sum =
        |of: fn(&Sent) -> Option<u64>| outcomes.iter().map(|outcome| of(&outcome.sent)).sum::<Option<u64>>();
    let (retransmits, needless_retransmits) =
        (sum(|sent| sent.retransmits), sum(|sent| sent.needless_retransmits));
    let sent_bytes = outcomes.iter().map(|outcome| outcome.sent.bytes).sum();
    let end_bytes = bytes_at(counted.end);
    let mut outcomes = outcomes.into_iter();
    let outcome = outcomes.next()?;
    let caveats = outcome.caveats.iter().cloned().chain(outcomes.flat_map(|other| other.caveats)).collect();
    Some(Outcome {
        received: Received {
            bytes: end_bytes,
            duration_ns: counted.end.saturating_sub(first),
            counted_from,
            // Each flow counted its streams from its own beginning.
            stream_bytes: Vec::new(),
            samples,
            ended: EndReason::Duration,
            ..outcome.received
        },
        sent: Sent { bytes: sent_bytes, retransmits, needless_retransmits, ..outcome.sent },
        caveats,
        ..outcome
    })
}

/// Bytes by a moment of a flow, between two samples in proportion; none before its beginning.
fn bytes_at(samples: &[ReceiverSample], at_ns: Option<u64>) -> u64 {
    let Some(at_ns) = at_ns else { return 0 };
    let next = samples.partition_point(|sample| sample.at_ns < at_ns);
    let before = next.checked_sub(1).map_or((0, 0), |i| (samples[i].at_ns, samples[i].bytes));
    let Some(after) = samples.get(next) else { return before.1 };
    let (span, more) = (after.at_ns - before.0, after.bytes.saturating_sub(before.1));
    before.1 + (u128::from(more) * u128::from(at_ns - before.0) / u128::from(span.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A flow that began this many seconds after the first, with a byte for each nanosecond since.
    fn flow(after: u64, until: u64) -> Outcome {
        let samples = (0..=until - after)
            .map(|s| ReceiverSample { at_ns: s * SECOND, bytes: s * SECOND, ..ReceiverSample::default() })
            .collect();
        let (bytes, first_byte_at_ns) = ((until - after) * SECOND, Some((7 + after) * SECOND));
        let received = Received { samples, bytes, first_byte_at_ns, ..Received::default() };
        let sent = Sent { bytes: received.bytes, retransmits: Some(1), ..Sent::default() };
        Outcome { begun_at_ns: Some((100 + after) * SECOND), ..Outcome::of(Direction::To, received, sent) }
    }

    #[test]
    fn flows_that_began_one_after_the_other_are_one() {
        let merged =
            merge(vec![flow(0, 10), flow(2, 10), flow(4, 10)], 106 * SECOND..109 * SECOND + SECOND / 2)
                .unwrap();
        assert_eq!(merged.received.counted_from, Mark { at_ns: 6 * SECOND, bytes: 12 * SECOND });
        assert_eq!(merged.received.bytes, (9 + 7 + 5) * SECOND + 3 * SECOND / 2);
        assert_eq!(merged.received.duration_ns, 9 * SECOND + SECOND / 2);
        assert_eq!(merged.received.goodput_bps(), 24e9);
        assert_eq!(
            merged.received.samples.iter().map(|s| s.bytes / SECOND).collect::<Vec<_>>(),
            [0, 1, 2, 4, 6, 9, 12, 15, 18, 21]
        );
        assert_eq!((merged.sent.bytes, merged.sent.retransmits), (24 * SECOND, Some(3)));
        assert!(merge(vec![], 0..1).is_none());
    }

    #[test]
    fn round_trips_of_the_far_end_are_those_of_its_last_seconds() {
        let sample = |s: u64, ms: u64| bdp_model::record::SenderSample {
            at_ns: s * SECOND,
            srtt_ns: Some(ms * 1_000_000),
            ..Default::default()
        };
        let mut outcome = flow(0, 1);
        outcome.sent.samples = vec![sample(1, 10), sample(5, 20), sample(7, 30)];
        assert_eq!(far_round_trips(&[outcome], 2 * SECOND), [20_000_000, 30_000_000]);
    }
}
