//! Pages: whole in themselves, well-formed, with the records' numbers in them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::fixture::{Recipe, all, demo, elaborate, failed, invalid, missed, parse, record, sweep, text};
use bdp_model::case::Published;
use bdp_model::flow::window::WindowBytes;
use bdp_model::measurement::Measurement;
use bdp_model::measurement::labels::Labels;
use bdp_model::probes::{ProbePoint, ProbeSeries};
use bdp_model::record::breach::Breach;
use bdp_model::record::{
    ProbeOutcome, ReceiverSample, Record, RttPercentiles, RttReport, RttSummary, SenderSample,
};
use bdp_report::{About, csv, csv_of_measurements, html, html_of_measurements};
use roxmltree::Node;
use serde_json::Value;

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

/// Samples as a run of so many seconds leaves them: ten a second, retransmissions now and then.
fn sampled(mut record: Record, seconds: u64) -> Record {
    let flow = &mut record.flows[0];
    let each = (flow.goodput_bps / 80.0) as u64;
    flow.received = (0..=seconds * 10)
        .map(|i| ReceiverSample {
            at_ns: i * 100_000_000,
            bytes: i * each,
            rcv_wnd_bytes: Some(65_536),
            out_of_order: Some(i / 30),
            ..ReceiverSample::default()
        })
        .collect();
    flow.sent = (0..=seconds * 10)
        .map(|i| SenderSample {
            at_ns: i * 100_000_000,
            acked_bytes: Some(i * each),
            unacked: Some(45),
            cwnd: Some(64 + (i % 7) as u32),
            snd_wnd_bytes: Some(65_160),
            srtt_ns: Some(173_000_000 + i % 5 * 100_000),
            retransmits: Some(i / 30),
            busy_ns: Some(i * 100_000_000),
            rwnd_limited_ns: Some(i * 75_000_000),
            sndbuf_limited_ns: Some(i * 5_000_000),
            ..Default::default()
        })
        .collect();
    flow.retransmits = Some(seconds * 10 / 30);
    record
}

/// Runs of every kind that a page is made of.
fn runs() -> Vec<(&'static str, Vec<Record>)> {
    let at = |repetition, attempt, here_bps| Recipe { repetition, attempt, here_bps, ..Recipe::default() };
    vec![
        ("nothing", Vec::new()),
        ("one case", vec![sampled(record(&Recipe::default()), 12)]),
        ("demonstration", demo()),
        ("sweep", sweep()),
        ("rarer forms", vec![elaborate()]),
        (
            "troubles",
            vec![
                record(&at(1, 1, 3.0e6)),
                invalid(&at(2, 1, 0.7e6), "5.2 % released over 1 ms late (bound 1 %)"),
                record(&at(2, 2, 2.99e6)),
                missed(&at(3, 1, 2.71e6)),
                failed(&at(4, 1, 0.0), "near: connect to far:5201: no answer within 3 s"),
            ],
        ),
        ("failed alone", vec![failed(&at(1, 1, 0.0), "no answer")]),
        ("INVALID alone", vec![invalid(&at(1, 1, 1e6), "late")]),
    ]
}

#[test]
fn pages_are_well_formed_and_fetch_nothing() {
    for (what, records) in runs() {
        let page = html(&records, &ABOUT);
        let document = parse(&page);
        for node in document.descendants().filter(|n| n.is_element()) {
            let name = node.tag_name().name();
            assert!(
                !["script", "link", "img", "iframe", "object", "image", "use"].contains(&name),
                "{what}: {name}"
            );
            for attribute in node.attributes() {
                assert!(!attribute.name().starts_with("on"), "{what}: {attribute:?}");
                if ["href", "src", "action", "data"].contains(&attribute.name()) {
                    assert!(attribute.value().starts_with('#'), "{what}: {attribute:?}");
                }
            }
        }
        // The namespace of XHTML is a name and not fetched.
        assert_eq!(page.matches("http").count() - page.matches("http-equiv").count(), 1, "{what}");
        // Patterns are the page's own.
        assert!(!page.replace("url(#", "").contains("url(") && !page.contains("@import"), "{what}");
        assert!(page.contains("default-src 'none'") || page.contains("default-src &#39;none&#39;"), "{what}");
    }
}

#[test]
fn every_chart_says_in_words_what_it_shows() {
    for (what, records) in runs() {
        let page = html(&records, &ABOUT);
        let document = parse(&page);
        for chart in all(&document, "svg").iter().filter(|n| n.attribute("class") == Some("chart")) {
            let words =
                |name| chart.children().find(|n| n.tag_name().name() == name).map(text).unwrap_or_default();
            assert!(!words("title").is_empty() && !words("desc").is_empty(), "{what}: {chart:?}");
        }
        let ids: Vec<&str> = document.descendants().filter_map(|n| n.attribute("id")).collect();
        let mut distinct = ids.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(ids.len(), distinct.len(), "{what}: {ids:?}");
    }
}

