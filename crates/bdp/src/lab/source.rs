//! Sources of scenarios: shipped ones by name, others by path.

use std::collections::VecDeque;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use bdp_model::case::CaseSpec;
use bdp_model::link::trace::{TRACE_MAX_BYTES, Trace};
use bdp_scenario::{PlanOptions, Scenario, Traces};

use crate::{exit, reach};

/// Larger files are rejected as scenarios.
const LARGEST_FILE: u64 = 4 << 20;

/// Reads and checks a scenario. Traces that it or `options` name are also read; it needs no flows if `options` say so.
pub fn load(name: &str, options: &PlanOptions) -> anyhow::Result<Scenario> {
    if reach::is_narrow() {
        return shipped(name, options);
    }
    let looks_like_path = name.contains('/') || Path::new(name).is_file();
    if !looks_like_path && let Some((name, text)) = bdp_scenario::find(name) {
        return parse(name, text, Path::new(""), options);
    }
    let beside = Path::new(name).parent().unwrap_or(Path::new(""));
    parse(name, &read(name)?, beside, options)
}

/// Scenarios that this process made, by name; the oldest first.
static MADE: Mutex<VecDeque<(String, String)>> = Mutex::new(VecDeque::new());
/// Most of them that are kept.
const MOST_MADE: usize = 100;

/// Keeps the text of a scenario that is loaded by this name.
pub fn keep(name: String, text: String) {
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.retain(|(known, _)| *known != name);
    made.push_back((name, text));
    if made.len() > MOST_MADE {
        made.pop_front();
    }
}

/// A scenario that this process has without opening a file.
fn shipped(name: &str, options: &PlanOptions) -> anyhow::Result<Scenario> {
    let made = || {
        let made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        made.iter().find(|(known, _)| known == name).map(|(_, text)| text.clone())
    };
    let text = bdp_scenario::find(name).map(|(_, text)| text.to_owned()).or_else(made).ok_or_else(|| {
        exit::usage(format!("no built-in scenario '{name}'; the page runs those of 'bdp lab list'"))
    })?;
    if !bdp_scenario::traces_named(&text, options).is_empty() {
        return Err(exit::usage("the page reads no traces: run this scenario in a terminal"));
    }
    Scenario::parse(name, &text).map_err(|e| exit::usage(e.to_string()))
}

/// Its cases, in natural order.
pub fn plan(scenario: &Scenario, options: &PlanOptions) -> anyhow::Result<Vec<CaseSpec>> {
    let cases = scenario.plan(options).map_err(|e| exit::usage(e.to_string()))?;
    reach::check(&cases)?;
    if cases.is_empty() {
        let filter = options.filter.as_deref().unwrap_or_default();
        return Err(exit::usage(format!(
            "no case of {} matches '{filter}'; 'bdp lab check {} --cases' lists cases",
            scenario.name, scenario.name
        )));
    }
    Ok(cases)
}

fn parse(name: &str, text: &str, beside: &Path, options: &PlanOptions) -> anyhow::Result<Scenario> {
    let mut traces = Traces::new();
    for file in bdp_scenario::traces_named(text, options) {
        let trace = read_trace(&file, &beside.join(&file))?;
        traces.insert(file, trace);
    }
    Scenario::parse_with(name, text, traces, options).map_err(|e| exit::usage(e.to_string()))
}

/// Reads the trace `name` in mahimahi's format.
pub fn read_trace(name: &str, path: &Path) -> anyhow::Result<Trace> {
    let refused = |cause: String| exit::usage(format!("cannot use the trace '{name}': {cause}"));
    let at = |e: std::io::Error| refused(format!("{}: {e}", path.display()));
    // Checked before opening: opening a named pipe waits for its writer.
    if !fs::metadata(path).map_err(at)?.is_file() {
        return Err(refused(format!("{} is not a file", path.display())));
    }
    let file = fs::File::open(path).map_err(at)?;
    let mut bytes = Vec::new();
    file.take(TRACE_MAX_BYTES + 1).read_to_end(&mut bytes).map_err(at)?;
    if bytes.len() as u64 > TRACE_MAX_BYTES {
        return Err(refused(format!("it is larger than {} MiB", TRACE_MAX_BYTES >> 20)));
    }
    let text = String::from_utf8(bytes).map_err(|_| refused("it is not text".to_owned()))?;
    Trace::parse(name, &text).map_err(|e| refused(e.to_string()))
}

fn read(path: &str) -> anyhow::Result<String> {
    let refused = |cause: String| exit::usage(format!("cannot read the scenario '{path}': {cause}"));
    let file = match fs::File::open(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(exit::usage(format!(
                "no scenario '{path}': neither a file nor a built-in scenario; 'bdp lab list' lists those"
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
