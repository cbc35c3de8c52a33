//! The guard: it puts back when it is time, whatever became of the journal, unless it reads a confirmation.

use std::cell::RefCell;
use std::io::Result as Io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bdp_model::tuning::Target;
use bdp_tune::{
    ApplyOptions, ConfirmOptions, Fault, Journal, JournalStatus, Reading, Refusal, Removal, RevertOptions,
    Reverted, World, apply, confirm, revert, set_aside, state, supervise,
};

use crate::machine::{FOLDER, Machine, changes};

const MINUTE_NS: u64 = 60_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// A machine on which all changes were applied for a minute.
fn applied() -> (Machine, Journal) {
    let mut machine = Machine::new();
    let options = ApplyOptions { keep_for: Some(Duration::from_nanos(MINUTE_NS)), ..ApplyOptions::default() };
    apply(&mut machine, &changes(), &options).unwrap();
    let journal = machine.guards[0].clone();
    (machine, journal)
}

/// Runs the guard of a journal, while somebody does something at each of its waits.
fn guard(
    machine: Machine,
    journal: &Journal,
    mut meanwhile: impl FnMut(&mut Machine),
) -> (Machine, Option<Reverted>) {
    // The guard's own clock is that of the machine, which stands still between its waits.
    let machine = RefCell::new(machine);
    let mut world = Waiting { machine: &machine };
    let wait = |ns: u64| {
        let mut machine = machine.borrow_mut();
        machine.uptime_ns += ns;
        meanwhile(&mut machine);
        false
    };
    let supervised = supervise(&mut world, journal, wait, || true).unwrap();
    (machine.into_inner(), supervised)
}

fn journal_file() -> PathBuf {
    Path::new(FOLDER).join("0001.json")
}

#[test]
fn guard_puts_back_when_it_is_time() {
    let (machine, journal) = applied();
    let (machine, reverted) = guard(machine, &journal, |_| {});
    assert_eq!(reverted.unwrap().put_back.len(), 5);
    machine.assert_as_before("its time is over");
    assert_eq!(machine.uptime_ns, 1_000 + MINUTE_NS);
    assert_eq!(machine.journals(), Vec::<String>::new());
}

#[test]
fn guard_leaves_what_it_reads_was_confirmed() {
    let (machine, journal) = applied();
    // Also where nothing but the journal says so.
    for is_told in [true, false] {
        let confirm_soon = |machine: &mut Machine| {
            if machine.uptime_ns > 30 * SECOND_NS && confirm(machine, ConfirmOptions::default()).is_ok() {
                assert_eq!(machine.dismissed, [1]);
                machine.dismissed.retain(|_| is_told);
            }
        };
        let (mut machine, reverted) = guard(machine.clone(), &journal, confirm_soon);
        assert_eq!(reverted, None);
        assert_eq!(state(&mut machine).unwrap().journals[0].standing, JournalStatus::InForce);
        assert!(machine.uptime_ns < MINUTE_NS, "it goes soon after");
    }
    // A journal that is damaged once the confirmation was heard changes nothing.
    let (machine, reverted) = guard(machine, &journal, |machine| {
        if confirm(machine, ConfirmOptions::default()).is_ok() {
            machine.put_file("/journals/0001.json", b"{");
        }
    });
    assert_eq!((reverted, machine.uptime_ns), (None, 1_000 + SECOND_NS));
}

/// What becomes of the journal.
type Attack = fn(&mut Machine, &Journal);

