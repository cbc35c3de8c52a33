//! The store that a command uses.

use std::path::PathBuf;

use bdp_run::job::context::StoreAt;
use bdp_store::{DocumentKind, Error, SqliteStore, Store, StoredDocument};
use bdp_sys::clock;
use serde_json::Value;

use crate::{exit, help, output};

/// Value of `--store` for no store.
const NONE: &str = "none";

/// `--store`.
#[derive(clap::Args, Clone, Default)]
pub struct StoreArgs {
    /// File of the run store, or 'none' [default: bdp/bdp.sqlite in $XDG_DATA_HOME or ~/.local/share]
    #[arg(long, value_name = "PATH", help_heading = help::OUTPUT, hide_short_help = true)]
    store: Option<PathBuf>,
}

impl StoreArgs {
    /// The store at this path, or the default one.
    pub fn at(path: Option<&str>) -> Self {
        Self { store: path.map(PathBuf::from) }
    }

    /// Opens it for writing, creating it if missing; `None` if no store is wanted, or, with a note, if there is no place for the default one.
    pub fn open(&self) -> anyhow::Result<Option<SqliteStore>> {
        let path = match self.path() {
            Err(error @ Error::NoDefaultPath) => {
                output::note(&format!("note: this run is not stored: {error}"));
                return Ok(None);
            }
            path => path.map_err(refuse)?,
        };
        match path.map(SqliteStore::open).transpose() {
            // The store was not requested, and its place can't be written.
            Err(error @ (Error::File { .. } | Error::ReadOnly { .. } | Error::NotAFile { .. }))
                if self.store.is_none() =>
            {
                output::note(&format!("note: this run is not stored: {error}"));
                Ok(None)
            }
            opened => opened.map_err(refuse),
        }
    }

    /// Opens it for reading; `None` if the default store does not exist, or no store is wanted.
    pub fn open_to_read(&self) -> anyhow::Result<Option<SqliteStore>> {
        let Some(path) = self.path().map_err(refuse)? else { return Ok(None) };
        match SqliteStore::open_to_read(path) {
            Err(Error::Missing { .. }) if self.store.is_none() => Ok(None),
            other => other.map(Some).map_err(refuse),
        }
    }

    /// Whether `--store` was given.
    pub fn is_given(&self) -> bool {
        self.store.is_some()
    }

    /// The path that was given.
    pub fn given(&self) -> Option<String> {
        self.store
            .as_ref()
            .filter(|path| path.as_os_str() != NONE)
            .map(|path| path.to_string_lossy().into_owned())
    }

    /// The words that give it; none if none were given.
    pub fn words(&self) -> Vec<String> {
        let path = self.store.iter().map(|path| path.to_string_lossy().into_owned());
        path.flat_map(|path| ["--store".to_owned(), path]).collect()
    }

    /// ` --store PATH` for a command that continues with one of its runs; empty if the path was not given.
    pub fn option(&self) -> String {
        self.given().map_or_else(String::new, |path| format!(" --store {}", output::quote(&path)))
    }

    /// The command that shows a run of this store.
    pub fn show_command(&self, run: &str) -> String {
        format!("bdp show {run}{}", self.option())
    }

    /// Stores a document with one of its runs, if there is a store.
    pub fn keep(&self, run: &str, kind: DocumentKind, document: Value) -> anyhow::Result<()> {
        let Some(mut store) = self.open()? else { return Ok(()) };
        let document = StoredDocument { kind, at_unix_ms: clock::unix_ms(), document };
        store.append_document(run, &document).map_err(refuse)
    }

    /// Its path; `None` if no store is wanted.
    pub fn path(&self) -> Result<Option<PathBuf>, Error> {
        match &self.store {
            Some(path) if path.as_os_str() == NONE => Ok(None),
            Some(path) => Ok(Some(path.clone())),
            None => SqliteStore::default_path().map(Some),
        }
    }
}

/// The store of a job's run.
pub fn of_job(store: &mut Option<SqliteStore>) -> Option<StoreAt<'_>> {
    store.as_mut().map(StoreAt::of)
}

/// Gives a store error its exit code: an unknown run and a file of another kind are wrong requests, an unstorable
/// record is a bug, and the rest is refused by the environment.
pub fn refuse(error: Error) -> anyhow::Error {
    match error {
        Error::UnknownRun { .. } | Error::AmbiguousRun { .. } | Error::NotAnExport { .. } => {
            exit::usage(error.to_string())
        }
        Error::NotKept { .. } => error.into(),
        _ => exit::environment(error.to_string()),
    }
}
