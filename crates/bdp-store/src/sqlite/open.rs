//! Opens a store. A new one is completed under a temporary name and then renamed, so that its path never holds
//! half a store; a file that isn't a sound store is refused before anything in it changes.

use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::failure::{explain, one_line};
use crate::{Error, Result};

/// "bdpS": marks a SQLite file as a store of bdp (`PRAGMA application_id`).
pub const APPLICATION_ID: i32 = 0x6264_7053;

/// Version of the tables (`PRAGMA user_version`); a store of a newer one is refused.
pub const SCHEMA_VERSION: i32 = 3;

/// How long to wait for another process's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of a store that is fully checked before it is written to; that takes about a tenth of a second.
const CHECKED_BYTES: u64 = 64 << 20;

/// The tables of version 1, to which [`FROM_1_TO_2`] and [`FROM_2_TO_3`] add. `record_outcome` answers most queries without parsing the JSON.
const TABLES: &str = "
    CREATE TABLE run (
        seq              INTEGER PRIMARY KEY,
        id               TEXT NOT NULL UNIQUE,
        scenario         TEXT NOT NULL,
        scenario_text    TEXT NOT NULL,
        plan_digest      TEXT NOT NULL,
        planned          INTEGER NOT NULL,
        command          TEXT NOT NULL,
        bdp              TEXT NOT NULL,
        started_unix_ms  INTEGER NOT NULL,
        finished_unix_ms INTEGER
    ) STRICT;
    CREATE TABLE record (
        seq         INTEGER PRIMARY KEY,
        run         INTEGER NOT NULL REFERENCES run (seq),
        case_key    TEXT NOT NULL,
        attempt     INTEGER NOT NULL,
        valid       INTEGER NOT NULL,
        settled     INTEGER NOT NULL,
        goodput_bps REAL,
        schema      TEXT NOT NULL,
        checksum    INTEGER NOT NULL,
        json        TEXT NOT NULL
    ) STRICT;
    CREATE INDEX record_outcome ON record (run, case_key, valid, settled);
";

/// Additions of version 2: runs outside the lab, with labels and measurements.
const FROM_1_TO_2: &str = "
    ALTER TABLE run ADD COLUMN kind TEXT NOT NULL DEFAULT 'lab';
    ALTER TABLE run ADD COLUMN label TEXT;
    CREATE TABLE measurement (
        seq         INTEGER PRIMARY KEY,
        run         INTEGER NOT NULL REFERENCES run (seq),
        case_key    TEXT NOT NULL,
        params      TEXT NOT NULL,
        valid       INTEGER NOT NULL,
        schema      TEXT NOT NULL,
        checksum    INTEGER NOT NULL,
        json        TEXT NOT NULL
    ) STRICT;
    CREATE INDEX measurement_outcome ON measurement (run, case_key, valid);
";

/// Additions of version 3: documents that belong to a run.
const FROM_2_TO_3: &str = "
    CREATE TABLE document (
        seq         INTEGER PRIMARY KEY,
        run         INTEGER NOT NULL REFERENCES run (seq),
        kind        TEXT NOT NULL,
        at_unix_ms  INTEGER NOT NULL,
        checksum    INTEGER NOT NULL,
        json        TEXT NOT NULL
    ) STRICT;
    CREATE INDEX document_of_run ON document (run);
";

/// Returns the statements that let an older store be read as one of this version, without changing the file.
fn read_as_newest(version: i32) -> String {
    let from_1 = if version < 2 { READ_1_AS_2 } else { "" };
    format!("PRAGMA temp_store = MEMORY; {from_1} {READ_2_AS_3}")
}

const READ_2_AS_3: &str = "CREATE TEMP TABLE document (seq INTEGER, run INTEGER, kind TEXT, at_unix_ms INTEGER, checksum INTEGER, json TEXT);";

