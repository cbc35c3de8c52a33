//! Each limit by a path that has it, in guests: the scenarios of docs/findings.md, and variants of them. Each is to have that finding first, with evidence that
//! meets its thresholds and the sentences beside it.

use std::collections::BTreeMap;

use bdp_model::finding::Limit;
use serde_json::Value;

use crate::support::Bench;
use crate::support::guests::guests_boot;

const PAGE: &str = include_str!("../../../../docs/findings.md");

/// A scenario that the page doesn't have: its name, what stands before its link, at its link and at its flow.
struct Variant {
    name: &'static str,
    link: &'static str,
    hosts: &'static str,
    more: &'static str,
    flow: &'static str,
    limit: Limit,
    cause: Option<&'static str>,
}

/// The page's path.
const USUAL: &str = "rate = '20M'\ndelay = '20ms'\nlimit = 65\n";
/// One that no 64 KiB fill.
const WIDE: &str = "rate = '50M'\ndelay = '30ms'\nlimit = 250\n";
const PLAIN: Variant = Variant {
    name: "",
    link: USUAL,
    hosts: "",
    more: "",
    flow: "",
    limit: Limit::ReceiveWindow,
    cause: None,
};

const VARIANTS: &[Variant] = &[
    Variant { name: "window-asked", flow: "window = '32K'\n", cause: Some("window_asked"), ..PLAIN },
    Variant {
        name: "scaling-off",
        link: WIDE,
        hosts: "[hosts.far]\nwindow_scaling = false\n",
        cause: Some("scaling_off"),
        ..PLAIN
    },
    Variant {
        name: "scaling-stripped",
        link: WIDE,
        more: "window_scale = 'strip'\n",
        cause: Some("scaling_stripped"),
        ..PLAIN
    },
    Variant {
        name: "scaling-half-stripped",
        link: WIDE,
        more: "[link.reverse]\nwindow_scale = 'strip'\n",
        cause: Some("scaling_half_stripped"),
        ..PLAIN
    },
    Variant {
        name: "reader-pauses",
        hosts: "[hosts.far]\nreceive_buffer = '256K'\n",
        flow: "reader = { pause = '600ms', every = '1s' }\n",
        limit: Limit::SlowReader,
        ..PLAIN
    },
    Variant {
        name: "writer-pauses",
        flow: "writer = { pause = '500ms', every = '1s' }\n",
        limit: Limit::SlowWriter,
        ..PLAIN
    },
    Variant {
        name: "shallow-queue-reno",
        link: "rate = '20M'\ndelay = '20ms'\nlimit = 6\n",
        flow: "duration = '8s'\ncongestion = 'reno'\n",
        limit: Limit::ShallowQueue,
        ..PLAIN
    },
    Variant { name: "bbr", link: WIDE, flow: "congestion = 'bbr'\n", limit: Limit::PathRate, ..PLAIN },
    Variant {
        name: "acknowledgements-lost",
        more: "[link.reverse]\nloss = '80%'\n",
        limit: Limit::ReversePath,
        ..PLAIN
    },
    Variant {
        name: "longer",
        more: "[link.forward]\ndelay = { steps = [['0s', '20ms'], ['4s', '80ms']] }\n",
        limit: Limit::PathChanged,
        ..PLAIN
    },
    Variant {
        name: "outage",
        more: "outage = { at = '3s', for = '1500ms' }\n",
        limit: Limit::PathChanged,
        ..PLAIN
    },
];

impl Variant {
    fn text(&self) -> String {
        let Self { name, link, hosts, more, flow, .. } = self;
        let duration = if flow.contains("duration") { "" } else { "duration = '6s'\n" };
        format!(
            "title = '{name}'\nclock = 'virtual'\n{hosts}[[link]]\nbetween = ['near', 'far']\n{link}{more}[[flow]]\n\
             omit = '1500ms'\n{duration}{flow}"
        )
    }
}

/// The page's sections of limits, each with what it says and its scenario, if it has one.
fn sections() -> BTreeMap<&'static str, (&'static str, Option<&'static str>)> {
    let of = |section: &'static str| {
        let (name, text) = section.split_once("`\n").unwrap();
        let scenario = text.split_once("```toml\n").map(|(_, rest)| rest.split_once("```").unwrap().0);
        (name, (text, scenario))
    };
    PAGE.split("\n### `").skip(1).map(of).collect()
}

/// What is expected of each scenario, by the file that it is written to.
fn expected() -> BTreeMap<String, (Limit, Option<&'static str>, String)> {
    let of_page = |(&name, &(_, scenario)): (&&'static str, &(&str, Option<&str>))| {
        let limit = *Limit::ALL.iter().find(|limit| limit.name() == name).unwrap();
        let cause = match limit {
            Limit::ReceiveWindow => Some("rmem_maximum"),
            Limit::SendBuffer => Some("wmem_maximum"),
            _ => None,
        };
        Some((format!("{name}.toml"), (limit, cause, scenario?.to_owned())))
    };
    let sections = sections();
    let variants = VARIANTS.iter().map(|v| (format!("{}.toml", v.name), (v.limit, v.cause, v.text())));
    sections.iter().filter_map(of_page).chain(variants).collect()
}

