//! What experiments after a test decide: losses caused by the load end below its rate; a limit shared by all connections stays with more of them.

use bdp_model::facts::Facts;
use bdp_model::finding::fact::{self, Bps, Count};
use bdp_model::finding::threshold::QUEUE_SHARE;
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Quantity, Remedy};
use bdp_model::measurement::experiment::{Burst, Change, Experiment};
use bdp_model::units::Nanos;

use crate::observed;
use crate::rule::{part, threshold};

/// Losses of a slower flow / those expected from the test: from this on they persist, below it they have ended.
const STAY: f64 = 0.4;
const ENDED: f64 = 0.1;
/// Smallest number of expected losses: seeing none by chance is rare (1 in 18).
const EXPECTED: f64 = 2.9;
/// Smallest share of its rate that a slower flow reaches, and of the test's goodput that more connections reach; below it something else has changed.
const KEPT: f64 = 0.85;
/// Largest round trip added by a flow below the path's rate / minimum round trip: a longer queue is other traffic's.
const EMPTY: f64 = 0.15;
/// Largest goodput of more connections / that of the test if they certainly gain nothing, and if the test used all of the path.
const NO_MORE: f64 = 1.05;
const FILLED: f64 = 1.08;
/// The largest ratio if all connections share the limit, and the smallest if each has its own.
const SHARED: f64 = 1.15;
const EACH: f64 = 1.2;
/// A delay of fewer segments than this, at the connections' rate, is their own and not a queue.
const SEGMENTS: f64 = 1.5;
/// Queue / minimum round trip from which it is not short.
const DEEP: f64 = 0.1;
/// Largest addition to their own round trips if they do not wait: this share of the minimum round trip, within these bounds. CoDel allows 5 ms.
const OWN: (f64, Nanos, Nanos) = (0.05, Nanos::millis(1), Nanos::millis(2));
/// Smallest share that more connections retransmit if the path drops what exceeds its rate.
const DROPPED: f64 = 0.003;
/// Smallest rate of a burst / rate of the connections.
const FASTER: f64 = 2.0;
/// Delay added by a burst / minimum round trip: up to this, a queue that overflows is short.
const SHORT: f64 = 0.18;
const LONG: f64 = 0.2;
/// Smallest share of a burst that is lost if it overflows a queue.
const OVERFLOWN: f64 = 0.1;
/// Smallest arrival rate of a burst / rate of the connections if a token bucket lets it pass.
const FAR_ABOVE: f64 = 1.5;
/// Smallest number of losses after slow start: a single one may be slow start's own.
const LOSSES_MIN: usize = 2;

/// Applies the experiments to the findings: a first finding that they refute is replaced.
pub fn decide(facts: &Facts, mut findings: Vec<Finding>) -> Vec<Finding> {
    if facts.experiments.is_empty() || !part::may_be_path(facts) {
        return findings;
    }
    let Some(first) = findings.first().cloned() else { return findings };
    let slower = Slower::of(facts);
    let more = More::of(facts);
    let burst = Bursts::of(facts);
    let mut decided = first.clone();
    decided = by_streams(facts, &decided, more.as_ref()).unwrap_or(decided);
    decided = by_burst(facts, &decided, burst.as_ref(), more.as_ref()).unwrap_or(decided);
    decided = by_losses(facts, &decided, slower.as_ref(), more.as_ref()).unwrap_or(decided);
    let seen = [slower.map(|s| s.evidence), burst.map(|b| b.evidence), more.map(|m| m.evidence)];
    let decided = decided.evidence(seen.into_iter().flatten());
    findings.retain(|finding| finding.limit != decided.limit);
    if let Some(place) = findings.first_mut().filter(|finding| finding.limit == Limit::Unknown) {
        *place = decided;
        return findings;
    }
    // A refuted finding is dropped, not listed next to its replacement.
    if findings.first().is_some_and(|first| is_denied(first, &decided)) {
        findings.remove(0);
    }
    findings.insert(0, decided);
    findings
}

/// Experiments during which no host paused.
fn evidence(facts: &Facts) -> impl Iterator<Item = &Experiment> {
    facts.experiments.iter().filter(|experiment| experiment.host_paused_ns.is_none())
}

