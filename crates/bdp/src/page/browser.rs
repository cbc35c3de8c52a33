//! Opening the link in a browser.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// A file that leads a browser to the link; removed when dropped.
///
/// The link itself is no argument of the browser: others see the arguments of programs, and the token is in it.
pub struct Opened(PathBuf);

impl Drop for Opened {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Opens the link; the error says why not.
pub fn open(link: &str) -> Result<Opened, String> {
    if ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .all(|name| env::var_os(name).is_none_or(|value| value.is_empty()))
    {
        return Err("no desktop here to open a browser on".to_owned());
    }
    let folder = env::var_os("XDG_RUNTIME_DIR").map_or_else(env::temp_dir, PathBuf::from);
    let opened = write(&folder, link).map_err(|error| format!("cannot open a browser: {error}"))?;
    // A group of its own: Ctrl-C in the terminal is not for a browser that this starts.
    let started = Command::new("xdg-open")
        .arg(&opened.0)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match started {
        Ok(mut child) => {
            thread::spawn(move || child.wait());
            Ok(opened)
        }
        Err(error) => Err(format!("cannot open a browser with xdg-open: {error}")),
    }
}

fn write(folder: &Path, link: &str) -> std::io::Result<Opened> {
    let path = folder.join(format!("bdp-page-{}.html", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    let opened = Opened(path);
    writeln!(
        file,
        "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url={link}\"><title>bdp</title>\
         <a href=\"{link}\">the page of bdp</a>"
    )?;
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_its_owner_reads_the_link_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let opened = write(folder.path(), "http://127.0.0.1:5280/#token=abc").unwrap();
        let path = opened.0.clone();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::read_to_string(&path).unwrap().contains("url=http://127.0.0.1:5280/#token=abc"));
        assert!(write(folder.path(), "again").is_err(), "a file that is there is not followed");
        assert!(path.exists());
        drop(opened);
        assert!(!path.exists());
    }
}
