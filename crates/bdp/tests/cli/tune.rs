//! `bdp tune`: changes of settings in network namespaces and guests of the tests' own, and what becomes of them.

use serde_json::{Value, json};

use crate::support::guests::guests_boot;
use crate::support::machine::{is_installed, is_root};
use crate::support::schema::assert_in_schema;
use crate::support::untested::skip;
use crate::support::{Bench, Ended, Running, start};

const SCHEMA: &str = include_str!("../../../../docs/tune.schema.json");
const JOURNAL_SCHEMA: &str = include_str!("../../../../docs/tune-journal.schema.json");

/// Values that no kernel begins with.
pub const RMEM: &str = "4096 131072 7654321";
pub const WMEM: &str = "4096 16384 3456789";

/// A path for changes of routes and devices.
pub const PATH: &str =
    "title = \"a path\"\n[[link]]\nbetween = [\"near\", \"far\"]\nrate = \"20M\"\ndelay = \"10ms\"\n";

/// What every script begins with.
const HEAD: &str = "export BDP_TUNE_JOURNAL=$PWD/j BDP_TUNE_SYSCTL_FILE=$PWD/sysctl.d/90-bdp.conf\n\
    rmem() { tr '\\t' ' ' < /proc/sys/net/ipv4/tcp_rmem; }\n\
    wmem() { tr '\\t' ' ' < /proc/sys/net/ipv4/tcp_wmem; }\n\
    until_is() { for i in $(seq 400); do [ \"$(rmem)\" = \"$1\" ] && return; sleep 0.05; done; echo never; exit 1; }\n";

pub fn sysctl(name: &str, to: &str) -> Value {
    change(json!({ "kind": "sysctl", "name": name }), to)
}

pub fn change(target: Value, to: &str) -> Value {
    json!({ "end": "near", "target": target, "from": null, "to": to, "reason": { "kind": "off" }, "gain": null })
}

pub fn plan(changes: &[Value]) -> String {
    let host = json!({ "name": "here", "address": "", "kernel": "6.1", "device": null });
    json!({
        "schema": "bdp.plan/1",
        "run": null,
        "path": { "rtt_ns": 20_000_000, "mss_bytes": null, "streams": 1, "directions": [] },
        "near": host,
        "far": null,
        "changes": changes,
        "alternatives": [{ "name": "small", "changes": [sysctl("net.ipv4.tcp_rmem", "4096 131072 7000000")] }],
        "programs": [],
        "refused": [],
    })
    .to_string()
}

fn bench() -> Option<Bench> {
    if !is_root() {
        skip("network and mount namespaces with settings of their own need root");
        return None;
    }
    let bench = Bench::new();
    bench.write("plan.json", plan(&[sysctl("net.ipv4.tcp_rmem", RMEM), sysctl("net.ipv4.tcp_wmem", WMEM)]));
    bench.write("path.toml", PATH);
    Some(bench)
}

/// Runs a script in a network and a mount namespace of its own.
fn begin(bench: &Bench, script: &str) -> Running {
    bench.write("script.sh", format!("{HEAD}{script}"));
    start(bench.shell("exec unshare --net --mount -- sh -e script.sh"))
}

#[track_caller]
fn run(bench: &Bench, script: &str) -> Ended {
    let ended = begin(bench, script).wait();
    assert_eq!(ended.code(), 0, "{}{}", ended.out, ended.err);
    ended
}

#[track_caller]
fn json_of(bench: &Bench, name: &str, schema: &str) -> Value {
    let text = std::fs::read_to_string(bench.path(name)).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_in_schema(&document, schema);
    document
}

