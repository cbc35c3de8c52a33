//! `bdp tune show` on a terminal.

use bdp_model::tuning::advice::VerdictKind;
use bdp_model::tuning::host::{DeviceQueues, HostSettings, Unreadable};
use bdp_model::tuning::judged::{JudgedAdvice, JudgedSetting, judged, judged_queue_length};
use bdp_model::tuning::setting::{Basis, DefaultValue, Kind, Relation, Setting, Unit, numbers};

use super::effect::{discipline, effect};
use super::words::verdict;
use crate::grid::{Align, Cell, Column, cut, render, tame, total_width, wrap};
use crate::number::{rate, size};
use crate::style::{Style, Tint};

/// Columns before the text of a note.
const LEAD: usize = 8;
/// Width to which values are truncated in the table; a setting shown by name has its full value.
const VALUE: usize = 24;
/// Minimum width for the effect column.
const LEAST_EFFECT: usize = 12;

/// Returns a host's settings as a table: those that shape a path, are changed or follow bad advice, or all.
pub fn settings_text(host: &HostSettings, all: bool, style: &Style) -> String {
    let settings = judged(host);
    let mut text = wrap(&lead("host"), Tint::Strong, &host_words(host), style);
    if let Some(names) = available(host) {
        text.push_str(&wrap(&lead(""), Tint::None, &names, style));
    }
    let is_row = |setting: &&JudgedSetting| {
        setting.value.is_ok() && setting.setting.kind != Kind::Names && (all || setting.is_notable())
    };
    let rows: Vec<&JudgedSetting> = settings.iter().filter(is_row).collect();
    text.push_str(&table(&rows, host, style));
    text.push('\n');
    if let Some(device) = &host.device {
        text.push_str(&wrap(&lead("device"), Tint::Strong, &device_words(device, host), style));
    }
    let of_queue = judged_queue_length(host);
    let queue = of_queue.iter().filter(|advice| advice.misleads()).map(|advice| {
        let length = host.device.as_ref().and_then(|device| device.txqueuelen).unwrap_or_default();
        (format!("txqueuelen {length}"), vec![advice])
    });
    text.push_str(&advice_followed(&settings, style));
    for (what, advice) in queue {
        text.push_str(&wrap(&lead("advice"), Tint::Bad, &misled_words(&what, &advice), style));
    }
    text.push_str(&warnings(&settings, style));
    for line in unreadable_words(&settings, all) {
        text.push_str(&wrap(&lead("unread"), Tint::Faint, &line, style));
    }
    if !all {
        let hidden =
            settings.iter().filter(|s| s.value.is_ok() && s.setting.kind != Kind::Names).count() - rows.len();
        let are = if hidden == 1 {
            "setting is as this kernel has it"
        } else {
            "settings are as this kernel has them"
        };
        let more = format!("{hidden} more {are}: --all; one in full: bdp tune show NAME");
        text.push_str(&wrap(&lead("more"), Tint::Faint, &more, style));
    }
    text
}

/// Settings that a sysctl file would apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SysctlFile {
    /// File name, as given.
    pub name: String,
    /// Settings of the catalogue in the file; if one occurs several times, the last counts.
    pub settings: Vec<Setting>,
    /// Settings that the catalogue does not have, of networking or anything else.
    pub unknown: Vec<String>,
    /// Numbers of the lines that set nothing.
    pub unreadable: Vec<usize>,
    /// Settings that this kernel does not have.
    pub not_of_kernel: Vec<Setting>,
}

/// Returns the effect of a sysctl file on a host: `host` already has the file's settings in place of its own.
pub fn sysctl_file_text(file: &SysctlFile, host: &HostSettings, style: &Style) -> String {
    let settings = settings_of_file(file, host);
    let count = match settings.len() {
        1 => "1 setting of TCP or of the queues before it".to_owned(),
        count => format!("{count} settings of TCP or of the queues before it"),
    };
    let words = format!("{}: {count}, judged for {}", tame(&file.name), host_words(host));
    let mut text = wrap(&lead("file"), Tint::Strong, &words, style);
    if !settings.is_empty() {
        text.push_str(&table(&settings.iter().collect::<Vec<_>>(), host, style));
        text.push('\n');
    }
    let judgement = advice_followed(&settings, style) + &warnings(&settings, style);
    if judgement.is_empty() && !settings.is_empty() {
        text.push_str(&wrap(
            &lead("advice"),
            Tint::None,
            "no absurd value, and no stale or harmful advice",
            style,
        ));
    }
    text.push_str(&judgement);
    let mut line = |what: &str, names: Vec<String>| {
        if !names.is_empty() {
            text.push_str(&wrap(
                &lead("unread"),
                Tint::Faint,
                &format!("{what}: {}", names.join(", ")),
                style,
            ));
        }
    };
    line("not of this kernel", file.not_of_kernel.iter().map(|setting| setting.short.to_owned()).collect());
    line("not in the catalogue of settings", file.unknown.iter().map(|name| tame(name)).collect());
    line("lines that set nothing", file.unreadable.iter().map(usize::to_string).collect());
    text
}

