//! Default path of the store.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::{Error, Result};

/// Returns the default path for the given values of `XDG_DATA_HOME`, `HOME` and `XDG_STATE_HOME`.
pub fn from_environment(
    xdg_data_home: Option<OsString>,
    home: Option<OsString>,
    xdg_state_home: Option<OsString>,
) -> Result<PathBuf> {
    // XDG Base Directory Specification: "If an implementation encounters a relative path [...] it should
    // consider the path invalid and ignore it."
    let absolute = |folder: Option<OsString>| folder.map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute(xdg_data_home)
        .or_else(|| home.filter(|home| !home.is_empty()).map(|home| PathBuf::from(home).join(".local/share")))
        // A systemd service has a StateDirectory and no home.
        .or_else(|| absolute(xdg_state_home))
        .ok_or(Error::NoDefaultPath)?;
    Ok(data.join("bdp").join("bdp.sqlite"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(xdg: Option<&str>, home: Option<&str>, state: Option<&str>) -> Option<String> {
        let path =
            from_environment(xdg.map(OsString::from), home.map(OsString::from), state.map(OsString::from));
        Some(path.ok()?.to_str().unwrap().to_owned())
    }

    #[test]
    fn data_home_before_home_before_state_home_before_error() {
        let state = Some("/state");
        assert_eq!(place(Some("/data"), Some("/home/a"), state).unwrap(), "/data/bdp/bdp.sqlite");
        assert_eq!(place(None, Some("/home/a"), state).unwrap(), "/home/a/.local/share/bdp/bdp.sqlite");
        assert_eq!(
            place(Some("relative"), Some("/home/a"), None).unwrap(),
            "/home/a/.local/share/bdp/bdp.sqlite"
        );
        assert_eq!(place(None, None, state).unwrap(), "/state/bdp/bdp.sqlite");
        assert_eq!(place(None, Some(""), state).unwrap(), "/state/bdp/bdp.sqlite");
        assert_eq!(place(Some(""), Some(""), Some("")), None);
        assert_eq!(place(None, None, Some("relative")), None);
        assert_eq!(place(None, None, None), None);
    }

    #[test]
    fn no_place_names_the_way_out() {
        let text = from_environment(None, None, None).unwrap_err().to_string();
        assert!(text.contains("HOME") && text.contains("--store"), "{text}");
    }
}
