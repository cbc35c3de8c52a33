//! The names of findings in the documentation and in the schemas are those of the types.
//!
//! `INSTA_UPDATE=always` writes them there: tables of `docs/measurement.md` from the doc comments, and the enumerations of both schemas.

use std::fs;
use std::path::PathBuf;

use bdp_model::facts::TimeState;
use bdp_model::finding::{Action, At, Cause, Fact, Lack, Limit, Unit};

/// Each enumeration: the head of its table, how it is called in the schemas, its names and what they are.
type Names = (&'static str, &'static str, Vec<(&'static str, &'static str)>);

macro_rules! names {
    ($head:literal, $member:literal, $type:ident) => {
        ($head, $member, $type::ALL.iter().map(|v| (v.name(), v.about())).collect())
    };
}

fn enumerations() -> [Names; 7] {
    [
        names!("`limit`", "\"limit\": ", Limit),
        names!("`cause`", "\"cause\": ", Cause),
        names!("`at`", "\"at\": ", At),
        names!("`unit`", "\"unit\": ", Unit),
        names!("`fact`", "\"fact\": ", Fact),
        names!("`action`", "\"action\": ", Action),
        names!("`what` is missing", "\"what\": ", Lack),
    ]
}

fn page(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Compares, or writes where that is asked for.
fn settle(name: &str, is: &str, wanted: &str) {
    if std::env::var("INSTA_UPDATE").as_deref() == Ok("always") {
        fs::write(page(name), wanted).unwrap();
    } else {
        assert!(is == wanted, "docs/{name} differs from the types: INSTA_UPDATE=always brings it up to date");
    }
}

/// As a cell of a table has it.
fn cell(about: &str) -> String {
    let about = about.trim_end_matches('.').replace("[`Remedy`]", "remedy").replace("; with ", "; *with* ");
    let mut letters = about.chars();
    let (first, second) = (letters.next().unwrap(), letters.next().unwrap());
    match second.is_uppercase() {
        true => about,
        false => first.to_lowercase().chain(about.chars().skip(1)).collect(),
    }
}

#[test]
fn page_has_a_table_of_each() {
    let is = fs::read_to_string(page("measurement.md")).unwrap();
    let mut wanted = is.clone();
    for (head, _, names) in enumerations() {
        let head = format!("| {head} | |\n|---|---|\n");
        let from = wanted.find(&head).unwrap_or_else(|| panic!("no table {head}")) + head.len();
        let to = from + wanted[from..].find("\n\n").unwrap() + 1;
        let rows = names.iter().map(|(name, about)| format!("| `{name}` | {} |\n", cell(about)));
        wanted.replace_range(from..to, &rows.collect::<String>());
    }
    settle("measurement.md", &is, &wanted);
}

#[test]
fn schemas_allow_each_and_no_other() {
    for name in ["measurement.schema.json", "lab-run.schema.json"] {
        let is = fs::read_to_string(page(name)).unwrap();
        let mut wanted = is.clone();
        for (_, member, names) in enumerations() {
            // Of members with the same name the one whose enumeration begins as this one does.
            let first = format!("\"enum\": [\"{}\"", names[0].0);
            let mut at = 0;
            let from = loop {
                at += wanted[at..].find(member).unwrap_or_else(|| panic!("no {member} in {name}"))
                    + member.len();
                let value = &wanted[at..];
                let brace = value.find('{').unwrap() + 1;
                let enumeration = value[brace..].trim_start();
                if value[..brace].trim() == "{" && enumeration.starts_with(&first) {
                    break at + value.find('[').unwrap() + 1;
                }
            };
            let to = from + wanted[from..].find(']').unwrap();
            let null = if wanted[from..to].ends_with(", null") { ", null" } else { "" };
            let all: Vec<String> = names.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            wanted.replace_range(from..to, &format!("{}{null}", all.join(", ")));
        }
        settle(name, &is, &wanted);
    }
}

#[test]
fn page_and_schemas_have_each_state_of_time() {
    let md = fs::read_to_string(page("time.md")).unwrap();
    let names: Vec<_> = TimeState::ALL.iter().map(|state| state.name()).collect();
    for &state in TimeState::ALL {
        let row = format!("| `{}` | {}", state.name(), cell(state.about()));
        assert!(md.contains(&row), "docs/time.md lacks {row}");
    }
    for name in ["measurement.schema.json", "lab-run.schema.json"] {
        let schema: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(page(name)).unwrap()).unwrap();
        let defs = &schema["$defs"];
        let listed = serde_json::to_value(&names).unwrap();
        assert_eq!(defs["time_state"]["enum"], listed, "{name}");
        assert_eq!(defs["time_shares"]["required"], listed, "{name}");
        assert_eq!(defs["time_shares"]["properties"].as_object().unwrap().len(), names.len(), "{name}");
    }
}
