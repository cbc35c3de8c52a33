//! The JSON of measurements against its schema: what is written passes, and whatever is spoiled does not.

use std::collections::BTreeSet;

use bdp_explain::{ceiling, explain};
use bdp_model::facts::Facts;
use bdp_model::finding::Limit;
use bdp_model::finding::caveat::{Caveat, NoExperiment, NotMeasured, WindowShortfall};
use bdp_model::flow::method::{EndReason, TimestampSource};
use bdp_model::flow::udp::{Distribution, OneWayDelay, RateSearch, SearchEnd, Trial, UdpReport, UdpRequest};
use bdp_model::measurement::ends::{End, PeerProtocol, Task};
use bdp_model::measurement::expectation::{Expectation, Judgement};
use bdp_model::measurement::experiment::{Burst, Change, Experiment};
use bdp_model::measurement::responsiveness::{ForeignProbe, Responsiveness, WorkingLoad};
use bdp_model::measurement::settling::Settled;
use bdp_model::measurement::{Access, Direction, Measurement, MtuBlackHole, SshRequest};
use bdp_model::probes::latency_parts::LatencyParts;
use bdp_model::probes::one_way::{ClockSkew, EachWay, EachWayReport};
use bdp_model::probes::{ProbeOutcome, ProbePoint, ProbeSeries};
use bdp_model::record::RttSummary;
use bdp_report::{measurement_json, measurements_json};
use jsonschema::Validator;
use serde_json::{Value, json as value};

const SCHEMA: &str = include_str!("../../../../docs/measurement.schema.json");

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

fn validator() -> Validator {
    jsonschema::draft202012::new(&schema()).unwrap()
}

/// One expectation that was met, and one of which nothing was measured.
fn judged() -> Vec<Judgement> {
    let judge = |text: &str| text.parse::<Expectation>().unwrap().judge(&[full()]);
    vec![judge("to.goodput>=1k"), judge("to.loss<=1%"), judge("rtt.idle.max<1us")]
}

/// A measurement with every optional member there.
fn full() -> Measurement {
    let text = include_str!("../../../bdp-store/tests/it/measurement.json");
    let mut m: Measurement = serde_json::from_str(text).unwrap();
    m.request.family = Some(bdp_model::case::Family::Ipv6);
    m.request.ssh = Some(SshRequest {
        destination: "me@ams1".to_owned(),
        through: false,
        options: vec!["Port=2222".to_owned()],
        data_host: Some("ams1".to_owned()),
        data_port: Some(5202),
    });
    m.request.access = Some(Access::TokenFile { path: "token".to_owned() });
    m.ceiling = ceiling(&m);
    m.caveats = every_caveat();
    m.directions[0].window.note = Some(WindowShortfall::NotShrunk { seen_bytes: 1 });
    m.path.mtu_black_hole = Some(MtuBlackHole { mtu: 1400, known_mtu: 1500, exact: true });
    let mut back = m.directions[0].clone();
    back.direction = Direction::From;
    m.directions.push(back);
    m.directions[1].findings = explain(&Facts::measured(&m, Direction::From).unwrap());
    m.request.spec.udp = Some(UdpRequest {
        rate_bps: Some(100_000_000),
        search: Some(RateSearch { loss_ratio: 0.0, trial: RateSearch::usual_trial() }),
        datagram_bytes: Some(1400),
        dont_fragment: true,
    });
    let each = EachWay {
        there: OneWayDelay { min: -5, clock_error: 7, ..Default::default() },
        ..Default::default()
    };
    let skew = Some(ClockSkew { ppm: -3.5, error_ppm: 0.1 });
    m.directions[0].each_way_ns = Some(EachWayReport { idle: None, loaded: Some(each), skew });
    let series = probes();
    m.directions[0].rtt_ns.loaded = RttSummary::of_probes(series.points.iter().map(|point| point.outcome));
    m.directions[0].latency_parts_ns = LatencyParts::of(&series);
    m.directions[0].responsiveness = Some(responsiveness());
    m.request.responsiveness = true;
    m.request.no_experiments = true;
    m.request.until_settled = true;
    m.directions[0].settled = Some(Settled { after_ns: 1, of_ns: 2, goodput_bps: 1e6, error: 0.02 });
    m.experiments = experiments();
    (m.idle_probes, m.directions[0].probes) = (Some(series.clone()), Some(series));
    let times = Distribution { count: 9, p50: 1, p95: Some(2), p99: Some(3), max: 4 };
    m.directions[0].udp = Some(UdpReport {
        asked_bps: Some(1e8),
        sent: 9,
        dropped_by_receiver: Some(0),
        jitter_ns: Some(124_000),
        delay_variation_ns: Some(times),
        one_way_delay_ns: Some(OneWayDelay { min: -5, clock_error: 7, ..Default::default() }),
        send_gap_ns: Some(times),
        timestamps: TimestampSource::Kernel,
        receive_buffer_bytes: Some(1),
        trials: vec![Trial {
            rate_bps: Some(1e8),
            sent_bps: 1e8,
            received_bps: 1e8,
            sent: 9,
            lost: 0,
            loss_ratio: 0.0,
            dropped_by_receiver: Some(0),
            held: true,
            passed: true,
        }],
        search: Some(SearchEnd::Held),
        ..Default::default()
    });
    m
}

