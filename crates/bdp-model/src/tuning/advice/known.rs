//! Published advice, by source.

use super::verdict::{Verdict, VerdictKind};
use crate::tuning::setting::{Relation, Release, Setting, numbers};

/// A publisher of advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// The name that readers know it by.
    pub name: &'static str,
    /// Where it is published.
    pub place: &'static str,
}

/// One setting that a source recommends.
#[derive(Debug, Clone, Copy)]
pub struct KnownAdvice {
    /// The source.
    pub source: Source,
    /// The sysctl; None for `txqueuelen` of a device.
    pub setting: Option<Setting>,
    /// The value, as the source writes it.
    pub value: &'static str,
    follows: Follows,
    /// First kernel of each verdict, oldest first.
    verdicts: &'static [(Release, VerdictKind, &'static str)],
}

/// The values that count as following advice.
#[derive(Debug, Clone, Copy)]
enum Follows {
    /// This value alone.
    Exactly,
    /// Values whose number at this position is at least this large.
    From(usize, i64),
    /// Values whose last number, in pages, exceeds the machine's memory.
    BeyondMemory,
}

impl KnownAdvice {
    /// Returns what it is worth on a kernel of this release.
    pub fn verdict_on(&self, kernel: Release) -> Verdict {
        let held = self.verdicts.iter().rev().find(|(since, ..)| kernel >= *since);
        let (since, kind, why) = *held.unwrap_or(&self.verdicts[0]);
        Verdict { kind, since: (since > Release::OLDEST).then_some(since), why }
    }

    /// Whether a value follows the advice on a machine with this much memory.
    pub fn is_followed_by(&self, value: &str, memory_bytes: u64) -> bool {
        match self.follows {
            Follows::Exactly => Relation::of(value, self.value) == Relation::Equal,
            Follows::From(place, least) => {
                numbers(value).and_then(|numbers| numbers.get(place).copied()).is_some_and(|n| n >= least)
            }
            Follows::BeyondMemory => {
                let pages = i64::try_from(memory_bytes / 4096).unwrap_or(i64::MAX);
                numbers(value).and_then(|numbers| numbers.last().copied()).is_some_and(|n| n > pages)
            }
        }
    }

    const fn new(
        source: Source,
        setting: Setting,
        value: &'static str,
        verdicts: &'static [(Release, VerdictKind, &'static str)],
    ) -> Self {
        Self { source, setting: Some(setting), value, follows: Follows::Exactly, verdicts }
    }

    const fn from(mut self, place: usize, least: i64) -> Self {
        self.follows = Follows::From(place, least);
        self
    }

    const fn beyond_memory(mut self) -> Self {
        self.follows = Follows::BeyondMemory;
        self
    }
}

/// Returns all advice, by source.
pub fn known() -> impl Iterator<Item = &'static KnownAdvice> {
    [ESNET, TUNED, SYSTEMD, MELLANOX, CLOUDFLARE, KLAVER, BLOGS].into_iter().flatten()
}

/// Returns the advice on a setting; None for `txqueuelen` of a device.
pub fn about(setting: Option<Setting>) -> impl Iterator<Item = &'static KnownAdvice> {
    known().filter(move |advice| advice.setting == setting)
}

const OLDEST: Release = Release::OLDEST;

const fn release(major: u16, minor: u16) -> Release {
    Release::new(major, minor)
}

use Setting::*;
use VerdictKind::{Current, Default, Harmful, Stale};

const ESNET_10G: Source =
    Source { name: "ESnet fasterdata for 10G", place: "fasterdata.es.net/host-tuning/linux" };
const ESNET_100G: Source =
    Source { name: "ESnet fasterdata for 100G", place: "fasterdata.es.net/host-tuning/linux/100g-tuning" };
const TUNED_THROUGHPUT: Source =
    Source { name: "TuneD network-throughput", place: "profiles/network-throughput/tuned.conf of TuneD" };
const TUNED_LATENCY: Source =
    Source { name: "TuneD network-latency", place: "profiles/network-latency/tuned.conf of TuneD" };
