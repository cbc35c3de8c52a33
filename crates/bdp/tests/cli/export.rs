//! `bdp tune export`: each form is read, or run, by the tool it is for, where that is installed.

use std::fs;
use std::process::Command;

use bdp_model::measurement::ends::End;
use bdp_model::tuning::Plan;
use bdp_report::tuning::{ExportForm, export};
use serde_json::{Value, json};

use crate::support::guests::guests_boot;
use crate::support::machine::{is_installed, shared_lab};
use crate::support::schema::assert_in_schema;
use crate::support::untested::skip;
use crate::support::{Bench, Ended, start};

const SCHEMA: &str = include_str!("../../../../docs/plan.schema.json");

/// Name, end with changes, text.
const PLANS: [(&str, &str, &str); 4] = [
    ("window", "far", include_str!("../plans/window.json")),
    ("loss", "near", include_str!("../plans/loss.json")),
    ("every", "near", include_str!("../plans/every.json")),
    ("small", "near", include_str!("../plans/small.json")),
];

const PATH: &str =
    "title = \"a path\"\n[[link]]\nbetween = [\"client\", \"server\"]\nrate = \"20M\"\ndelay = \"10ms\"\n";

/// A bench with each plan, and each plan in each form: `window.sh`.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("path.toml", PATH);
    for (name, end, text) in PLANS {
        let plan = format!("{name}.json");
        bench.write(&plan, text);
        for form in ExportForm::ALL.map(ExportForm::name) {
            let ended =
                bench.run(&format!("tune export {plan} --as {form} --end {end} --output {name}.{form}"));
            assert_eq!(ended.code(), 0, "{name} {form}: {}", ended.err);
        }
    }
    bench
}

fn shell(bench: &Bench, line: &str) -> Ended {
    start(bench.shell(line)).wait()
}

/// A script on a host of the lab: in a network namespace, or in a guest.
fn on_host(bench: &Bench, clock: &str, script: &str) -> Ended {
    bench.write("host.sh", script);
    shell(bench, &format!("bdp lab exec path.toml -q --clock {clock} --host client -- sh host.sh"))
}

/// The exit codes and lines of commands: each line behind `$ `, then its output, then `= CODE`.
fn steps(lines: &[&str]) -> String {
    let mut script = "export BDP_TUNE_STATE=$PWD/record/applied LC_ALL=C\nrm -rf record\n".to_owned();
    for line in lines {
        script.push_str(&format!("echo '$ {line}'\n{{ {line}\n}} 2>&1\necho \"= $?\"\n"));
    }
    script
}

fn python(bench: &Bench, modules: &str, script: &str) -> Option<Ended> {
    let there = shell(bench, &format!("python3 -c 'import {modules}'")).code() == 0;
    if !there {
        skip(&format!(
            "python3 has no module of: {modules} (Debian: python3-yaml; PyPI: tree-sitter-powershell)"
        ));
        return None;
    }
    bench.write("script.py", script);
    Some(shell(bench, "python3 script.py"))
}

#[test]
fn plans_keep_to_their_schema() {
    for (name, _, text) in PLANS {
        let document: Value = serde_json::from_str(text).unwrap();
        assert_in_schema(&document, SCHEMA);
        let plan: Plan = serde_json::from_str(text).unwrap();
        assert_eq!(json!(plan), document, "{name}: what is read is what is written");
    }
}

