//! `bdp runs export`, `import` and `remove`: transfers runs between stores, and removes them.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use bdp_store::{Error, Page, RunInfo, Store};
use bdp_sys::clock;

use crate::exit::{self, Exit, Outcome};
use crate::output;
use crate::store::{StoreArgs, refuse};

/// How long a run without an end may still be running.
const MAY_RUN: Duration = Duration::from_secs(86_400);

/// Arguments of `bdp runs export`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp runs export 7f3a > 7f3a.jsonl\n  bdp runs export before after | ssh ams1 bdp runs import -"
)]
pub struct ExportArgs {
    /// Runs: id, prefix of an id, or label
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
    /// File written by 'bdp runs export'; '-' is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    store: StoreArgs,
}

/// Arguments of `bdp runs remove`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp runs remove 7f3a 91c0\n  bdp runs remove --older-than 30d\n  bdp runs remove --keep 1000\n  \
    bdp runs remove --older-than 30d --keep 20     runs older than 30 days, but never the newest 20\n\n\
    Both options keep unfinished runs that started within the last day, as they may still be running."
)]
pub struct RemoveArgs {
    /// Runs: id, prefix of an id, or label
    #[arg(required_unless_present_any = ["older_than", "keep"], conflicts_with_all = ["older_than", "keep"], value_name = "RUN")]
    runs: Vec<String>,

    /// Remove runs that started longer ago than this: 36h, 30d or 8w
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: Option<Duration>,

    /// Remove all but the newest N; with --older-than, always keep the newest N
    #[arg(long, value_name = "N")]
    keep: Option<usize>,

    /// Print the runs that would be removed, without removing them
    #[arg(long, conflicts_with = "runs")]
    dry_run: bool,

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
    /// Adds the runs to the store and prints their names there.
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
            output::note(&format!("the id {} is already used here; that run is now {}", run.given, run.id));
        }
        let added = imported.iter().filter(|run| !run.was_there);
        output::print(&added.map(|run| format!("{}\n", run.id)).collect::<String>())
    }
}

impl RemoveArgs {
    /// Removes the runs and prints their ids.
    pub fn run(self) -> Outcome {
        let mut store = writable(&self.store)?;
        let runs = match (self.older_than, self.keep) {
            (None, None) => find(&store, &self.runs)?,
            (age, keep) => aged(store.runs(&Page::default()).map_err(refuse)?, age, keep, clock::unix_ms()),
        };
        for run in runs.iter().filter(|_| !self.dry_run) {
            store.remove_run(&run.id).map_err(refuse)?;
        }
        if runs.is_empty() {
            output::note("no run is that old; nothing was removed");
        }
        output::print(&runs.iter().map(|run| format!("{}\n", run.id)).collect::<String>())
    }
}

/// The runs, newest first, that are older than `age` and not among the newest `keep`; excludes those that may be running.
fn aged(runs: Vec<RunInfo>, age: Option<Duration>, keep: Option<usize>, now_unix_ms: u64) -> Vec<RunInfo> {
    let since =
        |age: Duration| now_unix_ms.saturating_sub(u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
    let before = age.map_or(u64::MAX, since);
    let may_run = |run: &RunInfo| {
        run.finished_unix_ms.is_none() && run.started_unix_ms >= since(MAY_RUN) && now_unix_ms > 0
    };
    let older = runs.into_iter().skip(keep.unwrap_or(0)).filter(|run| run.started_unix_ms < before);
    older.filter(|run| !may_run(run)).collect()
}

/// Parses `36h`, `30d`, `8w`.
fn age(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("'{text}' is not an age: give a number with m, h, d or w, for example 36h, 30d or 8w");
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let seconds: u64 = match unit {
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

/// The runs of these names, each once; none if one of them is unknown.
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
    // A missing store is an error here: without one there is nothing to do.
    store.path().map_err(refuse)?;
    store.open()?.ok_or_else(|| exit::usage("--store none has no runs; give a store"))
}

fn nothing_stored(run: &str) -> anyhow::Error {
    exit::usage(format!("no run '{run}'; the store is empty"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000;

    fn run(id: &str, days_ago: u64, finished: bool) -> RunInfo {
        let started_unix_ms = (100 - days_ago) * DAY - 1;
        RunInfo {
            id: id.to_owned(),
            started_unix_ms,
            finished_unix_ms: finished.then_some(started_unix_ms),
            ..RunInfo::default()
        }
    }

    #[test]
    fn what_is_old_goes_but_for_the_newest_and_for_what_may_be_running() {
        let all = || {
            vec![
                run("now", 0, false),
                run("a", 1, true),
                run("b", 10, true),
                run("cut", 20, false),
                run("c", 40, true),
            ]
        };
        let gone = |age: Option<&str>, keep| -> Vec<String> {
            let age = age.map(|text| super::age(text).unwrap());
            aged(all(), age, keep, 100 * DAY).into_iter().map(|run| run.id).collect()
        };
        assert_eq!(gone(Some("30d"), None), ["c"]);
        assert_eq!(gone(Some("2w"), None), ["cut", "c"]);
        assert_eq!(gone(None, Some(2)), ["b", "cut", "c"]);
        assert_eq!(gone(Some("1h"), Some(4)), ["c"]);
        assert_eq!(gone(None, Some(0)), ["a", "b", "cut", "c"], "the one that may be running stays");
        assert!(gone(Some("8w"), None).is_empty());
        for wrong in ["", "30", "d", "-1d", "1y", "30é", "99999999999999999999w", "18446744073709551615w"] {
            assert!(super::age(wrong).unwrap_err().contains("for example 36h, 30d or 8w"), "{wrong}");
        }
    }
}
