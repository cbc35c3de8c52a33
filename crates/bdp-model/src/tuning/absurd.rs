//! Values that harm a host on any path, each with its effect. Values that are merely unusual are not included.

use crate::units::{ByteCount, Nanos, Rate};

use super::setting::{Kind, Setting, numbers};

/// Largest plausible TCP receive or send buffer: as a window it fills 40 Gbit/s over 200 ms.
const LARGEST_BUFFER: i64 = 1 << 30;
/// Smallest useful buffer: with less no connection fills 100 Mbit/s over 20 ms.
const SMALLEST_BUFFER: i64 = 256 << 10;
/// Largest plausible initial buffer, allocated to each connection from its start.
const LARGEST_FIRST_BUFFER: i64 = 8 << 20;
/// Largest plausible default buffer of a non-TCP socket.
const LARGEST_DEFAULT: i64 = 16 << 20;
/// Smallest plausible ceiling for buffers that programs request.
const SMALLEST_MOST: i64 = 64 << 10;
/// Minimum time that a connection must survive (RFC 1122, section 4.2.3.5).
const LEAST_R2: Nanos = Nanos::secs(100);
/// First retransmission timeout on a short round trip (Linux, `TCP_RTO_MIN`), and of a SYN.
const SHORTEST_RTO_MS: u64 = 200;
const SYN_RTO_MS: u64 = 1000;
const LONGEST_RTO_MS: u64 = 120_000;
/// Size of a page, bytes.
const PAGE: i64 = 4096;

/// Returns the harm that a value does, as a clause; `None` if it is plausible. `memory_bytes` is the machine's memory.
pub fn why_absurd(setting: &Setting, value: &str, memory_bytes: u64) -> Option<String> {
    if let Some(why) = why_malformed(setting, value) {
        return Some(why);
    }
    let all = numbers(value).unwrap_or_default();
    let name = setting.name.rsplit('.').next().unwrap_or_default();
    let first = *all.first()?;
    of_memory(name, &all, memory_bytes)
        .or_else(|| of_connection(name, first))
        .or_else(|| of_queue(name, first))
}

/// Checks buffers and memory limits.
fn of_memory(name: &str, all: &[i64], memory_bytes: u64) -> Option<String> {
    let (&first, &last) = (all.first()?, all.last()?);
    let size = |bytes: i64| ByteCount::bytes(u64::try_from(bytes).unwrap_or(0)).to_string();
    Some(match (name, first) {
        ("tcp_rmem" | "tcp_wmem", _) if last >= LARGEST_BUFFER => {
            let share = last as f64 / memory_bytes.max(1) as f64 * 100.0;
            format!(
                "one connection may hold {}, {share:.0} % of this machine's memory; a few exhaust it",
                size(last)
            )
        }
        ("tcp_rmem" | "tcp_wmem", _) if last < SMALLEST_BUFFER => {
            let rate = Rate::bps(u64::try_from(last).unwrap_or(0) * 8 * 50);
            format!("no connection has more than {} in flight: over 20 ms that is {rate}", size(last))
        }
        ("tcp_rmem" | "tcp_wmem", _) if all[1] >= LARGEST_FIRST_BUFFER => {
            format!("every connection begins with {}, and autotuning does not reduce it", size(all[1]))
        }
        ("tcp_mem", _) if last.saturating_mul(PAGE) as u64 > memory_bytes => {
            "TCP may use more memory than this machine has: the unit is in pages, and not in bytes".to_owned()
        }
        ("tcp_mem", _) if last.saturating_mul(PAGE) < 16 << 20 => {
            format!(
                "all TCP connections together may hold {}; the unit is pages",
                size(last.saturating_mul(PAGE))
            )
        }
        ("rmem_max" | "wmem_max", _) if last >= LARGEST_BUFFER => {
            format!("any program may hold {} with one socket", size(last))
        }
        ("rmem_max" | "wmem_max", _) if last < SMALLEST_MOST => {
            format!(
                "a program that requests a buffer gets at most {}, too little for UDP at any rate",
                size(last)
            )
        }
        ("rmem_default" | "wmem_default", _) if last >= LARGEST_DEFAULT => {
            format!("every UDP socket may hold {}", size(last))
        }
        ("tcp_moderate_rcvbuf", 0) => {
            "receive windows stay at the second number of tcp_rmem, whatever the path needs".to_owned()
        }
        ("tcp_notsent_lowat", n) if (0..4096).contains(&n) => {
            format!("a program may write {n} bytes ahead and is woken for each segment")
        }
        ("tcp_limit_output_bytes", n) if n < 4096 => {
            format!("{n} bytes of a connection may wait for the device, less than three segments")
        }
        ("optmem_max", n) if n < 4096 => format!("only {n} bytes of options and control messages per socket"),
        _ => return None,
    })
}

