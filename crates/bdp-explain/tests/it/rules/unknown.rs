//! What no rule claims, and what is missing.

use bdp_model::finding::fact;
use bdp_model::finding::{Fact, Lack, Limit, Missing};
use bdp_model::measurement::{Direction, Measurement};

use crate::rules::shape::{MIB, MS, MSS, Shape, WINDOW_BOUND, explain};

#[test]
fn a_flow_too_short_to_wait_is_not_laid_to_the_processor() {
    let mut m = Shape { cpu: 0.99, share: 0.2, ..WINDOW_BOUND }.measurement();
    let blames = |m: &Measurement| explain(Direction::To, m)[0].observed(Fact::SendingThread).is_some();
    assert!(blames(&m));
    m.directions[0].duration_ns = 3 * MS;
    assert!(!blames(&m));
}

#[test]
fn a_measurement_too_short_is_said_to_be_so() {
    let mut m = WINDOW_BOUND.measurement();
    // Ten samples, of which three count.
    m.directions[0].sent.truncate(10);
    m.directions[0].omit_ns = 750 * MS;
    let missing = |m: &Measurement| explain(Direction::To, m).remove(0).missing;
    assert_eq!(missing(&m), [Missing::new(Lack::LongerAfterOmit).samples(3)]);
    m.directions[0].omit_ns = 0;
    m.directions[0].sent.truncate(1);
    assert_eq!(missing(&m), [Missing::new(Lack::LongerMeasurement).samples(1)]);
    // Enough of them, which do not tell.
    let mut m = WINDOW_BOUND.measurement();
    m.directions[0].sent.iter_mut().for_each(|s| s.snd_wnd_bytes = None);
    assert_eq!(missing(&m), [Missing::new(Lack::TcpInfoWindows)]);
}

#[test]
fn what_is_missing_is_named() {
    let mut m = WINDOW_BOUND.measurement();
    m.ceiling = None;
    m.rtt_idle_ns = None;
    m.directions[0].rtt_ns.idle = None;
    m.directions[0].rtt_ns.loaded = None;
    m.directions[0].sent.clear();
    let finding = explain(Direction::To, &m).remove(0);
    assert_eq!(finding.limit, Limit::Unknown);
    let missing: Vec<Lack> = finding.missing.iter().map(|missing| missing.what).collect();
    assert_eq!(missing, [Lack::TcpInfo, Lack::IdleRoundTrip, Lack::LoadedRoundTrip, Lack::NicSpeed]);
}

#[test]
fn loss_is_seen_though_no_rule_claims_it() {
    let lossy = Shape {
        in_flight: MIB / 2,
        cwnd: MIB / 2 / MSS * MSS,
        receive_window: 8 * MIB,
        retransmits: 240,
        ..WINDOW_BOUND
    };
    let finding = lossy.finding();
    let again = finding.observed(Fact::Retransmitted).unwrap();
    assert_eq!(again.value, 240.0);
    assert_eq!(again.figures::<fact::Retransmitted>().unwrap().segments, 291_782);
    let full = finding.observed(Fact::CongestionWindowFull).unwrap();
    assert_eq!((full.value, full.name.as_deref()), (0.96, Some("cubic")));
}

#[test]
fn what_was_sent_again_needlessly_is_told() {
    let lossy = Shape { in_flight: MIB / 2, receive_window: 8 * MIB, retransmits: 240, ..WINDOW_BOUND };
    let mut measurement = lossy.measurement();
    // The receiver tells of a copy that the network made too.
    for (told, needless) in
        [(None, None), (Some(0), None), (Some(200), Some(200.0)), (Some(900), Some(240.0))]
    {
        measurement.directions[0].needless_retransmits = told;
        let finding = explain(Direction::To, &measurement).remove(0);
        let said = finding.observed(Fact::NeedlessRetransmits).map(|evidence| evidence.value);
        assert_eq!(said, needless, "{told:?}");
    }
}