/// The records of these scenarios by file, as run and as explained without what the lab knows of rates.
fn records<'a>(bench: &Bench, files: impl Iterator<Item = &'a String>) -> [BTreeMap<String, Value>; 2] {
    let files: Vec<&str> = files.map(String::as_str).collect();
    let ended = bench.run(&format!("lab run {} --store none --json", files.join(" ")));
    assert_eq!(ended.code(), 0, "{}", ended.err);
    bench.write("records.json", &ended.out);
    let explained = bench.run("explain records.json --without-ceiling --json");
    assert_eq!(explained.code(), 0, "{}", explained.err);
    [ended.json(), explained.json()].map(|document| {
        let cases = document["cases"].as_array().unwrap().clone();
        cases.into_iter().map(|case| (case["scenario"].as_str().unwrap().to_owned(), case)).collect()
    })
}

/// Asserts that numbers, thresholds and sentences of a finding are there and agree.
#[track_caller]
fn assert_whole(file: &str, finding: &Value) {
    let evidence = finding["evidence"].as_array().unwrap();
    let mut held = 0;
    for one in evidence {
        let value = one["value"].as_f64().unwrap();
        let [least, most] = ["at_least", "at_most"].map(|bound| one[bound].as_f64());
        let meets = least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most);
        assert!(meets, "{file}: {one:#}");
        held += usize::from(least.is_some() || most.is_some());
    }
    // What datagrams show and whether an option is used are no thresholds.
    let is_counted = ["all_arrived", "datagrams_lost", "scaling_used", "sack_used", "timestamps_used"];
    let counts = |one: &Value| is_counted.iter().any(|fact| one["fact"] == *fact);
    assert!(held > 0 || evidence.iter().any(counts), "{file}: {finding:#}");
    let is_said = |value: &Value| value["text"].as_str().is_some_and(|text| text.len() > 10);
    assert!(evidence.iter().all(is_said), "{file}: {finding:#}");
    assert!(finding["remedy"].is_null() || is_said(&finding["remedy"]), "{file}: {finding:#}");
    // A claim, and what it rests on.
    let summary = finding["summary"].as_str().unwrap();
    assert!(summary.split_whitespace().count() > 5, "{file}: {summary}");
    assert!(!finding["subject"].as_str().unwrap().is_empty());
}

/// One half of the scenarios by their order, so that two tests share them.
fn judge(half: usize) {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let expected: BTreeMap<_, _> =
        expected().into_iter().enumerate().filter(|(i, _)| i % 2 == half).map(|(_, one)| one).collect();
    for (file, (_, _, text)) in &expected {
        bench.write(file, text);
    }
    let [run, explained] = records(&bench, expected.keys());
    let sections = sections();
    let mut wrong = Vec::new();
    for (file, (limit, cause, _)) in &expected {
        let record = &explained[file];
        assert_eq!(record["valid"], true, "{file}: {record:#}");
        let findings = record["flows"][0]["findings"].as_array().unwrap();
        // What is never first stands beside what is.
        let place = match limit {
            Limit::TimestampsMissing | Limit::SackMissing => {
                findings.iter().position(|finding| finding["limit"] == limit.name()).unwrap_or(0)
            }
            _ => 0,
        };
        let finding = &findings[place];
        let cause = cause.map_or(Value::Null, Value::from);
        // Of a limit that is less probable than not the page says that it is the likeliest.
        if finding["limit"] == "unknown" && finding["candidates"][0]["limit"] == limit.name() {
            continue;
        }
        if finding["limit"] != limit.name() || !cause.is_null() && finding["cause"] != cause {
            wrong.push(format!("{file}: {finding:#}"));
            continue;
        }
        assert_whole(file, finding);
        // What is seen is what the page says of it.
        let (text, _) = sections[limit.name()];
        let facts = finding["evidence"].as_array().unwrap().iter().map(|one| one["fact"].as_str().unwrap());
        let unsaid: Vec<&str> = facts.filter(|fact| !text.contains(&format!("`{fact}`"))).collect();
        if !unsaid.is_empty() {
            wrong.push(format!("{file}: docs/findings.md has no {unsaid:?} of {}", limit.name()));
        }
        // The lab knows the rates of its links, and a path that is full is at its ceiling.
        if file == "path_rate.toml" {
            assert_eq!(run[file]["flows"][0]["findings"][0]["limit"], "ceiling");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn faults_of_a_path_are_explained() {
    judge(0);
}

#[test]
fn other_faults_of_a_path_are_explained() {
    judge(1);
}

#[test]
fn every_limit_that_a_rule_claims_has_a_section() {
    let sections = sections();
    for limit in Limit::ALL {
        assert!(sections.contains_key(limit.name()), "docs/findings.md says nothing of {}", limit.name());
    }
}
