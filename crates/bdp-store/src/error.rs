//! Errors of the store, each in one line: the operation, its object and the remedy.

use std::io;
use std::path::PathBuf;

/// The result of a store operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The environment does not determine a place for the store.
    #[error(
        "no folder for the store: HOME, XDG_DATA_HOME and XDG_STATE_HOME are not set; set one of them or \
         use --store PATH"
    )]
    NoDefaultPath,

    /// The store to be read does not exist.
    #[error("no store at {}; use another --store PATH, or start a run, which creates it", path.display())]
    Missing {
        /// Expected path.
        path: PathBuf,
    },

    /// The path is not one of a store file.
    #[error("{} is {what}; use another --store PATH", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is, with its article.
        what: &'static str,
    },

    /// The file is not a SQLite database.
    #[error("{} is not a bdp store ({detail}); move it away or use another --store PATH", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        detail: String,
    },

    /// The store's content is inconsistent.
    #[error(
        "store {} is damaged ({detail}) and was not changed; move it away or use another --store PATH",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The inconsistency.
        detail: String,
    },

    /// The store was written by a newer bdp.
    #[error(
        "store {} was written by a newer bdp (version {found}, this one reads {known}); \
         update bdp or use another --store PATH",
        path.display()
    )]
    NewerStore {
        /// The file.
        path: PathBuf,
        /// Version of the store.
        found: i32,
        /// Newest version known here.
        known: i32,
    },

    /// A file or folder cannot be used.
    #[error("cannot {operation} {}: {source}; {way_out}", path.display())]
    File {
        /// The operation that failed.
        operation: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
        /// The remedy.
        way_out: &'static str,
    },

    /// The store is read-only.
    #[error("store {} cannot be written: it is read-only; change its permissions or use another --store PATH", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },

    /// The disk is full. What was stored before is intact.
    #[error(
        "no space left to write {}; free some or use --store PATH on another disk (stored runs are intact)",
        path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
    },

    /// Another process held the store's lock for too long.
    #[error("store {} is locked by another process; wait for it to end or use another --store PATH", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },

    /// Another SQLite error.
    #[error("cannot {operation} store {}: {source}; check its disk and the limit on file sizes (ulimit -f), or use another --store PATH", path.display())]
    Sqlite {
        /// The operation that failed.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: rusqlite::Error,
    },

    /// No run has this id.
    #[error("no run '{given}'; {}", offer(candidates, "newest runs:", "the store is empty"))]
    UnknownRun {
        /// The id given.
        given: String,
        /// The newest runs.
        candidates: Vec<String>,
    },

    /// The prefix matches the ids of several runs.
    #[error("run '{given}' is ambiguous; {}", offer(candidates, "matches:", "give more digits"))]
    AmbiguousRun {
        /// The prefix given.
        given: String,
        /// The matching runs.
        candidates: Vec<String>,
    },

    /// The record was written by a newer bdp.
    #[error(
        "the record of case '{case_key}' in run {run} has schema {schema}, this bdp reads up to {known}; update bdp"
    )]
    NewerRecord {
        /// Id of the run.
        run: String,
        /// Key of the case.
        case_key: String,
        /// Schema of the record.
        schema: String,
        /// Newest schema known here.
        known: &'static str,
    },

    /// The record differs from what was stored.
    #[error("the record of case '{case_key}' in run {run} of store {} is damaged ({detail})", path.display())]
    UnreadableRecord {
        /// The file.
        path: PathBuf,
        /// Id of the run.
        run: String,
        /// Key of the case.
        case_key: String,
        /// The damage.
        detail: String,
    },

    /// The lines are not a complete export of runs.
    #[error("line {line} of the exported runs is invalid: {detail}; use the output of 'bdp runs export'")]
    NotAnExport {
        /// Line number, from 1.
        line: u64,
        /// The error in that line.
        detail: String,
    },

    /// Exported runs cannot be read or written.
    #[error("cannot {operation} exported runs: {source}")]
    Stream {
        /// The operation that failed.
        operation: &'static str,
        /// The cause.
        source: io::Error,
    },

    /// The record would not be read back unchanged, so it was not added. This is a bug in its producer.
    #[error("the record of case '{case_key}' cannot be stored: {detail}")]
    NotKept {
        /// Key of the case.
        case_key: String,
        /// What cannot be stored.
        detail: String,
    },
}

/// Lists ids after an introduction; returns `otherwise` if there are none.
fn offer(ids: &[String], introduction: &str, otherwise: &str) -> String {
    if ids.is_empty() { otherwise.to_owned() } else { format!("{introduction} {}", ids.join(", ")) }
}
