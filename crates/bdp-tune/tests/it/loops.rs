//! What apply, confirm and revert do where nothing goes wrong, and where somebody else is at work.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bdp_model::tuning::RouteAttribute;
use bdp_tune::{
    ApplyOptions, ConfirmOptions, EntryStatus, Holder, JournalStatus, Refusal, RevertOptions, apply, confirm,
    revert, state,
};

use crate::machine::{FOLDER, Loss, Machine, PERSISTENT, change, changes, qdisc, rmem, route, wmem};

const MINUTE: Duration = Duration::from_secs(60);
const MINUTE_NS: u64 = 60_000_000_000;

fn for_a_minute() -> ApplyOptions<'static> {
    ApplyOptions { keep_for: Some(MINUTE), ..ApplyOptions::default() }
}

#[test]
fn the_journal_is_durable_before_the_first_write() {
    let mut machine = Machine::new();
    apply(&mut machine, &changes(), &ApplyOptions::default()).unwrap();
    let first = machine.steps.iter().position(|step| step.starts_with("write ")).unwrap();
    let before: Vec<&str> = machine.steps[..first].iter().map(String::as_str).collect();
    let journal = ["create 0001.json.new", "sync 0001.json.new", "rename to 0001.json", "sync /journals"];
    assert_eq!(before, journal);
    let after = machine.settings[&rmem()].value.clone().unwrap();
    assert_eq!(after, "4096\t131072\t16777216");
    let found = state(&mut machine).unwrap();
    assert_eq!(found.journals[0].standing, JournalStatus::InForce);
    assert!(found.journals[0].entries.iter().all(|entry| entry.standing == EntryStatus::InForce));
    let reverted = revert(&mut machine, RevertOptions::default()).unwrap();
    assert_eq!(reverted.put_back.len(), 5);
    machine.assert_as_before("revert");
}

#[test]
fn the_guard_is_there_before_the_journal_and_let_go_after_the_last_write() {
    let mut machine = Machine::new();
    let applied = apply(&mut machine, &changes(), &for_a_minute()).unwrap();
    assert_eq!(machine.steps[0], "start the guard");
    assert_eq!(machine.guards[0].entries.len(), 5);
    assert_eq!(machine.guards[0].until.unwrap().uptime_ns, 1_000 + MINUTE_NS);
    assert!(machine.was_released);
    assert_eq!(applied.journal.unwrap().until.unwrap().uptime_ns, 1_000 + MINUTE_NS);
}

#[test]
fn a_write_that_fails_puts_back_those_before_it() {
    let mut machine = Machine::new();
    machine.refuses.push(wmem());
    let refusal = apply(&mut machine, &changes(), &ApplyOptions::default()).unwrap_err();
    let said = refusal.to_string();
    assert!(said.contains("net.ipv4.tcp_wmem") && said.ends_with("all settings are as before"), "{said}");
    machine.assert_as_before(&said);
    assert_eq!(machine.journals(), Vec::<String>::new());
}

#[test]
fn a_value_that_the_kernel_changes_is_put_back() {
    let mut machine = Machine::new();
    machine.makes.insert(rmem(), "4096 131072 8388608".to_owned());
    let refusal = apply(&mut machine, &changes()[..1], &ApplyOptions::default()).unwrap_err();
    // It was made of the value before as well, by this machine: that can not be put back, and the journal stays.
    assert!(matches!(&refusal, Refusal::Failed { stuck, .. } if stuck.len() == 1), "{refusal}");
    assert_eq!(machine.journals(), ["0001.json"]);
    machine.makes.clear();
    revert(&mut machine, RevertOptions { force: true, only: None }).unwrap();
    machine.assert_as_before("revert --force");
}

#[test]
fn cancelled_it_puts_back() {
    let mut machine = Machine::new();
    let flag = AtomicBool::new(true);
    let options = ApplyOptions { cancelled: Some(&flag), ..ApplyOptions::default() };
    let refusal = apply(&mut machine, &changes(), &options).unwrap_err();
    assert_eq!(refusal, Refusal::Cancelled { stuck: Vec::new() });
    machine.assert_as_before("cancelled");
    assert_eq!(machine.journals(), Vec::<String>::new());
}

