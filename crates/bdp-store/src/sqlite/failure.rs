//! Failures of SQLite as errors of this crate.

use std::path::Path;

use rusqlite::{ErrorCode, ffi};

use crate::Error;

/// Names the cause of a failure of SQLite, and the way out.
pub(super) fn explain(operation: &'static str, path: &Path, source: rusqlite::Error) -> Error {
    let path = path.to_owned();
    let Some(failure) = source.sqlite_error() else {
        // What is left are values that no column of a store holds.
        return Error::Damaged { path, detail: one_line(&source.to_string()) };
    };
    match failure.code {
        ErrorCode::DatabaseCorrupt => Error::Damaged { path, detail: one_line(&source.to_string()) },
        ErrorCode::NotADatabase => Error::NotAStore { path, detail: "not a SQLite database".into() },
        ErrorCode::DiskFull => Error::Full { path },
        // The index of the write-ahead log is the one file whose growth SQLite reports without its cause.
        _ if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE => Error::Full { path },
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Error::Busy { path },
        ErrorCode::ReadOnly => Error::ReadOnly { path },
        _ => Error::Sqlite { operation, path, source },
    }
}

/// Without its line breaks.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