const READ_1_AS_2: &str = "
    CREATE TEMP VIEW run AS SELECT *, 'lab' AS kind, NULL AS label FROM main.run;
    CREATE TEMP TABLE measurement (
        seq INTEGER, run INTEGER, case_key TEXT, params TEXT, valid INTEGER, schema TEXT, checksum INTEGER, json TEXT
    );
";

/// Opens for reading and writing, creating what is missing.
pub fn for_writing(path: &Path) -> Result<Connection> {
    if !is_there(path)? {
        create(path)?;
    }
    let db = connect(path, Access::Write)?;
    let version = identify(&db, path)?;
    check(&db, path)?;
    keep_durable(&db).map_err(|e| explain("open", path, e))?;
    if version < SCHEMA_VERSION {
        migrate(&db).map_err(|e| explain("bring up to date", path, e))?;
    }
    Ok(db)
}

/// Opens for reading, even if neither the file nor its folder is writable, or the disk is full.
pub fn for_reading(path: &Path) -> Result<Connection> {
    if !is_there(path)? {
        return Err(Error::Missing { path: path.to_owned() });
    }
    // Opened for writing if possible: only then does SQLite remove its log when it closes.
    let db = match connect(path, Access::Write) {
        Err(Error::File { .. } | Error::ReadOnly { .. } | Error::Full { .. }) => {
            // No log can be created here. If there is none to be read either, the file is complete.
            let log_bytes = fs::metadata(beside(path, "-wal")).map_or(0, |meta| meta.len());
            connect(path, if log_bytes == 0 { Access::Immutable } else { Access::Read })
        }
        other => other,
    }?;
    let version = identify(&db, path)?;
    if version < SCHEMA_VERSION {
        db.execute_batch(&read_as_newest(version)).map_err(|e| explain("open", path, e))?;
    }
    db.pragma_update(None, "query_only", true).map_err(|e| explain("open", path, e))?;
    Ok(db)
}

/// Whether there is a file; refuses anything that cannot be a store.
fn is_there(path: &Path) -> Result<bool> {
    let refuse = |what| Err(Error::NotAFile { path: path.to_owned(), what });
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => refuse("a folder"),
        Ok(meta) if !meta.is_file() => refuse("not a regular file"),
        // SQLite would take it for a new database, but a store is never empty, so the file was damaged.
        Ok(meta) if meta.len() == 0 => {
            Err(Error::NotAStore { path: path.to_owned(), detail: "it is empty".into() })
        }
        Ok(_) => Ok(true),
        Err(_) if path.file_name().is_none() => refuse("no file name"),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            if path.symlink_metadata().is_ok() {
                return refuse("a symbolic link to nothing");
            }
            Ok(false)
        }
        Err(source) => Err(Error::File {
            operation: "look at",
            path: path.to_owned(),
            source,
            way_out: "correct its path or permissions, or use another --store PATH",
        }),
    }
}

/// How an existing file is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Write,
    Read,
    /// Without lock or log, as nobody changes it.
    Immutable,
}

/// Connects and reads once, so that an unusable file is detected here.
fn connect(path: &Path, access: Access) -> Result<Connection> {
    let failed = |e: rusqlite::Error| match e.sqlite_error_code() {
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => why_not(path, e),
        _ => explain("open", path, e),
    };
    let db = match access {
        Access::Write => Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE),
        Access::Read => Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY),
        Access::Immutable => Connection::open_with_flags(
            immutable_uri(path),
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
        ),
    }
    .map_err(failed)?;
    // If the file is not writable, SQLite falls back to reading it and would leave a log beside it.
    if access == Access::Write && db.is_readonly("main").map_err(failed)? {
        return Err(Error::ReadOnly { path: path.to_owned() });
    }
    db.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    db.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0)).map_err(failed)?;
    Ok(db)
}

