//! The catalogued settings. Sources: the kernel's code and `Documentation/networking/ip-sysctl.rst`.

use std::fmt;
use std::ops::Deref;

use super::default;
use super::entry::{Bounds, Row, Unit, flag, name, names, number, triple};
use super::harm::{self, When};
use super::release::Release;

use Bounds::{Buffers, Modes, Name, Number, OneOf};
use Unit::{Bytes, Connections, Microseconds, Packets, Pages, Percent, Seconds, Segments};
use When::{AtLeast, Below, Is, Within};

/// A row each: what it does, its variant, its sysctl without `net.`, and what is known about it.
macro_rules! catalogue {
    ($(#[doc = $meaning:literal] $setting:ident: $space:ident.$short:ident = $row:expr;)+) => {
        /// A setting of the catalogue; it dereferences to its [`Row`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Setting {
            $(#[doc = $meaning] $setting,)+
        }

        const ROWS: &[Row] = &[$(
            $row.named(
                concat!("net.", stringify!($space), ".", stringify!($short)),
                stringify!($short),
                $meaning.trim_ascii_start(),
            ),
        )+];

        /// Returns all settings, grouped by subject.
        pub fn all() -> impl Iterator<Item = Setting> {
            [$(Setting::$setting,)+].into_iter()
        }
    };
}

/// Returns the setting with this name: `net.ipv4.tcp_rmem`, or `tcp_rmem`, `rmem_max`.
pub fn find(name: &str) -> Option<Setting> {
    all().find(|setting| [setting.name, setting.short].contains(&name))
}

impl Setting {
    /// Returns the setting with this full name.
    pub fn named(name: &str) -> Option<Self> {
        all().find(|setting| setting.name == name)
    }

    /// Returns what is known about it.
    pub const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }
}

impl Deref for Setting {
    type Target = Row;

    fn deref(&self) -> &'static Row {
        self.row()
    }
}

/// The full name.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The full name.
impl From<Setting> for String {
    fn from(setting: Setting) -> Self {
        setting.name.to_owned()
    }
}

const OLDEST: Release = Release::OLDEST;

const fn release(major: u16, minor: u16) -> Release {
    Release::new(major, minor)
}

const OFF_ON: &[(&str, &str)] = &[("0", "off"), ("1", "on")];

/// Harm of a ceiling for buffers that programs request.
const ASKED_BUFFER: &[(When, &str)] = &[
    (AtLeast(harm::LARGEST_BUFFER), "any program may hold {size} with one socket"),
    (Below(64 << 10), "a program that requests a buffer gets at most {size}, too little for UDP at any rate"),
];
const FIRST_BUFFER: &[(When, &str)] = &[(AtLeast(16 << 20), "every UDP socket may hold {size}")];
const BUSY: &[(When, &str)] = &[(AtLeast(1001), "each read keeps a processor busy for {n} us")];
const A_MILLION_WAIT: (When, &str) =
    (AtLeast((1 << 20) + 1), "a stuck listener keeps a million connections waiting");

/// Buffers that a client may ask programs to be allowed.
const ASKED_BY_CLIENT: Bounds = Number(Bounds::SMALLEST_BUFFER, Bounds::LARGEST_BUFFER);

