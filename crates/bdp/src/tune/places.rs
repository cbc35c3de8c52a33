//! The journals' location, and refusals as command-line errors.

use std::path::PathBuf;

use bdp_tune::{HostWorld, Places, Refusal};

use crate::{exit, help};

/// Environment variable of the journals' folder, if no option gives it.
const JOURNAL: &str = "BDP_TUNE_JOURNAL";
/// Environment variable of another file than that in `/etc/sysctl.d` for persistent settings.
const PERSISTENT_FILE: &str = "BDP_TUNE_SYSCTL_FILE";

/// Arguments that name the journals' folder.
#[derive(clap::Args)]
pub struct PlaceArgs {
    /// Folder of the tuning journals [default: $BDP_TUNE_JOURNAL, or /var/lib/bdp/tune]
    #[arg(long, value_name = "DIR", help_heading = help::OUTPUT)]
    journal: Option<PathBuf>,
}

impl PlaceArgs {
    /// This host, with its journals in the option's folder.
    pub fn world(&self) -> anyhow::Result<HostWorld> {
        world(self.journal.clone())
    }
}

/// This host, with its journals in a folder, or in that of the environment.
pub fn world(folder: Option<PathBuf>) -> anyhow::Result<HostWorld> {
    Ok(HostWorld::new(places(folder)?, super::guard::command()))
}

/// Location of this host's journals.
pub fn places(folder: Option<PathBuf>) -> anyhow::Result<Places> {
    let named = |variable| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let places = Places::default();
    let folder = folder.or_else(|| named(JOURNAL)).unwrap_or(places.folder);
    let persistent_file = named(PERSISTENT_FILE).unwrap_or(places.persistent_file);
    let absolute = |path: PathBuf| {
        std::path::absolute(&path).map_err(|e| exit::usage(format!("cannot use '{}': {e}", path.display())))
    };
    Ok(Places { folder: absolute(folder)?, persistent_file: absolute(persistent_file)? })
}

/// Turns a refusal into an error with its exit code.
pub fn refused(doing: &str, refusal: &Refusal) -> anyhow::Error {
    let text = format!("{doing}: {refusal}");
    if refusal.is_of_request() { exit::usage(text) } else { exit::environment(text) }
}
