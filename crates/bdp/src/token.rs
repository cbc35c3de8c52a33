//! The token of a server, as it is given at either end.

use std::path::Path;

use crate::exit;

/// The token that was given by option, by file, or by `BDP_TOKEN`, in this order; `None` where none was.
pub fn find(option: Option<&str>, file: Option<&Path>) -> anyhow::Result<Option<String>> {
    let (token, whence) = if let Some(token) = option {
        (token.to_owned(), "--token".to_owned())
    } else if let Some(path) = file {
        let text = std::fs::read_to_string(path)
            .map_err(|e| exit::environment(format!("read token file {}: {e}", path.display())))?;
        (text.lines().next().unwrap_or_default().to_owned(), format!("token file {}", path.display()))
    } else {
        match std::env::var_os("BDP_TOKEN") {
            None => return Ok(None),
            Some(token) if token.is_empty() => return Ok(None),
            Some(token) => {
                let token = token.into_string().map_err(|_| exit::usage("BDP_TOKEN is not UTF-8 text"))?;
                (token, "BDP_TOKEN".to_owned())
            }
        }
    };
    match token.trim() {
        "" => Err(exit::usage(format!("{whence} holds no token (of a file the first line is taken)"))),
        token => Ok(Some(token.to_owned())),
    }
}
