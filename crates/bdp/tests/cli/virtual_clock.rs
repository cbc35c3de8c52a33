//! Cases by the virtual clock: the same bits each time, nothing left behind, and one line for what goes wrong.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::guests::guests_boot;
use crate::support::machine::{self, children_of, signal};
use crate::support::nobody::{as_nobody, can_be_nobody};
use crate::support::scenario::Scenario;
use crate::support::{BDP, Bench, Ended, start, wait_for};
use serde_json::Value;

/// Folders of guests in a bench's folder for temporary files.
fn folders_of_guests(bench: &Bench) -> Vec<String> {
    let entries = fs::read_dir(bench.folder()).unwrap().flatten();
    entries
        .filter_map(|e| e.file_name().into_string().ok())
        .filter(|name| name.starts_with("bdp-guests"))
        .collect()
}

/// Runs a command line of bdp whose temporary files lie in the bench.
fn run(bench: &Bench, line: &str) -> Ended {
    start(bdp(bench, line)).wait()
}

fn bdp(bench: &Bench, line: &str) -> Command {
    let mut command = bench.bdp(line);
    command.env("TMPDIR", bench.folder());
    command
}

/// Draws of every kind: lost packets, and those of the kernel for BBR.
const CASES: Scenario<'_> = Scenario {
    top: "clock = \"virtual\"\nrepetitions = 2",
    link: "loss = \"1%\"\njitter = \"2ms\"",
    flow: "",
    more: "[sweep]\nflow.congestion = [\"cubic\", \"bbr\"]",
};

/// Members that hold the machine's time (`docs/record.md`); the order in which cases end is the machine's too.
fn without_the_machines_time(ended: &Ended) -> Vec<String> {
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let mut cases = ended.json()["cases"].take();
    let mut texts: Vec<String> = cases
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .map(|case| {
            assert_eq!(case["valid"], true, "{}", case["fidelity"]["broken"]);
            let environment = case["environment"].as_object_mut().unwrap();
            assert_eq!(environment["clock"], "virtual");
            for member in ["started_unix_ms", "took_ms"] {
                assert!(environment.remove(member).unwrap().as_u64().unwrap() > 0);
            }
            assert!(environment["guest"].as_object_mut().unwrap().remove("wall").is_some());
            case.to_string()
        })
        .collect();
    texts.sort();
    texts
}

/// Busy loops, until it goes.
struct Busy(std::sync::Arc<AtomicBool>);

impl Busy {
    fn loops(count: usize) -> Self {
        let over = std::sync::Arc::new(AtomicBool::new(false));
        for _ in 0..count {
            let over = std::sync::Arc::clone(&over);
            std::thread::spawn(move || while !over.load(Ordering::Relaxed) {});
        }
        Self(over)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_seed_gives_the_same_bytes_on_a_busy_machine_and_side_by_side() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    bench.write("cases.toml", CASES.text());
    let line = "lab run cases.toml --store none --json";
    let alone = without_the_machines_time(&run(&bench, &format!("{line} --jobs 1")));
    let busy = {
        let _busy = Busy::loops(4);
        without_the_machines_time(&run(&bench, line))
    };
    assert_eq!(alone.len(), 4);
    assert!(alone == busy, "two runs of one seed differ");
    let other = without_the_machines_time(&run(&bench, &format!("{line} --seed 7")));
    assert!(alone.iter().all(|case| !other.contains(case)));
    assert_eq!(folders_of_guests(&bench), Vec::<String>::new());
}

#[test]
fn due_is_released_and_the_round_trip_is_that_of_the_links() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    bench.write(
        "clean.toml",
        Scenario { top: "clock = \"virtual\"", flow: "window = \"16kB\"", ..Default::default() }.text(),
    );
    let document = run(&bench, "lab run clean.toml --store none --json").json();
    let case = &document["cases"][0];
    assert_eq!((&case["valid"], &case["attempt"]), (&Value::Bool(true), &Value::from(1)));
    for direction in case["fidelity"]["directions"].as_array().unwrap() {
        assert!(direction["packets_in"].as_u64().unwrap() > 100, "{direction}");
        assert_eq!(direction["release_lateness_ns"]["max"], 0, "{direction}");
    }
    // 40 ms, and twice 120 wire bytes at 5 Mbit/s; what runs in the guest takes no time but the nanoseconds of reading the clock.
    let idle = case["rtt_idle_ns"].as_u64().unwrap();
    assert!((40_384_000 - 200_000..40_400_000).contains(&idle), "{idle}");
}

