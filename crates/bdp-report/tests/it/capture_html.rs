//! The page of captures: its flows, their findings and charts, and nothing from outside.

use crate::fixture::{Recipe, all, parse, record, text};
use bdp_model::capture::{
    CaptureSummary, CapturedData, CapturedDatagrams, CapturedDirection, CapturedEcho, CapturedFlow,
    CapturedQuic, CapturedSpin, CapturedStream, CapturedTcp, ClockRateSource, ClosedWindow, ExplainedFlow,
    FlowProtocol, NumberedProtocol, QuicHandshake, ReadCapture, Retransmissions, SpinState, TracePoint,
};
use bdp_model::facts::{Facts, Source};
use bdp_model::finding::fact;
use bdp_model::finding::{Confidence, Evidence, Finding, Limit, Place};
use bdp_model::record::{ReceiverSample, SenderSample};
use bdp_report::{About, Shown, Style, captures_json, captures_text, html_of_captures};
use roxmltree::{Document, Node};

fn charts<'a>(document: &'a Document<'a>) -> Vec<Node<'a, 'a>> {
    let zoomed = |n: &Node<'a, 'a>| n.attribute("class") == Some("zoomable");
    let within = document.descendants().filter(zoomed).flat_map(|n| n.descendants().collect::<Vec<_>>());
    within.filter(|n| n.attribute("class") == Some("chart")).collect()
}

/// Ten seconds at 3 Mbit/s within a window of 64 KiB that was closed once, with a retransmission.
fn flow(port: u16) -> ExplainedFlow {
    let mut record = record(&Recipe::default());
    let each = 37_500;
    let at = |i: u64| i * 100_000_000;
    record.flows[0].received = (0..=100)
        .map(|i| ReceiverSample { at_ns: at(i), bytes: i * each, ..ReceiverSample::default() })
        .collect();
    record.flows[0].sent = (0..=100)
        .map(|i| SenderSample {
            at_ns: at(i),
            acked_bytes: Some(i * each),
            unacked: Some(44),
            cwnd: Some(64),
            snd_wnd_bytes: Some(65_160),
            srtt_ns: Some(173_000_000),
            min_rtt_ns: Some(172_000_000),
            retransmits: Some(i / 50),
            busy_ns: Some(at(i)),
            rwnd_limited_ns: Some(at(i) * 9 / 10),
            sndbuf_limited_ns: Some(0),
            ..SenderSample::default()
        })
        .collect();
    let facts = Facts { source: Source::Captured, ..Facts::emulated(&record, 0).unwrap() };
    let data = CapturedData {
        segments: 2600,
        mss_bytes: 1448,
        acked_bytes: 100 * each,
        retransmissions: Retransmissions { segments: 2, fast: 2, ..Retransmissions::default() },
        trace: (0..=100)
            .map(|i| TracePoint {
                at_ns: at(i),
                sent_bytes: i * each + 63_712,
                acked_bytes: i * each,
                window_edge_bytes: Some(i * each + 65_160),
                in_flight_bytes: 63_712,
            })
            .collect(),
        retransmitted_at: vec![(1_000_000_000, 375_000), (5_000_000_000, 1_875_000)],
        closed_windows: vec![ClosedWindow {
            from_ns: 2_000_000_000,
            to_ns: 2_500_000_000,
            acked_bytes: 750_000,
        }],
        ..CapturedData::default()
    };
    let main = CapturedDirection {
        packets: 2600,
        bytes: 4_000_000,
        payload_bytes: 100 * each,
        goodput_bps: Some(3e6),
        tcp: Some(Box::new(data)),
        datagrams: None,
    };
    let flow = CapturedFlow {
        protocol: FlowProtocol::Tcp,
        a: format!("198.18.0.1:{port}").parse().unwrap(),
        b: "198.18.0.2:443".parse().unwrap(),
        from_ns: 0,
        to_ns: at(101),
        directions: [main, CapturedDirection::default()],
        tcp: Some(CapturedTcp::default()),
        quic: None,
    };
    let finding = Finding::new(Limit::SackMissing, Place::path(), Confidence::Medium)
        .evidence([Evidence::flag(fact::SackUsed, false)]);
    ExplainedFlow { flow, facts: [Some(Box::new(facts)), None], findings: [vec![finding], Vec::new()] }
}

fn capture(name: &str, flows: Vec<ExplainedFlow>) -> ReadCapture {
    let summary =
        CaptureSummary { packets: 5200, bytes: 4_200_000, duration_ns: 10_100_000_000, ..Default::default() };
    ReadCapture { name: name.to_owned(), summary, flows, broke: None }
}

fn page(captures: &[ReadCapture]) -> String {
    html_of_captures(captures, &[], &About::default())
}