/// Whether two findings explain the same losses.
fn is_denied(before: &Finding, now: &Finding) -> bool {
    let of_losses = |limit| {
        matches!(
            limit,
            Limit::RandomLoss
                | Limit::CongestionLoss
                | Limit::ShallowQueue
                | Limit::Policer
                | Limit::PathRate
                | Limit::CrossTraffic
                | Limit::PathChanged
        )
    };
    of_losses(before.limit) && of_losses(now.limit)
}

/// A flow paced below the goodput of the test.
struct Slower {
    losses: Losses,
    /// Whether the path had no queue during it.
    is_empty: bool,
    evidence: Evidence,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Losses {
    Stay,
    Ended,
    Unclear,
}

impl Slower {
    fn of(facts: &Facts) -> Option<Self> {
        let (experiment, rate_bps) = evidence(facts).find_map(|e| match e.change {
            Change::Paced { rate_bps } => Some((e, rate_bps)),
            Change::Streams { .. } | Change::Burst { .. } => None,
        })?;
        let settled = facts.loss_picture()?.settled as f64;
        let sent = experiment.bytes as f64 / facts.bytes.max(1) as f64;
        let expected = settled * sent;
        let met = experiment.loss_events as f64;
        let losses = match () {
            () if met >= 2.0 && met >= STAY * expected => Losses::Stay,
            () if experiment.goodput_bps < KEPT * rate_bps => Losses::Unclear,
            () if expected >= EXPECTED && met <= ENDED * expected => Losses::Ended,
            () => Losses::Unclear,
        };
        let least = facts.rtt_least()?.as_secs_f64() * 1e9;
        let is_empty = experiment.rtt_added_ns.is_none_or(|added| added as f64 <= EMPTY * least);
        let evidence = Evidence::count(
            fact::LossesWhilePaced { rate: Bps(rate_bps), expected: Count(expected) },
            experiment.loss_events,
        );
        Some(Self { losses, is_empty, evidence: evidence.named(&facts.congestion_control) })
    }
}

/// More connections than the test had.
struct More {
    /// Their goodput / that of the test.
    gain: f64,
    queue: Depth,
    /// Whether their own segments did not wait either, as they would in a queue per flow.
    waited_nowhere: bool,
    /// Retransmitted segments / segments sent.
    lost: f64,
    evidence: Evidence,
}

/// The queue built by more connections.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    None,
    Short,
    Deep,
    Unseen,
}

impl More {
    fn of(facts: &Facts) -> Option<Self> {
        let is_more = |e: &&Experiment| matches!(e.change, Change::Streams { .. });
        let experiment = evidence(facts).find(is_more)?;
        let Change::Streams { streams } = experiment.change else { return None };
        let gain = experiment.goodput_bps / facts.goodput_bps;
        let mss = facts.mss_bytes? as f64;
        let segment_ns = mss * 8e9 / experiment.goodput_bps.max(1.0);
        let least = facts.rtt_least()?.0 as f64;
        let queue = match experiment.rtt_added_ns {
            None => Depth::Unseen,
            Some(added) if added as f64 >= DEEP * least => Depth::Deep,
            Some(added) if added as f64 >= SEGMENTS * segment_ns => Depth::Short,
            Some(_) => Depth::None,
        };
        let added = experiment.rtt_added_ns.map(Nanos);
        let evidence = Evidence::share(
            fact::MoreStreams {
                goodput: Bps(experiment.goodput_bps),
                streams: u64::from(streams),
                queue: added,
            },
            gain,
        );
        let lost = experiment.retransmitted_share(mss as u64).unwrap_or(0.0);
        let bound = (OWN.0 * least).clamp(OWN.1.0 as f64, OWN.2.0 as f64);
        let waited_nowhere = experiment.own_rtt_added_ns.is_some_and(|added| added as f64 <= bound);
        Some(Self { gain, queue, waited_nowhere, lost, evidence })
    }
}

/// A burst of datagrams and its queue.
struct Bursts {
    queue: Room,
    /// Their arrival rate / goodput of the test, or of more connections if that is higher.
    passed: f64,
    evidence: Evidence,
}

/// How much of a burst fits in the path's queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    Short,
    Enough,
    Unclear,
}

