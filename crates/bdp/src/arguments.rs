//! The command line's arguments; a mistake in them is one line that ends with the help to read.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Command, Error, Parser};

use crate::exit::{self, Exit};
use crate::output;

/// Reads the arguments; prints what they ask for where that is help or the version, and then gives the exit code.
pub fn parse<P: Parser>() -> Result<P, anyhow::Result<Exit>> {
    P::try_parse().map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => output::print(&error.render().to_string()),
        _ => Err(exit::usage(explain(&error, &P::command(), std::env::args_os().skip(1)))),
    })
}

/// The mistake, and where the right form is found.
fn explain(error: &Error, root: &Command, arguments: impl Iterator<Item = OsString>) -> String {
    let (path, command) = meant(root, arguments);
    let mistake = if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let names: Vec<&str> =
            command.get_subcommands().filter(|c| !c.is_hide_set()).map(Command::get_name).collect();
        format!("'{path}' needs one of: {}", names.join(", "))
    } else {
        one_line(&error.render().to_string())
    };
    format!("{mistake}; see '{path} --help'")
}

/// The subcommand that was meant, and how it is called.
fn meant(root: &Command, arguments: impl Iterator<Item = OsString>) -> (String, &Command) {
    let (mut path, mut command) = (root.get_name().to_owned(), root);
    for argument in arguments {
        if let Some(found) = argument.to_str().and_then(|name| command.find_subcommand(name)) {
            path = format!("{path} {}", found.get_name());
            command = found;
        }
    }
    (path, command)
}

/// What clap says, without its headings, usage and blank lines.
fn one_line(rendered: &str) -> String {
    let mut line = String::new();
    let said = rendered.strip_prefix("error: ").unwrap_or(rendered).lines().map(str::trim);
    for part in said.take_while(|l| !l.starts_with("Usage:") && !l.starts_with("For more information")) {
        if part.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push_str(if part.starts_with("tip:") { "; " } else { " " });
        }
        line.push_str(part);
    }
    line
}