#[test]
fn a_wrong_request_is_one_line() {
    let bench = bench();
    let changed = |pointer: &str, value: Value| {
        let mut plan: Value = serde_json::from_str(PLANS[0].2).unwrap();
        *plan.pointer_mut(pointer).unwrap() = value;
        plan.to_string()
    };
    bench.write("newer.json", changed("/schema", json!("bdp.plan/2")));
    bench.write("other.json", changed("/schema", json!("bdp.ping/1")));
    bench.write("kernel.json", changed("/changes/0/target/name", json!("kernel.core_pattern")));
    bench.write("up.json", changed("/changes/0/target/name", json!("net./../kernel")));
    bench.write("device.json", changed("/changes/0/target", json!({"kind": "qdisc", "device": "a b"})));
    bench.write("lines.json", changed("/changes/0/to", json!("1\n2")));
    bench.write("twice.json", changed("/changes/1/target/name", json!("net.ipv4.tcp_rmem")));
    bench.write("empty.json", "");
    bench.write("large.json", " ".repeat((1 << 20) + 1));
    bench.write("bytes.json", [0xff, 0xfe]);
    for (line, words) in [
        ("newer.json --as sh", "its schema is bdp.plan/2, but this bdp reads bdp.plan/1"),
        ("other.json --as sh", "'bdp.ping/1' is not the schema of a plan"),
        ("kernel.json --as sh", "'kernel.core_pattern' is not a network sysctl"),
        ("up.json --as sh", "is not a network sysctl"),
        ("device.json --as sh", "'a b' is not a device name"),
        ("lines.json --as sh", "is not a value of net.ipv4.tcp_rmem"),
        ("twice.json --as sh", "net.ipv4.tcp_rmem is changed twice"),
        ("empty.json --as sh", "it ends too early"),
        ("large.json --as sh", "it is larger than 1 MiB"),
        ("bytes.json --as sh", "cannot read plan 'bytes.json'"),
        ("missing.json --as sh", "No such file"),
        ("window.json --as sh", "choose one with --end near or --end far"),
        ("loss.json --as sh --end far", "the plan changes nothing at its far end"),
        ("loss.json --as sh --undo", "the exported file undoes itself: sh FILE undo"),
        ("loss.json --as dos", "formats: sh, sysctl, ansible"),
    ] {
        let ended = bench.run(&format!("tune export {line}"));
        assert!(ended.refusal(2).contains(words), "{line}: {}", ended.err);
    }
    let ended = shell(&bench, "bdp tune export - --as sysctl --end far < window.json");
    assert!(ended.out.contains("\nnet.ipv4.tcp_rmem = 4096 131072 8650752\n"), "{}", ended.out);
    let ended = bench.run("tune export window.json");
    assert!(ended.out.contains("changes: near 1, far 2"), "{}", ended.out);
}

#[test]
fn shells_parse_the_scripts() {
    let bench = bench();
    for interpreter in ["sh", "dash", "busybox", "bash", "mksh", "yash", "posh"] {
        if !is_installed(interpreter) {
            continue;
        }
        let interpreter = if interpreter == "busybox" { "busybox sh" } else { interpreter };
        for (name, form) in
            PLANS.iter().flat_map(|plan| ["sh", "macos", "freebsd"].map(|form| (plan.0, form)))
        {
            let ended = shell(&bench, &format!("{interpreter} -n {name}.{form}"));
            assert_eq!((ended.code(), ended.err.as_str()), (0, ""), "{interpreter} {name}.{form}");
        }
    }
    if is_installed("shellcheck") {
        let ended = shell(&bench, "shellcheck -s sh *.sh *.macos *.freebsd");
        assert_eq!(ended.code(), 0, "{}", ended.out);
    }
}

#[test]
fn a_script_is_applied_once_and_undone() {
    let Some(_lab) = shared_lab() else { return };
    let bench = bench();
    for interpreter in ["dash", "busybox", "bash"] {
        if !is_installed(interpreter) {
            continue;
        }
        let sh = if interpreter == "busybox" { "busybox sh" } else { interpreter };
        let mut lines = vec![
            "echo 4096 131072 131072 >/proc/sys/net/ipv4/tcp_rmem; echo 0 >/proc/sys/net/ipv4/tcp_window_scaling",
        ];
        let commands = ["status", "apply", "apply", "status", "undo", "undo"]
            .map(|command| format!("{sh} window.sh {command}"));
        lines.extend(commands.iter().map(String::as_str));
        lines.push("cat /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_window_scaling; ls record");
        let ended = on_host(&bench, "real", &steps(&lines));
        let codes: Vec<&str> = ended.out.lines().filter_map(|line| line.strip_prefix("= ")).collect();
        assert_eq!(codes, ["0", "1", "0", "1", "0", "0", "0", "0"], "{sh}: {}", ended.out);
        for part in [
            "not applied\n",
            "net.ipv4.tcp_window_scaling: 1\napplied; ",
            "applied already, see ",
            "net.ipv4.tcp_rmem: 4096 131072 8650752, by this plan (before: 4096 131072 131072)",
            "net.ipv4.tcp_window_scaling: 0\nnet.ipv4.tcp_rmem: 4096 131072 131072\nundone\n",
            "nothing is applied",
            "\n4096\t131072\t131072\n0\n= 0",
        ] {
            assert!(ended.out.contains(part), "{sh}: no '{part}' in {}", ended.out);
        }
    }
}

