//! The table, as it looks.

use crate::fixture::{MSS, Recipe, demo, elaborate, failed, invalid, missed, record, sweep};
use bdp_model::Probability;
use bdp_model::case::{Published, PublishedRow};
use bdp_model::finding::caveat::WindowShortfall;
use bdp_model::finding::fact::{self, Bps};
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Remedy};
use bdp_model::link::Loss;
use bdp_model::record::Record;
use bdp_model::record::breach::Breach;
use bdp_report::{Style, table};

const UNICODE: Style = Style { unicode: true, ..Style::plain() };

fn narrow(width: u16) -> Style {
    Style { width, ..Style::plain() }
}

/// All that can go wrong, beside what went well: repetitions, INVALID, FAILED, MISSED, a window not reached.
fn troubles() -> Vec<Record> {
    let at = |scenario, repetition, attempt, here_bps| Recipe {
        scenario,
        repetition,
        attempt,
        here_bps,
        ..Recipe::default()
    };
    let wide = |attempt| Recipe {
        window: Some(524_288),
        model_bps: Some(24.1e6),
        published: None,
        ..at("s1-w512k", 1, attempt, 24.0e6)
    };
    let mut short = record(&Recipe { window: Some(30_720), ..at("s3-30k", 1, 1, 1.4e6) });
    short.window.on_the_wire_bytes = Some(20 * MSS);
    short.window.reached = Some(false);
    short.window.note =
        Some(WindowShortfall::Text("calibration ended 1 segment short after 12 steps".to_owned()));
    vec![
        record(&at("s1-64k", 1, 1, 3.004e6)),
        invalid(&at("s1-64k", 2, 1, 0.7e6), "5.2 % released over 1 ms late (bound 1 %)"),
        record(&at("s1-64k", 2, 2, 2.991e6)),
        missed(&at("s1-64k", 3, 1, 2.71e6)),
        invalid(&wide(1), "3.1 % released over 1 ms late (bound 1 %)"),
        record(&wide(2)),
        short,
        invalid(
            &Recipe { published: Some(Published::Range([10.0e6, 10.6e6])), ..at("s3-noscale", 1, 1, 10.2e6) },
            "idle RTT 53.1 ms, configured 51.0 ms (bound 0.5 ms)",
        ),
        failed(
            &at("s1-128k", 1, 1, 0.0),
            "near: connect to far:5201: no answer\x1b[2J within 3 s\n(os error 110)",
        ),
    ]
}

#[test]
fn many_windows_of_one_shortfall_are_one_line() {
    let short = |cases: u64| -> Vec<Record> {
        let of = |repetition: u64| {
            let mut short = record(&Recipe {
                scenario: "s4-reverse",
                window: Some(64_000),
                repetition: repetition as u32,
                ..Recipe::default()
            });
            let seen_bytes = 50_000 + 1000 * repetition;
            short.window.on_the_wire_bytes = Some(seen_bytes);
            short.window.reached = Some(false);
            short.window.note = Some(WindowShortfall::BelowTwin { seen_bytes, twin_bytes: 64_108 });
            short
        };
        (1..=cases).map(of).collect()
    };
    let lines =
        |cases| table(&short(cases), &narrow(200)).lines().filter(|l| l.starts_with("WINDOW")).count();
    assert_eq!(lines(3), 3);
    assert_eq!(lines(4), 1);
    let text = table(&short(6), &narrow(200));
    let line = "WINDOW   s4-reverse: 49.8 KiB to 54.7 KiB of 62.5 KiB on the wire in 6 cases; the first: 51000 bytes on the wire where";
    assert!(text.contains(line), "{text}");
}

fn repetitions() -> Vec<Record> {
    let goodputs = [[213.98e3, 261.0e3, 254.2e3], [188.0e3, 205.5e3, 190.1e3]];
    let mut records = Vec::new();
    for (congestion, goodputs) in ["reno", "cubic"].into_iter().zip(goodputs) {
        for (i, here_bps) in goodputs.into_iter().enumerate() {
            let mut record = elaborate();
            record.params = [("flow.congestion".to_owned(), congestion.into())].into();
            record.repetition = i as u32 + 1;
            record.seed = i as u64;
            record.goodput_bps = Some(here_bps);
            record.expected_bps = Some(240e3);
            record.flows[0].congestion_control = congestion.to_owned();
            records.push(record);
        }
    }
    records
}

