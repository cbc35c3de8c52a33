//! Limits of datagram tests: everything requested got through, datagrams were lost somewhere, or the sender could not send them.

use bdp_model::facts::{Facts, Source};
use bdp_model::finding::fact::{self, Bps, Bytes, Share};
use bdp_model::finding::threshold::{
    AT_CEILING, BUSY_THREAD, OVERLOAD_BESIDE_QUEUE, QUEUE_NOISE, SENT_AS_ASKED,
};
use bdp_model::finding::{
    Action, Cause, Confidence, Evidence, Finding, Lack, Limit, Missing, Place, Quantity, Remedy,
};
use bdp_model::flow::udp::{SearchEnd, Trial, UdpReport};
use bdp_model::tuning::setting::Setting;
use bdp_model::units::Nanos;

use crate::observed;
use crate::setting::{SOCKET_BUFFER, TestSetting, name_of, value_of};

/// Share of the losses that explains them.
const EXPLAINED: f64 = 0.5;
/// Arrived / sent below which datagrams are still waiting somewhere.
const ARRIVED: f64 = 0.99;

/// Returns the limit of a direction that sent datagrams; `None` for connections.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let udp = facts.udp.as_ref()?;
    if let Some(next) = lossy_above(udp) {
        return Some(found(facts, udp, next));
    }
    if udp.lost > allowed(facts, udp) {
        return Some(if held_back_by_receiver(udp.dropped_by_receiver, udp.lost) {
            receiving_host(facts, udp)
        } else if lost_by_sender(facts, udp) {
            sending_host(facts, udp)
        } else {
            path(facts, udp)
        });
    }
    Some(if fell_short(udp) { late_sender(facts, udp) } else { carried(facts, udp) })
}

/// Number of datagrams that a search allowed to be lost.
fn allowed(facts: &Facts, udp: &UdpReport) -> u64 {
    (loss_ratio(facts) * udp.sent as f64) as u64
}

/// Share of datagrams lost.
fn loss_ratio(facts: &Facts) -> f64 {
    let search = facts.asked.udp.as_ref().and_then(|udp| udp.search);
    search.map_or(0.0, |search| search.loss_ratio)
}

fn lost_as_allowed(facts: &Facts, udp: &UdpReport) -> Evidence {
    Evidence::share(fact::LostAsAllowed { lost: udp.lost, sent: udp.sent }, udp.loss_ratio)
        .at_most(loss_ratio(facts))
}

/// Median delay above the minimum, if it is a queue.
fn queue(udp: &UdpReport) -> Option<Nanos> {
    udp.delay_variation_ns.map(|d| Nanos(d.p50)).filter(|&added| added >= QUEUE_NOISE)
}

/// The lowest lossy rate above the one that a search found.
fn lossy_above(udp: &UdpReport) -> Option<&Trial> {
    let found = udp.trials.last().filter(|_| udp.search == Some(SearchEnd::Held))?;
    let offered = |trial: &Trial| trial.rate_bps.unwrap_or(trial.sent_bps);
    let above = udp.trials.iter().filter(|t| !t.passed && t.lost > 0 && offered(t) > offered(found));
    above.min_by(|a, b| offered(a).total_cmp(&offered(b)))
}

fn fell_short(udp: &UdpReport) -> bool {
    udp.asked_bps.is_none_or(|asked| udp.sent_bps < SENT_AS_ASKED * asked)
}

fn held_back_by_receiver(dropped: Option<u64>, lost: u64) -> bool {
    dropped.is_some_and(|dropped| dropped as f64 >= EXPLAINED * lost as f64)
}

/// Packets dropped by the sending device's queue; `None` if unknown.
fn dropped_by_device(facts: &Facts) -> Option<u64> {
    Some(facts.sender.host.counters.as_ref()?.device.as_ref()?.tx_dropped)
}

