//! What can't be a store, or can't be used, is refused in one line with the way out, and is left as it was.

use std::fs;
use std::path::{Path, PathBuf};

use bdp_store::{Error, SqliteStore, Store};
use tempfile::TempDir;

use crate::samples::{record, run};

/// A folder with a store of a run and twenty records in it.
fn filled() -> (TempDir, PathBuf, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bdp.sqlite");
    let mut store = SqliteStore::open(&path).unwrap();
    let id = store.begin_run(&run("a", "d", 1)).unwrap();
    for i in 0..20 {
        store.append(&id, &format!("#{i}"), &record(), true).unwrap();
    }
    (folder, path, id)
}

/// Opens and expects a refusal: one line that names the path and the option, with nothing changed on disk.
#[track_caller]
fn refused(path: &Path) -> Error {
    let folder = path.parent().unwrap();
    let before = content(folder);
    let error = SqliteStore::open(path).expect_err("this is refused");
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    assert!(text.contains("--store PATH"), "{text}");
    assert!(text.contains(folder.to_str().unwrap()), "{text}");
    assert!(content(folder) == before, "something changed in the folder: {text}");
    error
}

/// Everything below a folder, with the bytes of its files.
fn content(folder: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut all = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return all };
    for path in entries.map(|e| e.unwrap().path()) {
        if path.is_dir() {
            all.extend(content(&path));
        }
        all.push((path.clone(), fs::read(&path).ok()));
    }
    all.sort();
    all
}

#[test]
fn a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    fs::create_dir(&path).unwrap();
    let error = refused(&path);
    assert!(error.to_string().contains("is a folder"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_device_or_a_link_to_nothing() {
    let error = SqliteStore::open("/dev/null").unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("link");
    std::os::unix::fs::symlink(folder.path().join("nothing"), &path).unwrap();
    let error = refused(&path);
    assert!(error.to_string().contains("symbolic link to nothing"), "{error}");
}

#[test]
fn a_path_through_a_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), b"text").unwrap();
    let error = SqliteStore::open(folder.path().join("file/bdp.sqlite")).unwrap_err();
    assert!(matches!(error, Error::File { .. }), "{error:?}");
    assert!(error.to_string().contains("--store PATH"), "{error}");
}

#[test]
fn a_file_that_is_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    for text in ["x".to_owned(), "not a database\n".repeat(1000), "SQLite format 3\0".repeat(1000)] {
        fs::write(&path, &text).unwrap();
        let error = refused(&path);
        assert!(matches!(error, Error::NotAStore { .. }), "{error:?}");
    }
    fs::write(&path, b"").unwrap();
    let error = refused(&path);
    assert!(error.to_string().contains("empty"), "{error}");
}

#[test]
fn another_programs_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bookmarks.sqlite");
    for marked in ["", "PRAGMA application_id = 252006673;"] {
        let other = rusqlite::Connection::open(&path).unwrap();
        other
            .execute_batch(&format!("{marked} DROP TABLE IF EXISTS run; CREATE TABLE run (id TEXT);"))
            .unwrap();
        drop(other);
        let error = refused(&path);
        assert!(error.to_string().contains("another program's"), "{error}");
    }
}

#[test]
fn a_store_of_a_newer_version() {
    let (_folder, path, id) = filled();
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 4).unwrap();
    drop(newer);
    let error = refused(&path);
    assert!(matches!(error, Error::NewerStore { found: 4, known: 3, .. }), "{error:?}");
    assert!(error.to_string().contains("update bdp"), "{error}");
    assert!(matches!(SqliteStore::open_to_read(&path), Err(Error::NewerStore { .. })));

    let older = rusqlite::Connection::open(&path).unwrap();
    older.pragma_update(None, "user_version", 3).unwrap();
    drop(older);
    assert_eq!(SqliteStore::open(&path).unwrap().records(&id).unwrap().len(), 20);
}

/// Each page but the first, overwritten in turn, is noticed when opening or when reading, and never by a panic.
#[test]
fn an_overwritten_page() {
    const PAGE: usize = 4096;
    let (folder, path, id) = filled();
    let sound = fs::read(&path).unwrap();
    assert!(sound.len() > 20 * PAGE, "{}", sound.len());
    let original = SqliteStore::open(&path).unwrap().records(&id).unwrap();
    let mut refused_at_once = 0;
    for page in 1..sound.len() / PAGE {
        let mut damaged = sound.clone();
        damaged[page * PAGE..(page + 1) * PAGE].fill(0xa5);
        fs::write(&path, &damaged).unwrap();
        match SqliteStore::open(&path) {
            Err(error) => {
                assert!(matches!(error, Error::Damaged { .. }), "page {page}: {error:?}");
                assert!(error.to_string().contains("move it away or use another --store PATH"), "{error}");
                refused_at_once += 1;
                assert!(fs::read(&path).unwrap() == damaged, "page {page}: the damaged file was changed");
            }
            Ok(store) => match store.records(&id) {
                Err(Error::UnreadableRecord { .. } | Error::Damaged { .. }) => {}
                Err(error) => panic!("page {page}: {error:?}"),
                // Nothing of the records was on the page; what is read is what was stored.
                Ok(records) => assert!(records == original, "page {page}: misread"),
            },
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "page {page}: debris");
    }
    assert!(refused_at_once > 0);
}

