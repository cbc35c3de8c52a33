//! What became of datagrams: all that was asked for came through, or where it was lost, or what the sender could not send.

use bdp_model::facts::{Facts, Source};
use bdp_model::finding::{Confidence, Finding, Limit};
use bdp_model::threshold::{AT_CEILING, BUSY_THREAD, OVERLOAD_BESIDE_QUEUE, QUEUE_NOISE, SENT_AS_ASKED};
use bdp_model::udp::{SearchEnd, Trial, UdpReport};
use bdp_model::units::Nanos;

use crate::text::{Setting, load_adds, name_of, percent, rate, size, time};

/// This share of what was lost explains it.
const EXPLAINED: f64 = 0.5;
/// Less than this of what was sent in the same time still waits somewhere.
const ARRIVED: f64 = 0.99;

/// Says what limits a direction that sent datagrams; nothing of connections.
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

/// Datagrams that may be lost: what a search was allowed.
fn allowed(facts: &Facts, udp: &UdpReport) -> u64 {
    (loss_ratio(facts) * udp.sent as f64) as u64
}

/// The share of them.
fn loss_ratio(facts: &Facts) -> f64 {
    let search = facts.asked.udp.as_ref().and_then(|udp| udp.search);
    search.map_or(0.0, |search| search.loss_ratio)
}

fn lost_as_allowed(facts: &Facts, udp: &UdpReport) -> String {
    format!(
        "{} of {} datagrams were lost, {}, where {} was allowed",
        udp.lost,
        udp.sent,
        percent(udp.loss_ratio),
        percent(loss_ratio(facts))
    )
}

/// The delay above the least that half of the datagrams had, where that is a queue.
fn queue(udp: &UdpReport) -> Option<Nanos> {
    udp.delay_variation_ns.map(|d| Nanos(d.p50)).filter(|&added| added >= QUEUE_NOISE)
}

/// Of a search that found a rate, the lowest above it that lost.
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

/// What the sending device dropped of its queue, nothing where that is unknown.
fn dropped_by_device(facts: &Facts) -> Option<u64> {
    Some(facts.sender.host.counters.as_ref()?.device.as_ref()?.tx_dropped)
}

/// Whether the sending device dropped most of what was lost. Its counter is of the whole measurement, so it says nothing of
/// one trial among others, nor where it counts more than was sent.
fn lost_by_sender(facts: &Facts, udp: &UdpReport) -> bool {
    udp.trials.is_empty()
        && dropped_by_device(facts)
            .is_some_and(|dropped| dropped <= udp.sent && dropped as f64 >= EXPLAINED * udp.lost as f64)
}

/// What the next rate above the one found met.
fn found(facts: &Facts, udp: &UdpReport, next: &Trial) -> Finding {
    let held = rate(udp.asked_bps.unwrap_or(udp.sent_bps));
    let above = rate(next.rate_bps.unwrap_or(next.sent_bps));
    let by_receiver = held_back_by_receiver(next.dropped_by_receiver, next.lost);
    let span = time(Nanos(facts.duration_ns));
    let mut evidence = vec![
        match udp.lost {
            0 => format!("{held} for {span} without loss"),
            _ => format!("{held} for {span}: {}", lost_as_allowed(facts, udp)),
        },
        format!(
            "at {above} {} of {} datagrams were lost, {}",
            next.lost,
            next.sent,
            percent(next.loss_ratio)
        ),
    ];
    evidence.extend(dropped(next.dropped_by_receiver, next.lost, &facts.receiver.name));
    evidence.extend(of_ceiling(facts));
    let measure = match loss_ratio(facts) {
        0.0 => "without loss".to_owned(),
        allowed => format!("with {} lost at most", percent(allowed)),
    };
    Finding {
        limit: if by_receiver { Limit::ReceivingHost } else { Limit::PathLoss },
        subject: if by_receiver {
            format!("receiving socket of {}", facts.receiver.name)
        } else {
            "the path".to_owned()
        },
        confidence: sure(next.dropped_by_receiver),
        summary: if by_receiver {
            format!(
                "{held} is the most that {} takes {measure}; the path may carry more",
                facts.receiver.name
            )
        } else {
            format!("{held} is the most that the path carries {measure}")
        },
        evidence,
        remedy: by_receiver.then(|| receiver_remedy(facts, udp)),
        missing: unknown_drops(next.dropped_by_receiver),
    }
}

