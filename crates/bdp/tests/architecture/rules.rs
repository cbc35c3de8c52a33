//! Rules that one file keeps or breaks.

use std::path::Path;

use crate::code::{paths, tokens};

/// Most lines of a file.
const LONGEST_FILE: usize = 800;

/// Names that stand for a clock, a thread, a socket or a source of randomness, wherever they appear.
const WORLDLY_NAMES: [&str; 16] = [
    "Instant",
    "SystemTime",
    "UNIX_EPOCH",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "UnixStream",
    "UnixListener",
    "UnixDatagram",
    "ToSocketAddrs",
    "thread_rng",
    "ThreadRng",
    "OsRng",
    "SysRng",
    "getrandom",
    "from_os_rng",
];

/// Modules and functions that do the same.
const WORLDLY_PATHS: [&[&str]; 7] = [
    &["std", "thread"],
    &["std", "fs"],
    &["std", "env"],
    &["std", "process"],
    &["std", "*"],
    &["rand", "rng"],
    &["rand", "random"],
];

/// Names that say nothing about what a file holds.
const EMPTY_NAMES: [&str; 7] = ["utils", "util", "common", "manager", "helper", "helpers", "misc"];

/// Lint levels that can be lowered again.
const WEAKER_LEVELS: [&str; 4] = ["allow", "expect", "warn", "deny"];

/// A broken rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// From 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

fn fault(line: usize, what: impl Into<String>) -> Fault {
    Fault { line, what: what.into() }
}

/// `unsafe` as code, and lints that would let it in.
pub fn unsafe_code(source: &str) -> Vec<Fault> {
    let tokens = tokens(source);
    let mut faults = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        if token.text == "unsafe" {
            faults.push(fault(token.line, "'unsafe' is for bdp-sys alone"));
        } else if token.text == "unsafe_code" {
            let lint = tokens[..i].iter().rev().skip_while(|t| t.text != "(").nth(1);
            if lint.is_some_and(|t| WEAKER_LEVELS.contains(&t.text)) {
                faults.push(fault(token.line, "unsafe_code may be forbidden and nothing else"));
            }
        }
    }
    faults
}

/// The root of a crate says `#![forbid(unsafe_code)]`.
pub fn forbids_unsafe(source: &str) -> Vec<Fault> {
    const ATTRIBUTE: [&str; 8] = ["#", "!", "[", "forbid", "(", "unsafe_code", ")", "]"];
    let tokens: Vec<&str> = tokens(source).into_iter().map(|t| t.text).collect();
    if tokens.windows(ATTRIBUTE.len()).any(|w| w == ATTRIBUTE) {
        Vec::new()
    } else {
        vec![fault(1, "a crate's root says #![forbid(unsafe_code)]")]
    }
}

/// Clocks, threads, sockets, files, the environment and randomness that is not seeded.
pub fn asks_the_world(source: &str) -> Vec<Fault> {
    let tokens = tokens(source);
    let names = tokens
        .iter()
        .filter(|t| WORLDLY_NAMES.contains(&t.text))
        .map(|t| fault(t.line, format!("'{}': time, randomness and sockets are arguments here", t.text)));
    let paths = paths(&tokens)
        .into_iter()
        .filter(|(_, path)| WORLDLY_PATHS.iter().any(|w| path.starts_with(w)))
        .map(|(line, path)| {
            fault(line, format!("'{}': this crate asks nothing of the system", path.join("::")))
        });
    names.chain(paths).collect()
}

/// Lines.
pub fn too_long(source: &str) -> Vec<Fault> {
    match source.lines().count() {
        lines if lines > LONGEST_FILE => {
            vec![fault(lines, format!("{lines} lines, {LONGEST_FILE} at the most: look for the seam"))]
        }
        _ => Vec::new(),
    }
}

/// A block of a doc comment that would be a test, which nothing runs: `make test` leaves rustdoc out.
pub fn documentation_test(source: &str) -> Vec<Fault> {
    let mut is_inside = false;
    let mut faults = Vec::new();
    for (index, line) in source.lines().enumerate() {
        let line = line.trim_start();
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(word) = comment.and_then(|text| text.trim_start().strip_prefix("```")) else { continue };
        is_inside = !is_inside;
        if is_inside && word.trim() != "text" {
            faults.push(fault(index + 1, "a block of a doc comment is 'text': no target runs it as a test"));
        }
    }
    faults
}

