//! A measurement between two machines, as it looks.

use bdp_explain::explain;
use bdp_model::case::Family;
use bdp_model::facts::Facts;
use bdp_model::finding::caveat::{Caveat, NoExperiment, WindowShortfall};
use bdp_model::finding::{Confidence, Finding, Limit, Place};
use bdp_model::flow::FlowSpec;
use bdp_model::flow::method::EndReason;
use bdp_model::flow::window::WindowBytes;
use bdp_model::measurement::{
    Access, Direction, DirectionResult, IntervalSpread, MeasureRequest, Measurement, MtuBlackHole,
    PeerProtocol, SshRequest,
};
use bdp_model::record::{ProbeOutcome, RttSummary, StreamReport};
use bdp_model::units::{ByteCount, Nanos};
use bdp_report::{RateUnit, Style, measurements_text};

const UNICODE: Style = Style { unicode: true, ..Style::plain() };
const US: u64 = 1000;

/// The sample of the store, explained.
fn one_way() -> Measurement {
    let text = include_str!("../../../bdp-store/tests/it/measurement.json");
    let mut m: Measurement = serde_json::from_str(text).unwrap();
    m.label = None;
    m.caveats.clear();
    // Two samples are too few to judge by: the same for ten seconds.
    let last = m.directions[0].sent[1];
    m.directions[0].sent = (1..=100)
        .map(|i| bdp_model::record::SenderSample {
            at_ns: i * 100_000 * US,
            busy_ns: Some(i * 100_000 * US),
            rwnd_limited_ns: Some(i * 47_000 * US),
            ..last
        })
        .collect();
    explained(m)
}

/// Its way back too, which is at the ceiling and fills a queue.
fn both_ways() -> Measurement {
    let mut m = one_way();
    let mut back: DirectionResult = m.directions[0].clone();
    back.direction = Direction::From;
    back.goodput_bps = 934e6;
    back.stream_goodput_bps = vec![934e6];
    back.bytes = 1_167_500_000;
    back.spread = Some(IntervalSpread {
        intervals: 100,
        min: Some(915e6),
        p5: Some(921e6),
        p50: 934e6,
        p95: Some(941e6),
        max: Some(941e6),
    });
    back.window.on_the_wire_bytes = Some(12 << 20);
    back.window.on_the_wire_max_bytes = Some(14 << 20);
    back.retransmits = Some(318);
    back.rtt_ns.loaded = Some(rtt(71_900 * US, 84_600 * US, 88_000 * US));
    m.directions.push(back);
    explained(m)
}

/// Over devices that tell nothing, with losses and all that can be wrong.
fn troubled() -> Measurement {
    let mut m = one_way();
    m.near.device = None;
    m.near.address = "2001:db8::7".into();
    m.far.address = "2001:db8::14".into();
    m.far.name = "ams1\x1b[2J".into();
    m.far.bdp = "0.2.0".into();
    let device = m.far.device.as_mut().unwrap();
    (device.speed_bps, device.drops) = (None, Some(17));
    m.far.cpu_busy = Some(0.97);
    m.near.cpu_steal = Some(0.12);
    m.path.mtu_from = None;
    m.path.mtu_black_hole = Some(MtuBlackHole { mtu: 1400, known_mtu: 1500, exact: true });
    m.path.mtu_to = Some(1400);
    m.request.spec.window = Some("64K".parse().unwrap());
    m.caveats = vec![Caveat::Text("the far end ran another measurement meanwhile".into())];
    let d = &mut m.directions[0];
    d.sent.clear();
    d.retransmits = None;
    d.rtt_ns.loaded = Some(RttSummary { received: 0, ..rtt(0, 0, 0) });
    d.window.asked_bytes = Some(65_536);
    d.window.on_the_wire_bytes = None;
    d.window.reached = Some(false);
    d.window.note = Some(WindowShortfall::Text("SO_RCVBUF ends at net.core.rmem_max, 208 KiB".into()));
    d.ended = EndReason::Stopped;
    explained(m)
}

