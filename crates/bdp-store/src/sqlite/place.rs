//! Where the store is when nobody says.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::{Error, Result};

/// The default path, from the values of `XDG_DATA_HOME` and `HOME`.
pub fn from_environment(xdg_data_home: Option<OsString>, home: Option<OsString>) -> Result<PathBuf> {
    let data = xdg_data_home
        .map(PathBuf::from)
        // XDG Base Directory Specification: "If an implementation encounters a relative path [...] it should
        // consider the path invalid and ignore it."
        .filter(|path| path.is_absolute())
        .or_else(|| home.filter(|home| !home.is_empty()).map(|home| PathBuf::from(home).join(".local/share")))
        .ok_or(Error::NoDefaultPath)?;
    Ok(data.join("bdp").join("bdp.sqlite"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(xdg: Option<&str>, home: Option<&str>) -> Option<String> {
        let path = from_environment(xdg.map(OsString::from), home.map(OsString::from)).ok()?;
        Some(path.to_str().unwrap().to_owned())
    }

    #[test]
    fn xdg_before_home_before_error() {
        assert_eq!(place(Some("/data"), Some("/home/a")).unwrap(), "/data/bdp/bdp.sqlite");
        assert_eq!(place(None, Some("/home/a")).unwrap(), "/home/a/.local/share/bdp/bdp.sqlite");
        assert_eq!(place(Some("relative"), Some("/home/a")).unwrap(), "/home/a/.local/share/bdp/bdp.sqlite");
        assert_eq!(place(Some(""), Some("")), None);
        assert_eq!(place(None, None), None);
    }

    #[test]
    fn no_place_names_the_way_out() {
        let text = from_environment(None, None).unwrap_err().to_string();
        assert!(text.contains("HOME") && text.contains("--store"), "{text}");
    }
}