/// Packets close behind each other wait for timers that a guest has a microsecond apart at the least.
#[test]
fn paths_without_a_rate_or_a_delay_are_valid_too() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let paths = [
        ("delay = '5ms'", "window = '64K'\nduration = '300ms'", ""),
        ("rate = '1G'", "duration = '300ms'", ""),
        (
            "rate = '1G'\ndelay = '1ms'",
            "window = '256K'\nduration = '300ms'",
            "[[flow]]\nfrom = 'b'\nto = 'a'\nwindow = '256K'\nduration = '300ms'\nomit = 0",
        ),
        // 7 datagrams in the time of 6.
        ("rate = '1M'", "protocol = 'udp'\nrate = '72k'\ndatagram = 1472\nduration = '1s'", ""),
    ];
    for (place, (link, flow, other)) in paths.into_iter().enumerate() {
        let text = format!(
            "title = 't'\nclock = 'virtual'\n[[link]]\nbetween = ['a', 'b']\n{link}\n\
             [[flow]]\nfrom = 'a'\nto = 'b'\n{flow}\nomit = 0\n{other}\n"
        );
        bench.write("path.toml", text);
        let document = run(&bench, "lab run path.toml --store none --json").json();
        let case = &document["cases"][0];
        assert_eq!(case["fidelity"]["broken"], Value::Array(Vec::new()), "path {place}: {case}");
        assert_eq!(case["attempt"], 1);
    }
}

#[test]
fn captures_come_out_of_the_guest() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    bench.write("seen.toml", Scenario { top: "clock = \"virtual\"", ..Default::default() }.text());
    let document = run(&bench, "lab run seen.toml --store none --json --capture seen").json();
    let captures = document["cases"][0]["captures"].as_array().unwrap();
    assert_eq!(captures.len(), 2);
    for capture in captures {
        assert_eq!((&capture["error"], &capture["not_captured"]), (&Value::Null, &Value::from(0)));
        let file = bench.path(capture["path"].as_str().unwrap());
        assert!(fs::metadata(&file).unwrap().len() > 10_000, "{}", file.display());
    }
    assert_eq!(folders_of_guests(&bench), Vec::<String>::new());
}

/// A user who may nothing: no capability, no namespace, no TUN device.
#[test]
fn an_ordinary_user_needs_nothing() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    if !can_be_nobody() {
        return;
    }
    bench.write("cases.toml", Scenario { top: "clock = \"virtual\"", ..Default::default() }.text());
    let copy = bench.open_to_all();
    // Where the tests' kernels lie may be closed to others.
    let found = bench.run("lab stacks --json").json();
    let kernel = found["stacks"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|stack| stack["path"].as_str())
        .unwrap()
        .to_owned();
    // Beside the program is where it looks.
    let kernels = copy.with_file_name("kernels");
    fs::create_dir(&kernels).unwrap();
    // By another process, as the copy of bdp: what is open for writing runs nowhere.
    assert!(Command::new("cp").arg(&kernel).arg(&kernels).status().unwrap().success());
    fs::set_permissions(&kernels, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = bdp(&bench, "lab run cases.toml --store none --json");
    command.env("BDP_KERNELS", &kernels);
    let as_root = without_the_machines_time(&start(command).wait());
    let command = as_nobody(&bench, &copy, "lab run cases.toml --store none --json");
    let by_nobody = without_the_machines_time(&start(command).wait());
    assert!(as_root == by_nobody, "the user makes a difference");
}

/// Three cases, of which the first takes long.
fn long(bench: &Bench) {
    let more = "[sweep]\nlink.delay = [\"20ms\", \"21ms\", \"22ms\"]";
    let scenario =
        Scenario { top: "clock = \"virtual\"", flow: "duration = \"45s\"", more, ..Default::default() };
    bench.write("long.toml", scenario.text());
}

