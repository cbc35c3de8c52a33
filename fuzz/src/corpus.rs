//! Inputs that are kept: below `corpus/TARGET/`, one a file, each of which was once wrong or leads where others do not.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::parser::Target;

/// The folder of a target's inputs.
pub fn folder(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name)
}

/// Seeds and kept inputs, in a fixed order.
pub fn inputs(target: &Target) -> io::Result<Vec<Vec<u8>>> {
    let mut inputs = (target.seeds)();
    match fs::read_dir(folder(target)) {
        Ok(entries) => {
            let mut paths = entries.map(|e| e.map(|e| e.path())).collect::<io::Result<Vec<_>>>()?;
            paths.sort();
            for path in paths {
                inputs.push(fs::read(path)?);
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(inputs)
}

/// Keeps an input under a name that follows from its bytes.
pub fn keep(target: &Target, prefix: &str, input: &[u8]) -> io::Result<PathBuf> {
    // FNV-1a.
    let hash = input
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    let path = folder(target).join(format!("{prefix}{hash:016x}"));
    fs::create_dir_all(folder(target))?;
    fs::write(&path, input)?;
    Ok(path)
}