/// Returns the settings of a file with their judgement.
pub fn settings_of_file(file: &SysctlFile, host: &HostSettings) -> Vec<JudgedSetting> {
    let all = judged(host);
    file.settings.iter().filter_map(|wanted| all.iter().find(|s| s.setting == *wanted).cloned()).collect()
}

/// Returns the bad advice that settings follow.
fn advice_followed(settings: &[JudgedSetting], style: &Style) -> String {
    let lines = settings.iter().filter_map(|setting| {
        let advice: Vec<&JudgedAdvice> = setting.misled_by().collect();
        let what = assignment(setting)?;
        (!advice.is_empty()).then(|| wrap(&lead("advice"), Tint::Bad, &misled_words(&what, &advice), style))
    });
    lines.collect()
}

/// Returns the effects of absurd values.
fn warnings(settings: &[JudgedSetting], style: &Style) -> String {
    // Already covered by harmful advice.
    let is_said = |setting: &&JudgedSetting| {
        setting.misled_by().any(|advice| advice.verdict.kind == VerdictKind::Harmful)
    };
    let lines = settings.iter().filter(|setting| !is_said(setting)).filter_map(|setting| {
        let words = format!("{}: {}", assignment(setting)?, setting.warning.as_ref()?);
        Some(wrap(&lead("warning"), Tint::Bad, &words, style))
    });
    lines.collect()
}

/// `tcp_sack = 0`.
fn assignment(setting: &JudgedSetting) -> Option<String> {
    let value = setting.value.as_deref().ok()?;
    Some(format!("{} = {}", setting.setting.short, tame(value)))
}

fn lead(word: &str) -> String {
    format!("{word:<LEAD$}")
}

fn host_words(host: &HostSettings) -> String {
    let namespace = if host.is_first_namespace { "" } else { ", in a network namespace of its own" };
    let (name, kernel) = (tame(&host.host), tame(&host.kernel));
    format!("{name}, Linux {kernel}, {} of memory{namespace}", size(host.memory_bytes as f64))
}

fn available(host: &HostSettings) -> Option<String> {
    let available = host.value(Setting::TcpAvailableCongestionControl)?;
    let allowed = host.value(Setting::TcpAllowedCongestionControl);
    let without_privileges = match allowed {
        Some(allowed) if allowed.split_whitespace().count() < available.split_whitespace().count() => {
            format!("; without privileges {}", tame(allowed))
        }
        _ => String::new(),
    };
    Some(format!("congestion controls loaded: {}{without_privileges}", tame(available)))
}

fn table(rows: &[&JudgedSetting], host: &HostSettings, style: &Style) -> String {
    let column = |head, cell: &dyn Fn(&JudgedSetting) -> Cell| {
        Column::new(["", head], Align::Left, rows.iter().map(|row| cell(row)).collect())
    };
    let mut columns = vec![
        column("setting", &|row| Cell::tinted(row.setting.short, tint(row))),
        column("value", &|row| {
            Cell::plain(cut(
                &row.value.as_deref().map_or_else(|_| "-".to_owned(), |v| in_sizes(row, v)),
                VALUE,
                style,
            ))
        }),
        column("default", &|row| default_cell(row)),
        column("scope", &|row| Cell::plain(if row.is_of_namespace { "netns" } else { "machine" })),
    ];
    let room = style.columns().saturating_sub(total_width(&columns) + 2);
    if room >= LEAST_EFFECT {
        let mut effects = column("here", &|row| Cell::plain(effect(row, host).unwrap_or_default()));
        effects.narrow(room, style);
        columns.push(effects);
    }
    render(&columns, &[], style)
}

fn tint(row: &JudgedSetting) -> Tint {
    if row.misled_by().next().is_some() || row.warning.is_some() {
        Tint::Bad
    } else if row.is_changed() {
        Tint::Strong
    } else {
        Tint::None
    }
}

