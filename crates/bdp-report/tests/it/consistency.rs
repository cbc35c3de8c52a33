//! No sentence contradicts the figures of the same output: a share is at most all, a part at most its whole, what a model or a remedy gives is no less than what
//! was measured without a word, and a remedy asks for more than is there. Held on measurements of generated figures, and on the records of these tests.

#[path = "../../../bdp-explain/tests/it/rules/shape.rs"]
#[allow(dead_code)]
mod shape;

use bdp_explain::{ceiling, explain};
use bdp_model::facts::Facts;
use bdp_model::finding::fact;
use bdp_model::finding::threshold::MODEL_TOLERANCE;
use bdp_model::finding::{Action, Fact, Finding, Limit, Unit};
use bdp_model::measurement::Measurement;
use bdp_model::measurement::ends::Direction;
use bdp_model::probes::{ProbeOutcome, ProbePoint, ProbeSeries};
use bdp_model::record::LossEpisode;
use bdp_model::units::ByteCount;
use bdp_report::{Style, explanation, measurement_json, measurements_text};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;
use shape::{MS, MSS, Shape, came, lost};

/// A number with its unit, in the unit that all of its kind have.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Figure {
    kind: &'static str,
    value: f64,
}

/// The units of sentences: each with its kind and how many of that kind's smallest it is.
const UNITS: [(&str, &str, f64); 15] = [
    ("ns", "time", 1.0),
    ("us", "time", 1e3),
    ("ms", "time", 1e6),
    ("s", "time", 1e9),
    ("min", "time", 60e9),
    ("B", "size", 1.0),
    ("KiB", "size", 1024.0),
    ("MiB", "size", 1_048_576.0),
    ("GiB", "size", 1_073_741_824.0),
    ("bit/s", "rate", 1.0),
    ("kbit/s", "rate", 1e3),
    ("Mbit/s", "rate", 1e6),
    ("Gbit/s", "rate", 1e9),
    ("Tbit/s", "rate", 1e12),
    ("%", "share", 0.01),
];

fn number(word: &str) -> Option<f64> {
    word.trim_matches(|c: char| "(),;:".contains(c)).replace(',', "").parse().ok()
}

/// The figure that a list of words begins with, and whether it has a unit.
fn figure(words: &[&str]) -> Option<Figure> {
    let value = number(words.first()?)?;
    let unit = words.get(1).map(|word| word.trim_matches(|c: char| "(),;:".contains(c)));
    let known = UNITS.iter().find(|known| Some(known.0) == unit);
    Some(known.map_or(Figure { kind: "count", value }, |&(_, kind, of)| Figure { kind, value: value * of }))
}

/// What a sentence says that cannot be: shares above all, and parts above their wholes (`A of B`, `A of the B`).
fn contradictions(sentence: &str) -> Vec<String> {
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let mut all = Vec::new();
    for (i, word) in words.iter().enumerate() {
        // What varies, and what is more than something, may be more than all of it.
        let is_free = i >= 2 && words[i - 2] == "by" || words.get(i + 1).is_some_and(|next| *next == "more");
        if word.trim_matches(|c: char| "(),;:".contains(c)) == "%" && !is_free {
            let share = i.checked_sub(1).and_then(|before| number(words[before]));
            if share.is_some_and(|share| share > 100.0) {
                all.push(format!("{} %", share.unwrap_or_default()));
            }
        }
        if *word != "of" {
            continue;
        }
        let after =
            if words.get(i + 1).is_some_and(|next| ["the", "these"].contains(next)) { i + 2 } else { i + 1 };
        // The unit, or what is counted, may stand between a number and its "of".
        let before = [2, 1].into_iter().find_map(|back| figure(&words[i.checked_sub(back)?..i]));
        let (Some(part), Some(whole)) = (before, figure(&words[after.min(words.len())..])) else { continue };
        if part.kind == whole.kind && part.value > whole.value * 1.006 {
            all.push(format!("{part:?} of {whole:?}"));
        }
    }
    all
}

/// All sentences below a value of JSON.
fn sentences(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if ["text", "summary"].contains(&name.as_str()) => {
                        into.push(text.clone())
                    }
                    other => sentences(other, into),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|one| sentences(one, into)),
        _ => {}
    }
}

/// Shares of a whole, all of which nothing can exceed. What is reached of a rate that is computed or asked for may be more than that.
const OF_A_RATE: [Fact; 11] = [
    Fact::MoreStreams,
    Fact::OfWindowRate,
    Fact::OfFlightRate,
    Fact::OfCeiling,
    Fact::AboveCeiling,
    Fact::OfAskedRate,
    Fact::OfPeakRate,
    Fact::LossesAtAnyRate,
    Fact::LossesAtOneRate,
    Fact::Overshoot,
    Fact::BufferPayload,
];

