//! The two clocks of the lab: what one scenario gives by the virtual one lies where it lies by this machine's.

use crate::support::Bench;
use crate::support::guests::guests_boot;
use crate::support::inside::alone;
use crate::support::machine::own_lab;
use crate::support::untested::not_judged;
use serde_json::Value;

/// How long flows are counted.
const COUNTED_S: f64 = 2.0;
/// An interval of fewer has no meaning.
const FEWEST: u64 = 3;

/// A path that is never full: a window a round trip, at four points.
const WINDOWS: &str = r#"
title = "A window a round trip, by either clock"
idle = "200ms"
[[link]]
between = ["near", "far"]
rate = "100M"
[[flow]]
from = "near"
to = "far"
duration = "2s"
omit = "1s"
congestion = "reno"
[sweep]
link.delay = ["10ms", "25ms"]
flow.window = ["32K", "128K"]
"#;

/// The losses of a repetition follow from its seed, and are the same by either clock as long as the segments are.
const LOSSES: &str = r#"
title = "One packet in a hundred lost, by either clock"
idle = "200ms"
[[link]]
between = ["near", "far"]
rate = "20M"
delay = "10ms"
loss = "1%"
[[flow]]
from = "near"
to = "far"
duration = "4s"
omit = "1s"
congestion = "reno"
"#;

#[test]
fn a_window_a_round_trip_is_the_same_by_either_clock() {
    alone(|| {
        let bench = Bench::new();
        if !guests_boot(&bench) {
            return;
        }
        bench.write("windows.toml", WINDOWS);
        agree(&bench, "windows.toml", 5, |params, real, by_virtual| {
            // What a trip takes beyond its links is this machine's, and nothing in a guest.
            let trip = number(by_virtual, "rtt_idle_min_ns") / number(real, "rtt_idle_min_ns");
            assert!((0.9..=1.0).contains(&trip), "{params}: a trip of {trip} times the real one's");
            // And the window that is under way when counting begins or ends is counted, or not.
            let window = if params["flow.window"] == "32K" { 32.0 } else { 128.0 } * 1024.0 * 8.0 / COUNTED_S;
            // Other load on the machine costs the real clock's repetitions goodput, and never adds any: the best of
            // them may be the one that it left alone.
            let best = number(real, "goodput_max_bps");
            let high = real["goodput_mean_interval_bps"][1].as_f64().unwrap();
            number(real, "goodput_mean_bps") * (1.0 / trip - 1.0) + window + (best - high).max(0.0)
        });
    });
}

#[test]
fn losses_cost_the_same_by_either_clock() {
    alone(|| {
        let bench = Bench::new();
        if !guests_boot(&bench) {
            return;
        }
        bench.write("losses.toml", LOSSES);
        agree(&bench, "losses.toml", 8, |_, _, _| 0.0);
    });
}

/// Runs a scenario by both clocks: each mean by the virtual one lies within the interval of 95 % of the real one's, made
/// wider by what `apart` states for the point, in bit/s.
fn agree(bench: &Bench, file: &str, repetitions: u32, apart: impl Fn(&Value, &Value, &Value) -> f64) {
    let line = |clock: &str| {
        format!("lab run {file} --clock {clock} --repetitions {repetitions} --store none --json")
    };
    let by_virtual = bench.run(&line("virtual"));
    assert_eq!(by_virtual.code(), 0, "{}", by_virtual.err);
    let Some(_lab) = own_lab() else { return };
    let real = bench.run(&line("real"));
    // Points of which no repetition is valid are not judged, and said here.
    let _ = real.every_case_is_valid();
    let (real, by_virtual) = (real.json(), by_virtual.json());
    let points = |document: &Value| document["summary"].as_array().unwrap().clone();
    let (real, by_virtual) = (points(&real), points(&by_virtual));
    assert_eq!(real.len(), by_virtual.len());
    for (real, by_virtual) in real.iter().zip(&by_virtual) {
        let params = &real["params"];
        assert_eq!(params, &by_virtual["params"]);
        assert_eq!((&by_virtual["n_valid"], &by_virtual["n_invalid"]), (&repetitions.into(), &0.into()));
        let valid = real["n_valid"].as_u64().unwrap();
        if valid < FEWEST {
            not_judged(
                file,
                &format!("fewer than {FEWEST} repetitions by the real clock were valid ({valid})"),
            );
            continue;
        }
        let interval = &real["goodput_mean_interval_bps"];
        let (apart, mean) = (apart(params, real, by_virtual), number(by_virtual, "goodput_mean_bps"));
        let (low, high) = (interval[0].as_f64().unwrap() - apart, interval[1].as_f64().unwrap() + apart);
        assert!((low..=high).contains(&mean), "{params}: {mean} is not in {low} to {high}: {real:#}");
        println!("{file} {params}: {mean:.0} in {low:.0} to {high:.0}");
    }
}

#[track_caller]
fn number(point: &Value, member: &str) -> f64 {
    point[member].as_f64().unwrap_or_else(|| panic!("no {member} in {point:#}"))
}