#[test]
fn a_percentile_among_lost_probes_is_printed_as_what_it_is_above() {
    let mut m = both_ways();
    let answered = [ProbeOutcome::Answered(24_200_000); 90];
    let lost = [ProbeOutcome::Lost { waited_ns: 1_000_000_000 }; 10];
    m.directions[0].rtt_ns.loaded = RttSummary::of_probes(answered.into_iter().chain(lost));
    let text = measurements_text(&[m], None, None, &Style::plain());
    assert!(text.contains("24.3/>1000/>1000") || text.contains("24.2/>1000/>1000"), "{text}");
}

/// Five runs, one of which failed.
fn five_runs() -> Vec<Measurement> {
    let mut runs: Vec<Measurement> = [1.0, 0.99, 1.02, 0.98, 1.0]
        .into_iter()
        .zip(1..)
        .map(|(factor, repetition)| {
            let mut m = both_ways();
            m.repetition = repetition;
            m.label = Some("before".into());
            for d in &mut m.directions {
                d.goodput_bps *= factor;
                d.stream_goodput_bps[0] *= factor;
            }
            explained(m)
        })
        .collect();
    runs[4].error = Some("198.51.100.20:5201 went away".into());
    runs[4].directions.clear();
    runs
}

fn rtt(p50: u64, p95: u64, p99: u64) -> RttSummary {
    RttSummary {
        sent: 200,
        received: 200,
        in_flight: 0,
        of_all: None,
        of_answers: None,
        min: p50,
        p50,
        p95: Some(p95),
        p99: Some(p99),
        max: p99,
    }
}

fn explained(mut m: Measurement) -> Measurement {
    m.ceiling = bdp_explain::ceiling(&m);
    for i in 0..m.directions.len() {
        let facts = Facts::measured(&m, m.directions[i].direction).unwrap();
        m.directions[i].findings = explain(&facts);
    }
    m
}

fn narrow(width: u16) -> Style {
    Style { width, ..Style::plain() }
}

fn detailed(width: u16) -> Style {
    Style { width, details: true, ..Style::plain() }
}

#[test]
fn a_measurement_both_ways() {
    insta::assert_snapshot!(measurements_text(&[both_ways()], Some("7f3a"), None, &Style::plain()));
}

#[test]
fn a_measurement_with_its_details() {
    insta::assert_snapshot!(measurements_text(&[both_ways()], Some("7f3a"), None, &detailed(100)));
}

/// The direction in trouble first, whichever ran first, and all of it on one screen.
#[test]
fn answer_stands_in_the_first_lines_and_all_of_it_in_twenty() {
    let mut swapped = both_ways();
    swapped.directions.reverse();
    for m in [one_way(), both_ways(), troubled(), swapped] {
        let name = m.far.name.replace('\x1b', " ");
        let text = measurements_text(&[m], Some("7f3a"), None, &Style::plain());
        let first = text.lines().next().unwrap();
        assert!(first.starts_with(&format!("-> {name}  338 Mbit/s, limit")), "{text}");
        assert!(text.lines().count() <= 20, "{text}");
    }
    let failed = measurements_text(&five_runs()[4..], None, None, &Style::plain());
    assert_eq!(failed.lines().next(), Some("FAILED   #5: 198.51.100.20:5201 went away"), "{failed}");
}

#[test]
fn congestion_control_is_the_one_that_was_used() {
    let mut m = both_ways();
    m.near.congestion_control = Some("bbr".into());
    m.directions[0].congestion_control = "reno".into();
    m.directions[1].congestion_control = "cubic".into();
    let text = measurements_text(std::slice::from_ref(&m), None, None, &detailed(200));
    assert!(text.contains(", -> reno <- cubic, "), "{text}");
    assert!(text.contains("reno (default bbr)"), "{text}");
    m.directions[0].congestion_control = "cubic".into();
    let text = measurements_text(&[m], None, None, &narrow(200));
    assert!(text.contains(":5201, cubic, ") && !text.contains("bbr"), "{text}");
}