/// All that was asked for came through.
fn carried(facts: &Facts, udp: &UdpReport) -> Finding {
    let goodput = rate(facts.goodput_bps);
    let all = match udp.lost {
        0 => format!(
            "all {} datagrams came through, {goodput} of payload in {} B each",
            udp.sent, udp.datagram_bytes
        ),
        _ => lost_as_allowed(facts, udp),
    };
    if let Some(queue) = queue(udp).filter(|_| facts.goodput_bps < ARRIVED * udp.sent_bps) {
        return fuller_and_fuller(facts, udp, queue);
    }
    let at_ceiling = facts.of_ceiling().is_some_and(|share| share >= AT_CEILING);
    let mut evidence = vec![all];
    evidence.extend(of_ceiling(facts));
    evidence.extend(queue(udp).map(|added| {
        format!("half of them arrived {} or more after the fastest: a standing queue", time(added))
    }));
    evidence.extend(load_adds(facts));
    Finding {
        limit: if at_ceiling { Limit::Ceiling } else { Limit::AskedRate },
        subject: match facts.ceiling.as_ref().filter(|_| at_ceiling) {
            Some(ceiling) => ceiling.by.clone(),
            None => "the rate that was asked for".to_owned(),
        },
        confidence: Confidence::High,
        summary: if at_ceiling {
            let lost =
                if udp.lost == 0 { "nothing was lost".to_owned() } else { lost_as_allowed(facts, udp) };
            format!("at the ceiling, and {lost}")
        } else {
            "the asked rate came through; the path may carry more".to_owned()
        },
        evidence,
        remedy: (!at_ceiling && may_search(facts, udp))
            .then(|| "-b auto finds the highest rate without loss".to_owned()),
        missing: Vec::new(),
    }
}

/// Nothing was lost, and less came than was sent: what is missing waits in a queue that grows.
fn fuller_and_fuller(facts: &Facts, udp: &UdpReport, queue: Nanos) -> Finding {
    let came = rate(facts.goodput_bps);
    let mut evidence = vec![
        format!("{} sent, {came} received, none lost", rate(udp.sent_bps)),
        format!("half of them arrived {} or more after the fastest: a standing queue", time(queue)),
    ];
    evidence.extend(of_ceiling(facts));
    evidence.extend(load_adds(facts));
    Finding {
        limit: Limit::PathRate,
        subject: "the path's bottleneck".to_owned(),
        confidence: Confidence::Medium,
        summary: format!(
            "the path's bottleneck is full: {came} of {} arrive, and its queue grows",
            rate(udp.sent_bps)
        ),
        evidence,
        remedy: Some(format!(
            "a rate below {came} ({}){}",
            name_of(facts, Setting::Rate),
            searched(facts, udp).unwrap_or_default()
        )),
        missing: Vec::new(),
    }
}

/// Nothing was lost, and the sender did not reach what was asked of it.
fn late_sender(facts: &Facts, udp: &UdpReport) -> Finding {
    let name = &facts.sender.name;
    let mut evidence = Vec::new();
    evidence.push(match udp.asked_bps {
        Some(asked) => format!(
            "{} of the {} asked for were sent, {}",
            rate(udp.sent_bps),
            rate(asked),
            percent(udp.sent_bps / asked.max(1.0))
        ),
        None => format!("{} sent as fast as possible, none lost", rate(udp.sent_bps)),
    });
    if udp.left_out > 0 {
        evidence.push(format!(
            "{} datagrams were skipped: {name} was more than 20 ms behind schedule",
            udp.left_out
        ));
    }
    evidence.push(sender_effort(facts));
    evidence.extend(of_ceiling(facts));
    Finding {
        limit: Limit::SendingHost,
        subject: format!("sender on {name}"),
        confidence: if facts.sender_thread() >= BUSY_THREAD || udp.left_out > 0 {
            Confidence::High
        } else {
            Confidence::Medium
        },
        summary: format!("{name} can send no more than {}; the path carried all of it", rate(udp.sent_bps)),
        evidence,
        remedy: Some(format!(
            "more streams ({}), larger datagrams ({}), or a quieter host",
            name_of(facts, Setting::Streams),
            name_of(facts, Setting::Datagram)
        )),
        missing: Vec::new(),
    }
}