#[test]
fn what_somebody_else_changed_is_named_and_left_until_it_is_forced() {
    let mut machine = Machine::new();
    apply(&mut machine, &changes(), &ApplyOptions::default()).unwrap();
    machine.set(&rmem(), "1 2 3", Holder::Kernel);
    machine.set(&qdisc(), "cake", Holder::Other);
    let reverted = revert(&mut machine, RevertOptions::default()).unwrap();
    let foreign: Vec<_> =
        reverted.foreign.iter().map(|f| (f.entry.target.clone(), f.now.clone().unwrap())).collect();
    assert_eq!(foreign, [(rmem(), "1 2 3".to_owned()), (qdisc(), "cake".to_owned())]);
    assert_eq!(reverted.put_back.len(), 3);
    assert_eq!(machine.settings[&rmem()].value.as_deref(), Some("1 2 3"));
    // The journal has what is left, and no more.
    assert_eq!(state(&mut machine).unwrap().journals[0].entries.len(), 2);
    let forced = revert(&mut machine, RevertOptions { force: true, only: None }).unwrap();
    assert_eq!((forced.put_back.len(), forced.foreign.len()), (2, 0));
    machine.assert_as_before("revert --force");
    assert_eq!(machine.journals(), Vec::<String>::new());
}

#[test]
fn an_attribute_of_somebody_else_keeps_the_route_that_bdp_made() {
    let mut machine = Machine::new();
    apply(&mut machine, &changes(), &ApplyOptions::default()).unwrap();
    machine.set(&route(RouteAttribute::Initcwnd), "99", Holder::Bdp);
    let reverted = revert(&mut machine, RevertOptions::default()).unwrap();
    assert_eq!(reverted.foreign.len(), 1);
    let initcwnd = &machine.settings[&route(RouteAttribute::Initcwnd)];
    assert_eq!((initcwnd.value.as_deref(), initcwnd.holder), (Some("99"), Holder::Bdp));
    assert_eq!(machine.settings[&route(RouteAttribute::Congctl)].value, None);
}

#[test]
fn applied_twice_the_first_values_come_back() {
    let mut machine = Machine::new();
    apply(&mut machine, &[change(rmem(), None, "4096 131072 8388608")], &ApplyOptions::default()).unwrap();
    apply(&mut machine, &[change(rmem(), None, "4096 131072 16777216")], &ApplyOptions::default()).unwrap();
    assert_eq!(machine.journals(), ["0001.json", "0002.json"]);
    let reverted = revert(&mut machine, RevertOptions::default()).unwrap();
    assert_eq!(reverted.put_back.len(), 2);
    machine.assert_as_before("revert of both");
}

#[test]
fn confirmed_it_stays_and_is_set_at_boot_where_that_was_asked_for() {
    let mut machine = Machine::new();
    let options = ApplyOptions { persist: true, ..for_a_minute() };
    let applied = apply(&mut machine, &changes(), &options).unwrap();
    assert_eq!((applied.persistent_file, applied.of_this_boot.len()), (None, 3));
    assert!(!machine.has_file(PERSISTENT));
    let confirmed = confirm(&mut machine, ConfirmOptions::default()).unwrap();
    assert_eq!(confirmed.persistent_file.unwrap().to_str(), Some(PERSISTENT));
    let text = machine.file(PERSISTENT);
    assert!(text.starts_with("# Written by bdp"), "{text}");
    assert!(
        text.ends_with(
            "\nnet.ipv4.tcp_rmem = 4096 131072 16777216\nnet.ipv4.tcp_wmem = 4096 16384 16777216\n"
        ),
        "{text}"
    );
    machine.uptime_ns += 2 * MINUTE_NS;
    assert_eq!(state(&mut machine).unwrap().journals[0].standing, JournalStatus::InForce);
    assert_eq!(confirm(&mut machine, ConfirmOptions::default()), Err(Refusal::NothingToConfirm));
    // The next boot sets it again, and revert takes back both.
    machine.lose_power(Loss::All);
    assert_eq!(machine.settings[&rmem()].value.as_deref(), Some("4096 131072 16777216"));
    let reverted = revert(&mut machine, RevertOptions::default()).unwrap();
    assert_eq!(reverted.put_back.len(), 2);
    assert!(!machine.has_file(PERSISTENT));
    machine.assert_as_before("revert in another boot");
}

