//! The keeper, a process between bdp and a guest: it ends the guest when bdp ends, for whatever reason, and reports how the guest ended.

use std::fs;
use std::io::{BufRead, Read, Seek, SeekFrom, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bdp_sys::init::file_in_memory;
use bdp_sys::process;
use bdp_sys::schedule::process_times;

use super::keeping::Keeping;
use super::paths::{ALIVE, ANSWER};
use super::spec::GuestSpec;

/// Message of a folder's keeper when it is ready.
pub(super) const READY: &str = "ready";
/// Environment variable of the seconds for which a guest may stand still; five times as much processor time may pass without a sign of life.
const PATIENCE_VARIABLE: &str = "BDP_GUEST_PATIENCE";
/// Default of these seconds: a guest that uses no processor waits for something that never comes, since nothing in it waits for real time.
const PATIENCE_SECONDS: f64 = 60.0;
/// Number of checks while a guest stands still.
const STILL_LOOKS: u32 = 60;
/// Processor time without a sign of life, for each second that it may stand still.
const SILENT_SECONDS: f64 = 5.0;
/// Bytes of the guest kernel's output that are examined.
const SAID_BYTES: u64 = 1 << 20;

/// Keeps what standard input orders: a guest, until it or bdp ends, printing why it ended unless it powered
/// itself off; or a folder, until bdp ends. Returns whether everything succeeded.
pub fn keep() -> bool {
    let mut line = String::new();
    let read = std::io::stdin().lock().take(1 << 20).read_line(&mut line);
    let keeping = read.ok().and_then(|_| serde_json::from_str::<Keeping>(&line).ok());
    match keeping {
        None => false,
        Some(Keeping::Folder(folder)) => {
            say(READY);
            wait_for_bdp_to_end();
            remove(&folder);
            true
        }
        Some(Keeping::Guest { spec, root }) => {
            let cause = run(&spec, &root);
            if let Some(cause) = &cause {
                say(cause);
            }
            cause.is_none()
        }
    }
}

/// Prints a line to bdp, which may be gone.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Waits until the other end of standard input is closed.
fn wait_for_bdp_to_end() {
    let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
}

/// Removes a folder into which ending processes may still write.
fn remove(folder: &Path) {
    for _ in 0..100 {
        match fs::remove_dir_all(folder) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                std::thread::sleep(Duration::from_millis(100))
            }
            _ => return,
        }
    }
}

/// Runs a guest to its end; returns why it ended, unless it powered itself off.
fn run(spec: &GuestSpec, root: &Path) -> Option<String> {
    process::adopt_orphans();
    // Not on disk: a full disk is something that a guest would have to report.
    let files = file_in_memory().and_then(|f| Ok((f.try_clone()?, f.try_clone()?, f)));
    let (out, err, mut console) = match files {
        Ok(files) => files,
        Err(e) => return Some(format!("make a file in memory: {e}")),
    };
    if let Some(cpu) = spec.cpu {
        // It is faster with it, and works without.
        let _ = process::pin(0, &[cpu]);
    }
    let mut command = Command::new(&spec.kernel);
    command
        .args(spec.command_line(root))
        .env_clear()
        .env("HOME", root)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err);
    process::end_with_parent(&mut command);
    let mut guest = match command.spawn() {
        Ok(guest) => guest,
        Err(e) => return Some(format!("start '{}': {e}", spec.kernel.display())),
    };
    let kernel = guest.id();
    std::thread::spawn(move || {
        wait_for_bdp_to_end();
        let _ = process::kill(kernel);
    });
    let over = Arc::new(AtomicBool::new(false));
    let watch = {
        let (over, root) = (Arc::clone(&over), root.to_owned());
        std::thread::spawn(move || {
            let found = watch(&root, &over);
            if found.is_some() {
                let _ = process::kill(kernel);
            }
            found
        })
    };
    let status = guest.wait();
    over.store(true, Ordering::Relaxed);
    watch.thread().unpark();
    let hung = watch.join().ok().flatten();
    end_children();
    let said = said(&mut console);
    let _ = fs::remove_dir_all(root.with_extension("uml"));
    let answered = root.join(ANSWER.trim_start_matches('/')).exists();
    match (hung, status) {
        (Some(cause), _) => Some(cause),
        (None, Ok(status)) if status.success() && answered => None,
        (None, Ok(status)) => Some(death(status, &said)),
        (None, Err(e)) => Some(format!("cannot wait for its kernel: {e}")),
    }
}

