//! Converts SQLite failures to errors of this crate.

use std::path::Path;

use rusqlite::{ErrorCode, ffi};

use crate::Error;

/// Returns an error with the cause of an SQLite failure and the remedy.
pub(super) fn explain(operation: &'static str, path: &Path, source: rusqlite::Error) -> Error {
    let path = path.to_owned();
    let Some(failure) = source.sqlite_error() else {
        // The remaining errors are values that no column of a store contains.
        return Error::Damaged { path, detail: one_line(&source.to_string()) };
    };
    match failure.code {
        ErrorCode::DatabaseCorrupt => Error::Damaged { path, detail: one_line(&source.to_string()) },
        ErrorCode::NotADatabase => Error::NotAStore { path, detail: "not a SQLite database".into() },
        ErrorCode::DiskFull => Error::Full { path },
        // SQLite reports a failed growth without its cause only for the index of the write-ahead log.
        _ if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE => Error::Full { path },
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Error::Busy { path },
        ErrorCode::ReadOnly => Error::ReadOnly { path },
        _ => Error::Sqlite { operation, path, source },
    }
}

/// Removes line breaks.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
