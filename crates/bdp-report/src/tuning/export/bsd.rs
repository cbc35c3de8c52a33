//! macOS and FreeBSD: POSIX scripts that set sysctls.

use bdp_model::measurement::ends::End;
use bdp_model::tuning::Plan;

use super::form::ExportForm;
use super::meaning::{Meaning, Meant, largest_buffers, of_end};
use super::quote::{comment, identity};
use super::script::{Item, script, usage};
use super::words::{aim, origin, purpose};

const BSD: &str = include_str!("text/bsd.sh");

/// Share of a socket buffer's limit left for data: clusters of 2048 bytes next to mbufs of 256 (kern/uipc_sockbuf.c, `sb_max_adj`).
const CLUSTER: u64 = 2048;
const MBUF: u64 = 256;

/// Congestion controls by Linux's name and that of FreeBSD's `cc_` module.
const FREEBSD_CONTROLS: [(&str, &str); 5] =
    [("cubic", "cubic"), ("reno", "newreno"), ("htcp", "htcp"), ("vegas", "vegas"), ("dctcp", "dctcp")];

/// Translation of a change.
enum Part {
    /// Sysctls to set: how, name, value.
    Set(Vec<(&'static str, &'static str, String)>),
    /// Not possible, with the reason.
    Not(&'static str),
}

/// Returns the script for a plan's changes at an end.
pub(super) fn write(plan: &Plan, end: End, form: ExportForm) -> String {
    let is_macos = form == ExportForm::Macos;
    let meant = of_end(plan, end);
    let mut top = origin(plan, end, form.name());
    top.extend(usage("/var/db/bdp-tune/applied", "Limits that are higher already stay."));
    let mut items = limits(&meant, is_macos);
    let mut left_out = Vec::new();
    for one in &meant {
        match part(&one.meaning, is_macos) {
            Part::Not(why) => {
                let what = aim(&one.meaning, &one.change.target.to_string());
                left_out.push(comment(&format!("Left out: {what}. {why}")));
            }
            Part::Set(sysctls) => {
                for (index, (how, name, value)) in sysctls.into_iter().enumerate() {
                    let purpose = if index == 0 { vec![purpose(plan, one)] } else { Vec::new() };
                    items.push(Item { purpose, words: vec![how.to_owned(), name.to_owned(), value] });
                }
            }
        }
    }
    top.extend(left_out);
    top.push(String::new());
    top.push(match is_macos {
        true => "Set until the next boot. A LaunchDaemon that runs 'sh FILE apply' makes it last.".to_owned(),
        false => {
            "Set until the next boot. To make it last, in /etc/sysctl.conf, where that has no higher value:"
                .to_owned()
        }
    });
    if !is_macos {
        top.extend(items.iter().map(|item| format!("  {}={}", item.words[1], item.words[2])));
    }
    let system = format!("default_state=/var/db/bdp-tune/applied\n{BSD}");
    script(&top, &identity(&(plan, end)), &items, &system)
}

/// Returns other limits on socket buffers, placed first so that they are lowered last.
fn limits(meant: &[Meant<'_>], is_macos: bool) -> Vec<Item> {
    let (receive, send) = largest_buffers(meant);
    let mut items = Vec::new();
    if let Some(largest) = receive.max(send) {
        let limit = largest.saturating_mul(CLUSTER + MBUF).div_ceil(CLUSTER);
        items.push(Item {
            purpose: vec![
                "Limit of every socket buffer, with the kernel's own bookkeeping (9/8 of the data)."
                    .to_owned(),
            ],
            words: vec!["at_least".to_owned(), "kern.ipc.maxsockbuf".to_owned(), limit.to_string()],
        });
    }
    if let (true, Some(receive)) = (is_macos, receive) {
        items.push(Item {
            purpose: vec![
                "Shift of the window field that connections ask for: this window has to fit (RFC 7323)."
                    .to_owned(),
            ],
            words: vec![
                "at_least".to_owned(),
                "net.inet.tcp.win_scale_factor".to_owned(),
                shift(receive).to_string(),
            ],
        });
    }
    items
}

/// Returns the smallest shift with which a 16-bit window holds `bytes`; 14 at most (RFC 7323, section 2.3).
fn shift(bytes: u64) -> u32 {
    (0..14).find(|shift| 65_535_u64 << shift >= bytes).unwrap_or(14)
}

fn set(how: &'static str, name: &'static str, value: impl ToString) -> Part {
    Part::Set(vec![(how, name, value.to_string())])
}

fn switch(name: &'static str, on: bool) -> Part {
    set("exactly", name, u8::from(on))
}

fn part(meaning: &Meaning, is_macos: bool) -> Part {
    match meaning {
        Meaning::ReceiveBuffer { bytes } if is_macos => {
            buffer("net.inet.tcp.doautorcvbuf", "net.inet.tcp.autorcvbufmax", *bytes)
        }
        Meaning::SendBuffer { bytes } if is_macos => {
            buffer("net.inet.tcp.doautosndbuf", "net.inet.tcp.autosndbufmax", *bytes)
        }
        Meaning::ReceiveBuffer { bytes } => {
            buffer("net.inet.tcp.recvbuf_auto", "net.inet.tcp.recvbuf_max", *bytes)
        }
        Meaning::SendBuffer { bytes } => {
            buffer("net.inet.tcp.sendbuf_auto", "net.inet.tcp.sendbuf_max", *bytes)
        }
        Meaning::AskedReceiveBuffer { .. } | Meaning::AskedSendBuffer { .. } => {
            Part::Not("kern.ipc.maxsockbuf limits both, and is set here.")
        }
        Meaning::MtuProbing { on } => switch("net.inet.tcp.pmtud_blackhole_detection", *on),
        Meaning::RestartAfterIdle { .. } => Part::Not("No sysctl has it."),
        _ if is_macos => on_macos(meaning),
        _ => on_freebsd(meaning),
    }
}

fn buffer(switch: &'static str, most: &'static str, bytes: u64) -> Part {
    Part::Set(vec![("exactly", switch, "1".to_owned()), ("at_least", most, bytes.to_string())])
}

fn on_macos(meaning: &Meaning) -> Part {
    match meaning {
        Meaning::Sack { on } => switch("net.inet.tcp.sack", *on),
        Meaning::Ecn { asks } => switch("net.inet.tcp.ecn_initiate_out", *asks),
        Meaning::WindowScaling { .. } | Meaning::Timestamps { .. } => {
            Part::Not("Always on; older releases have net.inet.tcp.rfc1323, which is 1 there.")
        }
        Meaning::CongestionControl { .. } => {
            Part::Not("No sysctl selects it: macOS uses CUBIC, and has no other for programs to name.")
        }
        Meaning::InitialWindow { .. }
        | Meaning::InitialReceiveWindow { .. }
        | Meaning::LeastTimeout { .. } => Part::Not("Routes of macOS have no such attribute."),
        Meaning::Pacing { .. } => {
            Part::Not("There is no fq; 'dnctl' with 'pf' limits the rate of all that matches.")
        }
        Meaning::Queue { .. } | Meaning::DefaultQueue { .. } => {
            Part::Not("Its devices have their own queues (FQ-CoDel), which no command selects.")
        }
        Meaning::Backlog { .. } => Part::Not("There is no such queue."),
        _ => Part::Not("Linux alone has it."),
    }
}

fn on_freebsd(meaning: &Meaning) -> Part {
    match meaning {
        Meaning::Sack { on } => switch("net.inet.tcp.sack.enable", *on),
        // 1 requests and accepts ECN, 2 only accepts it.
        Meaning::Ecn { asks } => set("exactly", "net.inet.tcp.ecn.enable", if *asks { 1 } else { 2 }),
        // 0 disables both, 1 enables both (tcp(4)).
        Meaning::WindowScaling { on: true } | Meaning::Timestamps { on: true } => {
            switch("net.inet.tcp.rfc1323", true)
        }
        Meaning::WindowScaling { .. } | Meaning::Timestamps { .. } => {
            Part::Not("net.inet.tcp.rfc1323 switches window scaling and timestamps together.")
        }
        Meaning::CongestionControl { to: Some(_), .. } => Part::Not(
            "Routes have no congestion control; net.inet.tcp.cc.algorithm is that of all connections.",
        ),
        Meaning::CongestionControl { name, to: None } => {
            match FREEBSD_CONTROLS.iter().find(|(linux, _)| linux == name) {
                Some((_, control)) => set("algorithm", "net.inet.tcp.cc.algorithm", control),
                None if name == "bbr" => Part::Not(
                    "BBR is a TCP stack of its own there: 'kldload tcp_bbr', then net.inet.tcp.functions_default=bbr.",
                ),
                None => Part::Not("FreeBSD has no module of this name."),
            }
        }
        Meaning::InitialWindow { .. } => {
            Part::Not("Routes have none; net.inet.tcp.initcwnd_segments is that of all connections.")
        }
        Meaning::LeastTimeout { .. } => {
            Part::Not("Routes have none; net.inet.tcp.rexmit_min is that of all connections.")
        }
        Meaning::InitialReceiveWindow { .. } => {
            Part::Not("Routes have none; net.inet.tcp.recvspace is that of all connections.")
        }
        Meaning::Pacing { .. } => {
            Part::Not("There is no fq; the TCP stacks 'rack' and 'bbr' pace by themselves.")
        }
        Meaning::Queue { .. } | Meaning::DefaultQueue { .. } => {
            Part::Not("Queueing disciplines are those of dummynet and ALTQ: see ipfw(8).")
        }
        Meaning::Backlog { .. } => {
            Part::Not("net.isr.defaultqlimit is read at boot: set it in /boot/loader.conf.")
        }
        _ => Part::Not("Linux alone has it."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shift_holds_the_window() {
        for (bytes, expected) in [(65_535, 0), (65_536, 1), (16_776_960, 8), (16_777_216, 9), (u64::MAX, 14)]
        {
            assert_eq!(shift(bytes), expected, "{bytes}");
        }
    }
}
