//! Values that harm a host on any path, each with its effect. Values that are merely unusual are not included.

use crate::units::{ByteCount, Nanos, Rate};

/// Largest plausible TCP receive or send buffer: as a window it fills 40 Gbit/s over 200 ms.
pub(super) const LARGEST_BUFFER: i64 = 1 << 30;
/// Smallest useful buffer: with less no connection fills 100 Mbit/s over 20 ms.
const SMALLEST_BUFFER: i64 = 256 << 10;
/// Largest plausible initial buffer, allocated to each connection from its start.
const LARGEST_FIRST_BUFFER: i64 = 8 << 20;
/// Minimum time that a connection must survive (RFC 1122, section 4.2.3.5).
const LEAST_R2: Nanos = Nanos::secs(100);
/// First retransmission timeout on a short round trip (Linux, `TCP_RTO_MIN`), and of a SYN.
const SHORTEST_RTO_MS: u64 = 200;
const SYN_RTO_MS: u64 = 1000;
const LONGEST_RTO_MS: u64 = 120_000;
/// Size of a page, bytes.
const PAGE: i64 = 4096;

/// Which values of a setting do harm.
#[derive(Debug, Clone, Copy)]
pub(super) enum Harm {
    /// The first that applies, with its effect as a clause: `{n}` is the number, `{size}` the same in bytes.
    Of(&'static [(When, &'static str)]),
    /// As computed from the numbers and the machine's memory.
    Computed(fn(&[i64], u64) -> Option<String>),
}

/// Numbers that do harm.
#[derive(Debug, Clone, Copy)]
pub(super) enum When {
    Is(i64),
    Below(i64),
    AtLeast(i64),
    /// Between these two, or one of them.
    Within(i64, i64),
}

impl When {
    fn applies(self, n: i64) -> bool {
        match self {
            Self::Is(one) => n == one,
            Self::Below(bound) => n < bound,
            Self::AtLeast(bound) => n >= bound,
            Self::Within(least, most) => (least..=most).contains(&n),
        }
    }
}

impl Harm {
    pub(super) fn of(self, all: &[i64], memory_bytes: u64) -> Option<String> {
        match self {
            Self::Computed(harm) => harm(all, memory_bytes),
            Self::Of(harms) => {
                let n = *all.first()?;
                let (_, text) = harms.iter().find(|(when, _)| when.applies(n))?;
                Some(text.replace("{n}", &n.to_string()).replace("{size}", &size(n)))
            }
        }
    }
}

fn size(bytes: i64) -> String {
    ByteCount::bytes(u64::try_from(bytes).unwrap_or(0)).to_string()
}

/// Of `tcp_rmem` and `tcp_wmem`.
pub(super) fn buffer(all: &[i64], memory_bytes: u64) -> Option<String> {
    let &[_, first, last] = all else { return None };
    if last >= LARGEST_BUFFER {
        let share = last as f64 / memory_bytes.max(1) as f64 * 100.0;
        let size = size(last);
        Some(format!(
            "one connection may hold {size}, {share:.0} % of this machine's memory; a few exhaust it"
        ))
    } else if last < SMALLEST_BUFFER {
        let rate = Rate::bps(u64::try_from(last).unwrap_or(0) * 8 * 50);
        Some(format!("no connection has more than {} in flight: over 20 ms that is {rate}", size(last)))
    } else if first >= LARGEST_FIRST_BUFFER {
        Some(format!("every connection begins with {}, and autotuning does not reduce it", size(first)))
    } else {
        None
    }
}

/// Of `tcp_mem`.
pub(super) fn all_buffers(all: &[i64], memory_bytes: u64) -> Option<String> {
    let bytes = all.last()?.saturating_mul(PAGE);
    if bytes as u64 > memory_bytes {
        Some(
            "TCP may use more memory than this machine has: the unit is in pages, and not in bytes"
                .to_owned(),
        )
    } else if bytes < 16 << 20 {
        Some(format!("all TCP connections together may hold {}; the unit is pages", size(bytes)))
    } else {
        None
    }
}

/// Of `tcp_retries2`.
pub(super) fn retries(all: &[i64], _: u64) -> Option<String> {
    let n = *all.first()?;
    let after = gives_up_after(n, SHORTEST_RTO_MS);
    if after < LEAST_R2 {
        Some(format!(
            "a connection is given up after {n} timeouts in a row, which is about {after} if round trips are short; \
             RFC 1122 requires 100 s at least, which takes 8"
        ))
    } else {
        (n > 30).then(|| format!("a dead connection is kept for at least {after}"))
    }
}

/// Of `tcp_syn_retries` and `tcp_synack_retries`.
pub(super) fn syn_retries(all: &[i64], _: u64) -> Option<String> {
    let n = *all.first()?;
    let after = gives_up_after(n, SYN_RTO_MS);
    if n < 2 {
        let lost = if n == 1 { "two packets in a row" } else { "one packet" };
        Some(format!("opening a connection is given up after {after}, and after the loss of {lost}"))
    } else {
        (n > 10).then(|| format!("opening a connection is tried for {after}"))
    }
}

/// Returns the time until this many timeouts in a row have passed, each twice as long as the one before.
fn gives_up_after(retries: i64, first_ms: u64) -> Nanos {
    let retries = u32::try_from(retries.clamp(0, 255)).unwrap_or(0);
    let waits = (0..=retries).map(|n| first_ms.saturating_mul(1u64.checked_shl(n).unwrap_or(u64::MAX)));
    Nanos::millis(waits.map(|wait| wait.min(LONGEST_RTO_MS)).sum())
}
