//! The sysctl file that the machine reads at boot; its content follows from the journals.

use std::io;
use std::path::PathBuf;

use bdp_model::tuning::Target;

use crate::journal::{Journal, Progress};
use crate::refusal::Refusal;
use crate::store;
use crate::world::World;

/// First line of the file; without it the file belongs to someone else.
const HEADER: &str =
    "# Written by bdp: 'bdp tune revert' removes this file, 'bdp tune journal' says what was there before.\n";

/// Whether the file can keep a setting.
pub(crate) fn is_kept(target: &Target) -> bool {
    matches!(target, Target::Sysctl { .. })
}

/// Returns the file's content according to these journals; `None` if there should be no file.
pub(crate) fn content(journals: &[Journal]) -> Option<String> {
    let mut settings: Vec<(&str, &str)> = Vec::new();
    let kept = journals
        .iter()
        .filter(|j| j.persistent_file.is_some() && j.until.is_none() && j.progress == Progress::Applied);
    for entry in kept.flat_map(|journal| &journal.entries) {
        if let Target::Sysctl { name } = &entry.target {
            settings.retain(|(other, _)| other != name);
            settings.push((name, &entry.after));
        }
    }
    if settings.is_empty() {
        return None;
    }
    let lines: String = settings.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
    Some(format!("{HEADER}{lines}"))
}

/// State of the file compared with its expected content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// As expected.
    Sound,
    /// Missing or incomplete: bdp was killed between writing journal and file.
    Missing,
    /// It contains something that bdp never wrote.
    Foreign,
}

/// Compares the file with its expected content according to these journals.
pub(crate) fn compare(world: &mut dyn World, journals: &[Journal]) -> Result<Kept, Refusal> {
    let path = world.persistent_file();
    let found = world.read_file(&path).map_err(|e| refused(path, &e))?;
    Ok(match (found, content(journals)) {
        (None, None) => Kept::Sound,
        (None, Some(_)) => Kept::Missing,
        (Some(found), Some(content)) if found == content.as_bytes() => Kept::Sound,
        (Some(found), _) if is_ours(&found, journals) => Kept::Missing,
        (Some(_), _) => Kept::Foreign,
    })
}

/// Whether bdp wrote, or would write, every line of the file for these journals.
fn is_ours(found: &[u8], journals: &[Journal]) -> bool {
    let Some(lines) = std::str::from_utf8(found).ok().and_then(|text| text.strip_prefix(HEADER)) else {
        return false;
    };
    let entries = || journals.iter().filter(|j| j.persistent_file.is_some()).flat_map(|j| &j.entries);
    lines.lines().all(|line| entries().any(|entry| line == format!("{} = {}", entry.target, entry.after)))
}

/// Checks that the file may be written: it was neither created nor changed by someone else.
pub(crate) fn check(world: &mut dyn World, journals: &[Journal]) -> Result<(), Refusal> {
    match compare(world, journals)? {
        Kept::Foreign => {
            let cause = io::Error::other("this file was written or changed by someone else; move it away");
            Err(refused(world.persistent_file(), &cause))
        }
        Kept::Sound | Kept::Missing => Ok(()),
    }
}

/// Writes the file according to the journals, or removes it; returns its path if written.
pub(crate) fn write(world: &mut dyn World) -> Result<Option<PathBuf>, Refusal> {
    let journals = store::read_all(world)?.sound;
    let path = world.persistent_file();
    let Some(content) = content(&journals) else { return Ok(None) };
    let folder = path.parent().map(std::path::Path::to_owned).unwrap_or_default();
    world
        .make_folder(&folder)
        .and_then(|()| store::write_whole(world, &path, content.as_bytes()))
        .map_err(|e| refused(path.clone(), &e))?;
    Ok(Some(path))
}

/// Rewrites the file without this journal if it is as bdp wrote it; returns its previous state, `None` if there was none.
pub(crate) fn leave_out(world: &mut dyn World, id: u32, force: bool) -> Result<Option<Kept>, Refusal> {
    let journals = store::read_all(world)?.sound;
    let kept = compare(world, &journals)?;
    let path = world.persistent_file();
    let is_there = world.read_file(&path).map_err(|e| refused(path.clone(), &e))?.is_some();
    if !is_there {
        return Ok(None);
    }
    if kept == Kept::Foreign && !force {
        return Ok(Some(kept));
    }
    let rest: Vec<Journal> = journals.into_iter().filter(|journal| journal.id != id).collect();
    let done = match content(&rest) {
        Some(content) => store::write_whole(world, &path, content.as_bytes()),
        None => {
            let folder = path.parent().map(std::path::Path::to_owned).unwrap_or_default();
            world.remove_file(&path).and_then(|()| world.sync_folder(&folder))
        }
    };
    done.map(|()| Some(Kept::Sound)).map_err(|e| refused(path, &e))
}

fn refused(path: PathBuf, cause: &io::Error) -> Refusal {
    Refusal::Persistent { path, cause: cause.to_string() }
}
