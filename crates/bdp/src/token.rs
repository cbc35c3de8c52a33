//! A server's tokens, as given at either end.

use std::path::Path;

use crate::exit;

/// The token for measurements, from the option, the file, or `BDP_TOKEN`, in this order; `None` if none was given.
pub fn find(option: Option<&str>, file: Option<&Path>) -> anyhow::Result<Option<String>> {
    find_by(option, file, "--token", "BDP_TOKEN")
}

/// The token for tuning, from the option, the file, or `BDP_TUNE_TOKEN`, in this order; `None` if none was given.
pub fn find_tune(option: Option<&str>, file: Option<&Path>) -> anyhow::Result<Option<String>> {
    find_by(option, file, "--tune-token", "BDP_TUNE_TOKEN")
}

/// The token for the page, from the option, the file, or `BDP_PAGE_TOKEN`, in this order; `None` if none was given.
pub fn find_page(option: Option<&str>, file: Option<&Path>) -> anyhow::Result<Option<String>> {
    find_by(option, file, "--token", "BDP_PAGE_TOKEN")
}

fn find_by(
    option: Option<&str>,
    file: Option<&Path>,
    name: &str,
    variable: &str,
) -> anyhow::Result<Option<String>> {
    let (token, whence) = if let Some(token) = option {
        (token.to_owned(), name.to_owned())
    } else if let Some(path) = file {
        let text = std::fs::read_to_string(path)
            .map_err(|e| exit::environment(format!("read token file {}: {e}", path.display())))?;
        (text.lines().next().unwrap_or_default().to_owned(), format!("token file {}", path.display()))
    } else {
        match std::env::var_os(variable) {
            None => return Ok(None),
            Some(token) if token.is_empty() => return Ok(None),
            Some(token) => {
                let token =
                    token.into_string().map_err(|_| exit::usage(format!("{variable} is not UTF-8 text")))?;
                (token, variable.to_owned())
            }
        }
    };
    match token.trim() {
        "" => Err(exit::usage(format!("{whence} contains no token (in a file, the first line is used)"))),
        token => Ok(Some(token.to_owned())),
    }
}
