//! A stack by its name in a scenario.

use std::path::{Path, PathBuf};

use bdp_model::stack::StepStack;
use bdp_sys::places;

use crate::{Program, Settings, Smoltcp, Stack, StackError};

/// The folder of programs to look in, and no other.
const FOLDER_VARIABLE: &str = "BDP_STACKS";

/// Makes the stack of a host.
pub fn open(stack: &StepStack, settings: Settings) -> Result<Box<dyn Stack>, StackError> {
    open_in(stack, settings, None)
}

/// The same, where programs have another root: [`placed`] says by which path they are found there.
pub fn open_in(
    stack: &StepStack,
    settings: Settings,
    root: Option<&Path>,
) -> Result<Box<dyn Stack>, StackError> {
    match stack {
        StepStack::Smoltcp => Ok(Box::new(Smoltcp::new(settings)?)),
        StepStack::Built(name) => {
            let path = built(name)?;
            Ok(Box::new(Program::start(name, &path, &[], &settings, root)?))
        }
        StepStack::Program(line) => {
            let mut words = line.split_whitespace();
            let program = words.next().unwrap_or_default();
            let path = if root.is_some() { PathBuf::from(program) } else { named(program)? };
            let arguments: Vec<&str> = words.collect();
            Ok(Box::new(Program::start(program, &path, &arguments, &settings, root)?))
        }
    }
}

/// The same stack, by the path of its program where it has one.
pub fn placed(stack: &StepStack) -> Result<StepStack, StackError> {
    let (path, arguments) = match stack {
        StepStack::Smoltcp => return Ok(StepStack::Smoltcp),
        StepStack::Built(name) => (built(name)?, ""),
        StepStack::Program(line) => {
            let (program, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            (named(program)?, arguments)
        }
    };
    let path = std::path::absolute(&path).unwrap_or(path).display().to_string();
    if path.contains(char::is_whitespace) {
        return Err(StackError::Unsupported {
            stack: "a guest".to_owned(),
            what: format!("a program with a space in its path, '{path}'"),
        });
    }
    Ok(StepStack::Program(format!("{path} {arguments}").trim_end().to_owned()))
}

/// A stack that bdp knows by its name.
#[derive(Debug)]
pub struct Found {
    /// Its name.
    pub name: &'static str,
    /// The program; `None` of one in bdp itself.
    pub path: Option<PathBuf>,
    /// Its name and version, or why it can't be used.
    pub version: Result<String, StackError>,
}

/// The stacks that bdp knows by their names, there or not.
pub fn list() -> Vec<Found> {
    let all = [StepStack::Smoltcp].into_iter().chain(StepStack::BUILT.map(StepStack::Built));
    let found = |stack: StepStack| {
        let version = open(&stack, crate::conformance::settings()).map(|stack| stack.version().to_owned());
        match stack {
            StepStack::Built(name) => Found { name, path: built(name).ok(), version },
            _ => Found { name: StepStack::SMOLTCP, path: None, version },
        }
    };
    all.map(found).collect()
}

/// Where the program of a stack lies that `make stacks` builds.
pub fn built(name: &str) -> Result<PathBuf, StackError> {
    let file = format!("bdp-stack-{name}");
    let named = std::env::var_os(FOLDER_VARIABLE).filter(|folder| !folder.is_empty());
    let folders = named.map_or_else(|| places::of_process("stacks"), |folder| vec![PathBuf::from(folder)]);
    let path = folders.iter().map(|folder| folder.join(&file)).find(|path| path.is_file());
    path.ok_or_else(|| StackError::Missing {
        what: format!("the stack {name}"),
        install: format!("'make stack-{name}' builds it"),
    })
}

/// A program that the user names: by a path, or as a shell would find it.
fn named(program: &str) -> Result<PathBuf, StackError> {
    let missing = || StackError::Missing {
        what: format!("the program '{program}'"),
        install: "give an existing program after \"exec:\"".to_owned(),
    };
    if program.contains('/') {
        let path = PathBuf::from(program);
        return if path.is_file() { Ok(path) } else { Err(missing()) };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
        .ok_or_else(missing)
}