/// Most of what was lost was dropped by the receiving socket.
fn receiving_host(facts: &Facts, udp: &UdpReport) -> Finding {
    let name = &facts.receiver.name;
    let mut evidence: Vec<String> = dropped(udp.dropped_by_receiver, udp.lost, name).into_iter().collect();
    evidence.push(format!("{} of {} datagrams were lost, {}", udp.lost, udp.sent, percent(udp.loss_ratio)));
    evidence.push(receiver_effort(facts));
    Finding {
        limit: Limit::ReceivingHost,
        subject: format!("receiving socket of {name}"),
        confidence: Confidence::High,
        summary: format!(
            "{name} read {} of {} sent, and dropped what its socket could not hold: that is no loss of the path",
            rate(facts.goodput_bps),
            rate(udp.sent_bps)
        ),
        evidence,
        remedy: Some(receiver_remedy(facts, udp)),
        missing: Vec::new(),
    }
}

/// The sending device's queue dropped it.
fn sending_host(facts: &Facts, udp: &UdpReport) -> Finding {
    let name = &facts.sender.name;
    let device = facts.sender.host.device.as_ref().map_or("its device", |device| device.name.as_str());
    let mut evidence = Vec::new();
    evidence.extend(
        dropped_by_device(facts)
            .map(|n| format!("{device} on {name} dropped {n} packets, {} datagrams are missing", udp.lost)),
    );
    evidence.push(format!("{} sent, {} received", rate(udp.sent_bps), rate(facts.goodput_bps)));
    evidence.extend(of_ceiling(facts));
    Finding {
        limit: Limit::SendingHost,
        subject: format!("queue of {device} on {name}"),
        confidence: Confidence::Medium,
        summary: format!("{device} on {name} dropped what exceeded its rate: it never left the host"),
        evidence,
        remedy: Some(format!(
            "a rate of {} at most ({})",
            rate(facts.goodput_bps),
            name_of(facts, Setting::Rate)
        )),
        missing: Vec::new(),
    }
}

/// Lost between the two hosts.
fn path(facts: &Facts, udp: &UdpReport) -> Finding {
    let came = rate(facts.goodput_bps);
    // Loss alone may be of a policer, or have nothing to do with the rate: a standing queue means that the path was full.
    let standing = queue(udp).filter(|_| udp.loss_ratio >= OVERLOAD_BESIDE_QUEUE);
    let overload = standing.is_some();
    let mut evidence =
        vec![format!("{} of {} datagrams were lost, {}", udp.lost, udp.sent, percent(udp.loss_ratio))];
    evidence.extend(dropped(udp.dropped_by_receiver, udp.lost, &facts.receiver.name));
    let rose = udp.delay_variation_ns.and_then(|d| d.p95).map(Nanos).filter(|&added| added >= QUEUE_NOISE);
    if overload {
        evidence.push(format!("{} sent, {came} received: the path carries that", rate(udp.sent_bps)));
    }
    evidence.extend(match standing {
        Some(added) => Some(format!(
            "half of them arrived {} or more after the fastest: a queue on the path was full",
            time(added)
        )),
        None => rose.map(|added| format!("delay was {} above its least at p95", time(added))),
    });
    let backlog = facts.receiver.host.counters.as_ref().and_then(|counters| counters.softnet_dropped);
    evidence.extend(backlog.filter(|&n| n > 0).map(|n| {
        format!(
            "the kernel of {} dropped {n} packets of its backlog, which may be some of them",
            facts.receiver.name
        )
    }));
    let of_device = dropped_by_device(facts).filter(|&n| n > 0 && udp.trials.is_empty());
    evidence.extend(of_device.map(|n| {
        let device = facts.sender.host.device.as_ref().map_or("its device", |device| device.name.as_str());
        format!(
            "{device} on {} dropped {n} packets on the way out, which may be some of them",
            facts.sender.name
        )
    }));
    if udp.left_out > 0 {
        evidence.push(format!(
            "{} more were skipped by {}: too late to be sent",
            udp.left_out, facts.sender.name
        ));
    }
    evidence.extend(of_ceiling(facts));
    let search = searched(facts, udp).unwrap_or_default();
    let by = name_of(facts, Setting::Rate);
    Finding {
        limit: Limit::PathLoss,
        subject: "the path".to_owned(),
        confidence: match overload && of_device.is_none() {
            true => sure(udp.dropped_by_receiver),
            false => sure(udp.dropped_by_receiver).min(Confidence::Medium),
        },
        summary: if overload {
            format!("the path carried {came} of the {} sent and lost the rest", rate(udp.sent_bps))
        } else {
            format!("the path lost {} of what was sent at {}", percent(udp.loss_ratio), rate(udp.sent_bps))
        },
        evidence,
        remedy: Some(if overload {
            format!("a rate below {came} ({by}){search}")
        } else {
            format!("a lower rate ({by}){search}; loss that remains does not depend on the rate")
        }),
        missing: unknown_drops(udp.dropped_by_receiver),
    }
}

