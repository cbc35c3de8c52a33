//! `bdp runs`: what is stored, newest first.

use std::num::NonZeroUsize;
use std::path::Path;

use bdp_store::{RunInfo, RunKind, Store};
use serde_json::{Value, json};

use crate::output::{self, print, tame, utc};
use crate::store::{StoreArgs, refuse};
use crate::{Outcome, exit::Exit};

/// Rows of a table where `--limit` doesn't say.
const ROWS: usize = 20;

/// Version of the shape of `--json`.
const SCHEMA: &str = "bdp.runs/1";

/// Arguments of `bdp runs`.
#[derive(clap::Args)]
pub struct RunsArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// List the N newest runs [default: 20 in the table, all in JSON]
    #[arg(long, value_name = "N")]
    limit: Option<NonZeroUsize>,
}

impl RunsArgs {
    /// Lists the runs.
    pub fn run(self) -> Outcome {
        let path = self.store.path()?;
        let mut runs = match self.store.open_to_read()? {
            Some(store) => store.runs().map_err(refuse)?,
            None => Vec::new(),
        };
        let stored = runs.len();
        let limit = self.limit.map(NonZeroUsize::get);
        if self.json {
            runs.truncate(limit.unwrap_or(stored));
            return print(&format!("{:#}\n", document(&runs, &path)));
        }
        if runs.is_empty() {
            output::note(&format!(
                "no runs yet in {}; bdp lab run and bdp measure store one",
                path.display()
            ));
            return Ok(Exit::Done);
        }
        runs.truncate(limit.unwrap_or(ROWS));
        let printed = print(&table(&runs))?;
        if runs.len() < stored {
            output::note(&format!("{} older runs; --limit {stored} lists all", stored - runs.len()));
        }
        Ok(printed)
    }
}

/// Whether the run went to its end, in a word.
pub fn state(run: &RunInfo) -> &'static str {
    if run.finished_unix_ms.is_some() { "finished" } else { "unfinished" }
}

/// The command that goes on with a run that didn't go to its end; measurements between machines begin anew.
pub fn resumption(run: &RunInfo) -> Option<String> {
    if run.finished_unix_ms.is_some() || run.kind != RunKind::Lab {
        return None;
    }
    let resumed_before = run.command.split_whitespace().any(|word| word == "--resume");
    Some(if resumed_before { run.command.clone() } else { format!("{} --resume", run.command) })
}

fn table(runs: &[RunInfo]) -> String {
    const NUMBERS: [&str; 2] = ["cases", "valid"];
    let heading = ["run", "when", "kind", "what", "label", "cases", "valid", "state", "resume with"];
    let mut rows = vec![heading.map(str::to_owned)];
    rows.extend(runs.iter().map(|run| {
        [
            run.id.clone(),
            utc(run.started_unix_ms),
            run.kind.name().to_owned(),
            tame(&run.scenario),
            run.label.as_deref().map(tame).unwrap_or_default(),
            format!("{}/{}", run.recorded, run.planned),
            run.valid.to_string(),
            state(run).to_owned(),
            resumption(run).as_deref().map(tame).unwrap_or_default(),
        ]
    }));
    // A column with a heading alone says nothing.
    let shown: Vec<usize> =
        (0..heading.len()).filter(|&c| rows[1..].iter().any(|row| !row[c].is_empty())).collect();
    let width = |c: usize| rows.iter().map(|row| row[c].chars().count()).max().unwrap_or(0);
    let line = |row: &[String; 9]| {
        let cells: Vec<String> = shown
            .iter()
            .map(|&c| {
                let width = width(c);
                if NUMBERS.contains(&heading[c]) {
                    format!("{:>width$}", row[c])
                } else {
                    format!("{:<width$}", row[c])
                }
            })
            .collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

fn document(runs: &[RunInfo], store: &Path) -> Value {
    let run = |run: &RunInfo| {
        json!({
            "run": run.id,
            "kind": run.kind.name(),
            "label": run.label,
            "scenario": run.scenario,
            "state": state(run),
            "started": utc(run.started_unix_ms),
            "started_unix_ms": run.started_unix_ms,
            "finished_unix_ms": run.finished_unix_ms,
            "cases_planned": run.planned,
            "cases_recorded": run.recorded,
            "cases_valid": run.valid,
            "plan_digest": run.plan_digest,
            "command": run.command,
            "resume": resumption(run),
            "bdp": run.bdp,
        })
    };
    json!({
        "schema": SCHEMA,
        "store": store.to_string_lossy(),
        "runs": runs.iter().map(run).collect::<Vec<_>>(),
    })
}