/// The guest kernel's output, or the end of a long one.
fn said(console: &mut fs::File) -> String {
    let mut bytes = Vec::new();
    let length = console.metadata().map_or(0, |m| m.len());
    let _ = console.seek(SeekFrom::Start(length.saturating_sub(SAID_BYTES)));
    let _ = console.take(SAID_BYTES).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Seconds of a word; [`PATIENCE_SECONDS`] if it is no number from 0.01 to a million.
fn patience_seconds(word: Option<&str>) -> f64 {
    let seconds = word.and_then(|word| word.trim().parse::<f64>().ok());
    seconds.filter(|seconds| (0.01..=1e6).contains(seconds)).unwrap_or(PATIENCE_SECONDS)
}

/// Watches until the guest has ended or stands still; returns the reason.
fn watch(root: &Path, over: &AtomicBool) -> Option<String> {
    let patience = patience_seconds(std::env::var(PATIENCE_VARIABLE).ok().as_deref());
    let look = Duration::from_secs_f64(patience / f64::from(STILL_LOOKS));
    let silent_ns = (patience * SILENT_SECONDS * 1e9) as u64;
    let (mut still, mut used, mut beat, mut used_at_beat) = (0, 0, None, 0);
    loop {
        std::thread::park_timeout(look);
        if over.load(Ordering::Relaxed) {
            return None;
        }
        let now: u64 = family().iter().map(|p| p.1).sum();
        still = if now == used { still + 1 } else { 0 };
        used = now;
        let sign = fs::metadata(root.join(ALIVE.trim_start_matches('/'))).and_then(|m| m.modified()).ok();
        if sign != beat {
            (beat, used_at_beat) = (sign, now);
        }
        let begun = if beat.is_some() { "the guest" } else { "the guest's kernel, before starting bdp," };
        if still >= STILL_LOOKS {
            return Some(format!("{begun} made no progress for {patience} s"));
        }
        if now.saturating_sub(used_at_beat) > silent_ns {
            let seconds = patience * SILENT_SECONDS;
            return Some(format!("{begun} did not respond for {seconds} s of processor time"));
        }
    }
}

/// Descendants of this process, with the processor time of each.
fn family() -> Vec<(u32, u64)> {
    let all = process_times();
    let mut family = vec![std::process::id()];
    loop {
        let known = family.len();
        let more: Vec<u32> = all
            .iter()
            .filter(|p| family.contains(&p.parent) && !family.contains(&p.process))
            .map(|p| p.process)
            .collect();
        family.extend(more);
        if family.len() == known {
            break;
        }
    }
    all.iter().filter(|p| family[1..].contains(&p.process)).map(|p| (p.process, p.running_ns)).collect()
}

/// Ends what the guest's kernel left: the processes that ran its programs.
fn end_children() {
    for _ in 0..20 {
        let left = family();
        if left.is_empty() {
            return;
        }
        for (process, _) in left {
            let _ = process::kill(process);
        }
        process::reap();
    }
}

/// Why a guest died, by its kernel's exit and last output.
fn death(status: ExitStatus, said: &str) -> String {
    // The kernel's own farewell follows the program's output.
    let mut lines = said.lines().rev().map(str::trim);
    let last = lines.find(|line| !line.is_empty() && !line.starts_with("reboot: "));
    let panic = said.lines().rev().find_map(|line| line.split_once("Kernel panic - not syncing: "));
    if let Some(check) = last.filter(|last| last.starts_with("check_ptrace")) {
        // Its message names a failed check, and no cause.
        return format!(
            "this machine forbids ptrace, which its kernel needs to run programs ({check}); allow it, for \
             example with 'docker run --cap-add SYS_PTRACE', or use stack linux-7.2, which does not need \
             it"
        );
    }
    if panic.is_some_and(|(_, panic)| panic.starts_with("Requested init")) {
        return "the folder for temporary files does not permit programs ('noexec'); set TMPDIR to another folder".to_owned();
    }
    if let Some(mapping) = last.filter(|last| last.contains("setup_physmem")) {
        let bytes = mapping.split(' ').find_map(|word| word.parse::<u64>().ok()).unwrap_or(0);
        return format!(
            "{} MiB of memory could not be allocated; raise the limit ('ulimit -v')",
            bytes >> 20
        );
    }
    let words = panic.map(|(_, panic)| panic.trim()).or(last).unwrap_or("");
    if words.ends_with("errno = 3") || words.ends_with("exitcode=0x0000000b") {
        return format!("the process that runs its programs was ended ({words})");
    }
    let quoted = match (panic, last) {
        (Some((_, panic)), _) => format!(": {}", panic.trim()),
        (None, Some(last)) => format!(": {last}"),
        (None, None) => String::new(),
    };
    match status.signal() {
        Some(7) => "its memory could not be allocated".to_owned(),
        Some(signal) => format!("its kernel was ended by signal {signal}{quoted}"),
        None => format!("its kernel ended with {}{quoted}", status.code().unwrap_or(-1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_what_is_said_or_a_minute() {
        assert_eq!(patience_seconds(Some(" 0.25 ")), 0.25);
        for word in [None, Some(""), Some("soon"), Some("0"), Some("-1"), Some("NaN"), Some("inf")] {
            assert_eq!(patience_seconds(word), PATIENCE_SECONDS, "{word:?}");
        }
    }
}
