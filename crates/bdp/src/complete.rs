//! What the completion scripts ask at run time: `bdp __complete WORDS...` prints what the last word can become, where that is
//! something that this machine or the store knows; nothing where the scripts know it themselves.

use std::process::ExitCode;

use bdp_model::scenario;
use bdp_store::{Page, Store};
use bdp_sys::sysctl;
use clap::{Arg, Command};

use crate::store::StoreArgs;
use crate::{output, topics};

/// The first argument that asks for it.
pub const NAME: &str = "__complete";
/// Runs that are offered, the newest.
const RUNS: usize = 100;

/// Prints the candidates for the words of a command, one a line. Completion has no use for an error.
pub fn run(root: Command, words: impl Iterator<Item = String>) -> ExitCode {
    let words: Vec<String> = words.collect();
    let candidates = candidates(root, &words).unwrap_or_default();
    let lines: String = candidates
        .into_iter()
        // A shell would take another word for it.
        .filter(|candidate| output::quote(candidate) == *candidate)
        .map(|candidate| candidate + "\n")
        .collect();
    let _ = output::print(&lines);
    ExitCode::SUCCESS
}

/// What can stand in the place of a word.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Run,
    Scenario,
    Congestion,
    Topic,
}

fn candidates(root: Command, words: &[String]) -> Option<Vec<String>> {
    let (current, before) = words.split_last()?;
    match kind(root, before, current)? {
        Kind::Run => runs(store(before)),
        Kind::Scenario => Some(scenario::shipped().map(|(name, _)| name.to_owned()).collect()),
        Kind::Topic => Some(topics::names().map(str::to_owned).collect()),
        Kind::Congestion => {
            let known = sysctl::read("net.ipv4.tcp_available_congestion_control").ok()?;
            Some(known.split_whitespace().map(str::to_owned).collect())
        }
    }
}

/// What the word after these is to be.
fn kind(mut root: Command, before: &[String], current: &str) -> Option<Kind> {
    root.build();
    let mut command = &root;
    let mut positionals = 0;
    let mut waits: Option<&Arg> = None;
    for word in before {
        if waits.take().is_some() {
            continue;
        }
        if word.starts_with('-') && word != "-" {
            waits = option(command, word).filter(|_| !word.contains('='));
        } else if let Some(below) = command.find_subcommand(word).filter(|_| positionals == 0) {
            command = below;
        } else {
            positionals += 1;
        }
    }
    match waits {
        Some(arg) => kind_of(command, arg),
        None if current.starts_with('-') => None,
        None => {
            let all: Vec<&Arg> = command.get_positionals().collect();
            // The last may stand several times.
            kind_of(command, all.get(positionals).or(all.last().filter(|arg| takes_several(arg)))?)
        }
    }
}

fn takes_several(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|count| count.max_values() > 1)
        || matches!(arg.get_action(), clap::ArgAction::Append)
}

/// The option of this name, where a value follows it.
fn option<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let found = match word.strip_prefix("--") {
        Some(long) => command.get_arguments().find(|arg| arg.get_long() == Some(long)),
        None => {
            let short = word.chars().nth(1).filter(|_| word.chars().count() == 2);
            command.get_arguments().find(|arg| short.is_some() && arg.get_short() == short)
        }
    };
    found.filter(|arg| arg.get_action().takes_values())
}

fn kind_of(command: &Command, arg: &Arg) -> Option<Kind> {
    let value = arg.get_value_names().and_then(|names| names.first()).map(|name| name.as_str());
    match (command.get_name(), arg.get_id().as_str(), value) {
        (_, "congestion", _) => Some(Kind::Congestion),
        ("list", "name", _) | (_, _, Some("SCENARIO")) => Some(Kind::Scenario),
        ("compare", "a" | "b", _) => Some(Kind::Run),
        ("help" | "man", "path", _) => Some(Kind::Topic),
        (_, id, name) if name == Some("RUN") || (name.is_none() && id == "run") => Some(Kind::Run),
        _ => None,
    }
}

/// The store that these words name.
fn store(words: &[String]) -> StoreArgs {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix("--store") {
            Some("") => return StoreArgs::at(words.next().map(String::as_str)),
            Some(path) if path.starts_with('=') => return StoreArgs::at(Some(&path[1..])),
            _ => {}
        }
    }
    StoreArgs::default()
}

/// Labels and ids, newest first.
fn runs(store: StoreArgs) -> Option<Vec<String>> {
    let runs = store.open_to_read().ok()??.runs(&Page::first(RUNS)).ok()?;
    let mut names: Vec<String> = Vec::new();
    for name in runs.iter().filter_map(|run| run.label.clone()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.extend(runs.into_iter().map(|run| run.id));
    Some(names)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    fn of(line: &str) -> Option<Kind> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let (current, before) = words.split_last().unwrap();
        kind(Cli::command(), before, current)
    }

    #[test]
    fn the_place_of_a_word_says_what_it_is() {
        for (line, expected) in [
            ("show ", Some(Kind::Run)),
            ("show 7f", Some(Kind::Run)),
            ("report -o page.html ", Some(Kind::Run)),
            ("compare a ", Some(Kind::Run)),
            ("runs export a b ", Some(Kind::Run)),
            ("runs --after ", Some(Kind::Run)),
            ("measure ams1 --baseline ", Some(Kind::Run)),
            ("lab run ", Some(Kind::Scenario)),
            ("lab run s1-64k --jobs 2 s", Some(Kind::Scenario)),
            ("lab list ", Some(Kind::Scenario)),
            ("sweep --in ", Some(Kind::Scenario)),
            ("measure ams1 -C ", Some(Kind::Congestion)),
            ("sweep ams1 --congestion c", Some(Kind::Congestion)),
            ("help ", Some(Kind::Topic)),
            ("man win", Some(Kind::Topic)),
            ("measure ", None),
            ("measure ams1 --runs ", None),
            ("show --", None),
            ("lab ", None),
            ("", None),
        ] {
            assert_eq!(of(line), expected, "{line}");
        }
    }
}
