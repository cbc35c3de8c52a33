//! `bdp lab conformance`: runs one suite on every stack.

use std::fmt::Write;

use bdp_model::case::stack::{Stack, StepStack};
use bdp_model::plain::in_words;
use bdp_run::selftest::conformance::{Conformance, POINTS, of};
use serde::Serialize;
use serde_json::{Value, json};

use crate::exit::{Exit, Outcome};
use crate::output::print;

/// Schema of its JSON.
const SCHEMA: &str = "bdp.conformance/1";
/// Width of the first column.
const NAME_WIDTH: usize = 24;
/// Width of a page.
const WIDTH: usize = 80;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp lab conformance\n  bdp lab conformance smoltcp linux-6.1\n  bdp lab conformance 'exec:python3 stack.py'\n\n\
    'bdp help stacks' describes the checks.\n\nExit codes: 0 all checks passed; 1 some failed; 2 usage error; 3 a stack could not be run."
)]
pub struct ConformanceArgs {
    /// Stacks to check, named as in 'stack =' of a scenario [default: all that are installed]
    #[arg(value_name = "STACK")]
    stacks: Vec<Stack>,

    /// Print JSON ('bdp help conformance.schema')
    #[arg(long)]
    json: bool,
}

/// A stack and its result.
type Tried = (Stack, Result<Conformance, String>);

impl ConformanceArgs {
    /// Tests each stack and prints a table.
    pub fn run(self) -> Outcome {
        let keeper = crate::guest::commands().keeper;
        let named = !self.stacks.is_empty();
        let stacks = if named { self.stacks } else { all() };
        let tried: Vec<Tried> = stacks
            .into_iter()
            .map(|stack| {
                let outcome = of(&keeper, &stack).map_err(|e| e.to_string());
                (stack, outcome)
            })
            .collect();
        let text = if self.json { format!("{:#}\n", as_value(&tried)) } else { text(&tried) };
        print(&text)?;
        let broken = |(_, tried): &Tried| match tried {
            Ok(found) => found.outcomes.iter().any(|outcome| outcome.met.is_none()),
            Err(_) => named,
        };
        let missed =
            tried.iter().filter_map(|(_, tried)| tried.as_ref().ok()).flat_map(|found| &found.outcomes);
        let exit = if tried.iter().any(broken) {
            Exit::Environment
        } else if missed.into_iter().any(|outcome| outcome.met == Some(false)) {
            Exit::Missed
        } else {
            Exit::Done
        };
        Ok(exit)
    }
}

/// Every stack that bdp knows by name except this machine's kernel.
fn all() -> Vec<Stack> {
    let kernels = Stack::GUESTS.map(Stack::Guest);
    let others = [StepStack::Smoltcp].into_iter().chain(StepStack::BUILT.map(StepStack::Built));
    kernels.into_iter().chain(others.map(Stack::Steps)).collect()
}

fn text(tried: &[Tried]) -> String {
    let mut text = String::new();
    let found: Vec<(&Stack, &Conformance)> =
        tried.iter().filter_map(|(stack, tried)| Some((stack, tried.as_ref().ok()?))).collect();
    let name = |stack: &Stack| match stack {
        Stack::Steps(StepStack::Program(_)) => "exec".to_owned(),
        Stack::File(_) => "kernel".to_owned(),
        other => other.to_string(),
    };
    let columns: Vec<String> = found.iter().map(|(stack, _)| name(stack)).collect();
    let mut line = format!("{:<NAME_WIDTH$}", "point");
    for column in &columns {
        let _ = write!(line, "{column:<width$}", width = column.len() + 2);
    }
    let _ = writeln!(text, "{}", line.trim_end());
    for (i, point) in POINTS.iter().enumerate() {
        let mut line = format!("{:<NAME_WIDTH$}", point.name);
        for (column, (_, found)) in columns.iter().zip(&found) {
            let met = match found.outcomes.get(i).and_then(|outcome| outcome.met) {
                Some(true) => "yes",
                Some(false) => "NO",
                None => "-",
            };
            let _ = write!(line, "{met:<width$}", width = column.len() + 2);
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    for (stack, found) in &found {
        let _ = writeln!(text, "\n{} ({})", name(stack), in_words(&found.version));
        for outcome in found.outcomes.iter().filter(|outcome| !outcome.note.is_empty()) {
            let met = match outcome.met {
                Some(true) => "   ",
                Some(false) => "NO ",
                None => "-  ",
            };
            let head = format!("  {met}{:<NAME_WIDTH$}", outcome.point);
            let notes = textwrap(&in_words(&outcome.note), WIDTH - head.len());
            let _ = writeln!(text, "{head}{}", notes.join(&format!("\n{:width$}", "", width = head.len())));
        }
    }
    for (stack, tried) in tried {
        if let Err(error) = tried {
            let _ = writeln!(text, "\nSKIPPED  {}: {}", name(stack), in_words(error));
        }
    }
    text
}

/// Wraps words into lines of at most `width` columns.
fn textwrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].len() + 1 + word.len() > width {
            lines.push(word.to_owned());
        } else {
            if !lines[last].is_empty() {
                lines[last].push(' ');
            }
            lines[last].push_str(word);
        }
    }
    lines
}

fn as_value(tried: &[Tried]) -> Value {
    let stack = |(stack, tried): &Tried| StackOutcomes {
        name: stack.to_string(),
        version: tried.as_ref().ok().map(|found| found.version.clone()),
        outcomes: tried.iter().flat_map(|found| &found.outcomes).map(PointOutcome::of).collect(),
        error: tried.as_ref().err().cloned(),
    };
    json!(Document {
        schema: SCHEMA,
        bdp: env!("CARGO_PKG_VERSION"),
        run: (),
        points: POINTS.iter().map(|p| PointText { name: p.name, what: p.what, source: p.source }).collect(),
        stacks: tried.iter().map(stack).collect(),
    })
}

/// Results of the conformance suite.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document {
    /// Name and version of this document's schema.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// Version of bdp.
    bdp: &'static str,
    /// Always null: nothing is stored.
    run: (),
    /// Points that every stack is tested on, in the order of a connection's life.
    #[cfg_attr(test, schemars(length(min = 1)))]
    points: Vec<PointText>,
    /// Results of each stack.
    stacks: Vec<StackOutcomes>,
}

/// A point of the suite.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PointText {
    /// Name, a word or two.
    name: &'static str,
    /// Required behaviour of a stack.
    what: &'static str,
    /// Specification that requires it.
    source: &'static str,
}

/// Results of a stack.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StackOutcomes {
    /// Name that `stack =` takes.
    name: String,
    /// Name and version; null if it could not be tested.
    version: Option<String>,
    /// Outcomes in the order of the points; empty if the stack could not be tested.
    outcomes: Vec<PointOutcome>,
    /// Why the stack could not be tested; null if it was.
    error: Option<String>,
}

/// Outcome of a point.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PointOutcome {
    /// Name of the point.
    point: String,
    /// Whether the stack met it; null if it could not be tested.
    met: Option<bool>,
    /// How it was met, or why not; may be empty.
    note: String,
}

impl PointOutcome {
    fn of(outcome: &bdp_stack::conformance::Outcome) -> Self {
        Self { point: outcome.point.clone(), met: outcome.met, note: outcome.note.clone() }
    }
}
