//! `bdp completions`: what a shell needs to complete bdp's command line.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::{Cli, Outcome, output};

/// Arguments of `bdp completions`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  source <(bdp completions bash)\n  bdp completions zsh > ~/.zfunc/_bdp\n  bdp completions fish > ~/.config/fish/completions/bdp.fish"
)]
pub struct CompletionsArgs {
    /// Which shell
    shell: Shell,
}

impl CompletionsArgs {
    /// Prints the script.
    pub fn run(self) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "bdp", &mut script);
        output::print(&String::from_utf8_lossy(&script))
    }
}