#[test]
fn a_measurement_both_ways_in_unicode() {
    insta::assert_snapshot!(measurements_text(&[both_ways()], Some("7f3a"), None, &UNICODE));
}

#[test]
fn a_measurement_in_60_columns() {
    insta::assert_snapshot!(measurements_text(&[both_ways()], Some("7f3a"), None, &narrow(60)));
}

#[test]
fn an_experiment_that_was_not_run_is_a_note_if_it_could_have_changed_the_answer() {
    let text = |limit, style| {
        let mut m = explained(one_way());
        m.directions[0].findings = vec![Finding::new(limit, Place::path(), Confidence::Medium)];
        let direction = m.directions[0].direction;
        m.caveats = vec![Caveat::NoExperiment { direction, reason: NoExperiment::OtherProtocol }];
        measurements_text(&[m], None, None, &style)
    };
    let note = "no experiment was run to decide what limits it: that needs 'bdp serve'";
    for limit in [Limit::Unknown, Limit::ShallowQueue, Limit::RandomLoss] {
        assert!(text(limit, narrow(160)).contains(note), "{limit:?}");
    }
    for limit in [Limit::PathRate, Limit::Policer, Limit::Reordering] {
        assert!(!text(limit, narrow(160)).contains("experiment"), "{limit:?}");
        assert!(text(limit, detailed(160)).contains(note), "{limit:?}");
    }
}

#[test]
fn a_measurement_with_troubles() {
    insta::assert_snapshot!(measurements_text(&[troubled()], None, None, &Style::plain()));
}

/// The rows of the table of streams.
fn stream_rows(text: &str) -> Vec<String> {
    let rows = text.lines().skip_while(|line| !line.starts_with("stream")).skip(1);
    let row = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    rows.take_while(|line| !line.is_empty()).map(row).collect()
}

#[test]
fn streams_have_a_row_each_and_many_are_bounded() {
    let mut m = both_ways();
    m.directions[0].stream_goodput_bps = vec![100e6, 120e6, 118e6];
    m.directions[1].stream_goodput_bps = vec![300e6, 310e6, 324e6];
    let rows = |m: &Measurement, style: &Style| {
        stream_rows(&measurements_text(std::slice::from_ref(m), None, None, style))
    };
    assert_eq!(rows(&m, &Style::plain()), ["1 100 300", "2 120 310", "3 118 324"]);
    // What its sender's kernel counted of each.
    let stream = |retransmits, busy_ms: u64, rwnd_ms: u64| StreamReport {
        took_ns: 1_000_000_000,
        retransmits: Some(retransmits),
        busy_ns: Some(busy_ms * 1_000_000),
        rwnd_limited_ns: Some(rwnd_ms * 1_000_000),
        sndbuf_limited_ns: Some(0),
        ..StreamReport::default()
    };
    m.directions[0].streams = vec![stream(0, 1000, 960), stream(3, 1000, 0), stream(12, 300, 0)];
    let counted = [
        "1 100 0 receive window 96 % 300",
        "2 120 3 congestion window 100 % 310",
        "3 118 12 no data to send 70 % 324",
    ];
    assert_eq!(rows(&m, &Style::plain()), counted);
    m.directions[0].stream_goodput_bps = (1..=17).map(|n| f64::from(n) * 1e6).collect();
    m.directions.truncate(1);
    assert_eq!(rows(&m, &Style::plain()), ["min 1.00", "median 9.00", "max 17.0"]);
    assert_eq!(rows(&m, &Style { every_stream: true, ..Style::plain() }).len(), 17);
    m.directions[0].stream_goodput_bps = vec![338e6];
    assert!(rows(&m, &Style::plain()).is_empty(), "one stream has the row of its direction");
}

