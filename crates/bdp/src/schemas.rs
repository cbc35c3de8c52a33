//! docs/*.schema.json are generated from the types: `make schemas` writes them.

use std::fs;
use std::path::PathBuf;

use bdp_model::schema::{About, Draft, text};
use bdp_tune::Journal;
use serde_json::{Value, json};

use crate::failure;
use crate::lab::{conformance, stacks};
use crate::measure::stream;

/// Schemas written by hand, until their types have schemas.
const BY_HAND: [&str; 2] = ["job", "tune"];

fn schemas() -> Vec<(&'static str, Value)> {
    let mut all = bdp_report::schema::schemas();
    all.extend([
        ("error", error()),
        ("measurement-stream", measurement_stream()),
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

#[test]
fn schemas_are_those_of_the_types() {
    let docs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let all = schemas();
    for (name, schema) in &all {
        assert!(jsonschema::meta::is_valid(schema), "{name} is no schema");
        let file = docs.join(format!("{name}.schema.json"));
        let wanted = text(schema);
        if std::env::var("INSTA_UPDATE").as_deref() == Ok("always") {
            fs::write(file, wanted).unwrap();
        } else {
            let is = fs::read_to_string(&file).unwrap_or_default();
            assert!(
                is == wanted,
                "docs/{name}.schema.json differs from the types: 'make schemas' brings it up to date"
            );
        }
    }
    let mut listed: Vec<&str> = all.iter().map(|(name, _)| *name).chain(BY_HAND).collect();
    let mut there: Vec<String> = fs::read_dir(docs)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".schema.json").map(str::to_owned))
        .collect();
    listed.sort_unstable();
    there.sort_unstable();
    assert_eq!(listed, there);
}