const OF_SYSTEMD: Source = Source { name: "systemd", place: "sysctl.d/50-default.conf of systemd" };
const OF_MELLANOX: Source =
    Source { name: "Mellanox sysctl tuning", place: "community.mellanox.com/docs/DOC-2821" };
const OF_CLOUDFLARE: Source = Source {
    name: "Cloudflare's blog on WAN throughput",
    place: "blog.cloudflare.com/optimizing-tcp-for-high-throughput-and-low-latency",
};
const OF_KLAVER: Source =
    Source { name: "Michiel Klaver's sysctl.conf", place: "a file that many server guides copy" };
const OF_BLOGS: Source = Source { name: "blog advice", place: "many pages, one copied from another" };

/// Verdicts on ceilings for buffers that programs request.
const FOR_ASKING: &[(Release, VerdictKind, &str)] =
    &[(OLDEST, Current, "only for programs that request a buffer (SO_RCVBUF, SO_SNDBUF, iperf3 -w)")];

const UP_TO_4_MIB: &[(Release, VerdictKind, &str)] =
    &[FOR_ASKING[0], (release(6, 18), Default, "the kernel's default")];

const LARGE_WMEM: &[(Release, VerdictKind, &str)] =
    &[(OLDEST, Current, "fills paths with a BDP above 4 MiB")];

const PROBING: &[(Release, VerdictKind, &str)] =
    &[(OLDEST, Current, "helps if routers drop large packets without ICMP; no cost otherwise")];

const FAIR_QUEUE: &[(Release, VerdictKind, &str)] = &[
    (OLDEST, Current, "BBR and pacing need it"),
    (
        release(4, 13),
        Current,
        "isolates flows and paces them cheaply; since Linux 4.13 TCP also paces without it",
    ),
];

const ESNET: &[KnownAdvice] = &[
    KnownAdvice::new(ESNET_10G, RmemMax, "67108864", FOR_ASKING),
    KnownAdvice::new(ESNET_10G, WmemMax, "67108864", FOR_ASKING),
    KnownAdvice::new(
        ESNET_10G,
        TcpRmem,
        "4096 87380 33554432",
        &[
            (OLDEST, Current, "enough for a BDP of 16 MiB"),
            (
                release(4, 20),
                Stale,
                "its second number is below the default of 131072; the third still helps",
            ),
            (
                release(6, 16),
                Stale,
                "its maximum is the kernel's default, and its second number is below the default",
            ),
        ],
    ),
    KnownAdvice::new(ESNET_10G, TcpWmem, "4096 65536 33554432", LARGE_WMEM),
    KnownAdvice::new(
        ESNET_10G,
        TcpCongestionControl,
        "htcp",
        &[
            (OLDEST, Current, "recovers faster than Reno on long paths"),
            (release(4, 9), Stale, "backs off at each loss as cubic does; BBR, since Linux 4.9, does not"),
        ],
    ),
    KnownAdvice::new(ESNET_10G, TcpMtuProbing, "1", PROBING),
    KnownAdvice::new(ESNET_10G, DefaultQdisc, "fq", FAIR_QUEUE),
    KnownAdvice::new(ESNET_100G, RmemMax, "2147483647", FOR_ASKING),
    KnownAdvice::new(ESNET_100G, WmemMax, "2147483647", FOR_ASKING),
    KnownAdvice::new(
        ESNET_100G,
        TcpRmem,
        "4096 131072 1073741824",
        &[(OLDEST, Current, "enough for 100 Gbit/s at 40 ms; one connection may use 1 GiB of memory")],
    ),
    KnownAdvice::new(ESNET_100G, TcpWmem, "4096 16384 1073741824", LARGE_WMEM),
    KnownAdvice::new(
        ESNET_100G,
        OptmemMax,
        "1048576",
        &[(OLDEST, Current, "for senders that use MSG_ZEROCOPY, such as iperf3 -Z")],
    ),
    KnownAdvice::new(
        ESNET_100G,
        TcpNoMetricsSave,
        "1",
        &[(OLDEST, Current, "keeps measurements independent of each other; servers lose performance")],
    ),
];

