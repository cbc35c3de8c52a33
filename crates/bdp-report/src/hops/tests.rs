use std::net::{IpAddr, Ipv4Addr};

use bdp_explain::hops::conclude;
use bdp_model::probes::hops::{Answer, AnswerKind, HopAddress, HopProbe, Load, ProbeProtocol};

use super::*;

const HOPS: u8 = 5;

fn ms(n: u64) -> u64 {
    n * 1_000_000
}

fn address(hop: u8) -> IpAddr {
    Ipv4Addr::new(198, 18, hop - 1, 2).into()
}

/// A path with a queue before hop 3, losses before hop 4, rate-limited answers at hop 2, a black hole, and changed marks from hop 3 on.
fn probes() -> Vec<HopProbe> {
    let mut probes = Vec::new();
    let mut send = |phase, hop: u8, flow, bytes, sent_ns, answer: Option<(AnswerKind, u64, u8)>| {
        let marks = Marks { dscp: if hop < 3 { 46 } else { 0 }, ecn: 2 };
        let answer = answer.map(|(kind, rtt_ns, from)| Answer {
            from: Some(address(from)),
            rtt_ns,
            kind,
            marks: Some(marks),
        });
        probes.push(HopProbe { phase, hop, flow, bytes, sent_ns, answer });
    };
    let kind = |hop| if hop == HOPS { AnswerKind::Arrived } else { AnswerKind::Exceeded };
    for phase in [Phase::Idle, Phase::Loaded] {
        for n in 0..80u64 {
            for hop in 1..=HOPS {
                let is_lost = hop == 2 && n % 4 > 0 || hop >= 4 && (n + 3 * u64::from(hop)) % 8 == 0;
                let queue = if phase == Phase::Loaded && hop >= 3 { ms(42) } else { 0 };
                let answer =
                    (!is_lost).then_some((kind(hop), ms(4) * u64::from(hop) + queue + n * 1000, hop));
                send(phase, hop, 0, 44, n * ms(250), answer);
            }
        }
    }
    for hop in 1..=HOPS {
        send(Phase::Sizes, hop, 0, 44, 0, Some((kind(hop), ms(4), hop)));
    }
    send(Phase::Sizes, 3, 0, 1500, 0, Some((AnswerKind::Exceeded, ms(4), 3)));
    for bytes in [1500, 1401] {
        for hop in [4, 5, 4, 5, 4, 5] {
            send(Phase::Sizes, hop, 0, bytes, 0, None);
        }
    }
    send(Phase::Sizes, 5, 0, 1400, 0, Some((AnswerKind::Arrived, ms(4), 5)));
    for flow in 0..11 {
        send(
            Phase::Branches,
            4,
            flow,
            44,
            0,
            Some((AnswerKind::Exceeded, ms(4), if flow % 2 == 0 { 4 } else { 9 })),
        );
    }
    probes
}

fn report() -> PathReport {
    let request = PathRequest {
        host: "server".to_owned(),
        load: true,
        dscp: Some(46),
        ecn: true,
        probes: 80,
        ..PathRequest::default()
    };
    let method = ProbeMethod { protocol: ProbeProtocol::Icmp, bytes: 44, raw: true, fallback: false };
    let mut report = PathReport {
        request,
        address: "198.18.4.2".to_owned(),
        method,
        flows_method: Some(ProbeMethod { protocol: ProbeProtocol::Udp, raw: false, ..method }),
        quotes: true,
        load: Some(Load { goodput_bps: Some(9.37e6), ran_ms: 6_000 }),
        ..PathReport::default()
    };
    conclude(&mut report, &probes());
    report
}

#[test]
fn a_path_in_text() {
    insta::assert_snapshot!(path_text(&report(), &Style::plain()));
}

#[test]
fn a_name_from_the_network_is_tamed() {
    let mut report = report();
    report.hops[0].addresses =
        vec![HopAddress { address: address(1), name: Some("r1\x1b[31m\nhop".to_owned()), answers: 1 }];
    let text = path_text(&report, &Style::plain());
    assert!(!text.contains('\x1b') && text.contains("r1 [31m hop (198.18.0.2)"), "{text}");
}

#[test]
fn what_is_not_known_is_said_to_be() {
    let mut report = report();
    let silent: Vec<HopProbe> = probes()
        .into_iter()
        .filter(|p| p.hop < HOPS && p.phase == Phase::Idle)
        .map(|p| HopProbe { answer: p.answer.filter(|_| p.hop < 3), ..p })
        .collect();
    report.load = None;
    report.quotes = false;
    report.flows_method = None;
    conclude(&mut report, &silent);
    insta::assert_snapshot!(path_text(&report, &Style::plain()));
}

#[test]
fn code_points_have_their_names() {
    let names: Vec<String> =
        [0, 1, 8, 10, 34, 38, 44, 46, 48, 45].map(|dscp| marks_words(Marks { dscp, ecn: 0 })).into();
    let expected = ["cs0", "le", "cs1", "af11", "af41", "af43", "va", "ef", "cs6", "45"];
    assert_eq!(names, expected.map(|name| format!("{name} not-ECT")));
}
