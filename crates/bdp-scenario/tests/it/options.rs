//! Overrides, filter, seeds, order.

use super::*;

const SWEPT: &str = "[sweep]\nflow.window = ['4K', '64K', '640K']\n[published]\ngoodput = '1M'\n";

#[test]
fn overrides_change_every_case_and_hold_swept_parameters() {
    let text = format!("{BASE}{SWEPT}");
    let cases = plan_with(&text, &set("flow.duration", "3s"));
    assert!(cases.len() == 3 && cases.iter().all(|c| c.flows[0].spec.duration == Nanos::secs(3)));
    assert!(cases.iter().all(|c| c.published_bps.is_some()), "a shorter run is the same experiment");
    let cases = plan_with(&text, &set("link.forward.delay", "90ms"));
    assert!(cases.iter().all(|c| c.published_bps.is_none()), "another delay is another experiment");
    assert_eq!(cases[0].links[0].config.forward.delay, Nanos::millis(90));
    assert_eq!(cases[0].links[0].config.reverse.delay, Nanos::millis(20));
    let cases = plan_with(&text, &set("flow.window", "64K"));
    assert_eq!(keys(&cases), ["flow.window=64K #1"]);
    assert!(cases[0].published_bps.is_some());
    let cases = plan_with(&text, &set("hosts.far.sysctls.net.ipv4.tcp_sack", "0"));
    assert_eq!(cases[0].hosts[1].sysctls["net.ipv4.tcp_sack"], "0");
    assert_eq!(plan_with(&text, &set("repetitions", "2")).len(), 6);
}

#[test]
fn wrong_overrides_are_named() {
    let scenario = Scenario::parse("s", &format!("{BASE}{SWEPT}")).unwrap();
    for (path, value, expected) in [
        (
            "flow.omit",
            "11s",
            "s.toml: --set flow.omit=11s: flow.omit = \"11s\" conflicts with a duration of 10 s",
        ),
        (
            "flow.omti",
            "1s",
            "s.toml: --set flow.omti=1s: unknown key 'omti' in [[flow]], did you mean 'omit'?",
        ),
        (
            "lnk.delay",
            "1ms",
            "s.toml: --set lnk.delay=1ms: no parameter 'lnk.delay': it must start with one of",
        ),
        (
            "flow.3.window",
            "1K",
            "no parameter 'flow.3.window': flow.3 does not exist; the scenario has 1, counted from 0",
        ),
        ("hosts.fra.congestion", "bbr", "unknown host 'fra', did you mean 'far'?; hosts: near, far"),
        ("flow.window", "0", "--set flow.window=0: flow.window = 0: expected bytes on the wire"),
        ("flow", "1", "it is a whole flow"),
        ("repetitions", "0", "repetitions = 0: expected a whole number, 1 to 10000"),
    ] {
        let text = scenario.plan(&set(path, value)).unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    }
    let none = PlanOptions { repetitions: Some(0), ..Default::default() };
    let text = scenario.plan(&none).unwrap_err().to_string();
    assert!(text.starts_with("s.toml: 0 repetitions requested: repetitions = 0: expected"), "{text}");
}

#[test]
fn a_filter_chooses_and_changes_no_seed() {
    let text = format!("{BASE}{SWEPT}");
    let all = plan(&text);
    let filtered =
        |filter: &str| plan_with(&text, &PlanOptions { filter: Some(filter.into()), ..Default::default() });
    assert_eq!(filtered("window=64K"), all[1..2]);
    assert_eq!(filtered("64K"), all[1..2], "'64K' is no part of '640K'");
    assert_eq!(filtered("4"), all);
    assert_eq!(filtered(&all[2].key()), all[2..]);
    assert!(filtered("window=5K").is_empty());
}