fn experiments() -> Vec<Experiment> {
    let paced = Experiment {
        direction: Direction::To,
        change: Change::Paced { rate_bps: 1e7 },
        between: vec![Limit::RandomLoss, Limit::Policer],
        duration_ns: 2_000_000_000,
        omit_ns: 0,
        bytes: 2_500_000,
        goodput_bps: 1e7,
        retransmits: Some(3),
        loss_events: 2,
        rtt_added_ns: Some(40_000),
        own_rtt_added_ns: Some(50_000),
        host_paused_ns: Some(200_000_000),
        burst: None,
    };
    let unknown = Experiment {
        change: Change::Streams { streams: 4 },
        retransmits: None,
        rtt_added_ns: None,
        own_rtt_added_ns: None,
        host_paused_ns: None,
        ..paced.clone()
    };
    let burst = Experiment {
        change: Change::Burst { datagrams: 40, rate_bps: 8e7 },
        burst: Some(Burst { sent: 40, lost: 12, sent_bps: 7.9e7, delay_added_ns: 3_000_000 }),
        ..paced.clone()
    };
    vec![paced, unknown, burst]
}

/// One with none of them.
fn bare() -> Measurement {
    let mut m = full();
    m.label = None;
    m.experiments = Vec::new();
    m.request.no_experiments = false;
    m.request.family = None;
    m.request.spec.udp = None;
    m.directions[0].udp = None;
    m.request.ssh = None;
    m.near.device = None;
    m.ceiling = None;
    m.rtt_idle_ns = None;
    m.path = Default::default();
    let d = &mut m.directions[0];
    d.spread = None;
    d.rtt_ns = Default::default();
    d.retransmits = None;
    d.mss_bytes = None;
    d.send_buffer_bytes = None;
    d.sent.clear();
    m.directions[0].findings = explain(&Facts::measured(&m, Direction::To).unwrap());
    m
}

fn failed() -> Measurement {
    Measurement { error: Some("it went away".into()), directions: Vec::new(), ..bare() }
}

/// One of each kind that a measurement may have.
/// Probes of which each outcome and each member is known of some.
fn probes() -> ProbeSeries {
    let answered = |ms: i64| ProbePoint {
        there_ns: Some(-3),
        back_ns: Some(4),
        host_ns: Some(5),
        ..ProbePoint::plain(ms, ms + 1, ProbeOutcome::Answered(7))
    };
    let outcomes =
        [ProbeOutcome::Lost { waited_ns: 9 }, ProbeOutcome::InFlight { waited_ns: 3 }, ProbeOutcome::Unsent];
    let others = outcomes.map(|outcome| ProbePoint::plain(50, 50, outcome));
    ProbeSeries { counted_ns: Some((-5, 100)), points: (-1..30).map(answered).chain(others).collect() }
}

fn responsiveness() -> Responsiveness {
    let mut load = WorkingLoad::default();
    let foreign = vec![
        ForeignProbe { at_ns: -5, tcp_ns: Some(1), exchange_ns: Some(2) },
        ForeignProbe { at_ns: 5, tcp_ns: None, exchange_ns: None },
    ];
    load.note((1_000_000_000, 1_000_000_000), 1, 4, &foreign, &mut [3]);
    load.conclude(foreign, vec![3])
}