/// Whether the sending device dropped most of the losses. Its counter covers the whole measurement, so it is not valid for
/// one of several trials, nor if it exceeds what was sent.
fn lost_by_sender(facts: &Facts, udp: &UdpReport) -> bool {
    udp.trials.is_empty()
        && dropped_by_device(facts)
            .is_some_and(|dropped| dropped <= udp.sent && dropped as f64 >= EXPLAINED * udp.lost as f64)
}

/// A search result, with the losses at the next higher rate.
fn found(facts: &Facts, udp: &UdpReport, next: &Trial) -> Finding {
    let by_receiver = held_back_by_receiver(next.dropped_by_receiver, next.lost);
    let (limit, place) = match by_receiver {
        true => (Limit::ReceivingHost, Place::receiver(&facts.receiver.name)),
        false => (Limit::PathLoss, Place::path()),
    };
    Finding::new(limit, place, sure(next.dropped_by_receiver))
        .cause(by_receiver.then_some(Cause::SocketDrops))
        .evidence([Evidence::rate(
            fact::RateHeld {
                time: Nanos(facts.duration_ns),
                lost: udp.lost,
                allowed: Share(loss_ratio(facts)),
            },
            udp.asked_bps.unwrap_or(udp.sent_bps),
        )])
        .evidence((udp.lost > 0).then(|| lost_as_allowed(facts, udp)))
        .evidence([Evidence::rate(
            fact::LostAtRate { lost: next.lost, sent: next.sent, share: Share(next.loss_ratio) },
            next.rate_bps.unwrap_or(next.sent_bps),
        )])
        .evidence(dropped(next.dropped_by_receiver, next.lost, &facts.receiver.name))
        .evidence(observed::of_ceiling(facts))
        .remedy(by_receiver.then(|| receiver_remedy(facts, udp)))
        .missing(unknown_drops(next.dropped_by_receiver))
}

/// Everything requested got through.
fn carried(facts: &Facts, udp: &UdpReport) -> Finding {
    if let Some(queue) = queue(udp).filter(|_| facts.goodput_bps < ARRIVED * udp.sent_bps) {
        return fuller_and_fuller(facts, udp, queue);
    }
    let ceiling = facts.ceiling.as_ref();
    let ceiling = ceiling.filter(|_| facts.of_ceiling().is_some_and(|share| share >= AT_CEILING));
    let (limit, place) = match ceiling {
        Some(ceiling) => (Limit::Ceiling, Place::hop(&ceiling.by)),
        None => (Limit::AskedRate, Place::request()),
    };
    let search = ceiling.is_none().then(|| search(facts, udp)).flatten();
    Finding::new(limit, place, Confidence::High)
        .evidence([match udp.lost {
            0 => Evidence::count(
                fact::AllArrived {
                    goodput: Bps(facts.goodput_bps),
                    payload: Bytes(udp.datagram_bytes as f64),
                },
                udp.sent,
            ),
            _ => lost_as_allowed(facts, udp),
        }])
        .evidence(observed::of_ceiling(facts))
        .evidence(queue(udp).map(standing))
        .evidence(observed::load_adds(facts))
        .remedy(search)
}

/// Nothing was lost, but less arrived than was sent: the rest waits in a growing queue.
fn fuller_and_fuller(facts: &Facts, udp: &UdpReport, queue: Nanos) -> Finding {
    Finding::new(Limit::PathRate, Place::path(), Confidence::Medium)
        .evidence([received(facts, udp).at_most(ARRIVED * udp.sent_bps), standing(queue)])
        .evidence(observed::of_ceiling(facts))
        .evidence(observed::load_adds(facts))
        .remedy(lower_rate(facts).value(Quantity::rate(facts.goodput_bps)).also(search(facts, udp)))
}

