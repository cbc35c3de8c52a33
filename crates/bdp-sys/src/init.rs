//! Tasks of a machine's first process: mounting file systems, reaping programs, powering off.

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

/// Mounts a kernel file system on a folder, creating the folder if missing; one already mounted there is left.
pub fn mount_own(kind: &'static str, folder: &str) -> Result<()> {
    let refused = |e: std::io::Error| SysError::new("mount", format!("{kind} on {folder}"), e);
    fs::create_dir_all(folder).map_err(refused)?;
    match mount(kind, folder, kind, MountFlags::empty(), None) {
        Ok(()) | Err(rustix::io::Errno::BUSY) => Ok(()),
        Err(error) => Err(refused(error.into())),
    }
}

/// Like [`mount_own`], but keeps what lies in the folder below the mount.
pub fn mount_own_around(kind: &'static str, folder: &str) -> Result<()> {
    let refused = |e: std::io::Error| SysError::new("mount", format!("{kind} on {folder}"), e);
    // A mount hides the folder's content from paths, but not from open descriptors.
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

/// Writes a file completely or not at all: an error of the disk is returned, and no short file is left.
pub fn write_whole_file(path: &str, bytes: &[u8]) -> Result<()> {
    let refused = |e: std::io::Error| SysError::new("write", path, e);
    let beside = format!("{path}.new");
    let mut file = File::create(&beside).map_err(refused)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(refused)?;
    fs::rename(&beside, path).map_err(refused)
}

/// Raises the limit of open files to the kernel's maximum: all hosts of a guest are one process.
pub fn allow_many_files() -> Result<()> {
    const MOST: u64 = 1 << 20;
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current: Some(MOST), maximum: Some(MOST) })
        .map_err(|e| SysError::new("raise", "the limit of open files", e.into()))
}

/// Waits for the end of a child, and reaps every orphan that ends before.
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

/// Kills every other process. Does nothing unless this is the machine's first process.
pub fn kill_all() {
    if rustix::process::getpid().is_init() {
        // SAFETY: it takes two numbers, and touches no memory of this process.
        unsafe { libc::kill(-1, libc::SIGKILL) };
    }
}

/// Creates a file in memory, which no disk limits, and which ends with the last process that has it open.
pub fn file_in_memory() -> std::io::Result<File> {
    Ok(File::from(rustix::fs::memfd_create(c"bdp", rustix::fs::MemfdFlags::CLOEXEC)?))
}

/// Powers the machine off. Only for its first process: any other one is ended.
pub fn power_off() -> ! {
    if rustix::process::getpid().is_init() {
        let _ = reboot(RebootCommand::PowerOff);
    }
    std::process::exit(0)
}