#[test]
fn coordinates_lie_in_their_chart() {
    for (what, records) in runs() {
        let page = html(&records, &ABOUT);
        let document = parse(&page);
        for chart in all(&document, "svg") {
            let view: Vec<f64> =
                chart.attribute("viewBox").unwrap().split(' ').map(|n| n.parse().unwrap()).collect();
            for node in chart.descendants() {
                for (name, limit) in [("x", view[2]), ("cx", view[2]), ("y", view[3]), ("cy", view[3])] {
                    let Some(value) = node.attribute(name) else { continue };
                    let value: f64 = value.parse().unwrap_or_else(|_| panic!("{what}: {name}={value}"));
                    assert!(
                        (-1.0..=limit + 1.0).contains(&value),
                        "{what}: {name}={value} of {view:?}: {}",
                        text(node)
                    );
                }
            }
        }
    }
}

#[test]
fn the_table_holds_the_records_numbers() {
    let page = html(&demo(), &ABOUT);
    let document = parse(&page);
    let rows: Vec<String> = all(&document, "tr").into_iter().map(text).collect();
    for (name, numbers) in [
        ("s3-noscale", ["51.1", "63.6 KiB", "10.0 to 10.6", "10.2"]),
        ("s1-64k", ["64 KiB = 45 segments", "2.77", "3.01", "3.00"]),
        ("s1-streams", ["10 × 128 KiB", "47.8", "60.3", "59.7"]),
    ] {
        let row = rows.iter().find(|r| r.starts_with(name)).unwrap_or_else(|| panic!("{name}: {rows:#?}"));
        for number in numbers {
            assert!(row.contains(number), "{row}");
        }
    }
}

#[test]
fn the_verdict_names_what_binds_with_its_numbers() {
    let page = html(&[sampled(record(&Recipe::default()), 12)], &ABOUT);
    let document = parse(&page);
    let verdict =
        text(*all(&document, "p").iter().find(|p| p.attribute("class") == Some("verdict")).unwrap());
    assert_eq!(verdict, "3 Mbit/s: limited by the receive window.");
    let why = text(*all(&document, "p").iter().find(|p| p.attribute("class") == Some("why")).unwrap());
    // 45 x 1448 x 8 / 0.173 s; 100 Mbit/s x 1448 / 1538; and that x 0.173 s / 8.
    assert!(why.contains("63.6 KiB / 173 ms = 3.01 Mbit/s, 100 % of it reached."), "{why}");
    assert!(why.contains("94.1 Mbit/s needs 1.94 MiB on the wire."), "{why}");
    let said: Vec<String> = ["text", "span"].iter().flat_map(|name| all(&document, name)).map(text).collect();
    for figure in ["window / RTT 3.01 Mbit/s", "ceiling 94.1 Mbit/s", "ceiling × idle round trip: 1.94 MiB"]
    {
        assert!(said.iter().any(|s| s == figure), "{figure}: {said:?}");
    }
}

#[test]
fn headline_of_a_sweep_says_how_many_points_have_a_model() {
    let point = |window: u64, model_bps: Option<f64>| {
        let mut record = record(&Recipe { window: Some(window), model_bps, ..Recipe::default() });
        record.params.insert("flow.window".to_owned(), window.into());
        record.expected_bps = model_bps;
        record
    };
    let page = |records: &[Record]| html(records, &ABOUT);
    let one = page(&[point(16_384, Some(3.004e6)), point(32_768, None), point(65_536, None)]);
    assert!(one.contains("3 points; 1 of them has a model: 100 % of what the model gives."), "{one}");
    assert!(one.contains("1 of them can be predicted by theory, and reached 100 % of that."));
    let all = page(&[point(16_384, Some(3.004e6)), point(32_768, Some(3.004e6))]);
    assert!(all.contains("2 points: 100 % of what the model gives."));
}

#[test]
fn what_is_invalid_is_crossed_and_counts_for_nothing() {
    let valid = Recipe { here_bps: 3.0e6, ..Recipe::default() };
    let alone = html(&[record(&valid)], &ABOUT);
    let spoiled =
        invalid(&Recipe { attempt: 1, repetition: 2, here_bps: 77.7e6, ..Recipe::default() }, "late");
    let page = html(&[record(&valid), spoiled], &ABOUT);
    let crosses = |page: &str| {
        let document = parse(page);
        all(&document, "path").iter().filter(|n| n.attribute("class") == Some("cross")).count()
    };
    assert_eq!(crosses(&alone), 0);
    assert!(crosses(&page) > 0);
    assert!(!page.contains("77.7 M") && !page.contains(">77.7<"), "an INVALID goodput is printed");
    assert!(page.contains("INVALID"));
}

