//! Datagrams and a search among them, as text, page and CSV have them.

use std::collections::BTreeMap;

use bdp_model::finding::caveat::Caveat;
use bdp_model::flow::method::{ReceiveMethod, SendMethod};
use bdp_model::flow::udp::{Distribution, OneWayDelay, RateSearch, SearchEnd, Trial, UdpReport, UdpRequest};
use bdp_model::measurement::{Direction, Measurement, Pacer, Pacing};
use bdp_report::{About, Style, csv_of_measurements, html_of_measurements, measurements_text};
use roxmltree::{Document, ParsingOptions};

const ABOUT: About<'static> = About {
    run: Some("7f3a"),
    label: None,
    command: None,
    started: None,
    planned: None,
    store: None,
    title: None,
    note: None,
};

/// A search that found 96.6 Mbit/s.
fn searched() -> Measurement {
    let text = include_str!("../../../bdp-store/tests/it/measurement.json");
    let mut m: Measurement = serde_json::from_str(text).unwrap();
    let search = Some(RateSearch { loss_ratio: 0.0, trial: RateSearch::usual_trial() });
    m.request.spec.udp =
        Some(UdpRequest { rate_bps: None, search, datagram_bytes: None, dont_fragment: false });
    let trial = |asked: Option<f64>, sent_bps: f64, lost: u64, held: bool| Trial {
        rate_bps: asked,
        sent_bps,
        received_bps: sent_bps,
        sent: 8_000,
        lost,
        loss_ratio: lost as f64 / 8_000.0,
        dropped_by_receiver: Some(0),
        held,
        passed: lost == 0,
    };
    let times = Distribution { count: 9, p50: 122_000, p95: Some(154_000), p99: Some(250_000), max: 300_000 };
    let direction = &mut m.directions[0];
    direction.goodput_bps = 96.6e6;
    direction.udp = Some(UdpReport {
        asked_bps: Some(96.6e6),
        sent_bps: 96.6e6,
        datagram_bytes: 1472,
        sent: 24_604,
        received: 24_604,
        dropped_by_receiver: Some(0),
        jitter_ns: Some(8_400),
        delay_variation_ns: Some(times),
        one_way_delay_ns: Some(OneWayDelay { min: -500, clock_error: 20_700, ..Default::default() }),
        send_gap_ns: Some(times),
        burst_max: 1,
        trials: vec![
            trial(None, 9e9, 7_900, false),
            trial(Some(98.5e6), 98.5e6, 95, false),
            trial(Some(96.6e6), 96.6e6, 0, true),
        ],
        search: Some(SearchEnd::Held),
        ..Default::default()
    });
    direction.pacing = Some(Pacing { rate_bps: 96_600_000, by: Pacer::Bdp });
    m.near.device.as_mut().unwrap().qdisc = Some("pfifo_fast".into());
    m
}

