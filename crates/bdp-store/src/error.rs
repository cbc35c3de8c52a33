//! Why the store refused, in one line: the operation, its operand and the way out.

use std::io;
use std::path::PathBuf;

/// The result of asking a store.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the store refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No place for the store follows from the environment.
    #[error(
        "no folder for the store: HOME, XDG_DATA_HOME and XDG_STATE_HOME are not set; set one of them or \
         use --store PATH"
    )]
    NoDefaultPath,

    /// The store was to be read, and there is none.
    #[error("no store at {}; use another --store PATH, or start a run, which creates it", path.display())]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },

    /// The path names something that can't be a store.
    #[error("{} is {what}; use another --store PATH", path.display())]
    NotAFile {
        /// What was given.
        path: PathBuf,
        /// What it is, with its article.
        what: &'static str,
    },

    /// The file isn't a SQLite database.
    #[error("{} is not a bdp store ({detail}); move it away or use another --store PATH", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        detail: String,
    },

    /// The file is a store whose content contradicts itself.
    #[error(
        "store {} is damaged ({detail}) and was not changed; move it away or use another --store PATH",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },

    /// A newer bdp wrote the store.
    #[error(
        "store {} was written by a newer bdp (version {found}, this one reads {known}); \
         update bdp or use another --store PATH",
        path.display()
    )]
    NewerStore {
        /// The file.
        path: PathBuf,
        /// The version it states.
        found: i32,
        /// The newest that is known here.
        known: i32,
    },

    /// A file or folder could not be used.
    #[error("cannot {operation} {}: {source}; {way_out}", path.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
        /// What helps.
        way_out: &'static str,
    },

    /// The store may be read but not written.
    #[error("store {} cannot be written: it is read-only; change its permissions or use another --store PATH", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },

    /// No room is left. What was stored before is still there.
    #[error(
        "no space left to write {}; free some or use --store PATH on another disk (stored runs are intact)",
        path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
    },

    /// Another process kept the store locked for longer than one waits.
    #[error("store {} is locked by another process; wait for it to end or use another --store PATH", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },

    /// SQLite refused for another reason.
    #[error("cannot {operation} store {}: {source}; check its disk and the limit on file sizes (ulimit -f), or use another --store PATH", path.display())]
    Sqlite {
        /// What was tried.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: rusqlite::Error,
    },

    /// No run has this id.
    #[error("no run '{given}'; {}", offer(candidates, "newest runs:", "the store is empty"))]
    UnknownRun {
        /// What was asked for.
        given: String,
        /// The newest runs there are.
        candidates: Vec<String>,
    },

    /// Several runs' ids begin so.
    #[error("run '{given}' is ambiguous; {}", offer(candidates, "matches:", "give more digits"))]
    AmbiguousRun {
        /// What was asked for.
        given: String,
        /// The runs that it may mean.
        candidates: Vec<String>,
    },

    /// A newer bdp wrote the record.
    #[error(
        "the record of case '{case_key}' in run {run} has schema {schema}, this bdp reads up to {known}; update bdp"
    )]
    NewerRecord {
        /// Its run.
        run: String,
        /// Its case.
        case_key: String,
        /// The schema it states.
        schema: String,
        /// The newest that is known here.
        known: &'static str,
    },

    /// The record is there but isn't what was stored.
    #[error("the record of case '{case_key}' in run {run} of store {} is damaged ({detail})", path.display())]
    UnreadableRecord {
        /// The file.
        path: PathBuf,
        /// Its run.
        run: String,
        /// Its case.
        case_key: String,
        /// What is wrong with it.
        detail: String,
    },

    /// Lines that should be of exported runs are not, or were cut short.
    #[error("line {line} of the exported runs is invalid: {detail}; use the output of 'bdp runs export'")]
    NotAnExport {
        /// Which, from 1.
        line: u64,
        /// What is wrong with it.
        detail: String,
    },

    /// Exported runs could not be read or written.
    #[error("cannot {operation} exported runs: {source}")]
    Stream {
        /// What was tried.
        operation: &'static str,
        /// Why it failed.
        source: io::Error,
    },

    /// The record would not be read back as it is, so it was not added. The one who made it is at fault.
    #[error("the record of case '{case_key}' cannot be stored: {detail}")]
    NotKept {
        /// Its case.
        case_key: String,
        /// What can't be kept.
        detail: String,
    },
}

/// Ids behind their introduction, or what is said where there are none.
fn offer(ids: &[String], introduction: &str, otherwise: &str) -> String {
    if ids.is_empty() { otherwise.to_owned() } else { format!("{introduction} {}", ids.join(", ")) }
}
