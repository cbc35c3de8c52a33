//! Clock and network stack of a case.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// The clock of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// The machine's clock: hosts are processes of its kernel, and what disturbs the machine disturbs the case.
    #[default]
    Real,
    /// A clock that stops while anything runs: hosts are namespaces of a guest kernel.
    Virtual,
}

impl Clock {
    /// All clocks by name.
    pub const NAMES: [(&'static str, Self); 2] = [("real", Self::Real), ("virtual", Self::Virtual)];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[usize::from(self == Self::Virtual)].0
    }

    /// Whether it is the machine's clock, the default if a record does not state one.
    pub fn is_real(&self) -> bool {
        *self == Self::Real
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The network stack of a host.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(into = "String")]
pub enum Stack {
    /// The machine's kernel, which runs only under the real clock.
    Machine,
    /// A guest kernel by name, one of [`Stack::GUESTS`].
    Guest(&'static str),
    /// A guest kernel by the path of its file.
    File(String),
    /// A stack that is not a kernel.
    Steps(StepStack),
}

/// A TCP stack that is not a kernel: it runs in steps of the virtual clock, without a guest.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StepStack {
    /// smoltcp, built into bdp.
    Smoltcp,
    /// A stack whose program is built with bdp, one of [`StepStack::BUILT`].
    Built(&'static str),
    /// A program that implements bdp's contract of a stack, with its arguments.
    Program(String),
}

impl StepStack {
    /// Name of smoltcp.
    pub const SMOLTCP: &'static str = "smoltcp";
    /// Names of the stacks whose programs are built with bdp.
    pub const BUILT: [&'static str; 2] = ["gvisor", "lwip"];
    /// Prefix of a program.
    pub const PROGRAM: &'static str = "exec:";
}

impl fmt::Display for StepStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Smoltcp => f.write_str(Self::SMOLTCP),
            Self::Built(name) => f.write_str(name),
            Self::Program(line) => write!(f, "{}{line}", Self::PROGRAM),
        }
    }
}

impl Stack {
    /// Names of the guest kernels that bdp can build.
    pub const GUESTS: [&'static str; 3] = ["linux-6.1", "linux-6.12", "linux-7.2"];
    /// Name of the machine's kernel.
    pub const MACHINE: &'static str = "linux";
    /// Prefix of the path of a kernel's file.
    pub const FILE: &'static str = "kernel:";
    /// Longest path of a kernel's file, bytes.
    const PATH_MAX: usize = 4096;

    /// Whether it is a guest kernel, which runs only under the virtual clock.
    pub fn is_guest(&self) -> bool {
        matches!(self, Self::Guest(_) | Self::File(_))
    }

    /// Returns the stack if it is not a kernel.
    pub fn in_steps(&self) -> Option<&StepStack> {
        if let Self::Steps(stack) = self { Some(stack) } else { None }
    }

    /// Returns the names of the virtual clock's stacks as an error lists them.
    pub fn virtual_names() -> String {
        let built = StepStack::BUILT.iter().chain([&StepStack::SMOLTCP]);
        let names: Vec<String> = Self::GUESTS.iter().chain(built).map(|name| format!("\"{name}\"")).collect();
        format!("{}, \"{}PATH\" or \"{}PROGRAM\"", names.join(", "), Self::FILE, StepStack::PROGRAM)
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine => f.write_str(Self::MACHINE),
            Self::Guest(name) => f.write_str(name),
            Self::File(path) => write!(f, "{}{path}", Self::FILE),
            Self::Steps(stack) => stack.fmt(f),
        }
    }
}

/// Error for text that names no stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it does not name a stack")]
pub struct NoStack;

impl FromStr for Stack {
    type Err = NoStack;

    fn from_str(text: &str) -> Result<Self, NoStack> {
        if text == Self::MACHINE {
            return Ok(Self::Machine);
        }
        if text == StepStack::SMOLTCP {
            return Ok(Self::Steps(StepStack::Smoltcp));
        }
        if let Some(name) = StepStack::BUILT.into_iter().find(|name| *name == text) {
            return Ok(Self::Steps(StepStack::Built(name)));
        }
        let line = |text: &str| {
            let fits = (1..=Self::PATH_MAX).contains(&text.len()) && !text.chars().any(char::is_control);
            if fits { Ok(text.to_owned()) } else { Err(NoStack) }
        };
        if let Some(path) = text.strip_prefix(Self::FILE) {
            return line(path).map(Self::File);
        }
        if let Some(program) = text.strip_prefix(StepStack::PROGRAM) {
            return line(program.trim()).map(|line| Self::Steps(StepStack::Program(line)));
        }
        Self::GUESTS.into_iter().find(|name| *name == text).map(Self::Guest).ok_or(NoStack)
    }
}

impl<'de> Deserialize<'de> for Stack {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl From<Stack> for String {
    fn from(stack: Stack) -> Self {
        stack.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_read_as_they_are_written() {
        for (text, guest) in [
            ("linux", false),
            ("linux-6.1", true),
            ("linux-7.2", true),
            ("kernel:/boot/uml", true),
            ("smoltcp", false),
            ("gvisor", false),
            ("lwip", false),
            ("exec:python3 stack.py", false),
        ] {
            let stack: Stack = text.parse().unwrap();
            assert_eq!((stack.to_string().as_str(), stack.is_guest()), (text, guest));
            assert_eq!(stack.in_steps().is_some(), !guest && text != "linux");
            let json = serde_json::to_string(&stack).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<Stack>(&json).unwrap(), stack);
        }
        for wrong in
            ["", "Linux", "linux-5.4", "kernel:", "kernel:a\nb", "6.1", "exec:", "exec: ", "exec:a\nb"]
        {
            assert_eq!(wrong.parse::<Stack>(), Err(NoStack), "{wrong}");
        }
    }

    #[test]
    fn clocks_are_named_as_json_names_them() {
        for (name, clock) in Clock::NAMES {
            assert_eq!(clock.name(), name);
            assert_eq!(serde_json::to_string(&clock).unwrap(), format!("\"{name}\""));
        }
    }
}
