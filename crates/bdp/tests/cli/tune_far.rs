//! `bdp tune --at`: settings of the far end of an emulated path, changed from the near one, with its owner's consent and without.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use bdp_model::measurement::ends::End;
use bdp_model::tuning::{Change, Reason, Target};
use bdp_model::units::Nanos;
use bdp_wire::control::{Answer, Numbered, Request};
use bdp_wire::frame;
use bdp_wire::proof::{Exchange, Prover, hex, unhex};
use bdp_wire::session::{Admission, Greeting, Hello, Kind, Preamble, Refusal};
use bdp_wire::tuning::{MOST_CHANGES, Sealed, TuneAnswer, TuneOrder, TuneRequest};
use serde_json::{Value, json};

use super::tune::{PATH, RMEM, WMEM, change, plan, sysctl};
use crate::support::guests::guests_boot;
use crate::support::machine::{Lab, is_root, shared_lab};
use crate::support::schema::assert_in_schema;
use crate::support::serving::free_port;
use crate::support::untested::skip;
use crate::support::{Bench, Ended, start};

const SCHEMA: &str = include_str!("../../../../docs/tune.schema.json");
const JOURNAL_SCHEMA: &str = include_str!("../../../../docs/tune-journal.schema.json");

/// How the far end serves where nothing else is said.
const SERVE: &str = "bdp serve --token measuring --allow-tune --tune-token tuning --journal $PWD/j";

/// What the far end does: it serves, shows its settings in files, and does what it is asked to by a file.
const FAR: &str = "unset BDP_TUNE_JOURNAL
show() {
    tr '\\t' ' ' < /proc/sys/net/ipv4/tcp_rmem > rmem.new; mv rmem.new rmem
    tr '\\t' ' ' < /proc/sys/net/ipv4/tcp_wmem > wmem.new; mv wmem.new wmem
    ip route get 198.18.0.1 > route.new 2> /dev/null; mv route.new route
}
show; cp rmem rmem.before; cp wmem wmem.before; cp route route.before
[ ! -e first.sh ] || . ./first.sh
serve() {
    PLACE & server=$!
    until grep -q ':1451 .* 0A ' /proc/net/tcp /proc/net/tcp6; do sleep 0.1; done
    : > up
}
serve
while :; do
    show
    [ ! -e do.sh ] || { mv do.sh doing.sh; . ./doing.sh; mv doing.sh done.sh; }
    sleep PACE
done
";