/// Checks how a connection opens, recovers and ends.
fn of_connection(name: &str, first: i64) -> Option<String> {
    Some(match (name, first) {
        ("tcp_window_scaling", 0) => "no window is above 64 KiB: over 20 ms that is 26 Mbit/s".to_owned(),
        ("tcp_sack", 0) => "recovery repairs one lost segment per round trip".to_owned(),
        ("tcp_retries2", n) if gives_up_after(n, SHORTEST_RTO_MS) < LEAST_R2 => format!(
            "a connection is given up after {n} timeouts in a row, which is about {} if round trips are short; RFC 1122 requires 100 s at least, which takes 8",
            gives_up_after(n, SHORTEST_RTO_MS)
        ),
        ("tcp_retries2", n) if n > 30 => {
            format!("a dead connection is kept for at least {}", gives_up_after(n, SHORTEST_RTO_MS))
        }
        ("tcp_syn_retries" | "tcp_synack_retries", n) if n < 2 => format!(
            "opening a connection is given up after {}, and after the loss of {}",
            gives_up_after(n, SYN_RTO_MS),
            if n == 1 { "two packets in a row" } else { "one packet" }
        ),
        ("tcp_syn_retries" | "tcp_synack_retries", n) if n > 10 => {
            format!("opening a connection is tried for {}", gives_up_after(n, SYN_RTO_MS))
        }
        ("tcp_fin_timeout", n) if n < 5 => {
            format!("what the other end sends later than {n} s after a program closed is answered by a reset")
        }
        ("tcp_fin_timeout", n) if n > 600 => format!("connections that were closed are kept for {n} s"),
        ("tcp_reordering", n) if n < 3 => {
            format!("{n} duplicate acknowledgements count as a loss: every reordering is one")
        }
        ("tcp_reordering", n) if n > 300 => {
            format!("a loss is detected only after {n} duplicate acknowledgements")
        }
        ("tcp_rto_min_us", n) if n < 1000 => {
            format!("a timeout of {n} us takes every delayed acknowledgement (40 ms) for a loss")
        }
        ("tcp_base_mss", n) if n < 256 => format!("probing of the MTU falls back to segments of {n} bytes"),
        _ => return None,
    })
}

/// Checks queues of packets and of opening connections.
fn of_queue(name: &str, first: i64) -> Option<String> {
    Some(match (name, first) {
        ("tcp_syncookies", 0) => {
            "a flood of SYNs fills a listener's queue and locks out other clients".to_owned()
        }
        ("tcp_syncookies", 2) => {
            "every connection uses a SYN cookie, which is for tests: without timestamps it has neither SACK nor window scaling"
                .to_owned()
        }
        ("tcp_abort_on_overflow", 1) => {
            "a burst of connections is reset, not delayed, if a listener's queue is full".to_owned()
        }
        ("somaxconn", n) if n < 128 => format!("of a burst of connections {n} wait for a listener; the others are dropped"),
        ("tcp_max_syn_backlog", n) if n < 64 => format!("{n} half-open connections fill a listener's queue"),
        ("tcp_max_syn_backlog" | "somaxconn", n) if n > 1 << 20 => {
            "a stuck listener keeps a million connections waiting".to_owned()
        }
        ("netdev_max_backlog", n) if n < 100 => format!("bursts of more than {n} packets are dropped before TCP sees them"),
        ("netdev_max_backlog", n) if n > 1_000_000 => {
            "a queue of more than a million packets delays them by a second or more".to_owned()
        }
        ("netdev_budget", n) if n < 16 => format!("{n} packets a round: the softirq spends its time starting rounds"),
        ("busy_poll" | "busy_read", n) if n > 1000 => {
            format!("each read keeps a processor busy for {n} us")
        }
        _ => return None,
    })
}

