//! The options of a command, for the form of the page.

use clap::{Arg, Command};
use serde_json::{Value, json};

/// Options that concern a terminal or files; the page has its own ways for what they do.
const OF_A_TERMINAL: [&str; 20] = [
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
    // They start programs, open files or ask for a password.
    "ssh",
    "ssh_option",
    "through_ssh",
    "token_file",
    "user",
    "iperf3_public_key",
    "iperf3_pkcs1",
    "help",
    "version",
];

/// Whether the page does without this option.
pub fn is_of_a_terminal(argument: &str) -> bool {
    OF_A_TERMINAL.contains(&argument)
}

/// A command with its options.
pub fn command(root: &Command, name: &str) -> Value {
    let mut root = root.clone();
    root.build();
    let command = root.find_subcommand(name).unwrap_or(&root);
    let arguments = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set() && !is_of_a_terminal(argument.get_id().as_str()));
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
        // A name that is no option any more would let the real one through.
        let root = crate::Cli::command();
        let measure = root.find_subcommand("measure").unwrap();
        let own = |name: &&str| measure.get_arguments().any(|argument| argument.get_id().as_str() == *name);
        let of_clap = ["help", "version"];
        let unknown: Vec<_> =
            OF_A_TERMINAL.iter().filter(|name| !of_clap.contains(name) && !own(name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