/// What the figures of a finding have against each other, and against those of its transfer.
fn conflicts(facts: &Facts, finding: &Finding) -> Vec<String> {
    let mut all = Vec::new();
    let mut must = |holds: bool, what: &str| {
        if !holds {
            all.push(what.to_owned());
        }
    };
    for evidence in &finding.evidence {
        let is_part = evidence.unit == Unit::Share && !OF_A_RATE.contains(&evidence.fact);
        let retransmits = evidence.fact == Fact::RetransmittedShare;
        must(!is_part || retransmits || evidence.value <= 1.0, &format!("a share of {evidence:?}"));
        must(
            evidence.at_least.is_none_or(|least| evidence.value >= least),
            &format!("bound of {evidence:?}"),
        );
        must(evidence.at_most.is_none_or(|most| evidence.value <= most), &format!("bound of {evidence:?}"));
        must(evidence.value.is_finite(), &format!("{evidence:?} is a number"));
        must(evidence.samples.is_none_or(|samples| samples.met <= samples.of), &format!("{evidence:?}"));
    }
    let goodput = facts.goodput_bps;
    must(finding.next.is_none_or(|next| next.goodput_bps >= goodput), "what binds next is reached already");
    if let Some(fact::OfWindowRate { carries, .. }) = finding.figures() {
        must(2.0 * carries.0 >= goodput, "twice the window carries less than is carried");
    }
    let mut remedy = finding.remedy.as_ref();
    while let Some(this) = remedy {
        let end =
            [&facts.sender, &facts.receiver].into_iter().find(|end| Some(&end.name) == this.host.as_ref());
        let setting = this.setting.as_ref().and_then(|setting| end?.host.sysctls.get(setting));
        let most = setting.and_then(|value| value.split_whitespace().last()?.parse::<f64>().ok());
        if let (Action::RaiseMaximum, Some(value), Some(most)) = (this.action, this.value, most) {
            must(value > most, "a maximum is to be raised to less than it is");
        }
        let asked = facts.asked.window.map(|asked| asked.as_bytes() as f64);
        if let (Action::AskWindow, Some(value), Some(asked)) = (this.action, this.value, asked) {
            must(value > asked, "a window is to be asked for that is no larger than the one that was");
        }
        remedy = this.also.as_deref();
    }
    all
}

/// That a model which gives far less than what came through says so.
fn model_is_silent(facts: &Facts, finding: &Finding, words: &[String]) -> bool {
    let model = finding.observed(Fact::CubicRate).or(finding.observed(Fact::MathisRate));
    let is_far = model.is_some_and(|model| facts.goodput_bps > MODEL_TOLERANCE * model.value);
    is_far && !words.iter().any(|text| text.contains("came through"))
}

/// Explains a measurement as `bdp measure` does, and checks all that is said of it.
fn check(mut m: Measurement) -> Result<Limit, TestCaseError> {
    let facts = Facts::measured(&m, Direction::To).unwrap();
    m.directions[0].findings = explain(&facts);
    let findings = m.directions[0].findings.clone();
    let mut words = Vec::new();
    sentences(&measurement_json(&m), &mut words);
    prop_assert!(!words.is_empty());
    for text in &words {
        let wrong = contradictions(text);
        prop_assert!(wrong.is_empty(), "'{text}': {wrong:?}");
    }
    for finding in &findings {
        let wrong = conflicts(&facts, finding);
        prop_assert!(wrong.is_empty(), "{wrong:?} of {finding:#?}");
        prop_assert!(!model_is_silent(&facts, finding, &words), "{finding:#?}");
    }
    prop_assert!(!measurements_text(&[m], None, None, &Style::plain()).is_empty());
    Ok(findings[0].limit)
}

/// A number between two, as often in each of its magnitudes.
fn magnitudes(from: f64, to: f64) -> impl Strategy<Value = f64> {
    (from.ln()..to.ln()).prop_map(f64::exp)
}

