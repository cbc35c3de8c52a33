//! A reverse path that loses or delays acknowledgements, so that data waits for them.

use bdp_model::facts::{Facts, TimeState};
use bdp_model::finding::fact::{self, Share};
use bdp_model::finding::threshold::{AT_PEAK, QUEUE_NOISE, QUEUE_SHARE};
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Remedy};
use bdp_model::units::Nanos;

/// Share of probes lost under load.
const LOST: f64 = 0.1;
/// Segments lost / probes lost: losses in the data's own direction affect both.
const DATA_LOST: f64 = 0.34;
/// If this share of the probes is lost on the reverse path, they say little about the queue on the forward path.
const LOST_MOST: f64 = 0.3;

/// Delay added by load to the reverse path (median) / to the data's own (95th percentile) from which the reverse path makes the round trip long,
/// whatever queue stands on the forward path at times.
const BY_FAR: f64 = 2.0;

/// Goodput / peak, steadiness, and share of the time with a full path, of a reverse path that holds nothing back.
const UNHINDERED: (f64, f64, f64) = (0.97, 0.95, 0.8);

/// Claims the reverse path: load adds delay to it alone, or probes but not segments are lost while the goodput is no plateau.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let noise = noise_ns(facts)?;
    let own = facts.own_way_added();
    // A queue in the data's own direction means a full bottleneck there, whatever happens to acknowledgements.
    let is_queued = facts.own_way_added_p95().or(own).is_some_and(|own| own.0 >= noise);
    // With a full bottleneck the queue stands most of the time.
    let stands = own.is_some_and(|own| own.0 >= noise);
    // If the other end counts probes, those lost there are known separately.
    let lost =
        facts.probes_lost_shares().map(|(idle, loaded)| (idle, facts.probes_lost_back().unwrap_or(loaded)));
    let lost = lost.filter(|&(_, loaded)| loaded >= LOST);
    let again = facts.retransmitted_share();
    let data_lost = again.map(|again| match (facts.probes_lost_own_way(), lost) {
        (Some(own), Some((_, back))) if times_out(facts, back) => again.min(own),
        _ => again,
    });
    let lost = lost.zip(data_lost).filter(|&((_, loaded), data)| {
        let at_rate = facts.of_peak().is_some_and(|reached| reached >= AT_PEAK);
        data < DATA_LOST * loaded && !at_rate && (!is_queued || loaded >= LOST_MOST)
    });
    let own_most = facts.own_way_added_p95().or(own).map_or(0.0, |own| own.0 as f64);
    let is_longest = |back: Nanos| !is_queued || !stands && back.0 as f64 >= BY_FAR * own_most;
    let delayed =
        facts.way_back_added().filter(|&back| back.0 >= noise && is_longest(back) && !is_unhindered(facts));
    // Data in the other direction loses probes of its own; a queue that it builds still counts.
    let lost = lost.filter(|_| !facts.both_directions);
    if lost.is_none() && delayed.is_none() {
        return None;
    }
    let confidence = if lost.is_some() && delayed.is_some() { Confidence::High } else { Confidence::Medium };
    let finding = Finding::new(Limit::ReversePath, Place::way_back(), confidence)
        .evidence(
            delayed
                .map(|back| Evidence::time(fact::QueueWayBack { there: own }, back).at_least(noise as f64)),
        )
        .evidence(lost.into_iter().flat_map(|((idle, loaded), data)| {
            [
                Evidence::share(fact::ProbesLost { before: Some(Share(idle)) }, loaded).at_least(LOST),
                Evidence::share(fact::RetransmittedShare, data).at_most(DATA_LOST * loaded),
            ]
        }))
        .remedy(Remedy::new(Action::FixWayBack).host(&facts.sender.name));
    Some(finding)
}

/// Whether so many lost acknowledgements leave whole windows unacknowledged: the sender then retransmits data that has arrived, and losses
/// in its own direction show only by probes.
fn times_out(facts: &Facts, lost: f64) -> bool {
    /// Segments per acknowledgement.
    const EACH: f64 = 2.0;
    /// Share of the windows without any acknowledgement.
    const WINDOWS: f64 = 0.01;
    let segments =
        facts.window_use().zip(facts.mss_bytes).map(|(used, mss)| used.in_flight_bytes / mss.max(1) as f64);
    segments.is_some_and(|segments| lost.powf((segments / EACH).max(1.0)) >= WINDOWS)
}

/// A queue on the reverse path in addition to one in the data's own direction: acknowledgements in it arrive in bursts, and some are lost.
pub fn is_full_too(facts: &Facts) -> Option<Finding> {
    let back = queued(facts).filter(|_| !facts.both_directions && !is_unhindered(facts))?;
    let queued = fact::QueueWayBackP95 { there: facts.own_way_added_p95() };
    let finding = Finding::new(Limit::ReversePath, Place::way_back(), Confidence::Medium)
        .evidence([Evidence::time(queued, back).at_least(noise_ns(facts)? as f64)])
        .remedy(Remedy::new(Action::FixWayBack).host(&facts.sender.name));
    Some(finding)
}

/// Delay added by load to the reverse path, 95th percentile, if it is a queue: on a half-duplex medium an acknowledgement waits for turns of a few
/// segments, within a tick of the clocks, and for much less than a segment at the end of the data's queue.
pub fn queued(facts: &Facts) -> Option<Nanos> {
    const TURNS: f64 = 2.5;
    const TICK_NS: f64 = 1e6;
    const OF_OWN: f64 = 0.4;
    let segment_ns = facts.mss_bytes.unwrap_or(0) as f64 * 8e9 / facts.goodput_bps.max(1.0);
    let own = facts.own_way_added_p95().map_or(0.0, |own| OF_OWN * own.0 as f64);
    let least = noise_ns(facts)?.max((TURNS * segment_ns + TICK_NS).max(own) as u64);
    facts.way_back_added_p95().filter(|back| back.0 >= least)
}

/// Whatever delays them, acknowledgements cost nothing if a rate-based sender reaches its peak.
fn is_unhindered(facts: &Facts) -> bool {
    facts.is_paced()
        && facts.of_peak().is_some_and(|reached| reached >= UNHINDERED.0)
        && facts.steadiness().is_some_and(|steady| steady >= UNHINDERED.1)
        && facts.time_counted().is_some_and(|spent| spent.share(TimeState::FullPath) >= UNHINDERED.2)
}

/// A delay that is not a queue.
fn noise_ns(facts: &Facts) -> Option<u64> {
    Some(QUEUE_NOISE.0.max((QUEUE_SHARE * facts.rtt_idle()?.0 as f64) as u64))
}
