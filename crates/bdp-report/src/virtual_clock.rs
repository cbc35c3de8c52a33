//! The way out of an INVALID case: the command that runs it by the virtual clock.

use std::collections::BTreeMap;

use bdp_model::record::Record;
use bdp_model::stack::Stack;

use crate::grid::tame;
use crate::measurement::quote;
use crate::summary::{Ending, Point, ending};

/// What such a command is good for.
pub(crate) const WHY: &str =
    "with the virtual clock, exact even on a busy machine; 'bdp lab stacks' shows how to get its kernel";

/// The cases of `bdp demo` that no scenario of that name ships for.
const DEMO: &str = "demo-window";

/// The command for one record; `None` where it is valid, failed, or ran by the virtual clock already.
pub(crate) fn command(record: &Record) -> Option<String> {
    let wanted = ending(record) == Ending::Invalid && record.case.clock.is_real();
    wanted.then(|| of(&record.scenario, Some(&record.case.key()), &record.case.set))
}

/// A command for each scenario that has a repetition without a valid attempt, all such cases of it if they are several.
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
    // This machine's own kernel has no virtual clock.
    let goes = |(path, value): &(&String, &String)| !(path.ends_with("stack") && *value == Stack::MACHINE);
    let set: String = set
        .iter()
        .filter(goes)
        .map(|(path, value)| format!(" --set {}", quote(&tame(&format!("{path}={value}")))))
        .collect();
    format!("bdp lab run {}{set}{filter} --clock virtual", quote(&tame(scenario)))
}
