//! The end of bdp, and of the whole machine, before each step of changing settings: what comes after finds a sound state from which all goes
//! back. The machine is a guest, whose kernel is killed with all that it had not written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use bdp_model::tuning::{Change, Target};
use bdp_tune::{
    ApplyOptions, ConfirmOptions, Fault, GuardCommand, HostWorld, Places, Reading, Removal, RevertOptions,
    World, apply, confirm, revert,
};
use serde_json::Value;

use crate::support::guests::guests_boot;
use crate::support::machine::is_root;
use crate::support::untested::skip;
use crate::support::{BDP, Bench, start};
use crate::tune::{PATH, RMEM, WMEM, change, plan, sysctl};

/// Says to [`ends_before_a_step`] what it does: the command, the step, and how it ends.
const STEP: &str = "BDP_TEST_STEP";
/// The commands that are cut short, as they find the host, and as the product has them.
const COMMANDS: [(&str, &str, &str); 4] = [
    ("apply", "", "apply --persist"),
    ("apply-for", "", "apply --for 10m"),
    ("confirm", "bdp tune apply plan.json --yes --for 10m --persist", "confirm"),
    ("revert", "bdp tune apply plan.json --yes --persist", "revert"),
];
/// What every script begins with.
const HEAD: &str = "
    settings() { cat /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_wmem; ip route show; ip link show link0; }
    fail() { echo \"$command, step $n: $1\" >&2; exit 1; }
    # A guard puts back by itself as soon as apply is dead: it has its time, so that the table is what it leaves.
    put_back() { bdp tune revert --json > $1 2> said || fail \"$(cat said)\"; }
    sound() {
        sleep 0.1
        bdp tune journal > listed 2>&1 || fail \"$(cat listed)\"
        put_back $1
        settings | cmp -s before - || fail \"settings: $(settings)\"
        [ ! -e sysctl.d/90-bdp.conf ] || fail 'it is set at boot'
        [ -z \"$(ls j 2> /dev/null | grep 'json$')\" ] || fail 'a journal is left'
    }\n";

fn the_plan() -> String {
    let route = serde_json::json!({ "kind": "route", "to": "198.18.0.2", "attribute": "initcwnd" });
    let qdisc = serde_json::json!({ "kind": "qdisc", "device": "link0" });
    plan(&[
        sysctl("net.ipv4.tcp_rmem", RMEM),
        change(route, "20"),
        change(qdisc, "fq"),
        sysctl("net.ipv4.tcp_wmem", WMEM),
    ])
}

/// This host, but for what ends before a step.
struct Ending {
    host: HostWorld,
    step: usize,
    end_before: usize,
    by_kill: bool,
}

impl Ending {
    fn step(&mut self, what: String) {
        if self.step == self.end_before {
            fs::write("reached", what).unwrap();
            if self.by_kill {
                bdp_sys::process::kill(std::process::id()).unwrap();
            }
            // The machine is to end now, and nothing in it is to go on: its clock stands still while this runs.
            loop {
                std::hint::spin_loop();
            }
        }
        self.step += 1;
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl World for Ending {
    fn read(&mut self, target: &Target) -> Result<Reading, Fault> {
        self.host.read(target)
    }

    fn check(&mut self, target: &Target, value: &str) -> Result<(), Fault> {
        self.host.check(target, value)
    }

    fn write(&mut self, target: &Target, value: &str) -> Result<(), Fault> {
        self.step(format!("write {target}"));
        self.host.write(target, value)
    }

    fn remove(&mut self, target: &Target, what: Removal) -> Result<(), Fault> {
        self.step(format!("remove {target}"));
        self.host.remove(target, what)
    }

    fn list(&mut self, folder: &Path) -> io::Result<Vec<String>> {
        self.host.list(folder)
    }

    fn read_file(&mut self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        self.host.read_file(path)
    }

    fn make_folder(&mut self, folder: &Path) -> io::Result<()> {
        self.step(format!("make folder {}", name(folder)));
        self.host.make_folder(folder)
    }

    fn create_file(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.step(format!("create {}", name(path)));
        self.host.create_file(path, content)
    }

    fn sync_file(&mut self, path: &Path) -> io::Result<()> {
        self.step(format!("fsync {}", name(path)));
        self.host.sync_file(path)
    }

    fn sync_folder(&mut self, folder: &Path) -> io::Result<()> {
        self.step(format!("fsync folder {}", name(folder)));
        self.host.sync_folder(folder)
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(format!("rename to {}", name(to)));
        self.host.rename(from, to)
    }

    fn remove_file(&mut self, path: &Path) -> io::Result<()> {
        self.step(format!("remove {}", name(path)));
        self.host.remove_file(path)
    }

    fn lock(&mut self) -> io::Result<Result<(), Option<u32>>> {
        self.step("lock".to_owned());
        self.host.lock()
    }

    fn unlock(&mut self) {
        self.step("unlock".to_owned());
        self.host.unlock();
    }

    fn wait_for_lock(&mut self) -> bool {
        self.host.wait_for_lock()
    }

    fn start_guard(&mut self, id: u32, journal: &[u8]) -> io::Result<()> {
        self.step("start the guard".to_owned());
        self.host.start_guard(id, journal)
    }

    fn release_guard(&mut self) {
        self.step("tell the guard that all is written".to_owned());
        self.host.release_guard();
    }

    fn is_guarded(&mut self, id: u32) -> bool {
        self.host.is_guarded(id)
    }

    fn is_awaited(&mut self, id: u32) -> bool {
        self.host.is_awaited(id)
    }

    fn dismiss_guard(&mut self, id: u32) {
        self.step("tell the guard that all is settled".to_owned());
        self.host.dismiss_guard(id);
    }

    fn is_dismissed(&mut self) -> bool {
        self.host.is_dismissed()
    }

    fn folder(&self) -> PathBuf {
        self.host.folder()
    }

    fn persistent_file(&self) -> PathBuf {
        self.host.persistent_file()
    }

    fn boot_id(&mut self) -> Result<String, Fault> {
        self.host.boot_id()
    }

    fn network_namespace(&mut self) -> Result<u64, Fault> {
        self.host.network_namespace()
    }

    fn kernel(&self) -> String {
        self.host.kernel()
    }

    fn uptime_ns(&mut self) -> u64 {
        self.host.uptime_ns()
    }

    fn unix_ms(&mut self) -> u64 {
        self.host.unix_ms()
    }
}

#[test]
#[ignore = "the process that the tests below end before a step"]
fn ends_before_a_step() {
    let order = std::env::var(STEP).unwrap();
    let [command, step, how] = order.split(' ').collect::<Vec<_>>()[..] else { panic!("{order}") };
    let folder = std::env::current_dir().unwrap();
    let places = Places { folder: folder.join("j"), persistent_file: folder.join("sysctl.d/90-bdp.conf") };
    let guard = GuardCommand { path: BDP.into(), arguments: vec!["__tune-guard".to_owned()] };
    let host = HostWorld::new(places, guard);
    let mut world = Ending { host, step: 0, end_before: step.parse().unwrap(), by_kill: how == "kill" };
    let plan: Value = serde_json::from_str(&fs::read_to_string("plan.json").unwrap()).unwrap();
    let changes: Vec<Change> = serde_json::from_value(plan["changes"].clone()).unwrap();
    let keep_for = (command == "apply-for").then_some(Duration::from_secs(600));
    let options = ApplyOptions { keep_for, persist: true, ..ApplyOptions::default() };
    match command {
        "confirm" => drop(confirm(&mut world, ConfirmOptions::default()).unwrap()),
        "revert" => drop(revert(&mut world, RevertOptions::default()).unwrap()),
        _ => drop(apply(&mut world, &changes, &options).unwrap()),
    }
}

/// What is common to the cases of one test.
fn bench() -> Option<Bench> {
    if !is_root() {
        skip("settings of hosts need root");
        return None;
    }
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return None;
    }
    bench.write("path.toml", PATH);
    bench.write("plan.json", the_plan());
    Some(bench)
}

/// Lines of a shell that run one command until it ends before step `$n`, in a folder of its own.
fn case(command: &str, setup: &str, how: &str) -> String {
    let exe = std::env::current_exe().unwrap();
    format!(
        "mkdir {command}-$n; cd {command}-$n; cp ../plan.json .
        export BDP_TUNE_JOURNAL=$PWD/j BDP_TUNE_SYSCTL_FILE=$PWD/sysctl.d/90-bdp.conf
        settings > before
        {setup} > /dev/null
        {STEP}=\"{command} $n {how}\" {} --exact tune_killed::ends_before_a_step --ignored > ended 2>&1 || true\n",
        exe.display()
    )
}

fn in_guest(bench: &Bench, name: &str, script: &str) -> crate::support::Running {
    bench.write(name, format!("command=none n=none\n{HEAD}{script}"));
    let line =
        format!("exec bdp lab exec path.toml --clock virtual -q --store none --host near -- sh -eu {name}");
    start(bench.shell(&line))
}

/// Guests at a time: each waits for its files and its end longer than it works.
const GUESTS: usize = 4;

/// Does something for each, several at a time; each has a folder and a guest of its own.
fn side_by_side<T: Sync>(all: &[T], each: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..GUESTS.min(all.len()) {
            scope.spawn(|| {
                while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    each(one);
                }
            });
        }
    });
}

/// Kills the process before each step, in a guest for each command; what each step is, by command, and what put back found.
fn kill_each(bench: &Bench) -> Vec<(&'static str, usize, String, Value)> {
    side_by_side(&COMMANDS, |(command, setup, _)| {
        let case = case(command, setup, "kill");
        let script = format!(
            "command={command}; n=0
            while :; do
                {case}
                [ -e reached ] || {{ grep -q '1 passed' ended || fail \"$(cat ended)\"; bdp tune revert > /dev/null; cd ..; break; }}
                sound found.json; cd ..; n=$((n + 1))
            done\n"
        );
        let ended = in_guest(bench, &format!("kill-{command}.sh"), &script).wait();
        assert_eq!(ended.code(), 0, "{}{}", ended.out, ended.err);
    });
    let mut rows = Vec::new();
    for (command, _, _) in COMMANDS {
        for step in 0.. {
            let folder = bench.path(&format!("{command}-{step}"));
            let Ok(what) = fs::read_to_string(folder.join("reached")) else { break };
            let found =
                serde_json::from_str(&fs::read_to_string(folder.join("found.json")).unwrap()).unwrap();
            rows.push((command, step, what, found));
            fs::remove_dir_all(folder).unwrap();
        }
    }
    for entry in fs::read_dir(bench.folder()).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            fs::remove_dir_all(entry).unwrap();
        }
    }
    rows
}

/// Ends a guest before a step, as a machine without power.
fn lose_power(bench: &Bench, command: &str, step: usize, setup: &str) {
    let script = format!("n={step}; {}", case(command, setup, "hang"));
    let mut guest = in_guest(bench, &format!("power-{command}-{step}.sh"), &script);
    let reached = bench.path(&format!("{command}-{step}/reached"));
    guest.wait_until("the step is reached", |_| reached.exists());
    guest.signal("KILL");
    guest.wait();
}

/// Killed before each step, and without power before each fourth: a guest ends with each, and takes a second of a processor.
#[test]
fn ended_before_any_step_by_kill_or_without_power_all_goes_back() {
    all_goes_back(4);
}

#[test]
#[ignore = "a guest for each of some sixty steps: make test-live runs it"]
fn ended_before_each_step_by_kill_and_without_power_all_goes_back() {
    all_goes_back(1);
}

/// Loses power before the first of each so many steps, and compares what is found with `tune_killed.md`.
fn all_goes_back(each: usize) {
    let Some(bench) = bench() else { return };
    let all = kill_each(&bench);
    let (rows, others): (Vec<_>, Vec<_>) =
        all.into_iter().enumerate().partition(|(place, _)| place % each == 0);
    let [rows, others] = [rows, others].map(|rows| rows.into_iter().map(|(_, row)| row).collect::<Vec<_>>());
    let mut scripts = COMMANDS.map(|(command, _, _)| (command, String::new()));
    side_by_side(&rows, |(command, step, _, _)| {
        let setup = COMMANDS.iter().find(|of| of.0 == *command).unwrap().1;
        lose_power(&bench, command, *step, setup);
    });
    for (command, step, _, _) in &rows {
        let folder = bench.path(&format!("{command}-{step}"));
        let is_set_at_boot = folder.join("sysctl.d/90-bdp.conf").exists();
        assert!(
            *command != "apply-for" || !is_set_at_boot,
            "{command}, step {step}: not confirmed, and set at boot"
        );
        let (_, script) = scripts.iter_mut().find(|of| of.0 == *command).unwrap();
        script.push_str(&format!(
            "command={command}; n={step}; cd {command}-{step}
            export BDP_TUNE_JOURNAL=$PWD/j BDP_TUNE_SYSCTL_FILE=$PWD/sysctl.d/90-bdp.conf
            settings > before
            if [ -e sysctl.d/90-bdp.conf ]; then
                grep -q = sysctl.d/90-bdp.conf || fail 'an empty file is read at boot'
                bdp tune journal | tr -s ' \\n' ' ' | grep -q 'set again by the file' || fail 'nobody knows what is set at boot'
                grep -v '^#' sysctl.d/90-bdp.conf | while read name is value; do
                    echo \"$value\" > /proc/sys/$(echo $name | tr . /)
                done
            fi
            sound found.json; cd ..\n"
        ));
    }
    side_by_side(&scripts, |(command, script)| {
        let ended = in_guest(&bench, &format!("after-{command}.sh"), script).wait();
        assert_eq!(ended.code(), 0, "{}{}", ended.out, ended.err);
    });
    let docs = include_str!("tune_killed.md");
    let killed = |(command, _, what, found): &(&str, usize, String, Value)| {
        let shown = COMMANDS.iter().find(|of| of.0 == *command).unwrap().2;
        format!("| `{shown}` | {what} | {} |", in_words(found))
    };
    let mut table =
        String::from("| command | ended before | after kill -9 | after power loss |\n|---|---|---|---|\n");
    for row in &rows {
        let after = bench.path(&format!("{}-{}/found.json", row.0, row.1));
        let after: Value = serde_json::from_str(&fs::read_to_string(after).unwrap()).unwrap();
        let line = format!("{} {} |\n", killed(row), in_words(&after));
        assert!(docs.contains(&line), "tune_killed.md has not {line}");
        table.push_str(&line);
    }
    for row in &others {
        assert!(docs.contains(&killed(row)), "tune_killed.md has not {}", killed(row));
    }
    println!("{table}");
    assert!(!others.is_empty() || docs.contains(&table), "tune_killed.md has another table than\n{table}");
}

/// What `revert` found and did.
fn in_words(found: &Value) -> String {
    let count = |member: &str| found[member].as_array().map_or(0, Vec::len);
    let mut words = Vec::new();
    if count("put_back") > 0 {
        words.push(format!("{} put back", count("put_back")));
    }
    if count("were_back") > 0 {
        words.push(format!("{} as before already", count("were_back")));
    }
    if !found["persistent_file"].is_null() {
        words.push("no longer set at boot".to_owned());
    }
    if count("of_other_boots") > 0 {
        words.push("journal of another boot".to_owned());
    }
    if words.is_empty() { "as before, no journal".to_owned() } else { words.join("; ") }
}