/// Returns `same`, or the relation to the default with the numbers that differ.
fn default_cell(row: &JudgedSetting) -> Cell {
    let (Some(default), Some(relation), Ok(value)) = (&row.default, row.relation, &row.value) else {
        return Cell::tinted("-", Tint::Faint);
    };
    if relation == Relation::Equal {
        return Cell::tinted("same", Tint::Faint);
    }
    let word = match relation {
        Relation::Above => "above ",
        Relation::Below => "below ",
        Relation::Equal | Relation::Differs => "",
    };
    let about = if default.basis == Basis::Memory { "about " } else { "" };
    Cell::plain(format!("{word}{about}{}", in_sizes(row, &differing(value, default, relation))))
}

/// Returns the numbers of a default from which a value differs, or the whole default if the relation has no direction.
fn differing(value: &str, default: &DefaultValue, relation: Relation) -> String {
    let (Some(numbers), Some(others)) = (numbers(value), numbers(&default.value)) else {
        return default.value.clone();
    };
    if relation == Relation::Differs || default.basis == Basis::Memory || numbers.len() != others.len() {
        return default.value.clone();
    }
    let differing = numbers.iter().zip(&others).filter(|(number, other)| number != other);
    differing.map(|(_, other)| other.to_string()).collect::<Vec<_>>().join(" ")
}

/// Returns byte counts in KiB and MiB if they are whole: `4K 128K 32M`.
fn in_sizes(row: &JudgedSetting, value: &str) -> String {
    let sized = |word: &str| match word.parse::<u64>() {
        Ok(bytes) if bytes >= 1 << 30 && bytes % (1 << 30) == 0 => format!("{}G", bytes >> 30),
        Ok(bytes) if bytes >= 1 << 20 && bytes % (1 << 20) == 0 => format!("{}M", bytes >> 20),
        Ok(bytes) if bytes >= 1 << 12 && bytes % (1 << 10) == 0 => format!("{}K", bytes >> 10),
        _ => tame(word),
    };
    let is_size = row.setting.unit == Unit::Bytes;
    let words = value.split_whitespace().map(|word| if is_size { sized(word) } else { tame(word) });
    words.collect::<Vec<_>>().join(" ")
}

fn device_words(device: &DeviceQueues, host: &HostSettings) -> String {
    let mut parts = vec![match device.speed_bps {
        Some(bps) => rate(bps as f64),
        None => "speed unknown".to_owned(),
    }];
    parts.extend(device.driver.as_deref().map(|driver| format!("driver {}", tame(driver))));
    parts.extend(device.mtu_bytes.map(|mtu| format!("MTU {mtu}")));
    parts.extend(device.qdisc.as_deref().map(|qdisc| qdisc_words(qdisc, host)));
    parts.extend(device.txqueuelen.map(|length| format!("txqueuelen {length}")));
    if let (Some(tx), Some(rx)) = (device.tx_queues, device.rx_queues) {
        parts.push(format!("{tx} TX and {rx} RX {}", if tx == 1 && rx == 1 { "queue" } else { "queues" }));
    }
    parts.push(device.rings.map_or_else(
        || "rings unknown".to_owned(),
        |rings| format!("rings TX {} of {}, RX {} of {}", rings.tx, rings.tx_most, rings.rx, rings.rx_most),
    ));
    let offloads = [("GRO", device.gro), ("GSO", device.gso), ("TSO", device.tso)];
    parts.extend(offloads.iter().filter_map(|(name, is_on)| {
        is_on.map(|is_on| format!("{name} {}", if is_on { "on" } else { "off" }))
    }));
    format!("{}: {}", tame(&device.name), parts.join(", "))
}

/// `qdisc fq (flows apart, paced; net.core.default_qdisc)`.
fn qdisc_words(qdisc: &str, host: &HostSettings) -> String {
    let does = discipline(qdisc).unwrap_or_default();
    let origin = match host.value(Setting::DefaultQdisc) {
        Some(default) if default == qdisc => "as default_qdisc",
        Some(_) if qdisc != "noqueue" => "not default_qdisc",
        _ => "",
    };
    let remarks: Vec<&str> = [does, origin].into_iter().filter(|remark| !remark.is_empty()).collect();
    let qdisc = tame(qdisc);
    if remarks.is_empty() {
        format!("qdisc {qdisc}")
    } else {
        format!("qdisc {qdisc} ({})", remarks.join("; "))
    }
}