fn shapes() -> impl Strategy<Value = Shape> {
    let flow = (magnitudes(0.02, 3000.0), 0..4000u64, 1..4000u64, magnitudes(500.0, 3e7), 0.0..=1.0);
    let kernel = (prop::option::of(0.0..=1.0), prop::option::of(0.0..=1.0), magnitudes(4608.0, 3e7));
    let others = (24.2..400.0, 0.05..=1.0, 0..100_000u64, 0.0..1.3, prop::option::of(Just(1_000_000_000)));
    (flow, kernel, others).prop_map(|(flow, kernel, others)| {
        let (goodput_mbps, in_flight, cwnd, receive_window, share) = flow;
        let (rwnd_limited, sndbuf_limited, send_buffer) = kernel;
        let (rtt_ms, steady, retransmits, cpu, nic) = others;
        Shape {
            goodput_mbps,
            in_flight: in_flight * MSS,
            cwnd: cwnd * MSS,
            receive_window: receive_window as u64,
            share,
            rwnd_limited,
            sndbuf_limited,
            send_buffer: send_buffer as u64,
            rtt_loaded: (rtt_ms * 1e6) as u64,
            steady,
            retransmits,
            cpu,
            nics: [nic, Some(10_000_000_000)],
        }
    })
}

/// Makes the figures those of a full window or a full send buffer, so that most of the rules have something to claim.
fn settle(shape: &mut Shape, extras: &mut Extras, how: u8, share: f64) {
    let rtt_s = shape.rtt_loaded as f64 / 1e9;
    let carries = |bytes: u64| bytes as f64 * 8.0 / rtt_s / 1e6 * share;
    match how {
        0 => {
            shape.in_flight = shape.receive_window;
            shape.cwnd = shape.receive_window + 40 * MSS;
            shape.goodput_mbps = carries(shape.receive_window).max(0.01);
        }
        1 => {
            shape.receive_window = 3 * shape.in_flight.max(MSS);
            shape.cwnd = 2 * shape.in_flight.max(MSS);
            shape.send_buffer = (shape.in_flight * 2).max(4608);
            shape.goodput_mbps = carries(shape.in_flight).max(0.01);
        }
        2 => {
            // Losses of a segment at any rate, and no queue.
            shape.receive_window = 1 << 25;
            shape.cwnd = shape.in_flight.max(MSS);
            (shape.rtt_loaded, shape.cpu, shape.rwnd_limited, shape.sndbuf_limited) =
                (24_400_000, 0.1, None, None);
            extras.losses.iter_mut().for_each(|loss| (loss.2, loss.3) = (false, 1));
            (extras.rates, extras.host_ms) = (vec![1], 0);
            extras.streams.clear();
        }
        _ => {}
    }
}

#[derive(Debug, Clone)]
struct Extras {
    streams: Vec<f64>,
    congestion: &'static str,
    losses: Vec<(u64, u32, bool, u64)>,
    rates: Vec<u64>,
    host_ms: u64,
    window: Option<u64>,
    buffer: Option<u64>,
    largest: u64,
    delivery_mbps: u64,
}

fn extras() -> impl Strategy<Value = Extras> {
    let streams = prop::collection::vec(0.2..3.0, 0..6);
    let congestion = prop::sample::select(vec!["cubic", "reno", "bbr"]);
    let losses = prop::collection::vec((1..99u64, 1..400u32, any::<bool>(), 0..900u64), 0..24);
    let rates = prop::collection::vec(0..3u64, 1..5);
    let asked = (prop::option::of(1024..4_000_000u64), prop::option::of(1024..4_000_000u64));
    (streams, congestion, losses, rates, 0..400u64, asked, 100_000..60_000_000u64, 1..3000u64).prop_map(
        |(streams, congestion, losses, rates, host_ms, (window, buffer), largest, delivery_mbps)| Extras {
            streams,
            congestion,
            losses,
            rates,
            host_ms,
            window,
            buffer: buffer.filter(|_| window.is_none()),
            largest,
            delivery_mbps,
        },
    )
}