/// Finds out from the system why SQLite is unable to open a file, which SQLite does not say. Only called if SQLite holds no lock on the
/// file in this process, since closing any descriptor of a file drops them (POSIX `fcntl`).
fn why_not(path: &Path, refused: rusqlite::Error) -> Error {
    if let Err(source) = File::open(path) {
        return Error::File {
            operation: "open store",
            path: path.to_owned(),
            source,
            way_out: "correct its permissions or use another --store PATH",
        };
    }
    // The file opens, so the log beside it is what cannot be created.
    let probe = beside(path, &format!(".{:016x}", random()));
    match File::create_new(&probe) {
        Ok(_) => {
            // Remains as an empty file if this fails.
            let _ = fs::remove_file(&probe);
            explain("open", path, refused)
        }
        Err(source) => unwritable_folder(path, source),
    }
}

/// Returns the version of a store; refuses anything else and unknown versions.
fn identify(db: &Connection, path: &Path) -> Result<i32> {
    let number = |pragma| {
        db.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0)).map_err(|e| explain("open", path, e))
    };
    let path = path.to_owned();
    if number("application_id")? != APPLICATION_ID {
        return Err(Error::NotAStore { path, detail: "another program's SQLite database".into() });
    }
    match number("user_version")? {
        found @ 1..=SCHEMA_VERSION => Ok(found),
        found if found > SCHEMA_VERSION => Err(Error::NewerStore { path, found, known: SCHEMA_VERSION }),
        found => Err(Error::Damaged { path, detail: format!("version {found}") }),
    }
}

/// Upgrades an older store in one transaction: if killed meanwhile, it is unchanged.
fn migrate(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch("BEGIN IMMEDIATE")?;
    let migrated = (|| {
        // Another process may have upgraded it first.
        let version = db.pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0))?;
        if version < 2 {
            db.execute_batch(FROM_1_TO_2)?;
        }
        if version < SCHEMA_VERSION {
            db.execute_batch(FROM_2_TO_3)?;
            db.pragma_update(None, "user_version", SCHEMA_VERSION)?;
        }
        db.execute_batch("COMMIT")
    })();
    if migrated.is_err() {
        // The failure itself is reported; a failed rollback adds nothing.
        let _ = db.execute_batch("ROLLBACK");
    }
    migrated
}

/// Checks the structure of a small store; the pages of a larger one are checked as they are read.
fn check(db: &Connection, path: &Path) -> Result<()> {
    let failed = |e| explain("check", path, e);
    // Uses the file's real size, as the size that it states is part of what is checked.
    if fs::metadata(path).is_ok_and(|meta| meta.len() > CHECKED_BYTES) {
        return Ok(());
    }
    let verdict: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(failed)?;
    if verdict == "ok" {
        Ok(())
    } else {
        Err(Error::Damaged { path: path.to_owned(), detail: one_line(&verdict) })
    }
}

/// Makes committed transactions survive a kill or power cut.
fn keep_durable(db: &Connection) -> rusqlite::Result<()> {
    // On a file system without shared memory SQLite keeps its rollback journal. EXTRA is FULL, and also
    // syncs the folder when that journal is removed; with a write-ahead log the two are equivalent.
    db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0))?;
    db.pragma_update(None, "synchronous", "EXTRA")
}

/// Creates an empty store; leaves nothing behind on failure. Another process may do the same meanwhile.
fn create(path: &Path) -> Result<()> {
    let folders = create_folders(path)?;
    let draft = beside(path, &format!(".new-{:016x}", random()));
    let made = draft_store(&draft, path).and_then(|()| {
        publish(&draft, path).map_err(|source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Error::Full { path: path.to_owned() }
            }
            _ => unwritable_folder(path, source),
        })
    });
    for suffix in ["", "-journal", "-wal", "-shm"] {
        // Most of them were never created.
        let _ = fs::remove_file(beside(&draft, suffix));
    }
    if made.is_err() {
        for folder in folders.iter().rev() {
            // Fails, as it should, if another process has put something there.
            let _ = fs::remove_dir(folder);
        }
    }
    made
}