catalogue! {
    // Buffers.

    /// Receive buffer of a TCP socket: minimum, initial, and autotuning's maximum
    TcpRmem: ipv4.tcp_rmem = triple(Bytes).on_path().receiving().measured().on_twins().own(4, 15).inherited()
        .computed(default::tcp_rmem).in_pods("1.32").client(Buffers).harm_computed(harm::buffer);
    /// Send buffer of a TCP socket: minimum, initial, and autotuning's maximum
    TcpWmem: ipv4.tcp_wmem = triple(Bytes).on_path().sending().measured().on_twins().own(4, 15).inherited()
        .computed(default::tcp_wmem).in_pods("1.32").client(Buffers).harm_computed(harm::buffer);
    /// Memory of all TCP sockets together, in pages: low, pressure, and maximum
    TcpMem: ipv4.tcp_mem = triple(Pages).on_path().measured().computed(default::tcp_mem)
        .harm_computed(harm::all_buffers);
    /// Autotuning of receive buffers up to the largest of tcp_rmem
    TcpModerateRcvbuf: ipv4.tcp_moderate_rcvbuf = flag(OFF_ON).on_path().receiving().measured().on_twins().own(4, 15)
        .always("1").client(Modes)
        .harmful(&[(Is(0), "receive windows stay at the second number of tcp_rmem, whatever the path needs")]);
    /// Largest receive buffer that SO_RCVBUF may request; TCP autotuning ignores it
    RmemMax: core.rmem_max = number(Bytes).on_path().receiving().measured().seen(6, 11)
        .changed(&[(OLDEST, "212992"), (release(6, 18), "4194304")]).client(ASKED_BY_CLIENT)
        .harmful(ASKED_BUFFER);
    /// Largest send buffer that SO_SNDBUF may request; TCP autotuning ignores it
    WmemMax: core.wmem_max = number(Bytes).on_path().sending().measured().seen(6, 11)
        .changed(&[(OLDEST, "212992"), (release(6, 18), "4194304")]).client(ASKED_BY_CLIENT)
        .harmful(ASKED_BUFFER);
    /// Initial receive buffer of sockets other than TCP, such as UDP
    RmemDefault: core.rmem_default = number(Bytes).seen(6, 11).always("212992").harmful(FIRST_BUFFER);
    /// Initial send buffer of sockets other than TCP, such as UDP
    WmemDefault: core.wmem_default = number(Bytes).seen(6, 11).always("212992").harmful(FIRST_BUFFER);
    /// Memory of one socket for options, control messages and zero-copy notifications
    OptmemMax: core.optmem_max = number(Bytes).own(6, 8).changed(&[(OLDEST, "20480"), (release(6, 8), "131072")])
        .harmful(&[(Below(4096), "only {n} bytes of options and control messages per socket")]);

    // The window.

    /// Windows of more than 64 KiB (RFC 7323)
    TcpWindowScaling: ipv4.tcp_window_scaling = flag(OFF_ON).on_path().measured().on_twins().own(4, 13).always("1")
        .client(Modes).harmful(&[(Is(0), "no window is above 64 KiB: over 20 ms that is 26 Mbit/s")]);
    /// Timestamps (RFC 7323): round trips of retransmitted segments, protection against wrapped sequence numbers
    TcpTimestamps: ipv4.tcp_timestamps =
        flag(&[("0", "off"), ("1", "on, with a random offset per connection"), ("2", "on, without the offset")])
        .on_path().measured().on_twins().own(4, 13).always("1").client(Modes);
    /// Share of the receive buffer withheld from the window: 1/2^N, or all but 1/2^-N if N is negative
    TcpAdvWinScale: ipv4.tcp_adv_win_scale = number(Unit::None).on_path().measured().on_twins().own(4, 15)
        .ignored(6, 6, "the kernel measures for each socket how much of its buffer is payload").always("1");
    /// Share of the first window reserved for the program: 1/2^N; 0 for none
    TcpAppWin: ipv4.tcp_app_win = number(Unit::None).on_twins().own(4, 15).always("31");
    /// Shrinks an advertised window when the receive buffer is full
    TcpShrinkWindow: ipv4.tcp_shrink_window = flag(OFF_ON).since(6, 5).own(6, 5).always("0");

    // Congestion control.

    /// Congestion control of new connections
    TcpCongestionControl: ipv4.tcp_congestion_control = name().on_path().sending().measured().own(4, 15).inherited()
        .usually("cubic").client(Name);
    /// Loaded congestion controls; others may exist as modules
    TcpAvailableCongestionControl: ipv4.tcp_available_congestion_control = names().on_path().measured().seen(5, 7);
    /// Congestion controls open to unprivileged programs
    TcpAllowedCongestionControl: ipv4.tcp_allowed_congestion_control = names().seen(5, 7);
    /// Slow start after one retransmission timeout of idle time (RFC 2861)
    TcpSlowStartAfterIdle: ipv4.tcp_slow_start_after_idle = flag(OFF_ON).on_path().measured().on_twins().own(4, 15)
        .always("1").in_pods("1.37").client(Modes);
    /// New connections ignore what earlier ones to the same address learned about the path
    TcpNoMetricsSave: ipv4.tcp_no_metrics_save = flag(&[("0", "metrics are saved"), ("1", "metrics are not saved")])
        .on_path().measured().on_twins().own(4, 15).always("0");
    /// Explicit congestion notification (RFC 3168): routers mark packets instead of dropping them
    TcpEcn: ipv4.tcp_ecn =
        flag(&[
            ("0", "off"),
            ("1", "requested and accepted"),
            ("2", "accepted where the other end requests it"),
            ("3", "accurate ECN requested and accepted"),
            ("4", "ECN requested, accurate ECN accepted"),
            ("5", "not requested, accurate ECN accepted"),
        ])
        .on_path().measured().on_twins().own(3, 9).always("2").client(Modes);
    /// Retries an unanswered ECN handshake without ECN
    TcpEcnFallback: ipv4.tcp_ecn_fallback = flag(OFF_ON).on_twins().since(4, 2).own(4, 2).always("1");

    // Recovery of losses.

    /// Selective acknowledgments (RFC 2018)
    TcpSack: ipv4.tcp_sack = flag(OFF_ON).on_path().measured().on_twins().own(4, 13).always("1").client(Modes)
        .harmful(&[(Is(0), "recovery repairs one lost segment per round trip")]);
    /// Reports duplicate segments (RFC 2883), which shows the sender its needless retransmissions
    TcpDsack: ipv4.tcp_dsack = flag(OFF_ON).own(4, 15).always("1");
    /// Forward acknowledgments
    TcpFack: ipv4.tcp_fack = flag(OFF_ON).own(4, 15).ignored(4, 15, "RACK replaced it")
        .changed(&[(OLDEST, "1"), (release(4, 11), "0")]);
    /// Detects spurious retransmission timeouts (F-RTO, RFC 5682)
    TcpFrto: ipv4.tcp_frto = flag(&[("0", "off"), ("1", "on"), ("2", "on")]).own(4, 15).always("2");
    /// Tail loss probe: detects loss of the last segments without a timeout
    TcpEarlyRetrans: ipv4.tcp_early_retrans =
        flag(&[("0", "off"), ("1", "off"), ("2", "off"), ("3", "on"), ("4", "on")]).own(4, 15).always("3");
    /// Loss detection by time (RACK, RFC 8985): 1 uses it, 2 keeps its reordering window static, 4 ignores three duplicate acknowledgments; their sum
    TcpRecovery: ipv4.tcp_recovery = number(Unit::None).on_twins().since(4, 4).own(4, 15).always("1");
    /// Initial reordering tolerance, in segments, before a gap counts as loss
    TcpReordering: ipv4.tcp_reordering = number(Segments).on_path().own(4, 6).always("3")
        .harmful(&[
            (Below(3), "{n} duplicate acknowledgements count as a loss: every reordering is one"),
            (AtLeast(301), "a loss is detected only after {n} duplicate acknowledgements"),
        ]);
    /// Largest reordering tolerance that a connection may learn, in segments
    TcpMaxReordering: ipv4.tcp_max_reordering = number(Segments).since(3, 19).own(4, 15).always("300");
    /// Smallest retransmission timeout, in us; rto_min of a route overrides it
    TcpRtoMinUs: ipv4.tcp_rto_min_us = number(Microseconds).on_path().since(6, 11).own(6, 11).always("200000")
        .harmful(&[(Below(1000), "a timeout of {n} us takes every delayed acknowledgement (40 ms) for a loss")]);
    /// Consecutive timeouts before a connection is dropped; 15 take about 15 minutes
    TcpRetries2: ipv4.tcp_retries2 = number(Unit::None).own(4, 6).always("15").harm_computed(harm::retries);

    // Sending.

    /// Bytes that one socket may have in this host's queues (TCP small queues)
    TcpLimitOutputBytes: ipv4.tcp_limit_output_bytes = number(Bytes).on_path().on_twins().own(4, 15)
        .changed(&[
            (OLDEST, "131072"),
            (release(4, 2), "262144"),
            (release(5, 0), "1048576"),
            (release(6, 16), "4194304"),
        ])
        .harmful(&[(Below(4096), "{n} bytes of a connection may wait for the device, less than three segments")]);
    /// Unsent bytes above which a socket is not writable; 4294967295 for no limit
    TcpNotsentLowat: ipv4.tcp_notsent_lowat = number(Bytes).on_path().on_twins().since(3, 12).own(4, 6)
        .always("4294967295").in_pods("1.37").client(Number(4096, u32::MAX as u64))
        .harmful(&[(Within(0, 4095), "a program may write {n} bytes ahead and is woken for each segment")]);
    /// Pacing rate in slow start, in % of window per round trip
    TcpPacingSsRatio: ipv4.tcp_pacing_ss_ratio = number(Percent).since(4, 3).own(4, 15).always("200");
    /// Pacing rate in congestion avoidance, in % of window per round trip
    TcpPacingCaRatio: ipv4.tcp_pacing_ca_ratio = number(Percent).since(4, 3).own(4, 15).always("120");
    /// Fewest segments passed to the network card at once
    TcpMinTsoSegs: ipv4.tcp_min_tso_segs = number(Segments).since(3, 12).own(4, 15).always("2");
    /// Most that is passed to the network card at once: congestion window divided by this
    TcpTsoWinDivisor: ipv4.tcp_tso_win_divisor = number(Unit::None).own(4, 15).always("3");
    /// Coalesces small writes while a packet of the connection is queued
    TcpAutocorking: ipv4.tcp_autocorking = flag(OFF_ON).since(3, 14).own(4, 15).always("1");
    /// Receives without the prequeue
    TcpLowLatency: ipv4.tcp_low_latency = flag(OFF_ON).ignored(4, 14, "the prequeue that it switched off is gone")
        .always("0");

    // Segment sizes.

    /// Finds the path's MTU by probes (RFC 4821), without ICMP
    TcpMtuProbing: ipv4.tcp_mtu_probing =
        flag(&[("0", "off"), ("1", "on once segments of full size vanish"), ("2", "always on")]).on_path().measured()
        .on_twins().own(4, 1).always("0").client(Modes);
    /// Initial MSS of MTU probing
    TcpBaseMss: ipv4.tcp_base_mss = number(Bytes).on_twins().own(4, 1)
        .changed(&[(OLDEST, "512"), (release(4, 1), "1024")])
        .harmful(&[(Below(256), "probing of the MTU falls back to segments of {n} bytes")]);
    /// Smallest MSS of a sender, even if the other end or the path allows less; guards against peers that request tiny segments
    TcpMinSndMss: ipv4.tcp_min_snd_mss = number(Bytes).on_twins().since(5, 2).own(5, 2).always("48")
        .harmful(&[(AtLeast(1221), "segments have {n} bytes or more, and paths with a smaller MTU drop them")]);

    // Opening and closing.

    /// Data in the SYN (RFC 7413): sum of 1 (client), 2 (server), and bits that relax the checks
    TcpFastopen: ipv4.tcp_fastopen = number(Unit::None).own(4, 15).changed(&[(OLDEST, "0"), (release(3, 13), "1")]);
    /// SYN retransmissions before connect fails; 6 take about 2 minutes
    TcpSynRetries: ipv4.tcp_syn_retries = number(Unit::None).own(4, 6).always("6").harm_computed(harm::syn_retries);
    /// SYN-ACK retransmissions before a half-open connection is dropped; 5 take about a minute
    TcpSynackRetries: ipv4.tcp_synack_retries = number(Unit::None).own(4, 6).always("5")
        .harm_computed(harm::syn_retries);
    /// Answers SYNs statelessly when a listener's queue is full
    TcpSyncookies: ipv4.tcp_syncookies = flag(&[("0", "off"), ("1", "when the queue is full"), ("2", "always")])
        .own(4, 6).always("1").in_pods("1.4")
        .harmful(&[
            (Is(0), "a flood of SYNs fills a listener's queue and locks out other clients"),
            (
                Is(2),
                "every connection uses a SYN cookie, which is for tests: without timestamps it has neither SACK nor \
                 window scaling",
            ),
        ]);
    /// Largest number of half-open connections per listener
    TcpMaxSynBacklog: ipv4.tcp_max_syn_backlog = number(Connections).own(4, 11).computed(default::max_syn_backlog)
        .harmful(&[(Below(64), "{n} half-open connections fill a listener's queue"), A_MILLION_WAIT]);
    /// Largest accept queue of a listener
    Somaxconn: core.somaxconn = number(Connections).own(3, 10).changed(&[(OLDEST, "128"), (release(5, 4), "4096")])
        .harmful(&[
            (Below(128), "of a burst of connections {n} wait for a listener; the others are dropped"),
            A_MILLION_WAIT,
        ]);
    /// Resets connections that do not fit into a full accept queue
    TcpAbortOnOverflow: ipv4.tcp_abort_on_overflow = flag(OFF_ON).own(4, 15).always("0")
        .harmful(&[(Is(1), "a burst of connections is reset, not delayed, if a listener's queue is full")]);
    /// Seconds that a connection stays in FIN-WAIT-2
    TcpFinTimeout: ipv4.tcp_fin_timeout = number(Seconds).own(4, 6).always("60").in_pods("1.29")
        .harmful(&[
            (Below(5), "what the other end sends later than {n} s after a program closed is answered by a reset"),
            (AtLeast(601), "connections that were closed are kept for {n} s"),
        ]);
    /// Reuses the port of a TIME-WAIT connection for a new outgoing one
    TcpTwReuse: ipv4.tcp_tw_reuse = flag(&[("0", "off"), ("1", "on"), ("2", "on loopback alone")]).own(4, 11)
        .changed(&[(OLDEST, "0"), (release(4, 19), "2")]);
    /// Ends TIME-WAIT early
    TcpTwRecycle: ipv4.tcp_tw_recycle = flag(OFF_ON).own(4, 11)
        .gone(4, 12, "it dropped connections of clients behind one address").always("0");

    // Queues of the machine.

    /// Queueing discipline of devices that come up, and of each queue of those with several; systemd sets fq_codel on most distributions
    DefaultQdisc: core.default_qdisc = name().on_path().sending().measured().since(3, 12).usually("pfifo_fast")
        .client(OneOf(&["fq", "fq_codel", "pfifo_fast"]));
    /// Backlog per processor for packets from RPS, tunnels and loopback
    NetdevMaxBacklog: core.netdev_max_backlog = number(Packets).on_path().receiving().measured().always("1000")
        .client(Number(100, 1_000_000))
        .harmful(&[
            (Below(100), "bursts of more than {n} packets are dropped before TCP sees them"),
            (AtLeast(1_000_001), "a queue of more than a million packets delays them by a second or more"),
        ]);
    /// Packets that the network softirq handles in one round
    NetdevBudget: core.netdev_budget = number(Packets).always("300")
        .harmful(&[(Below(16), "{n} packets a round: the softirq spends its time starting rounds")]);
    /// Microseconds that poll and select busy-poll the network card before they sleep
    BusyPoll: core.busy_poll = number(Microseconds).since(3, 11).always("0").harmful(BUSY);
    /// Microseconds that a socket read busy-polls the network card before it sleeps
    BusyRead: core.busy_read = number(Microseconds).since(3, 11).always("0").harmful(BUSY);
}
