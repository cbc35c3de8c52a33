//! The keys of a link that change in time.

use bdp_model::link::DirectionConfig;
use bdp_model::link::over_time::{RateOverTime, Timeline};
use bdp_model::link::trace::Trace;
use bdp_scenario::{Traces, traces_named};

use super::*;

fn text(lines: &str) -> String {
    BASE.replacen("rate = \"100M\"", lines, 1)
}

fn traces() -> Traces {
    let trace = |name: &str, lines| (name.to_owned(), Trace::parse(name, lines).unwrap());
    [trace("lte.trace", "1\n1\n4\n"), trace("slow.trace", "12\n")].into()
}

fn cases(text: &str) -> Vec<CaseSpec> {
    let scenario = Scenario::parse_with("s", text, traces(), &PlanOptions::default())
        .unwrap_or_else(|e| panic!("{e}\n{text}"));
    scenario.plan(&PlanOptions::default()).unwrap()
}

fn forward(lines: &str) -> DirectionConfig {
    cases(&text(lines))[0].links[0].config.forward.clone()
}

#[test]
fn a_rate_is_a_trace_or_a_timeline() {
    let config = forward("rate = { trace = 'lte.trace' }");
    let Some(RateOverTime::Trace(trace)) = &config.rate_over_time else { panic!("{config:?}") };
    assert_eq!(
        (trace.file(), trace.repeats(), trace.opportunities()),
        ("lte.trace", true, &[(1, 2), (4, 1)][..])
    );
    // Its mean before time zero, and what mahimahi counts beside a packet.
    assert_eq!((config.rate, config.overhead_bytes), (Some(Rate::bps(3 * 1504 * 8 * 250)), 4));
    assert!(config.changes());
    assert_eq!(forward("rate = { trace = 'lte.trace' }\noverhead = 20").overhead_bytes, 20);
    let once = forward("rate = { trace = 'lte.trace', loop = false }").rate_over_time;
    assert!(matches!(once, Some(RateOverTime::Trace(trace)) if !trace.repeats()));
    // A direction's own rate takes the place of both's.
    let own = forward("rate = { trace = 'lte.trace' }\nforward.rate = '5M'");
    assert_eq!((own.rate, own.rate_over_time, own.overhead_bytes), (Some(Rate::mbps(5)), None, 38));
    let steps = forward("rate = { steps = [['0s', '10M'], ['5s', 0], [6.5, '2M']] }");
    let Some(RateOverTime::Timeline(Timeline::Steps(moments))) = &steps.rate_over_time else {
        panic!("{steps:?}")
    };
    let seen: Vec<_> = moments.iter().map(|m| (m.at, m.value)).collect();
    let ms = Nanos::millis;
    assert_eq!(seen, [(ms(0), Rate::mbps(10)), (ms(5_000), Rate::bps(0)), (ms(6_500), Rate::mbps(2))]);
    assert_eq!((steps.rate, steps.fastest()), (Some(Rate::mbps(10)), Some(Rate::mbps(10))));
}

#[test]
fn delay_loss_jitter_and_outages_change() {
    let config = forward(
        "forward.delay = { ramp = [['0s', '20ms'], ['10s', '40ms']], reorder = true }\n\
         loss = { good_for = '10s', bad_for = '200ms', loss_bad = '50%' }\n\
         jitter = { normal = '2ms', correlation_time = '100ms' }\n\
         outage = [{ at = '5s', for = '200ms', drop = true }, { every = '10s', for = '1s' }]",
    );
    let delay = config.delay_over_time.clone().unwrap();
    assert_eq!(
        (config.delay, delay.at(Nanos::secs(5)), delay.reorder),
        (Nanos::millis(20), Nanos::millis(30), true)
    );
    assert_eq!(config.jitter.clone().unwrap().correlation_time, Some(Nanos::millis(100)));
    let share = config.loss.probability();
    assert!((share - 0.5 * 0.2 / 10.2).abs() < 1e-12, "{share}");
    let [once, flaps] = config.outages.as_slice() else { panic!("{config:?}") };
    assert_eq!((once.at, once.every, once.drop), (Nanos::secs(5), None, true));
    assert_eq!((flaps.at, flaps.every, flaps.drop), (Nanos::secs(10), Some(Nanos::secs(10)), false));
    assert!(matches!(forward("loss = { steps = [[0, 0], [3, '5%']] }").loss, Loss::OverTime(_)));
}

#[test]
fn a_record_s_form_is_read_back_and_stays_as_it_was_where_nothing_changes() {
    let lines = "rate = { trace = 'lte.trace' }\nloss = { ramp = [[0, 0], [3, '5%']] }\noutage = { every = '10s', for = '1s' }\n\
                 forward.delay = { steps = [[0, '1ms'], [1, '2ms']] }\njitter = { normal = '2ms', correlation_time = '1s' }";
    for config in [forward(lines), forward("rate = '1M'")] {
        let json = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<DirectionConfig>(&json).unwrap(), config);
        let new = ["rate_over_time", "delay_over_time", "outages", "correlation_time_ns"]
            .map(|key| json.contains(key));
        assert_eq!(new, [config.changes(); 4]);
    }
}

