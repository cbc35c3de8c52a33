//! Linux: a file for `/etc/sysctl.d`.

use bdp_model::measurement::ends::End;
use bdp_model::tuning::{Plan, Target};

use super::meaning::of_end;
use super::quote::{comment, is_sysctl_name};
use super::script::comments;
use super::words::{origin, purpose};

/// Returns the file that sets the plan's values, or the one that restores the measured ones.
pub(super) fn write(plan: &Plan, end: End, undo: bool) -> String {
    let mut top = origin(plan, end, "sysctl");
    let how = match undo {
        false => [
            "Save it as /etc/sysctl.d/90-bdp.conf: 'sysctl --system', and every boot, reads it.",
            "To undo: remove that file, then load the file of 'bdp tune export --as sysctl --undo' by 'sysctl -p FILE'.",
        ],
        true => [
            "The values as they were measured. Remove /etc/sysctl.d/90-bdp.conf, then 'sysctl -p FILE' with this file.",
            "It does not know what someone changed since; the script of '--as sh' does.",
        ],
    };
    top.extend(how.map(str::to_owned));
    let mut text = comments(&top, "#");
    for one in of_end(plan, end) {
        let lines = match &one.change.target {
            Target::Sysctl { name } => {
                let value = if undo { one.change.from.as_deref() } else { Some(one.change.to.as_str()) };
                match value.map(|value| line(name, value)) {
                    Some(Some(line)) => line,
                    Some(None) => cannot(&format!("{name}: its name or value cannot stand in this file.")),
                    None => cannot(&format!("{name}: its value was not known; 'sysctl {name}' shows it.")),
                }
            }
            Target::Route { to, attribute } => cannot(&format!(
                "the {} of the route to {to}: a file of sysctls has no routes; '--as sh' does it.",
                attribute.name()
            )),
            Target::Qdisc { device } => cannot(&format!(
                "the qdisc of {device}: a file of sysctls has none of one device; '--as sh' does it."
            )),
        };
        text.push_str(&format!("\n{}{lines}", comments(&[purpose(plan, &one)], "#")));
    }
    text
}

/// Returns `net.ipv4.tcp_sack = 1`; `None` if a line can't hold it.
pub(super) fn line(name: &str, value: &str) -> Option<String> {
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    let fits = is_sysctl_name(name) && value.chars().all(|c| (' '..='~').contains(&c)) && !value.is_empty();
    fits.then(|| format!("{name} = {value}\n"))
}

fn cannot(what: &str) -> String {
    format!("# Not here: {}\n", comment(what))
}
