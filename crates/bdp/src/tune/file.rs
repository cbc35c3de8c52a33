//! Reads plans and other small files, none of which is trusted.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;

use bdp_model::plain::{beginning, of_json, plain};
use bdp_model::tuning::setting::Setting;
use bdp_model::tuning::{Change, PLAN_SCHEMA, Plan, Target};

use crate::exit;

/// Larger files are rejected as plans or sysctls.
const LARGEST_FILE: u64 = 1 << 20;
/// Maximum number of changes: more than any host has settings.
const MOST_CHANGES: usize = 200;
/// Maximum length of a value: no setting has a longer one.
const LONGEST_VALUE: usize = 256;
/// Maximum length of a device name, without the NUL (Linux, IFNAMSIZ).
const LONGEST_DEVICE: usize = 15;

/// Reads a plan and checks it; `-` is standard input. An error is one line.
pub fn read(path: &str) -> anyhow::Result<Plan> {
    let refused = |cause: String| exit::usage(format!("cannot read plan '{path}': {cause}"));
    let bytes = bytes(path).map_err(refused)?;
    parse(&bytes).map_err(refused)
}

/// Reads a file, or standard input for `-`; an error is its cause.
pub fn bytes(path: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = match path {
        "-" => std::io::stdin().take(LARGEST_FILE + 1).read_to_end(&mut bytes),
        path => File::open(path).and_then(|file| file.take(LARGEST_FILE + 1).read_to_end(&mut bytes)),
    };
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(format!("it is larger than {} MiB", LARGEST_FILE >> 20));
    }
    Ok(bytes)
}

/// Parses a plan from JSON and checks it.
pub fn parse(bytes: &[u8]) -> Result<Plan, String> {
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| of_json(&error))?;
    let (name, version) = PLAN_SCHEMA.split_once('/').unwrap_or_default();
    let schema = value
        .get("schema")
        .and_then(|schema| schema.as_str())
        .ok_or("it is not a plan: 'schema' is missing")?;
    match schema.split_once('/') {
        Some((found, number)) if found == name => match (number.parse::<u32>(), version.parse::<u32>()) {
            (Ok(number), Ok(known)) if number > known => {
                return Err(format!("its schema is {}, but this bdp reads {PLAN_SCHEMA}", plain(schema)));
            }
            (Ok(1..), Ok(_)) => {}
            _ => {
                return Err(format!(
                    "'{}' is not the schema of a plan; expected {PLAN_SCHEMA}",
                    shown(schema)
                ));
            }
        },
        _ => return Err(format!("'{}' is not the schema of a plan; expected {PLAN_SCHEMA}", shown(schema))),
    }
    // Parsed again from the text, for line numbers in the error.
    let plan: Plan = serde_json::from_slice(bytes).map_err(|error| of_json(&error))?;
    check(&plan.changes)?;
    let mut names = HashSet::new();
    for alternative in &plan.alternatives {
        if !names.insert(&alternative.name) {
            return Err(format!("two alternatives have the name '{}'", shown(&alternative.name)));
        }
        check(&alternative.changes)?;
    }
    Ok(plan)
}

/// Checks that each change is one of a host's network settings, and each setting is changed once.
fn check(changes: &[Change]) -> Result<(), String> {
    if changes.len() > MOST_CHANGES {
        return Err(format!("it has {} changes; {MOST_CHANGES} at most", changes.len()));
    }
    let mut seen = HashSet::new();
    for change in changes {
        match &change.target {
            Target::Sysctl { name } if !is_network_sysctl(name) => {
                return Err(format!(
                    "'{}' is not a network sysctl, such as {}",
                    shown(name),
                    Setting::TcpRmem
                ));
            }
            Target::Qdisc { device } if !is_device(device) => {
                return Err(format!("'{}' is not a device name", shown(device)));
            }
            _ => {}
        }
        for value in [Some(&change.to), change.from.as_ref()].into_iter().flatten() {
            // The kernel separates the parts of a value by tabs.
            let is_plain = value.chars().all(|c| (' '..='~').contains(&c) || c == '\t');
            if !is_plain || value.len() > LONGEST_VALUE {
                return Err(format!(
                    "'{}' is not a value of {}",
                    shown(value),
                    shown(&change.target.to_string())
                ));
            }
        }
        if change.to.trim().is_empty() {
            return Err(format!("the new value of {} is empty", shown(&change.target.to_string())));
        }
        if !seen.insert((change.end, &change.target)) {
            return Err(format!("{} is changed twice", shown(&change.target.to_string())));
        }
    }
    Ok(())
}

fn is_network_sysctl(name: &str) -> bool {
    name.starts_with("net.")
        && name.len() <= LONGEST_VALUE
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c))
        && name.split(['.', '/']).all(|part| !part.is_empty())
}

fn is_device(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= LONGEST_DEVICE
        && ![".", ".."].contains(&name)
        && !name.starts_with('-')
        && name.chars().all(|c| ('!'..='~').contains(&c) && c != '/')
}

fn shown(text: &str) -> String {
    plain(&beginning(text))
}
