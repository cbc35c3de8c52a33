//! Errors of jobs as command-line errors.

use bdp_run::RunError;

use crate::output::tame;
use crate::{exit, store};

/// Gives an error of a job its exit code.
pub fn of(error: RunError) -> anyhow::Error {
    match error {
        RunError::Store(error) => store::refuse(error),
        error if error.is_request() => exit::usage(error.to_string()),
        error => exit::environment(tame(&error.to_string())),
    }
}