const LARGEST_OF_16_MIB: &[(Release, VerdictKind, &str)] = &[
    (OLDEST, Current, "enough for a BDP of 8 MiB"),
    (release(6, 16), Harmful, "lowers the maximum, 32 MiB by default with 4 GiB of memory or more"),
];

const BUSY: &[(Release, VerdictKind, &str)] =
    &[(OLDEST, Current, "saves some microseconds of latency; keeps a processor busy")];

const TUNED: &[KnownAdvice] = &[
    KnownAdvice::new(TUNED_THROUGHPUT, TcpRmem, "4096 131072 16777216", LARGEST_OF_16_MIB),
    KnownAdvice::new(
        TUNED_THROUGHPUT,
        TcpRmem,
        "4096 87380 16777216",
        &[
            (OLDEST, Current, "enough for a BDP of 8 MiB"),
            (
                release(4, 20),
                Stale,
                "its second number is below the default of 131072; the third still helps",
            ),
            (release(6, 16), Harmful, "lowers the maximum, 32 MiB by default with 4 GiB of memory or more"),
        ],
    ),
    KnownAdvice::new(TUNED_THROUGHPUT, TcpWmem, "4096 16384 16777216", LARGE_WMEM),
    KnownAdvice::new(TUNED_LATENCY, BusyRead, "50", BUSY),
    KnownAdvice::new(TUNED_LATENCY, BusyPoll, "50", BUSY),
    KnownAdvice::new(
        TUNED_LATENCY,
        TcpFastopen,
        "3",
        &[(OLDEST, Current, "for programs that use TCP Fast Open; some middleboxes drop a SYN with data")],
    ),
];

const SYSTEMD: &[KnownAdvice] = &[KnownAdvice::new(
    OF_SYSTEMD,
    DefaultQdisc,
    "fq_codel",
    &[(OLDEST, Current, "isolates flows and keeps this host's queue short")],
)];

const NOT_TCPS: &[(Release, VerdictKind, &str)] = &[(
    OLDEST,
    Harmful,
    "TCP ignores it; each UDP socket gets it and then queues seconds of data instead of dropping",
)];

const RARE_BACKLOG: &[(Release, VerdictKind, &str)] =
    &[(OLDEST, Stale, "network cards with NAPI do not use this queue; only RPS, tunnels and loopback do")];

const NO_TIMESTAMPS: &[(Release, VerdictKind, &str)] = &[(
    OLDEST,
    Harmful,
    "without timestamps a retransmission is not told from its original, and at 1 Gbit/s or more sequence numbers wrap \
     without protection",
)];

const LOW_LATENCY: &[(Release, VerdictKind, &str)] = &[
    (OLDEST, Current, "disables the prequeue, which costs throughput"),
    (release(4, 14), Stale, "has no effect: the prequeue was removed"),
];

const MELLANOX: &[KnownAdvice] = &[
    KnownAdvice::new(OF_MELLANOX, TcpTimestamps, "0", NO_TIMESTAMPS),
    KnownAdvice::new(OF_MELLANOX, TcpSack, "1", BY_ITSELF),
    KnownAdvice::new(OF_MELLANOX, TcpLowLatency, "1", LOW_LATENCY),
    KnownAdvice::new(
        OF_MELLANOX,
        TcpAdvWinScale,
        "1",
        &[(OLDEST, Default, "half of each receive buffer is window"), (release(6, 6), Stale, NOT_OF_USE)],
    ),
    KnownAdvice::new(OF_MELLANOX, NetdevMaxBacklog, "250000", RARE_BACKLOG).from(0, 100_000),
    KnownAdvice::new(OF_MELLANOX, RmemDefault, "4194304", NOT_TCPS),
    KnownAdvice::new(OF_MELLANOX, WmemDefault, "4194304", NOT_TCPS),
    KnownAdvice::new(OF_MELLANOX, RmemMax, "4194304", UP_TO_4_MIB),
    KnownAdvice::new(OF_MELLANOX, WmemMax, "4194304", UP_TO_4_MIB),
    KnownAdvice::new(
        OF_MELLANOX,
        TcpRmem,
        "4096 87380 4194304",
        &[(OLDEST, Harmful, "lowers the maximum, 6 MiB by default and 32 MiB since Linux 6.16")],
    ),
    KnownAdvice::new(
        OF_MELLANOX,
        TcpWmem,
        "4096 65536 4194304",
        &[(OLDEST, Default, "its maximum is the kernel's default")],
    ),
];

