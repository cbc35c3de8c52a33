//! Exports that were cut off or changed: read or refused by their line, never a panic.

use bdp_store::{Error, SqliteStore, Store, export, import};

use crate::samples::{measured, record, run};

#[test]
fn damaged_exports_are_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::open(folder.path().join("s.sqlite")).unwrap();
    let id = store.begin_run(&run("a", "d", 1)).unwrap();
    store.append(&id, "a", &record(), true).unwrap();
    store.append_measurement(&id, &measured("#1")).unwrap();
    let mut text = Vec::new();
    export(&store, &store.run(&id).unwrap(), "0.1.0", &mut text).unwrap();
    let (mut read, mut refused) = (0, 0);
    let mut try_one = |bytes: &[u8]| match bdp_store::read(bytes, &mut |_| Ok(())) {
        Ok(()) => read += 1,
        Err(Error::NotAnExport { line, .. }) => {
            assert!((1..=bytes.len() + 1).contains(&(line as usize)));
            refused += 1;
        }
        // A digit of the schema may have become another.
        Err(Error::NewerRecord { .. }) => refused += 1,
        Err(error) => panic!("{error}"),
    };
    // Prime steps, so that every kind of place is met.
    for at in (0..text.len()).step_by(37) {
        try_one(&text[..at]);
        for with in [b'9', b'-', b'"', b'{', b']', b'\n', 0xff] {
            let mut changed = text.clone();
            changed[at] = with;
            try_one(&changed);
        }
    }
    assert!(read > 0 && refused > 100, "{read} read, {refused} refused");
    // Nothing of one that is cut short enters a store.
    let mut other = SqliteStore::open(folder.path().join("other.sqlite")).unwrap();
    assert!(import(&mut other, &text[..text.len() - 3]).is_err());
    assert!(other.run(&id).is_err());
}