/// Ten repetitions of each point, under loss, beside what was published.
fn stacks() -> Vec<Record> {
    let mut records = Vec::new();
    let row = |name: &str, mean: f64, sd: Option<f64>| PublishedRow {
        name: name.to_owned(),
        min_bps: Some(mean * 0.7),
        mean_bps: Some(mean),
        max_bps: Some(mean * 1.3),
        sd_bps: sd,
    };
    for (i, (stack, congestion, sack)) in [
        ("linux-6.1", "reno", true),
        ("linux-6.1", "reno", false),
        ("linux-6.12", "westwood", true),
        ("linux-6.12", "westwood", false),
    ]
    .into_iter()
    .enumerate()
    {
        for repetition in 1..=10 {
            let mut record = record(&Recipe {
                scenario: "s4-loss",
                params: vec![
                    ("stack", stack.into()),
                    ("flow.congestion", congestion.into()),
                    ("hosts.h1.sack", sack.into()),
                ],
                repetition,
                window: None,
                loss: Probability::new(0.05).map_or(Loss::None, Loss::Independent),
                model_bps: None,
                published: None,
                here_bps: 180e3 + 20e3 * i as f64 + f64::from(repetition * repetition) * 1e3,
                rtt_ms: 200.0,
                ..Recipe::default()
            });
            record.case.published_rows =
                vec![row("Linux 2.6.10", 213.98e3, Some(22.75e3)), row("OpenBSD 3.5", 117.98e3, None)];
            records.push(record);
        }
    }
    records
}

#[test]
fn repetitions_of_stacks_in_80_columns() {
    insta::assert_snapshot!(table(&stacks(), &narrow(80)));
}

#[test]
fn figures_of_repetitions_are_those_of_their_values() {
    let document = bdp_report::json(&stacks(), None);
    // The second by its parameters, of reno with SACK.
    let summary = &document["summary"][1];
    let figure = |name: &str| summary[name].as_f64().unwrap();
    // Of 180 + k squared, k from 1 to 10.
    assert!((figure("goodput_mean_bps") - 218.5e3).abs() < 1e-6);
    assert!((figure("goodput_sd_bps") - 34.173_577e3).abs() < 1.0, "{}", figure("goodput_sd_bps"));
    let [low, high] = [0, 1].map(|i| summary["goodput_mean_interval_bps"][i].as_f64().unwrap());
    assert!(low > 195e3 && low < 205e3 && high > 233e3 && high < 243e3, "{low} {high}");
    let models = &summary["loss_models"];
    let rtt = models["rtt_ns"].as_f64().unwrap() / 1e9;
    let mathis = 1448.0 * 8.0 / rtt * 0.93 / 0.05f64.sqrt();
    assert!((models["mathis_bps"].as_f64().unwrap() / mathis - 1.0).abs() < 1e-12);
    assert_eq!(summary["published_rows"][0]["mean_bps"], 213.98e3);
}

#[test]
fn demonstration() {
    insta::assert_snapshot!(table(&demo(), &Style::plain()));
}

#[test]
fn demonstration_in_80_columns() {
    insta::assert_snapshot!(table(&demo(), &narrow(80)));
}

#[test]
fn demonstration_in_60_columns() {
    insta::assert_snapshot!(table(&demo(), &narrow(60)));
}

#[test]
fn sweep_of_windows() {
    insta::assert_snapshot!(table(&sweep(), &UNICODE));
}

#[test]
fn sweep_of_windows_in_80_columns_of_ascii() {
    insta::assert_snapshot!(table(&sweep(), &narrow(80)));
}

#[test]
fn what_went_wrong() {
    insta::assert_snapshot!(table(&troubles(), &UNICODE));
}

#[test]
fn what_went_wrong_in_80_columns() {
    insta::assert_snapshot!(table(&troubles(), &narrow(80)));
}