const NOT_OF_USE: &str =
    "has no effect: the kernel measures for each socket how much of its buffer is payload";

const CLOUDFLARE: &[KnownAdvice] = &[
    KnownAdvice::new(
        OF_CLOUDFLARE,
        TcpAdvWinScale,
        "-2",
        &[
            (
                OLDEST,
                Current,
                "withholds three quarters of the receive buffer, for packets with little payload",
            ),
            (release(6, 6), Stale, NOT_OF_USE),
        ],
    ),
    KnownAdvice::new(
        OF_CLOUDFLARE,
        TcpRmem,
        "8192 262144 536870912",
        &[(OLDEST, Current, "enough for long fast paths; one connection may use 512 MiB of memory")],
    ),
    KnownAdvice::new(OF_CLOUDFLARE, TcpWmem, "4096 16384 536870912", LARGE_WMEM),
];

const KLAVER: &[KnownAdvice] = &[
    KnownAdvice::new(OF_KLAVER, TcpRmem, "8192 87380 16777216", LARGEST_OF_16_MIB),
    KnownAdvice::new(OF_KLAVER, TcpWmem, "8192 65536 16777216", LARGE_WMEM),
    KnownAdvice::new(
        OF_KLAVER,
        OptmemMax,
        "65535",
        &[
            (OLDEST, Current, "for programs with many control messages"),
            (release(6, 8), Harmful, "lowers the default of 131072"),
        ],
    ),
    KnownAdvice::new(
        OF_KLAVER,
        TcpNotsentLowat,
        "16384",
        &[(OLDEST, Current, "HTTP/2 servers can choose late what to send; bulk senders wake more often")],
    ),
    KnownAdvice::new(
        OF_KLAVER,
        Somaxconn,
        "32768",
        &[(OLDEST, Current, "only for listeners that request as much")],
    ),
];

const BY_ITSELF: &[(Release, VerdictKind, &str)] = &[(OLDEST, Default, "the kernel's default")];