#[test]
fn undo_leaves_alone_what_someone_else_changed() {
    let Some(_lab) = shared_lab() else { return };
    let bench = bench();
    let ended = on_host(
        &bench,
        "real",
        &steps(&[
            "echo 0 >/proc/sys/net/ipv4/tcp_window_scaling",
            "sh window.sh apply",
            "echo 4096 131072 999999 >/proc/sys/net/ipv4/tcp_rmem",
            "sh window.sh status",
            "sh window.sh undo",
            "cat /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_window_scaling",
        ]),
    );
    let codes: Vec<&str> = ended.out.lines().filter_map(|line| line.strip_prefix("= ")).collect();
    assert_eq!(codes, ["0", "0", "0", "3", "3", "0"], "{}", ended.out);
    assert!(ended.out.contains("left alone: net.ipv4.tcp_rmem is '4096 131072 999999'"), "{}", ended.out);
    assert!(ended.out.contains("\n4096\t131072\t999999\n0\n"), "{}", ended.out);
}

/// Killed between any two of its commands, it has changed nothing, or undo puts back what it changed.
#[test]
fn a_killed_apply_can_be_undone() {
    let Some(_lab) = shared_lab() else { return };
    let bench = bench();
    // Each command that the script runs, and each file that it writes, counts down to the kill.
    let script = fs::read_to_string(bench.path("window.sh")).unwrap();
    let counted = script
        .replace("keep() {", "keep() {\n    step\n   ")
        .replace("set_item() {", "set_item() {\n    step\n   ")
        .replace("after_item() {", "after_item() {\n    step\n   ")
        .replace("before_item() {", "before_item() {\n    step\n   ")
        .replace("    rm -f \"$temporary\"\n", "    step\n    rm -f \"$temporary\"\n    step\n")
        .replace(
            "trap clean EXIT\n",
            "left_to_kill=${KILL_AT:-1000}\nstep() {\n    left_to_kill=$((left_to_kill - 1))\n    \
             [ \"$left_to_kill\" != 0 ] || kill -KILL $$\n}\ntrap clean EXIT\n",
        );
    assert!(counted.matches("step\n").count() >= 6, "{counted}");
    bench.write("killed.sh", counted);
    let script = "export BDP_TUNE_STATE=$PWD/record/applied\n\
        values() { cat /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_window_scaling | tr '\\n\\t' '  '; }\n\
        echo 0 >/proc/sys/net/ipv4/tcp_window_scaling\nbefore=$(values)\nkilled=0\nat=1\n\
        while [ $at -le 20 ]; do\n  rm -rf record\n  KILL_AT=$at sh killed.sh apply >/dev/null 2>&1\n  code=$?\n  \
        [ $code = 0 ] || killed=$((killed + 1))\n  \
        [ $code = 0 ] || [ -e record/applied ] || [ \"$(values)\" = \"$before\" ] || echo \"$at: changed without a record\"\n  \
        sh window.sh undo >/dev/null 2>&1 || echo \"$at: undo failed\"\n  \
        [ \"$(values)\" = \"$before\" ] || echo \"$at: not as before\"\n  at=$((at + 1))\ndone\necho \"killed $killed\"\n";
    let ended = on_host(&bench, "real", script);
    let killed = ended.out.trim().strip_prefix("killed ").and_then(|n| n.parse::<u32>().ok());
    assert!(killed.is_some_and(|killed| (8..20).contains(&killed)), "{}{}", ended.out, ended.err);
}

