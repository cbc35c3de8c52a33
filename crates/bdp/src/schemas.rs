//! docs/*.schema.json, and the tables of members in docs/*.md, are generated from the types: `make schemas` writes them.

use std::fs;
use std::path::PathBuf;

use bdp_model::schema::{About, Draft, add, text};
use bdp_run::job::{JOB_SCHEMA, Job, OUTCOME_SCHEMA, Outcome};
use bdp_run::{EVENT_SCHEMA, Event};
use bdp_tune::Journal;
use serde_json::{Value, json};

use crate::failure;
use crate::lab::{conformance, stacks};
use crate::measure::stream;
use crate::tune;

mod members;

/// Documents within jobs, events and outcomes that other pages describe: type, members that a reader can rely on, page.
const WITHIN_JOBS: [(&str, &[&str], &str); 11] = [
    ("CaseSpec", &["scenario", "seed", "hosts", "links", "flows"], "json-lab-run.md#case_spec"),
    ("Change", &["end", "to"], "json-plan.md#change"),
    ("Measurement", &["schema", "request", "directions"], "json-measurement.md#measurement"),
    ("MeasureRequest", &["host", "port", "directions"], "json-measurement.md#measure_request"),
    ("PathRequest", &["host", "port", "protocol", "load"], "json-path.md#path_request"),
    ("PingRequest", &["host", "port", "mode"], "json-ping.md#ping_request"),
    ("Plan", &["schema", "path", "near", "changes"], "json-plan.md"),
    ("Record", &["schema", "case", "valid", "flows"], "json-lab-run.md#record"),
    ("Rehearsal", &["schema", "plan", "variants", "choice"], "json-rehearsal.md"),
    ("SocketReading", &["state", "role", "sent_bps"], "json-watch.md#socket_reading"),
    ("Verification", &["schema", "directions"], "json-verification.md"),
];

/// Pages with tables of members; a part of several documents is described on the first that has it.
const PAGES: [&str; 17] = [
    "json-measurement.md",
    "measurement-stream.md",
    "json-lab-run.md",
    "json-path.md",
    "json-ping.md",
    "json-pcap.md",
    "json-watch.md",
    "json-comparison.md",
    "json-sweep.md",
    "json-twin.md",
    "json-plan.md",
    "json-rehearsal.md",
    "json-verification.md",
    "json-tune.md",
    "json-tune-show.md",
    "exit-codes.md",
    "json-job.md",
];

fn schemas() -> Vec<(&'static str, Value)> {
    let mut all = bdp_report::schema::schemas();
    all.extend([
        ("error", error()),
        ("measurement-stream", measurement_stream()),
        ("job", job()),
        ("stacks", simple::<stacks::Document>("stacks:1", "Output of bdp lab stacks --json", "stacks.md")),
        (
            "conformance",
            simple::<conformance::Document>(
                "conformance:1",
                "Output of bdp lab conformance --json",
                "stacks.md",
            ),
        ),
        (
            "tune",
            simple::<tune::document::Document<'_>>(
                "tune:1",
                "Output of bdp tune apply, confirm, revert and journal with --json",
                "tune.md",
            ),
        ),
        (
            "tune-journal",
            simple::<Journal>(
                "tune-journal:1",
                "A journal of bdp tune apply: a file NNNN.json of the journals' folder",
                "tune.md",
            ),
        ),
    ]);
    all
}

fn simple<T: schemars::JsonSchema>(id: &'static str, title: &'static str, page: &'static str) -> Value {
    Draft::of::<T>().finish(About { id, title, first: "", page })
}

fn error() -> Value {
    simple::<failure::Document<'_>>(
        "error:1",
        "What bdp prints on standard output with --json if it ends with an error or by a signal and has printed no other document",
        "exit-codes.md",
    )
}

fn measurement_stream() -> Value {
    let mut draft = Draft::of::<stream::Line<'_>>();
    // The schema of a measurement describes these two.
    for line in draft.root()["oneOf"].as_array_mut().into_iter().flatten() {
        for part in ["request", "measurement"] {
            if let Some(part) = line["properties"].get_mut(part) {
                part["additionalProperties"] = json!(true);
            }
        }
    }
    draft.finish(About {
        id: "measurement-stream:1",
        title: "A line of bdp measure --json-stream",
        first: "",
        page: "measurement-stream.md",
    })
}

fn job() -> Value {
    let mut draft = Draft::of::<Job>();
    draft.root()["description"] = "A job.".into();
    let job = draft.nest("Job");
    let (event, outcome) = (draft.refer::<Event<'_>>(), draft.refer::<Outcome>());
    for (name, schema) in [("Job", JOB_SCHEMA), ("Event", EVENT_SCHEMA), ("JobOutcome", OUTCOME_SCHEMA)] {
        let document = draft.definition(name).unwrap();
        document["type"] = "object".into();
        add(
            document,
            "schema",
            json!({ "const": schema, "description": "Name and version of the document's format." }),
        );
    }
    for (name, required, page) in WITHIN_JOBS {
        let part = draft.definition(name).unwrap_or_else(|| panic!("no part {name}"));
        *part = json!({
            "type": "object",
            "required": required,
            "description": part["description"],
            "$comment": format!("{}{page}", members::ELSEWHERE),
        });
    }
    draft.root()["oneOf"] = json!([job, event, outcome]);
    draft.finish(About {
        id: "job:1",
        title: "Jobs of bdp, their events and outcomes",
        first: "",
        page: "jobs.md",
    })
}

fn docs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Compares a file of docs/ with what the types give, or writes it if asked to.
fn settle(file: &str, wanted: &str) {
    let path = docs().join(file);
    if std::env::var("INSTA_UPDATE").as_deref() == Ok("always") {
        return fs::write(path, wanted).unwrap();
    }
    let is = fs::read_to_string(path).unwrap_or_default();
    assert!(is == wanted, "docs/{file} differs from the types: 'make schemas' brings it up to date");
}

#[test]
fn pages_have_the_members_of_the_schemas() {
    let schemas = schemas();
    let pages = PAGES.map(|page| (page, fs::read_to_string(docs().join(page)).unwrap()));
    let lacks = |page: &str, text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| line.contains(members::LACKS))
            .map(|line| format!("{page}: {line}"))
            .collect()
    };
    let written = members::written(&pages, &schemas);
    let all = || PAGES.iter().zip(&written);
    let lacking: Vec<String> = all().flat_map(|(page, text)| lacks(page, text)).collect();
    assert!(lacking.is_empty(), "no description:\n{}", lacking.join("\n"));
    all().for_each(|(page, text)| settle(page, text));
}

#[test]
fn schemas_are_those_of_the_types() {
    let all = schemas();
    for (name, schema) in &all {
        assert!(jsonschema::meta::is_valid(schema), "{name} is no schema");
        settle(&format!("{name}.schema.json"), &text(schema));
    }
    let mut listed: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let mut there: Vec<String> = fs::read_dir(docs())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".schema.json").map(str::to_owned))
        .collect();
    listed.sort_unstable();
    there.sort_unstable();
    assert_eq!(listed, there);
}