/// What every script of the near end begins with.
const NEAR: &str = "export BDP_TUNE_TOKEN=tuning
until [ -e up ]; do sleep 0.1; done
far='--at far'
is() { for i in $(seq 300); do [ \"$(cat $1)\" = \"$2\" ] && return; sleep 0.1; done; echo \"$1 is $(cat $1), and not $2\"; exit 1; }
stays() { sleep 0.5; is \"$1\" \"$2\"; }
before() { is $1 \"$(cat $1.before)\"; }
there() { rm -f done.sh; echo \"$1\" > do.new; mv do.new do.sh; for i in $(seq 300); do [ -e done.sh ] && return; sleep 0.1; done; exit 1; }
clean() { for i in $(seq 300); do [ \"$(ls j)\" = lock ] && { echo lock; return; }; sleep 0.1; done; ls j; exit 1; }
no() { \"$@\" && { echo \"$*: done\"; exit 1; } || echo \"exit $?\"; }
";

fn of_far(mut change: Value) -> Value {
    change["end"] = "far".into();
    change
}

fn far_plan(changes: Vec<Value>) -> String {
    plan(&changes.into_iter().map(of_far).collect::<Vec<_>>())
}

fn route(to: &str, value: &str) -> Value {
    change(json!({ "kind": "route", "to": to, "attribute": "initcwnd" }), value)
}

fn bench() -> Option<Bench> {
    if !is_root() {
        skip("settings of hosts need root");
        return None;
    }
    let bench = Bench::new();
    bench.write("path.toml", PATH);
    bench.write(
        "plan.json",
        far_plan(vec![sysctl("net.ipv4.tcp_rmem", RMEM), sysctl("net.ipv4.tcp_wmem", WMEM)]),
    );
    Some(bench)
}

fn on_lab() -> Option<(Bench, Lab)> {
    let bench = bench()?;
    Some((bench, shared_lab()?))
}

/// Runs a script on the near host, with the other one served so.
#[track_caller]
fn run_with(bench: &Bench, clock: &str, serve: &str, script: &str) -> Ended {
    // By the virtual clock processes are slow, and time is not.
    let pace = if clock == "virtual" { "0.5" } else { "0.1" };
    let _ = std::fs::remove_file(bench.path("up"));
    bench.write("far.sh", FAR.replace("PLACE", serve).replace("PACE", pace));
    bench.write("near.sh", format!("{NEAR}{script}\n"));
    let line = format!(
        "bdp lab exec path.toml --clock {clock} -q --store none --serve 'far=exec sh far.sh' --host near -- sh -e near.sh"
    );
    let ended = start(bench.shell(&line)).wait();
    assert_eq!(ended.code(), 0, "{}{}", ended.out, ended.err);
    ended
}

#[track_caller]
fn run(bench: &Bench, script: &str) -> Ended {
    run_with(bench, "real", SERVE, script)
}

#[track_caller]
fn json_of(bench: &Bench, name: &str, schema: &str) -> Value {
    let text = std::fs::read_to_string(bench.path(name)).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_in_schema(&document, schema);
    document
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn far_settings_are_applied_listed_confirmed_and_reverted() {
    let Some((bench, _lab)) = on_lab() else { return };
    let ended = run(
        &bench,
        &format!(
            "bdp tune journal $far
            bdp tune apply plan.json $far --dry-run
            stays rmem \"$(cat rmem.before)\"; [ ! -e j ]
            bdp tune apply plan.json $far --yes --json > applied.json
            is rmem '{RMEM}'; is wmem '{WMEM}'
            cp j/0001.json journal.json
            bdp tune journal $far --json > state.json
            bdp tune journal $far
            bdp tune apply plan.json $far --yes
            bdp tune confirm $far --json > confirmed.json
            no bdp tune confirm $far
            bdp tune journal $far
            stays rmem '{RMEM}'
            bdp tune revert $far --json > reverted.json
            before rmem; before wmem
            bdp tune revert $far; clean
            bdp tune apply plan.json $far --for 1h --yes
            bdp tune confirm $far --only 1
            bdp tune revert $far --only 1
            no bdp tune revert $far --only 1"
        ),
    );
    let applied = json_of(&bench, "applied.json", SCHEMA);
    assert_eq!((&applied["at"], &applied["journal"]), (&json!("far"), &json!(1)));
    assert!(applied["until_unix_ms"].is_u64(), "{applied}");
    let journal = json_of(&bench, "journal.json", JOURNAL_SCHEMA);
    assert_eq!((&journal["client"], &journal["persistent_file"]), (&json!("198.18.0.1"), &Value::Null));
    let state = json_of(&bench, "state.json", SCHEMA);
    let of = &state["journals"][0];
    assert_eq!(
        (&of["standing"], &of["guarded"], &of["client"]),
        (&json!("pending"), &json!(true), &json!("198.18.0.1"))
    );
    assert_eq!(of["settings"][1]["standing"], "in_force");
    assert_eq!(json_of(&bench, "confirmed.json", SCHEMA)["journals"], json!([1]));
    let reverted = json_of(&bench, "reverted.json", SCHEMA);
    assert_eq!(reverted["put_back"].as_array().unwrap().len(), 2);
    for part in [
        "nothing is in force",
        "nothing was changed (--dry-run)",
        "journal 1 from 198.18.0.1: since",
        "reverted then, unless 'bdp tune confirm --at far' is run",
        "nothing to do: all settings are already as planned",
        "in force until 'bdp tune revert --at far'",
        "nothing to revert lock",
        "by the clock there, then all changes revert; 'bdp tune confirm --at far' keeps them undo bdp tune revert --at far",
        "kept 2 settings in force until 'bdp tune revert --at far'",
    ] {
        assert!(words(&ended.out).contains(part), "{part}: {}", ended.out);
    }
    // Standard error has the server's lines, too.
    for part in [
        "tuning is allowed: clients with the tune token may change TCP settings of this host",
        &format!(
            ": 198.18.0.1:{{}} tune: set net.ipv4.tcp_rmem: 4096 131072 6291456 -> {RMEM} (journal 1, for 600 s)"
        ),
        ": 198.18.0.1:{} tune: confirmed journal 1: in force until 'bdp tune revert'",
        &format!(
            ": 198.18.0.1:{{}} tune: reverted net.ipv4.tcp_rmem: {RMEM} -> 4096 131072 6291456 (journal 1)"
        ),
    ] {
        let (head, tail) = part.split_once("{}").unwrap_or((part, ""));
        let before = std::fs::read_to_string(bench.path("rmem.before")).unwrap();
        let tail = tail.replace("4096 131072 6291456", before.trim());
        let logged = ended.err.lines().any(|line| line.contains(head) && line.contains(&tail));
        assert!(logged, "{part}: {}", ended.err);
    }
    assert!(ended.out.contains("exit 2\n"), "{}", ended.out);
    assert!(ended.err.contains("journal 1 does not exist"), "{}", ended.err);
}

#[test]
fn without_consent_or_the_tune_token_nothing_is_changed() {
    let Some((bench, _lab)) = on_lab() else { return };
    let ended = run_with(
        &bench,
        "real",
        "bdp serve --token measuring",
        "no bdp tune apply plan.json $far --yes
        no bdp tune journal $far
        no bdp tune apply plan.json --at far:5999 --yes
        stays rmem \"$(cat rmem.before)\"; [ ! -e j ]",
    );
    assert_eq!(ended.out, "exit 3\nexit 3\nexit 3\n");
    let said = "does not allow remote changes of its settings; start 'bdp serve --allow-tune' there, or run the output of 'bdp tune export' there";
    assert_eq!(ended.err.matches(said).count(), 2, "{}", ended.err);

    let ended = run(
        &bench,
        "no bdp tune apply plan.json $far --yes --tune-token measuring
        no bdp tune apply plan.json $far --yes --tune-token wrong
        unset BDP_TUNE_TOKEN
        no bdp tune apply plan.json $far --yes
        no bdp measure far --token tuning -t 0.2 -i 0.1 --store none
        bdp measure far --token measuring -t 0.2 -i 0.1 --store none > /dev/null
        for i in 1 2 3 4 5 6 7 8; do bdp tune journal $far --tune-token wrong$i || true; done
        no bdp tune journal $far --tune-token tuning
        bdp measure far --token measuring -t 0.2 -i 0.1 --store none > /dev/null
        stays rmem \"$(cat rmem.before)\"; [ ! -e j ]",
    );
    assert_eq!(ended.out, "exit 3\nexit 3\nexit 2\nexit 3\nexit 3\n", "{}", ended.err);
    let wrong = "refused: wrong tune token; use the one that 'bdp serve --allow-tune' printed there";
    assert_eq!(ended.err.matches(wrong).count(), 10, "{}", ended.err);
    assert!(ended.err.contains("--at needs the tune token"), "{}", ended.err);
    assert!(ended.err.contains("10 wrong tune tokens came from this address within 60 s"), "{}", ended.err);
    assert!(ended.err.contains(": its tune token is wrong"), "{}", ended.err);
}

#[test]
fn what_a_client_may_not_set_is_one_line_and_nothing_is_touched() {
    let Some((bench, _lab)) = on_lab() else { return };
    let rmem = || sysctl("net.ipv4.tcp_rmem", RMEM);
    let qdisc = |device: &str, value: &str| change(json!({ "kind": "qdisc", "device": device }), value);
    let mut stale = rmem();
    stale["from"] = "1 2 3".into();
    let cases = [
        ("forward", sysctl("net.ipv4.ip_forward", "1"), "is not a setting that a client may change"),
        (
            "value",
            sysctl("net.ipv4.tcp_wmem", "4096 16384 99999999999"),
            "is not a value of net.ipv4.tcp_wmem that a client may set",
        ),
        ("route", route("198.18.0.9", "20"), "a client may change only the route to itself, 198.18.0.1"),
        ("device", qdisc("lo", "fq"), "only the device that sends packets to it"),
        ("netem", qdisc("link0", "netem"), "is not a value of qdisc of link0"),
        ("stale", stale, "but the plan was made for '1 2 3'"),
        (
            "algorithm",
            sysctl("net.ipv4.tcp_congestion_control", "nosuch"),
            "'nosuch' is not available in this kernel",
        ),
    ];
    let mut script = String::new();
    for (name, changed, _) in &cases {
        let mut changes = vec![changed.clone()];
        if *name != "stale" {
            changes.insert(0, rmem());
        }
        bench.write(&format!("{name}.json"), far_plan(changes));
        script.push_str(&format!("no bdp tune apply {name}.json $far --yes 2>> said\n"));
    }
    script.push_str(
        "no bdp tune apply plan.json $far --yes --for 5 2>> said
        no bdp tune apply plan.json $far --yes --for 2h 2>> said
        stays rmem \"$(cat rmem.before)\"; [ ! -e j ]
        for wrong in '--persist' '--end near' '--journal x'; do no bdp tune apply plan.json $far --yes $wrong; done
        no bdp tune confirm $far --persist",
    );
    let ended = run(&bench, &script);
    assert_eq!(ended.out, "exit 2\n".repeat(cases.len() + 6), "{}", ended.err);
    let said = std::fs::read_to_string(bench.path("said")).unwrap();
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said.len(), cases.len() + 2, "{said:#?}");
    for ((name, _, part), line) in cases.iter().zip(&said) {
        assert!(
            line.starts_with("bdp: apply: 198.18.0.2:5201 refused: ") && line.contains(part),
            "{name}: {line}"
        );
    }
    for line in &said[cases.len()..] {
        assert!(line.contains("revert automatically after 10 s to 3600 s"), "{line}");
    }
    // The owner of the host reads of each.
    assert_eq!(ended.err.matches(" tune: was refused: ").count(), said.len(), "{}", ended.err);
}

#[test]
fn when_the_time_is_over_the_far_end_is_as_before() {
    let Some(bench) = bench() else { return };
    if !guests_boot(&bench) {
        return;
    }
    let ended = run_with(
        &bench,
        "virtual",
        SERVE,
        &format!(
            "bdp tune apply plan.json $far --for 10 --yes > /dev/null
            is rmem '{RMEM}'; sleep 7; is rmem '{RMEM}'
            sleep 4; before rmem; before wmem
            bdp tune journal $far
            no bdp tune confirm $far --only 1
            : the server is killed
            bdp tune apply plan.json $far --for 10 --yes > /dev/null
            is rmem '{RMEM}'
            there 'kill -KILL $server; wait $server || true'
            no bdp tune journal $far
            is rmem '{RMEM}'; sleep 11; before rmem; before wmem; clean
            : another one goes on where it was
            there serve
            bdp tune apply plan.json $far --for 10 --yes > /dev/null
            there 'kill -KILL $server; wait $server || true; serve'
            bdp tune confirm $far
            sleep 12; is rmem '{RMEM}'
            bdp tune revert $far > /dev/null; before rmem"
        ),
    );
    assert!(ended.out.starts_with("nothing is in force\nexit 2\nexit 3\nlock\nkept "), "{}", ended.out);
    assert!(
        ended.err.contains("journal 1 does not exist, or its changes were already reverted"),
        "{}",
        ended.err
    );
}

#[test]
fn a_client_that_dies_and_a_server_that_dies_leave_nothing_behind() {
    let Some((bench, _lab)) = on_lab() else { return };
    // By the real clock: the client is killed as soon as the first setting is there, and then the server.
    let ended = run(
        &bench,
        &format!(
            "setsid sh -c 'bdp tune apply plan.json --at far --for 10 --yes > /dev/null & sleep 30' & client=$!
            is rmem '{RMEM}'
            kill -KILL -$client 2> /dev/null || kill -KILL $client
            there 'kill -KILL $server; wait $server || true'
            is rmem '{RMEM}'
            before rmem; before wmem; clean"
        ),
    );
    assert_eq!(ended.out, "lock\n", "{}", ended.err);
}

#[test]
fn a_route_to_the_client_and_the_discipline_towards_it_are_set_and_put_back() {
    let Some(bench) = bench() else { return };
    if !guests_boot(&bench) {
        return;
    }
    bench.write(
        "plan.json",
        far_plan(vec![
            route("198.18.0.1", "20"),
            change(json!({ "kind": "qdisc", "device": "link0" }), "fq maxrate 8000000bit"),
        ]),
    );
    let ended = run_with(
        &bench,
        "virtual",
        SERVE,
        "bdp tune apply plan.json $far --yes
        there 'ip route show 198.18.0.1 > routes; tc qdisc show dev link0 > qdiscs'
        cat routes qdiscs
        bdp tune revert $far
        there 'ip route show 198.18.0.1 proto 98 > routes; tc qdisc show dev link0 > qdiscs'
        cat routes; no grep -q maxrate qdiscs",
    );
    let said = words(&ended.out);
    for part in ["initcwnd 20", "qdisc fq bd9:", "back route to 198.18.0.1 initcwnd: 20 -> not set"] {
        assert!(said.contains(part), "{part}: {}", ended.out);
    }
    assert!(ended.out.ends_with("exit 1\n"), "{}", ended.out);
}

#[test]
fn two_clients_at_once_are_served_one_after_the_other() {
    let Some((bench, _lab)) = on_lab() else { return };
    bench.write("rmem.json", far_plan(vec![sysctl("net.ipv4.tcp_rmem", RMEM)]));
    bench.write("wmem.json", far_plan(vec![sysctl("net.ipv4.tcp_wmem", WMEM)]));
    bench.write("other.json", far_plan(vec![sysctl("net.ipv4.tcp_rmem", "4096 131072 7000000")]));
    let ended = run(
        &bench,
        &format!(
            "for round in 1 2 3 4 5; do
                bdp tune apply rmem.json $far --yes > one & one=$!
                bdp tune apply wmem.json $far --yes > two & two=$!
                wait $one; wait $two
                is rmem '{RMEM}'; is wmem '{WMEM}'
                bdp tune revert $far > reverted & one=$!
                bdp tune journal $far > /dev/null & two=$!
                wait $one; wait $two
                before rmem; before wmem
            done
            : two values for one setting
            bdp tune apply rmem.json $far --yes > one 2> said-one & one=$!
            bdp tune apply other.json $far --yes > two 2> said-two & two=$!
            code=0; wait $one || code=$?
            wait $two && echo $code + 0 || echo $code + $?
            cat said-one said-two > said
            bdp tune revert $far > /dev/null
            before rmem; before wmem; clean"
        ),
    );
    // The one that comes second is refused: what goes back by itself has one owner.
    assert!(["0 + 3\nlock\n", "3 + 0\nlock\n"].contains(&ended.out.as_str()), "{}", ended.out);
    let said = std::fs::read_to_string(bench.path("said")).unwrap();
    assert!(said.contains("will revert automatically (journal ") && said.lines().count() == 1, "{said}");
}

#[test]
fn what_the_owner_applied_or_changed_is_not_for_clients() {
    let Some((bench, _lab)) = on_lab() else { return };
    bench.write("rmem.json", far_plan(vec![sysctl("net.ipv4.tcp_rmem", RMEM)]));
    bench.write("wmem.json", far_plan(vec![sysctl("net.ipv4.tcp_wmem", WMEM)]));
    bench.write("other.json", far_plan(vec![sysctl("net.ipv4.tcp_rmem", "4096 131072 7000000")]));
    bench.write("first.sh", "bdp tune apply rmem.json --end far --for 1h --yes --journal j > /dev/null\n");
    let ended = run(
        &bench,
        &format!(
            "is rmem '{RMEM}'
            no bdp tune confirm $far --only 1
            no bdp tune revert $far --only 1
            bdp tune revert $far
            bdp tune journal $far
            no bdp tune apply other.json $far --yes --force
            : somebody else changes what a client set
            bdp tune apply wmem.json $far --yes > /dev/null; is wmem '{WMEM}'
            there 'echo 4096 16384 999999 > /proc/sys/net/ipv4/tcp_wmem'
            no bdp tune revert $far
            is wmem '4096 16384 999999'; is rmem '{RMEM}'"
        ),
    );
    let said = words(&ended.out);
    for part in [
        "exit 2 exit 2 nothing to revert",
        "reverted then, unless 'bdp tune confirm' is run there",
        "exit 3 left net.ipv4.tcp_wmem",
        "but it is now 4096 16384 999999, changed by someone else (there, 'bdp tune revert --force' sets",
        "exit 1",
    ] {
        assert!(said.contains(part), "{part}: {}", ended.out);
    }
    assert!(ended.err.contains("journal 1 was applied on the host itself"), "{}", ended.err);
    assert!(ended.err.contains("will revert automatically (journal 1)"), "{}", ended.err);
}

#[test]
fn a_server_without_rights_starts_and_refuses_in_one_line() {
    let Some((bench, _lab)) = on_lab() else { return };
    let copy = bench.open_to_all();
    let journals = bench.path("journals");
    fs::create_dir(&journals).unwrap();
    fs::set_permissions(&journals, fs::Permissions::from_mode(0o777)).unwrap();
    let serve = format!(
        "setpriv --reuid 65534 --regid 65534 --clear-groups {} serve --token measuring --allow-tune --tune-token tuning --journal {}",
        copy.display(),
        journals.display()
    );
    let ended = run_with(
        &bench,
        "real",
        &serve,
        "no bdp tune apply plan.json $far --yes
        stays rmem \"$(cat rmem.before)\"",
    );
    assert_eq!(ended.out, "exit 3\n", "{}", ended.err);
    let line = ended.err.lines().find(|line| line.starts_with("bdp: apply: ")).unwrap();
    assert!(line.contains("not permitted; needs root (CAP_NET_ADMIN)"), "{line}");
}

#[test]
fn an_older_server_is_named_as_such() {
    let bench = Bench::new();
    bench.write("plan.json", far_plan(vec![sysctl("net.ipv4.tcp_rmem", RMEM)]));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // As version 1 was before there was tuning.
    let older = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 8]).unwrap();
            stream.write_all(&Preamble::new(Kind::Control).encode()).unwrap();
            let challenge =
                json!({ "challenge": { "bdp": "0.1.0", "nonce": "0".repeat(64), "token_needed": true } });
            frame::write(&mut stream, &challenge).unwrap();
            let _ = stream.read(&mut [0; 64]);
        }
    });
    for command in ["apply plan.json --yes", "journal"] {
        let ended = bench.run(&format!("tune {command} --at 127.0.0.1:{port} --tune-token x"));
        let line = ended.refusal(3);
        for part in
            ["runs a version of bdp without remote tuning", "'bdp serve --allow-tune'", "'bdp tune export'"]
        {
            assert!(line.contains(part), "{line}");
        }
    }
    older.join().unwrap();
}

#[test]
fn tune_tokens_of_a_server_are_its_own() {
    let bench = Bench::new();
    for (line, part) in [
        ("serve --allow-tune --token one --tune-token one", "the tune token equals the token of --token"),
        ("serve --allow-tune --open", "--allow-tune with --open needs a tune token"),
        ("serve --tune-token one", "--allow-tune"),
        ("serve --journal x", "--allow-tune"),
        ("tune journal --tune-token one", "--at"),
        ("tune journal --at far --journal x", "--journal"),
        ("tune confirm --only 1", "--at"),
    ] {
        let ended = bench.run(line);
        assert!(ended.refusal(2).contains(part), "{line}: {}", ended.err);
    }
    let mut tokens = Vec::new();
    for extra in ["", "--open --tune-token given"] {
        let mut server = start(bench.bdp(&format!("serve -p {} --allow-tune {extra}", free_port())));
        server.wait_until("the line to paste", |server| server.out().contains("--at"));
        server.signal("TERM");
        let ended = server.wait();
        let line = ended.out.lines().nth(1).unwrap();
        assert!(line.starts_with("bdp tune apply PLAN.json --at "), "{line}");
        tokens.push(line.rsplit(' ').next().unwrap().to_owned());
        assert!(ended.err.contains("tuning is allowed"), "{}", ended.err);
    }
    assert!(tokens[0].len() >= 20 && tokens[1] == "given", "{tokens:?}");
}

/// A client that says what it likes.
struct Raw {
    stream: TcpStream,
    exchange: Exchange,
}

/// What it proves.
type Proofs<'a> = &'a dyn Fn(&Exchange) -> (Option<String>, Option<String>);

impl Raw {
    fn greet(to: SocketAddr, proofs: Proofs<'_>) -> Result<Self, Refusal> {
        let mut stream = TcpStream::connect(to).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(&Preamble::new(Kind::Control).encode()).unwrap();
        stream.read_exact(&mut [0; 8]).unwrap();
        let Greeting::Challenge { nonce, tune, .. } = frame::read(&mut stream).unwrap() else { panic!() };
        assert_eq!(tune, Some(true));
        let exchange = Exchange { server_nonce: unhex(&nonce).unwrap(), client_nonce: [7; 32] };
        let (proof, tune_proof) = proofs(&exchange);
        let hello = Hello { bdp: "raw".to_owned(), nonce: hex(&exchange.client_nonce), proof, tune_proof };
        frame::write(&mut stream, &hello).unwrap();
        match frame::read(&mut stream).unwrap() {
            Admission::Refused(refusal) => Err(refusal),
            Admission::Welcome { .. } => Ok(Self { stream, exchange }),
        }
    }

    fn ask(&mut self, id: u64, body: Request) -> Answer {
        frame::write(&mut self.stream, &Numbered { id, body }).unwrap();
        let answer: Numbered<Answer> = frame::read(&mut self.stream).unwrap();
        assert_eq!(answer.id, id);
        answer.body
    }

    fn seal(&self, id: u64, request: &TuneRequest) -> Sealed {
        Sealed::close(request, &self.exchange, "tuning", Prover::TuneClient, id).unwrap()
    }

    fn tune(&mut self, id: u64, request: &TuneRequest) -> TuneAnswer {
        let sealed = self.seal(id, request);
        match self.ask(id, Request::Tune(sealed)) {
            Answer::Tuned(sealed) => sealed.open(&self.exchange, "tuning", Prover::TuneServer, id).unwrap(),
            other => panic!("{other:?}"),
        }
    }
}

#[track_caller]
fn assert_failed(answer: &Answer, part: &str) {
    assert!(matches!(answer, Answer::Failed { error } if error.contains(part)), "{answer:?}");
}

#[test]
#[ignore = "the client that the next test runs on a host"]
fn says_what_it_likes() {
    let to: SocketAddr = std::env::var("BDP_ADDRESS_far")
        .unwrap()
        .parse::<std::net::IpAddr>()
        .map(|ip| (ip, 5201).into())
        .unwrap();
    let tune = |exchange: &Exchange| Some(exchange.prove("tuning", Prover::TuneClient));
    let measure = |exchange: &Exchange| Some(exchange.prove("measuring", Prover::Client));
    // A proof of one right is none of the other.
    let wrong: [Proofs<'_>; 4] = [
        &|exchange| (None, measure(exchange)),
        &|exchange| (None, Some(exchange.prove("tuning", Prover::Client))),
        &|exchange| (None, Some(exchange.prove("tuning", Prover::TuneServer))),
        &|exchange| (None, Some(exchange.prove("measuring", Prover::TuneClient))),
    ];
    for proofs in wrong {
        assert_eq!(Raw::greet(to, proofs).err(), Some(Refusal::TuneTokenWrong));
    }
    assert_eq!(Raw::greet(to, &|exchange| (tune(exchange), None)).err(), Some(Refusal::TokenWrong));
    assert_eq!(Raw::greet(to, &|_| (None, None)).err(), Some(Refusal::TokenNeeded));

    // Who may measure alone may not tune.
    let mut raw = Raw::greet(to, &|exchange| (measure(exchange), None)).ok().unwrap();
    let sealed = raw.seal(1, &TuneRequest::State);
    assert_failed(&raw.ask(1, Request::Tune(sealed)), "needs the tune token of this server");
    assert!(matches!(raw.ask(2, Request::Facts), Answer::Facts(_)));

    // Who may tune alone may not measure.
    let mut raw = Raw::greet(to, &|exchange| (None, tune(exchange))).ok().unwrap();
    assert_failed(&raw.ask(1, Request::Facts), "the tune token permits only tuning");
    assert_failed(&raw.ask(2, Request::Begin { flow: 1 }), "the tune token permits only tuning");

    let change = |name: &str, to: &str| Change {
        end: End::Far,
        target: Target::sysctl(name),
        from: None,
        to: to.to_owned(),
        reason: Reason::Off,
        gain: None,
    };
    let order = |changes: Vec<Change>, seconds| {
        TuneRequest::Apply(TuneOrder { changes, keep_for: Nanos::secs(seconds), force: true })
    };
    // What is changed on the way, or comes twice, is nothing.
    let apply = order(vec![change("net.ipv4.tcp_rmem", RMEM)], 60);
    let mut sealed = raw.seal(3, &apply);
    sealed.message = sealed.message.replace("7654321", "8654321");
    assert_failed(&raw.ask(3, Request::Tune(sealed)), "its authentication code is wrong");
    let sealed = raw.seal(4, &apply);
    assert!(matches!(raw.ask(4, Request::Tune(sealed.clone())), Answer::Tuned(_)));
    assert_failed(&raw.ask(4, Request::Tune(sealed.clone())), "number 4 was already used");
    assert_failed(&raw.ask(5, Request::Tune(sealed)), "its authentication code is wrong");
    assert!(matches!(raw.tune(6, &TuneRequest::Revert { journal: 1 }), TuneAnswer::Reverted(_)));

    // Bounds hold whatever the client checks.
    let many = (0..=MOST_CHANGES).map(|n| change(&format!("net.ipv4.tcp_{n}"), "1")).collect();
    for (at, request) in [
        order(vec![change("net.ipv4.tcp_rmem", RMEM)], 9),
        order(vec![change("net.ipv4.tcp_rmem", RMEM)], 3601),
        order(vec![change("net.ipv4.tcp_rmem/../../../kernel/core_pattern", "|/bin/sh")], 60),
        order(vec![change("net.ipv4.tcp_sack", "1\nx")], 60),
        order(vec![change("net.ipv4.tcp_sack", &"1".repeat(300))], 60),
        order(many, 60),
        order(vec![], 60),
        TuneRequest::Confirm { journal: u32::MAX },
    ]
    .into_iter()
    .enumerate()
    {
        let answer = raw.tune(7 + at as u64, &request);
        assert!(matches!(answer, TuneAnswer::Refused { .. }), "{request:?}: {answer:?}");
    }
    // A message of a later version is one line, and the session goes on.
    let later = Sealed::close(&"later", &raw.exchange, "tuning", Prover::TuneClient, 50).unwrap();
    assert!(matches!(raw.ask(50, Request::Tune(later)), Answer::Tuned(_)));
    assert!(matches!(raw.tune(51, &TuneRequest::State), TuneAnswer::State(_)));
}

#[test]
fn proofs_and_requests_are_worth_nothing_beyond_their_own() {
    let Some((bench, _lab)) = on_lab() else { return };
    let exe = std::env::current_exe().unwrap();
    let script = format!(
        "{} --ignored --exact tune_far::says_what_it_likes
        before rmem; clean",
        exe.display()
    );
    let ended = run(&bench, &script);
    assert!(ended.out.contains("1 passed") && ended.out.ends_with("lock\n"), "{}", ended.out);
}