#[test]
fn an_apply_that_fails_midway_leaves_all_as_before() {
    let Some(_lab) = shared_lab() else { return };
    let bench = bench();
    let mut plan: Value = serde_json::from_str(PLANS[0].2).unwrap();
    plan["changes"][1]["target"]["name"] = json!("net.ipv4.tcp_congestion_control");
    plan["changes"][1]["to"] = json!("no_such_control");
    bench.write("bad.json", plan.to_string());
    assert_eq!(bench.run("tune export bad.json --as sh --end far --output bad.sh").code(), 0);
    plan["changes"][1]["target"]["name"] = json!("net.core.netdev_max_backlog");
    bench.write("absent.json", plan.to_string());
    assert_eq!(bench.run("tune export absent.json --as sh --end far --output absent.sh").code(), 0);
    let ended = on_host(
        &bench,
        "real",
        &steps(&[
            "cat /proc/sys/net/ipv4/tcp_rmem",
            "sh bad.sh apply",
            "sh absent.sh apply",
            "ls record",
            "cat /proc/sys/net/ipv4/tcp_rmem",
        ]),
    );
    let rmem: Vec<&str> = ended.out.lines().filter(|line| line.starts_with("4096\t")).collect();
    assert!(rmem.len() == 2 && rmem[0] == rmem[1], "{}", ended.out);
    assert!(
        ended.out.contains("cannot set net.ipv4.tcp_congestion_control to 'no_such_control'"),
        "{}",
        ended.out
    );
    assert!(ended.out.contains("; all is as before\n= 1"), "{}", ended.out);
    assert!(ended.out.contains("net.core.netdev_max_backlog is not there"), "{}", ended.out);
    assert!(ended.out.contains("$ ls record\n= 0"), "a record stayed: {}", ended.out);
}

/// Routes, fq and bbr, which the kernel of a guest has.
#[test]
fn routes_and_qdiscs_are_put_back_in_a_guest() {
    let bench = bench();
    if !guests_boot(&bench) {
        return;
    }
    let state = "ip route; tc qdisc show dev link0; cat /proc/sys/net/ipv4/tcp_mtu_probing";
    let ended = on_host(
        &bench,
        "virtual",
        &steps(&[
            "ip route add 198.18.0.2 dev link0 initcwnd 15 mtu 1400",
            state,
            "sh loss.sh apply",
            state,
            "sh loss.sh undo",
            state,
            "ip route del 198.18.0.2",
            "sh loss.sh apply",
            "ip route replace 198.18.0.2 dev link0 initcwnd 33",
            "sh loss.sh undo",
            "ip route",
            "tc qdisc replace dev link0 root fq",
            "sh loss.sh apply",
        ]),
    );
    let outputs: Vec<&str> = ended.out.split("$ ").skip(1).collect();
    assert_eq!(outputs.len(), 13, "{}{}", ended.out, ended.err);
    assert!(outputs[2].contains("applied; "), "{}", outputs[2]);
    let applied = outputs[3];
    for part in [
        "congctl bbr",
        "initcwnd 20",
        "rto_min lock 50ms",
        "mtu 1400",
        "qdisc fq ",
        "maxrate 19Mbit",
        "\n1\n",
    ] {
        assert!(applied.contains(part), "no {part} in {applied}");
    }
    assert!(!applied.contains("initcwnd 15"), "{applied}");
    assert!(outputs[4].ends_with("undone\n= 0\n"), "{}", outputs[4]);
    assert_eq!(outputs[5], outputs[1]);
    assert!(
        outputs[9].contains("left alone: route to 198.18.0.2") && outputs[9].ends_with("= 3\n"),
        "{}",
        outputs[9]
    );
    assert!(outputs[10].contains("198.18.0.2 dev link0 scope link initcwnd 33"), "{}", outputs[10]);
    assert!(
        outputs[12].contains("someone set the qdisc of link0") && outputs[12].ends_with("= 1\n"),
        "{}",
        outputs[12]
    );
}

#[test]
fn sysctl_loads_the_file_and_the_one_that_undoes_it() {
    let Some(_lab) = shared_lab() else { return };
    let bench = bench();
    if !is_installed("sysctl") {
        return skip("'sysctl' is not installed (Debian: procps)");
    }
    assert_eq!(
        bench.run("tune export window.json --end far --as sysctl --undo --output back.conf").code(),
        0
    );
    let values = "cat /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_window_scaling";
    let ended =
        on_host(&bench, "real", &steps(&["sysctl -p window.sysctl", values, "sysctl -p back.conf", values]));
    assert!(ended.out.contains("\n4096\t131072\t8650752\n1\n= 0"), "{}", ended.out);
    assert!(ended.out.ends_with("\n4096\t131072\t131072\n0\n= 0\n"), "{}", ended.out);
}

