//! Flows of the lab: the same rules, by what the lab knows of its links.

use bdp_explain::explain;
use bdp_model::case::CaseSpec;
use bdp_model::facts::Facts;
use bdp_model::finding::{Action, Cause, Confidence, Fact, Finding, Limit, Place, Quantity, Remedy};
use bdp_model::flow::udp::UdpReport;
use bdp_model::record::{
    Environment, Fidelity, FlowRecord, RECORD_SCHEMA, ReceiverSample, Record, RttReport, RttSummary,
    SenderSample, Transfer, WindowReport,
};
use bdp_scenario::Scenario;

const MS: u64 = 1_000_000;
const MSS: u64 = 1448;

fn case(text: &str) -> CaseSpec {
    let text = format!("title = 't'\n{text}");
    Scenario::parse("t.toml", &text).unwrap().plan(&Default::default()).unwrap().remove(0)
}

fn round_trips(ms: u64) -> RttSummary {
    let at = ms * MS;
    RttSummary {
        sent: 100,
        received: 100,
        min: at,
        p50: at,
        p95: Some(at),
        p99: Some(at),
        max: at,
        in_flight: 0,
        of_all: None,
        of_answers: None,
    }
}

/// A flow of ten seconds at a steady rate, of which each sample has so many segments in flight.
fn flow(mbps: f64, in_flight: u32, window_bytes: u64, rtt_loaded_ms: u64) -> FlowRecord {
    let bytes_at = |i: u64| (mbps * 1e5 / 8.0) as u64 * i;
    FlowRecord {
        from: "near".to_owned(),
        to: "far".to_owned(),
        start_ns: 0,
        received_bytes: bytes_at(100),
        transfer: Transfer {
            rtt_ns: RttReport {
                idle: Some(round_trips(20)),
                loaded: Some(round_trips(rtt_loaded_ms)),
                ..RttReport::default()
            },
            goodput_bps: mbps * 1e6,
            duration_ns: 10_000 * MS,
            stream_goodput_bps: vec![mbps * 1e6],
            retransmits: Some(0),
            congestion_control: "cubic".to_owned(),
            mss_bytes: Some(MSS),
            window: WindowReport { on_the_wire_bytes: Some(window_bytes), ..WindowReport::default() },
            received: (0..=100)
                .map(|i| ReceiverSample { at_ns: i * 100 * MS, bytes: bytes_at(i), ..Default::default() })
                .collect(),
            sent: (1..=100)
                .map(|i| SenderSample {
                    at_ns: i * 100 * MS,
                    unacked: Some(in_flight),
                    cwnd: Some(400),
                    snd_wnd_bytes: Some(window_bytes),
                    srtt_ns: Some(rtt_loaded_ms * MS),
                    busy_ns: Some(i * 100 * MS),
                    rwnd_limited_ns: Some(0),
                    sndbuf_limited_ns: Some(0),
                    ..Default::default()
                })
                .collect(),
            ..Transfer::default()
        },
    }
}

fn record(case: CaseSpec, flows: Vec<FlowRecord>) -> Record {
    Record {
        schema: RECORD_SCHEMA.to_owned(),
        ceiling_unknown: false,
        scenario: case.scenario.clone(),
        title: case.title.clone(),
        params: case.params.clone(),
        repetition: 1,
        attempt: 1,
        seed: 1,
        valid: true,
        fidelity: Fidelity::default(),
        goodput_bps: None,
        expected_bps: None,
        expected_least_bps: None,
        expected_by: None,
        published_bps: None,
        expectation: None,
        rtt_idle_ns: None,
        rtt_ns: RttReport::default(),
        window: WindowReport::default(),
        flows,
        captures: Vec::new(),
        programs: Vec::new(),
        counters: Default::default(),
        traffic: Vec::new(),
        error: None,
        probes: Vec::new(),
        skipped: None,
        environment: Environment::default(),
        case,
    }
}

fn found(case: CaseSpec, flow: FlowRecord) -> Finding {
    let facts = Facts::emulated(&record(case, vec![flow]), 0).unwrap();
    explain(&facts).remove(0)
}

const LINK: &str = "[link]\nbetween = ['near', 'far']\ndelay = '10ms'\nrate = '20M'\n";

#[test]
fn a_window_of_the_scenario_limits_by_the_key_that_set_it() {
    let finding = found(case(&format!("{LINK}[flow]\nwindow = '16K'")), flow(6.3, 11, 16_384, 20));
    assert_eq!((finding.limit, &finding.place), (Limit::ReceiveWindow, &Place::receiver("far")));
    assert_eq!(finding.cause, Some(Cause::WindowAsked));
    let asked = finding.observed(Fact::WindowAsked).unwrap();
    assert_eq!((asked.value, asked.name.as_deref()), (16_384.0, Some("flow.window")));
    // 18.83 Mbit/s in 20 ms.
    let remedy = finding.remedy.unwrap();
    assert_eq!((remedy.action, remedy.setting.as_deref()), (Action::AskWindow, Some("flow.window")));
    assert_eq!((remedy.value.unwrap() / 1024.0).round(), 46.0);
    let next = finding.next.unwrap();
    assert_eq!((next.limit, next.needed_bytes), (Limit::Ceiling, remedy.value));
}

