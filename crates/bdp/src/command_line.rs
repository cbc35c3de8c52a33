//! The typed command, as it is stored and printed.

use crate::output;

/// Returns it without the token, which is private, and without `--resume`, which is added if a run can be resumed.
pub fn typed() -> String {
    let mut words = vec!["bdp".to_owned()];
    let mut arguments = std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned());
    while let Some(argument) = arguments.next() {
        if argument == "--token" {
            arguments.next();
        } else if !argument.starts_with("--token=") && argument != "--resume" {
            words.push(output::quote(&argument));
        }
    }
    words.join(" ")
}