#[test]
fn a_playbook_is_applied_and_undone() {
    let Some(_lab) = shared_lab() else { return };
    let bench = bench();
    if !is_installed("ansible-playbook") {
        return skip("'ansible-playbook' is not installed (Debian: ansible-core)");
    }
    let all: Vec<String> = PLANS.iter().map(|(name, ..)| format!("{name}.ansible")).collect();
    let ended = shell(&bench, &format!("ansible-playbook --syntax-check -i localhost, {}", all.join(" ")));
    assert_eq!(ended.code(), 0, "{}{}", ended.out, ended.err);
    let play = "LC_ALL=C.UTF-8 HOME=$PWD ansible-playbook -i localhost, -c local -e bdp_facts=$PWD/facts -e ansible_python_interpreter=/usr/bin/python3 window.ansible";
    let undo = format!("{play} --tags undo");
    let values = "cat /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_window_scaling; ls facts";
    let ended = on_host(
        &bench,
        "real",
        &steps(&[
            "echo 4096 131072 131072 >/proc/sys/net/ipv4/tcp_rmem; echo 0 >/proc/sys/net/ipv4/tcp_window_scaling",
            play,
            values,
            play,
            "cat facts/bdp_tune.fact",
            "echo 4096 131072 999999 >/proc/sys/net/ipv4/tcp_rmem",
            &undo,
            values,
        ]),
    );
    let outputs: Vec<&str> = ended.out.split("\n$ ").collect();
    assert_eq!(outputs.len(), 8, "{}{}", ended.out, ended.err);
    assert!(outputs[1].ends_with("= 0"), "{}", outputs[1]);
    assert!(outputs[2].ends_with("4096\t131072\t8650752\n1\nbdp_tune.fact\n= 0"), "{}", outputs[2]);
    assert!(outputs[3].contains("changed=0"), "{}", outputs[3]);
    assert!(outputs[4].contains("\"net.ipv4.tcp_rmem\": \"4096 131072 131072\""), "{}", outputs[4]);
    assert!(outputs[6].contains("left alone: net.ipv4.tcp_rmem is"), "{}", outputs[6]);
    assert!(outputs[7].ends_with("4096\t131072\t999999\n0\n= 0\n"), "{}", outputs[7]);
}

#[test]
fn manifests_are_of_kubernetes() {
    let bench = bench();
    let script = "import yaml, subprocess\n\
        for name in ['window', 'loss', 'every', 'small']:\n\
        \x20   documents = list(yaml.safe_load_all(open(name + '.kubernetes')))\n\
        \x20   print(name, *[d['kind'] for d in documents])\n\
        \x20   for d in documents:\n\
        \x20       if d['kind'] == 'Pod': print({s['name']: s['value'] for s in d['spec']['securityContext']['sysctls']})\n\
        \x20       if d['kind'] == 'ConfigMap': subprocess.run(['sh', '-n'], input=d['data']['tune.sh'].encode(), check=True)\n";
    if let Some(ended) = python(&bench, "yaml", script) {
        assert_eq!(ended.code(), 0, "{}", ended.err);
        for line in [
            "window Pod",
            "loss Pod ConfigMap DaemonSet",
            "{'net.ipv4.tcp_rmem': '4096 131072 8650752', 'net.ipv4.tcp_window_scaling': '1'}",
            "{'net.ipv4.tcp_mtu_probing': '1'}",
        ] {
            assert!(ended.out.lines().any(|found| found == line), "no '{line}' in {}", ended.out);
        }
    }
    if is_installed("kubernetes-validate") {
        for (name, ..) in PLANS {
            let ended = shell(&bench, &format!("kubernetes-validate --strict -k 1.32 {name}.kubernetes"));
            assert_eq!(ended.code(), 0, "{name}: {}{}", ended.out, ended.err);
        }
    }
}

#[test]
fn powershell_parses() {
    let bench = bench();
    let script = "import tree_sitter_powershell as grammar\nfrom tree_sitter import Language, Parser\n\
        parser = Parser(Language(grammar.language()))\n\
        assert parser.parse(b'if ($a { }').root_node.has_error\n\
        for name in ['window', 'loss', 'every', 'small']:\n\
        \x20   assert not parser.parse(open(name + '.powershell', 'rb').read()).root_node.has_error, name\n";
    if let Some(ended) = python(&bench, "tree_sitter_powershell", script) {
        assert_eq!(ended.code(), 0, "{}", ended.err);
    }
    let text = fs::read_to_string(bench.path("every.powershell")).unwrap();
    for part in [
        "'AutoTuningLevelLocal'; Value = 'Normal'",
        "'CongestionProvider'; Value = 'CUBIC'",
        "'Timestamps'; Value = 'Enabled'",
    ] {
        assert!(text.contains(part), "no {part}");
    }
    assert!(text.is_ascii() && text.lines().count() == text.matches("\r\n").count());
}