/// In one line.
fn whole(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_text_tells_what_was_found_and_how() {
    let style = Style { width: 400, details: true, ..Style::plain() };
    let text = whole(&measurements_text(&[searched()], Some("7f3a"), None, &style));
    for part in [
        "highest rate without loss: 96.6 Mbit/s, held for 10 s; 98.5 Mbit/s lost 1.19 %, on the path",
        "trials: as fast as possible, 9.00 Gbit/s, lost 98.8 %; 98.5 Mbit/s lost 1.19 %; 96.6 Mbit/s held passed",
        "96.6 Mbit/s, paced by the times of send calls, each one burst: eth0 has pfifo_fast, not fq",
        "-u -b auto",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn loss_that_no_rate_is_free_of_names_the_share_to_allow() {
    let mut m = searched();
    let udp = m.directions[0].udp.as_mut().unwrap();
    udp.search = Some(SearchEnd::LossAtAnyRate);
    for (trial, lost) in udp.trials.iter_mut().zip([17, 8, 8]) {
        (trial.lost, trial.loss_ratio, trial.passed) = (lost, lost as f64 / 8_000.0, false);
    }
    let text =
        whole(&measurements_text(&[m], None, None, &Style { width: 400, details: true, ..Style::plain() }));
    assert!(text.contains("--loss-ratio 0.002 finds the highest rate with that little loss"), "{text}");
}

#[test]
fn a_search_that_was_cut_short_tells_what_had_passed() {
    let style = Style { width: 400, details: true, ..Style::plain() };
    let mut m = searched();
    let udp = m.directions[0].udp.as_mut().unwrap();
    udp.search = Some(SearchEnd::CutShort);
    let text = |m: &Measurement| whole(&measurements_text(std::slice::from_ref(m), None, None, &style));
    let told = text(&m);
    assert!(
        told.contains("cut short: 96.6 Mbit/s is the highest rate that had passed a trial without loss"),
        "{told}"
    );
    m.directions[0].udp.as_mut().unwrap().trials.iter_mut().for_each(|trial| trial.passed = false);
    let told = text(&m);
    assert!(told.contains("cut short, and no rate had passed without loss"), "{told}");
}

#[test]
fn the_page_has_every_trial() {
    let (params, m) = (BTreeMap::new(), searched());
    let page = html_of_measurements(&[(&params, &m)], &ABOUT);
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(&page, options).unwrap_or_else(|e| panic!("{e}"));
    let text: String = document.descendants().filter(|n| n.is_text()).filter_map(|n| n.text()).collect();
    for part in [
        "Datagrams, ",
        "24604 of 1472 B",
        "as fast as possible",
        "98.5 Mbit/s",
        "held",
        "UDP datagrams of what",
    ] {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn the_csv_has_their_columns_and_tcp_leaves_them_empty() {
    let (params, m) = (BTreeMap::new(), searched());
    let mut tcp = m.clone();
    tcp.directions[0].udp = None;
    let text = csv_of_measurements(&[(&params, &m), (&params, &tcp)]);
    let lines: Vec<Vec<&str>> = text.split_terminator("\r\n").map(|l| l.split(',').collect()).collect();
    let column = |name: &str| lines[0].iter().position(|n| *n == name).unwrap();
    // Commas within quotes stand before them, in none of these rows.
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
    for (name, value) in [
        ("asked_bps", "96600000"),
        ("datagrams_sent", "24604"),
        ("datagrams_lost", "0"),
        ("jitter_ns", "8400"),
        ("one_way_delay_error_ns", "20700"),
        ("search", "held"),
    ] {
        assert_eq!((lines[1][column(name)], lines[2][column(name)]), (value, ""), "{name}");
    }
}

#[test]
fn what_a_server_does_not_tell_is_not_printed_as_none() {
    let of = |duplicated: Option<u64>, reordered: Option<u64>| {
        let mut m = searched();
        let direction = &mut m.directions[0];
        (direction.send_method, direction.receive_method) = (SendMethod::Unknown, ReceiveMethod::Unknown);
        let udp = direction.udp.as_mut().unwrap();
        (udp.duplicated, udp.reordered) = (duplicated, reordered);
        let style = Style { width: 400, details: true, ..Style::plain() };
        let text = whole(&measurements_text(std::slice::from_ref(&m), None, None, &style));
        (text, html_of_measurements(&[(&BTreeMap::new(), &m)], &ABOUT))
    };
    let (text, page) = of(None, None);
    assert!(text.contains("duplicates and reordering unknown") && !text.contains("0 reordered"), "{text}");
    assert!(text.contains("(96.6 Mbit/s asked for) 0 lost"), "{text}");
    assert!(page.contains("unknown: the server does not report it") && !page.contains("sent by ,"));
    assert!(of(None, Some(41)).0.contains("41 out of order or copies"));
    assert!(of(Some(39), Some(0)).0.contains("39 duplicated, 0 reordered"));
}

#[test]
fn a_rate_that_was_backed_off_is_the_answer() {
    let mut m = searched();
    m.caveats.push(Caveat::BackedOff {
        direction: Direction::To,
        asked_bps: Some(50e6),
        loss_ratio: 0.6,
        rate_bps: 19e6,
    });
    let text = measurements_text(&[m], Some("7f3a"), None, &Style { width: 200, ..Style::plain() });
    let line = "96.6 Mbit/s, backed off from 50 Mbit/s, which lost 60 % of the datagrams in the first second";
    assert!(text.lines().next().unwrap().contains(line), "{text}");
    assert_eq!(text.matches("backed off").count(), 1, "{text}");
}
