//! A measurement made by hand, of a few figures, and the facts of it.

use bdp_explain::ceiling;
use bdp_model::facts::Facts;
use bdp_model::finding::{Finding, Limit};
use bdp_model::flow::udp::OneWayDelay;
use bdp_model::measurement::{Direction, IntervalSpread, Measurement};
use bdp_model::probes::one_way::{EachWay, EachWayReport};
use bdp_model::record::{EpisodeKind, LossEpisode, ReceiverSample, RttSummary, SenderSample};

pub const MSS: u64 = 1448;

pub const MIB: u64 = 1 << 20;

pub const MS: u64 = 1_000_000;

/// What is found of one direction; nothing where it was not measured.
pub fn explain(way: Direction, m: &Measurement) -> Vec<Finding> {
    Facts::measured(m, way).as_ref().map_or_else(Vec::new, bdp_explain::unweighed)
}

/// A measurement of ten seconds towards ams1, 24.2 ms away, as the parts of it say.
#[derive(Debug, Clone)]
pub struct Shape {
    pub goodput_mbps: f64,
    pub in_flight: u64,
    pub cwnd: u64,
    pub receive_window: u64,
    /// Share of the samples in which the above holds; in the others little is in flight.
    pub share: f64,
    pub rwnd_limited: Option<f64>,
    pub sndbuf_limited: Option<f64>,
    pub send_buffer: u64,
    pub rtt_loaded: u64,
    pub steady: f64,
    pub retransmits: u64,
    pub cpu: f64,
    pub nics: [Option<u64>; 2],
}

/// 1 MiB of receive window, full.
pub const WINDOW_BOUND: Shape = Shape {
    goodput_mbps: 338.0,
    in_flight: MIB,
    cwnd: 900 * MSS,
    receive_window: MIB,
    share: 0.96,
    rwnd_limited: Some(0.47),
    sndbuf_limited: Some(0.0),
    send_buffer: 4 * MIB,
    rtt_loaded: 24_200_000,
    steady: 0.97,
    retransmits: 0,
    cpu: 0.1,
    nics: [Some(1_000_000_000), Some(10_000_000_000)],
};

/// A full path of 50 Mbit/s with a queue of 100 ms.
pub const FULL_PATH: Shape = Shape {
    goodput_mbps: 50.0,
    in_flight: 500 * MSS,
    cwnd: 500 * MSS,
    receive_window: 8 * MIB,
    share: 1.0,
    rwnd_limited: Some(0.0),
    rtt_loaded: 124 * MS,
    ..WINDOW_BOUND
};

impl Shape {
    pub fn measurement(&self) -> Measurement {
        let text = include_str!("../../../../bdp-store/tests/it/measurement.json");
        let mut m: Measurement = serde_json::from_str(text).unwrap();
        m.near.device.as_mut().unwrap().speed_bps = self.nics[0];
        m.far.device.as_mut().unwrap().speed_bps = self.nics[1];
        let d = &mut m.directions[0];
        d.goodput_bps = self.goodput_mbps * 1e6;
        d.stream_goodput_bps = vec![d.goodput_bps];
        d.bytes = (d.goodput_bps * 10.0 / 8.0) as u64;
        d.retransmits = Some(self.retransmits);
        d.send_buffer_bytes = Some(self.send_buffer);
        d.sender_thread_cpu = Some(self.cpu);
        d.each_way_ns = None;
        // The spread stands for them.
        d.received.clear();
        d.spread = Some(IntervalSpread {
            intervals: 100,
            min: None,
            p5: Some(d.goodput_bps * self.steady),
            p50: d.goodput_bps,
            p95: Some(d.goodput_bps),
            max: None,
        });
        let p50 = self.rtt_loaded;
        d.rtt_ns.loaded = Some(RttSummary {
            sent: 200,
            received: 200,
            in_flight: 0,
            of_all: None,
            of_answers: None,
            min: p50,
            p50,
            p95: Some(p50 + MS),
            p99: Some(p50 + MS),
            max: p50 + MS,
        });
        d.findings.clear();
        d.sent = (1..=100u64)
            .map(|i| {
                let busy = i * 100 * MS;
                let bound = (i as f64) > 100.0 * (1.0 - self.share);
                let limited = |share: f64| (busy as f64 * share) as u64;
                SenderSample {
                    at_ns: busy,
                    acked_bytes: Some(d.bytes * i / 100),
                    unacked: Some(if bound { self.in_flight / MSS } else { 10 } as u32),
                    cwnd: Some((self.cwnd / MSS) as u32),
                    snd_wnd_bytes: Some(self.receive_window),
                    srtt_ns: Some(self.rtt_loaded),
                    retransmits: Some(0),
                    busy_ns: Some(busy),
                    rwnd_limited_ns: self.rwnd_limited.map(limited),
                    sndbuf_limited_ns: self.sndbuf_limited.map(limited),
                    ..SenderSample::default()
                }
            })
            .collect();
        m.ceiling = ceiling(&m);
        m
    }

