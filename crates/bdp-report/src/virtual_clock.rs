//! Remedy for an INVALID case: the command that runs it on the virtual clock.

use std::collections::BTreeMap;

use bdp_model::case::stack::Stack;
use bdp_model::record::Record;

use crate::grid::tame;
use crate::measurement::quote;
use crate::summary::{Ending, Point, ending};

/// Purpose of the command.
pub(crate) const WHY: &str =
    "with the virtual clock, exact even on a busy machine; 'bdp lab stacks' shows how to get its kernel";

/// Name of the cases of `bdp demo`, for which no scenario file exists.
const DEMO: &str = "demo-window";

/// Returns the command for one record; `None` if it is valid, failed, or already ran on the virtual clock.
pub(crate) fn command(record: &Record) -> Option<String> {
    let wanted = ending(record) == Ending::Invalid && record.case.clock.is_real();
    wanted.then(|| of(&record.scenario, Some(&record.case.key()), &record.case.set))
}

/// Returns a command for each scenario with a repetition that has no valid attempt, covering all such cases.
pub(crate) fn commands(points: &[Point<'_>]) -> Vec<String> {
    let mut found: Vec<(&str, &BTreeMap<String, String>, Vec<String>)> = Vec::new();
    for point in points {
        for record in point.records.iter().filter(|record| command(record).is_some()) {
            if point.valid().any(|valid| valid.repetition == record.repetition) {
                continue;
            }
            let key = record.case.key();
            let set = &record.case.set;
            match found.iter_mut().find(|(scenario, other, _)| *scenario == point.scenario && *other == set) {
                Some((_, _, keys)) if keys.contains(&key) => {}
                Some((_, _, keys)) => keys.push(key),
                None => found.push((point.scenario, set, vec![key])),
            }
        }
    }
    let of_scenario = |(scenario, set, keys): (&str, &BTreeMap<String, String>, Vec<String>)| match &keys[..]
    {
        [only] => of(scenario, Some(only), set),
        _ => of(scenario, None, set),
    };
    let mut commands: Vec<String> = found.into_iter().map(of_scenario).collect();
    commands.dedup();
    commands
}

fn of(scenario: &str, key: Option<&str>, set: &BTreeMap<String, String>) -> String {
    if scenario == DEMO {
        return "bdp demo --clock virtual".to_owned();
    }
    let filter = key.map_or_else(String::new, |key| format!(" --filter {}", quote(&tame(key))));
    // The host's own kernel has no virtual clock.
    let goes = |(path, value): &(&String, &String)| !(path.ends_with("stack") && *value == Stack::MACHINE);
    let set: String = set
        .iter()
        .filter(goes)
        .map(|(path, value)| format!(" --set {}", quote(&tame(&format!("{path}={value}")))))
        .collect();
    format!("bdp lab run {}{set}{filter} --clock virtual", quote(&tame(scenario)))
}