#[test]
fn goodput_is_printed_in_the_unit_that_was_asked_for() {
    let style = Style { rate_unit: RateUnit::of_letter('M'), ..Style::plain() };
    let text = measurements_text(&[both_ways()], None, None, &style);
    assert!(text.contains("40.3 MiB/s"), "{text}");
}

#[test]
fn several_runs() {
    insta::assert_snapshot!(measurements_text(&five_runs(), Some("7f3a"), None, &Style::plain()));
}

/// What is held against a run has to be measured as the run was, and to be found where it is kept.
#[test]
fn commands_repeat_the_request_and_name_the_store() {
    let commands = |m: &Measurement, store| {
        let text = measurements_text(std::slice::from_ref(m), Some("7f3a"), store, &detailed(400));
        let next = text.lines().skip_while(|line| !line.starts_with("next "));
        next.map(|line| line[9..].to_owned()).collect::<Vec<_>>().join(" | ")
    };
    let mut m = both_ways();
    m.request = MeasureRequest::to("ams1");
    assert_eq!(
        commands(&m, None),
        "bdp report 7f3a | bdp measure ams1 --baseline 7f3a | bdp measure ams1 --runs 6"
    );
    let plain = m.request.clone();
    m.request = MeasureRequest {
        port: 5999,
        directions: vec![Direction::To],
        family: Some(Family::Ipv4),
        spec: FlowSpec {
            streams: 4,
            duration: Nanos::millis(3_500),
            omit: Nanos::secs(1),
            window: WindowBytes::new(64 << 10),
            length: ByteCount::bytes(319_000),
            congestion: Some("bbr".into()),
            nodelay: true,
            ..FlowSpec::default()
        },
        ..plain.clone()
    };
    assert_eq!(
        commands(&m, Some("/tmp/a b.sqlite")),
        "bdp report 7f3a --store '/tmp/a b.sqlite' | bdp measure ams1 -p 5999 --forward -4 -t 2.5 -O 1 -P 4 -w 64K \
         -C bbr -N -l 319000 --baseline 7f3a --store '/tmp/a b.sqlite' | bdp measure ams1 -p 5999 --forward -4 \
         -t 2.5 -O 1 -P 4 -w 64K -C bbr -N -l 319000 --runs 6 --store '/tmp/a b.sqlite'"
    );
    m.request = MeasureRequest {
        bidirectional: true,
        spec: FlowSpec {
            bytes: Some(ByteCount::kib(2048)),
            duration: Nanos::secs(3600),
            ..FlowSpec::default()
        },
        bind_device: Some("a;b".into()),
        ..plain.clone()
    };
    assert_eq!(
        commands(&m, None),
        "bdp report 7f3a | bdp measure ams1 --bidir --bind-dev 'a;b' -n 2M --baseline 7f3a | bdp measure ams1 --bidir \
         --bind-dev 'a;b' -n 2M --runs 6"
    );
    m.request = MeasureRequest {
        peer: Some(PeerProtocol::Iperf3),
        spec: FlowSpec { pacing_bps: Some(20_000_000), ..FlowSpec::default() },
        server_output: true,
        ..plain.clone()
    };
    assert_eq!(
        commands(&m, None),
        "bdp report 7f3a | bdp measure ams1 --iperf3 --get-server-output -b 20M --baseline 7f3a | bdp measure ams1 \
         --iperf3 --get-server-output -b 20M --runs 6"
    );
    let mut ssh = SshRequest {
        destination: "me@ams1".into(),
        through: true,
        options: Vec::new(),
        data_host: None,
        data_port: None,
    };
    m.request = MeasureRequest { port: 40_123, ssh: Some(ssh.clone()), ..plain.clone() };
    assert_eq!(
        commands(&m, None),
        "bdp report 7f3a | bdp measure --ssh me@ams1 --through-ssh --baseline 7f3a | bdp measure --ssh me@ams1 \
         --through-ssh --runs 6"
    );
    ssh = SshRequest {
        through: false,
        options: vec!["Port=2222".into(), "User=a b".into()],
        data_host: Some("192.0.2.1".into()),
        data_port: Some(40_123),
        ..ssh
    };
    m.request.ssh = Some(ssh);
    let first = |m: &Measurement| commands(m, None).split(" | ").nth(1).unwrap().to_owned();
    assert_eq!(
        first(&m),
        "bdp measure 192.0.2.1 --ssh me@ams1 -p 40123 --ssh-option Port=2222 --ssh-option 'User=a b' --baseline 7f3a"
    );
    for (access, flags) in [
        (Access::Token, "--token-file FILE"),
        (Access::TokenFile { path: "/etc/bdp token".into() }, "--token-file '/etc/bdp token'"),
        (
            Access::Login { user: "ann".into(), public_key: "k.pem".into(), pkcs1: true },
            "--user ann --iperf3-public-key k.pem --iperf3-pkcs1",
        ),
    ] {
        m.request = MeasureRequest { access: Some(access), ..plain.clone() };
        assert_eq!(first(&m), format!("bdp measure ams1 {flags} --baseline 7f3a"));
    }
}