#[test]
fn a_file_of_somebody_else_is_neither_replaced_nor_removed() {
    let mut machine = Machine::new();
    machine.put_file(PERSISTENT, b"net.ipv4.tcp_rmem = 1 2 3\n");
    let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
    let said = apply(&mut machine, &changes(), &options).unwrap_err().to_string();
    assert!(said.contains("written or changed by someone else"), "{said}");
    machine.assert_as_before(&said);
    let mut machine = Machine::new();
    apply(&mut machine, &changes(), &options).unwrap();
    let edited = machine.file(PERSISTENT) + "net.ipv4.tcp_sack = 1\n";
    machine.put_file(PERSISTENT, edited.as_bytes());
    let reverted = revert(&mut machine, RevertOptions::default()).unwrap();
    assert_eq!(reverted.foreign_file.unwrap().to_str(), Some(PERSISTENT));
    assert!(machine.has_file(PERSISTENT));
}

#[test]
fn a_time_that_is_over_is_said_and_put_back_by_the_next_command() {
    let mut machine = Machine::new();
    apply(&mut machine, &changes(), &for_a_minute()).unwrap();
    assert_eq!(state(&mut machine).unwrap().journals[0].standing, JournalStatus::Pending);
    machine.uptime_ns += 2 * MINUTE_NS;
    assert_eq!(state(&mut machine).unwrap().journals[0].standing, JournalStatus::Overdue);
    let mut of_confirm = machine.clone();
    assert_eq!(confirm(&mut of_confirm, ConfirmOptions::default()), Err(Refusal::TooLate { id: 1 }));
    of_confirm.assert_as_before("confirm came too late");
    let applied = apply(&mut machine, &changes(), &ApplyOptions::default()).unwrap();
    assert_eq!(applied.expired, [1]);
    revert(&mut machine, RevertOptions::default()).unwrap();
    machine.assert_as_before("revert");
}

#[test]
fn a_setting_that_goes_back_by_itself_is_not_changed_again() {
    let mut machine = Machine::new();
    apply(&mut machine, &changes()[..1], &for_a_minute()).unwrap();
    let again = [change(rmem(), None, "4096 131072 33554432")];
    let refusal = apply(&mut machine, &again, &ApplyOptions::default()).unwrap_err();
    assert_eq!(refusal, Refusal::Pending { target: rmem(), id: 1 });
    // Another one may be.
    apply(&mut machine, &[change(wmem(), None, "4096 16384 33554432")], &ApplyOptions::default()).unwrap();
}

#[test]
fn a_journal_of_another_boot_or_network_is_known_as_such() {
    let mut machine = Machine::new();
    apply(&mut machine, &changes(), &ApplyOptions::default()).unwrap();
    machine.namespace = 2;
    assert_eq!(state(&mut machine).unwrap().journals[0].standing, JournalStatus::OtherNamespace);
    let reverted = revert(&mut machine, RevertOptions::default()).unwrap();
    assert_eq!((reverted.elsewhere, reverted.put_back.len()), (vec![(1, 1)], 0));
    machine.namespace = 1;
    machine.lose_power(Loss::All);
    assert_eq!(state(&mut machine).unwrap().journals[0].standing, JournalStatus::OtherBoot);
    assert_eq!(revert(&mut machine, RevertOptions::default()).unwrap().of_other_boots, [1]);
    assert_eq!(machine.journals(), Vec::<String>::new());
    machine.assert_as_before("another boot");
}

#[test]
fn a_damaged_journal_is_named_and_set_aside_on_request() {
    let mut machine = Machine::new();
    apply(&mut machine, &changes()[..1], &ApplyOptions::default()).unwrap();
    machine.put_file(&format!("{FOLDER}/0002.json"), b"{ \"schema\": ");
    let said = apply(&mut machine, &changes()[4..], &ApplyOptions::default()).unwrap_err().to_string();
    assert!(said.contains("0002.json is damaged") && said.contains("--set-aside 0002.json"), "{said}");
    let reverted = revert(&mut machine, RevertOptions::default()).unwrap();
    assert_eq!((reverted.damaged.len(), reverted.put_back.len()), (1, 1));
    let aside = bdp_tune::set_aside(&mut machine, "0002.json").unwrap();
    assert_eq!(aside.path.to_str(), Some("/journals/0002.json.aside"));
    assert_eq!(state(&mut machine).unwrap().damaged, []);
    // Its number is not given again.
    let applied = apply(&mut machine, &changes()[..1], &ApplyOptions::default()).unwrap();
    assert_eq!(applied.journal.unwrap().id, 3);
}
