//! Effect of a setting's value on a host, in a few words.

use bdp_model::tuning::host::HostSettings;
use bdp_model::tuning::judged::JudgedSetting;
use bdp_model::tuning::setting::{Kind, Release, Setting, Unit, numbers};

use crate::number::{percent, size};

/// No upper limit, as written by the kernel.
const NO_LIMIT: i64 = u32::MAX as i64;
/// Default page size, bytes.
const PAGE: f64 = 4096.0;
/// Kernel since which the share of a receive buffer used as window is measured, starting at one half.
const SHARE_IS_MEASURED: Release = Release::new(6, 6);

/// Returns the effect of the value; `None` if it has none or the value speaks for itself.
pub(super) fn effect(judged: &JudgedSetting, host: &HostSettings) -> Option<String> {
    let value = judged.value.as_ref().ok()?;
    let setting = judged.setting;
    if !judged.is_read {
        let since = setting.end.map_or_else(String::new, |end| format!(" since Linux {}", end.since));
        return Some(format!("no effect{since}"));
    }
    if let Some(mode) = setting.mode(value) {
        return Some(mode.to_owned());
    }
    let read = numbers(value).unwrap_or_default();
    let last = read.last().copied().map(|n| n as f64);
    match setting {
        Setting::TcpRmem => Some(format!("window to {}", size(last? * window_share(host)?))),
        Setting::TcpAdvWinScale => {
            Some(format!("{} of a receive buffer is window", percent(window_share(host)?)))
        }
        Setting::TcpWmem => Some(format!("{} unacknowledged", size(last?))),
        Setting::TcpMem => {
            let bytes = last? * PAGE;
            let share = percent(bytes / host.memory_bytes.max(1) as f64);
            Some(format!("{}, {share} of memory", size(bytes)))
        }
        Setting::RmemMax => Some(format!("SO_RCVBUF to {}", size(last?))),
        Setting::WmemMax => Some(format!("SO_SNDBUF to {}", size(last?))),
        Setting::TcpFastopen => Some(fast_open(*read.first()?)),
        Setting::TcpRecovery => Some(recovery(*read.first()?)),
        Setting::DefaultQdisc => discipline(value).map(str::to_owned),
        Setting::TcpCongestionControl => congestion(value).map(str::to_owned),
        Setting::BusyPoll | Setting::BusyRead if read == [0] => Some("off".to_owned()),
        _ if setting.kind == Kind::Number => in_unit(setting.unit, *read.first()?),
        _ => None,
    }
}

/// Returns the share of a receive buffer that becomes window at the start of a connection.
fn window_share(host: &HostSettings) -> Option<f64> {
    if host.release().is_none_or(|kernel| kernel >= SHARE_IS_MEASURED) {
        return Some(0.5);
    }
    let scale: i32 = host.value(Setting::TcpAdvWinScale)?.parse().ok()?;
    Some(if scale > 0 { 1.0 - 0.5f64.powi(scale) } else { 0.5f64.powi(-scale) })
}

fn in_unit(unit: Unit, number: i64) -> Option<String> {
    match unit {
        Unit::Bytes if number == NO_LIMIT || number == -1 => Some("no limit".to_owned()),
        Unit::Bytes if number < 4096 => None,
        Unit::Bytes => Some(size(number as f64)),
        Unit::Microseconds if number % 1000 == 0 && number > 0 => Some(format!("{} ms", number / 1000)),
        Unit::Microseconds => Some(format!("{number} us")),
        Unit::Seconds => Some(format!("{number} s")),
        Unit::Percent => Some(format!("{number} %")),
        Unit::Segments => Some(format!("{number} segments")),
        Unit::Packets => Some(format!("{number} packets")),
        Unit::Connections => Some(format!("{number} connections")),
        Unit::Pages | Unit::None => None,
    }
}