/// A file or a folder of code is named after what it holds.
pub fn says_nothing(file: &Path) -> Vec<Fault> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = if stem == "mod" {
        file.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy()
    } else {
        stem
    };
    if EMPTY_NAMES.contains(&&*name) {
        vec![fault(1, format!("'{name}' does not say what is in it"))]
    } else {
        Vec::new()
    }
}

/// Whether a Cargo.lock holds a package of that name.
pub fn locks(lock: &str, package: &str) -> bool {
    let line = format!("name = \"{package}\"");
    lock.lines().any(|l| l == line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blocks_of_text_are_no_tests() {
        let lines = |source| documentation_test(source).iter().map(|fault| fault.line).collect::<Vec<_>>();
        assert_eq!(lines("//! ```text\n//! a\n//! ```\n    /// ```\n    /// a();\n    /// ```\n"), [4]);
        assert_eq!(lines("/// ```rust\n/// ```\n/// ```text\n/// ```\n// ```\n"), [1]);
    }

    #[test]
    fn unsafe_is_seen_in_code_alone() {
        for bad in [
            "fn f() { unsafe { g() } }",
            "unsafe impl Send for X {}",
            "#[unsafe(no_mangle)] fn f() {}",
            "#![allow(unsafe_code)]",
            "#[expect(dead_code, unsafe_code)] fn f() {}",
            "#![deny(unsafe_code)]",
        ] {
            assert_eq!(unsafe_code(&format!("\n{bad}")).first().map(|f| f.line), Some(2), "{bad}");
        }
        for good in [
            "#![forbid(unsafe_code)]",
            "// unsafe",
            "let s = \"unsafe\";",
            "fn unsafely() {}",
            "in_file(f, rules::unsafe_code(x))",
        ] {
            assert_eq!(unsafe_code(good), [], "{good}");
        }
    }

    #[test]
    fn the_attribute_must_be_there_as_code() {
        assert_eq!(forbids_unsafe("//! A crate.\n#![forbid(unsafe_code)]\nmod a;"), []);
        for bad in ["", "// #![forbid(unsafe_code)]", "#![deny(unsafe_code)]", "#[forbid(unsafe_code)]"] {
            assert_eq!(forbids_unsafe(bad).len(), 1, "{bad}");
        }
    }

    #[test]
    fn asking_the_world_is_seen() {
        for bad in [
            "use std::time::Instant;",
            "use std::time::{Duration, SystemTime};",
            "use std::time::*; fn f() { Instant::now(); }",
            "use std::thread;",
            "use std::{collections::HashMap, thread};",
            "std::thread::sleep(d);",
            "use std::net::{IpAddr, UdpSocket};",
            "let f = std::fs::read(p);",
            "use std::*;",
            "let r = rand::rng();",
            "let r = ChaCha8Rng::from_os_rng();",
        ] {
            assert!(!asks_the_world(bad).is_empty(), "{bad}");
        }
        for good in [
            "use std::time::Duration;",
            "use std::net::{IpAddr, SocketAddr};",
            "use std::io::{self, Read, Write};",
            "// std::thread::spawn(std::time::Instant::now)",
            "let thread = env!(\"HOME\"); self.is_instant()",
            "let r = ChaCha8Rng::from_seed(key);",
        ] {
            assert_eq!(asks_the_world(good), [], "{good}");
        }
    }

    #[test]
    fn the_line_is_that_of_the_word() {
        let faults = asks_the_world("use std::time::{\n    Duration,\n    Instant,\n};\n");
        assert_eq!(faults.iter().map(|f| f.line).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn a_file_may_have_800_lines() {
        assert_eq!(too_long(&"x\n".repeat(800)), []);
        assert_eq!(too_long(&"x\n".repeat(801))[0].line, 801);
    }

    #[test]
    fn empty_names_are_seen() {
        for bad in ["src/utils.rs", "src/common/mod.rs", "tests/helpers.rs"] {
            assert_eq!(says_nothing(Path::new(bad)).len(), 1, "{bad}");
        }
        for good in ["src/units.rs", "src/common/queue.rs", "tests/fixture/mod.rs"] {
            assert_eq!(says_nothing(Path::new(good)), [], "{good}");
        }
    }

    #[test]
    fn a_lock_file_names_its_packages() {
        let lock = "[[package]]\nname = \"tokio-util\"\nversion = \"1\"\n";
        assert!(locks(lock, "tokio-util"));
        assert!(!locks(lock, "tokio"));
    }
}