#[test]
fn guard_puts_back_whatever_becomes_of_the_journal() {
    let attacks: [(&str, Attack); 9] = [
        ("a folder beside it for a while", |machine, _| {
            let beside = Path::new(FOLDER).join("0009.json");
            match machine.uptime_ns / SECOND_NS {
                5 | 6 => drop(machine.unreadable.insert(beside, "it is a folder".to_owned())),
                _ => drop(machine.unreadable.remove(&beside)),
            }
        }),
        ("a folder in its place", |machine, _| {
            machine.unreadable.insert(journal_file(), "it is a folder".to_owned());
        }),
        ("it can't be read for a while", |machine, _| match machine.uptime_ns / SECOND_NS {
            5..50 => drop(machine.unreadable.insert(journal_file(), "input/output error".to_owned())),
            _ => drop(machine.unreadable.remove(&journal_file())),
        }),
        ("moved away and back", |machine, _| {
            machine.is_folder_away = (5..50).contains(&(machine.uptime_ns / SECOND_NS));
        }),
        ("moved away for good", |machine, _| machine.is_folder_away = true),
        ("removed", |machine, _| machine.remove_file(&journal_file()).unwrap()),
        ("cut", |machine, journal| {
            let bytes = journal.encode();
            machine.put_file("/journals/0001.json", &bytes[..bytes.len() / 2]);
        }),
        ("one bit flipped", |machine, journal| {
            let mut bytes = journal.encode();
            let at = bytes.len() / 2;
            bytes[at] ^= 4;
            machine.put_file("/journals/0001.json", &bytes);
        }),
        ("another apply in its place, which is confirmed", |machine, journal| {
            let other =
                Journal { started_unix_ms: journal.started_unix_ms + 1, until: None, ..journal.clone() };
            machine.put_file("/journals/0001.json", &other.encode());
        }),
    ];
    for (what, attack) in attacks {
        let (machine, journal) = applied();
        let (machine, reverted) = guard(machine, &journal, |machine| attack(machine, &journal));
        assert_eq!(reverted.map(|reverted| reverted.put_back.len()), Some(5), "{what}");
        machine.assert_as_before(what);
        assert_eq!(machine.uptime_ns, 1_000 + MINUTE_NS, "{what}");
    }
}

#[test]
fn guard_waits_for_the_lock_and_not_for_ever() {
    // Somebody has the lock, and confirms.
    let (mut machine, journal) = applied();
    machine.locked_by = Some(4711);
    let (machine, reverted) = guard(machine, &journal, |machine| {
        if machine.uptime_ns > MINUTE_NS + 2 * SECOND_NS {
            let confirmed = Journal { until: None, ..journal.clone() };
            machine.put_file("/journals/0001.json", &confirmed.encode());
        }
    });
    assert_eq!(reverted, None);
    assert!(machine.uptime_ns < MINUTE_NS + 3 * SECOND_NS);
    // Somebody has it and does nothing.
    let (mut machine, journal) = applied();
    machine.locked_by = Some(4711);
    let (machine, reverted) = guard(machine, &journal, |_| {});
    assert_eq!(reverted.unwrap().put_back.len(), 5);
    machine.assert_as_before("somebody has the lock");
    assert_eq!(machine.locked_by, Some(4711));
}

#[test]
fn guard_tries_again_what_it_can_not_put_back() {
    let (mut machine, journal) = applied();
    machine.refuses.push(crate::machine::rmem());
    let (machine, reverted) = guard(machine, &journal, |machine| {
        if machine.uptime_ns > MINUTE_NS + 5 * SECOND_NS {
            machine.refuses.clear();
        }
    });
    assert_eq!(reverted.unwrap().failed, []);
    machine.assert_as_before("the kernel takes it again");
    assert_eq!(machine.journals(), Vec::<String>::new());
}

#[test]
fn guard_puts_back_at_once_where_the_process_that_wrote_is_gone() {
    let (mut machine, journal) = applied();
    let reverted = supervise(&mut machine, &journal, |_| true, || false).unwrap();
    assert_eq!(reverted.unwrap().put_back.len(), 5);
    machine.assert_as_before("its process is gone");
    // Of a journal that was never written there is nothing.
    let mut machine = Machine::new();
    let reverted = supervise(&mut machine, &journal, |_| true, || false).unwrap().unwrap();
    assert_eq!((reverted.put_back.len(), reverted.were_back.len()), (0, 5));
    assert_eq!(machine.steps, Vec::<String>::new());
}

#[test]
fn guard_goes_soon_after_a_revert_and_leaves_what_is_set_then() {
    let (machine, journal) = applied();
    for is_told in [true, false] {
        let (mut machine, reverted) = guard(machine.clone(), &journal, |machine| {
            revert(machine, RevertOptions::default()).unwrap();
            if is_told {
                // The same values, by somebody else, before the guard looks.
                for (target, value) in
                    journal.entries.iter().take(1).map(|entry| (&entry.target, &entry.after))
                {
                    machine.set(target, value, bdp_tune::Holder::Kernel);
                }
            } else {
                machine.dismissed.clear();
            }
        });
        assert_eq!((reverted, machine.uptime_ns), (None, 1_000 + SECOND_NS));
        assert_eq!(machine.journals(), Vec::<String>::new());
        machine.guards.clear();
        assert!(state(&mut machine).unwrap().damaged.is_empty());
    }
}