fn fast_open(bits: i64) -> String {
    let ends: Vec<&str> = [(1, "client"), (2, "server")]
        .iter()
        .filter(|(bit, _)| bits & bit != 0)
        .map(|(_, end)| *end)
        .collect();
    if ends.is_empty() { "off".to_owned() } else { ends.join(" and ") }
}

fn recovery(bits: i64) -> String {
    let parts: Vec<&str> = [(1, "RACK"), (2, "static window"), (4, "no duplicate threshold")]
        .iter()
        .filter(|(bit, _)| bits & bit != 0)
        .map(|(_, part)| *part)
        .collect();
    if parts.is_empty() { "RACK off".to_owned() } else { parts.join(", ") }
}

/// Returns what a queueing discipline does, in a few words.
pub(super) fn discipline(name: &str) -> Option<&'static str> {
    Some(match name {
        "fq" => "flows apart, paced",
        "fq_codel" => "flows apart, short queue",
        "cake" => "flows apart, shaped",
        "fq_pie" => "flows apart, short queue",
        "pfifo_fast" | "pfifo" | "bfifo" => "first in, first out",
        "codel" | "pie" => "short queue",
        "sfq" => "flows apart",
        "noqueue" => "no queue",
        _ => return None,
    })
}

fn congestion(name: &str) -> Option<&'static str> {
    Some(match name {
        "cubic" | "reno" | "htcp" | "bic" | "highspeed" | "scalable" | "westwood" => {
            "slows down at each loss"
        }
        "bbr" => "by rate and round trip",
        "vegas" | "cdg" | "lp" => "slows down as delay grows",
        "dctcp" => "by ECN marks, in data centres",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use bdp_model::tuning::host::HostSetting;
    use bdp_model::tuning::judged::judged;
    use bdp_model::tuning::setting::find;

    use super::*;

    fn of(kernel: &str, settings: &[(&'static str, &str)]) -> Vec<Option<String>> {
        let read = settings.iter().map(|(name, value)| HostSetting {
            setting: find(name).unwrap(),
            value: Ok((*value).to_owned()),
        });
        let host = HostSettings {
            kernel: kernel.to_owned(),
            memory_bytes: 16 << 30,
            settings: read.collect(),
            ..HostSettings::default()
        };
        judged(&host).iter().map(|setting| effect(setting, &host)).collect()
    }

    #[test]
    fn the_window_is_the_share_of_the_buffer_that_the_kernel_gives_it() {
        let rmem = ("tcp_rmem", "4096 131072 6291456");
        let window = |kernel, scale| of(kernel, &[rmem, ("tcp_adv_win_scale", scale)])[0].clone().unwrap();
        assert_eq!(window("6.1", "1"), "window to 3.00 MiB");
        assert_eq!(window("6.1", "2"), "window to 4.50 MiB");
        assert_eq!(window("6.1", "-2"), "window to 1.50 MiB");
        assert_eq!(window("6.6", "-2"), "window to 3.00 MiB");
    }

    #[test]
    fn values_are_put_into_words() {
        for (name, value, words) in [
            ("tcp_timestamps", "0", Some("off")),
            ("tcp_ecn", "2", Some("accepted where the other end requests it")),
            ("tcp_notsent_lowat", "4294967295", Some("no limit")),
            ("tcp_notsent_lowat", "-1", Some("no limit")),
            ("tcp_mem", "196608 262144 393216", Some("1.50 GiB, 9.4 % of memory")),
            ("rmem_max", "212992", Some("SO_RCVBUF to 208 KiB")),
            ("tcp_low_latency", "1", Some("no effect since Linux 4.14")),
            ("tcp_fastopen", "3", Some("client and server")),
            ("tcp_fastopen", "0", Some("off")),
            ("busy_poll", "50", Some("50 us")),
            ("tcp_congestion_control", "of_my_own", None),
            ("tcp_app_win", "31", None),
        ] {
            assert_eq!(of("6.1", &[(name, value)])[0].as_deref(), words, "{name} = {value}");
        }
    }
}
