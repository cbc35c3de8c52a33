//! `bdp completions`: shell completion for bdp. Options and subcommands are in the scripts; runs, labels,
//! scenarios and congestion controls are looked up when needed (`complete.rs`).

use clap::Command;
use clap_complete::Shell;

use crate::exit::Outcome;
use crate::output;

/// Arguments of `bdp completions`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  source <(bdp completions bash)\n  bdp completions zsh > ~/.zfunc/_bdp\n  bdp completions fish > ~/.config/fish/completions/bdp.fish"
)]
pub struct CompletionsArgs {
    /// Shell
    shell: Shell,
}

/// Asks bdp first; the script's own function answers if bdp knows nothing.
const BASH: &str = r#"
_bdp() {
    local IFS=$'\n' values
    values=$(bdp __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if [[ -n $values ]]; then
        COMPREPLY=($(compgen -W "$values" -- "${COMP_WORDS[COMP_CWORD]}"))
    else
        unset IFS
        _bdp_options "$@"
    fi
}
"#;

const ZSH: &str = r#"
_bdp() {
    local -a values
    values=(${(f)"$(bdp __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#values )); then
        compadd -a values
    else
        _bdp_options "$@"
    fi
}
"#;

const FISH: &str =
    "complete -c bdp -a '(bdp __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'\n";

impl CompletionsArgs {
    /// Prints the completion script of a command.
    pub fn run(self, mut root: Command) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut root, "bdp", &mut script);
        let script = String::from_utf8_lossy(&script);
        output::print(&match self.shell {
            Shell::Bash => wrapped(&script, BASH, "\nif [[ "),
            Shell::Zsh => wrapped(&script, ZSH, "\nif [ \"$funcstack[1]\""),
            Shell::Fish => format!("{script}{FISH}"),
            _ => script.into_owned(),
        })
    }
}

/// The script with another function in place of its own, defined before the script ends with `ending`.
fn wrapped(script: &str, function: &str, ending: &str) -> String {
    let renamed = script.replacen("_bdp() {", "_bdp_options() {", 1);
    match renamed.rfind(ending) {
        Some(at) => format!("{}{function}{}", &renamed[..at], &renamed[at..]),
        None => renamed + function,
    }
}
