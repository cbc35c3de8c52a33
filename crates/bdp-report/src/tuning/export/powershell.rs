//! Windows 8 and later: a PowerShell script.

use bdp_model::measurement::ends::End;
use bdp_model::tuning::{Plan, Reason};

use super::meaning::{Meaning, Meant, largest_buffers, of_end};
use super::quote::{comment, identity};
use super::script::comments;
use super::words::{aim, origin, purpose};

const RUNTIME: &str = include_str!("text/windows.ps1");

/// Largest window at level Normal: a shift of 8.
const NORMAL: u64 = 65_535 << 8;

/// Windows names of Linux's congestion controls. Only these names are written to the script.
const CONTROLS: [(&str, &str); 4] =
    [("cubic", "CUBIC"), ("bbr", "BBR2"), ("reno", "NewReno"), ("dctcp", "DCTCP")];

/// Translation of a change.
enum Part {
    /// A setting: kind, name, value, and a remark.
    Set(&'static str, &'static str, String, &'static str),
    /// Not possible, with the reason.
    Not(&'static str),
}

/// Returns the script for a plan's changes at an end.
pub(super) fn write(plan: &Plan, end: End) -> String {
    let meant = of_end(plan, end);
    let mut top = origin(plan, end, "powershell");
    top.extend(
        [
            "In a PowerShell of an administrator: powershell -ExecutionPolicy Bypass -File FILE apply|undo|status",
            "What was there first goes to a file below ProgramData\\bdp-tune before anything is set. Undo puts that back,",
            "but for what someone else changed since, which it names.",
        ]
        .map(str::to_owned),
    );
    let mut items = String::new();
    for one in &meant {
        match part(one, &meant) {
            Part::Not(why) => {
                let what = aim(&one.meaning, &one.change.target.to_string());
                top.push(comment(&format!("Left out: {what}. {why}")));
            }
            Part::Set(kind, name, value, note) => items.push_str(&format!(
                "{}    @{{ Kind = '{kind}'; Name = '{name}'; Value = '{value}' }}\n",
                comments(
                    &[purpose(plan, one), comment(note)]
                        .into_iter()
                        .filter(|line| !line.is_empty())
                        .collect::<Vec<_>>(),
                    "    #"
                ),
            )),
        }
    }
    let text = format!(
        "{}[CmdletBinding()]\nparam(\n    [Parameter(Position = 0)]\n    [ValidateSet('apply', 'undo', 'status')]\n    [string] $Action = 'status'\n)\n\n\
        $Plan = '{}'\n$Settings = @(\n{items})\n\n{RUNTIME}",
        comments(&top, "#"),
        identity(&(plan, end)),
    );
    text.replace('\n', "\r\n")
}

fn part(one: &Meant<'_>, meant: &[Meant<'_>]) -> Part {
    let switched = |on: bool| if on { "Enabled" } else { "Disabled" }.to_owned();
    match &one.meaning {
        Meaning::ReceiveBuffer { .. } => level(window(one, meant)),
        Meaning::WindowScaling { on: true } if sets_window(meant) => {
            Part::Not("The autotuning level below brings window scaling with it.")
        }
        Meaning::WindowScaling { on: true } => level(0),
        Meaning::WindowScaling { on: false } => {
            Part::Not("Only autotuning level Disabled ends window scaling, and the window with it.")
        }
        Meaning::SendBuffer { .. } => {
            Part::Not("Windows sizes send buffers by itself; a program may set SO_SNDBUF.")
        }
        Meaning::AskedReceiveBuffer { .. } | Meaning::AskedSendBuffer { .. } => {
            Part::Not("Windows has no such limit.")
        }
        Meaning::Sack { .. } => Part::Not("Always on since Windows Vista."),
        Meaning::Timestamps { on } => Part::Set("cmdlet", "Timestamps", switched(*on), ""),
        Meaning::Ecn { asks } => Part::Set("cmdlet", "EcnCapability", switched(*asks), ""),
        Meaning::RestartAfterIdle { on } => {
            Part::Set("cmdlet", "CwndRestart", if *on { "True" } else { "False" }.to_owned(), "")
        }
        Meaning::CongestionControl { name, to } => control(name, to.is_some()),
        Meaning::InitialWindow { segments, .. } => Part::Set(
            "netsh",
            "InitialCongestionWindowMss",
            // Range accepted by netsh.
            (*segments).clamp(2, 64).to_string(),
            "Of all connections of the template: routes of Windows have none.",
        ),
        Meaning::LeastTimeout { ms, .. } => Part::Set(
            "netsh",
            "MinRtoMs",
            (*ms).clamp(20, 300).to_string(),
            "Of all connections of the template: routes of Windows have none.",
        ),
        Meaning::InitialReceiveWindow { .. } => Part::Not("Windows has no such setting."),
        Meaning::Pacing { .. } => Part::Not(
            "There is no fq; New-NetQosPolicy -ThrottleRateActionBitsPerSecond limits all that matches it together.",
        ),
        Meaning::Queue { .. } | Meaning::DefaultQueue { .. } => {
            Part::Not("Windows has no queueing disciplines to choose.")
        }
        Meaning::MtuProbing { .. } => Part::Not("Windows detects black holes by itself since Vista."),
        Meaning::Backlog { .. } => {
            Part::Not("It is the adapter's: Set-NetAdapterAdvancedProperty -RegistryKeyword *ReceiveBuffers.")
        }
        Meaning::Linux => Part::Not("Linux alone has it."),
    }
}

fn sets_window(meant: &[Meant<'_>]) -> bool {
    meant.iter().any(|one| matches!(one.meaning, Meaning::ReceiveBuffer { .. }))
}

/// Returns the bytes that the window must hold: those in flight if known, otherwise the buffer.
fn window(one: &Meant<'_>, meant: &[Meant<'_>]) -> u64 {
    match one.change.reason {
        Reason::Buffer { in_flight_bytes, .. } => in_flight_bytes,
        _ => largest_buffers(meant).0.unwrap_or(0),
    }
}

fn level(window: u64) -> Part {
    match window <= NORMAL {
        true => Part::Set(
            "cmdlet",
            "AutoTuningLevelLocal",
            "Normal".to_owned(),
            "Normal, the default, lets the window grow to 16 MiB. A higher level stays.",
        ),
        false => Part::Set(
            "cmdlet",
            "AutoTuningLevelLocal",
            "Experimental".to_owned(),
            "Level Normal ends at 16 MiB, and the path needs more: Experimental grows to 1 GiB.",
        ),
    }
}

fn control(name: &str, is_of_route: bool) -> Part {
    match CONTROLS.iter().find(|(linux, _)| *linux == name) {
        Some((_, "BBR2")) => Part::Set(
            "netsh",
            "CongestionProvider",
            "BBR2".to_owned(),
            "Of all connections of the template, on Windows 11 22H2 and later. With it, connections over loopback can hang \
            until: netsh int ipv4 set global loopbacklargemtu=disable",
        ),
        Some((_, provider)) => Part::Set(
            "netsh",
            "CongestionProvider",
            (*provider).to_owned(),
            match is_of_route {
                true => "Of all connections of the template: routes of Windows have none.",
                false => "",
            },
        ),
        None => Part::Not("Windows has no congestion provider of this name."),
    }
}