/// Nothing was lost, but the sender did not reach the requested rate.
fn late_sender(facts: &Facts, udp: &UdpReport) -> Finding {
    let busy = facts.sender_thread() >= BUSY_THREAD;
    let confidence = if busy || udp.left_out > 0 { Confidence::High } else { Confidence::Medium };
    Finding::new(Limit::SendingHost, Place::sender(&facts.sender.name), confidence)
        .cause(busy.then_some(Cause::ThreadFull))
        .evidence([match udp.asked_bps {
            Some(asked) => Evidence::share(
                fact::SentOfAsked { sent: Bps(udp.sent_bps), asked: Bps(asked) },
                udp.sent_bps / asked.max(1.0),
            )
            .at_most(SENT_AS_ASKED),
            None => Evidence::rate(fact::SentUnbounded, udp.sent_bps),
        }])
        .evidence(skipped(facts, udp))
        .evidence([busiest(facts.sender_thread(), &facts.sender.method)])
        .evidence(observed::of_ceiling(facts))
        .remedy(
            Remedy::new(Action::MoreStreams)
                .setting(name_of(facts, TestSetting::Streams))
                .also(larger_datagrams(facts))
                .also(Remedy::new(Action::QuieterHost)),
        )
}

/// The receiving socket dropped most of the losses.
fn receiving_host(facts: &Facts, udp: &UdpReport) -> Finding {
    let name = &facts.receiver.name;
    Finding::new(Limit::ReceivingHost, Place::receiver(name), Confidence::High)
        .cause(Cause::SocketDrops)
        .evidence([received(facts, udp)])
        .evidence(dropped(udp.dropped_by_receiver, udp.lost, name))
        .evidence([lost(udp), busiest(facts.receiver_thread(), &facts.receiver.method)])
        .evidence(rmem_maximum(facts))
        .remedy(receiver_remedy(facts, udp))
}

/// The sending device's queue dropped them.
fn sending_host(facts: &Facts, udp: &UdpReport) -> Finding {
    let least = EXPLAINED * udp.lost as f64;
    Finding::new(Limit::SendingHost, Place::sender(&facts.sender.name), Confidence::Medium)
        .cause(Cause::DeviceDrops)
        .evidence(dropped_on_the_way_out(facts, udp).map(|evidence| evidence.at_least(least)))
        .evidence([received(facts, udp)])
        .evidence(observed::of_ceiling(facts))
        .remedy(
            Remedy::new(Action::BoundRate)
                .setting(name_of(facts, TestSetting::Rate))
                .value(Quantity::rate(facts.goodput_bps)),
        )
}

/// Losses between the two hosts.
fn path(facts: &Facts, udp: &UdpReport) -> Finding {
    // Losses alone may be a policer's, or independent of the rate: a standing queue shows that the path was full.
    let full = queue(udp).filter(|_| udp.loss_ratio >= OVERLOAD_BESIDE_QUEUE);
    let rose = udp.delay_variation_ns.and_then(|d| d.p95).map(Nanos).filter(|&added| added >= QUEUE_NOISE);
    let backlog = facts.receiver.host.counters.as_ref().and_then(|counters| counters.softnet_dropped);
    let of_device = dropped_on_the_way_out(facts, udp).filter(|e| e.value > 0.0 && udp.trials.is_empty());
    let sure = sure(udp.dropped_by_receiver);
    let confidence = match full.is_some() && of_device.is_none() {
        true => sure,
        false => sure.min(Confidence::Medium),
    };
    let rate = Quantity::rate(facts.goodput_bps);
    Finding::new(Limit::PathLoss, Place::path(), confidence)
        .evidence([match full {
            Some(_) => lost(udp).at_least(OVERLOAD_BESIDE_QUEUE * udp.sent as f64),
            None => lost(udp),
        }])
        .evidence(dropped(udp.dropped_by_receiver, udp.lost, &facts.receiver.name))
        .evidence([received(facts, udp)])
        .evidence(match full {
            Some(added) => Some(standing(added)),
            None => {
                rose.map(|added| Evidence::time(fact::DatagramDelay, added).at_least(QUEUE_NOISE.0 as f64))
            }
        })
        .evidence(backlog.filter(|&n| n > 0).map(|n| {
            Evidence::count(fact::DroppedByBacklog { retransmitted: None }, n).on(&facts.receiver.name)
        }))
        .evidence(of_device)
        .evidence(skipped(facts, udp))
        .evidence(observed::of_ceiling(facts))
        .remedy(lower_rate(facts).value(full.map(|_| rate)).also(search(facts, udp)))
        .missing(unknown_drops(udp.dropped_by_receiver))
}

