//! Stacks that are no kernels: cases on them, what is skipped, and the suite that every stack is held against.

use serde_json::Value;

use crate::support::guests::guests_boot;
use crate::support::{Bench, start, untested};

/// A path of 40 ms with a loss at times.
const PATH: &str = "title = 'Steps'\nclock = 'virtual'\nidle = '100ms'\n\
    [hosts.near]\nstack = 'NEAR'\n[hosts.far]\nstack = 'FAR'\n\
    [[link]]\nbetween = ['near', 'far']\nrate = '10M'\ndelay = '20ms'\nlimit = 100\n\
    [link.forward]\nloss = { every = 211 }\n\
    [[flow]]\nduration = '5s'\nomit = 0\ninterval = '500ms'\n";

const PROGRAM: &str = concat!("exec:python3 ", env!("CARGO_MANIFEST_DIR"), "/../../stacks/example/stack.py");

const SMALLEST: &str =
    concat!("exec:python3 ", env!("CARGO_MANIFEST_DIR"), "/../../stacks/example/smallest.py");

fn run(near: &str, far: &str) -> Value {
    run_on(&Bench::new(), near, far)
}

fn run_on(bench: &Bench, near: &str, far: &str) -> Value {
    run_text(bench, &PATH.replace("NEAR", near).replace("FAR", far))
}

fn run_text(bench: &Bench, text: &str) -> Value {
    std::fs::write(bench.path("path.toml"), text).unwrap();
    bench.run(&format!("lab run {} --json", bench.path("path.toml").display())).json()
}

/// The record without what the machine's time is in.
fn without_wall(document: &Value) -> Value {
    let mut record = document["cases"][0].clone();
    let environment = record["environment"].as_object_mut().unwrap();
    environment.remove("started_unix_ms");
    environment.remove("took_ms");
    environment.remove("guest");
    record
}

#[test]
fn a_case_in_steps_gives_the_same_record_twice() {
    // The record names the file.
    let bench = Bench::new();
    let [one, other] = [0, 1].map(|_| run_on(&bench, "smoltcp", "smoltcp"));
    let record = &one["cases"][0];
    assert_eq!(record["valid"], true, "{record:#}");
    assert_eq!(without_wall(&one), without_wall(&other));
    assert_eq!(record["environment"]["stacks"]["near"], "smoltcp 0.14.0");
    let flow = &record["flows"][0];
    let retransmits = flow["retransmits"].as_u64().unwrap();
    assert!((1..200).contains(&retransmits), "{retransmits}");
    let goodput = record["goodput_bps"].as_f64().unwrap();
    assert!((1e6..9.6e6).contains(&goodput), "{goodput}");
    // Both ways of 20 ms, and 70 bytes of a probe each way at 10 Mbit/s.
    let idle = record["rtt_idle_ns"].as_u64().unwrap();
    assert!((40_100_000..40_200_000).contains(&idle), "{idle}");
}

#[test]
fn what_a_stack_lacks_is_skipped_by_name() {
    let bench = Bench::new();
    let text = PATH
        .replace("NEAR", "smoltcp")
        .replace("FAR", "smoltcp")
        .replace("omit = 0", "omit = 0\ncongestion = 'bbr'");
    std::fs::write(bench.path("path.toml"), text).unwrap();
    let ended = bench.run(&format!("lab run {}", bench.path("path.toml").display()));
    assert_eq!(ended.code(), 3, "{}", ended.out);
    let text = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("SKIPPED") && text.contains("smoltcp does not support the congestion control 'bbr'"),
        "{text}"
    );
    let mut missing = bench.bdp("lab conformance gvisor");
    missing.env("BDP_STACKS", bench.path("nothing"));
    let ended = start(missing).wait();
    assert_eq!(ended.code(), 3, "{}", ended.out);
    assert!(
        ended
            .out
            .contains("SKIPPED  gvisor: the stack gvisor is not installed; 'make stack-gvisor' builds it"),
        "{}",
        ended.out
    );
}

#[test]
fn a_program_of_ones_own_talks_to_another_stack() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        return untested::skip("a stack in Python: there is no python3 here");
    }
    let document = run(PROGRAM, "smoltcp");
    let record = &document["cases"][0];
    assert_eq!(record["valid"], true, "{record:#}");
    assert_eq!(record["environment"]["stacks"]["near"], "example 1", "{record:#}");
    assert!(record["goodput_bps"].as_f64().unwrap() > 1e6, "{record:#}");
    // Without losses: it sends anew all that was in flight.
    for (near, far) in [(SMALLEST, "smoltcp"), ("smoltcp", SMALLEST)] {
        let bench = Bench::new();
        let text = PATH.replace("[link.forward]\nloss = { every = 211 }\n", "");
        let document = run_text(&bench, &text.replace("NEAR", near).replace("FAR", far));
        let record = &document["cases"][0];
        assert_eq!(record["valid"], true, "{record:#}");
        assert!(record["goodput_bps"].as_f64().unwrap() > 7e6, "{near}: {record:#}");
    }
}