const BLOGS: &[KnownAdvice] = &[
    KnownAdvice::new(OF_BLOGS, TcpTimestamps, "0", NO_TIMESTAMPS),
    KnownAdvice::new(
        OF_BLOGS,
        TcpSack,
        "0",
        &[(
            OLDEST,
            Harmful,
            "without SACK each lost segment costs a round trip, and RACK and tail loss probes are off",
        )],
    ),
    KnownAdvice::new(OF_BLOGS, TcpLowLatency, "1", LOW_LATENCY),
    KnownAdvice::new(
        OF_BLOGS,
        TcpTwRecycle,
        "1",
        &[
            (OLDEST, Harmful, "drops connections of clients behind one NAT address"),
            (release(4, 12), Stale, "removed; it dropped connections of clients behind one NAT address"),
        ],
    ),
    KnownAdvice::new(
        OF_BLOGS,
        TcpTwReuse,
        "1",
        &[(
            OLDEST,
            Current,
            "for clients with thousands of connections a minute to one address; needs timestamps",
        )],
    ),
    KnownAdvice::new(
        OF_BLOGS,
        TcpAdvWinScale,
        "2",
        &[
            (OLDEST, Current, "gives three quarters of the receive buffer to the window"),
            (release(6, 6), Stale, NOT_OF_USE),
        ],
    ),
    KnownAdvice::new(
        OF_BLOGS,
        TcpMem,
        "16777216 16777216 16777216",
        &[(
            OLDEST,
            Harmful,
            "its unit is pages of 4096 bytes: more than this machine has, so nothing limits TCP's memory",
        )],
    )
    .beyond_memory(),
    KnownAdvice::new(
        OF_BLOGS,
        TcpRmem,
        "4096 12582912 16777216",
        &[(
            OLDEST,
            Harmful,
            "each connection starts with this receive buffer; autotuning starts small and grows as needed",
        )],
    )
    .from(1, 1 << 20),
    KnownAdvice::new(
        OF_BLOGS,
        TcpWmem,
        "4096 12582912 16777216",
        &[(
            OLDEST,
            Harmful,
            "each connection starts with this send buffer; on slow paths programs queue seconds of data",
        )],
    )
    .from(1, 1 << 20),
    KnownAdvice::new(OF_BLOGS, RmemDefault, "16777216", NOT_TCPS).from(0, 8 << 20),
    KnownAdvice::new(OF_BLOGS, WmemDefault, "16777216", NOT_TCPS).from(0, 8 << 20),
    KnownAdvice::new(OF_BLOGS, NetdevMaxBacklog, "30000", RARE_BACKLOG).from(0, 10_000),
    KnownAdvice::new(OF_BLOGS, TcpWindowScaling, "1", BY_ITSELF),
    KnownAdvice::new(OF_BLOGS, TcpTimestamps, "1", BY_ITSELF),
    KnownAdvice::new(OF_BLOGS, TcpSack, "1", BY_ITSELF),
    KnownAdvice::new(OF_BLOGS, TcpModerateRcvbuf, "1", BY_ITSELF),
    KnownAdvice::new(OF_BLOGS, TcpSyncookies, "1", BY_ITSELF),
    KnownAdvice::new(
        OF_BLOGS,
        TcpWindowScaling,
        "0",
        &[(OLDEST, Harmful, "limits windows to 64 KiB: 5 Mbit/s at 100 ms")],
    ),
    KnownAdvice::new(
        OF_BLOGS,
        TcpEcn,
        "0",
        &[
            (OLDEST, Current, "avoids middleboxes that drop SYNs with ECN"),
            (release(4, 2), Stale, "an unanswered ECN handshake is retried without ECN (tcp_ecn_fallback)"),
        ],
    ),
    KnownAdvice::new(
        OF_BLOGS,
        TcpFack,
        "1",
        &[
            (OLDEST, Default, "the kernel's default"),
            (release(4, 11), Current, "recovers earlier if packets stay in order"),
            (release(4, 15), Stale, "has no effect: RACK replaced it"),
        ],
    ),
    KnownAdvice::new(
        OF_BLOGS,
        TcpSlowStartAfterIdle,
        "0",
        &[(OLDEST, Current, "keeps the window over pauses; without pacing a burst follows each pause")],
    ),
    KnownAdvice::new(
        OF_BLOGS,
        TcpNoMetricsSave,
        "1",
        &[(OLDEST, Current, "keeps measurements independent of each other; servers lose performance")],
    ),
    KnownAdvice::new(OF_BLOGS, TcpMtuProbing, "1", PROBING),
    KnownAdvice::new(OF_BLOGS, DefaultQdisc, "fq", FAIR_QUEUE),
    KnownAdvice::new(
        OF_BLOGS,
        TcpCongestionControl,
        "bbr",
        &[
            (OLDEST, Stale, "not available before Linux 4.9"),
            (release(4, 9), Current, "does not slow down for single losses; needs fq"),
            (release(4, 13), Current, "does not slow down for single losses; can be unfair to cubic"),
        ],
    ),
    KnownAdvice::new(
        OF_BLOGS,
        Somaxconn,
        "1024",
        &[
            (OLDEST, Current, "only for listeners that request as much"),
            (release(5, 4), Harmful, "lowers the default of 4096"),
        ],
    ),
    KnownAdvice {
        source: OF_BLOGS,
        setting: None,
        value: "10000",
        follows: Follows::From(0, 10_000),
        verdicts: &[(
            OLDEST,
            Harmful,
            "with pfifo_fast a queue of 10,000 packets, which is 120 ms at 1 Gbit/s; fq and fq_codel do not read it",
        )],
    },
];
