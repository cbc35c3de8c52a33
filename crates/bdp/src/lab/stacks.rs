//! `bdp lab stacks`: the kernels and other stacks that a host can have, and how to get the missing ones.

use std::fmt::Write;

use bdp_lab::kernel::{self, Kernel, KernelError};
use bdp_model::tuning::setting::Setting;
use bdp_run::selftest::conformance::Found;
use bdp_sys::{process, sysctl};
use serde::Serialize;
use serde_json::{Value, json};

use crate::exit::Outcome;
use crate::output::{self, print};

/// Prints each, the machine's own first.
pub fn run(as_json: bool) -> Outcome {
    let machine = Machine {
        version: process::kernel_release(),
        congestion_controls: sysctl::read(Setting::TcpAvailableCongestionControl.name)
            .map(|names| names.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default(),
    };
    let kernels = kernel::list();
    let default = kernel::default().ok().map(|kernel| kernel.name);
    let others = bdp_run::selftest::conformance::list();
    if as_json {
        return print(&format!("{:#}\n", as_value(&machine, &kernels, default.as_deref(), &others)));
    }
    print(&text(&machine, &kernels, default.as_deref(), &others))
}

/// The kernel that bdp itself runs on.
struct Machine {
    version: String,
    congestion_controls: Vec<String>,
}

type Kernels = [(String, Result<Kernel, KernelError>)];

fn text(machine: &Machine, kernels: &Kernels, default: Option<&str>, others: &[Found]) -> String {
    let mut text = format!("{:<12}{:<9}{:<16}{}\n", "stack", "clock", "version", "where");
    let mut row = |name: &str, clock: &str, version: &str, place: &str| {
        let _ = writeln!(text, "{:<12}{clock:<9}{version:<16}{place}", short(name));
    };
    row("linux", "real", &machine.version, "this machine");
    for (name, found) in kernels {
        match found {
            Ok(kernel) => {
                let mut place = output::quote(&kernel.path.display().to_string());
                if default == Some(name) {
                    place.push_str(" (default)");
                }
                if !kernel.seeded {
                    place.push_str(" (not reproducible: two runs differ)");
                }
                row(name, "virtual", &kernel.version, &place);
            }
            Err(error) => {
                let way_out = error.command().map(|command| format!("{command} builds it, about 2 minutes"));
                row(name, "virtual", "-", &way_out.unwrap_or_else(|| error.to_string()));
            }
        }
    }
    for found in others {
        let place = match (&found.path, &found.version) {
            (_, Err(error)) => error.to_string(),
            (Some(path), _) => output::quote(&path.display().to_string()),
            (None, _) => "in bdp itself".to_owned(),
        };
        row(found.name, "virtual", found.version.as_ref().map_or("-", |version| number_of(version)), &place);
    }
    text.push('\n');
    let mut controls = |name: &str, names: &[String]| {
        let _ = writeln!(text, "{:<12}{}", short(name), names.join(" "));
    };
    controls("congestion control", &[]);
    controls("linux", &machine.congestion_controls);
    for (name, found) in kernels {
        if let Ok(kernel) = found {
            controls(name, &kernel.congestion_controls);
        }
    }
    text
}

/// The version behind a stack's name.
fn number_of(version: &str) -> &str {
    version.split_once(' ').map_or(version, |(_, number)| number)
}

/// A stack's name in a column; one without a name has its path beside it.
fn short(name: &str) -> &str {
    if name.starts_with("kernel:") { "kernel:PATH" } else { name }
}

fn as_value(machine: &Machine, kernels: &Kernels, default: Option<&str>, others: &[Found]) -> Value {
    let mut stacks = vec![Entry {
        name: "linux".to_owned(),
        clock: Clock::Real,
        version: Some(machine.version.clone()),
        congestion_controls: machine.congestion_controls.clone(),
        ..Entry::default()
    }];
    for (name, found) in kernels {
        let kernel = found.as_ref().ok();
        let error = found.as_ref().err();
        stacks.push(Entry {
            name: name.clone(),
            clock: Clock::Virtual,
            version: kernel.map(|kernel| kernel.version.clone()),
            path: kernel.map(|kernel| kernel.path.display().to_string()),
            congestion_controls: kernel.map(|kernel| kernel.congestion_controls.clone()).unwrap_or_default(),
            repeatable: kernel.is_some_and(|kernel| kernel.seeded),
            default: default == Some(name),
            error: error.map(KernelError::to_string),
            command: error.and_then(KernelError::command),
        });
    }
    for found in others {
        stacks.push(Entry {
            name: found.name.to_string(),
            clock: Clock::Virtual,
            version: found.version.as_ref().ok().map(ToString::to_string),
            path: found.path.as_ref().map(|path| path.display().to_string()),
            repeatable: true,
            error: found.version.as_ref().err().map(ToString::to_string),
            command: found.version.is_err().then(|| format!("make stack-{}", found.name)),
            ..Entry::default()
        });
    }
    json!(Document { schema: SCHEMA, bdp: env!("CARGO_PKG_VERSION"), run: (), stacks })
}

/// Schema version.
const SCHEMA: &str = "bdp.stacks/1";

/// The stacks that a host can have.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document {
    /// Name and version of this document's schema.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// Version of bdp.
    bdp: &'static str,
    /// Always null: nothing is stored.
    run: (),
    /// This machine's kernel first, then the guest kernels by version, then stacks that are no kernels.
    #[cfg_attr(test, schemars(length(min = 4)))]
    stacks: Vec<Entry>,
}

