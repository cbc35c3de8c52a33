//! The store that a command works on.

use std::path::PathBuf;

use bdp_store::{Error, SqliteStore};

use crate::{exit, help, output};

/// `--store`.
#[derive(clap::Args)]
pub struct StoreArgs {
    /// Store of runs [default: bdp/bdp.sqlite in $XDG_DATA_HOME or ~/.local/share]
    #[arg(long, value_name = "PATH", help_heading = help::OUTPUT, hide_short_help = true)]
    store: Option<PathBuf>,
}

impl StoreArgs {
    /// Opens it to write, and makes it where there is none.
    pub fn open(&self) -> anyhow::Result<SqliteStore> {
        SqliteStore::open(self.path()?).map_err(refuse)
    }

    /// Whether `--store` was given.
    pub fn is_given(&self) -> bool {
        self.store.is_some()
    }

    /// The path that was given.
    pub fn given(&self) -> Option<String> {
        self.store.as_ref().map(|path| path.to_string_lossy().into_owned())
    }

    /// The command that shows a run of this store.
    pub fn show_command(&self, run: &str) -> String {
        match &self.store {
            Some(path) => format!("bdp show {run} --store {}", output::quote(&path.to_string_lossy())),
            None => format!("bdp show {run}"),
        }
    }

    /// Opens it to read; `None` where nothing was ever stored in the default place.
    pub fn open_to_read(&self) -> anyhow::Result<Option<SqliteStore>> {
        match SqliteStore::open_to_read(self.path()?) {
            Err(Error::Missing { .. }) if self.store.is_none() => Ok(None),
            other => other.map(Some).map_err(refuse),
        }
    }

    /// Where it is.
    pub fn path(&self) -> anyhow::Result<PathBuf> {
        self.store.clone().map_or_else(|| SqliteStore::default_path().map_err(refuse), Ok)
    }
}

/// Gives an error of the store its exit code: naming no run is a wrong request, a record that can't be kept our bug,
/// and for the rest the environment refused.
pub fn refuse(error: Error) -> anyhow::Error {
    match error {
        Error::UnknownRun { .. } | Error::AmbiguousRun { .. } => exit::usage(error.to_string()),
        Error::NotKept { .. } => error.into(),
        _ => exit::environment(error.to_string()),
    }
}