fn measurement(shape: &Shape, extras: Extras) -> Measurement {
    let mut m = shape.measurement();
    let spec = &mut m.request.spec;
    spec.window = extras.window.and_then(|bytes| ByteCount::bytes(bytes).try_into().ok());
    spec.socket_buffer = extras.buffer.map(ByteCount::bytes);
    spec.streams = extras.streams.len() as u32 + 1;
    for (host, name) in [(&mut m.near, "net.ipv4.tcp_wmem"), (&mut m.far, "net.ipv4.tcp_rmem")] {
        host.sysctls.insert(name.to_owned(), format!("4096 131072 {}", extras.largest));
    }
    let d = &mut m.directions[0];
    let first = d.goodput_bps;
    d.stream_goodput_bps = std::iter::once(1.0).chain(extras.streams).map(|share| share * first).collect();
    d.goodput_bps = d.stream_goodput_bps.iter().sum();
    d.bytes = (d.goodput_bps * 10.0 / 8.0) as u64;
    d.congestion_control = extras.congestion.to_owned();
    d.window.socket_buffer_bytes = Some(shape.receive_window + shape.receive_window / 2);
    let mut losses = extras.losses;
    losses.sort_unstable();
    let segments = (first * 10.0 / 8.0 / MSS as f64) as u64;
    d.loss_episodes = losses
        .iter()
        .map(|&(tenth, unacked, slow_start, retransmits)| LossEpisode {
            slow_start,
            retransmits,
            delivered: segments * tenth / 100,
            ..lost(tenth, unacked)
        })
        .collect();
    let again: u64 = losses.iter().map(|loss| loss.3).sum();
    d.retransmits = Some(again);
    let mean = extras.rates.iter().sum::<u64>().max(1);
    let mut bytes = 0;
    let each = d.bytes / 100 * extras.rates.len() as u64;
    d.received = (0..=100)
        .map(|tenth| {
            bytes += each * extras.rates[tenth as usize % extras.rates.len()] / mean;
            came(tenth, bytes)
        })
        .collect();
    for (i, sample) in d.sent.iter_mut().enumerate() {
        let i = i as u64;
        sample.delivered = Some(segments * i / 100);
        sample.retransmits = Some(again * i / 99);
        sample.min_rtt_ns = Some(24 * MS);
        sample.ssthresh = Some(30);
        sample.app_limited = Some(false);
        sample.delivery_rate_bps = Some(extras.delivery_mbps * 1_000_000);
    }
    let probe = |i: u64| {
        let at_ns = (i * 50 * MS) as i64;
        let host_ns = if i.is_multiple_of(17) { extras.host_ms * MS } else { 100_000 };
        let outcome = ProbeOutcome::Answered(shape.rtt_loaded + host_ns);
        ProbePoint { host_ns: Some(host_ns), ..ProbePoint::plain(at_ns, at_ns, outcome) }
    };
    d.probes = Some(ProbeSeries { counted_ns: None, points: (0..200).map(probe).collect() });
    m.ceiling = ceiling(&m);
    m
}

#[test]
fn sentences_agree_with_the_figures_of_generated_measurements() {
    let config = Config { cases: 1500, failure_persistence: None, ..Config::default() };
    // The same cases each time.
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let found = std::cell::RefCell::new(std::collections::BTreeSet::new());
    let how = (0..4u8, 0.6..1.3);
    let result = runner.run(&(shapes(), extras(), how), |(mut shape, mut extras, (how, share))| {
        settle(&mut shape, &mut extras, how, share);
        let limit = check(measurement(&shape, extras))?;
        found.borrow_mut().insert(limit.name());
        Ok(())
    });
    if let Err(failed) = result {
        panic!("{failed}");
    }
    // Otherwise it would be true of nothing.
    let found = found.into_inner();
    for limit in [
        Limit::ReceiveWindow,
        Limit::SendBuffer,
        Limit::RandomLoss,
        Limit::Ceiling,
        Limit::Cpu,
        Limit::Unknown,
    ] {
        assert!(found.contains(limit.name()), "{} is in none of these: {found:?}", limit.name());
    }
}

#[test]
fn sentences_agree_with_the_figures_of_records() {
    let text = include_str!("../../../bdp-store/tests/it/measurement.json");
    check(serde_json::from_str(text).unwrap()).unwrap();
    for record in crate::fixture::demo().into_iter().chain(crate::fixture::sweep()) {
        let mut words = Vec::new();
        sentences(&bdp_report::json(std::slice::from_ref(&record), None), &mut words);
        let shown = explanation::records(std::slice::from_ref(&record), &Style::plain());
        words.extend(shown.lines().map(str::to_owned));
        for text in words {
            assert_eq!(contradictions(&text), [""; 0], "{text}");
        }
    }
}

#[test]
fn contradictions_are_found() {
    for wrong in [
        "it took 281 ms of the 30.26 ms",
        "112 % of 26.2 Mbit/s reached",
        "5 segments of 3 were retransmitted",
        "7 of 5 probes went unanswered",
        "3 MiB of 512 KiB",
    ] {
        assert_eq!(contradictions(wrong).len(), 1, "{wrong}");
    }
    for right in [
        "losses came at rates that vary by 130 %",
        "all of it reached and 112 % more",
        "281 ms of 3 s",
        "5 segments of 3,000 were retransmitted, 0.17 %",
        "97 % of 26.2 Mbit/s reached",
        "at 90 Mbit/s 5 of 7 datagrams",
    ] {
        assert_eq!(contradictions(right), [""; 0], "{right}");
    }
}
