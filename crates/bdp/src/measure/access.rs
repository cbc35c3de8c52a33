//! The credentials of a command that measures as one of its steps.

use std::path::PathBuf;

use bdp_run::measure::session::Credentials;

use crate::{help, token};

/// What lets the near end in.
#[derive(clap::Args)]
pub struct AccessArgs {
    /// Token printed by the server; other users can see command lines, so prefer BDP_TOKEN or --token-file
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file", help_heading = help::ACCESS)]
    token: Option<String>,

    /// File whose first line is the token
    #[arg(long, value_name = "FILE", help_heading = help::ACCESS)]
    token_file: Option<PathBuf>,
}

impl AccessArgs {
    /// The credentials for the server.
    pub fn credentials(&self) -> anyhow::Result<Credentials> {
        Ok(Credentials {
            token: token::find(self.token.as_deref(), self.token_file.as_deref())?,
            login: None,
        })
    }
}