    pub fn finding(&self) -> Finding {
        let mut findings = explain(Direction::To, &self.measurement());
        assert_eq!(findings.len(), 1, "{findings:?}");
        findings.remove(0)
    }
}

/// What the probes say of each way, medians before and under load in milliseconds: there, back.
pub fn each_way(idle: [i64; 2], loaded: [i64; 2]) -> EachWayReport {
    let delay = |ms: i64| {
        let ns = ms * MS as i64;
        OneWayDelay { min: ns, p50: ns, p95: Some(ns), p99: Some(ns), max: ns, clock_error: 12 * MS }
    };
    let both = |[there, back]: [i64; 2]| Some(EachWay { there: delay(there), back: delay(back) });
    EachWayReport { idle: both(idle), loaded: both(loaded), skew: None }
}

/// Ten seconds towards ams1 that nothing explains: 20 Mbit/s in 24.2 ms with 42 segments in flight, a congestion window that is full, and no
/// loss. The kernel's highest rate of delivery is 36 Mbit/s. Each test adds what its rule goes by.
pub fn plain() -> Facts {
    let goodput_bps = 20e6;
    let window = 42 * MSS;
    let shape = Shape {
        goodput_mbps: goodput_bps / 1e6,
        in_flight: window,
        cwnd: window,
        receive_window: 8 * MIB,
        share: 1.0,
        rwnd_limited: Some(0.0),
        ..WINDOW_BOUND
    };
    let mut facts = Facts::measured(&shape.measurement(), Direction::To).unwrap();
    facts.ceiling = None;
    facts.probes = None;
    facts.probes_lost = None;
    facts.loss_episodes.clear();
    facts.received = (0..=100).map(|i| came(i, i * 250_000)).collect();
    for (i, sample) in facts.sent.iter_mut().enumerate() {
        let i = i as u64;
        sample.min_rtt_ns = Some(24 * MS);
        sample.ssthresh = Some(30);
        sample.delivered = Some(i * 172);
        sample.delivery_rate_bps = Some((16 + i % 6 * 4) * 1_000_000);
        sample.app_limited = Some(false);
        sample.not_sent_bytes = Some(500_000);
    }
    facts
}

/// The receiver's reading at a tenth of a second, of so many bytes so far.
pub fn came(tenth: u64, bytes: u64) -> ReceiverSample {
    ReceiverSample { at_ns: tenth * 100 * MS, bytes, ..Default::default() }
}

/// The loss of a segment after slow start with so many in flight, at a tenth of a second.
pub fn lost(tenth: u64, unacked: u32) -> LossEpisode {
    LossEpisode {
        at_ns: tenth * 100 * MS,
        took_ns: 25 * MS,
        kind: EpisodeKind::Recovery,
        cwnd: unacked,
        unacked,
        srtt_ns: 24_500_000,
        delivered: tenth * 172,
        delivery_rate_bps: None,
        slow_start: false,
        retransmits: 1,
    }
}

/// Has the sender retransmit so many segments, evenly over the time.
pub fn retransmit(facts: &mut Facts, segments: u64) {
    facts.retransmits = Some(segments);
    let of = facts.sent.len() as u64 - 1;
    for (i, sample) in facts.sent.iter_mut().enumerate() {
        sample.retransmits = Some(i as u64 * segments / of);
    }
}

/// All that is found of these facts, the plain ones with a change.
pub fn findings(change: impl FnOnce(&mut Facts)) -> Vec<Finding> {
    let mut facts = plain();
    change(&mut facts);
    bdp_explain::unweighed(&facts)
}

/// The one finding of these facts.
pub fn found(change: impl FnOnce(&mut Facts)) -> Finding {
    let mut findings = findings(change);
    assert_eq!(findings.len(), 1, "{findings:?}");
    let finding = findings.remove(0);
    for evidence in &finding.evidence {
        let (value, least, most) = (evidence.value, evidence.at_least, evidence.at_most);
        let meets = least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most);
        assert!(meets, "{evidence:#?}");
    }
    finding
}

/// The limit that is found of the plain facts with a change.
pub fn limit(change: impl FnOnce(&mut Facts)) -> Limit {
    found(change).limit
}