#[test]
fn changes_are_applied_read_back_and_put_back() {
    let Some(bench) = bench() else { return };
    let ended = run(
        &bench,
        "before=$(rmem)/$(wmem)
        bdp tune journal
        bdp tune apply plan.json --dry-run
        [ \"$(rmem)/$(wmem)\" = \"$before\" ]; [ ! -e j ]
        bdp tune apply plan.json --yes --json > applied.json
        rmem; wmem
        bdp tune apply plan.json --yes
        bdp tune journal --json > state.json
        cp j/0001.json journal.json
        bdp tune revert --json > reverted.json
        [ \"$(rmem)/$(wmem)\" = \"$before\" ]
        ls j
        bdp tune revert",
    );
    let applied = json_of(&bench, "applied.json", SCHEMA);
    assert_eq!((&applied["journal"], &applied["until_unix_ms"]), (&json!(1), &Value::Null));
    assert_eq!(applied["changes"][0]["after"], RMEM);
    for part in
        ["nothing is in force\n", "nothing was changed (--dry-run)\n", RMEM, WMEM, "nothing to do", "lock\n"]
    {
        assert!(ended.out.contains(part), "{part}: {}", ended.out);
    }
    assert!(ended.out.ends_with("nothing to revert\n"), "{}", ended.out);
    let state = json_of(&bench, "state.json", SCHEMA);
    assert_eq!(state["journals"][0]["standing"], "in_force");
    assert_eq!(state["journals"][0]["settings"][1]["standing"], "in_force");
    let journal = json_of(&bench, "journal.json", JOURNAL_SCHEMA);
    assert_eq!((&journal["progress"], &journal["entries"][1]["after"]), (&json!("applied"), &json!(WMEM)));
    let reverted = json_of(&bench, "reverted.json", SCHEMA);
    assert_eq!(reverted["put_back"].as_array().unwrap().len(), 2);
}

#[test]
fn changes_are_chosen_by_number_end_and_alternative() {
    let Some(bench) = bench() else { return };
    let ended = run(
        &bench,
        "bdp tune apply plan.json --only 2 --dry-run
        bdp tune apply plan.json --alternative small --dry-run
        for wrong in '--only 3' '--end far' '--alternative big' '--for 0'; do
            bdp tune apply plan.json $wrong --yes && exit 1 || echo $?
        done
        bdp tune apply - --dry-run < plan.json
        bdp tune apply plan.json < /dev/null && exit 1 || echo $?",
    );
    assert!(ended.out.starts_with("1. net.ipv4.tcp_wmem"), "{}", ended.out);
    assert!(ended.out.contains("-> 4096 131072 7000000"), "{}", ended.out);
    assert_eq!(ended.out.matches("\n2\n").count() + ended.out.matches("2\n2\n").count(), 5, "{}", ended.out);
    let said: Vec<&str> = ended.err.lines().collect();
    for (line, words) in said.iter().zip([
        "no change 3 in this plan; it has 2",
        "the plan changes nothing at the far end; 2 at the other end (--end near)",
        "no alternative 'big' in this plan; it has small",
        "--for must be at least one second",
        "no terminal to ask on; use --yes",
    ]) {
        assert!(line.contains(words), "{line}");
    }
    assert_eq!(said.len(), 5, "{}", ended.err);
}

#[test]
fn what_somebody_else_changed_is_named_and_left() {
    let Some(bench) = bench() else { return };
    let ended = run(
        &bench,
        "before=$(rmem)
        bdp tune apply plan.json --yes > /dev/null
        echo 4096 65536 5000000 > /proc/sys/net/ipv4/tcp_rmem
        bdp tune revert && exit 1 || echo exit $?
        rmem
        bdp tune revert --json > again.json && exit 1 || echo exit $?
        bdp tune revert --force
        [ \"$(rmem)\" = \"$before\" ]",
    );
    let left = format!("left     net.ipv4.tcp_rmem: bdp wrote {RMEM}, but it is now 4096 65536 5000000");
    let words: String = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let left: String = left.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&left), "{}", ended.out);
    assert_eq!(ended.out.matches("exit 1\n").count(), 2, "{}", ended.out);
    let again = json_of(&bench, "again.json", SCHEMA);
    assert_eq!(again["foreign"][0]["now"], "4096 65536 5000000");
}

#[test]
fn without_a_confirmation_all_goes_back_whatever_became_of_bdp_and_its_terminal() {
    let Some(bench) = bench() else { return };
    // The shell that applies is killed with its session; the guard is of another.
    run(
        &bench,
        &format!(
            "before=$(rmem)
            setsid sh -c 'bdp tune apply plan.json --for 2 --yes > /dev/null; kill -HUP 0; kill -KILL 0' || true
            [ \"$(rmem)\" = '{RMEM}' ]
            bdp tune journal --json > state.json
            until_is \"$before\"
            for i in $(seq 100); do [ -e j/0001.json ] || break; sleep 0.05; done
            [ ! -e j/0001.json ]"
        ),
    );
    let state = json_of(&bench, "state.json", SCHEMA);
    assert_eq!(
        (&state["journals"][0]["standing"], &state["journals"][0]["guarded"]),
        (&json!("pending"), &json!(true))
    );
}

#[test]
fn a_guard_that_was_killed_is_missed_by_the_next_command() {
    let Some(bench) = bench() else { return };
    let ended = run(
        &bench,
        "before=$(rmem)
        bdp tune apply plan.json --for 10 --yes > /dev/null
        guard=$(grep -lz __tune-guard /proc/[0-9]*/cmdline | xargs grep -lzF \"$BDP_TUNE_JOURNAL\" | cut -d/ -f3)
        kill -KILL $guard
        # Killed it is gone when it has had a processor, which it gives its locks back with.
        while [ -e /proc/$guard ] && ! grep -q '^State:.Z' /proc/$guard/status; do sleep 0.01; done
        bdp tune journal
        sleep 10.1
        bdp tune journal
        bdp tune confirm && exit 1 || echo exit $?
        [ \"$(rmem)\" = \"$before\" ]",
    );
    let words: String = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["will not be reverted", "its time is over, but its guard process was killed", "exit 3"] {
        assert!(words.contains(part), "{part}: {}", ended.out);
    }
    assert!(ended.err.contains("the time of journal 1 is over; its changes were reverted"), "{}", ended.err);
}

#[test]
fn a_guard_that_is_asked_to_end_puts_back_at_once() {
    let Some(bench) = bench() else { return };
    run(
        &bench,
        "before=$(rmem)
        bdp tune apply plan.json --for 10m --yes > /dev/null
        guard=$(grep -lz __tune-guard /proc/[0-9]*/cmdline | xargs grep -lzF \"$BDP_TUNE_JOURNAL\" | cut -d/ -f3)
        kill -HUP $guard; sleep 0.2; [ \"$(rmem)\" != \"$before\" ]
        kill -TERM $guard
        until_is \"$before\"",
    );
}

#[test]
fn confirmed_changes_stay_and_are_set_at_boot() {
    let Some(bench) = bench() else { return };
    let ended = run(
        &bench,
        &format!(
            "before=$(rmem)
            bdp tune apply plan.json --for 3 --persist --yes
            [ ! -e sysctl.d ]
            bdp tune confirm --json > confirmed.json
            cat sysctl.d/90-bdp.conf
            sleep 3.2
            [ \"$(rmem)\" = '{RMEM}' ]
            bdp tune journal
            bdp tune revert
            [ ! -e sysctl.d/90-bdp.conf ]; [ \"$(rmem)\" = \"$before\" ]
            bdp tune confirm && exit 1 || echo exit $?"
        ),
    );
    let confirmed = json_of(&bench, "confirmed.json", SCHEMA);
    assert_eq!(confirmed["journals"], json!([1]));
    let file = format!("\nnet.ipv4.tcp_rmem = {RMEM}\nnet.ipv4.tcp_wmem = {WMEM}\n");
    assert!(ended.out.contains(&file), "{}", ended.out);
    assert!(ended.out.ends_with("exit 2\n"), "{}", ended.out);
}

#[test]
fn the_second_of_two_says_which_is_the_first() {
    let Some(bench) = bench() else { return };
    let ended = run(
        &bench,
        "mkdir j
        flock j/lock sh -c 'echo 4711 > j/lock; bdp tune apply plan.json --yes' && exit 1 || echo exit $?
        flock j/lock bdp tune revert && exit 1 || echo exit $?
        bdp tune apply plan.json --yes > /dev/null",
    );
    assert_eq!(ended.out, "exit 3\nexit 3\n");
    assert_eq!(
        ended.err.matches("another bdp process is changing settings here (process 4711)").count(),
        2,
        "{}",
        ended.err
    );
}

#[test]
fn what_can_not_be_set_is_one_line_and_nothing_is_touched() {
    let Some(bench) = bench() else { return };
    let other = |name: &str, changes: &[Value]| {
        bench.write(name, plan(changes));
    };
    let rmem = || sysctl("net.ipv4.tcp_rmem", RMEM);
    let route = |to: &str, attribute: &str, value: &str| {
        change(json!({ "kind": "route", "to": to, "attribute": attribute }), value)
    };
    other("unknown.json", &[rmem(), sysctl("net.ipv4.tcp_nosuch", "1")]);
    other("unread.json", &[rmem(), sysctl("net.ipv4.tcp_fack", "1")]);
    other("value.json", &[rmem(), sysctl("net.ipv4.tcp_sack", "lots")]);
    other("algorithm.json", &[rmem(), sysctl("net.ipv4.tcp_congestion_control", "nosuch")]);
    other("local.json", &[rmem(), route("127.0.0.1", "initcwnd", "20")]);
    other("nowhere.json", &[rmem(), route("192.0.2.7", "initcwnd", "20")]);
    other("device.json", &[rmem(), change(json!({ "kind": "qdisc", "device": "nosuch0" }), "fq")]);
    let mut stale: Value = serde_json::from_str(&plan(&[rmem()])).unwrap();
    stale["changes"][0]["from"] = "1 2 3".into();
    bench.write("stale.json", stale.to_string());
    let cases = [
        ("unknown", 2, "set net.ipv4.tcp_nosuch: this kernel, or this network namespace, has no such sysctl"),
        ("unread", 2, "ignores it"),
        ("value", 3, "set net.ipv4.tcp_sack: 'lots' is not a valid value; all settings are as before"),
        ("algorithm", 2, "set net.ipv4.tcp_congestion_control: 'nosuch' is not available in this kernel"),
        ("local", 2, "the address belongs to this machine"),
        ("nowhere", 3, "no route to this address"),
        ("device", 2, "qdisc of nosuch0: no such device here"),
        ("stale", 2, "but the plan was made for '1 2 3'; plan again, or use --force"),
    ];
    let names: Vec<&str> = cases.iter().map(|case| case.0).collect();
    let script = format!(
        "ip link set lo up
        before=$(rmem)
        for name in {}; do
            bdp tune apply $name.json --yes && exit 1 || echo $?
            [ \"$(rmem)\" = \"$before\" ]
            [ ! -e j/0001.json ]
        done",
        names.join(" ")
    );
    let ended = run(&bench, &script);
    let codes: Vec<&str> = ended.out.lines().collect();
    let said: Vec<&str> = ended.err.lines().collect();
    assert_eq!((codes.len(), said.len()), (cases.len(), cases.len()), "{}{}", ended.out, ended.err);
    for (at, (name, code, words)) in cases.iter().enumerate() {
        assert_eq!(codes[at], code.to_string(), "{name}: {}", said[at]);
        assert!(said[at].starts_with("bdp: apply: ") && said[at].contains(words), "{name}: {}", said[at]);
    }
}

#[test]
fn read_only_settings_a_full_disk_and_another_boot_are_one_line() {
    let Some(bench) = bench() else { return };
    let ended = run(
        &bench,
        "before=$(rmem)
        mkdir small; mount -t tmpfs -o size=8k none small; dd if=/dev/zero of=small/x bs=4k 2> /dev/null || true
        bdp tune apply plan.json --yes --journal small && exit 1 || echo full $?
        [ \"$(rmem)\" = \"$before\" ]
        bdp tune apply plan.json --yes > /dev/null
        echo 00000000-0000-4000-8000-000000000000 > boot; mount --bind boot /proc/sys/kernel/random/boot_id
        bdp tune journal
        bdp tune revert
        ls j
        echo \"$before\" > /proc/sys/net/ipv4/tcp_rmem
        mount --bind /proc/sys /proc/sys; mount -o remount,ro,bind /proc/sys
        bdp tune apply plan.json --yes && exit 1 || echo read-only $?
        [ \"$(rmem)\" = \"$before\" ]",
    );
    let words: String = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "full 3",
        "from before the last boot, which reset its settings",
        "gone journal 1",
        "lock",
        "read-only 3",
    ] {
        assert!(words.contains(part), "{part}: {}", ended.out);
    }
    let said: Vec<&str> = ended.err.lines().collect();
    assert_eq!(said.len(), 2, "{}", ended.err);
    assert!(said[0].contains("journal") && said[0].contains("free space there"), "{}", said[0]);
    assert!(said[1].contains("/proc/sys is mounted read-only here, as in a container"), "{}", said[1]);
}

#[test]
fn a_damaged_journal_is_named_by_each_command_until_it_is_set_aside() {
    let Some(bench) = bench() else { return };
    let ended = run(
        &bench,
        "bdp tune apply plan.json --yes > /dev/null
        sed -i s/7654321/7654322/ j/0001.json
        for command in 'apply plan.json --alternative small --yes' confirm revert journal; do
            bdp tune $command > /dev/null && exit 1 || echo $?
        done
        bdp tune journal --set-aside 0001.json
        ls j",
    );
    assert_eq!(ended.out, "3\n3\n3\n3\nnothing is in force\n0001.json.aside\nlock\n");
    let said: Vec<&str> = ended.err.lines().collect();
    assert_eq!(said.len(), 5, "{}", ended.err);
    for line in &said[..4] {
        assert!(
            line.contains("its checksum does not match") && line.contains("--set-aside 0001.json"),
            "{line}"
        );
    }
}

/// Eight settings that each network namespace has for itself, to values that no kernel begins with.
fn eight() -> Vec<Value> {
    let settings = [
        ("tcp_rmem", RMEM),
        ("tcp_wmem", WMEM),
        ("tcp_sack", "0"),
        ("tcp_timestamps", "2"),
        ("tcp_ecn", "0"),
        ("tcp_mtu_probing", "1"),
        ("tcp_notsent_lowat", "131072"),
        ("tcp_slow_start_after_idle", "0"),
    ];
    settings.map(|(name, to)| sysctl(&format!("net.ipv4.{name}"), to)).to_vec()
}

/// What becomes of the journal `$j/0001.json` while its guard waits, as lines of a shell.
const ATTACKS: [(&str, &str); 8] = [
    ("a-folder-beside-it", "mkdir $j/0009.json; sleep 1.5; rmdir $j/0009.json"),
    ("a-folder-in-its-place", "rm $j/0001.json; mkdir $j/0001.json"),
    ("moved-away-and-back", "mv $j $j.away; sleep 1.5; mv $j.away $j"),
    ("moved-away-for-good", "mv $j $j.away"),
    ("cut", "truncate -s 100 $j/0001.json"),
    ("a-bit-flipped", "sed -i 's/7654321/7654320/' $j/0001.json"),
    ("removed", "rm $j/0001.json"),
    ("a-pipe-in-its-place", "rm $j/0001.json; mkfifo $j/0001.json"),
];

/// What every attack does beside the one that it is: eight settings before, changed, and back within the time.
const ATTACK: &str = "eight() { for name in tcp_rmem tcp_wmem tcp_sack tcp_timestamps tcp_ecn tcp_mtu_probing tcp_notsent_lowat \
        tcp_slow_start_after_idle; do echo $name $(cat /proc/sys/net/ipv4/$name); done; }
    differ() { eight | diff $what.before - | grep -c '^>' || true; }
    is_back() { for i in $(seq 600); do [ \"$(differ)\" = 0 ] && return; sleep 0.05; done; echo \"$what: $(differ) of 8 are not as before\"; exit 1; }
    j=$PWD/$what.j; export BDP_TUNE_JOURNAL=$j
    eight > $what.before
";

#[test]
fn whatever_becomes_of_its_journal_all_goes_back() {
    let Some(bench) = bench() else { return };
    bench.write("plan.json", plan(&eight()));
    let far: Vec<Value> = eight()
        .into_iter()
        .map(|mut of| {
            of["end"] = "far".into();
            of
        })
        .collect();
    bench.write("far.json", plan(&far));
    // Each in a network of its own, beside each other; the far ones by a server on loopback.
    let mut script = String::new();
    for (name, attack) in ATTACKS {
        bench.write(
            &format!("{name}.sh"),
            format!(
                "what={name}; {ATTACK}
                bdp tune apply plan.json --for 3 --yes > /dev/null
                [ \"$(differ)\" = 8 ]
                {attack}
                is_back; echo $what: 0 of 8\n"
            ),
        );
        bench.write(
            &format!("far-{name}.sh"),
            format!(
                "what=far-{name}; {ATTACK}
                ip link set lo up
                bdp serve --allow-tune --tune-token tuning-of-a-test --journal $j > $what.serve 2>&1 & server=$!
                trap 'kill $server' EXIT
                until grep -qs 'tune apply' $what.serve; do sleep 0.05; done
                bdp tune apply far.json --at 127.0.0.1 --tune-token tuning-of-a-test --for 10 --yes > /dev/null
                [ \"$(differ)\" = 8 ]
                {attack}
                is_back; echo $what: 0 of 8\n"
            ),
        );
        for name in [name.to_owned(), format!("far-{name}")] {
            script.push_str(&format!("unshare --net -- sh -e {name}.sh > {name}.out 2>&1 &\n"));
        }
    }
    script.push_str("wait\ncat *.out");
    let ended = run(&bench, &script);
    let lines: Vec<&str> = ended.out.lines().collect();
    assert_eq!(lines.len(), 2 * ATTACKS.len(), "{}", ended.out);
    for (name, _) in ATTACKS {
        assert!(lines.contains(&&*format!("{name}: 0 of 8")), "{name}: {}", ended.out);
        assert!(lines.contains(&&*format!("far-{name}: 0 of 8")), "far {name}: {}", ended.out);
    }
}

#[test]
fn damage_is_named_by_every_command_and_a_pipe_holds_nobody_up() {
    let Some(bench) = bench() else { return };
    let ended = run(
        &bench,
        "commands() {
            for command in 'apply plan.json --dry-run' 'apply plan.json --yes' confirm revert journal; do
                timeout 20 bdp tune $command > /dev/null 2>> $1 && exit 1 || echo $?
            done
        }
        before=$(rmem)
        bdp tune apply plan.json --for 10m --yes > /dev/null
        until grep -q 'applied 1' j/0001.guard; do sleep 0.02; done
        mv j/0001.json kept; commands missing
        mv kept j/0001.json; mkfifo j/0002.json; bdp tune confirm > /dev/null 2> pipe && exit 1 || echo $?
        bdp tune apply plan.json --dry-run > /dev/null 2>> pipe && exit 1 || echo $?
        bdp tune revert > /dev/null 2>> pipe && exit 1 || echo $?
        bdp tune journal --set-aside 0002.json
        bdp tune apply plan.json --for 10m --yes > /dev/null
        until grep -q 'applied 1' j/0003.guard; do sleep 0.02; done
        bdp tune journal --set-aside 3; bdp tune journal
        guard=$(grep -lz __tune-guard /proc/[0-9]*/cmdline | xargs grep -lzF \"$BDP_TUNE_JOURNAL\" | cut -d/ -f3)
        kill -TERM $guard; until_is \"$before\"",
    );
    assert_eq!(
        ended.out,
        format!("{}nothing is in force\nnothing is in force\nnothing is in force\n", "3\n".repeat(8))
    );
    for (name, count, words) in [
        ("missing", 5, "0001.json is missing; its guard process reverts the settings"),
        ("pipe", 3, "0002.json is damaged: it is a named pipe, not a file"),
    ] {
        let said = std::fs::read_to_string(bench.path(name)).unwrap();
        assert_eq!(said.matches(words).count(), count, "{said}");
    }
    assert!(ended.err.contains("its settings revert when their time is over"), "{}", ended.err);
}

#[test]
fn revert_after_a_kill_waits_for_the_guard() {
    let Some(bench) = bench() else { return };
    if !is_installed("strace") {
        return;
    }
    // The guard takes two seconds over each sync of the folder, and has the lock meanwhile.
    let ended = run(
        &bench,
        "before=$(rmem)
        bdp tune apply plan.json --for 10m --yes > /dev/null
        guard=$(grep -lz __tune-guard /proc/[0-9]*/cmdline | xargs grep -lzF \"$BDP_TUNE_JOURNAL\" | cut -d/ -f3)
        strace -f -o trace -p $guard -e trace=fsync -e inject=fsync:delay_enter=3000000 2> attached & strace=$!
        until grep -q attached attached; do sleep 0.05; done
        kill -TERM $guard
        until grep -q guard j/lock; do sleep 0.02; done
        bdp tune revert
        [ \"$(rmem)\" = \"$before\" ]; wait $strace || true",
    );
    assert_eq!(ended.out, "nothing to revert\n", "{}", ended.err);
}

#[test]
fn journal_of_a_network_that_is_gone_is_put_aside() {
    let Some(bench) = bench() else { return };
    let ended = run(
        &bench,
        "unshare --net -- sh -c 'bdp tune apply plan.json --yes > /dev/null; exec sleep 60' & other=$!
        for i in $(seq 400); do grep -qs applied j/0001.json && break; sleep 0.05; done
        bdp tune revert
        kill $other; wait $other || true
        bdp tune revert; bdp tune journal
        bdp tune journal --set-aside 1",
    );
    let words: String = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "in another network namespace (",
        "); revert there: nsenter -t ",
        ", which has no process; if it is gone, so are its settings: rename the journal",
        "if it is gone, rename the journal with 'bdp tune journal --set-aside 1'",
    ] {
        assert!(words.contains(part), "{part}: {}", ended.out);
    }
    assert!(words.ends_with("nothing is in force"), "{}", ended.out);
}

#[test]
fn asked_to_end_it_puts_back() {
    let Some(bench) = bench() else { return };
    if !is_installed("strace") {
        return;
    }
    // It comes while the journal is synced, which takes two seconds here, before the first write: the first sync is of the journals' folder.
    let ended = run(
        &bench,
        "before=$(rmem)
        strace -o trace -e trace=fsync -e inject=fsync:delay_exit=2000000:when=2 \
            bdp tune apply plan.json --yes & applies=$!
        for i in $(seq 500); do [ -e j/0001.json.new ] && break; sleep 0.02; done
        kill -TERM $(cat j/lock)
        wait $applies && exit 1 || echo exit $?
        [ \"$(rmem)\" = \"$before\" ]; ls j",
    );
    assert_eq!(ended.out, "exit 143\nlock\n", "{}", ended.err);
    assert!(
        ended.err.contains("interrupted before all changes were written; all settings are as before"),
        "{}",
        ended.err
    );
}

#[test]
fn ten_minutes_of_the_virtual_clock_pass_and_all_goes_back() {
    let Some(bench) = bench() else { return };
    if !guests_boot(&bench) {
        return;
    }
    let script = "before=$(rmem)
        bdp tune apply plan.json --for 10m --yes
        sleep 598; rmem; bdp tune journal
        sleep 3; [ \"$(rmem)\" = \"$before\" ]
        bdp tune journal; ls j";
    let ended = in_guest(&bench, script);
    assert!(ended.out.contains(&format!("\n{RMEM}\n")), "{}", ended.out);
    assert!(ended.out.contains("until    2026-01-01T00:10:0"), "{}", ended.out);
    assert!(ended.out.ends_with("nothing is in force\nlock\n"), "{}", ended.out);
}

#[test]
fn a_route_and_a_discipline_are_set_and_put_back() {
    let Some(bench) = bench() else { return };
    if !guests_boot(&bench) {
        return;
    }
    let route = |attribute: &str, value: &str| {
        change(json!({ "kind": "route", "to": "198.18.0.2", "attribute": attribute }), value)
    };
    bench.write(
        "plan.json",
        plan(&[
            route("initcwnd", "20"),
            route("congctl", "reno"),
            route("rto_min", "50ms"),
            change(json!({ "kind": "qdisc", "device": "link0" }), "fq maxrate 8000000bit"),
        ]),
    );
    let script = "ip route show > before
        bdp tune apply plan.json --yes --json > applied.json
        ip route show
        bdp tune journal --json > state.json
        bdp tune revert --json > reverted.json
        ip route show | diff before -
        ip route replace 198.18.0.2 dev link0 mtu 1400 initcwnd 7
        ip route show > before
        bdp tune apply plan.json --yes > /dev/null
        ip route show
        bdp tune revert > /dev/null
        ip route show | diff before -
        tc qdisc show dev link0 2> /dev/null || true";
    let ended = in_guest(&bench, script);
    let routes: Vec<&str> = ended.out.lines().filter(|line| line.starts_with("198.18.0.2")).collect();
    for part in ["initcwnd 20", "congctl reno", "rto_min"] {
        assert!(routes.iter().filter(|route| route.contains(part)).count() == 2, "{part}: {routes:?}");
    }
    assert!(routes.iter().any(|route| route.contains("mtu 1400")), "{routes:?}");
    let applied = json_of(&bench, "applied.json", SCHEMA);
    assert_eq!(applied["changes"][0]["before"], Value::Null);
    assert_eq!(applied["changes"][3]["after"], "fq maxrate 8000000bit");
    let state = json_of(&bench, "state.json", SCHEMA);
    for setting in state["journals"][0]["settings"].as_array().unwrap() {
        assert_eq!(setting["standing"], "in_force", "{setting}");
    }
    let reverted = json_of(&bench, "reverted.json", SCHEMA);
    assert_eq!(reverted["put_back"].as_array().unwrap().len(), 4, "{reverted}");
}

/// Runs a script on the near host of a path, by the virtual clock.
#[track_caller]
fn in_guest(bench: &Bench, script: &str) -> Ended {
    bench.write("script.sh", format!("{HEAD}{script}\n"));
    let line = "bdp lab exec path.toml --clock virtual -q --store none --host near -- sh -e script.sh";
    let ended = start(bench.shell(line)).wait();
    assert_eq!(ended.code(), 0, "{}{}", ended.out, ended.err);
    ended
}

#[test]
fn killed_at_any_call_of_the_system_everything_goes_back() {
    let Some(bench) = bench() else { return };
    if !is_installed("strace") {
        return;
    }
    // Each call that changes a file or a setting, each time that it is made, until a run comes to its end without.
    let script = "before=$(rmem)/$(wmem)
        for command in 'apply plan.json --yes --persist' revert; do
            for call in openat write fsync rename unlink flock; do
                n=1
                while :; do
                    [ \"$command\" = revert ] && bdp tune apply plan.json --yes --persist > /dev/null
                    code=0
                    strace -o trace -e trace=$call -e inject=$call:signal=KILL:when=$n \
                        bdp tune $command > /dev/null 2>&1 || code=$?
                    bdp tune journal > /dev/null
                    bdp tune revert > said || { cat said; echo $command $call $n; exit 1; }
                    [ \"$(rmem)/$(wmem)\" = \"$before\" ] || { echo $command $call $n; exit 1; }
                    [ ! -e sysctl.d/90-bdp.conf ]; [ \"$(ls j 2> /dev/null | grep json || true)\" = '' ]
                    [ $code = 137 ] || break
                    n=$((n + 1))
                done
                echo $command $call $((n - 1))
            done
        done";
    let ended = run(&bench, script);
    for part in
        ["apply plan.json --yes --persist fsync", "apply plan.json --yes --persist rename", "revert unlink"]
    {
        let count = ended
            .out
            .lines()
            .find_map(|line| line.strip_prefix(part))
            .unwrap_or_else(|| panic!("{part}: {}", ended.out));
        assert!(count.trim().parse::<u32>().unwrap() >= 1, "{}", ended.out);
    }
    print!("{}", ended.out);
}