#[test]
fn hostile_text_stays_text() {
    let hostile =
        "</title></style><script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u{1b}[2J\u{0}\u{202e}&lt;";
    let mut hurt = sampled(record(&Recipe::default()), 3);
    hurt.scenario = hostile.to_owned();
    hurt.title = hostile.to_owned();
    hurt.case.title = hostile.to_owned();
    hurt.params.insert(hostile.to_owned(), hostile.into());
    hurt.flows[0].from = hostile.to_owned();
    hurt.flows[0].to = hostile.to_owned();
    hurt.flows[0].congestion_control = hostile.to_owned();
    hurt.expected_by = Some(hostile.to_owned());
    hurt.environment.kernel = hostile.to_owned();
    hurt.environment
        .sysctls
        .entry(hostile.to_owned())
        .or_default()
        .insert(hostile.to_owned(), hostile.to_owned());
    let mut broken = hurt.clone();
    broken.attempt = 2;
    broken.valid = false;
    broken.fidelity.broken = vec![Breach::Text(hostile.to_owned())];
    let mut ended = hurt.clone();
    ended.attempt = 3;
    ended.valid = false;
    ended.error = Some(hostile.to_owned());
    let about = About { label: Some(hostile), command: Some(hostile), run: Some(hostile), ..ABOUT };
    let page = html(&[hurt, broken, ended], &about);
    let document = parse(&page);
    assert!(all(&document, "script").is_empty() && all(&document, "img").is_empty());
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains('\u{1b}'));
    // It is there, as text.
    assert!(text(document.root_element()).contains("<script>alert(1)</script>"));
}

#[test]
fn numbers_that_are_none_do_no_harm() {
    let mut record = sampled(record(&Recipe::default()), 2);
    record.goodput_bps = Some(f64::NAN);
    record.expected_bps = Some(f64::INFINITY);
    record.flows[0].goodput_bps = f64::NAN;
    record.flows[0].mss_bytes = Some(0);
    record.rtt_idle_ns = Some(0);
    for sample in &mut record.flows[0].received {
        sample.at_ns = u64::MAX - sample.at_ns;
        sample.bytes = u64::MAX - sample.bytes;
    }
    let page = html(&[record], &ABOUT);
    parse(&page);
    assert!(!page.contains("NaN") && !page.contains("\"inf"), "{page}");
}

#[test]
fn a_long_run_is_drawn_with_few_points_and_says_so() {
    let page = html(&[sampled(record(&Recipe::default()), 3600)], &ABOUT);
    assert!(page.len() < 200_000, "{} bytes", page.len());
    assert!(page.contains("Each step is the mean over"));
    assert!(page.contains("the smallest and the largest"));
}

#[test]
fn a_thousand_cases_are_quick_and_small() {
    let mut records = Vec::new();
    for i in 0..1000u64 {
        let window = 512 + i * 4096;
        records.push(sampled(
            record(&Recipe {
                scenario: "thousand",
                params: vec![("flow.window", window.into())],
                window: Some(window),
                here_bps: (window as f64 * 8.0 / 0.173).min(94e6),
                model_bps: Some((window as f64 * 8.0 / 0.173).min(94.1e6)),
                published: (i % 10 == 0).then_some(Published::Number(50e6)),
                ..Recipe::default()
            }),
            10,
        ));
    }
    let started = Instant::now();
    let page = html(&records, &ABOUT);
    let took = started.elapsed();
    parse(&page);
    assert!(page.len() < 2 << 20, "{} bytes", page.len());
    // Under a second by far where nothing else runs; this bound is for a machine with others on it.
    assert!(took < Duration::from_secs(5), "{took:?}");
    println!("{} bytes in {took:?}", page.len());
}

/// A measurement as long runs leave them: ten samples a second.
fn measured(window: u64, repetition: u32, goodput_bps: f64) -> Measurement {
    let mut m: Measurement =
        serde_json::from_str(include_str!("../../../bdp-store/tests/it/measurement.json")).unwrap();
    let sampled = sampled(record(&Recipe { here_bps: goodput_bps, ..Recipe::default() }), 10);
    m.repetition = repetition;
    m.request.spec.window = WindowBytes::new(window);
    let d = &mut m.directions[0];
    d.goodput_bps = goodput_bps;
    d.window.on_the_wire_bytes = Some(window);
    d.received.clone_from(&sampled.flows[0].received);
    d.sent.clone_from(&sampled.flows[0].sent);
    m
}

