//! Expectations as people type them, right and wrong, and what is found against them.

use bdp_model::measurement::expectation::{Expectation, Operator};
use bdp_model::measurement::figure::{Figure, Figures, PingFigure, Quantile, figure};
use bdp_model::measurement::{Direction, Measurement};

fn measurement(goodput_bps: f64) -> Measurement {
    let text = include_str!("../../../bdp-store/tests/it/measurement.json");
    let mut m: Measurement = serde_json::from_str(text).unwrap();
    m.directions[0].goodput_bps = goodput_bps;
    m
}

#[test]
fn what_is_typed_is_understood() {
    use Operator::{Above, AtLeast, AtMost, Below};
    for (text, figure, operator, value) in [
        ("to.goodput>=900M", Figure::Goodput(Direction::To), AtLeast, 900e6),
        (" from.goodput > 1.5Gbit/s ", Figure::Goodput(Direction::From), Above, 1.5e9),
        ("rtt.idle.p95<=30ms", Figure::RttIdle(Quantile::P95), AtMost, 30e6),
        ("to.rtt.loaded.p99 < 100ms", Figure::RttLoaded(Direction::To, Quantile::P99), Below, 100e6),
        ("from.retransmits<=0", Figure::Retransmits(Direction::From), AtMost, 0.0),
        ("to.retransmits.ratio<=0.5%", Figure::RetransmitRatio(Direction::To), AtMost, 0.005),
        ("to.window>=64K", Figure::Window(Direction::To), AtLeast, 65_536.0),
        ("to.rpm>=600", Figure::Rpm(Direction::To), AtLeast, 600.0),
        ("from.loss<0.1%", Figure::Loss(Direction::From), Below, 0.001),
        ("from.jitter<=2ms", Figure::Jitter(Direction::From), AtMost, 2e6),
    ] {
        let read: Expectation = text.parse().unwrap();
        assert_eq!((read.figure, read.operator, read.value), (figure, operator, value), "{text}");
        assert_eq!(read.to_string(), text.trim());
    }
}

#[test]
fn every_figure_is_found_by_its_name() {
    let all = Figure::all();
    assert_eq!(all.len(), 31);
    for figure in all {
        assert_eq!(Figure::find(&figure.to_string()), Some(figure));
    }
}

#[test]
fn mistakes_are_named_with_their_place_and_the_right_form() {
    for (text, column, said) in [
        ("to.goodput", 11, "write FIGURE>=VALUE"),
        ("to.goodput=900M", 11, "use >=, <=, > or <"),
        ("to.godput>=900M", 1, "did you mean to.goodput"),
        ("goodput>=900M", 1, "did you mean to.goodput, from.goodput?"),
        ("  speed>=900M", 3, "there are to.goodput"),
        ("to.goodput>=fast", 13, "must start with a number"),
        ("to.goodput>= 900MB/s", 14, "unknown unit"),
        ("rtt.idle.p95<=30", 15, "a unit is needed"),
        ("retransmits.ratio<=1%", 1, "did you mean to.retransmits.ratio, from.retransmits.ratio"),
        ("to.retransmits<=1%", 17, "not a number of segments"),
        ("to.rpm>=fast", 9, "not a number of round trips a minute"),
        ("to.loss<=200%", 10, "0 to 100 %"),
        ("rtt.loaded.p95<=9ms", 1, "did you mean to.rtt.loaded.p95, from.rtt.loaded.p95"),
        ("ü.goodput>=", 1, "did you mean to.goodput"),
        ("", 1, "write FIGURE>=VALUE"),
        (">=900M", 1, "there are to.goodput"),
    ] {
        let error = text.parse::<Expectation>().unwrap_err();
        assert_eq!(error.column, column, "{error}");
        assert!(error.mistake.contains(said), "{error}");
        assert!(!error.to_string().contains('\n'));
    }
}

#[test]
fn the_median_of_the_runs_is_judged() {
    let expectation: Expectation = "to.goodput>=900M".parse().unwrap();
    let judge = |goodputs: &[f64]| {
        let runs: Vec<Measurement> = goodputs.iter().map(|&g| measurement(g)).collect();
        let judgement = expectation.judge(&runs);
        (judgement.met, judgement.found)
    };
    assert_eq!(judge(&[900e6]), (true, Some(900e6)));
    assert_eq!(judge(&[899e6]), (false, Some(899e6)));
    assert_eq!(judge(&[950e6, 100e6, 901e6]), (true, Some(901e6)));
    assert_eq!(judge(&[]), (false, None));
    let above: Expectation = "to.goodput>900M".parse().unwrap();
    assert!(!above.judge(&[measurement(900e6)]).met);
    let back: Expectation = "from.goodput<=900M".parse().unwrap();
    assert_eq!(back.judge(&[measurement(1.0)]).found, None, "that way was not measured");
    assert!(!back.judge(&[measurement(1.0)]).met);
}