impl Bursts {
    fn of(facts: &Facts) -> Option<Self> {
        let burst: Burst = evidence(facts).find_map(|e| e.burst)?;
        let least = facts.rtt_least()?;
        let goodput =
            evidence(facts).filter(|e| matches!(e.change, Change::Streams { .. })).map(|e| e.goodput_bps);
        let goodput = goodput.fold(facts.goodput_bps, f64::max);
        let delay = burst.delay_added_ns as f64 / least.as_ns() as f64;
        let lost = burst.lost as f64 / burst.sent.max(1) as f64;
        let queue = match () {
            // A burst no faster than the path builds no queue.
            () if burst.sent_bps < FASTER * goodput => Room::Unclear,
            () if delay <= SHORT && lost >= OVERFLOWN => Room::Short,
            () if delay >= LONG => Room::Enough,
            () => Room::Unclear,
        };
        let arrived_bps = burst.arrived_bps();
        let evidence = Evidence::time(
            fact::BurstDelay {
                round_trip: least,
                sent: burst.sent,
                lost: burst.lost,
                arrived: Bps(arrived_bps),
            },
            Nanos(burst.delay_added_ns),
        );
        Some(Self { queue, passed: arrived_bps / goodput.max(1.0), evidence })
    }
}

/// What a burst shows about a limit found by losses.
fn by_burst(facts: &Facts, first: &Finding, burst: Option<&Bursts>, more: Option<&More>) -> Option<Finding> {
    let (burst, more) = (burst?, more?);
    match (first.limit, burst.queue) {
        // It overflows a queue that more connections avoid: a policer would pass no more.
        (Limit::ShallowQueue | Limit::Unknown, Room::Short) if more.gain >= SHARED => {
            shallow_queue(facts, first)
        }
        // Losses of a sender that fills no queue, on a path that has one.
        (Limit::ShallowQueue, Room::Enough) if more.gain >= EACH && !facts.is_paced() => {
            random_loss(facts, first, Confidence::Medium)
        }
        (Limit::RandomLoss, Room::Enough) if more.gain >= EACH => {
            Some(surer(first.clone(), Confidence::High))
        }
        // It passes far above the rate shared by all connections: no link is that slow. A burst that overflows a short queue does so, too.
        (Limit::Policer | Limit::PathRate | Limit::Unknown, Room::Enough | Room::Unclear)
            if burst.passed >= FAR_ABOVE
                && more.queue != Depth::Deep
                && more.gain < SHARED
                && more.lost >= DROPPED =>
        {
            policer(facts, first)
        }
        _ => None,
    }
}

/// A queue that overflows before a window has filled the path.
fn shallow_queue(facts: &Facts, first: &Finding) -> Option<Finding> {
    if first.limit == Limit::ShallowQueue {
        return Some(surer(first.clone(), Confidence::High));
    }
    let finding = Finding::new(Limit::ShallowQueue, Place::path(), Confidence::Medium)
        .evidence(observed::retransmitted(facts))
        .remedy(Remedy::new(Action::DeepenQueue));
    Some(finding)
}

/// What losses below the goodput of the test show about those of the test.
fn by_losses(
    facts: &Facts,
    first: &Finding,
    slower: Option<&Slower>,
    more: Option<&More>,
) -> Option<Finding> {
    let slower = slower?;
    match slower.losses {
        Losses::Unclear => None,
        Losses::Stay if first.limit == Limit::Reordering => Some(surer(first.clone(), Confidence::High)),
        // They do not slow down a model-based sender; and a queue filled by other traffic drops at any rate of this flow.
        Losses::Stay if facts.is_paced() || !slower.is_empty => None,
        Losses::Stay => {
            let confidence = match more {
                Some(more) if more.gain >= EACH => Confidence::High,
                Some(more) if more.gain < SHARED => return None,
                _ => Confidence::Medium,
            };
            random_loss(facts, first, confidence)
        }
        Losses::Ended => match first.limit {
            Limit::CongestionLoss | Limit::ShallowQueue | Limit::Policer => {
                Some(surer(first.clone(), Confidence::Medium))
            }
            Limit::RandomLoss | Limit::Unknown => {
                threshold::judge(facts).map(|finding| lower(finding, Confidence::Medium))
            }
            _ => None,
        },
    }
}