#[test]
fn a_thousand_points_to_a_host_are_quick_and_small() {
    let all: Vec<(BTreeMap<String, Value>, Measurement)> = (1..=1000u64)
        .map(|i| {
            let window = i * 4096;
            let goodput = (window as f64 * 8.0 / 0.0238).min(94e6);
            (
                BTreeMap::from([("window".to_owned(), Value::from(window.to_string()))]),
                measured(window, 1, goodput),
            )
        })
        .collect();
    let all: Vec<_> = all.iter().map(|(params, m)| (params, m)).collect();
    let started = Instant::now();
    let page = html_of_measurements(&all, &ABOUT);
    let took = started.elapsed();
    let document = parse(&page);
    assert!(page.contains("window 4096 kB") || page.contains("window 4000 KiB"), "the last point is shown");
    assert!(!document.descendants().filter(|n| n.tag_name().name() == "svg").collect::<Vec<_>>().is_empty());
    assert!(page.len() < 2 << 20, "{} bytes", page.len());
    assert!(took < Duration::from_secs(5), "{took:?}");
    println!("{} bytes in {took:?}", page.len());
}

/// The rows of the first table of a page, each as its cells.
fn first_table(page: &str) -> Vec<Vec<String>> {
    let document = parse(page);
    let table = all(&document, "table")[0];
    let rows = table.descendants().filter(|n| n.tag_name().name() == "tr");
    rows.map(|row| row.children().filter(Node::is_element).map(text).collect()).collect()
}

#[test]
fn table_names_what_its_ranges_are_and_its_idle_row_is_of_all_runs() {
    let params = BTreeMap::new();
    let mut runs: Vec<Measurement> = (1..=3).map(|n| measured(65_536, n, 20e6)).collect();
    for (run, p50) in runs.iter_mut().zip([10_000_000, 30_000_000, 20_000_000]) {
        run.rtt_idle_ns.as_mut().unwrap().p50 = p50;
        let spread = run.directions[0].spread.as_mut().unwrap();
        (spread.p5, spread.p95, spread.min, spread.max) = (None, None, Some(18e6), Some(22e6));
        run.directions.truncate(1);
    }
    let of = |runs: &[Measurement]| {
        let all: Vec<_> = runs.iter().map(|m| (&params, m)).collect();
        first_table(&html_of_measurements(&all, &ABOUT))
    };
    let table = of(&runs);
    assert_eq!(table[0][2], "smallest to largest of intervals");
    assert_eq!((table[2][2].as_str(), table[1][0].as_str()), ("18.0 to 22.0", "idle, median of 3 runs"));
    assert!(table[1].iter().any(|cell| cell.starts_with("20 / ")), "{:?}", table[1]);
    let spread = runs[2].directions[0].spread.as_mut().unwrap();
    (spread.p5, spread.p95) = (Some(19e6), Some(21e6));
    let table = of(&runs);
    assert_eq!(
        (table[2][2].as_str(), table[4][2].as_str()),
        ("18.0 to 22.0 (smallest..largest)", "19.0 to 21.0 (p5..p95)")
    );
    assert_eq!(of(&runs[2..])[0][2], "p5 to p95 of intervals");
}

#[test]
fn datagrams_have_loss_and_jitter_in_place_of_what_tcp_has() {
    let mut m = measured(65_536, 1, 20e6);
    m.directions.truncate(1);
    let d = &mut m.directions[0];
    d.udp = Some(bdp_model::flow::udp::UdpReport {
        jitter_ns: Some(250_000),
        loss_ratio: 0.02,
        sent: 100,
        ..Default::default()
    });
    (d.retransmits, d.sent) = (None, Vec::new());
    let page = html_of_measurements(&[(&BTreeMap::new(), &m)], &ABOUT);
    let table = first_table(&page);
    let heads = table[0].join("|");
    assert!(heads.contains("lost|jitter, ms|RTT") && !heads.contains("window"), "{heads}");
    assert!(table[2].join("|").contains("2.00 %|0.25|"), "{:?}", table[2]);
    assert!(!page.contains("unknown: the sender"), "nothing of what a kernel keeps of TCP alone");
}

#[test]
fn each_stream_has_its_goodput() {
    let mut m = measured(65_536, 1, 20e6);
    m.directions.truncate(1);
    m.directions[0].stream_goodput_bps = vec![12e6, 8e6];
    let page = html_of_measurements(&[(&BTreeMap::new(), &m)], &ABOUT);
    let document = parse(&page);
    let rows: Vec<String> = all(&document, "tr").into_iter().map(text).collect();
    assert!(rows.contains(&"112.0".to_owned()) && rows.contains(&"28.00".to_owned()), "{rows:?}");
}

#[test]
fn two_points_of_a_sweep_have_advice_and_one_notation() {
    let point = |typed: &str, window, goodput| {
        (BTreeMap::from([("window".to_owned(), Value::from(typed))]), measured(window, 1, goodput))
    };
    let points = [point("8192", 8192, 2.7e6), point("64K", 65_536, 22e6)];
    let points: Vec<_> = points.iter().map(|(params, m)| (params, m)).collect();
    let page = html_of_measurements(&points, &ABOUT);
    let document = parse(&page);
    let said: Vec<String> = all(&document, "p").into_iter().map(text).collect();
    assert!(said.iter().any(|p| p == "For throughput: most with window 64 KiB: 22 Mbit/s."), "{said:?}");
    assert!(page.contains("window 8 KiB") && page.contains("window 64 KiB"), "{page}");
    assert!(
        page.contains("Both axes logarithmic") || page.contains("Logarithmic from left to right"),
        "{page}"
    );
}

