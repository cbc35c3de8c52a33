//! `bdp runs export`, `import` and `remove`: runs carried from one store to another, and taken out of one.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::PathBuf;

use bdp_store::{Error, RunInfo, Store};

use crate::exit::{self, Exit, Outcome};
use crate::output;
use crate::store::{StoreArgs, refuse};

/// Arguments of `bdp runs export`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp runs export 7f3a > 7f3a.jsonl\n  bdp runs export before after | ssh ams1 bdp runs import -"
)]
pub struct ExportArgs {
    /// The runs: each its id, the beginning of it, or its label
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,

    #[command(flatten)]
    store: StoreArgs,
}

/// Arguments of `bdp runs import`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp runs import 7f3a.jsonl\n  ssh ams1 bdp runs export 7f3a | bdp runs import -"
)]
pub struct ImportArgs {
    /// What 'bdp runs export' wrote; '-' is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    store: StoreArgs,
}

/// Arguments of `bdp runs remove`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bdp runs remove 7f3a\n  bdp runs remove 7f3a 91c0")]
pub struct RemoveArgs {
    /// The runs: each its id, the beginning of it, or its label
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,

    #[command(flatten)]
    store: StoreArgs,
}

impl ExportArgs {
    /// Writes the runs to standard output, as lines of JSON.
    pub fn run(self) -> Outcome {
        let Some(store) = self.store.open_to_read()? else { return Err(nothing_stored(&self.runs[0])) };
        let runs = find(&store, &self.runs)?;
        let mut out = BufWriter::new(io::stdout().lock());
        let written = runs
            .iter()
            .try_for_each(|run| bdp_store::export(&store, run, env!("CARGO_PKG_VERSION"), &mut out))
            .and_then(|()| out.flush().map_err(|source| Error::Stream { operation: "write", source }));
        match written {
            Err(Error::Stream { source, .. }) => output::ended(Err(source)),
            other => other.map(|()| Exit::Done).map_err(refuse),
        }
    }
}

impl ImportArgs {
    /// Adds the runs to the store and prints what they are called there.
    pub fn run(self) -> Outcome {
        let input: Box<dyn Read> = if self.file.as_os_str() == "-" {
            Box::new(io::stdin())
        } else {
            let file = File::open(&self.file);
            let shown = self.file.display();
            Box::new(file.map_err(|error| exit::environment(format!("cannot read {shown}: {error}")))?)
        };
        let mut store = writable(&self.store)?;
        let imported = bdp_store::import(&mut store, BufReader::new(input)).map_err(refuse)?;
        for run in imported.iter().filter(|run| run.was_there) {
            output::note(&format!("run {} is stored already", run.id));
        }
        for run in imported.iter().filter(|run| run.id != run.given) {
            output::note(&format!("the name {} is taken here; that run is now {}", run.given, run.id));
        }
        let added = imported.iter().filter(|run| !run.was_there);
        output::print(&added.map(|run| format!("{}\n", run.id)).collect::<String>())
    }
}

impl RemoveArgs {
    /// Removes the runs and prints their ids.
    pub fn run(self) -> Outcome {
        let mut store = writable(&self.store)?;
        let runs = find(&store, &self.runs)?;
        for run in &runs {
            store.remove_run(&run.id).map_err(refuse)?;
        }
        output::print(&runs.iter().map(|run| format!("{}\n", run.id)).collect::<String>())
    }
}

/// The runs of these names, each once; none where one of them is unknown.
fn find(store: &dyn Store, names: &[String]) -> anyhow::Result<Vec<RunInfo>> {
    let mut runs: Vec<RunInfo> = Vec::new();
    for name in names {
        let run = store.run(name).map_err(refuse)?;
        if !runs.iter().any(|found| found.id == run.id) {
            runs.push(run);
        }
    }
    Ok(runs)
}

fn writable(store: &StoreArgs) -> anyhow::Result<bdp_store::SqliteStore> {
    // Here a missing place is no note: without a store there is nothing to do.
    store.path().map_err(refuse)?;
    store.open()?.ok_or_else(|| exit::usage("--store none has no runs; name a store"))
}

fn nothing_stored(run: &str) -> anyhow::Error {
    exit::usage(format!("there is no run '{run}'; nothing is stored yet"))
}
