//! Command lines of the page: what they may ask for, and what becomes of them.

use std::cell::RefCell;
use std::path::Path;

use bdp_run::job::Job;
use bdp_run::pcap::Source;
use bdp_web::{Asked, Captures, Order, Refused, RefusedBy, Secrets};
use clap::ArgMatches;
use clap::parser::ValueSource;
use serde_json::{Value, json};

use super::form;
use super::parser::{Parser, Typed};
use super::refused::refused;
use crate::planned::Planned;
use crate::store::StoreArgs;
use crate::{command_line, exit, output};

/// Beginning of a capture's name in a command line.
const CAPTURE: &str = "capture:";

/// Turns command lines into jobs and answers.
pub struct Orders {
    /// The parser.
    pub parser: Parser,
    /// The store of every command.
    pub store: StoreArgs,
}

/// A command that the page may run.
struct Permitted {
    command: Box<dyn Typed>,
    /// Its name, such as `lab run`.
    name: String,
    given: ArgMatches,
}

impl Orders {
    /// The job of a command line.
    pub fn job(&self, order: Order, captures: &Captures) -> Result<Asked, Refused> {
        let Order { words, secrets, is_local } = order;
        let permitted = self.permitted(&words, &form::JOBS, is_local, &[])?;
        // A capture by the name of its file, as it would be read in a terminal.
        let named = |word: String| {
            let capture = word.strip_prefix(CAPTURE).and_then(|id| captures.get(id).ok());
            capture.map_or(word, |capture| capture.name.clone())
        };
        let command = command_line::repeatable(words.into_iter().map(named));
        let used = RefCell::new(Vec::new());
        let source_of = |name: &Path| -> anyhow::Result<Source> {
            let unknown = || exit::usage("the page reads only captures that were chosen in it");
            let id = name.to_str().and_then(|name| name.strip_prefix(CAPTURE)).ok_or_else(unknown)?;
            let capture = captures.get(id).map_err(|refused| exit::usage(refused.message))?;
            let source = Source::Named { file: capture.path(), name: capture.name.clone() };
            used.borrow_mut().push(capture);
            Ok(source)
        };
        let planned = command_line::as_typed(&command, || permitted.command.planned(&source_of));
        let planned = planned.unwrap_or_else(|| Err(form::not_here(&permitted.name)));
        let Planned { mut job, notes, document } = planned.map_err(|error| refused(&error))?;
        entrust(&mut job, secrets);
        Ok(Asked { command, job, notes, document, captures: used.into_inner() })
    }

    /// What a command that answers at once prints with `--json`.
    pub fn answer(&self, order: Order) -> Result<Value, Refused> {
        let Order { mut words, secrets, is_local } = order;
        // The list of profiles has a name of its own here.
        if words.len() >= 2 && words[..2] == ["lab", "profiles"] {
            words.splice(1..2, ["list".to_owned(), "--profiles".to_owned()]);
        }
        let mut own = vec![("json", "--json".to_owned())];
        // One word, so that no token is taken for an option.
        own.extend(known(secrets.tune_token).map(|token| ("tune_token", format!("--tune-token={token}"))));
        let permitted = self.permitted(&words, &form::ANSWERS, is_local, &own)?;
        if permitted.name == "twin" && !permitted.given.get_flag("no_run") {
            return Err(Refused::new(
                RefusedBy::Usage,
                "a twin that is run is a job: add --no-run to derive it",
            ));
        }
        let command = command_line::repeatable(words.into_iter());
        let run = || command_line::as_typed(&command, || permitted.command.run());
        let (ended, text) = output::captured(run);
        ended.map_err(|error| refused(&error))?;
        Ok(serde_json::from_str(&text).unwrap_or_else(|_| json!({ "text": text })))
    }

    /// The command of these words, if it is one of `commands` and has only options of the page; it uses the page's store
    /// and those of its `own` options, by id, that it has.
    fn permitted(
        &self,
        words: &[String],
        commands: &[&str],
        is_local: bool,
        own: &[(&str, String)],
    ) -> Result<Permitted, Refused> {
        let parse = |words: &[String]| (self.parser.parse)(words).map_err(|error| refused(&error));
        let (command, matches) = parse(words)?;
        let (name, given) = deepest(&matches);
        if !commands.iter().any(|known| name == *known || *known == "calc" && name.starts_with("calc ")) {
            return Err(refused(&form::not_here(&name)));
        }
        if form::CHANGING.contains(&name.as_str()) && !is_local {
            return Err(Refused::new(
                RefusedBy::Forbidden,
                format!(
                    "'bdp {name}' changes settings of this machine, which only a page on its loopback address without --name may: use a terminal there, or ssh -L"
                ),
            ));
        }
        let root = (self.parser.root)();
        let arguments = form::find(&root, &name).ok_or_else(|| refused(&form::not_here(&name)))?;
        let is_typed = |id: &str| given.value_source(id) == Some(ValueSource::CommandLine);
        if let Some(option) = arguments
            .get_arguments()
            .filter(|argument| !form::is_of_page(argument))
            .map(|argument| argument.get_id().as_str())
            .find(|id| given.try_contains_id(id).is_ok() && is_typed(id))
        {
            let option = option.replace('_', "-");
            return Err(refused(&exit::usage(format!("--{option} is for a terminal: leave it out here"))));
        }
        let has = |id: &str| arguments.get_arguments().any(|argument| argument.get_id() == id);
        let known = own.iter().filter(|(id, _)| has(id) && (*id != "tune_token" || is_typed("at")));
        let known: Vec<String> = known.map(|(_, word)| word.clone()).collect();
        let mut own = if has("store") { self.store.words() } else { Vec::new() };
        own.extend(known);
        if own.is_empty() {
            return Ok(Permitted { command, given: given.clone(), name });
        }
        let mut all = words.to_vec();
        let behind_name = name.split(' ').count();
        all.splice(behind_name..behind_name, own);
        let (command, matches) = parse(&all)?;
        Ok(Permitted { command, given: deepest(&matches).1.clone(), name })
    }
}

/// The name of the subcommand, such as `lab run`, and its options.
fn deepest(matches: &ArgMatches) -> (String, &ArgMatches) {
    let (mut name, mut at) = (String::new(), matches);
    while let Some((word, below)) = at.subcommand() {
        name = format!("{name} {word}").trim_start().to_owned();
        at = below;
    }
    (name, at)
}

/// A secret, if it was given.
fn known(secret: Option<String>) -> Option<String> {
    secret.map(|secret| secret.trim().to_owned()).filter(|secret| !secret.is_empty())
}

/// Gives a job the secrets that it can use.
fn entrust(job: &mut Job, secrets: Secrets) {
    let (token, tune_token) = (known(secrets.token), known(secrets.tune_token));
    let credentials = match job {
        Job::Measure(plan) => &mut plan.credentials,
        Job::Ping(plan) => &mut plan.credentials,
        Job::Path(plan) => &mut plan.credentials,
        Job::Sweep(plan) => &mut plan.credentials,
        Job::Verify(plan) => &mut plan.credentials,
        Job::Fix(plan) => {
            plan.tune_token = tune_token.or(plan.tune_token.take());
            &mut plan.credentials
        }
        _ => return,
    };
    credentials.token = token.or(credentials.token.take());
}
