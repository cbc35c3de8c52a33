//! `bdp measure --ssh` with a real sshd, an ordinary process on a port of loopback with keys made here.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::serving::free_port;
use crate::support::untested::skip;
use crate::support::{Bench, Running, start, wait_for};

/// A daemon that lets in who has the key beside it.
struct Sshd {
    process: Running,
    port: u16,
    user: String,
}

/// Where Debian puts it, which is not on everybody's path.
const SSHD: &str = "/usr/sbin/sshd";

impl Sshd {
    /// Nothing where there is no sshd, or this machine lets none run.
    fn start(bench: &Bench) -> Option<Self> {
        let client = Command::new("ssh").arg("-V").stderr(Stdio::null()).status();
        if !Path::new(SSHD).exists() || client.is_err() {
            skip(&format!("no {SSHD}; install openssh-server and openssh-client"));
            return None;
        }
        // As root it wants its folder, which a service manager makes otherwise.
        let _ = fs::create_dir_all("/run/sshd");
        for key in ["host", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(bench.path(key))
                .stdin(Stdio::null())
                .status();
            assert!(made.unwrap().success());
        }
        fs::copy(bench.path("user.pub"), bench.path("authorized")).unwrap();
        fs::set_permissions(bench.path("authorized"), fs::Permissions::from_mode(0o600)).unwrap();
        let far_folder = bench.path("far");
        fs::create_dir(&far_folder).unwrap();
        let port = free_port();
        let config = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {host}\nAuthorizedKeysFile {keys}\nPidFile none\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n\
             SetEnv TMPDIR={far}\n",
            host = bench.path("host").display(),
            keys = bench.path("authorized").display(),
            far = far_folder.display()
        );
        bench.write("sshd_config", config);
        let mut command = Command::new(SSHD);
        command.args(["-D", "-e", "-f"]).arg(bench.path("sshd_config"));
        let mut process = start(command);
        process
            .wait_until("sshd listens", |p| p.err().contains("Server listening") || p.err().contains("rror"));
        if !process.err().contains("Server listening") {
            skip(&format!("sshd does not run here: {}", process.err().trim()));
            return None;
        }
        let name = Command::new("id").arg("-un").output().unwrap();
        let user = String::from_utf8(name.stdout).unwrap().trim().to_owned();
        Some(Self { process, port, user })
    }

    /// `--ssh` and the options by which this daemon is reached.
    fn options(&self, bench: &Bench) -> String {
        format!(
            "--ssh {}@127.0.0.1 --ssh-option Port={} --ssh-option IdentityFile={} --ssh-option IdentitiesOnly=yes \
             --ssh-option StrictHostKeyChecking=no --ssh-option UserKnownHostsFile={} --ssh-option BatchMode=yes",
            self.user,
            self.port,
            bench.path("user").display(),
            bench.path("known").display()
        )
    }

    /// The far machine is as it was: no file, and no process.
    #[track_caller]
    fn assert_nothing_left(&self, bench: &Bench) {
        let left: Vec<_> = fs::read_dir(bench.path("far")).unwrap().map(|e| e.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
        // Its end is seen once sshd has told it.
        wait_for("the end of the far end", || far_ends(&bench.path("far")).is_empty());
    }
}

/// Processes of far ends that were started with this folder as their `TMPDIR`.
fn far_ends(folder: &Path) -> Vec<String> {
    let told = |process: &Path, file: &str| fs::read(process.join(file)).unwrap_or_default();
    let has = |bytes: &[u8], text: &str| bytes.split(|&b| b == 0).any(|word| word == text.as_bytes());
    let wanted = format!("TMPDIR={}", folder.display());
    fs::read_dir("/proc")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|p| has(&told(p, "cmdline"), "__far") && has(&told(p, "environ"), &wanted))
        .map(|p| p.display().to_string())
        .collect()
}

#[test]
fn the_far_end_is_brought_there_and_leaves_nothing() {
    let bench = Bench::new();
    let Some(sshd) = Sshd::start(&bench) else { return };
    let options = sshd.options(&bench);
    let ended = bench.run(&format!("measure {options} -t 0.3 --idle 0.2 --runs 2 --json"));
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let document = ended.json();
    for run in document["runs"].as_array().unwrap() {
        assert_eq!(run["far"]["address"], "127.0.0.1");
        assert_eq!(run["request"]["ssh"]["through"], false);
        let directions = run["directions"].as_array().unwrap();
        assert!(directions.len() == 2 && directions.iter().all(|d| d["bytes"].as_u64().unwrap() > 0));
        assert!(run["rtt_idle_ns"]["received"].as_u64().unwrap() > 0, "probes came back directly");
    }
    sshd.assert_nothing_left(&bench);

    let ended = bench.run(&format!("measure {options} --through-ssh -t 0.5 --idle 0.2 --json"));
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let document = ended.json();
    assert_eq!(document["request"]["ssh"]["through"], true);
    for direction in document["directions"].as_array().unwrap() {
        assert!(direction["bytes"].as_u64().unwrap() > 0);
        assert_eq!(direction["findings"][0]["limit"], "unknown", "TCP here is not the path's");
    }
    let caveats = document["caveats"].to_string();
    assert!(caveats.contains("through ssh's connection"), "{caveats}");
    sshd.assert_nothing_left(&bench);
}