/// `tcp_low_latency = 1, as the advice of A and B: stale since Linux 4.14: has no effect: ...`.
fn misled_words(what: &str, advice: &[&JudgedAdvice]) -> String {
    let mut sources: Vec<&str> = advice.iter().map(|advice| advice.advice.source.name).collect();
    sources.dedup();
    let verdict = advice.first().map(|advice| verdict(&advice.verdict)).unwrap_or_default();
    format!(
        "{what}, as {} {} it: {verdict}",
        sources.join(" and "),
        if sources.len() > 1 { "have" } else { "has" }
    )
}

/// Returns unreadable settings by reason; those missing from the kernel only with `all`.
fn unreadable_words(settings: &[JudgedSetting], all: bool) -> Vec<String> {
    let of = |is_meant: &dyn Fn(&Unreadable) -> bool| {
        let names =
            settings.iter().filter(|s| s.value.as_ref().is_err_and(is_meant)).map(|s| s.setting.short);
        names.collect::<Vec<_>>().join(", ")
    };
    let mut lines = Vec::new();
    let mut line = |names: String, why: &str| {
        if !names.is_empty() {
            lines.push(format!("{why}: {names}"));
        }
    };
    line(
        of(&|why| *why == Unreadable::NotOfNamespace),
        "of the whole machine, not shown in this network namespace",
    );
    line(of(&|why| *why == Unreadable::NoPermission), "no permission to read");
    line(of(&|why| matches!(why, Unreadable::Failed { .. })), "could not be read");
    if all {
        line(of(&|why| *why == Unreadable::NotOfKernel), "not of this kernel");
    }
    lines
}

#[cfg(test)]
mod tests {
    use bdp_model::tuning::host::HostSetting;
    use bdp_model::tuning::setting::find;

    use super::super::setting::setting_text;
    use super::*;

    fn host(kernel: &str, settings: &[(&str, Result<&str, Unreadable>)]) -> HostSettings {
        let read = settings.iter().map(|(name, value)| HostSetting {
            setting: find(name).unwrap(),
            value: value.clone().map(str::to_owned),
        });
        HostSettings {
            host: "ams1".to_owned(),
            kernel: kernel.to_owned(),
            memory_bytes: 16 << 30,
            is_first_namespace: false,
            settings: read.collect(),
            device: Some(DeviceQueues {
                name: "eth0".to_owned(),
                mtu_bytes: Some(1500),
                speed_bps: Some(10_000_000_000),
                driver: Some("ixgbe".to_owned()),
                qdisc: Some("fq_codel".to_owned()),
                txqueuelen: Some(10_000),
                tx_queues: Some(8),
                rx_queues: Some(8),
                gro: Some(true),
                tso: Some(false),
                ..DeviceQueues::default()
            }),
        }
    }

    #[test]
    fn a_table_of_what_matters_then_device_advice_and_what_is_not_shown() {
        let host = host(
            "6.1.0-18-amd64",
            &[
                ("tcp_rmem", Ok("4096 131072 16777216")),
                ("tcp_adv_win_scale", Ok("1")),
                ("tcp_mem", Err(Unreadable::NotOfNamespace)),
                ("tcp_available_congestion_control", Ok("reno cubic bbr")),
                ("tcp_allowed_congestion_control", Ok("reno cubic")),
                ("tcp_timestamps", Ok("0")),
                ("tcp_fack", Ok("1")),
                ("tcp_frto", Ok("2")),
                ("tcp_tw_recycle", Err(Unreadable::NotOfKernel)),
            ],
        );
        let expected = "\
host    ams1, Linux 6.1.0-18-amd64, 16.0 GiB of memory, in a network namespace of its own
        congestion controls loaded: reno cubic bbr; without privileges reno cubic

setting            value        default   scope  here
tcp_rmem           4K 128K 16M  above 6M  netns  window to 8.00 MiB
tcp_adv_win_scale  1            same      netns  50 % of a receive buffer is window
tcp_timestamps     0            below 1   netns  off
tcp_fack           1            above 0   netns  no effect since Linux 4.15

device  eth0: 10.0 Gbit/s, driver ixgbe, MTU 1500, qdisc fq_codel (flows apart, short queue),
        txqueuelen 10000, 8 TX and 8 RX queues, rings unknown, GRO on, TSO off
advice  tcp_timestamps = 0, as Mellanox sysctl tuning and blog advice have it: harmful: without
        timestamps a retransmission is not told from its original, and at 1 Gbit/s or more sequence
        numbers wrap without protection
advice  tcp_fack = 1, as blog advice has it: stale since Linux 4.15: has no effect: RACK replaced it
advice  txqueuelen 10000, as blog advice has it: harmful: with pfifo_fast a queue of 10,000 packets,
        which is 120 ms at 1 Gbit/s; fq and fq_codel do not read it
unread  of the whole machine, not shown in this network namespace: tcp_mem
more    1 more setting is as this kernel has it: --all; one in full: bdp tune show NAME
";
        assert_eq!(settings_text(&host, false, &Style::plain()), expected);
        let all = settings_text(&host, true, &Style::plain());
        assert!(
            all.contains("tcp_frto") && all.contains("unread  not of this kernel: tcp_tw_recycle"),
            "{all}"
        );
    }

