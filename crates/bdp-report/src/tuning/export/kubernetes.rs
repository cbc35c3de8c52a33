//! Kubernetes: sysctls of a Pod, and a DaemonSet for settings that a Pod can't change.

use bdp_model::measurement::ends::End;
use bdp_model::tuning::setting::Setting;
use bdp_model::tuning::{Plan, Target};

use super::meaning::{Meant, of_end};
use super::quote::{comment, identity, is_sysctl_name, yaml, yaml_block};
use super::script::comments;
use super::sh::linux_script;
use super::words::{origin, purpose};

/// Safe sysctls outside the catalogue, which any Pod may set, and the release since when ("Using sysctls in a
/// Kubernetes Cluster").
const SAFE: [(&str, &str); 8] = [
    ("kernel.shm_rmid_forced", "1.4"),
    ("net.ipv4.ip_local_port_range", "1.4"),
    ("net.ipv4.ping_group_range", "1.18"),
    ("net.ipv4.ip_unprivileged_port_start", "1.22"),
    ("net.ipv4.ip_local_reserved_ports", "1.27"),
    ("net.ipv4.tcp_keepalive_time", "1.29"),
    ("net.ipv4.tcp_keepalive_intvl", "1.29"),
    ("net.ipv4.tcp_keepalive_probes", "1.29"),
];

/// Sysctls in `net.ipv4` outside the catalogue that belong to the node (net/ipv4/sysctl_net_ipv4.c, `ipv4_table`).
const NODES_OF_IPV4: [&str; 4] = [
    "net.ipv4.udp_mem",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.inet_peer_threshold",
    "net.ipv4.tcp_available_ulp",
];

/// Who may set a sysctl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Any Pod, since this release.
    Safe(&'static str),
    /// A Pod whose node allows it in its kubelet.
    Unsafe,
    /// Only the node.
    Node,
}

fn place(name: &str) -> Place {
    let setting = Setting::named(name);
    let outside = || SAFE.iter().find(|(safe, _)| *safe == name).map(|(_, since)| *since);
    if let Some(since) = setting.map_or_else(outside, |setting| setting.pods_since) {
        return Place::Safe(since);
    }
    let is_nodes = match setting {
        Some(setting) => setting.own_since.is_none(),
        // Most of net.core belongs to the node (net/core/sysctl_net_core.c).
        None if name.starts_with("net.core.") => name != "net.core.txrehash",
        None => !name.starts_with("net.") || NODES_OF_IPV4.contains(&name),
    };
    if is_nodes { Place::Node } else { Place::Unsafe }
}

/// Returns the manifests for a plan's changes at an end.
pub(super) fn write(plan: &Plan, end: End) -> String {
    let meant = of_end(plan, end);
    let mut top = origin(plan, end, "kubernetes");
    top.extend(
        [
            "A Pod with the sysctls that its network namespace has for itself: copy its securityContext to your Pods. They",
            "end with the Pod. Where the plan has settings of the node (sysctls, routes, qdiscs), a DaemonSet applies them",
            "on the nodes labelled bdp-tune=yes, and undoes them when it is deleted: kubectl delete -f FILE.",
        ]
        .map(str::to_owned),
    );
    let mut sysctls = String::new();
    let mut allowed: Vec<&str> = Vec::new();
    let mut others: Vec<String> = Vec::new();
    let is_nodes = |target: &Target| match target {
        Target::Sysctl { name } => is_sysctl_name(name) && place(name) == Place::Node,
        Target::Route { .. } | Target::Qdisc { .. } => true,
    };
    for one in &meant {
        match &one.change.target {
            Target::Sysctl { name } if !is_sysctl_name(name) => {
                others.push(format!("Left out: '{name}' is no name of a sysctl."));
            }
            Target::Sysctl { name } => {
                let place = place(name);
                let note = match place {
                    Place::Safe(since) => {
                        format!("Safe since Kubernetes {since}; before, the kubelet has to allow it.")
                    }
                    Place::Unsafe => "Unsafe: the kubelet has to allow it.".to_owned(),
                    Place::Node => {
                        others.push(format!("Not here: {name} is the node's; the DaemonSet sets it."));
                        continue;
                    }
                };
                if place == Place::Unsafe {
                    allowed.push(name);
                }
                sysctls.push_str(&entry(plan, one, name, &note));
            }
            target => {
                others.push(format!("Not here: no Pod sets the {target}; the DaemonSet does, for its node."))
            }
        }
    }
    let mut text = comments(&top, "#");
    let others: Vec<String> = others.iter().map(|line| comment(line)).collect();
    if sysctls.is_empty() {
        text.push_str(&comments(&others, "#"));
    } else {
        text.push_str(&pod(&sysctls, &allowed, &others));
    }
    if meant.iter().any(|one| is_nodes(&one.change.target)) {
        let mut top = origin(plan, end, "kubernetes");
        top.push("The part of the plan that is the node's.".to_owned());
        let script = linux_script(plan, &meant, &format!("{}-node", identity(&(plan, end))), top, is_nodes);
        let needs_tools = meant.iter().any(|one| !matches!(one.change.target, Target::Sysctl { .. }));
        text.push_str(&daemon_set(&script, needs_tools));
    }
    text
}

fn entry(plan: &Plan, one: &Meant<'_>, name: &str, note: &str) -> String {
    let value = one.change.to.split_whitespace().collect::<Vec<_>>().join(" ");
    format!(
        "{}      - name: {}\n        value: {}\n",
        comments(&[purpose(plan, one), note.to_owned()], "      #"),
        yaml(name),
        yaml(&value)
    )
}

fn pod(sysctls: &str, allowed: &[&str], others: &[String]) -> String {
    let mut text = String::from("---\n");
    if !allowed.is_empty() {
        text.push_str(&format!(
            "# The kubelet of its node needs: --allowed-unsafe-sysctls={}\n",
            allowed.join(",")
        ));
    }
    text.push_str(&comments(others, "#"));
    text.push_str(
        "# Not with hostNetwork: true, which the kubelet refuses together with sysctls of the network.\n\
        apiVersion: v1\nkind: Pod\nmetadata:\n  name: bdp-tune-example\nspec:\n  securityContext:\n    sysctls:\n",
    );
    text.push_str(sysctls);
    text.push_str("  containers:\n    - name: yours\n      image: registry.k8s.io/pause:3.10\n");
    text
}

/// Returns a DaemonSet whose ConfigMap has the script; it is applied before the Pod runs and undone when it ends.
fn daemon_set(script: &str, needs_tools: bool) -> String {
    let image = match needs_tools {
        true => ("nicolaka/netshoot:v0.13", "any image with a POSIX shell, ip and tc"),
        false => ("busybox:1.36", "any image with a POSIX shell"),
    };
    include_str!("text/daemon-set.yml")
        .replace("IMAGE", &format!("{} # {}", image.0, image.1))
        .replace("SCRIPT\n", &yaml_block(script, 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sysctl_has_its_place() {
        for (name, expected) in [
            ("net.ipv4.tcp_rmem", Place::Safe("1.32")),
            ("net.ipv4.tcp_congestion_control", Place::Unsafe),
            ("net.core.somaxconn", Place::Unsafe),
            ("net.core.rmem_max", Place::Node),
            ("net.core.default_qdisc", Place::Node),
            ("net.ipv4.tcp_mem", Place::Node),
            ("vm.swappiness", Place::Node),
        ] {
            assert_eq!(place(name), expected, "{name}");
        }
    }
}