fn lost(udp: &UdpReport) -> Evidence {
    Evidence::count(fact::DatagramsLost { sent: udp.sent, share: Share(udp.loss_ratio) }, udp.lost)
}

fn received(facts: &Facts, udp: &UdpReport) -> Evidence {
    Evidence::rate(fact::Received { sent: Bps(udp.sent_bps), lost: udp.lost }, facts.goodput_bps)
}

fn standing(added: Nanos) -> Evidence {
    Evidence::time(fact::DatagramQueue, added).at_least(QUEUE_NOISE.0 as f64)
}

fn skipped(facts: &Facts, udp: &UdpReport) -> Option<Evidence> {
    let skipped = udp.left_out > 0;
    skipped.then(|| Evidence::count(fact::Skipped, udp.left_out).on(&facts.sender.name))
}

fn dropped(by_receiver: Option<u64>, lost: u64, name: &str) -> Option<Evidence> {
    Some(Evidence::count(fact::DroppedBySocket { lost }, by_receiver?).on(name))
}

fn dropped_on_the_way_out(facts: &Facts, udp: &UdpReport) -> Option<Evidence> {
    let evidence = Evidence::count(fact::DroppedByDevice { missing: udp.lost }, dropped_by_device(facts)?);
    let evidence = evidence.on(&facts.sender.name);
    Some(match facts.sender.host.device.as_ref() {
        Some(device) => evidence.named(&device.name),
        None => evidence,
    })
}

fn busiest(thread: f64, method: &str) -> Evidence {
    let evidence = Evidence::share(fact::BusiestThread, thread);
    if method.is_empty() { evidence } else { evidence.named(method) }
}

/// The largest socket buffer that can be requested.
fn rmem_maximum(facts: &Facts) -> Option<Evidence> {
    let most: u64 = value_of(&facts.receiver, Setting::RmemMax)?.parse().ok()?;
    Some(Evidence::bytes(fact::SettingMaximum, most as f64).named(Setting::RmemMax).on(&facts.receiver.name))
}

fn receiver_remedy(facts: &Facts, udp: &UdpReport) -> Remedy {
    let milder = larger_datagrams(facts).also(lower_rate(facts));
    match facts.source {
        Source::Measured => Remedy::new(Action::LargerSocketBuffer)
            .setting(SOCKET_BUFFER)
            .value(udp.receive_buffer_bytes.map(|b| Quantity::bytes(b as f64)))
            .host(&facts.receiver.name)
            .also(milder),
        Source::Emulated | Source::Watched | Source::Captured => milder,
    }
}

fn lower_rate(facts: &Facts) -> Remedy {
    Remedy::new(Action::LowerRate).setting(name_of(facts, TestSetting::Rate))
}

fn larger_datagrams(facts: &Facts) -> Remedy {
    Remedy::new(Action::LargerDatagrams).setting(name_of(facts, TestSetting::Datagram))
}

/// A search for the rate, if it is possible and was not requested.
fn search(facts: &Facts, udp: &UdpReport) -> Option<Remedy> {
    let may_search = facts.source == Source::Measured && udp.search.is_none();
    may_search.then(|| Remedy::new(Action::SearchRate).setting("-b auto"))
}

fn sure(by_receiver: Option<u64>) -> Confidence {
    if by_receiver.is_some() { Confidence::High } else { Confidence::Medium }
}

fn unknown_drops(by_receiver: Option<u64>) -> Option<Missing> {
    by_receiver.is_none().then(|| Missing::new(Lack::SocketDrops))
}