fn dropped(by_receiver: Option<u64>, lost: u64, name: &str) -> Option<String> {
    Some(match by_receiver? {
        0 => format!("none of them was dropped by {name}, whose socket was never full"),
        n if n >= lost => format!("all of them were dropped by {name}, whose socket was full (SO_RXQ_OVFL)"),
        n => format!("{n} of them were dropped by {name}, whose socket was full (SO_RXQ_OVFL)"),
    })
}

/// What was asked for beside what the slower device leaves to datagrams of this size.
fn of_ceiling(facts: &Facts) -> Option<String> {
    let ceiling = facts.ceiling.as_ref()?;
    let share = facts.of_ceiling()?;
    Some(format!(
        "{} is {} of the {} that {} carries in datagrams of this size",
        rate(facts.goodput_bps),
        percent(share),
        rate(ceiling.goodput_bps),
        ceiling.by
    ))
}

fn sender_effort(facts: &Facts) -> String {
    effort(facts.sender_thread(), &facts.sender.method)
}

fn receiver_effort(facts: &Facts) -> String {
    effort(facts.receiver_thread(), &facts.receiver.method)
}

fn effort(thread: f64, method: &str) -> String {
    let by = if method.is_empty() { String::new() } else { format!(", by {method}") };
    format!("its busiest thread used {} of a processor{by}", percent(thread))
}

fn receiver_remedy(facts: &Facts, udp: &UdpReport) -> String {
    let buffer = udp.receive_buffer_bytes.map_or_else(String::new, |b| format!(" than {}", size(b as f64)));
    let most = facts.receiver.host.sysctls.get("net.core.rmem_max");
    let bound = most.map_or_else(String::new, |max| format!(", net.core.rmem_max is {} there", max.trim()));
    let (datagram, rate) = (name_of(facts, Setting::Datagram), name_of(facts, Setting::Rate));
    let larger = match facts.source {
        Source::Measured => format!("a larger socket buffer{buffer} (--sockbuf{bound}), "),
        Source::Emulated => String::new(),
    };
    format!("{larger}larger datagrams ({datagram}), or a lower rate ({rate})")
}

/// Whether a search for the rate can be asked for, and was not.
fn may_search(facts: &Facts, udp: &UdpReport) -> bool {
    facts.source == Source::Measured && udp.search.is_none()
}

fn searched(facts: &Facts, udp: &UdpReport) -> Option<&'static str> {
    may_search(facts, udp).then_some(", or -b auto, which finds one")
}

fn sure(by_receiver: Option<u64>) -> Confidence {
    if by_receiver.is_some() { Confidence::High } else { Confidence::Medium }
}

fn unknown_drops(by_receiver: Option<u64>) -> Vec<String> {
    match by_receiver {
        Some(_) => Vec::new(),
        None => vec!["what the receiving host dropped (SO_RXQ_OVFL)".to_owned()],
    }
}