#[test]
fn an_overwritten_first_page() {
    let (_folder, path, _) = filled();
    let sound = fs::read(&path).unwrap();
    // The header whole, the magic alone, the root of the schema.
    for (from, to) in [(0, 100), (0, 16), (100, 4096)] {
        let mut damaged = sound.clone();
        damaged[from..to].fill(0xa5);
        fs::write(&path, &damaged).unwrap();
        let error = refused(&path);
        assert!(matches!(error, Error::NotAStore { .. } | Error::Damaged { .. }), "{from}..{to}: {error:?}");
    }
}

#[test]
fn a_store_cut_short() {
    let (_folder, path, _) = filled();
    let sound = fs::read(&path).unwrap();
    for length in [1, 50, 4096, 5000, sound.len() / 2, sound.len() - 4096] {
        fs::write(&path, &sound[..length]).unwrap();
        let error = refused(&path);
        assert!(matches!(error, Error::NotAStore { .. } | Error::Damaged { .. }), "{length}: {error:?}");
    }
}

#[test]
fn reading_makes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/bdp.sqlite");
    let error = SqliteStore::open_to_read(&path).unwrap_err();
    assert!(matches!(error, Error::Missing { .. }), "{error:?}");
    assert_eq!(content(folder.path()), []);
}

#[test]
fn writing_makes_the_folders_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/bdp.sqlite");
    SqliteStore::open(&path).unwrap().begin_run(&run("a", "d", 1)).unwrap();
    assert_eq!(SqliteStore::open_to_read(&path).unwrap().count_runs().unwrap(), 1);
}

#[test]
fn what_was_opened_to_read_is_not_written() {
    let (_folder, path, id) = filled();
    let mut store = SqliteStore::open_to_read(&path).unwrap();
    let error = store.append(&id, "#99", &record(), true).unwrap_err();
    assert!(matches!(error, Error::ReadOnly { .. }), "{error:?}");
}

/// Permissions mean nothing to root, so these run as somebody else, in a process of their own.
#[cfg(unix)]
mod permissions {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    const INSIDE: &str = "BDP_TEST_UNPRIVILEGED";
    const NOBODY: u32 = 65534;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Whether the caller may go on; where it is root, the test is run again as nobody, and has passed there.
    fn unprivileged(test: &str) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let probe = folder.path().join("probe");
        fs::write(&probe, b"").unwrap();
        mode(&probe, 0o000);
        if fs::File::open(&probe).is_err() {
            return true;
        }
        assert!(std::env::var_os(INSIDE).is_none(), "nobody may read what is forbidden to all");
        // The binary may be where nobody can't reach it. Another process copies it: a child that some other test
        // forks here meanwhile would inherit the open copy, and keep it from being run ("text file busy").
        let copy = folder.path().join("test");
        assert!(
            Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&copy).status().unwrap().success()
        );
        mode(folder.path(), 0o755);
        mode(&copy, 0o755);
        let output = Command::new(&copy)
            .args(["--exact", &format!("refusals::permissions::{test}")])
            .env(INSIDE, "yes")
            .env("TMPDIR", "/tmp")
            .current_dir("/")
            .uid(NOBODY)
            .gid(NOBODY)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        false
    }

    #[test]
    fn a_store_that_may_not_be_read() {
        if !unprivileged("a_store_that_may_not_be_read") {
            return;
        }
        let (_folder, path, _) = filled();
        mode(&path, 0o000);
        let error = refused(&path);
        assert!(matches!(error, Error::File { .. }), "{error:?}");
        assert!(error.to_string().contains("ermission denied"), "{error}");
        assert!(matches!(SqliteStore::open_to_read(&path), Err(Error::File { .. })));
    }

    #[test]
    fn a_store_that_may_only_be_read() {
        if !unprivileged("a_store_that_may_only_be_read") {
            return;
        }
        let (folder, path, id) = filled();
        mode(&path, 0o444);
        let error = refused(&path);
        assert!(matches!(error, Error::ReadOnly { .. }), "{error:?}");
        assert_eq!(SqliteStore::open_to_read(&path).unwrap().records(&id).unwrap().len(), 20);
        assert_eq!(content(folder.path()).len(), 1, "reading left something behind");
    }

    #[test]
    fn a_folder_that_may_only_be_read() {
        if !unprivileged("a_folder_that_may_only_be_read") {
            return;
        }
        let (folder, path, id) = filled();
        mode(folder.path(), 0o555);
        let error = refused(&path);
        assert!(error.to_string().contains("ermission denied"), "{error}");
        // The store can still be read, file writable or not, and nothing is left beside it.
        for file in [0o644, 0o444] {
            mode(&path, file);
            assert_eq!(SqliteStore::open_to_read(&path).unwrap().records(&id).unwrap().len(), 20);
        }
        let error = refused(&folder.path().join("new.sqlite"));
        assert!(error.to_string().contains("ermission denied"), "{error}");
        let error = SqliteStore::open(folder.path().join("new/er/bdp.sqlite")).unwrap_err();
        assert!(error.to_string().contains("cannot create folder"), "{error}");
        mode(folder.path(), 0o755);
    }
}