#[test]
fn a_sweep_varies_what_changes() {
    let swept =
        "[sweep]\nlink.rate = ['10M', { trace = 'slow.trace' }, { steps = [[0, '1M'], [1, '2M']] }]\n";
    let keys: Vec<String> = cases(&format!("{}{swept}", text(""))).iter().map(CaseSpec::key).collect();
    assert_eq!(
        keys,
        [
            "link.rate=10M #1",
            "link.rate={\"trace\":\"slow.trace\"} #1",
            "link.rate={\"steps\":[[0,\"1M\"],[1,\"2M\"]]} #1"
        ]
    );
    let files = "[sweep]\nlink.rate.trace = ['lte.trace', 'slow.trace']\n";
    assert_eq!(cases(&format!("{}{files}", text("rate = { trace = 'lte.trace' }"))).len(), 2);
    let point = "[[point]]\nlink.rate = { trace = 'lte.trace' }\n[[point]]\nlink.rate = { steps = [[0, '1M'], [2, '2M']] }\n";
    assert_eq!(cases(&format!("{}{point}", text(""))).len(), 2);
}

#[test]
fn the_traces_that_are_named_are_known_before_they_are_read() {
    let text =
        text("rate = { trace = 'a' }\nforward.rate.trace = 'b'") + "[sweep]\nlink.rate.trace = ['c', 'a']\n";
    let options = PlanOptions {
        overrides: vec![
            ("link.rate".into(), "{ trace = \"d\" }".into()),
            ("link.reverse.rate.trace".into(), "e".into()),
        ],
        vary: vec![("link.rate.trace".into(), vec!["f".into()])],
        ..Default::default()
    };
    assert_eq!(traces_named(&text, &options), ["a", "b", "c", "d", "e", "f"]);
    assert!(traces_named("no scenario", &PlanOptions::default()).is_empty());
}

#[test]
fn mistakes_are_shown_in_one_line() {
    for (lines, expected) in [
        (
            "rate = { trace = 'nowhere' }",
            "link.rate.trace = \"nowhere\": expected the name of a trace that was already read",
        ),
        ("rate = { steps = [] }", "link.rate.steps = a list of 0: expected 1 to 10000 times with values"),
        (
            "rate = { steps = [[1, '1M']] }",
            "link.rate.steps = 1: expected a list of times since the start of flows with values, such as [[\"0s\", ...], [\"5s\", ...]]; the first time must be 0s, and times must ascend",
        ),
        (
            "rate = { ramp = [[0, '1M'], [2, '2M'], [2, '3M']] }",
            "link.rate.ramp = 2: expected a list of times",
        ),
        ("rate = { steps = [[0, 0], [2, '2M']] }", "link.rate = a table: expected a first bit rate above 0"),
        (
            "rate = { trace = 'lte.trace', steps = [] }",
            "link.rate.trace = \"lte.trace\" conflicts with 'steps'",
        ),
        ("rate = { loop = true }", "link.rate = a table: expected { trace = \"FILE\" }"),
        ("rate = { tracks = 'x' }", "unknown key 'tracks' in link.rate's table"),
        ("outage = { for = '1s' }", "link.outage = a table: expected { at = \"5s\", for = \"200ms\" }"),
        (
            "outage = { every = '1s', for = '1s' }",
            "link.outage = a table: expected 'for' above 0, and 'every' longer than it",
        ),
        ("outage = { at = '25h', for = '1s' }", "link.outage.at = \"25h\": expected a time up to 24h"),
        ("outage = 5", "link.outage = 5: expected"),
        ("loss = { good_for = '1s' }", "link.loss = a table: expected a fraction"),
        (
            "loss = { good_for = '1s', bad_for = '1us' }",
            "link.loss.bad_for = \"1us\": expected the mean time in that state",
        ),
        ("loss = { steps = [[0, 2]] }", "link.loss.steps: '2' is out of range"),
        (
            "jitter = { uniform = '1ms', correlation_time = '1s' }",
            "link.jitter.correlation_time = \"1s\": expected 'normal' in the same table",
        ),
        (
            "forward.delay = { steps = [[0, '2h']] }",
            "link.forward.delay = a table: expected a one-way delay up to 1h",
        ),
        ("forward.delay = { to = 3 }", "unknown key 'to' in link.forward.delay's table"),
    ] {
        let found = match Scenario::parse_with("s", &text(lines), traces(), &PlanOptions::default()) {
            Ok(_) => panic!("accepted: {lines}"),
            Err(e) => e.to_string(),
        };
        assert!(found.contains(expected) && !found.contains('\n'), "{lines}\n{found}\n{expected}");
    }
}
