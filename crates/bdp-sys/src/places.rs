//! Locations of files built or installed beside bdp: kernels of guests, programs of stacks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folders called `leaf` in which a program looks, in order: beside itself, in the `lib/bdp` of its prefix,
/// in the `target` that it was built in, in the user's data, and in the system's locations.
pub fn folders(
    leaf: &str,
    program: Option<&Path>,
    xdg_data_home: Option<OsString>,
    home: Option<OsString>,
) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if let Some(folder) = program.and_then(Path::parent) {
        folders.push(folder.join(leaf));
        folders.extend(folder.parent().map(|prefix| prefix.join("lib/bdp").join(leaf)));
        // cargo's output lies some folders below its target, where the Makefile puts what is built beside it.
        let targets = folder
            .ancestors()
            .skip(1)
            .filter(|folder| folder.ends_with("target") || folder.join("CACHEDIR.TAG").exists());
        folders.extend(targets.map(|target| target.join(leaf)));
    }
    let absolute = |folder: Option<OsString>| folder.map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute(xdg_data_home).or_else(|| absolute(home).map(|home| home.join(".local/share")));
    folders.extend(data.map(|data| data.join("bdp").join(leaf)));
    folders.extend(["/usr/local/lib/bdp", "/usr/lib/bdp"].map(|folder| Path::new(folder).join(leaf)));
    folders
}

/// The folders called `leaf` in which this process looks.
pub fn of_process(leaf: &str) -> Vec<PathBuf> {
    let variable = |name| std::env::var_os(name);
    folders(leaf, std::env::current_exe().ok().as_deref(), variable("XDG_DATA_HOME"), variable("HOME"))
}
