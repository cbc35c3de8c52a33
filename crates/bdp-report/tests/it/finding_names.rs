//! The names of findings in the documentation are those of the types.
//!
//! `INSTA_UPDATE=always` writes them there: tables of `docs/measurement.md` from the doc comments.

use std::fs;
use std::path::PathBuf;

use bdp_model::facts::TimeState;
use bdp_model::finding::{Action, At, Cause, Fact, Lack, Limit, Unit};

/// Each enumeration: the head of its table, its names and what they are.
type Names = (&'static str, Vec<(&'static str, &'static str)>);

macro_rules! names {
    ($head:literal, $type:ident) => {
        ($head, $type::ALL.iter().map(|v| (v.name(), v.about())).collect())
    };
}

fn enumerations() -> [Names; 7] {
    [
        names!("`limit`", Limit),
        names!("`cause`", Cause),
        names!("`at`", At),
        names!("`unit`", Unit),
        names!("`fact`", Fact),
        names!("`action`", Action),
        names!("`what` is missing", Lack),
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
    for (head, names) in enumerations() {
        let head = format!("| {head} | |\n|---|---|\n");
        let from = wanted.find(&head).unwrap_or_else(|| panic!("no table {head}")) + head.len();
        let to = from + wanted[from..].find("\n\n").unwrap() + 1;
        let rows = names.iter().map(|(name, about)| format!("| `{name}` | {} |\n", cell(about)));
        wanted.replace_range(from..to, &rows.collect::<String>());
    }
    settle("measurement.md", &is, &wanted);
}

#[test]
fn page_has_each_state_of_time() {
    let md = fs::read_to_string(page("time.md")).unwrap();
    for &state in TimeState::ALL {
        let row = format!("| `{}` | {}", state.name(), cell(state.about()));
        assert!(md.contains(&row), "docs/time.md lacks {row}");
    }
}
