//! `bdp runs`: what is stored, newest first.

mod exchange;

use std::path::Path;

use bdp_store::{Page, RunInfo, RunKind, Store};
use serde_json::{Value, json};

use crate::exit::{Exit, Outcome};
use crate::output::{self, print, tame, utc};
use crate::store::{StoreArgs, refuse};

/// Rows of a table without `--limit`.
const ROWS: usize = 20;

/// Schema version of `--json`.
const SCHEMA: &str = "bdp.runs/1";

/// Arguments of `bdp runs`.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  bdp runs --limit 50\n  bdp runs --after 7f3a               runs older than 7f3a\n  \
    bdp runs export 7f3a > 7f3a.jsonl\n  bdp runs import 7f3a.jsonl\n  bdp runs remove 7f3a"
)]
pub struct RunsArgs {
    #[command(subcommand)]
    command: Option<RunsCommand>,

    #[command(flatten)]
    store: StoreArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// List the N newest runs [default: 20 in the table, all in JSON]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,

    /// List runs older than this one
    #[arg(long, value_name = "RUN")]
    after: Option<String>,
}

#[derive(clap::Subcommand)]
enum RunsCommand {
    /// Write runs to standard output as lines of JSON
    Export(exchange::ExportArgs),
    /// Add exported runs to the store
    Import(exchange::ImportArgs),
    /// Remove runs from the store
    Remove(exchange::RemoveArgs),
}

impl RunsArgs {
    /// Lists the runs, or runs the subcommand.
    pub fn run(self) -> Outcome {
        match self.command {
            Some(RunsCommand::Export(args)) => args.run(),
            Some(RunsCommand::Import(args)) => args.run(),
            Some(RunsCommand::Remove(args)) => args.run(),
            None => self.list(),
        }
    }

    fn list(self) -> Outcome {
        let path = self.store.path().map_err(refuse)?;
        let limit = self.limit.map(|n| n as usize);
        let rows = if self.json { limit } else { Some(limit.unwrap_or(ROWS)) };
        let (mut runs, mut stored) = (Vec::new(), 0);
        if let Some(store) = self.store.open_to_read()? {
            let after = self.after.as_deref().map(|run| store.run(run).map(|run| run.id));
            // One more than is shown tells whether there are more.
            let page =
                Page { after: after.transpose().map_err(refuse)?, limit: rows.map(|n| n.saturating_add(1)) };
            runs = store.runs(&page).map_err(refuse)?;
            stored = store.count_runs().map_err(refuse)?;
        }
        let is_all = rows.is_none_or(|rows| runs.len() <= rows);
        runs.truncate(rows.unwrap_or(usize::MAX));
        if self.json {
            return print(&format!("{:#}\n", document(&runs, path.as_deref())));
        }
        let Some(last) = runs.last() else {
            output::note(&match (&self.after, path) {
                (Some(after), _) => format!("no run is older than {after}"),
                (None, Some(path)) => {
                    format!("no runs yet in {}; 'bdp lab run' and 'bdp measure' store runs", path.display())
                }
                (None, None) => "--store none has no runs".to_owned(),
            });
            return Ok(Exit::Done);
        };
        let printed = print(&table(&runs))?;
        if !is_all {
            output::note(&match self.after {
                None => format!("{} older runs; --limit {stored} lists all", stored - runs.len() as u64),
                Some(_) => format!("older runs follow; --after {} lists them", last.id),
            });
        }
        Ok(printed)
    }
}

/// Returns the state of the run in one word.
pub fn state(run: &RunInfo) -> &'static str {
    if run.finished_unix_ms.is_some() { "finished" } else { "unfinished" }
}

/// Command that resumes an incomplete run; measurements between machines start again.
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
            labels(run),
            format!("{}/{}", run.recorded, run.planned),
            run.valid.to_string(),
            state(run).to_owned(),
            resumption(run).as_deref().map(tame).unwrap_or_default(),
        ]
    }));
    // An empty column is omitted.
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

/// The label, and the named labels.
fn labels(run: &RunInfo) -> String {
    let plain = run.label.as_deref().map(tame);
    let named = (!run.labels.is_empty()).then(|| tame(&run.labels.to_string()));
    plain.into_iter().chain(named).collect::<Vec<_>>().join(" ")
}

fn document(runs: &[RunInfo], store: Option<&Path>) -> Value {
    json!({
        "schema": SCHEMA,
        "bdp": env!("CARGO_PKG_VERSION"),
        "run": null,
        "store": store.map(Path::to_string_lossy),
        "runs": runs.iter().map(row).collect::<Vec<_>>(),
    })
}

/// A run as a member of the document.
pub fn row(run: &RunInfo) -> Value {
    json!({
        "run": run.id,
        "kind": run.kind.name(),
        "label": run.label,
        "labels": run.labels,
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
}