#[test]
fn repetitions_in_kilobits() {
    insta::assert_snapshot!(table(&repetitions(), &Style::plain()));
}

#[test]
fn nothing() {
    assert_eq!(table(&[], &Style::plain()), "no cases\n");
}

#[test]
fn invalid_and_failed_attempts_leave_every_number_alone() {
    let row = |records: &[Record]| -> Vec<String> {
        let text = table(records, &narrow(160));
        let row = text.lines().find(|l| l.starts_with("s1-64k")).unwrap();
        row.split("  ").map(|cell| cell.trim().to_owned()).filter(|cell| !cell.is_empty()).collect()
    };
    let good = [3.0e6, 3.1e6].map(|here_bps| record(&Recipe { here_bps, ..Recipe::default() }));
    let mut all = good.to_vec();
    let wild = Recipe { here_bps: 900e6, model_bps: Some(1e3), rtt_ms: 1.0, attempt: 7, ..Recipe::default() };
    all.push(invalid(&wild, "late"));
    all.push(failed(&wild, "gone"));
    let (mut before, mut after) = (row(&good), row(&all));
    assert_eq!(before.pop().as_deref(), Some("OK"));
    assert_eq!(after.pop().as_deref(), Some("1 INVALID, 1 FAILED"));
    assert_eq!(before, after);
    assert!(before.contains(&"3.05".to_owned()), "{before:?}");
}

/// Text without its colours, and how many there were.
fn bare(text: &str) -> (String, usize) {
    let mut parts = text.split('\x1b');
    let mut bare = parts.next().unwrap_or_default().to_owned();
    let mut colours = 0;
    for part in parts {
        let (code, rest) = part.split_once('m').unwrap();
        assert!(code[1..].chars().all(|c| c.is_ascii_digit()), "{code}");
        bare.push_str(rest);
        colours += 1;
    }
    (bare, colours)
}

#[test]
fn colour_adds_nothing_that_is_not_said_in_words() {
    for records in [demo(), sweep(), troubles(), repetitions()] {
        let plain = table(&records, &UNICODE);
        let (text, colours) = bare(&table(&records, &Style { colour: true, ..UNICODE }));
        assert_eq!(text, plain);
        assert!(colours > 4);
        assert!(!plain.contains('\x1b'), "neither of ours nor out of an error's text");
    }
}

#[test]
fn no_line_is_wider_than_asked_nor_ends_in_blanks() {
    let mut long = troubles();
    long.extend(sweep());
    long.extend(repetitions());
    long.push(record(&Recipe {
        scenario: "scenarios/of/ours/with-a-name-that-goes-on-and-on.toml",
        ..Recipe::default()
    }));
    for records in [demo(), sweep(), troubles(), repetitions(), stacks(), long] {
        for width in 40..=160 {
            for unicode in [false, true] {
                let text = table(&records, &Style { unicode, width, ..Style::plain() });
                for line in text.lines() {
                    // A command that is not broken can be copied.
                    let command = line.trim_start().starts_with("bdp lab run ");
                    assert!(command || line.chars().count() <= usize::from(width), "{width}: {line}");
                    assert_eq!(line, line.trim_end());
                }
                assert!(unicode || text.is_ascii(), "{text}");
            }
        }
    }
}

#[test]
fn narrow_tables_say_what_they_leave_out() {
    let full = table(&troubles(), &narrow(140));
    assert!(!full.contains("not shown"), "{full}");
    let short = table(&troubles(), &narrow(60));
    assert!(short.contains("not shown in 60 columns: "), "{short}");
    for column in ["RTT", "min..max", "on the wire"] {
        assert!(short.contains(column), "{column}: {short}");
    }
}

#[test]
fn three_windows_make_no_curve_and_four_do() {
    let windows = |n: usize| -> Vec<Record> {
        sweep().into_iter().filter(|r| r.params["direction"] == "forward").take(n).collect()
    };
    assert!(!table(&windows(3), &Style::plain()).contains("knee"));
    let four = table(&windows(4), &Style::plain());
    assert!(four.starts_with("knee  "), "the answer comes first: {four}");
}

