//! Run-time answers for the completion scripts: `bdp __complete WORDS...` prints the completions of the last word
//! that this machine or the store knows; nothing if the scripts know them.

use std::process::ExitCode;

use bdp_model::measurement::figure::{Figure, Figures, PingFigure};
use bdp_model::tuning::setting::Setting;
use bdp_scenario::{PlanOptions, Scenario};
use bdp_store::{Page, Store};
use bdp_sys::sysctl;
use clap::{Arg, Command};

use crate::lab::source;
use crate::store::StoreArgs;
use crate::{output, topics};

/// First argument that requests completions.
pub const NAME: &str = "__complete";
/// Number of the newest runs offered.
const RUNS: usize = 100;
/// DSCPs by name (RFC 2474, 2597, 3246).
const DSCP: &str =
    "ef cs0 cs1 cs2 cs3 cs4 cs5 cs6 cs7 af11 af12 af13 af21 af22 af23 af31 af32 af33 af41 af42 af43";

/// Prints the candidates for a command's last word, one per line. Errors are ignored, as completion can't use them.
pub fn run(root: Command, words: impl Iterator<Item = String>) -> ExitCode {
    let words: Vec<String> = words.collect();
    let candidates = candidates(root, &words).unwrap_or_default();
    let lines: String = candidates
        .into_iter()
        // A shell would parse it as another word.
        .filter(|candidate| output::quote(candidate) == *candidate)
        .map(|candidate| candidate + "\n")
        .collect();
    let _ = output::print(&lines);
    ExitCode::SUCCESS
}

/// Kind of a word.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Run,
    Scenario,
    Congestion,
    Topic,
    /// One of a few words.
    Word(Vec<String>),
    /// `PATH=` of a scenario's varied parameter.
    Setting,
    /// Words of the keys of a scenario's cases.
    Filter,
    /// Hosts of a scenario, each with its suffix.
    Host {
        and: &'static str,
    },
}

fn candidates(root: Command, words: &[String]) -> Option<Vec<String>> {
    let (current, before) = words.split_last()?;
    match kind(root, before, current)? {
        Kind::Run => runs(store(before)),
        Kind::Scenario => Some(bdp_scenario::shipped().map(|(name, _)| name.to_owned()).collect()),
        Kind::Word(words) => Some(words),
        kind @ (Kind::Setting | Kind::Filter) => Some(of_cases(before, &kind)),
        Kind::Host { and } => Some(hosts(before, and)),
        Kind::Topic => Some(topics::names().map(str::to_owned).collect()),
        Kind::Congestion => {
            let known = sysctl::read(Setting::TcpAvailableCongestionControl.name).ok()?;
            Some(known.split_whitespace().map(str::to_owned).collect())
        }
    }
}

/// Kind of the word after these.
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
            // The last may be repeated.
            kind_of(command, all.get(positionals).or(all.last().filter(|arg| takes_several(arg)))?)
        }
    }
}

fn takes_several(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|count| count.max_values() > 1)
        || matches!(arg.get_action(), clap::ArgAction::Append)
}

/// The option of this name, if it takes a value.
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
        ("measure", "units", _) => Some(Kind::Word(words("k m g t K M G T".split(' ')))),
        (_, "dscp", _) => Some(Kind::Word(words(DSCP.split(' ')))),
        ("measure", "expect", _) => Some(Kind::Word(words(Figure::all()))),
        ("ping", "expect", _) => Some(Kind::Word(words(PingFigure::all()))),
        (_, "settings", _) => Some(Kind::Setting),
        (_, "filter", _) => Some(Kind::Filter),
        ("exec" | "shell", "host", _) => Some(Kind::Host { and: "" }),
        ("exec", "lines" | "services", _) => Some(Kind::Host { and: "=" }),
        ("list", "name", _) | (_, _, Some("SCENARIO")) => Some(Kind::Scenario),
        ("compare", "a" | "b", _) => Some(Kind::Run),
        ("help" | "man", "path", _) => Some(Kind::Topic),
        (_, id, name) if name == Some("RUN") || (name.is_none() && id == "run") => Some(Kind::Run),
        _ => None,
    }
}

fn words(all: impl IntoIterator<Item = impl ToString>) -> Vec<String> {
    all.into_iter().map(|word| word.to_string()).collect()
}

/// For the scenarios named in these words: the words that distinguish their cases, or the paths of their varied parameters.
fn of_cases(before: &[String], kind: &Kind) -> Vec<String> {
    let mut all = Vec::new();
    for (name, text) in before.iter().filter_map(|word| bdp_scenario::find(word)) {
        let Ok(scenario) = Scenario::parse(name, text) else { continue };
        let cases = scenario.plan(&PlanOptions::default()).unwrap_or_default();
        for case in &cases {
            match kind {
                Kind::Filter => all.extend(case.key().split_whitespace().map(str::to_owned)),
                _ => all.extend(case.params.keys().map(|path| format!("{path}="))),
            }
        }
    }
    if *kind == Kind::Setting {
        all.extend(["duration", "omit", "congestion"].map(|name| format!("flow.{name}=")));
    }
    all.sort();
    all.dedup();
    all
}

/// Hosts of the scenario named among these words, by its name or its file.
fn hosts(before: &[String], and: &str) -> Vec<String> {
    let case = before.iter().rev().find_map(|word| {
        let options = PlanOptions { links_alone: true, ..PlanOptions::default() };
        let scenario = source::load(word, &options).ok()?;
        scenario.plan(&options).ok()?.into_iter().next()
    });
    case.map_or_else(Vec::new, |case| case.hosts.iter().map(|host| format!("{}{and}", host.name)).collect())
}

/// The store named in these words.
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
            ("lab exec ", Some(Kind::Scenario)),
            ("lab exec s1-64k --host ", Some(Kind::Host { and: "" })),
            ("lab exec s1-64k --serve ", Some(Kind::Host { and: "=" })),
            ("lab shell s1-64k --host n", Some(Kind::Host { and: "" })),
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
            ("measure ams1 -f ", Some(Kind::Word(words("k m g t K M G T".split(' '))))),
            ("ping ams1 --dscp ", Some(Kind::Word(words(DSCP.split(' '))))),
            ("ping ams1 --expect r", Some(Kind::Word(words(PingFigure::all())))),
            ("lab run s1-64k --set ", Some(Kind::Setting)),
            ("lab run s1-64k --filter ", Some(Kind::Filter)),
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

    #[test]
    fn what_is_offered_is_taken() {
        for name in DSCP.split(' ') {
            assert!(crate::measure::dscp(name).is_ok(), "{name}");
        }
        let (name, _) = bdp_scenario::shipped().next().unwrap();
        let before = [name.to_owned()];
        for (kind, given) in [(Kind::Filter, "--filter"), (Kind::Setting, "--set")] {
            let all = of_cases(&before, &kind);
            assert!(!all.is_empty(), "{given}");
            assert!(kind != Kind::Setting || all.iter().all(|word| word.ends_with('=')), "{all:?}");
        }
    }
}
