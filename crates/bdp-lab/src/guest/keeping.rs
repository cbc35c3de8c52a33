//! Orders to a keeper: the first line of its standard input, which stays open as long as bdp runs.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ChildStdin;

use serde::{Deserialize, Serialize};

use super::spec::GuestSpec;

/// Object of a keeper.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Keeping {
    /// A guest: booted, watched, and ended when bdp ends.
    Guest { spec: GuestSpec, root: PathBuf },
    /// A folder that is removed when bdp ends.
    Folder(PathBuf),
}

impl Keeping {
    /// Sends the order.
    pub(super) fn write_to(&self, input: Option<&mut ChildStdin>) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        input.ok_or(io::ErrorKind::BrokenPipe)?.write_all(&line)
    }
}