/// A network stack.
#[derive(Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Stack"))]
struct Entry {
    /// Name that `stack =` takes; for a kernel of another tree, in a folder of kernels, its path.
    #[cfg_attr(test, schemars(regex(pattern = r"^(linux(-[0-9.]+)?|kernel:.+|smoltcp|gvisor|lwip)$")))]
    name: String,
    /// Clock that it runs by.
    clock: Clock,
    /// For a kernel as printed by `uname -r`, for another stack with its name; null if it is missing or can't be used.
    version: Option<String>,
    /// Path of the kernel's file; null for this machine's.
    path: Option<String>,
    /// Available or built-in congestion controls; empty for stacks that are no kernels.
    congestion_controls: Vec<String>,
    /// Whether the same seed gives the same record on it.
    repeatable: bool,
    /// Whether the virtual clock uses it by default, if a scenario names none.
    default: bool,
    /// Why it can't be used; null if it can.
    error: Option<String>,
    /// Command that builds it; null if there is none.
    command: Option<String>,
}

/// Clock of a stack.
#[derive(Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Clock {
    /// The machine's clock.
    #[default]
    Real,
    /// A virtual clock, which stands still while anything runs.
    Virtual,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn others() -> Vec<Found> {
        let missing = bdp_stack::StackError::Missing {
            what: "the stack gvisor".to_owned(),
            install: "'make stack-gvisor' builds it".to_owned(),
        };
        vec![
            Found { name: "smoltcp", path: None, version: Ok("smoltcp 0.14.0".to_owned()) },
            Found { name: "gvisor", path: None, version: Err(missing) },
        ]
    }

    fn kernels() -> Vec<(String, Result<Kernel, KernelError>)> {
        let kernel = Kernel {
            name: "linux-6.1".to_owned(),
            path: "/srv/bdp/kernels/linux-6.1".into(),
            version: "6.1.192".to_owned(),
            congestion_controls: vec!["bbr".to_owned(), "cubic".to_owned(), "reno".to_owned()],
            seeded: true,
        };
        let unseeded =
            Kernel { name: "kernel:/srv/bdp/kernels/linux-6.6".to_owned(), seeded: false, ..kernel.clone() };
        let missing = KernelError::Missing { name: "linux-6.12".to_owned(), folder: None };
        let real = KernelError::RealClock { path: "/k/linux-7.2".into(), version: "7.2.1".to_owned() };
        vec![
            ("linux-6.1".to_owned(), Ok(kernel)),
            ("kernel:/srv/bdp/kernels/linux-6.6".to_owned(), Ok(unseeded)),
            ("linux-6.12".to_owned(), Err(missing)),
            ("linux-7.2".to_owned(), Err(real)),
        ]
    }

    fn machine() -> Machine {
        Machine {
            version: "6.1.0-44-amd64".to_owned(),
            congestion_controls: vec!["reno".to_owned(), "cubic".to_owned()],
        }
    }

    #[test]
    fn each_has_a_line_and_what_is_missing_its_command() {
        insta::assert_snapshot!(text(&machine(), &kernels(), Some("linux-6.1"), &others()));
    }

    #[test]
    fn json_follows_the_schema() {
        let schema: Value =
            serde_json::from_str(include_str!("../../../../docs/stacks.schema.json")).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let value = as_value(&machine(), &kernels(), Some("linux-6.1"), &others());
        assert!(
            validator.is_valid(&value),
            "{:?}",
            validator.iter_errors(&value).next().map(|e| e.to_string())
        );
        assert_eq!(value["stacks"][3]["command"], "make kernel LINUX=6.12");
    }
}
