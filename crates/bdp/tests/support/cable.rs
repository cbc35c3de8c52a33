//! Two machines with a cable between: what loopback can't show.

use super::{BDP, Bench, Ended, machine, start};

/// Two namespaces with a veth pair, 10.77.0.1 and fd77::1 here, 10.77.0.2 and fd77::2 there, in which a server runs.
/// The first script is a part of the second machine's, the other runs here. All ends with the process that is started.
const CABLE: &str = r#"
    export XDG_DATA_HOME="$PWD"
    ip link set lo up
    unshare --net sleep 80 & there=$!
    far() { nsenter -t $there -n "$@"; }
    while [ "$(readlink /proc/$there/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
    ip link add near0 type veth peer name far0
    ip link set far0 netns $there
    ip addr add 10.77.0.1/24 dev near0; ip addr add fd77::1/64 dev near0 nodad; ip link set near0 up
    far ip link set lo up
    far ip addr add 10.77.0.2/24 dev far0; far ip addr add fd77::2/64 dev far0 nodad; far ip link set far0 up
    # Not through `far`, whose shell would be the process that is killed.
    serve() {
        # What the one before said is not taken for its word.
        : >serve.err
        nsenter -t $there -n "$BDP" serve "$@" >serve.out 2>serve.err & server=$!
        until grep -q listening serve.err; do kill -0 $server; sleep 0.02; done
    }
    # measure NAME ARGUMENTS: keeps what it says and its exit code under that name.
    measure() { name=$1; shift; code=0; "$BDP" measure "$@" >$name.out 2>$name.err || code=$?; echo $code >$name.code; }
"#;

/// Runs a script after the cable is laid; `None`, with the reason printed, where this machine can't.
pub fn lay(bench: &Bench, script: &str) -> Option<Ended> {
    isolated(bench, &format!("{CABLE}\n{script}"))
}

/// Runs a script in namespaces of its own; `None`, with the reason printed, where this machine can't.
pub fn isolated(bench: &Bench, script: &str) -> Option<Ended> {
    let lab = machine::shared_lab()?;
    if !machine::has("ip", &["-V"]) || !machine::has("nsenter", &["--version"]) {
        return None;
    }
    let mut command = std::process::Command::new("unshare");
    // A namespace of processes, whose first takes all others with it.
    command.args([
        "--map-root-user",
        "--net",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--",
        "sh",
        "-ec",
    ]);
    command.arg(script).env("BDP", BDP).current_dir(bench.folder());
    let ended = start(command).wait();
    let served = std::fs::read_to_string(bench.path("serve.err")).unwrap_or_default();
    assert_eq!(ended.code(), 0, "{}{}{served}", ended.out, ended.err);
    drop(lab);
    Some(ended)
}

/// What a measurement of the script said: exit code, standard output, standard error.
pub fn said(bench: &Bench, name: &str) -> (i32, String, String) {
    let read = |kind: &str| std::fs::read_to_string(bench.path(&format!("{name}.{kind}"))).unwrap();
    (read("code").trim().parse().unwrap(), read("out"), read("err"))
}
