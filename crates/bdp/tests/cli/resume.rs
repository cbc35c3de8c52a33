//! A run that was cut short is taken up where it stopped: nothing is run twice, and nothing that was measured is lost.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::support::machine;
use crate::support::scenario::Scenario;
use crate::support::{Bench, start};
use serde_json::Value;

/// Eight short cases.
fn bench() -> Bench {
    let bench = Bench::new();
    let delays: Vec<String> = (20..28).map(|ms| format!("\"{ms}ms\"")).collect();
    let sweep = format!("[sweep]\nlink.delay = [{}]", delays.join(", "));
    let scenario = Scenario { top: "", flow: "", more: &sweep, ..Default::default() }
        .text()
        .replace("\"1s\"", "\"400ms\"");
    bench.write("eight.toml", scenario);
    bench
}

/// The records of a document: what was varied, and when the case began.
fn moments(document: &Value) -> Vec<(String, u64)> {
    let cases = document["cases"].as_array().unwrap().iter();
    cases
        .map(|case| {
            let varied = case["params"]["link.delay"].as_str().unwrap().to_owned();
            (varied, case["environment"]["started_unix_ms"].as_u64().unwrap())
        })
        .collect()
}

fn runs(bench: &Bench) -> Vec<Value> {
    bench.run("runs --json").json()["runs"].as_array().unwrap().clone()
}

#[test]
fn a_run_that_was_killed_goes_on_without_repeating_or_losing_a_case() {
    let Some(_lab) = machine::shared_lab() else { return };
    let bench = bench();
    let line = "lab run eight.toml --jobs 2 --attempts 1 --json";
    let mut running = start(bench.bdp(line));
    let traces = machine::Traces::of(running.pid());
    running.wait_until("three cases are done", |running| running.err().contains("3/8 "));
    running.signal("KILL");
    let killed = running.wait();
    assert_eq!((killed.status.code(), killed.out.as_str()), (None, ""));
    traces.assert_gone();
    // Everything that was reported as done is stored.
    let reported = killed.err.lines().filter(|line| line.contains("/8 eight.toml")).count();
    let [run] = &runs(&bench)[..] else { panic!() };
    assert_eq!(run["state"], "unfinished");
    let stored = bench.run(&format!("show {} --json", run["run"].as_str().unwrap())).json();
    let before = moments(&stored);
    assert!((reported..=reported + 2).contains(&before.len()), "{reported} reported, {before:?}");
    assert!(before.len() < 8);

    // Killed once more, as soon as another case is done.
    let more = before.len() + 1;
    let mut running = start(bench.bdp(&format!("{line} --resume")));
    running.wait_until("one more is done", |running| running.err().contains(&format!("{more}/8 ")));
    running.signal("KILL");
    let killed = running.wait();
    assert!(killed.err.contains(&format!("resuming run {}", run["run"].as_str().unwrap())), "{}", killed.err);
    assert!(killed.err.contains(&format!("{} of 8 cases are done", before.len())), "{}", killed.err);

    let ended = bench.run(&format!("{line} --resume"));
    ended.every_case_is_valid();
    let document = ended.json();
    let after = moments(&document);
    for record in &before {
        assert!(after.contains(record), "{record:?} was lost or run again");
    }
    let mut times: BTreeMap<&str, u32> = BTreeMap::new();
    after.iter().for_each(|(varied, _)| *times.entry(varied).or_default() += 1);
    assert_eq!(times.len(), 8);
    assert!(times.values().all(|&n| n == 1), "{times:?}");
    // One run from beginning to end.
    let [run] = &runs(&bench)[..] else { panic!("more than one run") };
    assert_eq!((&run["state"], &run["cases_recorded"]), (&"finished".into(), &8.into()));
}

