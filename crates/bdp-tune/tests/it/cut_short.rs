//! The end at each step: of the process, and of the machine. What comes after must find a sound state from which everything goes back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bdp_tune::{ApplyOptions, ConfirmOptions, JournalStatus, RevertOptions, apply, confirm, revert, state};

use crate::machine::{Loss, Machine, PERSISTENT, changes};

const TEN_MINUTES: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    Apply,
    ApplyForATime,
    ApplyForGood,
    Confirm,
    Revert,
    RevertForGood,
    /// As the one above, where another journal is set at boot already.
    ApplyBesideAnother,
    RevertBoth,
}

impl Command {
    const ALL: [Self; 8] = [
        Self::Apply,
        Self::ApplyForATime,
        Self::ApplyForGood,
        Self::Confirm,
        Self::Revert,
        Self::RevertForGood,
        Self::ApplyBesideAnother,
        Self::RevertBoth,
    ];

    /// The machine as the command finds it.
    fn machine(self) -> Machine {
        let mut machine = Machine::new();
        let keep_for = (self == Self::Confirm).then_some(TEN_MINUTES);
        let persist = matches!(self, Self::Confirm | Self::RevertForGood);
        if matches!(self, Self::Confirm | Self::Revert | Self::RevertForGood) {
            let options = ApplyOptions { keep_for, persist, ..ApplyOptions::default() };
            apply(&mut machine, &changes(), &options).unwrap();
        }
        if matches!(self, Self::ApplyBesideAnother | Self::RevertBoth) {
            let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
            apply(&mut machine, &changes()[4..], &options).unwrap();
            if self == Self::RevertBoth {
                apply(&mut machine, &changes()[..4], &options).unwrap();
            }
        }
        machine.steps.clear();
        machine
    }

    fn run(self, machine: &mut Machine) {
        let keep_for = (self == Self::ApplyForATime).then_some(TEN_MINUTES);
        let persist = matches!(self, Self::ApplyForATime | Self::ApplyForGood | Self::ApplyBesideAnother);
        match self {
            Self::Apply | Self::ApplyForATime | Self::ApplyForGood | Self::ApplyBesideAnother => {
                let options = ApplyOptions { keep_for, persist, ..ApplyOptions::default() };
                apply(machine, &changes(), &options).map(drop).unwrap();
            }
            Self::Confirm => confirm(machine, ConfirmOptions::default()).map(drop).unwrap(),
            Self::Revert | Self::RevertForGood | Self::RevertBoth => {
                revert(machine, RevertOptions::default()).map(drop).unwrap();
            }
        }
    }
}

/// Runs a command until it ends before step `at`; `None` where it came to its end before.
fn end_at(command: Command, at: usize) -> Option<Machine> {
    let mut machine = command.machine();
    machine.die_at = Some(at);
    let ended = catch_unwind(AssertUnwindSafe(|| command.run(&mut machine)));
    ended.is_err().then_some(machine)
}

fn at_each_step(mut check: impl FnMut(Command, &str, Machine)) {
    for command in Command::ALL {
        let mut at = 0;
        while let Some(machine) = end_at(command, at) {
            let what = format!("{command:?} at step {at}, {}", machine.steps[at]);
            check(command, &what, machine);
            at += 1;
        }
        assert!(at >= 7, "{command:?} has {at} steps");
    }
}

#[track_caller]
fn assert_goes_back(machine: &mut Machine, what: &str) {
    let found = state(machine).unwrap();
    assert_eq!(found.damaged, [], "{what}");
    let reverted = revert(machine, RevertOptions::default()).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!((&reverted.foreign[..], &reverted.failed[..]), (&[][..], &[][..]), "{what}");
    assert_eq!(reverted.foreign_file, None, "{what}");
    machine.assert_as_before(what);
    assert_eq!(machine.journals(), Vec::<String>::new(), "{what}");
    assert!(!machine.has_file(PERSISTENT), "{what}");
    // Once more finds nothing to do.
    let again = revert(machine, RevertOptions::default()).unwrap();
    assert_eq!((again.put_back.len(), again.were_back.len()), (0, 0), "{what}");
}

#[test]
fn killed_at_any_step_everything_goes_back() {
    at_each_step(|_, what, mut machine| {
        machine.kill();
        assert_goes_back(&mut machine, what);
    });
}

#[test]
fn killed_again_while_it_puts_back_everything_goes_back() {
    at_each_step(|_, what, machine| {
        for at in 0.. {
            let mut machine = machine.clone();
            machine.kill();
            machine.steps.clear();
            machine.die_at = Some(at);
            let ended =
                catch_unwind(AssertUnwindSafe(|| drop(revert(&mut machine, RevertOptions::default()))));
            if ended.is_ok() {
                break;
            }
            machine.kill();
            assert_goes_back(&mut machine, &format!("{what}, and at step {at} of revert"));
        }
    });
}

#[test]
fn without_power_at_any_step_nothing_stays_that_was_not_confirmed() {
    for loss in [Loss::All, Loss::Contents, Loss::Nothing] {
        at_each_step(|command, what, mut machine| {
            machine.lose_power(loss);
            let what = format!("{what}, without power, which loses {loss:?}");
            let found = state(&mut machine).unwrap();
            assert!(
                found.journals.iter().all(|journal| journal.standing == JournalStatus::OtherBoot),
                "{what}"
            );
            let is_set_at_boot = machine.has_file(PERSISTENT);
            if matches!(command, Command::Apply | Command::ApplyForATime | Command::Revert) {
                assert!(!is_set_at_boot, "{what}");
            }
            // What is set at boot was confirmed, and is known.
            let is_confirmed = found
                .journals
                .iter()
                .any(|of| of.journal.until.is_none() && of.journal.persistent_file.is_some());
            assert!(!is_set_at_boot || is_confirmed, "{what}");
            if !is_set_at_boot {
                machine.assert_as_before(&what);
            }
            assert_goes_back(&mut machine, &what);
        });
    }
}

#[test]
fn after_an_end_at_any_step_the_next_apply_works_or_says_what_to_do() {
    at_each_step(|_, what, mut machine| {
        machine.kill();
        match apply(&mut machine, &changes(), &ApplyOptions::default()) {
            Ok(_) => {}
            Err(refusal) => {
                let said = refusal.to_string();
                assert!(said.contains("bdp tune revert") || said.contains("--force"), "{what}: {said}");
            }
        }
        assert_goes_back(&mut machine, what);
    });
}
