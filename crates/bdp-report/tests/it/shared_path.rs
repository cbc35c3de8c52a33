//! Flows and transfers that share a path: their tables on the page and in the CSV, and the queue over time.

use crate::fixture::{Recipe, record};
use bdp_model::case::traffic::TrafficRecord;
use bdp_model::link::queue::QueueSamples;
use bdp_model::record::Record;
use bdp_report::{About, csv, html};
use roxmltree::{Document, Node, ParsingOptions};

const ABOUT: About<'static> = About {
    run: Some("7f3a"),
    label: None,
    command: Some("bdp demo"),
    started: Some("2026-01-01T00:00:00Z"),
    planned: None,
    store: None,
    title: None,
    note: None,
};

fn parse(page: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(page, options).unwrap_or_else(|e| panic!("{e}"))
}

fn text(node: Node<'_, '_>) -> String {
    node.descendants().filter(|n| n.is_text()).filter_map(|n| n.text()).collect()
}

fn all<'a>(document: &'a Document<'a>, name: &str) -> Vec<Node<'a, 'a>> {
    document.descendants().filter(|n| n.tag_name().name() == name).collect()
}

/// Two flows, an entry of traffic, and a queue that was noted every 10 ms.
fn shared_path() -> Record {
    let mut shared = record(&Recipe::default());
    let (mut flow, mut spec) = (shared.flows[0].clone(), shared.case.flows[0].clone());
    (flow.to, spec.to) = ("other".to_owned(), "other".to_owned());
    shared.flows.push(flow);
    shared.case.flows.push(spec);
    shared.traffic = vec![TrafficRecord {
        name: "web <1>".to_owned(),
        transfers: 40,
        unfinished: 1,
        received_bytes: 1_234_567,
        completion_ns: (0..=100).map(|percent| (percent + 1) * 1_000_000).collect(),
        completion_mean_ns: Some(77_000_000),
        ..TrafficRecord::default()
    }];
    let direction = &mut shared.fidelity.directions[0];
    direction.queue_samples = Some(QueueSamples {
        interval_ns: 10_000_000,
        packets: (0..2000).map(|i| if i == 777 { 99 } else { i % 7 }).collect(),
        bytes: vec![0; 2000],
        delay_ns: (0..2000).map(|i| i * 1000).collect(),
    });
    direction.dropped.insert("aqm".to_owned(), 100);
    shared
}

#[test]
fn queue_over_time_is_drawn_with_its_peak() {
    let shared = shared_path();
    let page = html(std::slice::from_ref(&shared), &ABOUT);
    let document = parse(&page);
    let found: Vec<String> = all(&document, "desc").into_iter().map(text).collect();
    assert!(
        found
            .iter()
            .any(|t| t == "Queue of near → far over 20.0 seconds: at most 99 packets, at most 2.00 ms."),
        "{found:?}"
    );
    assert!(
        page.contains("half are up to 0.999 ms and 95 % up to 1.90 ms; at most 99 packets waited."),
        "{page}"
    );
    assert!(page.contains("0 found no room and 100 were dropped by the queue"));
    let mut idle = shared;
    let samples = idle.fidelity.directions[0].queue_samples.as_mut().unwrap();
    (samples.packets, samples.delay_ns) = (vec![0; 2000], vec![0; 2000]);
    assert!(!html(&[idle], &ABOUT).contains("Queue over time"));
}

#[test]
fn page_and_csv_have_the_tables_of_flows_and_traffic() {
    let shared = shared_path();
    let page = html(std::slice::from_ref(&shared), &ABOUT);
    let document = parse(&page);
    let rows: Vec<Vec<String>> = all(&document, "tr")
        .into_iter()
        .map(|row| row.children().filter(|n| n.is_element()).map(text).collect())
        .collect();
    let of = |name: &str| rows.iter().find(|row| row.iter().any(|cell| cell == name)).expect("a row");
    assert_eq!(of("web <1>")[2..], ["40", "77.0", "51.0", "96.0", "100", "1"]);
    assert!(of("unfinished").ends_with(&["p99 ms", "unfinished"].map(str::to_owned)), "{rows:?}");
    assert!(of("2 near -> other").len() > 3);

    let text = csv(std::slice::from_ref(&shared), &bdp_model::measurement::labels::Labels::NONE);
    let lines: Vec<Vec<&str>> = text.split_terminator("\r\n").map(|l| l.split(',').collect()).collect();
    assert_eq!(lines.len(), 1 + 2 + 1);
    let field = |row: usize, name: &str| lines[row][lines[0].iter().position(|n| *n == name).unwrap()];
    assert_eq!([field(2, "to"), field(2, "traffic")], ["other", ""]);
    assert_eq!(
        [field(3, "traffic"), field(3, "received_bytes"), field(3, "goodput_bps")],
        ["web <1>", "1234567", ""]
    );
    let completion =
        ["mean", "p50", "p95", "p99", "max"].map(|at| field(3, &format!("completion_{at}_ns")).to_owned());
    assert_eq!(completion, ["77000000", "51000000", "96000000", "100000000", "101000000"]);
}
