//! Finds a stack by its name in a scenario.

use std::path::{Path, PathBuf};

use bdp_model::case::stack::StepStack;
use bdp_sys::places;

use crate::{Program, Settings, Smoltcp, Stack, StackError};

/// The only folder to search for programs, if set.
const FOLDER_VARIABLE: &str = "BDP_STACKS";

/// Creates the stack of a host.
pub fn open(stack: &StepStack, settings: Settings) -> Result<Box<dyn Stack>, StackError> {
    open_in(stack, settings, None)
}

/// Creates the stack of a host if programs run with another root, in which [`placed`] gives their paths.
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

/// Returns the stack with the name of its program resolved to a path, if it has one.
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

/// A stack that bdp knows by name.
#[derive(Debug)]
pub struct Found {
    /// Its name.
    pub name: &'static str,
    /// Path of the program; `None` for a stack built into bdp.
    pub path: Option<PathBuf>,
    /// Name and version, or why it cannot be used.
    pub version: Result<String, StackError>,
}

/// Returns the stacks that bdp knows by name, whether present or not.
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

/// Returns the path of a stack program built by `make stacks`.
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

/// Resolves a program given by the user: a path, or a name to be found as by a shell.
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
