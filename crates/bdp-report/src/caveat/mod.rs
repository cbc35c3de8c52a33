//! Caveats in words.

mod words;

use bdp_explain::experiment;
use bdp_model::finding::Fact;
use bdp_model::finding::caveat::{Caveat, NoExperiment, WindowShortfall};
use bdp_model::measurement::Measurement;
use bdp_model::measurement::ends::Task;
use bdp_model::units::format_bps;
use serde_json::{Value, json};

use crate::number::percent;

use words::{at, name};
pub use words::{text, window_shortfall};

/// Returns the caveats of these measurements without repetition: of caveats that differ only in a figure, the one with the
/// largest; those already covered by a finding are omitted.
pub(crate) fn said(measurements: &[&Measurement], is_said: impl Fn(&Caveat) -> bool) -> Vec<String> {
    let mut all: Vec<Caveat> = Vec::new();
    for m in measurements {
        for caveat in m.caveats.iter().filter(|&caveat| !is_said(caveat) && !is_found(m, caveat)) {
            if !all.iter_mut().any(|known| holds(known, caveat)) {
                all.push(caveat.clone());
            }
        }
    }
    let mut texts: Vec<String> = Vec::new();
    for caveat in &all {
        let text = shared_device(caveat, &all).unwrap_or_else(|| text(caveat));
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

/// Whether a caveat is shown only with details: a skipped experiment would only have confirmed the finding.
pub(crate) fn is_detail(measurements: &[&Measurement], caveat: &Caveat) -> bool {
    let Caveat::NoExperiment { direction, reason: NoExperiment::OtherProtocol } = caveat else {
        return false;
    };
    let directions = measurements.iter().flat_map(|m| &m.directions).filter(|d| d.direction == *direction);
    let mut found = directions.filter_map(|d| d.findings.first());
    !found.any(|first| experiment::may_replace(first.limit))
}

/// Whether a caveat is already known; if so, keeps the larger figure.
fn holds(known: &mut Caveat, caveat: &Caveat) -> bool {
    match (known, caveat) {
        (
            Caveat::BusyThread { direction, task, share },
            Caveat::BusyThread { direction: way, task: other, share: more },
        ) if direction == way && task == other => *share = share.max(*more),
        (Caveat::HypervisorSteal { end, share }, Caveat::HypervisorSteal { end: other, share: more })
            if end == other =>
        {
            *share = share.max(*more);
        }
        (known, caveat) => return known == caveat,
    }
    true
}

/// Whether a finding already has the busy thread among its evidence.
fn is_found(m: &Measurement, caveat: &Caveat) -> bool {
    let Caveat::BusyThread { direction, task, .. } = caveat else { return false };
    let thread = match task {
        Task::Sending => Fact::SendingThread,
        Task::Receiving => Fact::ReceivingThread,
    };
    let of_way = m.directions.iter().filter(|d| d.direction == *direction);
    of_way.flat_map(|d| &d.findings).any(|finding| finding.observed(thread).is_some())
}

/// Returns one sentence on other traffic of a device that covers several caveats: both directions, both ends of a loopback
/// device, several runs.
fn shared_device(caveat: &Caveat, all: &[Caveat]) -> Option<String> {
    let Caveat::CrossTraffic { end, device, .. } = caveat else { return None };
    let is_loopback = device.as_deref() == Some("lo");
    let figures = all.iter().filter_map(|other| match other {
        Caveat::CrossTraffic { end: its, device: of, rate_bps, share, .. }
            if of == device && (is_loopback || its == end) =>
        {
            Some((*rate_bps, *share))
        }
        _ => None,
    });
    let figures: Vec<_> = figures.collect();
    if figures.len() < 2 {
        return None;
    }
    let (rate_bps, share) = figures
        .into_iter()
        .fold((0.0_f64, 0.0_f64), |(rate, share), (its, of)| (rate.max(its), share.max(of)));
    let end = if is_loopback { String::new() } else { at(*end) };
    let (name, rate, share) = (name(device), format_bps(rate_bps), percent(share));
    Some(format!("{end}other traffic shared {name}: up to {rate} on average, {share} of its bytes"))
}

/// Returns the caveats as JSON, each with its wording beside its evidence, so that readers need no table of kinds.
pub(crate) fn worded(caveats: &[Caveat]) -> Value {
    caveats.iter().map(|caveat| beside(json!(caveat), text(caveat))).collect()
}

/// Returns why a window was not reached, with its wording, as JSON; null if it was reached.
pub(crate) fn worded_shortfall(shortfall: Option<&WindowShortfall>) -> Value {
    shortfall.map_or(Value::Null, |shortfall| beside(json!(shortfall), window_shortfall(shortfall)))
}

fn beside(evidence: Value, text: String) -> Value {
    let mut value = if evidence.is_object() { evidence } else { json!({ "kind": "text" }) };
    value["text"] = text.into();
    value
}

#[cfg(test)]
mod tests {
    use bdp_model::finding::fact;
    use bdp_model::finding::{Confidence, Evidence, Finding, Limit, Place};
    use bdp_model::measurement::MeasureRequest;
    use bdp_model::measurement::ends::{Direction, End};

    use super::*;

    #[test]
    fn a_window_that_is_not_reached_says_why() {
        for (reason, why) in [
            (WindowShortfall::ScaleRounding { seen_bytes: 1152, unit_bytes: 128 }, "units of 128 bytes"),
            (WindowShortfall::NotShrunk { seen_bytes: 131_072 }, "does not shrink"),
            (
                WindowShortfall::BufferTooSmall { seen_bytes: 212_992, buffer_bytes: Some(425_984) },
                "is 425984 bytes (net.core.rmem_max",
            ),
            (WindowShortfall::NotOffered { seen_bytes: 1024, buffer_bytes: 524_288 }, "has room for it"),
        ] {
            let told = window_shortfall(&reason);
            assert!(told.contains("bytes were on the wire: ") && told.contains(why), "{told}");
        }
    }

    #[test]
    fn evidence_stands_in_the_words() {
        let device = || Some("eth0".to_owned());
        let drops = Caveat::DeviceDrops {
            end: End::Near,
            device: device(),
            rx_dropped: 200,
            rx_missed: 9,
            rx_fifo: 0,
            tx_dropped: 0,
            tx_fifo: 0,
        };
        let cross = Caveat::CrossTraffic {
            end: End::Far,
            device: device(),
            task: Task::Receiving,
            rate_bps: 4e8,
            share: 0.5,
        };
        let quota = Caveat::CpuQuota { end: End::Near, periods: 7, throttled_ns: Some(70_000_000) };
        let hole = |ipv6, asked_bytes| Caveat::MtuBlackHole {
            mtu: 1270,
            known_mtu: 1500,
            exact: false,
            ipv6,
            fits_bytes: 1222,
            asked_bytes,
        };
        for (caveat, words) in [
            (Caveat::HypervisorSteal { end: End::Near, share: 0.31 }, "near end: its hypervisor took 31 %"),
            (drops, "eth0 lost packets of this host: 200 received packets dropped, 9 missed for lack"),
            (
                cross,
                "far end: other traffic shared eth0 while it was receiving: 400 Mbit/s on average, 50 % of",
            ),
            (quota, "7 times, 70 ms in total"),
            (Caveat::BacklogDrops { end: End::Near, packets: 3 }, "dropped 3 received"),
            (hole(true, None), "MTU of at least 1270, the kernel knows of 1500, and"),
            (hole(true, None), "carry 1280 B (RFC 8200, section 5). Datagrams have the 1222 B"),
            (hole(false, Some(1400)), "at both ends. Datagrams of 1400 B (-l) are longer than the 1222 B"),
            (
                Caveat::Interrupted { not_measured: vec![Direction::From] },
                "; direction 'from' was not measured",
            ),
            (
                Caveat::TimeRanOut {
                    direction: Direction::To,
                    bytes: 1 << 20,
                    asked_bytes: 1 << 40,
                    after_ns: 200_000_000,
                },
                "direction 'to': 1 MiB of 1 TiB passed in the 200 ms granted",
            ),
            (
                Caveat::HostLatency { direction: Direction::To, host_ns: 281_000_000, rtt_ns: 311_000_000 },
                "took up to 281 ms of the probes' round trips of up to 311 ms:",
            ),
            (
                Caveat::HostLatency { direction: Direction::To, host_ns: 281_000_000, rtt_ns: 30_260_000 },
                "took up to 281 ms of a probe's round trip, and half of the round trips were 30.26 ms or shorter:",
            ),
            (
                Caveat::SocketBufferCut {
                    direction: Direction::To,
                    task: Task::Receiving,
                    asked_bytes: 4 << 20,
                    granted_bytes: 212_992,
                },
                "the kernel of the receiver cut the socket buffer of 4 MiB asked for (--sockbuf) to 208 KiB: raise \
                 net.core.rmem_max there",
            ),
        ] {
            let told = text(&caveat);
            assert!(told.contains(words), "no '{words}' in '{told}'");
        }
    }

    #[test]
    fn a_thing_is_said_once() {
        let cross = |end, device: &str, task, rate_bps, share| Caveat::CrossTraffic {
            end,
            device: Some(device.to_owned()),
            task,
            rate_bps,
            share,
        };
        let busy = |share| Caveat::BusyThread { direction: Direction::To, task: Task::Sending, share };
        let of = |caveats| Measurement { caveats, ..Measurement::of(&MeasureRequest::to("ams1")) };
        let one = of(vec![
            cross(End::Near, "lo", Task::Sending, 1e6, 0.1),
            cross(End::Near, "lo", Task::Receiving, 2e6, 0.1),
            cross(End::Far, "lo", Task::Sending, 1e6, 0.3),
            busy(0.95),
        ]);
        let other = of(vec![
            cross(End::Far, "eth0", Task::Sending, 3e6, 0.5),
            cross(End::Far, "eth0", Task::Receiving, 4e6, 0.2),
            cross(End::Near, "eth0", Task::Receiving, 5e6, 0.2),
            busy(0.99),
        ]);
        assert_eq!(
            said(&[&one, &other], |_| false),
            [
                "other traffic shared lo: up to 2 Mbit/s on average, 30 % of its bytes",
                "direction 'to': a sending thread used 99 % of a processor; the path may carry more",
                "far end: other traffic shared eth0: up to 4 Mbit/s on average, 50 % of its bytes",
                "near end: other traffic shared eth0 while it was receiving: 5 Mbit/s on average, 20 % of its bytes",
            ]
        );
        let json = include_str!("../../../bdp-store/tests/it/measurement.json");
        let mut found: Measurement = serde_json::from_str(json).unwrap();
        found.directions.truncate(1);
        found.directions[0].direction = Direction::To;
        found.caveats = vec![busy(0.95)];
        assert_eq!(said(&[&found], |_| false).len(), 1);
        assert!(said(&[&found], |_| true).is_empty());
        let finding = Finding::new(Limit::Unknown, Place::path(), Confidence::Low);
        let thread = Evidence::share(fact::SendingThread, 0.95).at_least(0.9);
        found.directions[0].findings = vec![finding.evidence([thread])];
        assert!(said(&[&found], |_| false).is_empty());
    }

    #[test]
    fn json_has_the_words_beside_the_evidence() {
        let caveats = [
            Caveat::ServerRateLimit { rate_bps: 1_000_000 },
            Caveat::Text("as an older version said it".to_owned()),
        ];
        assert_eq!(
            worded(&caveats),
            json!([
                {
                    "kind": "server_rate_limit",
                    "rate_bps": 1_000_000,
                    "text": "direction 'from': the server sends no more than 1 Mbit/s (--max-rate there)",
                },
                { "kind": "text", "text": "as an older version said it" },
            ])
        );
        assert_eq!(worded_shortfall(None), Value::Null);
        assert_eq!(worded_shortfall(Some(&WindowShortfall::NoneSeen))["kind"], "none_seen");
        let read: Vec<Caveat> = serde_json::from_value(worded(&caveats)).unwrap();
        assert_eq!(read, caveats);
    }
}
