//! `bdp twin` as people run it: a path is measured on the lab, and its twin, made of the measurement alone, repeats it.

use serde_json::Value;

use crate::support::guests::guests_boot;
use crate::support::schema::assert_in_schema;
use crate::support::{Bench, Ended, start};

const SCHEMA: &str = include_str!("../../../../docs/twin.schema.json");

/// A bottleneck that its queue shows, and a receive window that hides one.
const PATH: &str = r#"
title = "A line of 20 Mbit/s, and a small buffer at its far end"
[hosts.far]
receive_buffer = "128K"
[[link]]
between = ["near", "far"]
rate = "20M"
delay = "20ms"
limit = 120
"#;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("path.toml", PATH);
    bench
}

fn run(bench: &Bench, line: &str) -> Ended {
    start(bench.shell(line)).wait()
}

#[test]
fn a_twin_repeats_the_path_that_it_was_measured_on() {
    let bench = bench();
    if !guests_boot(&bench) {
        return;
    }
    let measured = run(
        &bench,
        "bdp lab exec path.toml -q --clock virtual --store none --serve 'far=bdp serve --token t' --host near -- \
         bdp measure far --token t -t 6 --store s",
    );
    assert_eq!(measured.code(), 0, "{}", measured.err);
    let ended = run(&bench, "bdp twin --store s --json --output twins");
    assert_eq!(ended.code(), 0, "{}{}", ended.err, ended.out);
    let report: Value = ended.json();
    assert_in_schema(&report, SCHEMA);
    let [to, from] = [&report["twins"][0], &report["twins"][1]];
    // The window of the far end hides the rate there: none limits, but one that the flow's own bursts may have waited for.
    let hidden = &to["twin"]["to"]["bottleneck"];
    let is_own = to["adjusted"].as_array().unwrap().iter().any(|a| a["what"] == "rate" && a["from"] == 0.0);
    assert!(hidden.is_null() || is_own && hidden["rate_bps"].as_f64().unwrap() > 60e6, "{to:#}");
    assert!(to["twin"]["unseen"].as_array().unwrap().iter().any(|u| u["what"] == "rate" && u["way"] == "to"));
    let bottleneck = &from["twin"]["from"]["bottleneck"];
    let rate = bottleneck["rate_bps"].as_f64().unwrap();
    let packets = bottleneck["limit_packets"].as_u64().unwrap();
    assert!((19.4e6..20.6e6).contains(&rate), "{rate}");
    assert!((105..=135).contains(&packets), "{packets}");
    for twin in [to, from] {
        assert_eq!(twin["figures"][0]["fidelity"], "repeats", "{twin:#}");
    }
    // The scenario is one that others read back, and another run says the same.
    for file in ["twins/twin-to.toml", "twins/twin-from.toml"] {
        let checked = run(&bench, &format!("bdp lab check {file}"));
        assert_eq!(checked.code(), 0, "{}", checked.err);
    }
    let again = run(&bench, "bdp twin --store s --json --direction from");
    assert_eq!(again.json()["twins"][0]["figures"], from["figures"]);
    // Without a kernel each says how to get one, and a plan proposes nothing that can't run.
    let without = |line: &str| {
        let mut command = bench.shell(line);
        command.env("BDP_KERNELS", bench.path("none"));
        start(command).wait()
    };
    for line in ["bdp twin --store s", "bdp rehearse --store s"] {
        let ended = without(line);
        let error = ended.refusal(3);
        assert!(error.contains("run 'make kernel LINUX=6.1' in a checkout of bdp"), "{line}: {error}");
    }
    let plan = without("bdp tune plan --store s");
    assert_eq!(plan.code(), 0, "{}", plan.err);
    let next = |line: &&str| line.starts_with("next ") && line.contains("rehearse");
    assert_eq!(plan.out.lines().find(next), None, "{}", plan.out);
    assert!(
        plan.out.lines().any(|l| l.contains("bdp rehearse") && l.contains("make kernel")),
        "{}",
        plan.out
    );
    // A rate that is given is a bottleneck.
    let given = run(&bench, "bdp twin --store s --json --direction to --rate 50M --no-run");
    assert_eq!(given.json()["twins"][0]["twin"]["to"]["bottleneck"]["rate_bps"], 50e6);
}

#[test]
fn a_run_that_has_no_twin_is_refused_in_one_line() {
    let bench = bench();
    let ended = run(&bench, "bdp twin nothing --store none");
    let line = ended.refusal(2);
    assert!(line.contains("no run"), "{line}");
}