#[test]
fn ends_of_one_name_are_told_apart() {
    let mut m = measured(65_536, 1, 20e6);
    m.near.name.clone_from(&m.far.name);
    m.request.host = "192.0.2.7".to_owned();
    let name = m.far.name.clone();
    let page = html_of_measurements(&[(&BTreeMap::new(), &m)], &ABOUT);
    assert!(page.contains(&format!("{name} – 192.0.2.7</h1>")), "{page}");
    assert!(page.contains(&format!("From {name} to 192.0.2.7 it reached")), "{page}");
}

#[test]
fn finding_bar_and_charts_give_one_figure() {
    let mut m = measured(65_536, 1, 2.9e6);
    let idle = m.rtt_idle_ns.unwrap();
    m.directions[0].stream_goodput_bps = vec![2.9e6];
    m.directions[0].mss_bytes = Some(1448);
    // The smallest round trip is less than the usual one, and autotuning went further once.
    m.directions[0].rtt_ns.idle = Some(RttSummary { min: 150_000_000, p50: 172_900_000, ..idle });
    m.directions[0].rtt_ns.loaded = Some(RttSummary { p50: 180_000_000, ..idle });
    m.directions[0].window.on_the_wire_max_bytes = Some(1 << 20);
    // The send buffer is not what binds next.
    for host in [&mut m.near, &mut m.far] {
        host.sysctls.insert("net.ipv4.tcp_wmem".to_owned(), "4096 16384 268435456".to_owned());
    }
    let facts = bdp_model::facts::Facts::measured(&m, m.directions[0].direction).unwrap();
    m.directions[0].findings = bdp_explain::explain(&facts);
    let said = bdp_report::measurement_json(&m)["directions"][0]["findings"][0].to_string();
    assert!(said.contains("63.6 KiB / 173 ms = 3.01 Mbit/s") && said.contains("needs "), "{said}");
    let needed = said.split("needs ").nth(1).and_then(|s| s.split(" on the wire").next()).unwrap();
    let page = html_of_measurements(&[(&BTreeMap::new(), &m)], &ABOUT);
    assert_eq!(page.matches("window / RTT 3.01 Mbit/s").count(), 3, "bar, its description, timeline");
    assert!(page.contains(&format!("ceiling × idle round trip: {needed}")), "{needed}");
}

#[test]
fn probes_are_drawn_above_the_goodput_and_those_without_an_answer_as_ticks() {
    let mut m = measured(65_536, 1, 20e6);
    let sampled = sampled(record(&Recipe::default()), 12);
    (m.directions[0].received, m.directions[0].sent) = (sampled.flows[0].received.clone(), Vec::new());
    m.directions[0].retransmits = None;
    let point = |ms: i64, outcome| ProbePoint::plain(ms * 1_000_000, ms * 1_000_000, outcome);
    let answered = (0..20).map(|i| point(i * 50, ProbeOutcome::Answered(30_000_000)));
    let lost = [100, 200].map(|ms| point(ms, ProbeOutcome::Lost { waited_ns: 1 }));
    let young = [point(300, ProbeOutcome::InFlight { waited_ns: 1 })];
    // One before the flow and one after it are not within the axis.
    let beside = [-50, 1_000_000].map(|ms| point(ms, ProbeOutcome::Answered(99_000_000)));
    let points = answered.chain(lost).chain(young).chain(beside).collect();
    m.directions[0].probes = Some(ProbeSeries { counted_ns: None, points });
    let page = html_of_measurements(&[(&BTreeMap::new(), &m)], &ABOUT);
    let chart = page.split("round trips of probes and goodput over time").last().unwrap();
    let chart = chart.split("</svg>").next().unwrap();
    assert_eq!(chart.matches("class=\"third-dot\"").count(), 20, "{chart}");
    assert_eq!(chart.matches("class=\"tick-mark\"").count(), 2, "{chart}");
    assert_eq!(chart.matches("class=\"hollow-line\"").count(), 1, "{chart}");
    for key in [
        "round trip of a probe, 30.0 ms at the most",
        "probe lost (2)",
        "still under way when the test ended (1)",
    ] {
        assert!(page.contains(key), "{key}");
    }
}

