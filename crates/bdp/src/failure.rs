//! An error that ends bdp: a line on standard error, and a document if JSON was requested.

use bdp_sys::signal::Ending;
use serde::Serialize;
use serde_json::json;

use crate::exit::{Exit, Refusal};
use crate::output;

/// Prints an error in one line and returns its exit code; an error without one is a bug.
pub fn report(error: &anyhow::Error) -> Exit {
    let exit = match error.downcast_ref::<Refusal>() {
        Some(refusal) => {
            output::note(&format!("bdp: {error:#}"));
            refusal.exit
        }
        None => {
            report_bug(&format!("{error:#}"));
            Exit::Bug
        }
    };
    let code = ending(exit);
    print_json(exit.kind(), code.code(), &format!("{error:#}"));
    code
}

/// Exit of bdp after an error; if it runs a user's program, whose exit codes are its own, as in `env` and `timeout`.
fn ending(exit: Exit) -> Exit {
    let mut words = std::env::args_os().skip(1);
    let runs_programs = words.next().is_some_and(|word| word == "lab")
        && words.next().is_some_and(|word| word == "exec" || word == "shell");
    if runs_programs { Exit::Program(bdp_lab::program::NOT_STARTED) } else { exit }
}

/// Schema version of an error's document: `docs/error.schema.json`.
const SCHEMA: &str = "bdp.error/1";

/// Output of bdp if it ends with an error or by a signal and has printed no other document.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// Name and version of this document's schema.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// Version of bdp.
    bdp: &'static str,
    /// Always null: nothing is stored.
    run: (),
    /// The error that ended bdp.
    error: Failure<'a>,
}

/// An error; its text is also printed on standard error.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Failure<'a> {
    /// `usage`: the request was wrong. `environment`: the environment refused. `bug`: bdp has a bug. `interrupted`: a signal ended it
    /// before there was a result.
    #[cfg_attr(test, schemars(extend("enum" = ["usage", "environment", "bug", "interrupted"])))]
    kind: &'a str,
    /// What failed, on what, why, and what to do; without the `bdp: ` of standard error.
    #[cfg_attr(test, schemars(length(min = 1)))]
    message: &'a str,
    /// Exit code; for a signal, the code that a shell reports.
    #[cfg_attr(test, schemars(extend("enum" = [2, 3, 4, 129, 130, 131, 143])))]
    exit_code: u8,
}

/// JSON format of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Document,
    /// A line of `--json-stream`.
    Line,
}

impl Form {
    /// Format that the arguments request.
    fn asked(arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut arguments = arguments.take_while(|argument| argument != "--");
        arguments.find_map(|argument| match argument.as_str() {
            "--json" => Some(Self::Document),
            "--json-stream" => Some(Self::Line),
            short if has_short_json(short) => Some(Self::Document),
            _ => None,
        })
    }
}

/// Short flags without a value of the commands that have `-J`.
const WITHOUT_VALUE: &str = "JRuVvNZ46h";

/// Whether combined flags, such as `-RJ`, request JSON; characters after a flag with a value are the value.
fn has_short_json(word: &str) -> bool {
    let flags = word.strip_prefix('-').filter(|flags| !flags.starts_with('-')).unwrap_or_default();
    flags.chars().take_while(|flag| WITHOUT_VALUE.contains(*flag)).any(|flag| flag == 'J')
}

/// Prints an end by a signal as JSON, if requested.
pub fn report_ending(ending: Ending, words: &str) {
    print_json("interrupted", ending.exit_code(), &format!("ended by {}; {words}", ending.name()));
}

/// Prints the error that ended bdp as JSON, if requested and if nothing else was printed.
fn print_json(kind: &str, exit_code: u8, message: &str) {
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    let Some(form) = Form::asked(arguments).filter(|_| !output::has_printed()) else { return };
    let message = output::tame(message);
    let text = match form {
        Form::Document => {
            let document = json!(Document {
                schema: SCHEMA,
                bdp: env!("CARGO_PKG_VERSION"),
                run: (),
                error: Failure { kind, message: &message, exit_code },
            });
            format!("{document:#}\n")
        }
        Form::Line => format!("{}\n", json!({ "event": "error", "repetition": 1, "error": message })),
    };
    // The error itself is on standard error.
    let _ = output::print(&text);
}

/// Prints in one line that bdp has a bug.
pub fn report_bug(what: &str) {
    output::note(&format!("bdp: internal error: {what}; please report it with the command you ran"));
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_flag_without_a_value_may_stand_before_the_one_that_asks_for_json() {
        let root = crate::Cli::command();
        let shorts = |command: &clap::Command| -> Vec<char> {
            let flags = command.get_arguments().filter(|a| !a.get_action().takes_values());
            flags.flat_map(|a| a.get_short_and_visible_aliases().unwrap_or_default()).collect()
        };
        let with_json: Vec<char> =
            root.get_subcommands().map(shorts).filter(|all| all.contains(&'J')).flatten().collect();
        assert!(with_json.contains(&'J'));
        for flag in with_json {
            assert!(WITHOUT_VALUE.contains(flag), "-{flag}");
        }
    }

    #[test]
    fn json_is_asked_for_by_every_name_that_it_has() {
        let asked = |line: &str| Form::asked(line.split_whitespace().map(str::to_owned));
        for line in
            ["measure x --json", "measure x -J", "measure x -JR", "measure x -R4J", "measure x -uJb 1M"]
        {
            assert_eq!(asked(line), Some(Form::Document), "{line}");
        }
        assert_eq!(asked("measure x --json-stream"), Some(Form::Line));
        for line in ["measure x -CJ", "measure x --label J", "measure x -R", "measure -- --json", "measure J"]
        {
            assert_eq!(asked(line), None, "{line}");
        }
    }
}