/// The values of the published experiment: 64 KiB - 1, in hexadecimal.
#[test]
fn a_registry_file_is_imported_and_ended() {
    let bench = bench();
    assert_eq!(bench.run("tune export small.json --as reg --undo --output back.reg").code(), 0);
    let text = fs::read_to_string(bench.path("small.reg")).unwrap();
    for value in [
        "\"TcpWindowSize\"=dword:0000ffff\r\n",
        "\"Tcp1323Opts\"=dword:00000000\r\n",
        "\"DefaultReceiveWindow\"=dword:0000ffff\r\n",
    ] {
        assert!(text.contains(value), "no {value} in {text}");
    }
    // 'wine' alone says more of itself than whether it is there.
    if !is_installed("wine") {
        return skip("'wine' is not installed (Debian: wine wine64)");
    }
    let query = "wine reg query 'HKLM\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters' | tr -d '\\r'";
    let script = format!(
        "export WINEPREFIX=$PWD/prefix WINEDEBUG=-all DISPLAY=\nwine reg query 'HKLM\\Software' >/dev/null 2>&1\n\
        mv small.reg back.reg prefix/drive_c/ || exit 9\nwine regedit /S 'C:\\small.reg'\n{query}\necho undo\n\
        wine regedit /S 'C:\\back.reg'\n{query}\nwine wineboot --end-session --shutdown >/dev/null 2>&1\n"
    );
    bench.write("wine.sh", script);
    let ended = shell(&bench, "sh wine.sh");
    if ended.code() == 9 {
        return skip("wine makes no prefix here");
    }
    let (set, undone) = ended.out.split_once("undo\n").unwrap();
    let has = |text: &str, name: &str, value: &str| {
        text.lines().any(|line| line.split_whitespace().eq([name, "REG_DWORD", value]))
    };
    assert!(has(set, "TcpWindowSize", "0xffff") && has(set, "GlobalMaxTcpWindowSize", "0xffff"), "{set}");
    assert!(has(set, "Tcp1323Opts", "0x0"), "{set}");
    assert!(undone.contains("DataBasePath") && !undone.contains("TcpWindowSize"), "{undone}");
}

/// As `sysctl` of macOS and FreeBSD: a folder of files, reading by -n, writing by NAME=VALUE, and one of each error.
const FAKE_SYSCTL: &str = "#!/bin/sh\ncd \"$TREE\" || exit 9\ncase $1 in\n-n) [ -e \"$2\" ] || { echo \"sysctl: unknown oid '$2'\" >&2; exit 1; }; cat \"$2\" ;;\n\
    *=*) name=${1%%=*}; [ -e \"$name\" ] || { echo \"sysctl: unknown oid '$name'\" >&2; exit 1; }\n\
    [ \"$name\" != net.inet.tcp.cc.algorithm ] || grep -qw \"${1#*=}\" net.inet.tcp.cc.available || { echo \"sysctl: $name: No such process\" >&2; exit 1; }\n\
    echo \"$name: $(cat \"$name\") -> ${1#*=}\"; echo \"${1#*=}\" >\"$name\" ;;\n*) exit 9 ;;\nesac\n";