#[test]
fn bytes_in_flight_are_drawn_at_zero_too() {
    let mut one = sampled(record(&Recipe::default()), 12);
    for sample in one.flows[0].sent.iter_mut().step_by(3) {
        sample.unacked = Some(0);
    }
    let page = html(&[one], &ABOUT);
    assert!(page.contains("zero is at the bottom"));
    let chart = page.split("bytes in flight and windows over time").last().unwrap();
    let line = chart.split("<path class=\"here\" d=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!((line.matches('M').count(), line.matches('L').count()), (1, 120), "{line}");
}

#[test]
fn a_measurement_shows_round_trips_before_where_the_time_went_and_always_a_product() {
    let params = BTreeMap::new();
    let mut m = measured(65_536, 1, 20e6);
    let page = html_of_measurements(&[(&params, &m)], &ABOUT);
    let place = |what: &str| page.find(what).unwrap_or_else(|| panic!("no '{what}'"));
    assert!(place("In flight, and what allows it") < place("Round trips, idle and loaded"));
    assert!(place("Round trips, idle and loaded") < place("Where the time went"));
    assert!(page.contains("ceiling × idle round trip") && !page.contains("goodput × "));
    m.ceiling = None;
    let page = html_of_measurements(&[(&params, &m)], &ABOUT);
    assert!(page.contains("goodput × idle round trip: 59.1 KiB"), "{page}");
    assert!(page.contains("goodput × idle round trip") && !page.contains(">ceiling × "));
}

/// Corners of the curves of round trips in a page about one case: idle, loaded.
fn distribution(record: Record) -> Vec<Vec<[f64; 2]>> {
    let page = html(&[record], &ABOUT);
    let document = parse(&page);
    let is_it = |n: &&Node<'_, '_>| {
        n.attribute("aria-label").is_some_and(|l| l.ends_with("distribution of round trips"))
    };
    let charts = all(&document, "svg");
    let chart = charts.iter().find(is_it).unwrap();
    let curves = ["third", "here"].into_iter().filter_map(|class| {
        chart.children().find(|n| n.tag_name().name() == "path" && n.attribute("class") == Some(class))
    });
    let corner = |text: &str| text.split_once(' ').map(|(x, y)| [x, y].map(|c| c.parse().unwrap()));
    curves.map(|n| n.attribute("d").unwrap()[1..].split('L').filter_map(corner).collect()).collect()
}

#[test]
fn round_trips_are_drawn_as_steps_of_all_percentiles() {
    let mut known = sampled(record(&Recipe::default()), 10);
    let answered = |ms: u64| ProbeOutcome::Answered(ms * 1_000_000);
    // Few that all took equally long, and many that did not.
    let report = RttReport::of_probes([20; 40].map(answered), (20..=420).map(answered));
    known.flows[0].rtt_ns = report;
    let curves = distribution(known.clone());
    let steps = |curve: &[[f64; 2]]| curve.windows(2).all(|w| w[0][0] == w[1][0] || w[0][1] == w[1][1]);
    assert!(curves.len() == 2 && curves.iter().all(|curve| steps(curve)), "{curves:?}");
    assert_eq!(curves[0].len(), 2, "one step up: {curves:?}");
    assert!(curves[1].len() > 150, "{} corners", curves[1].len());
    assert!(
        curves[1].windows(2).all(|w| w[0][0] <= w[1][0] && w[0][1] >= w[1][1]),
        "never falls: {curves:?}"
    );
    // Of older records five points are known.
    known.flows[0].rtt_ns.percentiles = RttPercentiles::default();
    assert!(html(&[known.clone()], &ABOUT).contains("kept five points of a distribution"));
    assert_eq!(distribution(known)[1].len(), 5);
}

#[test]
fn title_and_note_of_the_author_head_the_page() {
    let params = BTreeMap::new();
    let about = About {
        label: Some("before"),
        title: Some("Office to <Tokyo>"),
        note: Some("First line.\nSecond.\n\nAnother paragraph."),
        ..ABOUT
    };
    let measured = html_of_measurements(&[(&params, &measured(65_536, 1, 20e6))], &about);
    for page in [measured, html(&demo(), &about), html(&[], &about)] {
        let document = parse(&page);
        assert_eq!(text(all(&document, "h1")[0]), "Office to <Tokyo>");
        assert_eq!(text(all(&document, "title")[0]), "Office to <Tokyo>");
        let notes = all(&document, "p").into_iter().filter(|p| p.attribute("class") == Some("authors-note"));
        assert_eq!(notes.map(text).collect::<Vec<_>>(), ["First line. Second.", "Another paragraph."]);
        assert!(page.contains("before"), "the label is a fact still");
    }
}

#[test]
fn page_ends_with_the_terms_that_it_uses() {
    let page = html(&[sampled(record(&Recipe::default()), 12)], &ABOUT);
    let document = parse(&page);
    let terms: Vec<String> = all(&document, "dt").into_iter().map(text).collect();
    for term in ["Goodput", "Receive window", "RTT (round trip)", "Fidelity, INVALID"] {
        assert!(terms.iter().any(|t| t == term), "{term}: {terms:?}");
    }
    assert!(!terms.iter().any(|t| t.starts_with("Knee")), "{terms:?}");
    assert_eq!(all(&document, "dd").len(), terms.len());
}

#[test]
fn every_page_says_in_plain_language_what_was_measured() {
    for (what, records) in runs() {
        let page = html(&records, &ABOUT);
        let document = parse(&page);
        let written =
            all(&document, "p").into_iter().filter(|p| p.attribute("class") == Some("plain-language"));
        let measured = records.iter().any(|r| r.error.is_none() && r.valid) || records.len() > 1;
        assert_eq!(written.count(), usize::from(measured), "{what}");
    }
    let params = BTreeMap::new();
    let page = html_of_measurements(&[(&params, &measured(65_536, 1, 20e6))], &ABOUT);
    assert!(page.contains("The reason is that ams1 accepts too little data at a time"), "{page}");
}

#[test]
fn repetitions_say_how_sure_their_median_is() {
    let params = BTreeMap::new();
    let runs = [20e6, 23e6, 21e6].map(|goodput| measured(65_536, 1, goodput));
    let page = |n: usize| {
        let runs: Vec<_> = runs[..n].iter().map(|m| (&params, m)).collect();
        html_of_measurements(&runs, &ABOUT)
    };
    assert!(page(3).contains("the median lies between 20.0 and 23.0 Mbit/s with 75 % confidence (3 runs)."));
    assert!(page(2).contains("Repetitions") && !page(2).contains("the median lies"));
}

#[test]
fn every_column_is_described() {
    let described = include_str!("../../../../docs/report.md");
    let (lab, measured) = described.split_once("Of measurements and of a sweep to a host").unwrap();
    for (header, table) in [(csv(&[], &Labels::NONE), lab), (csv_of_measurements(&[]), measured)] {
        for column in header.trim_end().split(',') {
            assert!(table.contains(&format!("`{column}`")), "{column}");
        }
    }
}

/// Headings, captions and keys, without the numbers that fixtures share with other tests.
#[test]
fn outline() {
    let page = html(&[sampled(record(&Recipe::default()), 12)], &ABOUT);
    let document = parse(&page);
    let mut lines = Vec::new();
    for node in document.descendants() {
        let name = node.tag_name().name();
        if ["h1", "h2", "h3", "li", "caption", "figcaption", "title", "desc", "pre"].contains(&name) {
            let text = if name == "figcaption" { String::new() } else { text(node) };
            lines.push(format!("{name:<10} {text}").trim_end().to_owned());
        } else if name == "p" {
            lines.push(format!("{name:<10} {}", text(node)));
        }
    }
    insta::assert_snapshot!(lines.join("\n"));
}

/// A record of two flows to two hosts: 173 ms and 42 ms away.
fn of_two_paths() -> Record {
    let mut two = sampled(record(&Recipe::default()), 10);
    let (mut flow, mut spec) = (two.flows[0].clone(), two.case.flows[0].clone());
    (flow.to, spec.to) = ("other".to_owned(), "other".to_owned());
    let shorter = |summary: &mut RttSummary| {
        let added = summary.p50 - summary.min;
        (summary.min, summary.p50) = (42_000_000, 42_000_000 + added);
    };
    let rtt = &mut flow.rtt_ns;
    rtt.idle.iter_mut().chain(&mut rtt.loaded).for_each(shorter);
    two.flows.push(flow);
    two.case.flows.push(spec);
    two
}

#[test]
fn a_comparison_has_the_round_trip_of_each_path() {
    let mut outcomes = bdp_model::sweep::run_comparison::Outcomes::of_records([&of_two_paths()]);
    let name = outcomes.points()[0].to_owned();
    let paths = [format!("{name}: near->far"), format!("{name}: near->other")];
    assert_eq!(outcomes.points(), [&name, &paths[0], &paths[1]]);
    let compared = bdp_model::sweep::run_comparison::Compared::of(&outcomes, &outcomes, &[], 0.05);
    let idle: Vec<(&str, f64)> = compared
        .rows
        .iter()
        .filter(|row| row.metric == bdp_model::sweep::run_comparison::Metric::RttIdleNs)
        .map(|row| (row.point.as_str(), (row.comparison.a.p50 / 1e6).round()))
        .collect();
    assert_eq!(idle, [(paths[0].as_str(), 173.0), (paths[1].as_str(), 42.0)]);
    outcomes.rename_only("A");
    assert_eq!(outcomes.points(), ["A", "A: near->far", "A: near->other"]);
}

#[test]
fn each_flow_stands_beside_its_own_round_trip() {
    let two = of_two_paths();
    let page = html(std::slice::from_ref(&two), &ABOUT);
    let document = parse(&page);
    let said: Vec<String> = all(&document, "span").into_iter().map(text).collect();
    let idle: Vec<&String> = said.iter().filter(|t| t.starts_with("smallest idle")).collect();
    assert_eq!(idle, ["smallest idle round trip 173 ms", "smallest idle round trip 42.0 ms"]);
    // 1 Gbit/s or goodput x RTT: each line is of its own flow's round trip.
    let products: Vec<&String> = said.iter().filter(|t| t.contains("× idle round trip: ")).collect();
    assert!(products.len() == 2 && products[0] != products[1], "{products:?}");
    assert!(page.contains("idle: 173.1 / 173.1") && page.contains("idle: 42.06 / 173.1"), "{page}");

    let rows = csv(std::slice::from_ref(&two), &Labels::NONE);
    let lines: Vec<Vec<&str>> = rows.split_terminator("\r\n").map(|l| l.split(',').collect()).collect();
    let column = lines[0].iter().position(|&name| name == "rtt_idle_min_ns").unwrap();
    assert_eq!((lines[1][column], lines[2][column]), ("173000000", "42000000"));
    // A point has no one round trip, and a window no delivery delay, where its flows go different ways.
    let table = bdp_report::table(std::slice::from_ref(&two), &bdp_report::Style::plain());
    assert!(table.contains("42.0..173"), "{table}");
    assert!(bdp_report::json(std::slice::from_ref(&two), None)["summary"][0]["rtt_idle_min_ns"].is_null());
}

#[test]
fn csv_has_a_row_for_each_attempt_and_flow() {
    let mut two = elaborate();
    two.flows.push(two.flows[0].clone());
    two.case.flows.push(two.case.flows[0].clone());
    let records = vec![
        record(&Recipe::default()),
        failed(&Recipe { attempt: 2, ..Recipe::default() }, "near: no answer, \"5201\"\nwithin 3 s"),
        two,
    ];
    let text = csv(&records, &Labels::NONE);
    let lines: Vec<&str> = text.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 1 + 1 + 1 + 2);
    let column = |name: &str| lines[0].split(',').position(|n| n == name).unwrap();
    let fields: Vec<&str> = lines[1].split(',').collect();
    assert_eq!(fields[column("goodput_bps")], "3004000");
    assert_eq!(fields[column("published_low_bps")], "2770000");
    assert_eq!(fields[column("rtt_idle_min_ns")], "173000000");
    assert_eq!(fields[column("window_asked_bytes")], "65536");
    assert_eq!(fields[column("ended")], "valid");
    assert!(lines[2].contains("FAILED,\"near: no answer, \"\"5201\"\" within 3 s\""), "{}", lines[2]);
    assert!(lines.iter().all(|l| l.split("\"").count() % 2 == 1));
}