/// The processes of the first guest that `bdp` started: keeper, and kernel.
fn first_guest(bdp: u32) -> (u32, u32) {
    let mut seen = (0, 0);
    wait_for("a guest runs", || {
        let kernel = |keeper: u32| children_of(keeper).first().map(|&kernel| (keeper, kernel));
        let Some(found) = children_of(bdp).into_iter().find_map(kernel) else { return false };
        seen = found;
        // Its kernel runs programs.
        !children_of(found.1).is_empty()
    });
    seen
}

/// Whether a guest has said that it is ready for work.
fn guest_is_ready(bench: &Bench) -> bool {
    let guests = folders_of_guests(bench).into_iter().flat_map(|folder| fs::read_dir(bench.path(&folder)));
    guests.flat_map(Iterator::flatten).any(|guest| guest.path().join("ready").exists())
}

/// Every process below one, itself included.
fn family(of: u32) -> Vec<u32> {
    let mut all = vec![of];
    let mut at = 0;
    while at < all.len() {
        let more = children_of(all[at]);
        all.extend(more);
        at += 1;
    }
    all
}

fn assert_gone(processes: &[u32]) {
    wait_for("every process of the guests is gone", || {
        processes.iter().all(|process| {
            fs::read_to_string(format!("/proc/{process}/stat")).map_or(true, |stat| stat.contains(") Z "))
        })
    });
}

#[test]
fn killed_at_any_place_nothing_is_left_and_the_rest_goes_on() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    long(&bench);
    // bdp itself: its guests end, their folders go, and the run can be resumed.
    let running = start(bdp(&bench, "lab run long.toml --jobs 1 --json"));
    first_guest(running.pid());
    let processes = family(running.pid());
    running.signal("KILL");
    assert_eq!(running.wait().status.code(), None);
    assert_gone(&processes[1..]);
    wait_for("the folders are gone", || folders_of_guests(&bench).is_empty());
    let resumed = run(&bench, "lab run long.toml --resume --json");
    assert_eq!(without_the_machines_time(&resumed).len(), 3);

    // The kernel of a guest, the keeper of one, and the process that carries its programs: that case says so, the others are whole.
    for (which, cause) in [
        ("kernel", "ended by signal 9"),
        ("keeper", "its keeper was ended"),
        ("program", "programs was ended"),
    ] {
        let running = start(bdp(&bench, "lab run long.toml --jobs 1 --store none --json"));
        let (keeper, kernel) = first_guest(running.pid());
        let processes = family(keeper);
        let killed = match which {
            "kernel" => kernel,
            "keeper" => keeper,
            _ => {
                // Before it works, its kernel has children that only try what the machine can do.
                wait_for("the guest works", || guest_is_ready(&bench));
                children_of(kernel)[0]
            }
        };
        signal("KILL", &killed.to_string());
        let ended = running.wait();
        assert_gone(&processes);
        assert_eq!(ended.code(), 3, "{which}: {}", ended.err);
        let document = ended.json();
        let errors: Vec<&str> =
            document["cases"].as_array().unwrap().iter().filter_map(|c| c["error"].as_str()).collect();
        assert_eq!(errors.len(), 1, "{which}: {errors:?}");
        assert!(errors[0].contains(cause), "{which}: {errors:?}");
        assert_eq!(folders_of_guests(&bench), Vec::<String>::new());
    }

    // The keeper of their folders: bdp removes them itself.
    let running = start(bdp(&bench, "lab run long.toml --jobs 1 --store none --json"));
    let (keeper, _) = first_guest(running.pid());
    let other = children_of(running.pid()).into_iter().find(|&child| child != keeper);
    signal("KILL", &other.expect("the folders have a keeper").to_string());
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{}", ended.err);
    assert!(ended.json()["cases"].as_array().unwrap().iter().all(|case| case["valid"] == true));
    assert_eq!(folders_of_guests(&bench), Vec::<String>::new());
}