    #[test]
    fn absurd_values_are_warned_of_whether_or_not_they_shape_a_path() {
        let host = host(
            "6.1",
            &[
                ("tcp_rmem", Ok("4096 131072 1073741824")),
                ("tcp_retries2", Ok("2")),
                ("tcp_syncookies", Ok("0")),
                ("tcp_fin_timeout", Ok("1")),
                ("tcp_frto", Ok("2")),
            ],
        );
        let text = settings_text(&host, false, &Style { width: 200, ..Style::plain() });
        for line in [
            "tcp_fin_timeout   1                below 60     netns  1 s\n",
            "warning tcp_rmem = 4096 131072 1073741824: one connection may hold 1 GiB",
            "warning tcp_retries2 = 2: a connection is given up after 2 timeouts in a row",
            "warning tcp_syncookies = 0: a flood of SYNs",
            "warning tcp_fin_timeout = 1: what the other end sends",
        ] {
            let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(squeezed(&text).contains(&squeezed(line)), "{line}: {text}");
        }
        let one = setting_text(&judged(&host)[2], &host, &Style::plain());
        assert!(one.contains("  warning  a flood of SYNs"), "{one}");
    }

    #[test]
    fn a_file_is_judged_by_what_it_would_set() {
        let host = host(
            "6.1",
            &[("tcp_syncookies", Ok("0")), ("tcp_rmem", Ok("4096 131072 6291456")), ("tcp_frto", Ok("2"))],
        );
        let file = SysctlFile {
            name: "99-tune.conf".to_owned(),
            settings: vec![Setting::TcpRmem, Setting::TcpSyncookies],
            unknown: vec!["vm.swappiness".to_owned()],
            unreadable: vec![7],
            not_of_kernel: vec![Setting::TcpTwRecycle],
        };
        let text = sysctl_file_text(&file, &host, &Style::plain());
        for part in [
            "file    99-tune.conf: 2 settings of TCP or of the queues before it, judged for ams1, Linux 6.1",
            "warning tcp_syncookies = 0: a flood of SYNs",
            "unread  not of this kernel: tcp_tw_recycle",
            "unread  not in the catalogue of settings: vm.swappiness",
            "unread  lines that set nothing: 7",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("tcp_frto") && !text.contains("eth0"), "{text}");
        let sound = SysctlFile { settings: vec![Setting::TcpRmem], ..SysctlFile::default() };
        assert!(sysctl_file_text(&sound, &host, &Style::plain()).contains("advice  no absurd value"));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let host = host("6.18", &[("tcp_ecn", Ok("2")), ("tcp_rmem", Ok("4096 131072 33554432"))]);
        for width in [60, 80, 120] {
            let style = Style { width, ..Style::plain() };
            let mut text = settings_text(&host, true, &style);
            judged(&host).iter().for_each(|setting| text.push_str(&setting_text(setting, &host, &style)));
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest.is_some_and(|longest| longest <= usize::from(width)), "{width}: {text}");
        }
    }

    #[test]
    fn one_setting_in_full() {
        let host =
            host("6.18", &[("tcp_low_latency", Ok("1")), ("tcp_mem", Err(Unreadable::NotOfNamespace))]);
        let settings = judged(&host);
        let text = setting_text(&settings[0], &host, &Style::plain());
        for wanted in [
            "net.ipv4.tcp_low_latency = 1\n",
            "  here     no effect since Linux 4.14\n",
            "  default  0; the value is above\n",
            "  scope    the whole machine\n",
            "  advice   1, followed here (blog advice): stale since Linux 4.14",
        ] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
        let text = setting_text(&settings[1], &host, &Style::plain());
        assert!(text.contains("can't be read: it is of the whole machine"), "{text}");
        assert!(text.contains("computed for 16.0 GiB of memory"), "{text}");
    }
}
