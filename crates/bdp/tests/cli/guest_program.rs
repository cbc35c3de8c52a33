//! A program in a guest: how it ends comes out, in emulated time, and what it says.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use crate::support::guests::guests_boot;
use crate::support::{BDP, Bench};
use serde_json::{Value, json};

/// Runs bdp with an order for a program, a shell's line.
fn ordered(order: &Value) -> Output {
    let mut command = Command::new(BDP);
    command.arg("__inside").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(order.to_string().as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn shell(line: &str) -> Value {
    json!({
        "path": "/bin/sh",
        "arguments": ["-c", line],
        "environment": [["PATH", "/usr/bin:/bin"], ["WORD", "told"]],
        "programs": ["/bin/sleep"],
        "limit": { "secs": 100, "nanos": 0 },
        "memory_mib": 128,
    })
}

#[test]
fn an_end_is_told_with_what_was_said() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    for (line, end, output, errors) in [
        ("echo $WORD; echo beside >&2; exit 7", json!({ "exited": 7 }), "told\n", "beside\n"),
        ("echo before; kill -SEGV $$", json!({ "signalled": 11 }), "before\n", ""),
        // An hour passes at once; its limit is 100 s.
        ("echo waits; sleep 3600; echo never", json!("timed_out"), "waits\n", ""),
        // What it leaves behind ends with it.
        ("sleep 3600 & sleep 99; echo done", json!({ "exited": 0 }), "done\n", ""),
        ("pwd; echo $HOME", json!({ "exited": 0 }), "/tmp\n\n", ""),
    ] {
        let ended = ordered(&shell(line));
        assert!(ended.status.success(), "{line}: {}", String::from_utf8_lossy(&ended.stderr));
        let run: Value = serde_json::from_slice(&ended.stdout).unwrap();
        assert_eq!(run, json!({ "end": end, "output": output, "errors": errors }), "{line}");
    }
}

#[test]
fn what_can_not_be_taken_inside_is_one_line() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    for (path, word) in
        [("/no/such", "No such file"), ("sh", "not absolute"), ("/dev/shm/x", "a guest has its own /dev")]
    {
        let mut order = shell("true");
        order["path"] = path.into();
        let ended = ordered(&order);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(3), "{said}");
        assert!(said.starts_with("bdp: ") && said.contains(word) && said.lines().count() == 1, "{said}");
    }
}

/// A checkout below /tmp has its programs there; what the guest writes beside them stays the guest's.
#[test]
fn a_program_below_tmp_runs_in_its_place() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let program = folder.path().join("deep/er/program");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::write(
        &program,
        "#!/bin/sh\necho \"$0 $1\"; echo more > /tmp/note; read word < /tmp/note; echo $word\n",
    )
    .unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let beside = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    std::fs::write(beside.path(), "beside\n").unwrap();
    let mut order = shell("");
    order["path"] = program.to_str().unwrap().into();
    order["arguments"] = json!(["given"]);
    order["files"] = json!([beside.path()]);
    let ended = ordered(&order);
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let run: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let output = format!("{} given\nmore\n", program.display());
    assert_eq!(run, json!({ "end": { "exited": 0 }, "output": output, "errors": "" }));
    order["path"] = "/bin/sh".into();
    order["arguments"] = json!(["-c", format!("read word < {}; echo $word", beside.path().display())]);
    let ended = ordered(&order);
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let run: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(run["output"], "beside\n");
    assert!(!std::path::Path::new("/tmp/note").exists());
}