fn every_caveat() -> Vec<Caveat> {
    let (end, device, direction, task) =
        (End::Near, || Some("eth0".to_owned()), Direction::To, Task::Sending);
    let address = "192.0.2.1:5201".parse().unwrap();
    let directions = || vec![Direction::From];
    let not_measured = |reason| Caveat::NotMeasured { directions: directions(), reason };
    let shortfall = |reason| Caveat::WindowNotReached { direction, reason };
    vec![
        Caveat::HypervisorSteal { end, share: 0.31 },
        Caveat::HalfDuplex { end, device: None },
        Caveat::DeviceDrops {
            end,
            device: device(),
            rx_dropped: 1,
            rx_missed: 2,
            rx_fifo: 3,
            tx_dropped: 4,
            tx_fifo: 5,
        },
        Caveat::CrossTraffic { end, device: device(), task, rate_bps: 1e6, share: 0.1 },
        Caveat::BacklogDrops { end, packets: 1 },
        Caveat::CpuQuota { end, periods: 1, throttled_ns: None },
        Caveat::HostLatency { direction, host_ns: 1, rtt_ns: 2 },
        Caveat::SocketBufferCut { direction, task, asked_bytes: 2, granted_bytes: 1 },
        Caveat::BusyThread { direction, task, share: 1.0 },
        Caveat::TimeRanOut { direction, bytes: 1, asked_bytes: 2, after_ns: 3 },
        Caveat::EndedEarly { direction, reason: EndReason::Reset },
        shortfall(WindowShortfall::Unreported),
        shortfall(WindowShortfall::ScaleRounding { seen_bytes: 1, unit_bytes: 1 }),
        shortfall(WindowShortfall::NotShrunk { seen_bytes: 1 }),
        shortfall(WindowShortfall::NotOffered { seen_bytes: 1, buffer_bytes: 1 }),
        shortfall(WindowShortfall::BufferTooSmall { seen_bytes: 1, buffer_bytes: None }),
        Caveat::RateNotReached { direction, sent_bps: 1.0, asked_bps: 2.0, left_out: 1 },
        Caveat::BackedOff { direction, asked_bps: Some(2.0), loss_ratio: 0.5, rate_bps: 1.0 },
        Caveat::SearchNotHeld { direction },
        Caveat::LossAtAnyRate { direction },
        Caveat::SearchCutShort { direction, trials: 1, passed: 0, rate_bps: 1.0 },
        Caveat::ReceiverDrops { direction, dropped: 1, lost: 1 },
        Caveat::Fragmented { direction, datagram_bytes: 1400, path_mtu: 1300 },
        Caveat::LastUncounted { direction, datagrams: 1 },
        Caveat::ServerRateLimit { rate_bps: 1 },
        not_measured(NotMeasured::NoSecondTest { address }),
        not_measured(NotMeasured::NoAnswer { address, waited_ns: 1 }),
        not_measured(NotMeasured::NoDatagrams { address, waited_ns: 1 }),
        Caveat::NoExperiment { direction, reason: NoExperiment::OtherProtocol },
        Caveat::NoExperiment { direction, reason: NoExperiment::HostPaused { pause_ns: 1 } },
        Caveat::NoExperiment { direction, reason: NoExperiment::Failed { error: "busy".to_owned() } },
        Caveat::Interrupted { not_measured: directions() },
        Caveat::RecognisedIperf3,
        Caveat::ForeignServer { protocol: PeerProtocol::Iperf2, datagrams: true },
        Caveat::WebServer { host: "example.net".to_owned(), handshake_interval_ns: 1 },
        Caveat::FileTooShort { after_ns: 1, repeated_from_bytes: 1 },
        Caveat::ProbesOverTcp { port: 5201 },
        Caveat::MtuBlackHole {
            mtu: 1280,
            known_mtu: 1500,
            exact: true,
            ipv6: false,
            fits_bytes: 1252,
            asked_bytes: None,
        },
        Caveat::MtuUnconfirmed { datagram_bytes: 1472, known_mtu: 1500 },
        Caveat::OptionStripped { option: "SACK".to_owned() },
        Caveat::MssClamped { mss_bytes: 1188, fits_bytes: 1448, mtu: 1500 },
        Caveat::SshTunnel,
        Caveat::Text("as an older version said it".to_owned()),
    ]
}

