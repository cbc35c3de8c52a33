//! `stack`: which kernel or stack a host runs, and whether the case's clock supports it.

use super::item::Result;
use crate::error::Problem;
use crate::path::get;
use crate::tree::{Node, Origin, Table};
use bdp_model::case::stack::{Clock, Stack};
use bdp_model::case::{CaseFlow, HostSpec, ProbeKind};

/// Reads the name of a stack.
pub(super) fn stack(node: &Node, at: &str) -> Result<Stack> {
    let expected = || format!("\"{}\" (this machine's kernel), {}", Stack::MACHINE, Stack::virtual_names());
    let text = node.as_text(at, &expected())?;
    text.parse().map_err(|_| node.unexpected(at, expected()))
}

/// Checks the hosts' stacks against the clock, each other and their flows: one case runs one kernel, stacks that run in
/// steps, or both.
pub(super) fn check(
    root: &Table,
    clock: Clock,
    hosts: &[HostSpec],
    flows: &[CaseFlow],
    probe: ProbeKind,
) -> Result<()> {
    let named = || hosts.iter().filter_map(|host| Some((host, host.stack.as_ref()?)));
    let refuse = |host: &HostSpec, stack: &Stack, other: String, rule: String| {
        let (at, origin) = place(root, host);
        Err(origin.error(Problem::Contradiction { at, found: format!("\"{stack}\""), other, rule }))
    };
    for (host, stack) in named() {
        let other = format!("clock = \"{clock}\"");
        match (clock, *stack == Stack::Machine) {
            (Clock::Real, false) => {
                let what = if stack.is_guest() { "a guest kernel" } else { "a stack that is not a kernel" };
                let rule = format!("{what} needs clock = \"virtual\" (--clock virtual)");
                return refuse(host, stack, other, rule);
            }
            (Clock::Virtual, true) => {
                let names = Stack::virtual_names();
                let rule = format!(
                    "this machine's kernel uses the real clock; choose a guest kernel or another stack, {names}, or none for the default kernel"
                );
                return refuse(host, stack, other, rule);
            }
            _ => {}
        }
    }
    let kernels = || named().filter(|(_, stack)| stack.in_steps().is_none());
    if let Some((first, one)) = kernels().next()
        && let Some((host, stack)) = kernels().find(|(_, stack)| *stack != one)
    {
        let other = format!("\"{one}\" of host '{}'", first.name);
        let rule =
            "all hosts of a case must use the same kernel (other stacks may differ); sweep 'stack' to compare kernels"
                .to_owned();
        return refuse(host, stack, other, rule);
    }
    let Some((first, one)) = named().find(|(_, stack)| stack.in_steps().is_some()) else { return Ok(()) };
    for flow in flows {
        if flow.spec.udp.is_some() {
            let rule =
                "this stack supports only TCP; use protocol = \"tcp\", or a kernel on these hosts".to_owned();
            return refuse(first, one, "protocol = \"udp\"".to_owned(), rule);
        }
        if !flow.spec.application.is_greedy() {
            let rule =
                "programs with their own pace need a kernel; remove the stack, or these keys".to_owned();
            return refuse(first, one, "reader, writer or messages of a flow".to_owned(), rule);
        }
        let ends = [&flow.from, &flow.to];
        if let Some(bare) = hosts.iter().find(|host| ends.contains(&&host.name) && host.stack.is_none()) {
            let other = format!("host '{}' without a stack", bare.name);
            return refuse(first, one, other, "give it one too, or set 'stack' for all hosts".to_owned());
        }
    }
    let kernel = |host: &HostSpec| host.stack.as_ref().is_some_and(|stack| stack.in_steps().is_none());
    if let Some(host) = hosts.iter().find(|host| !host.sysctls.is_empty() && !kernel(host)) {
        let other = format!("sysctls of host '{}'", host.name);
        return refuse(
            first,
            one,
            other,
            "only a kernel has sysctls; use the TCP settings by name".to_owned(),
        );
    }
    if probe != ProbeKind::Udp {
        let rule = "with this stack, probes must be datagrams".to_owned();
        return refuse(first, one, "probe = \"tcp-connect\"".to_owned(), rule);
    }
    Ok(())
}

/// Returns where a host's stack is set: in its own table, or for all hosts.
fn place(root: &Table, host: &HostSpec) -> (String, Origin) {
    let own = format!("hosts.{}.stack", host.name);
    match (get(root, &own), root.get("stack")) {
        (Some(node), _) => (own, node.origin.clone()),
        (None, Some(node)) => ("stack".to_owned(), node.origin.clone()),
        (None, None) => (own, Origin::default()),
    }
}
