//! What experiments after a test tell: losses that the load causes end below its rate, and a limit that all connections share is not passed by more of them.

use bdp_model::experiment::{Change, Experiment};
use bdp_model::facts::{Facts, Waits};
use bdp_model::finding::{Action, Confidence, Evidence, Fact, Finding, Limit, Place, Quantity, Remedy};
use bdp_model::threshold::QUEUE_SHARE;

use crate::observed;
use crate::rule::{part, threshold};

/// Of the losses that the test leads to expect of a slower flow: with so many they stay, with so few they have ended.
const STAY: f64 = 0.4;
const ENDED: f64 = 0.1;
/// Losses expected, of which none by chance is rare (1 in 30).
const EXPECTED: f64 = 3.5;
/// Goodput of more connections / that of the test: at the most where the limit is shared, and at the least where it is each one's.
const SHARED: f64 = 1.12;
const EACH: f64 = 1.4;
/// A slower flow reaches this part of its rate at least, or something else has changed.
const KEPT: f64 = 0.85;
/// Round trips beside a flow below the rate of the path are this little longer than idle ones / the least round trip: a longer queue is of others.
const EMPTY: f64 = 0.15;

/// What more is known of the first finding by experiments, and which one stands in its stead if they deny it.
pub fn decide(facts: &Facts, mut findings: Vec<Finding>) -> Vec<Finding> {
    if facts.experiments.is_empty()
        || !matches!(part::largest(facts).map(|part| part.0), None | Some(Waits::Path | Waits::Unknown))
    {
        return findings;
    }
    let Some(first) = findings.first().cloned() else { return findings };
    let slower = Slower::of(facts);
    let more = More::of(facts);
    let decided = by_losses(facts, &first, slower.as_ref(), more.as_ref())
        .or_else(|| by_streams(facts, &first, more.as_ref()))
        .unwrap_or(first);
    let seen = slower.into_iter().map(|slower| slower.evidence);
    let decided = decided.evidence(seen.chain(more.into_iter().map(|more| more.evidence)));
    findings.retain(|finding| finding.limit != decided.limit);
    if let Some(place) = findings.first_mut().filter(|finding| finding.limit == Limit::Unknown) {
        *place = decided;
        return findings;
    }
    // What was first is denied, and is none beside.
    if !findings.is_empty() && findings[0].confidence < Confidence::High && is_denied(&findings[0], &decided)
    {
        findings.remove(0);
    }
    findings.insert(0, decided);
    findings
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

/// A flow that was held below what the test reached.
struct Slower {
    losses: Losses,
    /// Whether the path had no queue meanwhile.
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
        let (experiment, rate_bps) = facts.experiments.iter().find_map(|e| match e.change {
            Change::Paced { rate_bps } => Some((e, rate_bps)),
            Change::Streams { .. } => None,
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
        let evidence = Evidence::count(Fact::LossesWhilePaced, experiment.loss_events)
            .with(Quantity::rate(rate_bps))
            .with(Quantity { value: expected, ..Quantity::count(0) });
        Some(Self { losses, is_empty, evidence: evidence.named(&facts.congestion_control) })
    }
}

/// More connections than the test had.
struct More {
    /// Their goodput / that of the test.
    gain: f64,
    evidence: Evidence,
}

impl More {
    fn of(facts: &Facts) -> Option<Self> {
        let is_more = |e: &&Experiment| matches!(e.change, Change::Streams { .. });
        let experiment = facts.experiments.iter().find(is_more)?;
        let Change::Streams { streams } = experiment.change else { return None };
        let gain = experiment.goodput_bps / facts.goodput_bps;
        let evidence = Evidence::share(Fact::MoreStreams, gain)
            .with(Quantity::rate(experiment.goodput_bps))
            .with(Quantity::count(u64::from(streams)));
        Some(Self { gain, evidence })
    }
}

/// What losses below the rate of the test say of those of the test.
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
        // A sender that goes by a model loses nothing of its rate by them; a queue of others drops at any rate of this flow.
        Losses::Stay if facts.is_paced() || !slower.is_empty => None,
        Losses::Stay => {
            let confidence = match more {
                Some(more) if more.gain >= EACH => Confidence::High,
                Some(more) if more.gain < SHARED => return None,
                _ => Confidence::Medium,
            };
            if first.limit == Limit::RandomLoss {
                return Some(surer(first.clone(), confidence));
            }
            let share = facts.settled_losses().map(|settled| settled.share).or(facts.retransmitted_share())?;
            let finding = Finding::new(Limit::RandomLoss, Place::path(), confidence)
                .evidence([Evidence::share(Fact::RetransmittedShare, share)])
                .remedy(Remedy::new(Action::FindErrors));
            Some(finding)
        }
        Losses::Ended => match first.limit {
            Limit::CongestionLoss | Limit::ShallowQueue | Limit::Policer => {
                Some(surer(first.clone(), Confidence::Medium))
            }
            Limit::RandomLoss | Limit::Unknown => {
                let of_load = threshold::judge(facts).or_else(|| of_load(facts, more));
                of_load.map(|finding| lower(finding, Confidence::Medium))
            }
            _ => None,
        },
    }
}

/// Losses that the load causes, if no more is known: with a queue the path is full, without one something drops what exceeds a rate.
fn of_load(facts: &Facts, more: Option<&More>) -> Option<Finding> {
    let is_shared = more.is_some_and(|more| more.gain < SHARED);
    match facts.standing_queue() {
        Some(queue) if is_shared => Some(
            Finding::new(Limit::PathRate, Place::path(), Confidence::Medium).evidence([observed::queue(
                facts,
                queue,
                QUEUE_SHARE,
            )]),
        ),
        _ => None,
    }
}

/// What more connections say of a limit without losses, or beside them.
fn by_streams(facts: &Facts, first: &Finding, more: Option<&More>) -> Option<Finding> {
    let more = more?;
    let is_queued = facts.standing_queue().is_some();
    match first.limit {
        Limit::PathRate if more.gain < SHARED => Some(surer(first.clone(), Confidence::High)),
        // One connection among others has its share of the path, and four have four shares.
        Limit::PathRate | Limit::CrossTraffic if more.gain >= EACH && is_queued => {
            let finding = match first.limit {
                Limit::CrossTraffic => first.clone(),
                _ => Finding {
                    limit: Limit::CrossTraffic,
                    remedy: Some(Remedy::new(Action::FindTraffic)),
                    missing: Vec::new(),
                    ..first.clone()
                },
            };
            Some(surer(finding, Confidence::Medium))
        }
        Limit::Unknown if more.gain < SHARED && is_queued => of_load(facts, Some(more)),
        _ => None,
    }
}

fn surer(finding: Finding, at_least: Confidence) -> Finding {
    Finding { confidence: finding.confidence.max(at_least), ..finding }
}

fn lower(finding: Finding, at_most: Confidence) -> Finding {
    Finding { confidence: finding.confidence.min(at_most), ..finding }
}