#[test]
fn damage_is_named_by_every_command() {
    type Damage = fn(&mut Machine);
    let damaged: [(&str, Damage); 3] = [
        ("is damaged: it is a folder", |machine| {
            machine.unreadable.insert(journal_file(), "it is a folder".to_owned());
        }),
        ("is damaged: EOF while parsing", |machine| machine.put_file("/journals/0001.json", b"{")),
        ("is missing; its guard process reverts the settings", |machine| {
            machine.remove_file(&journal_file()).unwrap();
        }),
    ];
    for (words, damage) in damaged {
        let (mut machine, _) = applied();
        damage(&mut machine);
        let refusals = [
            bdp_tune::check(&mut machine, &changes(), true).unwrap_err(),
            apply(&mut machine, &changes(), &ApplyOptions::default()).unwrap_err(),
            confirm(&mut machine, ConfirmOptions::default()).unwrap_err(),
            confirm(&mut machine, ConfirmOptions { only: Some(1), persist: false }).unwrap_err(),
            revert(&mut machine, RevertOptions::default()).unwrap().damaged[0].refusal(),
            state(&mut machine).unwrap().damaged[0].refusal(),
        ];
        for refusal in &refusals {
            assert!(refusal.to_string().contains(words), "{refusal}");
        }
        // Of another journal nothing is said.
        let other = confirm(&mut machine, ConfirmOptions { only: Some(7), persist: false });
        assert_eq!(other, Err(Refusal::NothingToConfirm));
    }
    // What can be read is confirmed all the same, and the rest is named.
    let (mut machine, _) = applied();
    machine.unreadable.insert(Path::new(FOLDER).join("0009.json"), "it is a folder".to_owned());
    let confirmed = confirm(&mut machine, ConfirmOptions::default()).unwrap();
    assert_eq!((confirmed.journals.len(), confirmed.damaged.len()), (1, 1));
}

#[test]
fn journal_that_is_set_aside_is_rolled_back_all_the_same() {
    let (mut machine, journal) = applied();
    set_aside(&mut machine, "1").unwrap();
    assert_eq!(state(&mut machine).unwrap().damaged, []);
    let (machine, reverted) = guard(machine, &journal, |_| {});
    assert_eq!(reverted.unwrap().put_back.len(), 5);
    machine.assert_as_before("set aside");
}

/// A machine that a guard and somebody else see.
struct Waiting<'a> {
    machine: &'a RefCell<Machine>,
}

macro_rules! pass_on {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $out:ty;)*) => {
        $(fn $name(&mut self, $($argument: $kind),*) -> $out { self.machine.borrow_mut().$name($($argument),*) })*
    };
}

impl World for Waiting<'_> {
    pass_on! {
        read(target: &Target) -> Result<Reading, Fault>;
        check(target: &Target, value: &str) -> Result<(), Fault>;
        write(target: &Target, value: &str) -> Result<(), Fault>;
        remove(target: &Target, what: Removal) -> Result<(), Fault>;
        list(folder: &Path) -> Io<Vec<String>>;
        read_file(path: &Path) -> Io<Option<Vec<u8>>>;
        make_folder(folder: &Path) -> Io<()>;
        create_file(path: &Path, content: &[u8]) -> Io<()>;
        sync_file(path: &Path) -> Io<()>;
        sync_folder(folder: &Path) -> Io<()>;
        rename(from: &Path, to: &Path) -> Io<()>;
        remove_file(path: &Path) -> Io<()>;
        lock() -> Io<Result<(), Option<u32>>>;
        unlock() -> ();
        start_guard(id: u32, journal: &[u8]) -> Io<()>;
        release_guard() -> ();
        is_guarded(id: u32) -> bool;
        is_awaited(id: u32) -> bool;
        dismiss_guard(id: u32) -> ();
        is_dismissed() -> bool;
        boot_id() -> Result<String, Fault>;
        network_namespace() -> Result<u64, Fault>;
        uptime_ns() -> u64;
        unix_ms() -> u64;
    }

    fn folder(&self) -> PathBuf {
        self.machine.borrow().folder()
    }

    fn persistent_file(&self) -> PathBuf {
        self.machine.borrow().persistent_file()
    }

    fn kernel(&self) -> String {
        self.machine.borrow().kernel()
    }
}