#[test]
fn only_the_same_cases_are_taken_up() {
    let Some(_lab) = machine::shared_lab() else { return };
    let bench = bench();
    let line = "lab run eight.toml --jobs 2 --attempts 1";
    let mut running = start(bench.bdp(line));
    running.wait_until("a case is done", |running| running.err().contains("1/8 "));
    running.signal("KILL");
    running.wait();
    // Another duration is another plan: it starts anew, and the first one waits for its own.
    let ended = bench.run(&format!("{line} --resume --set flow.duration=300ms"));
    assert!(
        ended.err.contains("no unfinished run of these cases in the store; starting a new one"),
        "{}",
        ended.err
    );
    ended.every_case_is_valid();
    let ended = bench.run(&format!("{line} --resume"));
    assert!(ended.err.contains("resuming run"), "{}", ended.err);
    let states: Vec<Value> = runs(&bench).iter().map(|run| run["state"].clone()).collect();
    assert_eq!(states, ["finished", "finished"]);
    // Both are finished now: nothing is left to take up.
    let ended = bench.run(&format!("{line} --resume --filter delay=20ms"));
    assert!(ended.err.contains("starting a new one"), "{}", ended.err);
    assert_eq!(runs(&bench).len(), 3);
}

#[test]
fn a_run_that_still_goes_on_is_not_taken_up_by_another() {
    let Some(_lab) = machine::shared_lab() else { return };
    let bench = bench();
    let line = "lab run eight.toml --jobs 2 --attempts 1";
    let mut running = start(bench.bdp(line));
    running.wait_until("a case is done", |running| running.err().contains("1/8 "));
    let ended = bench.run(&format!("{line} --resume"));
    let refusal = ended.refusal(3);
    assert!(refusal.contains("in progress in another bdp process; wait for it"), "{refusal}");
    running.wait().every_case_is_valid();
    let [run] = &runs(&bench)[..] else { panic!("more than one run") };
    assert_eq!((&run["state"], &run["cases_recorded"]), (&"finished".into(), &8.into()));
}

#[test]
fn the_command_that_is_offered_goes_on_with_the_run() {
    let Some(_lab) = machine::shared_lab() else { return };
    let bench = bench();
    let mut running =
        start(bench.bdp("lab run eight.toml --jobs 2 --attempts 1 --set link.rate=4M --filter delay"));
    running.wait_until("a case is done", |running| running.err().contains("1/8 "));
    running.signal("INT");
    let ended = running.wait();
    let offered = ended.last_line().split('\'').nth(1).unwrap().to_owned();
    assert_eq!(runs(&bench)[0]["resume"], offered.as_str());
    let line = offered.strip_prefix("bdp ").unwrap();
    let ended = bench.run(line);
    ended.every_case_is_valid();
    assert!(ended.err.contains("resuming run"), "{}", ended.err);
    assert!(ended.out.contains("prints it again"), "{}", ended.out);
    assert_eq!(runs(&bench)[0]["state"], "finished");
}

#[test]
fn attempts_are_counted_across_a_kill() {
    let Some(_lab) = machine::shared_lab() else { return };
    let bench = Bench::new();
    bench.write("one.toml", Scenario::default().text());
    // Never still for longer than a packet may be late, so that no attempt is valid.
    let line = "lab run one.toml --attempts 3 --json";
    let mut running = start(bench.bdp(line));
    let stutter = machine::stutter(running.pid());
    running
        .wait_until("the first attempt is INVALID", |running| running.err().contains("INVALID (attempt 1)"));
    running.signal("KILL");
    running.wait();
    stutter.join().unwrap();
    let running = start(bench.bdp(&format!("{line} --resume")));
    let stutter = machine::stutter(running.pid());
    let ended = running.wait();
    stutter.join().unwrap();
    assert_eq!(ended.code(), 5, "{}", ended.err);
    let document = ended.json();
    let attempts: Vec<&Value> = document["cases"].as_array().unwrap().iter().map(|c| &c["attempt"]).collect();
    assert_eq!(attempts, [1, 2, 3]);
}

#[test]
fn a_store_that_is_killed_while_it_is_made_is_made_again() {
    let Some(_lab) = machine::shared_lab() else { return };
    let bench = bench();
    for pause in [0, 3, 6, 10, 15, 25, 40] {
        let running = start(bench.bdp("lab run eight.toml --attempts 1"));
        std::thread::sleep(Duration::from_millis(pause));
        running.signal("KILL");
        running.wait();
    }
    let ended = bench.run("runs --json");
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let ended = bench.run("lab run eight.toml --attempts 1 --resume --filter delay=20ms --json");
    ended.every_case_is_valid();
}