#[test]
fn scripts_of_macos_and_freebsd_run() {
    let bench = bench();
    for (form, settings) in [
        (
            "macos",
            "kern.ipc.maxsockbuf 8388608 net.inet.tcp.win_scale_factor 3 net.inet.tcp.doautorcvbuf 1 net.inet.tcp.autorcvbufmax 4194304 \
            net.inet.tcp.doautosndbuf 1 net.inet.tcp.autosndbufmax 64000000 net.inet.tcp.pmtud_blackhole_detection 0",
        ),
        (
            "freebsd",
            "kern.ipc.maxsockbuf 2097152 net.inet.tcp.recvbuf_auto 1 net.inet.tcp.recvbuf_max 2097152 net.inet.tcp.sendbuf_auto 0 \
            net.inet.tcp.sendbuf_max 64000000 net.inet.tcp.rfc1323 0 net.inet.tcp.sack.enable 0 net.inet.tcp.pmtud_blackhole_detection 0 \
            net.inet.tcp.cc.algorithm newreno net.inet.tcp.cc.available newreno",
        ),
    ] {
        let folder = |name: &str| bench.path(&format!("{form}-{name}"));
        fs::create_dir(folder("bin")).unwrap();
        fs::create_dir(folder("tree")).unwrap();
        let words: Vec<&str> = settings.split_whitespace().collect();
        for pair in words.chunks(2) {
            fs::write(folder("tree").join(pair[0]), format!("{}\n", pair[1])).unwrap();
        }
        for (name, text) in [
            ("sysctl", FAKE_SYSCTL),
            ("id", "#!/bin/sh\necho 0\n"),
            (
                "kldload",
                "#!/bin/sh\n[ \"$1 $2\" = '-n cc_cubic' ] && echo 'newreno cubic' >\"$TREE/net.inet.tcp.cc.available\"\n",
            ),
        ] {
            fs::write(folder("bin").join(name), text).unwrap();
        }
        let before = "cd tree; grep . * | sort; cd ..";
        let script = format!(
            "chmod +x bin/*; export PATH=$PWD/bin:$PATH TREE=$PWD/tree\n{}",
            steps(&[
                before,
                &format!("sh ../every.{form} apply"),
                before,
                &format!("sh ../every.{form} apply"),
                &format!("sh ../every.{form} undo"),
                before
            ])
        );
        fs::write(folder("run.sh"), script).unwrap();
        let folder = format!("{form}-tree");
        let ended = shell(
            &bench,
            &format!(
                "mkdir {form}-dir && mv {form}-bin {form}-dir/bin && mv {folder} {form}-dir/tree && cd {form}-dir && sh ../{form}-run.sh"
            ),
        );
        let outputs: Vec<&str> = ended.out.split("$ ").skip(1).collect();
        assert_eq!(outputs.len(), 6, "{}{}", ended.out, ended.err);
        assert!(outputs[1].contains("applied; "), "{form}: {}", outputs[1]);
        for (name, value) in match form {
            "macos" => vec![
                ("kern.ipc.maxsockbuf", "45000000"),
                ("net.inet.tcp.win_scale_factor", "10"),
                ("net.inet.tcp.autorcvbufmax", "40000000"),
                // It was higher than what the plan asks for.
                ("net.inet.tcp.autosndbufmax", "64000000"),
            ],
            _ => vec![
                ("kern.ipc.maxsockbuf", "45000000"),
                ("net.inet.tcp.recvbuf_max", "40000000"),
                ("net.inet.tcp.sendbuf_max", "64000000"),
                ("net.inet.tcp.sendbuf_auto", "1"),
                ("net.inet.tcp.rfc1323", "1"),
                ("net.inet.tcp.cc.algorithm", "cubic"),
            ],
        } {
            assert!(
                outputs[2].contains(&format!("\n{name}:{value}\n")),
                "{form}: no {name} {value} in {}",
                outputs[2]
            );
        }
        assert!(outputs[3].ends_with("= 1\n"), "{form}: {}", outputs[3]);
        assert!(outputs[4].ends_with("undone\n= 0\n"), "{form}: {}", outputs[4]);
        // A module stays loaded.
        let without_available = |text: &str| -> Vec<String> {
            text.lines().filter(|line| !line.contains("cc.available")).map(str::to_owned).collect()
        };
        assert_eq!(without_available(outputs[5]), without_available(outputs[0]), "{form}");
        if form == "macos" {
            assert!(outputs[1].contains("net.inet.tcp.sack is not there in this release"), "{}", outputs[1]);
        }
    }
}

/// Texts that would be commands, or end a quoted word, in some language.
const HOSTILE: [&str; 12] = [
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    "\"; touch pwned; \"",
    "a\ntouch pwned\n",
    "a\r\ntouch pwned\r",
    "\\'; touch pwned #",
    "{{ lookup('pipe', 'touch pwned') }}",
    "\u{2019}; touch pwned; \u{2018}",
    "x\u{85}y: &a [b]\u{2028}- c",
    "#> touch pwned <#",
    "-w\u{0}\u{7f}\u{1b}]0;t\u{7}",
];

