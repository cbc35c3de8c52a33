//! What carries a run's own labels, and loss and limits, to other programs: CSV and metrics.

use std::collections::BTreeMap;

use crate::fixture::{Recipe, record};
use bdp_model::flow::window::WindowBytes;
use bdp_model::measurement::Measurement;
use bdp_model::measurement::labels::{Label, Labels};
use bdp_model::record::SenderSample;
use bdp_report::{FarEnd, csv, csv_of_measurements, prometheus, prometheus_of_cases};
use serde_json::Value;

/// The stored sample with this window and goodput.
fn measured(window: u64, repetition: u32, goodput_bps: f64) -> Measurement {
    let mut m: Measurement =
        serde_json::from_str(include_str!("../../../bdp-store/tests/it/measurement.json")).unwrap();
    m.repetition = repetition;
    m.request.spec.window = WindowBytes::new(window);
    let d = &mut m.directions[0];
    d.goodput_bps = goodput_bps;
    d.window.on_the_wire_bytes = Some(window);
    m
}

#[test]
fn csv_has_a_column_for_each_parameter_and_label() {
    let labels: Labels =
        [Label::new("site", "=ams").unwrap(), Label::new("rack", "7").unwrap()].into_iter().collect();
    let of = |window: &str, loss: Option<&str>| {
        let mut params = vec![("flow.window", Value::from(window))];
        params.extend(loss.map(|loss| ("link.loss", Value::from(loss))));
        record(&Recipe { params, ..Recipe::default() })
    };
    let mut limited = of("128K", Some("1%"));
    limited.flows[0].findings = measured(65_536, 1, 20e6).directions[0].findings.clone();
    let limit = limited.flows[0].findings.first().map_or("", |finding| finding.limit.name());
    let text = csv(&[of("64K", None), limited.clone()], &labels);
    let lines: Vec<Vec<&str>> = text.split_terminator("\r\n").map(|l| l.split(',').collect()).collect();
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
    let field = |row: usize, name: &str| lines[row][lines[0].iter().position(|n| *n == name).unwrap()];
    assert_eq!(
        lines[0][lines[0].len() - 4..],
        ["label.rack", "label.site", "param.flow.window", "param.link.loss"]
    );
    assert_eq!([field(1, "label.site"), field(1, "label.rack")], ["'=ams", "7"]);
    assert_eq!([field(1, "param.flow.window"), field(1, "param.link.loss")], ["64K", ""]);
    assert_eq!([field(2, "param.flow.window"), field(2, "param.link.loss")], ["128K", "1%"]);
    assert_eq!([field(1, "limit"), field(2, "limit"), limit], ["", limit, "receive_window"]);

    let params = |window: &str| BTreeMap::from([("window".to_owned(), Value::from(window))]);
    let (small, large) = (params("64K"), params("128K"));
    let mut one = measured(65_536, 1, 20e6);
    one.labels = labels;
    let direction = &mut one.directions[0];
    (direction.retransmits, direction.needless_retransmits) = (Some(30), Some(10));
    direction.sent.iter_mut().for_each(|sample| sample.delivered = Some(980));
    direction.sent.push(SenderSample { delivered: Some(980), ..Default::default() });
    let text = csv_of_measurements(&[(&small, &one), (&large, &measured(131_072, 1, 40e6))]);
    let lines: Vec<Vec<&str>> = text.split_terminator("\r\n").map(|l| l.split(',').collect()).collect();
    let field = |row: usize, name: &str| lines[row][lines[0].iter().position(|n| *n == name).unwrap()];
    assert_eq!([field(1, "param.window"), field(1, "label.rack")], ["64K", "7"]);
    assert_eq!([field(1, "retransmit_ratio"), field(1, "loss_ratio")], ["0.03", "0.02"]);
    let last = lines.len() - 1;
    assert_eq!([field(last, "param.window"), field(last, "label.rack")], ["128K", ""]);
}

#[test]
fn metrics_have_the_labels_the_loss_and_the_limit() {
    let labels: Labels = [Label::new("site", "ams \"1\"").unwrap()].into_iter().collect();
    let mut one = measured(65_536, 1, 20e6);
    let direction = &mut one.directions[0];
    direction.findings = measured(65_536, 1, 20e6).directions[0].findings.clone();
    let limit = direction.findings[0].limit.name();
    (direction.retransmits, direction.needless_retransmits) = (Some(30), Some(10));
    direction.sent.push(SenderSample { delivered: Some(980), ..Default::default() });
    let way = direction.direction.name();
    let far = FarEnd { host: "h", port: None, own: &labels };
    let text = prometheus(&[one], &[], far, "1");
    let own = "host=\"h\",site=\"ams \\\"1\\\"\"";
    for line in [
        format!("bdp_retransmit_ratio{{{own},direction=\"{way}\"}} 0.03"),
        format!("bdp_loss_ratio{{{own},direction=\"{way}\"}} 0.02"),
        format!("bdp_limit{{{own},direction=\"{way}\",limit=\"{limit}\"}} 1"),
    ] {
        assert!(text.lines().any(|l| l == line), "{line}\n{text}");
    }
    assert!(text.lines().filter(|l| !l.starts_with('#')).all(|l| l.contains(own)), "{text}");

    let (plain, mut limited) = (record(&Recipe::default()), record(&Recipe::default()));
    limited.flows[0].findings = measured(65_536, 1, 20e6).directions[0].findings.clone();
    let text = prometheus_of_cases(&[limited, plain], &labels, "1");
    assert!(text.lines().filter(|l| !l.starts_with('#')).all(|l| l.contains(",site=")), "{text}");
    assert!(text.contains(&format!(",limit=\"{limit}\"}} ")), "{text}");
}

#[test]
fn curves_are_files_of_their_own() {
    let figures = bdp_report::figures_of_cases(&crate::fixture::sweep());
    assert!(!figures.is_empty());
    for figure in &figures {
        let document = crate::fixture::parse(&figure.svg);
        let root = document.root_element();
        assert_eq!(root.tag_name().namespace(), Some("http://www.w3.org/2000/svg"));
        assert!(document.descendants().all(|node| node.attribute("class").is_none()), "{}", figure.svg);
        let dots =
            document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "circle")));
        assert!(dots.count() > 2, "{}", figure.svg);
        assert!(figure.pdf.starts_with(b"%PDF-1.4") && figure.pdf.ends_with(b"%%EOF\n"));
    }
    let names: std::collections::BTreeSet<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(names.len(), figures.len());
    assert!(names.iter().any(|name| name.ends_with("goodput")), "{names:?}");
    assert_eq!(bdp_report::figures_of_cases(&crate::fixture::sweep()), figures);
}