#[test]
fn seeds_follow_from_the_scenarios_seed_and_the_key_alone() {
    let (narrow, wide) =
        (plan(&format!("{BASE}[sweep]\nflow.window = ['64K']\n")), plan(&format!("{BASE}{SWEPT}")));
    assert_eq!(narrow[0].seed, wide[1].seed);
    let unique: BTreeSet<u64> = wide.iter().map(|c| c.seed).collect();
    assert_eq!(unique.len(), 3);
    let other = plan_with(&format!("{BASE}{SWEPT}"), &PlanOptions { seed: Some(2), ..Default::default() });
    assert!(wide.iter().zip(&other).all(|(a, b)| a.key() == b.key() && a.seed != b.seed));
    // A stored record must mean the same next year.
    assert_eq!(narrow[0].seed, 12_625_661_971_557_707_878);
}

#[test]
fn a_shuffle_permutes_and_its_seed_decides() {
    let text = format!("{BASE}[sweep]\nflow.streams = {{ from = 1, to = 50, step = 1 }}\n");
    let natural = plan(&text);
    let shuffled = |seed: u64| {
        let mut cases = natural.clone();
        shuffle(&mut cases, seed);
        cases
    };
    let (one, two) = (shuffled(1), shuffled(2));
    assert_eq!(one, shuffled(1));
    assert!(one != natural && one != two);
    let sorted = |cases: &[CaseSpec]| keys(cases).into_iter().collect::<BTreeSet<_>>();
    assert_eq!(sorted(&one), sorted(&natural));
    shuffle(&mut [], 1);
}

#[test]
fn a_filter_takes_numbers_as_they_are_written() {
    let text = format!("{BASE}[sweep]\nflow.window = [576, 5760, '64K']\nlink.forward.loss = [0, 0.001]\n");
    let filtered = |filter: &str| {
        keys(&plan_with(&text, &PlanOptions { filter: Some(filter.into()), ..Default::default() }))
    };
    assert_eq!(filtered("window=576").len(), 2);
    assert_eq!(filtered("window=576 loss=0.001"), ["flow.window=576 link.forward.loss=0.001 #1"]);
    assert!(filtered("window=57").is_empty());
}

#[test]
fn what_is_varied_replaces_the_scenarios_sweep_of_it_and_stands_beside_the_rest() {
    let vary = |path: &str, values: &[&str]| PlanOptions {
        vary: vec![(path.into(), values.iter().map(|&v| v.into()).collect())],
        ..Default::default()
    };
    let text = format!(
        "{BASE}[sweep]\nflow.direction = ['forward', 'reverse']\nflow.window = ['4K', '64K']\n\
        [[published]]\nwhen = {{ flow.window = '8K' }}\ngoodput = '1M'\n[[expect]]\nwhen = {{ flow.window = '..64K' }}\ngoodput_min = '1k'\n"
    );
    let text = text.replace("'8K' }", "'4K' }");
    let cases = plan_with(&text, &vary("flow.window", &["4K", "8K", "8K"]));
    assert_eq!(
        keys(&cases),
        [
            "flow.direction=forward flow.window=4K #1",
            "flow.direction=forward flow.window=8K #1",
            "flow.direction=reverse flow.window=4K #1",
            "flow.direction=reverse flow.window=8K #1",
        ]
    );
    assert!(cases[0].published_bps.is_some() && cases[1].published_bps.is_none());
    assert!(cases.iter().all(|c| c.expect == Default::default()), "what was written down was not for these");
    assert_eq!(cases[0].seed, plan(&text)[0].seed, "the same case has the same seed");

    let cases = plan_with(&text, &vary("flow.streams", &["1", "2"]));
    assert_eq!(cases.len(), 8);
    assert!(cases.iter().all(|c| c.published_bps.is_none()));
    let error = Scenario::parse("s", &text).unwrap().plan(&vary("flow.window", &["4K", "x"])).unwrap_err();
    assert!(error.to_string().contains("sweep of flow.window"), "{error}");
    let points = format!("{BASE}[[point]]\n\"flow.window\" = '4K'\n");
    let error = Scenario::parse("s", &points).unwrap().plan(&vary("flow.window", &["8K"])).unwrap_err();
    assert!(error.to_string().contains("by the scenario's points"), "{error}");
}