#[test]
fn the_page_names_each_flow_and_its_finding() {
    let page = page(&[capture("slow.pcapng", vec![flow(40_001), flow(40_002)])]);
    let document = parse(&page);
    let heading = text(all(&document, "h1")[0]);
    assert_eq!(heading, "slow.pcapng");
    assert!(page.contains("5200 packets, 4.01 MiB in 10.1 s, 2 flows"), "{page}");
    let rows: Vec<String> = all(&document, "tr").into_iter().map(text).collect();
    let row = rows.iter().find(|r| r.contains("198.18.0.1:40002 → 198.18.0.2:443")).unwrap();
    for figure in ["3.00", "3.75", "10.1", "loss recovery without SACK (medium)"] {
        assert!(row.contains(figure), "{figure}: {row}");
    }
    // Each link leads to a section.
    let links: Vec<&str> = all(&document, "a").iter().filter_map(|a| a.attribute("href")).collect();
    assert!(links.contains(&"#flow-2"), "{links:?}");
    for link in links {
        let id = link.strip_prefix('#').unwrap();
        assert!(document.descendants().any(|n| n.attribute("id") == Some(id)), "{link}");
    }
    let paragraphs: Vec<String> = all(&document, "p").into_iter().map(text).collect();
    let why = paragraphs.iter().filter(|p| p.starts_with("3 Mbit/s: ")).count();
    assert_eq!(why, 2, "{paragraphs:#?}");
    assert!(
        rows.iter().any(|r| r.starts_with("losses") && r.contains("2 segments retransmitted")),
        "{rows:#?}"
    );
}

/// A flow of UDP whose datagrams are these.
fn datagrams(of: CapturedDatagrams, quic: Option<CapturedQuic>) -> ExplainedFlow {
    let way = CapturedDirection { packets: 200, payload_bytes: 34_400, ..CapturedDirection::default() };
    let ways = [CapturedDirection { datagrams: Some(Box::new(of)), ..way }, CapturedDirection::default()];
    let flow = CapturedFlow {
        protocol: FlowProtocol::Udp,
        a: "198.18.0.1:5004".parse().unwrap(),
        b: "198.18.0.2:5004".parse().unwrap(),
        from_ns: 0,
        to_ns: 4_000_000_000,
        directions: ways,
        tcp: None,
        quic: quic.map(Box::new),
    };
    ExplainedFlow { flow, facts: [None, None], findings: [Vec::new(), Vec::new()] }
}