#[test]
fn a_program_that_ends_is_one_line_and_the_next_case_runs() {
    let bench = Bench::new();
    let text = PATH.replace("NEAR", "exec:false").replace("FAR", "smoltcp")
        + "[sweep]\nhosts.near.stack = ['exec:false', 'smoltcp']\n";
    std::fs::write(bench.path("path.toml"), text).unwrap();
    let ended = bench.run(&format!("lab run {} --json", bench.path("path.toml").display()));
    assert_eq!(ended.code(), 3, "{}", ended.err);
    let document = ended.json();
    let records = document["cases"].as_array().unwrap();
    assert_eq!(records.len(), 2);
    let failed = records.iter().find(|record| record["params"]["hosts.near.stack"] == "exec:false").unwrap();
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("'false' ended during a case (exit status: 1)"), "{error}");
    assert!(records.iter().any(|record| record["valid"] == true));
}

#[test]
fn a_program_that_says_what_can_not_be_is_one_line() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        return untested::skip("a stack in Python: there is no python3 here");
    }
    let smallest = include_str!("../../../../stacks/example/smallest.py");
    for (true_words, lie, line) in [
        ("\"received_bytes\": self.received,", "\"received_bytes\": self.received * 50,", "reached its host"),
        ("\"received_bytes\": self.received,", "\"received_bytes\": -self.received % 1000,", " before"),
    ] {
        let bench = Bench::new();
        assert!(smallest.contains(true_words));
        bench.write("liar.py", smallest.replace(true_words, lie));
        let far = format!("exec:python3 {}", bench.path("liar.py").display());
        let text = PATH.replace("NEAR", "smoltcp").replace("FAR", &far);
        std::fs::write(bench.path("path.toml"), text).unwrap();
        let ended = bench.run(&format!("lab run {} --json", bench.path("path.toml").display()));
        assert_eq!(ended.code(), 3, "{}", ended.err);
        let error = ended.json()["cases"][0]["error"].as_str().unwrap_or_default().to_owned();
        assert!(error.contains("reports that it read") && error.contains(line), "{lie}: {error}");
    }
}

/// The points that a stack misses, by its name.
fn missed(name: &str) -> Option<Vec<String>> {
    let bench = Bench::new();
    let mut command = bench.bdp("lab conformance --json");
    command.arg(name);
    let ended = start(command).wait();
    let document = ended.json();
    let schema: Value =
        serde_json::from_str(include_str!("../../../../docs/conformance.schema.json")).unwrap();
    let complaints: Vec<String> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(&document).map(|e| e.to_string()).collect();
    assert_eq!(complaints, [] as [String; 0]);
    let stack = &document["stacks"][0];
    if let Some(error) = stack["error"].as_str() {
        untested::skip(&format!("the suite against {name}: {error}"));
        return None;
    }
    let outcomes = stack["outcomes"].as_array().unwrap();
    assert_eq!(outcomes.len(), document["points"].as_array().unwrap().len());
    let missed = outcomes.iter().filter(|outcome| outcome["met"] != true);
    Some(missed.map(|outcome| outcome["point"].as_str().unwrap().to_owned()).collect())
}

#[test]
fn each_stack_misses_just_what_is_known() {
    const KNOWN: [(&str, &[&str]); 4] = [
        ("smoltcp", &["reset, received"]),
        ("gvisor", &["reset, received"]),
        ("lwip", &["simultaneous open"]),
        (PROGRAM, &[]),
    ];
    for (name, known) in KNOWN {
        if let Some(missed) = missed(name) {
            assert_eq!(missed, known, "{name}");
        }
    }
}

#[test]
fn a_kernel_misses_nothing() {
    if !guests_boot(&Bench::new()) {
        return;
    }
    assert_eq!(missed("linux-6.1").unwrap_or_default(), [] as [String; 0]);
}

#[test]
fn a_kernel_is_one_end_and_another_stack_the_other() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let mut others = vec!["smoltcp", "gvisor", "lwip"];
    if std::process::Command::new("python3").arg("--version").output().is_ok() {
        others.push(PROGRAM);
    }
    for other in others {
        for (near, far) in [("linux-6.1", other), (other, "linux-6.1")] {
            let document = run_on(&bench, near, far);
            let record = &document["cases"][0];
            if let Some(skipped) = record["skipped"].as_str() {
                untested::skip(&format!("{near} to {far}: {skipped}"));
                continue;
            }
            // Not one packet left a moment late.
            assert_eq!(record["valid"], true, "{near} to {far}: {record:#}");
            let goodput = record["goodput_bps"].as_f64().unwrap();
            assert!((1e6..9.6e6).contains(&goodput), "{near} to {far}: {goodput}");
            assert!(record["flows"][0]["retransmits"].as_u64() > Some(3), "{near} to {far}");
            let idle = record["rtt_idle_ns"].as_u64().unwrap();
            assert!((40_100_000..40_200_000).contains(&idle), "{near} to {far}: {idle}");
            let kernel = if near == "linux-6.1" { "near" } else { "far" };
            let version = record["environment"]["stacks"][kernel].as_str().unwrap_or_default();
            assert!(version.starts_with("Linux 6.1."), "{near} to {far}: {version}");
            // The record has the stacks as the scenario names them, not where their programs lie.
            assert_eq!(record["case"]["hosts"][0]["stack"], near);
        }
    }
    let [one, other] = [0, 1].map(|_| run_on(&bench, "linux-6.1", "smoltcp"));
    assert_eq!(without_wall(&one), without_wall(&other));
    let missing = run_on(&bench, "linux-6.1", "exec:/nonesuch");
    let skipped = missing["cases"][0]["skipped"].as_str().unwrap();
    assert!(skipped.contains("host 'far': the program '/nonesuch' is not installed"), "{skipped}");
}
