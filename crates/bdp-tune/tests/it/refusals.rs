//! What is refused before anything is touched.

use bdp_model::tuning::{RouteAttribute, Target};
use bdp_tune::{ApplyOptions, ConfirmOptions, Fault, Holder, Refusal, apply, confirm};

use crate::machine::{Machine, change, changes, qdisc, rmem, route};

#[track_caller]
fn refused(
    machine: &mut Machine,
    changes: &[bdp_model::tuning::Change],
    options: &ApplyOptions<'_>,
) -> Refusal {
    let refusal = apply(machine, changes, options).unwrap_err();
    assert!(!machine.steps.iter().any(|step| step.starts_with("write ")), "{refusal}: {:?}", machine.steps);
    assert_eq!(machine.journals(), Vec::<String>::new(), "{refusal}");
    assert_eq!(machine.locked_by, None, "{refusal}");
    refusal
}

#[test]
fn a_setting_that_is_not_as_planned_is_named_unless_it_is_forced() {
    let mut machine = Machine::new();
    let stale = [change(rmem(), Some("1 2 3"), "4096 131072 8388608")];
    let said = refused(&mut machine, &stale, &ApplyOptions::default()).to_string();
    for part in ["net.ipv4.tcp_rmem", "'1 2 3'", "6291456", "--force"] {
        assert!(said.contains(part), "{said}");
    }
    apply(&mut machine, &stale, &ApplyOptions { force: true, ..ApplyOptions::default() }).unwrap();
}

#[test]
fn what_is_there_already_is_nothing_to_do() {
    let mut machine = Machine::new();
    let there = [change(rmem(), Some("1 2 3"), "4096  131072 6291456")];
    let applied = apply(&mut machine, &there, &ApplyOptions::default()).unwrap();
    assert!(applied.journal.is_none() && applied.steps[0].is_there);
    assert_eq!(machine.steps, Vec::<String>::new());
}

#[test]
fn bad_requests_touch_nothing() {
    let mut machine = Machine::new();
    let fault = |target: Target, to: &str| match refused(
        &mut Machine::new(),
        &[change(target, None, to)],
        &ApplyOptions::default(),
    ) {
        Refusal::Setting { fault, .. } => fault,
        other => panic!("{other}"),
    };
    assert_eq!(fault(Target::sysctl("net.ipv4.tcp_nosuch"), "1"), Fault::Unknown);
    assert_eq!(fault(Target::sysctl("kernel.core_pattern"), "|/x"), Fault::OutOfScope);
    assert_eq!(fault(rmem(), "1\nkernel.x = 2"), Fault::BadValue("1kernel.x = 2".to_owned()));
    assert_eq!(fault(qdisc(), "netem"), Fault::BadValue("netem".to_owned()));
    machine.set(&qdisc(), "cake", Holder::Other);
    let refusal = refused(&mut machine, &[change(qdisc(), None, "fq")], &ApplyOptions::default());
    assert!(
        refusal.to_string().contains("the queueing discipline 'cake' was set by someone else"),
        "{refusal}"
    );
    let fack = [change(Target::sysctl("net.ipv4.tcp_fack"), None, "1")];
    let said = refused(&mut machine, &fack, &ApplyOptions::default()).to_string();
    assert_eq!(said, "set net.ipv4.tcp_fack: Linux 6.1.0 ignores it");
    let twice = [change(rmem(), None, "1 2 4"), change(rmem(), None, "1 2 5")];
    assert_eq!(refused(&mut machine, &twice, &ApplyOptions::default()), Refusal::Twice(rmem()));
    let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
    let initcwnd = [change(route(RouteAttribute::Initcwnd), None, "20")];
    assert_eq!(refused(&mut machine, &initcwnd, &options), Refusal::NothingPersistent);
    assert_eq!(confirm(&mut machine, ConfirmOptions::default()), Err(Refusal::NothingToConfirm));
}

#[test]
fn a_second_bdp_names_the_first() {
    let mut machine = Machine::new();
    machine.locked_by = Some(4711);
    let refusal = apply(&mut machine, &changes(), &ApplyOptions::default()).unwrap_err();
    assert_eq!(refusal, Refusal::Busy { pid: Some(4711) });
    assert!(refusal.to_string().contains("process 4711"));
    machine.assert_as_before("another bdp is at it");
}

#[test]
fn a_full_disk_changes_nothing() {
    let mut machine = Machine::new();
    machine.disk_is_full = true;
    let refusal = refused(&mut machine, &changes(), &ApplyOptions::default());
    assert!(refusal.to_string().contains("free space"), "{refusal}");
    machine.assert_as_before("the disk is full");
}
