//! Linux: a POSIX script.

use std::net::IpAddr;

use bdp_model::measurement::ends::End;
use bdp_model::tuning::{Plan, Target};

use super::meaning::{Meant, of_end};
use super::quote::{comment, identity, is_sysctl_name};
use super::script::{Item, script, usage};
use super::words::{origin, purpose};

const LINUX: &str = include_str!("text/linux.sh");

/// Returns the script for a plan's changes at an end.
pub(super) fn write(plan: &Plan, end: End) -> String {
    let mut top = origin(plan, end, "sh");
    top.extend(usage("/var/lib/bdp-tune/applied", "A boot ends the settings as well."));
    let meant = of_end(plan, end);
    linux_script(plan, &meant, &identity(&(plan, end)), top, |_| true)
}

/// Returns a script for the selected changes.
pub(super) fn linux_script(
    plan: &Plan,
    meant: &[Meant<'_>],
    identity: &str,
    mut top: Vec<String>,
    wanted: impl Fn(&Target) -> bool,
) -> String {
    let mut items: Vec<Item> = Vec::new();
    let mut routes: Vec<(IpAddr, usize)> = Vec::new();
    for one in meant.iter().filter(|one| wanted(&one.change.target)) {
        let value = || one.change.to.split_whitespace().map(str::to_owned);
        let words = match &one.change.target {
            Target::Sysctl { name } if !is_sysctl_name(name) => {
                top.push(comment(&format!("Left out: '{name}' is no name of a sysctl.")));
                continue;
            }
            Target::Sysctl { name } => {
                vec!["sysctl".to_owned(), name.clone(), value().collect::<Vec<_>>().join(" ")]
            }
            Target::Qdisc { device } => {
                ["qdisc".to_owned(), device.clone()].into_iter().chain(value()).collect()
            }
            Target::Route { to, attribute } => {
                let words = std::iter::once(attribute.name().to_owned()).chain(value());
                // All attributes of a route are set together.
                if let Some((_, at)) = routes.iter().find(|(address, _)| address == to) {
                    items[*at].purpose.push(purpose(plan, one));
                    items[*at].words.extend(words);
                    continue;
                }
                routes.push((*to, items.len()));
                ["route".to_owned(), to.to_string()].into_iter().chain(words).collect()
            }
        };
        items.push(Item { purpose: vec![purpose(plan, one)], words });
    }
    script(&top, identity, &items, LINUX)
}