#[test]
fn each_curve_has_its_own_chart_and_knee() {
    let text = table(&sweep(), &Style::plain());
    assert_eq!(text.matches("\nknee  311 KiB on the wire (asked 319 kB): ").count(), 2, "{text}");
    assert_eq!(text.matches("rate x RTT = 1 Gbit/s x 2.55 ms = 311 KiB").count(), 2);
    for direction in ["forward", "reverse"] {
        assert!(
            text.contains(&format!("s0-window-i direction {direction}: goodput against window on the wire"))
        );
    }
}

#[test]
fn invalid_windows_are_not_on_the_curve() {
    let forward = || sweep().into_iter().filter(|r| r.params["direction"] == "forward");
    let with = table(&forward().collect::<Vec<_>>(), &Style::plain());
    let spoiled: Vec<Record> = forward()
        .map(|mut r| {
            if r.window.asked_bytes == Some(319_000) {
                r.valid = false;
                r.fidelity.broken = vec![Breach::Text("late".to_owned())];
            }
            r
        })
        .collect();
    let without = table(&spoiled, &Style::plain());
    assert!(with.contains("knee  311 KiB"), "{with}");
    assert!(without.contains("knee  512 KiB"), "the knee moves to the next valid window: {without}");
}

#[test]
fn datagrams_that_were_lost_have_a_column_and_tcp_has_none() {
    let mut udp = record(&Recipe::default());
    udp.flows[0].udp =
        Some(bdp_model::flow::udp::UdpReport { sent: 93_962, lost: 10_515, ..Default::default() });
    let with = table(&[udp], &Style::plain());
    assert!(with.contains(" lost") && with.contains("11.2 %"), "{with}");
    let without = table(&[record(&Recipe::default())], &Style::plain());
    assert!(!without.contains(" lost"), "{without}");
}

#[test]
fn a_window_without_a_valid_run_below_the_knee_is_named_with_it() {
    let mut records: Vec<Record> = sweep();
    for record in &mut records {
        record.valid &= record.window.asked_bytes != Some(319_000);
    }
    let text = bdp_report::sweep(&bdp_model::sweep::record_curves::curves(&records), "", &Style::plain());
    assert!(text.replace("\n      ", " ").contains("it may lie lower: 319 kB without a valid run"), "{text}");
}

#[test]
fn larger_windows_without_a_valid_run_leave_the_knee_unknown() {
    let mut records: Vec<Record> = sweep();
    for record in &mut records {
        record.valid &= record.window.asked_bytes < Some(262_144);
    }
    let curves = bdp_model::sweep::record_curves::curves(&records);
    let text = bdp_report::sweep(&curves, "conditions\n", &Style::plain());
    assert!(text.contains("256 KiB, 319 kB, 512 KiB, 1 MiB, 4 MiB, 100 MB have no valid run"), "{text}");
    assert!(text.contains("knee  unknown: ") && !text.contains("largest"), "{text}");
    let at = |part: &str| text.find(part).unwrap();
    assert!(at("knee  ") < at("conditions") && at("conditions") < at("throughput  "), "{text}");
    assert!(!text.contains("memory"), "{text}");
    let curve = &bdp_report::sweep_json(None, &curves, &records, &[])["curves"][0];
    assert_eq!(curve["unmeasured"].as_array().unwrap().len(), 6);
}

#[test]
fn what_limits_flows_stands_below_once() {
    let point = |bytes, finding| {
        let mut record = record(&Recipe { window: Some(bytes), ..Recipe::default() });
        record.params.insert("flow.window".to_owned(), bytes.into());
        record.flows[0].findings = vec![finding];
        record
    };
    let window = || {
        Finding::new(Limit::ReceiveWindow, Place::receiver("far"), Confidence::High)
            .remedy(Remedy::new(Action::RaiseMaximum).setting("net.ipv4.tcp_rmem").host("far"))
    };
    let by = "the link near->far, 100 Mbit/s";
    let full = Finding::new(Limit::Ceiling, Place::hop(by), Confidence::High).evidence([Evidence::share(
        fact::OfCeiling { goodput: Bps(93e6), ceiling: Bps(94.15e6) },
        0.99,
    )
    .named(by)]);
    let text = table(&[point(16_384, window()), point(32_768, window()), point(524_288, full)], &UNICODE);
    assert!(text.contains("LIMIT    s1-64k: receive window of far, in 2 points\n"), "{text}");
    assert!(text.contains("OK       s1-64k window 512 KiB: at the ceiling, stop tuning\n"), "{text}");
}