#[test]
fn text_of_a_plan_is_no_command_in_any_form() {
    let bench = Bench::new();
    bench.write("path.toml", PATH);
    let lab = shared_lab();
    for (index, text) in HOSTILE.iter().enumerate() {
        let mut plan: Plan = serde_json::from_str(PLANS[2].2).unwrap();
        let mut json = json!(plan);
        json["run"] = json!(text);
        json["near"]["name"] = json!(text);
        for change in json["changes"].as_array_mut().unwrap() {
            change["from"] = json!(text);
            change["to"] = json!(text);
            change["reason"] = json!({"kind": "random_loss", "loss": 0.1, "congestion_control": text});
            if change["target"]["kind"] == "qdisc" {
                change["target"]["device"] = json!(text);
            }
        }
        // One of a hostile name beside those of hostile values.
        json["changes"][3]["target"]["name"] = json!(format!("net.{text}"));
        plan = serde_json::from_value(json).unwrap();
        for form in ExportForm::ALL {
            let exported = export(&plan, End::Near, form, false).unwrap();
            // What stands outside of quotes in these never has it.
            let is_tamed = matches!(form, ExportForm::Powershell | ExportForm::Reg);
            if is_tamed {
                assert!(exported.is_ascii(), "{form:?}: {text:?}");
                let mark = if form == ExportForm::Reg { ';' } else { '#' };
                for line in exported.lines().filter(|line| line.contains("pwned")) {
                    assert!(line.trim_start().starts_with(mark), "{form:?}: {line}");
                }
            }
            bench.write(&format!("{}.{index}", form.name()), exported);
        }
        let as_file = format!("sh.{index}");
        for (file, command) in [
            (&as_file, "status"),
            (&format!("macos.{index}"), "status"),
            (&format!("freebsd.{index}"), "status"),
        ] {
            let ended =
                shell(&bench, &format!("sh -n {file} && BDP_TUNE_STATE=$PWD/record sh {file} {command}"));
            assert_eq!(ended.code(), 1, "{file}: {text:?}: {}{}", ended.out, ended.err);
            assert!(ended.out.ends_with("not applied\n"), "{file}: {}", ended.out);
        }
        if lab.is_some() && index < 4 {
            let ended = on_host(&bench, "real", &steps(&[&format!("sh {as_file} apply")]));
            assert!(ended.out.ends_with("= 1\n"), "{text:?}: {}", ended.out);
        }
        let sysctl = fs::read_to_string(bench.path(&format!("sysctl.{index}"))).unwrap();
        for line in sysctl.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (name, value) = line.split_once(" = ").unwrap();
            assert!(name.starts_with("net.") && line.is_ascii(), "{line}");
            assert_eq!(value, text.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
    let script = format!(
        "import json, yaml\nhostile = json.loads({})\n\
        class Loader(yaml.SafeLoader): pass\nLoader.add_constructor('!unsafe', lambda loader, node: loader.construct_scalar(node))\n\
        for index, text in enumerate(hostile):\n\
        \x20   value = ' '.join(text.split())\n\
        \x20   play = yaml.load(open(f'ansible.{{index}}', newline=''), Loader)[0]\n\
        \x20   assert set(play) == {{'name', 'hosts', 'become', 'gather_facts', 'vars', 'tasks'}}, set(play)\n\
        \x20   assert len(play['vars']['bdp_sysctls']) == 12, play['vars']\n\
        \x20   for one in play['vars']['bdp_sysctls']: assert one['value'].split() == text.split(), (one, text)\n\
        \x20   documents = list(yaml.safe_load_all(open(f'kubernetes.{{index}}', newline='')))\n\
        \x20   assert [d['kind'] for d in documents] == ['Pod', 'ConfigMap', 'DaemonSet'], index\n\
        \x20   for one in documents[0]['spec']['securityContext']['sysctls']: assert one['value'].split() == text.split()\n\
        \x20   assert documents[1]['data']['tune.sh'].startswith('#!/bin/sh\\n')\n",
        json!(json!(HOSTILE).to_string())
    );
    if let Some(ended) = python(&bench, "yaml", &script) {
        assert_eq!(ended.code(), 0, "{}", ended.err);
    }
    if Command::new("sh").args(["-c", "command -v ansible-playbook"]).output().unwrap().status.success()
        && lab.is_some()
    {
        let ended = on_host(
            &bench,
            "real",
            &steps(&[
                "LC_ALL=C.UTF-8 HOME=$PWD ansible-playbook -i localhost, -c local -e bdp_facts=$PWD/facts ansible.7",
            ]),
        );
        assert!(ended.out.contains("PLAY ") && !ended.out.ends_with("= 0\n"), "{}", ended.out);
    }
    assert!(!bench.path("pwned").exists(), "a text became a command");
}