#[test]
fn the_schema_has_every_kind_of_caveat_and_no_other() {
    let kinds = |value: &Value| -> BTreeSet<String> {
        let all = value.as_array().unwrap().iter();
        all.map(|one| one["kind"].as_str().unwrap_or_else(|| panic!("{one}")).to_owned()).collect()
    };
    let measured = bare();
    let document = measurement_json(&measured);
    let schema = schema();
    let described: Value = schema["$defs"]["caveat"]["anyOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| value!({ "kind": one["properties"]["kind"]["const"] }))
        .collect();
    assert_eq!(kinds(&document["caveats"]), kinds(&described));
    for caveat in document["caveats"].as_array().unwrap() {
        assert!(caveat["text"].as_str().is_some_and(|text| text.len() > 20), "{caveat}");
    }
    let back: Measurement = serde_json::from_value(document).unwrap();
    assert_eq!(back, measured);
}

#[test]
fn what_is_written_passes() {
    assert!(jsonschema::meta::is_valid(&schema()));
    let validator = validator();
    let several = [full(), bare(), failed()];
    let mut documents: Vec<Value> = several.iter().map(measurement_json).collect();
    documents.extend([
        measurements_json(&several, Some("7f3a"), &judged()),
        measurements_json(&[failed()], None, &[]),
    ]);
    for document in documents {
        let complaints: Vec<String> =
            validator.iter_errors(&document).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert_eq!(complaints, Vec::<String>::new());
    }
}

/// Every object in the document, by its JSON pointer, but those whose keys are data.
fn objects(document: &Value, at: &str, found: &mut Vec<(String, Vec<String>)>) {
    match document {
        Value::Object(members) if !at.ends_with("/sysctls") => {
            found.push((at.to_owned(), members.keys().cloned().collect()));
            for (key, member) in members {
                objects(member, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                objects(item, &format!("{at}/{i}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn whatever_is_spoiled_fails_wherever_it_is() {
    let validator = validator();
    let document = measurements_json(&[full()], Some("7f3a"), &judged());
    let mut found = Vec::new();
    objects(&document, "", &mut found);
    assert!(found.len() > 30, "the walk must reach samples and findings: {}", found.len());
    for (pointer, keys) in found {
        let object = |spoiled: &mut Value, change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
            change(spoiled.pointer_mut(&pointer).and_then(Value::as_object_mut).unwrap());
        };
        let mut spoiled = document.clone();
        object(&mut spoiled, &|o| drop(o.insert("x".into(), 1.into())));
        assert!(!validator.is_valid(&spoiled), "{pointer} with a member x passes");
        for key in keys {
            let mut spoiled = document.clone();
            // Absent if every probe was answered, if there were no experiments or they may be, and of a test that goes on to its end.
            let absent = [
                "of_answers",
                "experiments",
                "no_experiments",
                "until_settled",
                "settled",
                "host_paused_ns",
                "burst",
            ];
            if !absent.contains(&key.as_str()) {
                object(&mut spoiled, &|o| drop(o.remove(&key)));
                assert!(!validator.is_valid(&spoiled), "{pointer} without {key} passes");
            }
            let mut spoiled = document.clone();
            object(&mut spoiled, &|o| drop(o.insert(key.clone(), value!([[[]]]))));
            assert!(!validator.is_valid(&spoiled), "{pointer}/{key} as a list of lists passes");
        }
    }
}

#[test]
fn a_summary_leaves_failed_runs_out() {
    let mut runs = [full(), full(), full(), failed()];
    for (m, goodput) in runs.iter_mut().zip([1e6, 5e6, 3e6]) {
        m.directions[0].goodput_bps = goodput;
    }
    runs[3].rtt_idle_ns = None;
    let document = measurements_json(&runs, None, &[]);
    let summary = &document["summary"];
    assert_eq!((&summary["n"], &summary["n_failed"]), (&value!(3), &value!(1)));
    assert_eq!(summary["rtt_idle_ns"]["p50"], value!(24.2e6));
    let to = &summary["directions"][0];
    assert_eq!(
        (
            &to["direction"],
            &to["n"],
            &to["goodput_median_bps"],
            &to["goodput_min_bps"],
            &to["goodput_max_bps"]
        ),
        (&value!("to"), &value!(3), &value!(3e6), &value!(1e6), &value!(5e6))
    );
    assert_eq!(to["limits"], value!([{ "limit": "receive_window", "n": 3 }]));
    let back: Vec<Measurement> = serde_json::from_value(document["runs"].clone()).unwrap();
    assert_eq!(back, runs);
}