#[test]
fn an_end_while_ssh_copies_is_by_the_signal() {
    let bench = Bench::new();
    // An ssh that takes the program slowly, and for a minute at most.
    let ssh = bench.path("ssh");
    let script = "#!/bin/sh\n[ \"$1\" = -G ] && { echo hostname 127.0.0.1; exit 0; }\n\
                  echo bdp-far Linux $(uname -m)\nread -r go\necho bdp-ready\ntouch began\n\
                  for i in $(seq 600); do dd bs=65536 count=1 of=/dev/null 2>/dev/null; sleep 0.1; done\n";
    fs::write(&ssh, script).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = bench.bdp("measure --ssh nobody@127.0.0.1 -t 1");
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", bench.folder().display()));
    let mut measuring = start(command);
    measuring.wait_until("ssh copies", |_| bench.path("began").exists());
    measuring.signal("TERM");
    let ended = measuring.wait();
    assert_eq!(ended.status.signal(), Some(15), "{}", ended.err);
    assert!(ended.err.contains("before anything was measured"), "{}", ended.err);
    // And no destination is none.
    let mut command = bench.bdp("measure -t 1 --ssh");
    command.arg("");
    let ended = start(command).wait();
    assert!(ended.refusal(2).contains("--ssh"), "{}", ended.err);
}

#[test]
fn last_words_that_come_late_are_told() {
    let bench = Bench::new();
    // What it says is read by a thread, which on a busy machine sees the last of it after the end.
    let ssh = bench.path("ssh");
    let script = "#!/bin/sh\n[ \"$1\" = -G ] && { echo hostname 127.0.0.1; exit 0; }\n\
                  echo 'Warning: a new key' >&2\n{ sleep 0.5; echo 'Permission denied' >&2; } >/dev/null &\nexit 255\n";
    fs::write(&ssh, script).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = bench.bdp("measure --ssh nobody@127.0.0.1 -t 1");
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", bench.folder().display()));
    let ended = start(command).wait();
    assert!(ended.refusal(3).contains("Permission denied"), "{}", ended.err);
}

#[test]
fn a_connection_that_breaks_leaves_nothing_either() {
    let bench = Bench::new();
    let Some(sshd) = Sshd::start(&bench) else { return };
    let options = sshd.options(&bench);
    let mut measuring = start(bench.bdp(&format!("measure {options} -t 60 --idle 0.2 --json-stream")));
    measuring.wait_until("data flows", |p| p.out().contains("\"stage\":\"to\""));
    assert_eq!(far_ends(&bench.path("far")).len(), 1, "the look for far ends finds one");
    // SIGKILL: bdp can do nothing about it any more. Its ssh sees its standard input end.
    measuring.signal("KILL");
    measuring.wait();
    sshd.assert_nothing_left(&bench);
}

#[test]
fn what_is_wrong_is_told_in_a_line() {
    let bench = Bench::new();
    let Some(mut sshd) = Sshd::start(&bench) else { return };
    let options = sshd.options(&bench);
    // Nobody has this key there.
    let stranger = options.replace(&bench.path("user").display().to_string(), "/dev/null");
    let line = bench.run(&format!("measure {stranger}")).refusal(3).to_owned();
    assert!(line.contains("ermission denied") && line.contains("uname -sm"), "{line}");
    // A machine of another kind: its uname says so.
    let uname = bench.write("uname", "#!/bin/sh\n[ \"$1\" = -m ] && echo s390x || echo Linux\n");
    fs::set_permissions(bench.path(uname), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bench.folder().display());
    let config = fs::read_to_string(bench.path("sshd_config")).unwrap();
    bench.write("sshd_config", config.replace("SetEnv ", &format!("SetEnv PATH={path} ")));
    sshd.process.signal("HUP");
    sshd.process.wait_until("sshd listens again", |p| p.err().matches("Server listening").count() >= 2);
    let line = bench.run(&format!("measure {options}")).refusal(3).to_owned();
    assert!(line.contains("the host is Linux s390x, but this bdp is built for Linux"), "{line}");
    let wrong = bench.run(&format!("measure 127.0.0.1 {options} --through-ssh"));
    assert!(wrong.refusal(2).contains("omit HOST"), "{}", wrong.err);
}