#[test]
fn finding_of_a_point_says_in_how_many_repetitions_it_holds() {
    let at = |repetition: u32, window: u64, finding: Finding| {
        let mut record = record(&Recipe { repetition, window: Some(window), ..Recipe::default() });
        record.params.insert("flow.window".to_owned(), window.into());
        // The middle one of five speaks for the point.
        record.goodput_bps = Some(3e6 + f64::from(repetition) * 1e3);
        record.flows[0].findings = vec![finding];
        record
    };
    let of = |limit, place| Finding::new(limit, place, Confidence::High);
    let window = || of(Limit::ReceiveWindow, Place::receiver("far"));
    let other = || of(Limit::PathChanged, Place::path());
    let point = |window_bytes, alike: u32| {
        (1..=5).map(move |i| at(i, window_bytes, if i <= alike { window() } else { other() }))
    };
    let text = table(&point(65_536, 4).collect::<Vec<_>>(), &UNICODE);
    assert!(text.contains("the receive window of far; in 4 of 5 repetitions\n"), "{text}");
    let both: Vec<_> = point(65_536, 4).chain(point(32_768, 5)).collect();
    let text = table(&both, &UNICODE);
    assert!(text.contains("receive window of far, in 2 points, in 9 of 10 repetitions\n"), "{text}");
    let limits = &bdp_report::json(&both[..5], None)["summary"][0]["limits"];
    let n = |i: usize| (limits[i]["limit"].as_str().unwrap(), limits[i]["n"].as_u64().unwrap());
    assert_eq!([n(0), n(1)], [("receive_window", 4), ("path_changed", 1)]);
}

#[test]
fn curve_that_falls_where_it_must_rise_has_no_knee_and_says_why() {
    let mut records = sweep();
    for record in records.iter_mut().filter(|r| r.window.asked_bytes == Some(65_536)) {
        record.goodput_bps = record.goodput_bps.map(|bps| bps / 20.0);
        record.flows[0].goodput_bps /= 20.0;
    }
    let curves = bdp_model::sweep::record_curves::curves(&records);
    let text = bdp_report::sweep(&curves, "", &Style::plain());
    assert!(
        text.contains("knee  none: goodput falls from ") && text.contains("throughput  unknown: "),
        "{text}"
    );
    let curve = &bdp_report::sweep_json(None, &curves, &records, &[])["curves"][0];
    assert!(curve["knee"].is_null() && curve["fall"]["from"].as_f64() < curve["fall"]["to"].as_f64());
}

/// A record of this many flows from near to far, the next one always 1 Mbit/s faster.
fn of_flows(count: u32) -> Record {
    let mut record = record(&Recipe::default());
    let (flow, spec) = (record.flows[0].clone(), record.case.flows[0].clone());
    record.flows.clear();
    record.case.flows.clear();
    for number in 1..=count {
        let mut flow = flow.clone();
        flow.goodput_bps = f64::from(number) * 1e6;
        flow.retransmits = Some(u64::from(number));
        record.flows.push(flow);
        record.case.flows.push(spec.clone());
    }
    record
}

#[test]
fn flows_have_a_row_each_where_a_case_has_several() {
    let text = |count, style: &Style| table(&[of_flows(count)], style);
    insta::assert_snapshot!(text(3, &Style::plain()));
    let narrow = text(3, &narrow(40));
    assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
    let many = text(17, &Style::plain());
    for row in ["slowest of 17", "median", "fastest"] {
        assert_eq!(many.matches(row).count(), 1, "{row} in\n{many}");
    }
    assert!(!text(1, &Style::plain()).contains("flows of"));
}
