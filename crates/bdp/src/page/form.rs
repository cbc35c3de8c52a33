//! The commands of the page and their options.

use clap::builder::ValueParser;
use clap::{Arg, Command};
use serde_json::{Value, json};

use crate::exit;

/// Commands that run as jobs.
pub const JOBS: [&str; 12] = [
    "measure", "sweep", "compare", "twin", "rehearse", "verify", "fix", "lab run", "demo", "ping", "path",
    "pcap",
];

/// Commands that answer at once.
pub const ANSWERS: [&str; 11] = [
    "calc",
    "lab list",
    "tune show",
    "tune plan",
    "tune journal",
    "tune revert",
    "tune confirm",
    "explain",
    "compare",
    "twin",
    "runs",
];

/// Commands that change settings of this machine.
pub const CHANGING: [&str; 3] = ["fix", "tune revert", "tune confirm"];

/// Options that concern a terminal or files; the page has its own ways for what they do.
const OF_A_TERMINAL: [&str; 35] = [
    "json",
    "json_stream",
    "csv",
    "format",
    "report",
    "title",
    "note",
    "capture",
    "prometheus",
    "store",
    "units",
    "quiet",
    "samples",
    "compat",
    "flow",
    "top",
    "figures",
    "output",
    "candidates",
    // They start programs, open files or ask for a password.
    "ssh",
    "ssh_option",
    "through_ssh",
    "token_file",
    "user",
    "iperf3_public_key",
    "iperf3_pkcs1",
    // They capture packets, change the next boots or are secrets.
    "live",
    "snap",
    "write",
    "persist",
    "file",
    "set_aside",
    "tune_token",
    "help",
    "version",
];

/// Whether it is an option of the page: not one of a terminal, and none that names a file.
pub fn is_of_page(argument: &Arg) -> bool {
    let is_file = argument.get_value_parser().type_id() == ValueParser::path_buf().type_id();
    !OF_A_TERMINAL.contains(&argument.get_id().as_str()) && (!is_file || argument.is_positional())
}

/// The error for a command that the page does not have.
pub fn not_here(name: &str) -> anyhow::Error {
    exit::usage(format!("the page does not run 'bdp {name}': use a terminal"))
}

/// A command by its name, such as `lab run`.
pub fn find(root: &Command, name: &str) -> Option<Command> {
    let mut root = root.clone();
    root.build();
    let found = name.split(' ').try_fold(&root, |command, word| command.find_subcommand(word));
    found.cloned()
}

/// A command with its options.
pub fn command(root: &Command, name: &str) -> Value {
    let Some(command) = find(root, name) else { return Value::Null };
    let arguments =
        command.get_arguments().filter(|argument| !argument.is_hide_set() && is_of_page(argument));
    json!({
        "name": name,
        "about": command.get_about().map(ToString::to_string),
        "arguments": arguments.map(argument).collect::<Vec<_>>(),
    })
}

fn argument(argument: &Arg) -> Value {
    let takes_value = argument.get_action().takes_values();
    let names = argument.get_value_names().unwrap_or_default();
    let choices = argument.get_possible_values();
    json!({
        "name": argument.get_id().as_str(),
        "long": argument.get_long(),
        "short": argument.get_short(),
        "value": if takes_value { names.first().map(ToString::to_string) } else { None },
        "help": argument.get_help().map(ToString::to_string),
        "heading": argument.get_help_heading(),
        "default": argument.get_default_values().first().map(|value| value.to_string_lossy().into_owned()),
        "choices": if takes_value { choices.iter().map(|choice| choice.get_name()).collect() } else { Vec::new() },
        "many": matches!(argument.get_action(), clap::ArgAction::Append),
        "positional": argument.is_positional(),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_form_has_the_options_of_measure_and_none_of_a_terminal() {
        let form = command(&crate::Cli::command(), "measure");
        let all = form["arguments"].as_array().unwrap();
        let named = |name: &str| all.iter().find(|argument| argument["long"] == name);
        let time = named("time").unwrap();
        assert_eq!(
            (&time["short"], &time["value"], &time["default"]),
            (&json!("t"), &json!("TIME"), &Value::Null)
        );
        assert_eq!(named("reverse").unwrap()["value"], Value::Null);
        assert!(all.iter().any(|argument| argument["positional"] == true));
        assert!(named("json").is_none() && named("capture").is_none());
    }

    #[test]
    fn every_command_is_known_and_every_option_of_a_terminal_is_one() {
        let root = crate::Cli::command();
        let all: Vec<Command> =
            JOBS.iter().chain(&ANSWERS).map(|name| find(&root, name).expect(name)).collect();
        assert!(CHANGING.iter().all(|name| JOBS.contains(name) || ANSWERS.contains(name)));
        // A name that is no option any more would let the real one through.
        let own = |name: &&str| {
            all.iter().any(|command| command.get_arguments().any(|argument| argument.get_id() == *name))
        };
        let unknown: Vec<_> = OF_A_TERMINAL.iter().filter(|name| !own(name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        // Only captures are positional files.
        for command in &all {
            let is_file = |a: &&Arg| {
                a.is_positional() && a.get_value_parser().type_id() == ValueParser::path_buf().type_id()
            };
            let names: Vec<_> =
                command.get_arguments().filter(is_file).map(|a| a.get_id().as_str()).collect();
            assert!(names.is_empty() || command.get_name() == "pcap", "{} {names:?}", command.get_name());
        }
    }
}
