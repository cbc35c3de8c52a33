//! What the first process of a machine does: file systems, the end of its programs, and the machine's end.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use rustix::mount::{MountFlags, mount};
use rustix::process::{Resource, Rlimit, WaitOptions};
use rustix::system::{RebootCommand, reboot};

use crate::{Result, SysError};

/// Mounts a file system of the kernel's own on a folder, which is made where it is missing. One that is mounted there already is left.
pub fn mount_own(kind: &'static str, folder: &str) -> Result<()> {
    let refused = |e: std::io::Error| SysError::new("mount", format!("{kind} on {folder}"), e);
    fs::create_dir_all(folder).map_err(refused)?;
    match mount(kind, folder, kind, MountFlags::empty(), None) {
        Ok(()) | Err(rustix::io::Errno::BUSY) => Ok(()),
        Err(error) => Err(refused(error.into())),
    }
}

/// The same, with what lies in the folder below the mount still in its place.
pub fn mount_own_around(kind: &'static str, folder: &str) -> Result<()> {
    let refused = |e: std::io::Error| SysError::new("mount", format!("{kind} on {folder}"), e);
    // What is mounted on the folder hides it from paths, and not from who has it open.
    let below = File::open(folder).map_err(refused)?;
    let mut kept = Vec::new();
    for entry in fs::read_dir(folder).map_err(refused)? {
        let entry = entry.map_err(refused)?;
        kept.push((entry.file_name(), entry.file_type().map_err(refused)?.is_dir()));
    }
    mount_own(kind, folder)?;
    for (name, is_folder) in kept {
        let at = Path::new(folder).join(&name);
        if is_folder { fs::create_dir(&at) } else { File::create(&at).map(drop) }.map_err(refused)?;
        let from = Path::new("/proc/self/fd").join(below.as_raw_fd().to_string()).join(&name);
        rustix::mount::mount_bind(&from, &at).map_err(|e| refused(e.into()))?;
    }
    Ok(())
}

/// Writes a file so that it is there as a whole or not at all: what the disk refuses is an error here, and not a short file.
pub fn write_whole_file(path: &str, bytes: &[u8]) -> Result<()> {
    let refused = |e: std::io::Error| SysError::new("write", path, e);
    let beside = format!("{path}.new");
    let mut file = File::create(&beside).map_err(refused)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(refused)?;
    fs::rename(&beside, path).map_err(refused)
}

/// Lets programs open as many files as a kernel lets any: all hosts of a guest are one process.
pub fn allow_many_files() -> Result<()> {
    const MOST: u64 = 1 << 20;
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current: Some(MOST), maximum: Some(MOST) })
        .map_err(|e| SysError::new("raise", "the limit of open files", e.into()))
}

/// Waits for the end of a child, and takes note of that of every orphan that ends before.
pub fn wait_for(child: u32) -> Result<ExitStatus> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((process, status))) if process.as_raw_nonzero().get() as u32 == child => {
                return Ok(ExitStatus::from_raw(status.as_raw()));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(SysError::new("wait for", format!("process {child}"), error.into())),
        }
    }
}

/// Kills every process but this one, which must be the machine's first: elsewhere it does nothing.
pub fn kill_all() {
    if rustix::process::getpid().is_init() {
        // SAFETY: it takes two numbers, and touches no memory of this process.
        unsafe { libc::kill(-1, libc::SIGKILL) };
    }
}

/// A file in memory, which no disk limits, and which is gone with the last process that has it open.
pub fn file_in_memory() -> std::io::Result<File> {
    Ok(File::from(rustix::fs::memfd_create(c"bdp", rustix::fs::MemfdFlags::CLOEXEC)?))
}

/// Switches the machine off. Only for its first process: elsewhere it ends that process.
pub fn power_off() -> ! {
    if rustix::process::getpid().is_init() {
        let _ = reboot(RebootCommand::PowerOff);
    }
    std::process::exit(0)
}