/// Losses that do not depend on the load.
fn random_loss(facts: &Facts, first: &Finding, confidence: Confidence) -> Option<Finding> {
    if first.limit == Limit::RandomLoss {
        return Some(surer(first.clone(), confidence));
    }
    let share = facts.settled_losses().map(|settled| settled.share).or(facts.retransmitted_share())?;
    let finding = Finding::new(Limit::RandomLoss, Place::path(), confidence)
        .evidence([Evidence::share(fact::RetransmittedShare, share)])
        .remedy(Remedy::new(Action::FindErrors));
    Some(finding)
}

/// The test used all of the path's capacity.
fn path_rate(facts: &Facts, first: &Finding, more: &More) -> Finding {
    if first.limit == Limit::PathRate {
        let sure = if more.gain < NO_MORE { Confidence::High } else { Confidence::Medium };
        return surer(first.clone(), sure);
    }
    Finding::new(Limit::PathRate, Place::path(), Confidence::Medium)
        .evidence(facts.standing_queue().map(|queue| observed::queue(facts, queue, QUEUE_SHARE)))
        .missing(observed::nic_speed(facts))
}

/// The path drops what exceeds a rate, without a queue.
fn policer(facts: &Facts, first: &Finding) -> Option<Finding> {
    if first.limit == Limit::Policer {
        return Some(surer(first.clone(), Confidence::High));
    }
    let finding = Finding::new(Limit::Policer, Place::path(), Confidence::Medium)
        .evidence(observed::retransmitted(facts))
        .remedy(Remedy::new(Action::ShapeToRate).value(Quantity::rate(facts.goodput_bps)));
    Some(finding)
}

/// What more connections show about a limit.
fn by_streams(facts: &Facts, first: &Finding, more: Option<&More>) -> Option<Finding> {
    // Less goodput than in the test: the path has changed meanwhile.
    let more = more.filter(|more| more.gain >= KEPT)?;
    let lost = facts.loss_picture().is_some_and(|picture| {
        let had_queue = facts.rtt_least().is_none_or(|least| picture.queue.0 as f64 >= DEEP * least.0 as f64);
        // The path carries what it did before its rate seemed to fall: one loss without a queue explains that.
        picture.settled >= LOSSES_MIN
            || first.limit == Limit::PathChanged && picture.settled > 0 && !had_queue
    });
    let of_losses = matches!(
        first.limit,
        Limit::CongestionLoss | Limit::ShallowQueue | Limit::RandomLoss | Limit::PathChanged | Limit::Unknown
    );
    match (first.limit, more.queue) {
        (Limit::PathRate, Depth::Deep | Depth::Short) if more.gain < SHARED => {
            Some(path_rate(facts, first, more))
        }
        (_, Depth::Deep) if of_losses && more.gain < FILLED => Some(path_rate(facts, first, more)),
        (_, Depth::None)
            if more.waited_nowhere
                && more.gain < SHARED
                && more.lost >= DROPPED
                && (of_losses || matches!(first.limit, Limit::Policer | Limit::PathRate)) =>
        {
            policer(facts, first)
        }
        // With other traffic, one connection has one share of the path, and four have four.
        (Limit::PathRate | Limit::CrossTraffic, Depth::Deep)
            if more.gain >= EACH && facts.standing_queue().is_some() =>
        {
            Some(cross_traffic(first))
        }
        // They fill a queue that one connection never filled: its losses were not caused by that queue.
        (_, Depth::Deep)
            if of_losses
                && more.gain >= EACH
                && lost
                && facts.standing_queue().is_none()
                && !facts.is_paced() =>
        {
            random_loss(facts, first, Confidence::Medium)
        }
        _ => None,
    }
}

fn cross_traffic(first: &Finding) -> Finding {
    let finding = match first.limit {
        Limit::CrossTraffic => first.clone(),
        _ => Finding {
            limit: Limit::CrossTraffic,
            remedy: Some(Remedy::new(Action::FindTraffic)),
            missing: Vec::new(),
            ..first.clone()
        },
    };
    surer(finding, Confidence::Medium)
}

fn surer(finding: Finding, at_least: Confidence) -> Finding {
    Finding { confidence: finding.confidence.max(at_least), ..finding }
}

fn lower(finding: Finding, at_most: Confidence) -> Finding {
    Finding { confidence: finding.confidence.min(at_most), ..finding }
}
