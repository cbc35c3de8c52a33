//! Where scenarios come from: those that ship, by name; others, by path.

use std::fs;
use std::io::Read;
use std::path::Path;

use bdp_model::scenario::{self, CaseSpec, PlanOptions, Scenario, ScenarioError};

use crate::exit;

/// Larger files are no scenarios.
const LARGEST_FILE: u64 = 4 << 20;

/// Reads and checks a scenario.
pub fn load(name: &str) -> anyhow::Result<Scenario> {
    load_by(name, Scenario::parse)
}

/// As [`load`], of one that need not have flows.
pub fn load_links(name: &str) -> anyhow::Result<Scenario> {
    load_by(name, Scenario::parse_links)
}

fn load_by(name: &str, parse: fn(&str, &str) -> Result<Scenario, ScenarioError>) -> anyhow::Result<Scenario> {
    let parse = |name: &str, text: &str| parse(name, text).map_err(|e| exit::usage(e.to_string()));
    let looks_like_path = name.contains('/') || Path::new(name).is_file();
    if !looks_like_path && let Some((name, text)) = scenario::find(name) {
        return parse(name, text);
    }
    parse(name, &read(name)?)
}

/// Its cases, in natural order.
pub fn plan(scenario: &Scenario, options: &PlanOptions) -> anyhow::Result<Vec<CaseSpec>> {
    let cases = scenario.plan(options).map_err(|e| exit::usage(e.to_string()))?;
    if cases.is_empty() {
        let filter = options.filter.as_deref().unwrap_or_default();
        return Err(exit::usage(format!(
            "no case of {} matches '{filter}'; 'bdp lab check {} --cases' lists them",
            scenario.name, scenario.name
        )));
    }
    Ok(cases)
}

fn read(path: &str) -> anyhow::Result<String> {
    let refused = |cause: String| exit::usage(format!("cannot read the scenario '{path}': {cause}"));
    let file = match fs::File::open(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(exit::usage(format!(
                "there is no scenario '{path}': it is neither a file nor one that ships; 'bdp lab list' names those"
            )));
        }
        other => other.map_err(|e| refused(e.to_string()))?,
    };
    let mut bytes = Vec::new();
    file.take(LARGEST_FILE + 1).read_to_end(&mut bytes).map_err(|e| refused(e.to_string()))?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(refused(format!("it is larger than {} MiB", LARGEST_FILE >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| refused("it is not UTF-8 text".to_owned()))
}