/// Returns what is wrong with the form of a value.
fn why_malformed(setting: &Setting, value: &str) -> Option<String> {
    let all = numbers(value);
    match (setting.kind, all.as_deref()) {
        (Kind::Name | Kind::Names, _) => None,
        (Kind::Triple, Some(&[least, first, most])) if least > first || first > most => {
            Some("its three numbers do not ascend".to_owned())
        }
        (Kind::Triple, Some([_, _, _])) | (Kind::Number | Kind::Flag, Some([_])) => None,
        (Kind::Triple, _) => Some("not a value of this setting: expected three numbers".to_owned()),
        (Kind::Number | Kind::Flag, _) => Some("not a value of this setting: expected a number".to_owned()),
    }
}

/// Returns the time until this many timeouts in a row have passed, each twice as long as the one before.
fn gives_up_after(retries: i64, first_ms: u64) -> Nanos {
    let retries = u32::try_from(retries.clamp(0, 255)).unwrap_or(0);
    let waits = (0..=retries).map(|n| first_ms.saturating_mul(1u64.checked_shl(n).unwrap_or(u64::MAX)));
    Nanos::millis(waits.map(|wait| wait.min(LONGEST_RTO_MS)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::setting::{Release, all, find};

    const MEMORY: u64 = 16 << 30;

    fn why(name: &str, value: &str) -> Option<String> {
        why_absurd(find(name).unwrap(), value, MEMORY)
    }

    #[test]
    fn absurd_values_are_named_with_what_they_do() {
        for (name, value, words) in [
            ("tcp_syncookies", "0", "a flood of SYNs"),
            ("tcp_rmem", "4096 131072 1073741824", "may hold 1 GiB, 6 % of this machine's memory"),
            ("tcp_wmem", "4096 16384 65536", "in flight: over 20 ms"),
            ("tcp_rmem", "4096 16777216 33554432", "begins with"),
            ("tcp_rmem", "6291456 131072 4096", "do not ascend"),
            ("tcp_rmem", "4096 87380", "expected three numbers"),
            ("tcp_rmem", "4M", "expected three numbers"),
            ("tcp_mem", "16777216 16777216 16777216", "in pages, and not in bytes"),
            ("tcp_retries2", "2", "after 2 timeouts in a row, which is about 1.4"),
            ("tcp_fin_timeout", "1", "later than 1 s"),
            ("tcp_syn_retries", "0", "the loss of one packet"),
            ("tcp_window_scaling", "0", "64 KiB"),
            ("tcp_sack", "off", "expected a number"),
            ("somaxconn", "5", "5 wait for a listener"),
        ] {
            let said = why(name, value).unwrap_or_default();
            assert!(said.contains(words), "{name} = {value}: {said}");
        }
    }

    #[test]
    fn what_is_merely_unusual_is_not_absurd() {
        for (name, value) in [
            ("tcp_rmem", "4096 131072 536870912"),
            ("tcp_wmem", "4096 65536 16777216"),
            ("tcp_retries2", "8"),
            ("tcp_fin_timeout", "10"),
            ("tcp_notsent_lowat", "131072"),
            ("tcp_notsent_lowat", "-1"),
            ("tcp_congestion_control", "bbr"),
            ("rmem_max", "536870912"),
        ] {
            assert_eq!(why(name, value), None, "{name} = {value}");
        }
    }

    #[test]
    fn no_kernel_begins_with_an_absurd_value() {
        for kernel in [Release::OLDEST, Release::new(4, 19), Release::new(6, 1), Release::new(6, 18)] {
            for setting in all() {
                // On a machine of 128 MiB the defaults of tcp_mem and of the SYN queue are as small as this.
                let Some(default) = setting.default_on(kernel, MEMORY) else { continue };
                let said = why_absurd(setting, &default.value, MEMORY);
                assert_eq!(said, None, "{} = {} on {kernel}", setting.name, default.value);
            }
        }
    }
}