#[test]
fn window_that_was_asked_for_is_not_laid_to_window_scaling() {
    let of = |window: &str, bytes: u64, mbps: f64| {
        let mut record = record(
            case(&format!(
                "[link]\nbetween = ['near', 'far']\ndelay = '10ms'\nrate = '1G'\n[flow]\nwindow = '{window}'"
            )),
            vec![flow(mbps, (bytes / MSS) as u32, bytes, 20)],
        );
        let scaling = [("net.ipv4.tcp_window_scaling".to_owned(), "0".to_owned())];
        record.environment.sysctls.insert("far".to_owned(), scaling.into());
        let finding = explain(&Facts::emulated(&record, 0).unwrap()).remove(0);
        assert_eq!(finding.limit, Limit::ReceiveWindow);
        finding.remedy.unwrap()
    };
    let scaling =
        Remedy::new(Action::Set).setting("net.ipv4.tcp_window_scaling").value(Quantity::count(1)).host("far");
    for (window, bytes, mbps) in [("30K", 30_408, 12.0), ("64K", 65_535, 26.0)] {
        let remedy = of(window, bytes, mbps);
        assert_eq!(remedy.action, Action::AskWindow);
        assert_eq!((remedy.value.unwrap() / 10_485.76).round(), 224.0);
        assert_eq!(remedy.also.as_deref(), Some(&scaling));
    }
    assert_eq!(of("1M", 65_535, 26.0), scaling);
}

#[test]
fn a_full_link_is_the_ceiling() {
    let finding = found(case(&format!("{LINK}[flow]")), flow(18.8, 40, 1 << 20, 24));
    assert_eq!((finding.limit, finding.confidence), (Limit::Ceiling, Confidence::High));
    assert_eq!(finding.place, Place::hop("the link near->far, 20 Mbit/s"));
    assert_eq!(finding.remedy, None);
}

#[test]
fn the_narrowest_hop_of_a_route_is_its_ceiling() {
    let routed = |second: &str| {
        let links = "[hosts.hop]\nrouter = true\n[[link]]\nbetween = ['near', 'hop']\nrate = '100M'\n";
        case(&format!(
            "{links}[[link]]\nbetween = ['hop', 'far']\n{second}\n[flow]\nfrom = 'near'\nto = 'far'"
        ))
    };
    let ceiling = |case: CaseSpec| {
        let facts = Facts::emulated(&record(case, vec![flow(1.0, 1, 65_536, 20)]), 0).unwrap();
        facts.ceiling.map(|ceiling| (ceiling.by, (ceiling.goodput_bps / 1e4).round() / 100.0))
    };
    // x 1448 / 1538. What a policer does to TCP is a finding of its own.
    assert_eq!(ceiling(routed("rate = '50M'")), Some(("the link hop->far, 50 Mbit/s".to_owned(), 47.07)));
    assert_eq!(ceiling(routed("")), Some(("the link near->hop, 100 Mbit/s".to_owned(), 94.15)));
    let policed = routed("forward.policer = { rate = '5M', burst = '32K' }");
    assert_eq!(ceiling(policed), Some(("the link near->hop, 100 Mbit/s".to_owned(), 94.15)));
    assert_eq!(ceiling(case("[link]\nbetween = ['near', 'far']\ndelay = '10ms'\n[flow]")), None);
}

#[test]
fn flows_that_meet_on_a_link_load_both_directions_while_both_last() {
    let meets = |second: &str| {
        let flows = "[[flow]]\nfrom = 'near'\nto = 'far'\nduration = '10s'\n";
        let case = case(&format!("{LINK}{flows}[[flow]]\n{second}"));
        let records = vec![flow(9.0, 20, 1 << 20, 24), flow(9.0, 20, 1 << 20, 24)];
        Facts::emulated(&record(case, records), 0).unwrap().both_directions
    };
    assert!(meets("from = 'far'\nto = 'near'\nduration = '10s'"));
    assert!(!meets("from = 'far'\nto = 'near'\nduration = '10s'\nstart = '10s'"));
    assert!(!meets("from = 'near'\nto = 'far'\nduration = '10s'"));
}

#[test]
fn datagrams_that_all_came_are_told_from_what_a_measurement_could_do() {
    let case = case(&format!("{LINK}[flow]\nprotocol = 'udp'\nrate = '5M'"));
    let datagrams = Transfer {
        mss_bytes: None,
        sent: Vec::new(),
        udp: Some(UdpReport {
            asked_bps: Some(5e6),
            sent_bps: 5e6,
            datagram_bytes: 1472,
            sent: 4245,
            received: 4245,
            ..UdpReport::default()
        }),
        ..flow(5.0, 0, 0, 20).transfer
    };
    let finding = found(case, FlowRecord { transfer: datagrams, ..flow(5.0, 0, 0, 20) });
    // The lab searches no rate.
    assert_eq!((finding.limit, &finding.remedy), (Limit::AskedRate, &None));
    let of_ceiling = finding.observed(Fact::OfCeilingInDatagrams).unwrap();
    assert_eq!(of_ceiling.name.as_deref(), Some("the link near->far, 20 Mbit/s"));
}

#[test]
fn a_flow_that_is_not_there_has_no_facts() {
    assert_eq!(Facts::emulated(&record(case(&format!("{LINK}[flow]")), Vec::new()), 0), None);
}