/// A program that says of itself that it is a kernel with time travel, and is a shell script.
fn no_kernel(bench: &Bench, script: &str) {
    let folder = bench.path("kernels");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("linux-6.1");
    let text = format!(
        "#!/bin/sh\n{script}\nexit 0\nLinux version 6.1.0 (none)\nCONFIG_UML=y\nCONFIG_UML_TIME_TRAVEL_SUPPORT=y\n"
    );
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_guest_that_dies_is_one_line() {
    let bench = Bench::new();
    bench.write("one.toml", Scenario { top: "clock = \"virtual\"", ..Default::default() }.text());
    let deaths = [
        (
            "echo 'check_ptrace: Operation not permitted'; exit 1",
            "forbids ptrace, which its kernel needs to run programs (check_ptrace: Operation not permitted)",
        ),
        ("echo 'Kernel panic - not syncing: VFS: no root'; kill -ABRT $$", "signal 6: VFS: no root"),
        ("kill -BUS $$", "its memory could not be allocated"),
        (":", "ended with 0"),
    ];
    for (script, cause) in deaths {
        no_kernel(&bench, script);
        let mut command = bdp(&bench, "lab run one.toml --store none --json");
        command.env("BDP_KERNELS", bench.path("kernels"));
        let ended = start(command).wait();
        assert_eq!(ended.code(), 3, "{}", ended.err);
        let document = ended.json();
        let error = document["cases"][0]["error"].as_str().unwrap();
        assert!(error.contains(cause) && !error.contains('\n'), "{error}");
        assert_eq!(folders_of_guests(&bench), Vec::<String>::new());
        let mut alone = bdp(&bench, "");
        alone.env("BDP_KERNELS", bench.path("kernels"));
        let said = start(alone).wait().out;
        assert!(
            said.lines().any(|line| line.starts_with("virtual clock: no: ") && line.contains(cause)),
            "{said}"
        );
    }
}

#[test]
fn a_guest_that_hangs_is_ended() {
    let bench = Bench::new();
    bench.write("one.toml", Scenario { top: "clock = \"virtual\"", ..Default::default() }.text());
    let hangs = [
        ("exec sleep 1000", "before starting bdp, made no progress for 0.2 s"),
        ("while :; do :; done", "before starting bdp, did not respond for 1 s of processor time"),
        (
            "for word; do case $word in rootflags=*) root=${word#rootflags=};; esac; done; echo 1 >$root/alive; exec sleep 1000",
            "the guest made no progress for 0.2 s",
        ),
    ];
    for (script, cause) in hangs {
        no_kernel(&bench, script);
        let mut command = bdp(&bench, "lab run one.toml --store none --json");
        command.env("BDP_KERNELS", bench.path("kernels")).env("BDP_GUEST_PATIENCE", "0.2");
        let running = start(command);
        let ended = running.wait();
        assert_eq!(ended.code(), 3, "{}", ended.err);
        let document = ended.json();
        let error = document["cases"][0]["error"].as_str().unwrap();
        assert!(error.contains(cause) && !error.contains('\n'), "{error}");
        assert_eq!(folders_of_guests(&bench), Vec::<String>::new());
    }
}

/// Becomes another program that may make every system call but ptrace.
const WITHOUT_PTRACE: &str = r#"
    my $filter = pack('SCCL' x 4, 0x20, 0, 0, 0,  0x15, 0, 1, 101,  0x06, 0, 0, 0x00050001,  0x06, 0, 0, 0x7fff0000);
    my $program = pack('S x6 P32', 4, $filter);
    syscall(157, 38, 1, 0, 0, 0) == 0 or die "no_new_privs: $!";
    syscall(157, 22, 2, $program, 0, 0) == 0 or die "seccomp: $!";
    exec @ARGV or die "$ARGV[0]: $!";
"#;

#[test]
fn without_ptrace_the_way_out_is_named_or_taken() {
    let bench = Bench::new();
    if !guests_boot(&bench) || !machine::has("perl", &["-e", WITHOUT_PTRACE, "true"]) {
        return;
    }
    bench.write("one.toml", Scenario { top: "clock = \"virtual\"", ..Default::default() }.text());
    let mut command = Command::new("perl");
    command.args(["-e", WITHOUT_PTRACE, BDP, "lab", "run", "one.toml", "--store", "none", "--json"]);
    command.current_dir(bench.folder()).env("TMPDIR", bench.folder()).env("XDG_DATA_HOME", bench.folder());
    let ended = start(command).wait();
    let document = ended.json();
    let case = &document["cases"][0];
    // Linux 7.2 runs programs by seccomp.
    if case["environment"]["kernel"].as_str().is_some_and(|release| release.starts_with("7.")) {
        assert_eq!((ended.code(), &case["valid"]), (0, &Value::Bool(true)), "{}", ended.err);
    } else {
        assert_eq!(ended.code(), 3, "{}", ended.err);
        let error = case["error"].as_str().unwrap();
        assert!(error.contains("forbids ptrace") && error.contains("--cap-add SYS_PTRACE"), "{error}");
    }
    assert_eq!(folders_of_guests(&bench), Vec::<String>::new());
}

#[test]
fn a_limit_on_memory_is_one_line() {
    let bench = Bench::new();
    if !guests_boot(&bench) || !machine::has("prlimit", &["--as=300000000", "true"]) {
        return;
    }
    bench.write("one.toml", Scenario { top: "clock = \"virtual\"", ..Default::default() }.text());
    let mut command = Command::new("prlimit");
    command.args(["--as=300000000", BDP, "lab", "run", "one.toml", "--store", "none", "--json"]);
    command.current_dir(bench.folder()).env("TMPDIR", bench.folder()).env("XDG_DATA_HOME", bench.folder());
    let ended = start(command).wait();
    assert_eq!(ended.code(), 3, "{}", ended.err);
    let document = ended.json();
    let error = document["cases"][0]["error"].as_str().unwrap();
    assert!(
        error.contains("MiB of memory could not be allocated") && error.contains("'ulimit -v'"),
        "{error}"
    );
    assert_eq!(folders_of_guests(&bench), Vec::<String>::new());
}

#[test]
fn a_disk_that_fills_up_in_mid_table_costs_what_it_meets_and_resume_makes_up_for_it() {
    let bench = Bench::new();
    if !guests_boot(&bench) || !machine::can_isolate() {
        return;
    }
    bench.write("cases.toml", CASES.text());
    fs::create_dir(bench.path("small")).unwrap();
    let line = "lab run cases.toml --jobs 1 --json --store s.sqlite";
    // Full from when the first of four cases is through until the run is over. No case begins while it fills.
    let script = format!(
        "mount -t tmpfs -o size=300m none small; export TMPDIR=$PWD/small; code=0; \
         {{ sh -c 'echo $$ >pid; exec \"$@\"' sh $BDP {line} --resume 2>&3 | cat >first.json; }} 3>&1 | while read -r said; do \
         case $said in 1/4*) kill -STOP $(cat pid); for block in 1M 1k; do dd if=/dev/zero of=small/fill-$block bs=$block 2>/dev/null || true; done; \
         kill -CONT $(cat pid);; esac; done; \
         rm small/fill-*; ls small >left; exec $BDP {line} --resume"
    );
    let resumed = start(bench.isolated(&script)).wait();
    let first: Value = serde_json::from_str(&fs::read_to_string(bench.path("first.json")).unwrap()).unwrap();
    let errors: Vec<&str> =
        first["cases"].as_array().unwrap().iter().filter_map(|c| c["error"].as_str()).collect();
    assert!(!errors.is_empty() && errors.len() < 4, "{errors:?}");
    assert!(errors.iter().all(|error| error.contains("No space left on device")), "{errors:?}");
    assert_eq!(fs::read_to_string(bench.path("left")).unwrap(), "", "what guests left");
    assert!(resumed.err.contains("resuming run"), "{}", resumed.err);
    let resumed = without_the_machines_time(&resumed);
    assert_eq!(resumed, without_the_machines_time(&run(&bench, "lab run cases.toml --store none --json")));
}

#[test]
fn without_a_kernel_the_command_is_named() {
    let bench = Bench::new();
    fs::create_dir(bench.path("empty")).unwrap();
    bench.write("one.toml", Scenario { top: "clock = \"virtual\"", ..Default::default() }.text());
    let mut command = bdp(&bench, "lab run one.toml --store none");
    command.env("BDP_KERNELS", bench.path("empty"));
    let ended = start(command).wait();
    let line = ended.refusal(3);
    assert!(line.contains("make kernel") && line.contains("minutes"), "{line}");
}

#[test]
fn a_folder_without_room_is_one_line() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    bench.write("one.toml", Scenario { top: "clock = \"virtual\"", ..Default::default() }.text());
    let mut command = bdp(&bench, "lab run one.toml --store none");
    command.env("TMPDIR", "/dev/null/none");
    let ended = start(command).wait();
    let line = ended.refusal(3);
    assert!(line.contains("/dev/null/none"), "{line}");
}
