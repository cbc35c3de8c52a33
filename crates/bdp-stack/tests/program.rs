//! Programs that break the contract, each by itself: one line says how, and nothing is left.

use std::path::{Path, PathBuf};
use std::time::Instant;

use bdp_model::units::Nanos;
use bdp_stack::conformance::settings;
use bdp_stack::{Done, Program, Stack, StackError, Step};

/// What a program has to do before it may go wrong.
const HEAD: &str = "import json, os, socket, sys, time
control, packets = socket.socket(fileno=0), socket.socket(fileno=1)
def hear(): return json.loads(control.recv(65536))
def say(what): control.send(json.dumps(what).encode())
def done(n=0, at=None): return {'done': {'packets': n, 'next_ns': at, 'sockets': []}}
hear()
";

fn python() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join("python3")).find(|path| path.is_file())
}

/// Starts a program of these lines and has it do steps until it goes wrong; what is said of it.
fn fate_of(lines: &str) -> Option<String> {
    let Some(python) = python() else {
        println!("SKIPPED programs of stacks: there is no python3 here");
        return None;
    };
    let text = format!("{HEAD}{lines}");
    let begun = Instant::now();
    let outcome: Result<(), StackError> =
        Program::start("stack", Path::new(&python), &["-c", &text], &settings(), None).and_then(
            |mut program| {
                let mut next = Nanos::millis(1);
                for _ in 0..1_000_000 {
                    let mut done = Done::default();
                    program.step(Step { now: next, ..Step::default() }, &mut done)?;
                    next = done.next.unwrap_or(next + Nanos::millis(1));
                }
                Err(StackError::Failed("went on".to_owned()))
            },
        );
    assert!(begun.elapsed().as_secs() < 60);
    Some(outcome.err().map(|error| error.to_string()).unwrap_or_default())
}

fn is_said(lines: &str, expected: &str) {
    if let Some(said) = fate_of(lines) {
        assert!(said.contains(expected), "{said}");
        assert!(!said.contains('\n'), "{said}");
    }
}

#[test]
fn one_that_ends() {
    is_said(
        "say({'ready': {'version': 'x 1'}}); hear(); sys.exit(3)",
        "'stack' ended during a case (exit status: 3)",
    );
    is_said("sys.exit(1)", "'stack' ended during a case (exit status: 1)");
    is_said(
        "say({'ready': {'version': 'x 1'}}); hear(); control.close(); packets.close(); os.close(2); time.sleep(100)",
        "closed its sockets",
    );
}

#[test]
fn one_that_refuses_or_gives_up() {
    is_said("say({'unsupported': 'ECN'}); sys.exit(0)", "stack does not support ECN");
    is_said("say({'failed': 'no memory'})", "'stack' failed: no memory");
}

#[test]
fn one_that_says_what_the_contract_does_not_have() {
    is_said("say({'hello': 1}); time.sleep(100)", "sent an answer that is not in the contract");
    is_said("say(done()); time.sleep(100)", "did not answer \"ready\"");
    is_said(
        "say({'ready': {'version': 'x 1'}}); hear(); say({'ready': {'version': 'x'}}); time.sleep(100)",
        "did not answer \"done\"",
    );
}

#[test]
fn one_that_floods() {
    let flood = "say({'ready': {'version': 'x 1'}}); hear()\nwhile True: packets.send(b'E' * 40)";
    is_said(flood, "sent more than 100000 packets in one step");
    is_said(
        "say({'ready': {'version': 'x 1'}}); hear(); packets.send(b'E'); packets.send(b'E'); say(done(1)); time.sleep(100)",
        "announced 1 packet and sent 2 or more",
    );
    is_said(
        "say({'ready': {'version': 'x 1'}}); hear(); say(done(2)); time.sleep(100)",
        "announced 2 packets and sent 0",
    );
}

#[test]
fn one_that_lies_about_time() {
    is_said(
        "say({'ready': {'version': 'x 1'}}); hear(); say(done(0, 5)); time.sleep(100)",
        "requests its next run at 5 ns, not later",
    );
    let again = "say({'ready': {'version': 'x 1'}})\nwhile True: say(done(0, hear()['step']['now_ns'] + 1))";
    is_said(again, "more than 100000 runs within a millisecond");
}