#[test]
fn what_a_server_printed_comes_last_and_tells_the_terminal_nothing() {
    let mut m = both_ways();
    m.server_output = vec!["[ ID]  Interval\n\x1b[31mred".into(), serde_json::json!({"end": {}})];
    let text = measurements_text(&[m], Some("7f3a"), None, &narrow(80));
    let printed = text.split_once(" -v\n").unwrap().1;
    assert_eq!(
        printed,
        "\nthe server's output\n  [ ID]  Interval\n   [31mred\n\nthe server's output\n  {\n    \"end\": {}\n  }\n"
    );
}

#[test]
fn no_line_is_wider_than_asked_nor_ends_in_blanks() {
    for runs in [vec![one_way()], vec![both_ways()], vec![troubled()], five_runs(), Vec::new()] {
        for width in 40..=140 {
            for (unicode, details) in [(false, false), (true, false), (true, true)] {
                let style = Style { unicode, width, details, ..Style::plain() };
                let text = measurements_text(&runs, Some("7f3a"), None, &style);
                for line in text.lines() {
                    // A command stands on one line, to be pasted as it is.
                    let is_command =
                        line.strip_prefix("next").unwrap_or(line).trim_start().starts_with("bdp ");
                    assert!(is_command || line.chars().count() <= usize::from(width), "{width}: {line}");
                    assert_eq!(line, line.trim_end());
                }
                assert!(unicode || text.is_ascii(), "{text}");
                assert!(!text.contains('\x1b'));
            }
        }
    }
}

#[test]
fn colour_adds_nothing_that_is_not_said_in_words() {
    let plain = measurements_text(&[both_ways()], Some("7f3a"), None, &UNICODE);
    let coloured = measurements_text(&[both_ways()], Some("7f3a"), None, &Style { colour: true, ..UNICODE });
    assert!(coloured.matches('\x1b').count() > 8);
    let bare: String = coloured
        .split('\x1b')
        .enumerate()
        .map(|(i, p)| if i == 0 { p } else { p.split_once('m').unwrap().1 })
        .collect();
    assert_eq!(bare, plain);
}

#[test]
fn slow_start_is_shown_apart() {
    let mut m = one_way();
    let mut bytes = 0;
    m.directions[0].received = (0..=20_u64)
        .map(|i| {
            bytes += 42_000 * i.min(10);
            bdp_model::record::ReceiverSample { at_ns: i * 100_000 * US, bytes, ..Default::default() }
        })
        .collect();
    let style = Style { details: true, ..UNICODE };
    let shown = |m: &Measurement| measurements_text(std::slice::from_ref(m), None, None, &style);
    assert!(
        shown(&m).contains("\nstart    → 800 ms, then 33.3 Mbit/s (time to 90 % of the later rate)\n"),
        "{}",
        shown(&m)
    );
    m.directions[0].omit_ns = 1_000_000_000;
    assert!(!shown(&m).contains("\nstart "));
}
