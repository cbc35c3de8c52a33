//! `stack`: which kernel a host runs, and whether the case's clock has it.

use super::super::error::Problem;
use super::super::path::get;
use super::super::tree::{Node, Origin, Table};
use super::super::{Clock, HostSpec, Stack};
use super::item::Result;

/// A stack by its name.
pub(super) fn stack(node: &Node, at: &str) -> Result<Stack> {
    let expected = || format!("\"{}\" (this machine's kernel), {}", Stack::MACHINE, Stack::guest_names());
    let text = node.as_text(at, &expected())?;
    text.parse().map_err(|_| node.unexpected(at, expected()))
}

/// Holds the hosts' kernels against the clock, and against each other: one case runs one kernel.
pub(super) fn check(root: &Table, clock: Clock, hosts: &[HostSpec]) -> Result<()> {
    let named = || hosts.iter().filter_map(|host| Some((host, host.stack.as_ref()?)));
    let refuse = |host: &HostSpec, stack: &Stack, other: String, rule: String| {
        let (at, origin) = place(root, host);
        Err(origin.error(Problem::Contradiction { at, found: format!("\"{stack}\""), other, rule }))
    };
    for (host, stack) in named() {
        let other = format!("clock = \"{clock}\"");
        match (clock, stack.is_guest()) {
            (Clock::Real, true) => {
                let rule = "a guest kernel needs clock = \"virtual\" (--clock virtual)".to_owned();
                return refuse(host, stack, other, rule);
            }
            (Clock::Virtual, false) => {
                let names = Stack::guest_names();
                let rule = format!(
                    "this machine's kernel runs by the real clock; name a guest kernel, {names}, or none for the default one"
                );
                return refuse(host, stack, other, rule);
            }
            _ => {}
        }
    }
    if let Some((first, one)) = named().next()
        && let Some((host, stack)) = named().find(|(_, stack)| *stack != one)
    {
        let other = format!("\"{one}\" of host '{}'", first.name);
        let rule = "the hosts of one case run one kernel; sweep 'stack' to compare kernels".to_owned();
        return refuse(host, stack, other, rule);
    }
    Ok(())
}

/// Where a host's stack is written: in its own table, or for all hosts.
fn place(root: &Table, host: &HostSpec) -> (String, Origin) {
    let own = format!("hosts.{}.stack", host.name);
    match (get(root, &own), root.get("stack")) {
        (Some(node), _) => (own, node.origin.clone()),
        (None, Some(node)) => ("stack".to_owned(), node.origin.clone()),
        (None, None) => (own, Origin::default()),
    }
}
