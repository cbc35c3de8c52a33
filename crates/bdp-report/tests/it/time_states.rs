//! The states of time in `docs/time.md` are those of the type.

use std::fs;
use std::path::PathBuf;

use bdp_model::facts::TimeState;

#[test]
fn page_has_each_state_of_time() {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/time.md");
    let md = fs::read_to_string(page).unwrap();
    for &state in TimeState::ALL {
        let about = state.about().trim_end_matches('.');
        let mut letters = about.chars();
        let (first, second) = (letters.next().unwrap(), letters.next().unwrap());
        let cell: String = match second.is_uppercase() {
            true => about.to_owned(),
            false => first.to_lowercase().chain(about.chars().skip(1)).collect(),
        };
        let row = format!("| `{}` | {cell}", state.name());
        assert!(md.contains(&row), "docs/time.md lacks {row}");
    }
}
