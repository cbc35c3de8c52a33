//! Journals at rest: a file each, written so that it is there as a whole or not at all.

use std::io;
use std::path::{Path, PathBuf};

use crate::journal::Journal;
use crate::refusal::Refusal;
use crate::world::World;

/// Of a file that is being written; none that is read ends so.
const UNFINISHED: &str = ".new";
/// Of the mark of a guard.
const GUARD: &str = ".guard";
const SUFFIX: &str = ".json";
/// Of a journal that no command is to read.
pub(crate) const ASIDE: &str = ".aside";
/// What is wrong with a journal that is not there, and whose process is.
const MISSING: &str = "it is missing; its settings revert when their time is over";

/// A file that is no journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub cause: String,
}

impl Damaged {
    /// What it is to a command that can't go on with it.
    pub fn refusal(&self) -> Refusal {
        match self.cause == MISSING {
            true => Refusal::Missing { path: self.path.clone() },
            false => Refusal::Damaged { path: self.path.clone(), cause: self.cause.clone() },
        }
    }
}

/// The journals of a folder, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Journals {
    pub(crate) sound: Vec<Journal>,
    pub(crate) damaged: Vec<Damaged>,
}

/// The file of a journal.
pub(crate) fn path_of(folder: &Path, id: u32) -> PathBuf {
    folder.join(format!("{id:04}{SUFFIX}"))
}

/// What is in the place of a journal.
#[derive(Debug)]
pub(crate) enum Found {
    Sound(Journal),
    /// Why it is no journal: one of another number, a folder, what can't be read.
    Damaged(String),
    Nothing,
}

/// Reads all journals. What can not be read is damaged, and keeps no other from being read.
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
            // Removed meanwhile: by the process that put it back.
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

/// Reads what is in the place of one journal.
pub(crate) fn read_one(world: &mut dyn World, id: u32) -> io::Result<Found> {
    let path = path_of(&world.folder(), id);
    read(world, &path)
}

fn read(world: &mut dyn World, path: &Path) -> io::Result<Found> {
    let bytes = match world.read_file(path) {
        // Of a user who may not read it, it says nothing.
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

/// The number of the next journal: larger than that of any file there is.
pub(crate) fn next_id(world: &mut dyn World) -> Result<u32, Refusal> {
    let folder = world.folder();
    let names = world.list(&folder).map_err(|e| Refusal::journal("read", &folder, e))?;
    let number = |name: &String| name.split('.').next().and_then(|number| number.parse::<u32>().ok());
    Ok(names.iter().filter_map(number).max().unwrap_or(0).saturating_add(1))
}

/// Writes a journal, in the place of its last state.
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

/// Writes a file so that it is there as a whole or not at all, and stays.
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

/// Removes what was being written when a process was killed, and the marks of guards that are done. Under the lock.
pub(crate) fn remove_unfinished(world: &mut dyn World) -> Result<(), Refusal> {
    let folder = world.folder();
    let names = world.list(&folder).map_err(|e| Refusal::journal("read", &folder, e))?;
    for name in &names {
        let is_done = name.strip_suffix(GUARD).is_some_and(|number| {
            let is_guarded = number.parse().is_ok_and(|id| world.is_guarded(id));
            !names.contains(&format!("{number}{SUFFIX}")) && !is_guarded
        });
        if name.ends_with(UNFINISHED) || is_done {
            // What can't be removed, as a folder of such a name, is in nobody's way but that of the same name.
            let _ = world.remove_file(&folder.join(name));
        }
    }
    Ok(())
}