#[test]
fn flow_that_came_to_nothing_is_described_without_a_gap() {
    let mut record = crate::fixture::demo().remove(0);
    record.flows.iter_mut().for_each(|flow| flow.congestion_control.clear());
    let page = html(&[record], &ABOUT);
    assert!(
        page.contains("window autotuned, ") || page.contains("asked for on the wire, "),
        "no flow is described"
    );
    assert!(!page.contains(", ,"), "{page}");
}

/// A sweep of the queue's limit, as written.
fn limits(written: &[Value]) -> Vec<Record> {
    let recipe = |(n, limit): (usize, &Value)| Recipe {
        params: vec![("link.limit", limit.clone())],
        here_bps: 3e6 + n as f64 * 1e6,
        ..Recipe::default()
    };
    written.iter().enumerate().map(recipe).map(|recipe| record(&recipe)).collect()
}

#[test]
fn a_sweep_of_the_queue_s_limit_is_a_curve_in_its_own_unit() {
    let described = |written: &[Value]| {
        let page = html(&limits(written), &ABOUT);
        let document = parse(&page);
        let mut texts = document.descendants().filter_map(|n| n.text());
        texts.find(|text| text.contains("points, from")).map(str::to_owned)
    };
    for (written, expected) in [
        (["10p", "20p", "40p"].map(Value::from), Some("3 points, from 10 packets to 40 packets;")),
        ([10, 20, 40].map(Value::from), Some("3 points, from 10 packets to 40 packets;")),
        (["10", "40p", "20p"].map(Value::from), Some("3 points, from 10 packets to 40 packets;")),
        (["4K", "64K", "1M"].map(Value::from), Some("3 points, from 4 KiB to 1 MiB;")),
        // Packets and bytes share no axis.
        (["10p", "20p", "64K"].map(Value::from), None),
    ] {
        let found = described(&written);
        match expected {
            Some(expected) => assert!(found.as_ref().is_some_and(|f| f.contains(expected)), "{found:?}"),
            None => assert_eq!(found, None),
        }
    }
}
