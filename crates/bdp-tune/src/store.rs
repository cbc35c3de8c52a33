//! Stored journals: one file each, written atomically.

use std::io;
use std::path::{Path, PathBuf};

use crate::journal::Journal;
use crate::refusal::Refusal;
use crate::world::World;

/// Extension of a file being written; such files are never read.
const UNFINISHED: &str = ".new";
/// Extension of a guard's mark.
const GUARD: &str = ".guard";
const SUFFIX: &str = ".json";
/// Extension of a journal that commands ignore.
pub(crate) const ASIDE: &str = ".aside";
/// Describes a missing journal whose guard is running.
const MISSING: &str = "it is missing; its settings revert when their time is over";

/// A file that is not a valid journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// The file.
    pub path: PathBuf,
    /// The damage.
    pub cause: String,
}

impl Damaged {
    /// Returns the refusal of a command that cannot go on with it.
    pub fn refusal(&self) -> Refusal {
        match self.cause == MISSING {
            true => Refusal::Missing { path: self.path.clone() },
            false => Refusal::Damaged { path: self.path.clone(), cause: self.cause.clone() },
        }
    }
}

/// The journals of a folder, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Journals {
    pub(crate) sound: Vec<Journal>,
    pub(crate) damaged: Vec<Damaged>,
}

/// Returns the path of a journal.
pub(crate) fn path_of(folder: &Path, id: u32) -> PathBuf {
    folder.join(format!("{id:04}{SUFFIX}"))
}

/// What a journal's path contains.
#[derive(Debug)]
pub(crate) enum Found {
    Sound(Journal),
    /// Why it is not a valid journal: wrong number, a folder, or unreadable.
    Damaged(String),
    Nothing,
}

/// Reads all journals. An unreadable one counts as damaged and does not prevent reading the others.
pub(crate) fn read_all(world: &mut dyn World) -> Result<Journals, Refusal> {
    let folder = world.folder();
    let mut names = world.list(&folder).map_err(|e| Refusal::journal("read", &folder, e))?;
    let is_aside = |number: &str| names.contains(&format!("{number}{SUFFIX}{ASIDE}"));
    let numbers = names.iter().filter_map(|name| name.strip_suffix(GUARD)).filter(|number| !is_aside(number));
    let guards: Vec<u32> = numbers.filter_map(|number| number.parse().ok()).collect();
    names.retain(|name| name.ends_with(SUFFIX));
    names.sort();
    let mut journals = Journals::default();
    for name in names {
        let path = folder.join(&name);
        match read(world, &path).map_err(|e| Refusal::journal("read", &path, e))? {
            Found::Sound(journal) => journals.sound.push(journal),
            Found::Damaged(cause) => journals.damaged.push(Damaged { path, cause }),
            // Removed meanwhile by the process that reverted it.
            Found::Nothing => {}
        }
    }
    journals.sound.sort_by_key(|journal| journal.id);
    for id in guards {
        let path = path_of(&folder, id);
        let is_known =
            journals.sound.iter().any(|of| of.id == id) || journals.damaged.iter().any(|of| of.path == path);
        if !is_known && world.is_awaited(id) {
            journals.damaged.push(Damaged { path, cause: MISSING.to_owned() });
        }
    }
    Ok(journals)
}

/// Reads one journal.
pub(crate) fn read_one(world: &mut dyn World, id: u32) -> io::Result<Found> {
    let path = path_of(&world.folder(), id);
    read(world, &path)
}

fn read(world: &mut dyn World, path: &Path) -> io::Result<Found> {
    let bytes = match world.read_file(path) {
        // To a user without permission to read it, it says nothing.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
        Err(error) => return Ok(Found::Damaged(error.to_string())),
        Ok(None) => return Ok(Found::Nothing),
        Ok(Some(bytes)) => bytes,
    };
    Ok(match Journal::decode(&bytes) {
        Ok(journal) if path.parent().is_some_and(|folder| path_of(folder, journal.id) == path) => {
            Found::Sound(journal)
        }
        Ok(journal) => Found::Damaged(format!("it is the copy of journal {}", journal.id)),
        Err(cause) => Found::Damaged(cause),
    })
}

/// Returns the next journal number, larger than that of any existing file.
pub(crate) fn next_id(world: &mut dyn World) -> Result<u32, Refusal> {
    let folder = world.folder();
    let names = world.list(&folder).map_err(|e| Refusal::journal("read", &folder, e))?;
    let number = |name: &String| name.split('.').next().and_then(|number| number.parse::<u32>().ok());
    Ok(names.iter().filter_map(number).max().unwrap_or(0).saturating_add(1))
}

/// Writes a journal, replacing its previous state.
pub(crate) fn write(world: &mut dyn World, journal: &Journal) -> Result<(), Refusal> {
    let path = path_of(&world.folder(), journal.id);
    write_whole(world, &path, &journal.encode()).map_err(|e| Refusal::journal("write", &path, e))
}

/// Removes a journal.
pub(crate) fn remove(world: &mut dyn World, id: u32) -> Result<(), Refusal> {
    let folder = world.folder();
    let path = path_of(&folder, id);
    let removed = world.remove_file(&path).and_then(|()| world.sync_folder(&folder));
    removed.map_err(|e| Refusal::journal("remove", &path, e))
}

/// Writes a file atomically and durably.
pub(crate) fn write_whole(world: &mut dyn World, path: &Path, content: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(UNFINISHED);
    let beside = PathBuf::from(beside);
    let written = world
        .create_file(&beside, content)
        .and_then(|()| world.sync_file(&beside))
        .and_then(|()| world.rename(&beside, path));
    if let Err(error) = written {
        let _ = world.remove_file(&beside);
        return Err(error);
    }
    world.sync_folder(path.parent().unwrap_or(Path::new("/")))
}

/// Removes partial files of killed processes and marks of finished guards. Requires the lock.
pub(crate) fn remove_unfinished(world: &mut dyn World) -> Result<(), Refusal> {
    let folder = world.folder();
    let names = world.list(&folder).map_err(|e| Refusal::journal("read", &folder, e))?;
    for name in &names {
        let is_done = name.strip_suffix(GUARD).is_some_and(|number| {
            let is_guarded = number.parse().is_ok_and(|id| world.is_guarded(id));
            !names.contains(&format!("{number}{SUFFIX}")) && !is_guarded
        });
        if name.ends_with(UNFINISHED) || is_done {
            // What cannot be removed, such as a folder of that name, only blocks a file of the same name.
            let _ = world.remove_file(&folder.join(name));
        }
    }
    Ok(())
}