#[test]
fn datagrams_have_their_losses_in_the_table_and_a_list_of_facts() {
    let stream = CapturedStream {
        protocol: NumberedProtocol::Rtp,
        ssrc: Some(0xdead_beef),
        payload_types: vec![96],
        packets: 197,
        payload_bytes: 33_884,
        rate_bps: Some(67_800.0),
        expected: 200,
        lost: 3,
        reordered: 2,
        duplicates: 0,
        stale: 0,
        restarts: 0,
        clock_rate_hz: Some(48_000),
        clock_rate_from: Some(ClockRateSource::Timestamps),
        jitter_ns: Some(1_250_000.0),
        jitter_mean_ns: Some(1e6),
        jitter_max_ns: Some(3e6),
    };
    let rtp = datagrams(CapturedDatagrams { streams: vec![stream], ..Default::default() }, None);
    let text_of = |found: &ExplainedFlow| {
        let shown = Shown { rows: 20, flow: None };
        let text = captures_text(&[capture("udp.pcap", vec![found.clone()])], &[], shown, &Style::plain());
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = text_of(&rtp);
    for expected in [
        "198.18.0.2:5004 rtp",
        "1.50 1.25 -",
        "rtp 0xdeadbeef, payload type 96",
        "3 of 200 datagrams lost (1.5 %), 2 reordered",
        "jitter 1.25 ms at the end, 1 ms on average, 3 ms at most (clock of 48000 Hz as its timestamps run)",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let page = page(&[capture("udp.pcap", vec![rtp])]);
    let rows: Vec<String> = all(&parse(&page), "tr").into_iter().map(self::text).collect();
    assert!(rows.iter().any(|row| row.starts_with("stream") && row.contains("3 of 200")), "{rows:#?}");
    assert!(rows[0].contains("jitter, ms") && page.contains("flow-1"), "{rows:#?}");
    let quic = CapturedQuic {
        version: 1,
        retry: true,
        first_answer_ns: Some(30_000_000),
        handshake: QuicHandshake::Cut,
        spin: CapturedSpin { state: SpinState::Erratic, ..Default::default() },
        ..Default::default()
    };
    let echo = CapturedEcho { sent: 10, answered: 9, ..Default::default() };
    let cut = CapturedDatagrams { headers_cut: 7, echo: Some(echo), ..Default::default() };
    let text = text_of(&datagrams(cut, Some(quic)));
    for expected in [
        "version 1, Retry; first answer 30 ms after the client's first Initial",
        "handshake time unknown: too little of its packets was kept",
        "changes at random",
        "9 of 10 requests answered",
        "too little was kept of 7 datagrams",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn each_section_has_four_charts_that_zoom() {
    let page = page(&[capture("a", vec![flow(1), flow(2)])]);
    let document = parse(&page);
    let charts = charts(&document);
    let labels: Vec<&str> = charts.iter().filter_map(|chart| chart.attribute("aria-label")).collect();
    assert_eq!(charts.len(), 8, "{labels:?}");
    for chart in &charts {
        let plots: Vec<_> = chart.children().filter(|n| n.attribute("class") == Some("plot")).collect();
        assert_eq!(plots.len(), 1);
        let curves = plots[0].children().filter(|n| n.attribute("data-name").is_some()).count();
        assert!((1..=3).contains(&curves), "{:?}", chart.attribute("aria-label"));
        assert!(!text(chart.children().find(|n| n.tag_name().name() == "desc").unwrap()).is_empty());
    }
    let marks = |class| document.descendants().filter(|n| n.attribute("class") == Some(class)).count();
    // In the chart and in its key.
    assert_eq!((marks("retransmitted"), marks("closed-window")), (4, 4));
    assert!(page.contains("receive window closed (once)"));
    assert_eq!(all(&document, "script").len(), 1);
    assert!(page.contains("script-src 'sha256-"), "no script may run");
}

#[test]
fn nothing_is_fetched() {
    let page = page(&[capture("a", vec![flow(1)]), capture("b", vec![flow(1)])]);
    let document = parse(&page);
    for node in document.descendants().filter(|n| n.is_element()) {
        let name = node.tag_name().name();
        assert!(!["link", "img", "iframe", "object", "image", "use"].contains(&name), "{name}");
        for attribute in node.attributes() {
            assert!(!attribute.name().starts_with("on"), "{attribute:?}");
            if ["href", "src", "action", "data"].contains(&attribute.name()) {
                assert!(attribute.value().starts_with('#'), "{attribute:?}");
            }
        }
    }
    assert_eq!(page.matches("http").count() - page.matches("http-equiv").count(), 1);
    let mut ids: Vec<&str> = document.descendants().filter_map(|n| n.attribute("id")).collect();
    let before = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), before, "{ids:?}");
}

#[test]
fn names_stay_text() {
    let hostile = "</title><script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u{1b}[2J\u{202e}";
    let mut one = capture(hostile, vec![flow(1)]);
    one.broke = Some(hostile.to_owned());
    for captures in [vec![one.clone()], vec![one.clone(), one]] {
        let page = page(&captures);
        let document = parse(&page);
        assert!(all(&document, "img").is_empty() && all(&document, "script").len() == 1);
        assert!(!page.contains("<script>alert") && !page.contains('\u{1b}') && !page.contains('\u{202e}'));
        assert!(text(document.root_element()).contains("<script>alert(1)</script>"));
    }
}

#[test]
fn an_empty_capture_says_so() {
    let mut empty = capture("empty.pcap", Vec::new());
    empty.summary = CaptureSummary::default();
    let shown = page(&[empty]);
    parse(&shown);
    assert!(shown.contains("No flow in this capture.") && shown.contains("There is no packet in it."));
    assert!(!shown.contains("<script"));
    assert!(page(&[]).contains("No capture was read."));
}

#[test]
fn of_many_flows_the_first_have_rows_and_sections() {
    let page = page(&[capture("many", (1..=60).map(flow).collect())]);
    let document = parse(&page);
    let rows = all(&document, "tr").into_iter().filter(|r| text(*r).contains("198.18.0.1:")).count();
    assert_eq!(rows, 50);
    assert_eq!(charts(&document).len(), 80);
    assert!(page.contains("And 10 more with fewer bytes."));
    assert!(page.contains("40 more flows with fewer bytes have no section."));
}

#[test]
fn flows_without_facts_have_a_row_alone() {
    let bare = ExplainedFlow { facts: [None, None], findings: [Vec::new(), Vec::new()], ..flow(7) };
    let page = page(&[capture("bare", vec![bare])]);
    let document = parse(&page);
    assert!(text(document.root_element()).contains("198.18.0.1:7 → 198.18.0.2:443"));
    assert!(charts(&document).is_empty() && all(&document, "a").is_empty());
}

#[test]
fn numbers_that_are_none_do_no_harm() {
    let mut odd = flow(1);
    odd.flow.directions[0].goodput_bps = Some(f64::NAN);
    if let Some(facts) = &mut odd.facts[0] {
        facts.goodput_bps = f64::NAN;
        facts.mss_bytes = Some(0);
    }
    if let Some(data) = &mut odd.flow.directions[0].tcp {
        data.trace.iter_mut().for_each(|point| point.window_edge_bytes = Some(u64::MAX));
    }
    let page = page(&[capture("odd", vec![odd])]);
    parse(&page);
    assert!(!page.contains("NaN") && !page.contains("\"inf"), "{page}");
}

#[test]
fn the_document_of_json_has_the_trace() {
    let document = serde_json::to_value(captures_json(&[capture("a", vec![flow(1)])], &[])).unwrap();
    let data = &document["captures"][0]["flows"][0]["directions"][0]["tcp"];
    assert_eq!(data["trace"].as_array().map(Vec::len), Some(101));
    assert_eq!(data["trace"][1]["window_edge_bytes"], 37_500 + 65_160);
    assert_eq!(data["retransmitted_at"][0][1], 375_000);
    assert_eq!(data["closed_windows"][0]["to_ns"], 2_500_000_000u64);
}