#[test]
fn datagrams_and_responsiveness_are_judged() {
    let mut m = measurement(1e6);
    m.directions[0].responsiveness_rpm = Some(512.4);
    m.directions[0].udp = Some(bdp_model::flow::udp::UdpReport {
        sent: 1000,
        loss_ratio: 0.002,
        jitter_ns: Some(1_500_000),
        ..Default::default()
    });
    for (text, met, said) in [
        ("to.rpm>=500", true, "MET     to.rpm>=500: 512 RPM"),
        ("to.loss<=0.1%", false, "MISSED  to.loss<=0.1%: 0.2 %"),
        ("to.jitter<2ms", true, "MET     to.jitter<2ms: 1.5 ms"),
        ("from.rpm>=1", false, "MISSED  from.rpm>=1: not measured, or too few samples for this percentile"),
    ] {
        let judgement = text.parse::<Expectation>().unwrap().judge(std::slice::from_ref(&m));
        assert_eq!((judgement.met, judgement.to_string().as_str()), (met, said));
    }
    let all = PingFigure::all();
    assert_eq!(all.len(), 7);
    for figure in all {
        assert_eq!(PingFigure::find(&figure.to_string()), Some(figure));
    }
    let error = "to.goodput>=1M".parse::<Expectation<PingFigure>>().unwrap_err();
    assert!(error.mistake.contains("there are rtt.p95"), "{error}");
}

#[test]
fn loss_of_tcp_is_judged() {
    let mut m = measurement(1e6);
    let direction = &mut m.directions[0];
    (direction.retransmits, direction.needless_retransmits) = (Some(30), Some(10));
    direction.sent.iter_mut().for_each(|sample| sample.delivered = Some(980));
    for (text, met) in [
        ("to.loss<=2%", true),
        ("to.loss<2%", false),
        ("to.retransmits.ratio<=3%", true),
        ("to.retransmits.ratio<=2%", false),
    ] {
        assert_eq!(text.parse::<Expectation>().unwrap().judge(std::slice::from_ref(&m)).met, met, "{text}");
    }
    m.directions[0].needless_retransmits = None;
    let unknown = "to.loss<=2%".parse::<Expectation>().unwrap().judge(std::slice::from_ref(&m));
    assert!(!unknown.met && unknown.is_open(), "{unknown}");
}

#[test]
fn nothing_is_met_under_a_load_that_was_not_offered() {
    let run = |sent_bps| {
        let mut m = measurement(48e6);
        m.request.spec.udp = Some(bdp_model::flow::udp::UdpRequest {
            rate_bps: Some(100_000_000),
            search: None,
            datagram_bytes: None,
            dont_fragment: false,
        });
        m.directions[0].udp = Some(bdp_model::flow::udp::UdpReport {
            asked_bps: Some(100e6),
            sent_bps,
            sent: 1000,
            jitter_ns: Some(1000),
            ..Default::default()
        });
        m
    };
    let judge = |text: &str, sent: &[f64]| {
        let runs: Vec<Measurement> = sent.iter().map(|&sent| run(sent)).collect();
        text.parse::<Expectation>().unwrap().judge(&runs)
    };
    for text in ["to.loss<=1%", "to.jitter<=1ms", "to.rtt.loaded.p50<=1s", "to.goodput<=90M"] {
        assert!(judge(text, &[99e6]).met, "{text}");
        let missed = judge(text, &[99e6, 50e6]);
        assert!(!missed.met && missed.is_open(), "{missed}");
    }
    let missed = judge("to.loss<=1%", &[50e6]).to_string();
    let said = "MISSED  to.loss<=1%: 0 % under a smaller load than requested: 50 Mbit/s of 100 Mbit/s sent";
    assert_eq!(missed, said);
    // What came is goodput whatever was sent, and a round trip without load is one all the same.
    assert!(judge("to.goodput>=40M", &[50e6]).met && judge("rtt.idle.p50<=1s", &[50e6]).met);
    // Where no rate was asked for there is nothing to fall short of.
    let mut unbounded = run(50e6);
    unbounded.request.spec.udp.as_mut().unwrap().rate_bps = None;
    assert!("to.loss<=1%".parse::<Expectation>().unwrap().judge(&[unbounded]).met);
}

#[test]
fn a_run_that_failed_has_no_figures() {
    let mut runs = [measurement(1e6), measurement(3e6), measurement(100e6)];
    runs[2].error = Some("gone".into());
    assert_eq!(figure(Figure::Goodput(Direction::To), &runs), Some(2e6));
    assert_eq!(figure(Figure::RttIdle(Quantile::P50), &runs), Some(24.2e6));
    assert_eq!(figure(Figure::RttLoaded(Direction::To, Quantile::P95), &runs), Some(24.9e6));
    assert_eq!(figure(Figure::Retransmits(Direction::To), &runs[2..]), None);
    assert_eq!(Figure::Window(Direction::To).format(1_048_576.0), "1 MiB");
}
