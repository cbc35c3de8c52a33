//! Linux: an Ansible playbook with modules of ansible-core.

use bdp_model::measurement::ends::End;
use bdp_model::tuning::{Plan, Target};

use super::meaning::of_end;
use super::quote::{comment, identity, is_sysctl_name, yaml, yaml_block};
use super::script::comments;
use super::sh::linux_script;
use super::words::{origin, purpose};

const TASKS: &str = include_str!("text/tasks.yml");
const SCRIPT_TASKS: &str = include_str!("text/script-tasks.yml");

/// Returns the playbook for a plan's changes at an end.
pub(super) fn write(plan: &Plan, end: End) -> String {
    let meant = of_end(plan, end);
    let id = identity(&(plan, end));
    let mut top = origin(plan, end, "ansible");
    top.extend(
        [
            "Apply: ansible-playbook -i HOSTS FILE      Undo: ansible-playbook -i HOSTS FILE --tags undo",
            "What was there first goes to a fact of each host, ansible_local.bdp_tune, before anything is set. A second",
            "run changes nothing. Undo puts that back, but for what someone else changed since, which it names.",
            "Values are !unsafe: Ansible does not take them for templates.",
        ]
        .map(str::to_owned),
    );
    let mut sysctls = String::new();
    let mut has_others = false;
    for one in &meant {
        let Target::Sysctl { name } = &one.change.target else {
            has_others = true;
            continue;
        };
        if !is_sysctl_name(name) {
            top.push(comment(&format!("Left out: '{name}' is no name of a sysctl.")));
            continue;
        }
        let value = one.change.to.split_whitespace().collect::<Vec<_>>().join(" ");
        sysctls.push_str(&format!(
            "{}      - name: !unsafe {}\n        file: !unsafe {}\n        value: !unsafe {}\n",
            comments(&[purpose(plan, one)], "      #"),
            yaml(name),
            yaml(&format!("/proc/sys/{}", name.chars().map(swapped).collect::<String>())),
            yaml(&value)
        ));
    }
    if sysctls.is_empty() {
        sysctls = "      []\n".to_owned();
    }
    let mut text = format!(
        "---\n{}- name: Settings of a plan of bdp\n  hosts: \"{{{{ bdp_hosts | default('all') }}}}\"\n  become: true\n  gather_facts: false\n  vars:\n    \
        bdp_plan: {}\n    bdp_facts: /etc/ansible/facts.d\n    bdp_sysctls:\n{sysctls}",
        comments(&top, "#"),
        yaml(&id)
    );
    if has_others {
        let top =
            vec!["Routes and queueing disciplines of the plan, for which Ansible has no module.".to_owned()];
        let script = linux_script(plan, &meant, &format!("{id}-links"), top, |target| {
            !matches!(target, Target::Sysctl { .. })
        });
        text.push_str(&format!("    bdp_script: !unsafe {}", yaml_block(&script, 6)));
    }
    text.push_str("\n  tasks:\n");
    let (apply, undo) = TASKS.split_once("    # UNDO\n").unwrap_or((TASKS, ""));
    let (apply_script, undo_script) = SCRIPT_TASKS.split_once("    # UNDO\n").unwrap_or((SCRIPT_TASKS, ""));
    text.push_str(apply);
    if has_others {
        text.push_str(apply_script);
        text.push_str(undo_script);
    }
    text.push_str(undo);
    text
}

/// Swaps `.` and `/`: net.ipv4.conf.eth0/100.mtu is net/ipv4/conf/eth0.100/mtu below /proc/sys.
const fn swapped(c: char) -> char {
    match c {
        '.' => '/',
        '/' => '.',
        c => c,
    }
}