/// Writes an empty store into the file `draft`, which is to become `path`.
fn draft_store(draft: &Path, path: &Path) -> Result<()> {
    // The system says why it cannot be created; SQLite would not.
    File::create_new(draft).map_err(|source| unwritable_folder(path, source))?;
    let fill = |mut db: Connection| {
        let tables = db.transaction()?;
        tables.execute_batch(TABLES)?;
        tables.execute_batch(FROM_1_TO_2)?;
        tables.execute_batch(FROM_2_TO_3)?;
        tables.pragma_update(None, "application_id", APPLICATION_ID)?;
        tables.pragma_update(None, "user_version", SCHEMA_VERSION)?;
        tables.commit()?;
        keep_durable(&db)?;
        // Reading creates the log: this detects a lack of space for it now.
        db.pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0))?;
        db.close().map_err(|(_, e)| e)
    };
    Connection::open_with_flags(draft, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .and_then(fill)
        .map_err(|e| explain("create", path, e))
}

/// Renames the finished draft, unless another process has put a store there first.
fn publish(draft: &Path, path: &Path) -> io::Result<()> {
    let named = match fs::hard_link(draft, path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => copy_new(draft, path),
        linked => linked,
    };
    match named {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Copies to a file that must not exist yet, for file systems without hard links.
fn copy_new(draft: &Path, path: &Path) -> io::Result<()> {
    let mut target = File::create_new(path)?;
    let copied =
        File::open(draft).and_then(|mut d| io::copy(&mut d, &mut target)).and_then(|_| target.sync_all());
    if copied.is_err() {
        // Removes the partial store.
        let _ = fs::remove_file(path);
    }
    copied
}

/// Creates the folders that `path` needs and returns those created, outermost first.
fn create_folders(path: &Path) -> Result<Vec<PathBuf>> {
    let mut missing: Vec<&Path> =
        path.ancestors().skip(1).take_while(|p| !p.as_os_str().is_empty() && !p.exists()).collect();
    missing.reverse();
    let mut made = Vec::new();
    for folder in missing {
        match create_folder(folder) {
            Ok(()) => made.push(folder.to_owned()),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => {
                for folder in made.iter().rev() {
                    let _ = fs::remove_dir(folder);
                }
                return Err(Error::File {
                    operation: "create folder",
                    path: folder.to_owned(),
                    source,
                    way_out: "create it or use another --store PATH",
                });
            }
        }
    }
    Ok(made)
}

/// Creates a folder accessible to the user alone, as the XDG Base Directory Specification asks.
fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn unwritable_folder(path: &Path, source: io::Error) -> Error {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Error::File {
        operation: "write the store in folder",
        path: folder.to_owned(),
        source,
        way_out: "make it writable or use another --store PATH",
    }
}

/// Returns the path with a suffix added to its last component.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns SQLite's URI for a file that nobody changes (sqlite.org/uri.html): it is read without lock or log.
fn immutable_uri(path: &Path) -> String {
    let mut uri = String::from(if path.is_absolute() { "file://" } else { "file:" });
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri + "?immutable=1"
}

/// Returns a random number, from the seed of the standard library's hashers.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_never_replaces_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let (draft, path) = (folder.path().join("draft"), folder.path().join("store"));
        fs::write(&draft, b"whole").unwrap();
        copy_new(&draft, &path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");

        fs::write(&draft, b"another").unwrap();
        assert_eq!(copy_new(&draft, &path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        publish(&draft, &path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
    }

    #[test]
    fn a_copy_that_fails_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        copy_new(&folder.path().join("absent"), &path).unwrap_err();
        assert!(!path.exists());
    }

    #[test]
    fn uri_hides_nothing_from_sqlite() {
        assert_eq!(immutable_uri(Path::new("/a b/c?d#e%.db")), "file:///a%20b/c%3fd%23e%25.db?immutable=1");
        assert_eq!(immutable_uri(Path::new("a/b.db")), "file:a/b.db?immutable=1");
    }
}
