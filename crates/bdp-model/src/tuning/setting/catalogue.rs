//! The catalogued settings. Sources: the kernel's code and `Documentation/networking/ip-sysctl.rst`.

use super::default;
use super::entry::{Kind, Setting, Unit};
use super::release::Release;

/// Returns the setting with this name: `net.ipv4.tcp_rmem`, or `tcp_rmem`, `rmem_max` if that is unique.
pub fn find(name: &str) -> Option<&'static Setting> {
    let is_meant = |setting: &&Setting| {
        setting.name == name || setting.name.rsplit_once('.').is_some_and(|(_, last)| last == name)
    };
    all().find(is_meant)
}

/// Returns all settings, grouped by subject.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    [BUFFERS, WINDOW, CONGESTION, RECOVERY, SENDING, MTU, OPENING, MACHINE].into_iter().flatten()
}

const OFF_ON: &[(&str, &str)] = &[("0", "off"), ("1", "on")];

const fn release(major: u16, minor: u16) -> Release {
    Release::new(major, minor)
}

const OLDEST: Release = Release::OLDEST;

const BUFFERS: &[Setting] = &[
    Setting::new(
        "net.ipv4.tcp_rmem",
        Kind::Triple,
        Unit::Bytes,
        "Receive buffer of a TCP socket: minimum, initial, and autotuning's maximum",
    )
    .on_path()
    .own(4, 15)
    .inherited()
    .computed(default::tcp_rmem),
    Setting::new(
        "net.ipv4.tcp_wmem",
        Kind::Triple,
        Unit::Bytes,
        "Send buffer of a TCP socket: minimum, initial, and autotuning's maximum",
    )
    .on_path()
    .own(4, 15)
    .inherited()
    .computed(default::tcp_wmem),
    Setting::new(
        "net.ipv4.tcp_mem",
        Kind::Triple,
        Unit::Pages,
        "Memory of all TCP sockets together, in pages: low, pressure, and maximum",
    )
    .on_path()
    .computed(default::tcp_mem),
    Setting::flag(
        "net.ipv4.tcp_moderate_rcvbuf",
        "Autotuning of receive buffers up to the largest of tcp_rmem",
        OFF_ON,
    )
    .on_path()
    .own(4, 15)
    .always("1"),
    Setting::new(
        "net.core.rmem_max",
        Kind::Number,
        Unit::Bytes,
        "Largest receive buffer that SO_RCVBUF may request; TCP autotuning ignores it",
    )
    .on_path()
    .seen(6, 11)
    .changed(&[(OLDEST, "212992"), (release(6, 18), "4194304")]),
    Setting::new(
        "net.core.wmem_max",
        Kind::Number,
        Unit::Bytes,
        "Largest send buffer that SO_SNDBUF may request; TCP autotuning ignores it",
    )
    .on_path()
    .seen(6, 11)
    .changed(&[(OLDEST, "212992"), (release(6, 18), "4194304")]),
    Setting::new(
        "net.core.rmem_default",
        Kind::Number,
        Unit::Bytes,
        "Initial receive buffer of sockets other than TCP, such as UDP",
    )
    .seen(6, 11)
    .always("212992"),
    Setting::new(
        "net.core.wmem_default",
        Kind::Number,
        Unit::Bytes,
        "Initial send buffer of sockets other than TCP, such as UDP",
    )
    .seen(6, 11)
    .always("212992"),
    Setting::new(
        "net.core.optmem_max",
        Kind::Number,
        Unit::Bytes,
        "Memory of one socket for options, control messages and zero-copy notifications",
    )
    .own(6, 8)
    .changed(&[(OLDEST, "20480"), (release(6, 8), "131072")]),
];

const WINDOW: &[Setting] = &[
    Setting::flag(
        "net.ipv4.tcp_window_scaling",
        "Windows of more than 64 KiB (RFC 7323)",
        OFF_ON,
    )
    .on_path()
    .own(4, 13)
    .always("1"),
    Setting::flag(
        "net.ipv4.tcp_timestamps",
        "Timestamps (RFC 7323): round trips of retransmitted segments, protection against wrapped sequence numbers",
        &[("0", "off"), ("1", "on, with a random offset per connection"), ("2", "on, without the offset")],
    )
    .on_path()
    .own(4, 13)
    .always("1"),
    Setting::new(
        "net.ipv4.tcp_adv_win_scale",
        Kind::Number,
        Unit::None,
        "Share of the receive buffer withheld from the window: 1/2^N, or all but 1/2^-N if N is negative",
    )
    .on_path()
    .own(4, 15)
    .ignored(6, 6, "the kernel measures for each socket how much of its buffer is payload")
    .always("1"),
    Setting::new(
        "net.ipv4.tcp_app_win",
        Kind::Number,
        Unit::None,
        "Share of the first window reserved for the program: 1/2^N; 0 for none",
    )
    .own(4, 15)
    .always("31"),
    Setting::flag(
        "net.ipv4.tcp_shrink_window",
        "Shrinks an advertised window when the receive buffer is full",
        OFF_ON,
    )
    .since(6, 5)
    .own(6, 5)
    .always("0"),
];

const CONGESTION: &[Setting] = &[
    Setting::new(
        "net.ipv4.tcp_congestion_control",
        Kind::Name,
        Unit::None,
        "Congestion control of new connections",
    )
    .on_path()
    .own(4, 15)
    .inherited()
    .usually("cubic"),
    Setting::new(
        "net.ipv4.tcp_available_congestion_control",
        Kind::Names,
        Unit::None,
        "Loaded congestion controls; others may exist as modules",
    )
    .on_path()
    .seen(5, 7),
    Setting::new(
        "net.ipv4.tcp_allowed_congestion_control",
        Kind::Names,
        Unit::None,
        "Congestion controls open to unprivileged programs",
    )
    .seen(5, 7),
    Setting::flag(
        "net.ipv4.tcp_slow_start_after_idle",
        "Slow start after one retransmission timeout of idle time (RFC 2861)",
        OFF_ON,
    )
    .on_path()
    .own(4, 15)
    .always("1"),
    Setting::flag(
        "net.ipv4.tcp_no_metrics_save",
        "New connections ignore what earlier ones to the same address learned about the path",
        &[("0", "metrics are saved"), ("1", "metrics are not saved")],
    )
    .on_path()
    .own(4, 15)
    .always("0"),
    Setting::flag(
        "net.ipv4.tcp_ecn",
        "Explicit congestion notification (RFC 3168): routers mark packets instead of dropping them",
        &[
            ("0", "off"),
            ("1", "requested and accepted"),
            ("2", "accepted where the other end requests it"),
            ("3", "accurate ECN requested and accepted"),
            ("4", "ECN requested, accurate ECN accepted"),
            ("5", "not requested, accurate ECN accepted"),
        ],
    )
    .on_path()
    .own(3, 9)
    .always("2"),
    Setting::flag("net.ipv4.tcp_ecn_fallback", "Retries an unanswered ECN handshake without ECN", OFF_ON)
        .since(4, 2)
        .own(4, 2)
        .always("1"),
];

const RECOVERY: &[Setting] = &[
    Setting::flag("net.ipv4.tcp_sack", "Selective acknowledgments (RFC 2018)", OFF_ON)
        .on_path()
        .own(4, 13)
        .always("1"),
    Setting::flag(
        "net.ipv4.tcp_dsack",
        "Reports duplicate segments (RFC 2883), which shows the sender its needless retransmissions",
        OFF_ON,
    )
    .own(4, 15)
    .always("1"),
    Setting::flag("net.ipv4.tcp_fack", "Forward acknowledgments", OFF_ON)
        .own(4, 15)
        .ignored(4, 15, "RACK replaced it")
        .changed(&[(OLDEST, "1"), (release(4, 11), "0")]),
    Setting::flag(
        "net.ipv4.tcp_frto",
        "Detects spurious retransmission timeouts (F-RTO, RFC 5682)",
        &[("0", "off"), ("1", "on"), ("2", "on")],
    )
    .own(4, 15)
    .always("2"),
    Setting::flag(
        "net.ipv4.tcp_early_retrans",
        "Tail loss probe: detects loss of the last segments without a timeout",
        &[("0", "off"), ("1", "off"), ("2", "off"), ("3", "on"), ("4", "on")],
    )
    .own(4, 15)
    .always("3"),
    Setting::new(
        "net.ipv4.tcp_recovery",
        Kind::Number,
        Unit::None,
        "Loss detection by time (RACK, RFC 8985): 1 uses it, 2 keeps its reordering window static, 4 ignores three duplicate \
         acknowledgments; their sum",
    )
    .since(4, 4)
    .own(4, 15)
    .always("1"),
    Setting::new(
        "net.ipv4.tcp_reordering",
        Kind::Number,
        Unit::Segments,
        "Initial reordering tolerance, in segments, before a gap counts as loss",
    )
    .on_path()
    .own(4, 6)
    .always("3"),
    Setting::new(
        "net.ipv4.tcp_max_reordering",
        Kind::Number,
        Unit::Segments,
        "Largest reordering tolerance that a connection may learn, in segments",
    )
    .since(3, 19)
    .own(4, 15)
    .always("300"),
    Setting::new(
        "net.ipv4.tcp_rto_min_us",
        Kind::Number,
        Unit::Microseconds,
        "Smallest retransmission timeout, in us; rto_min of a route overrides it",
    )
    .on_path()
    .since(6, 11)
    .own(6, 11)
    .always("200000"),
    Setting::new(
        "net.ipv4.tcp_retries2",
        Kind::Number,
        Unit::None,
        "Consecutive timeouts before a connection is dropped; 15 take about 15 minutes",
    )
    .own(4, 6)
    .always("15"),
];

const SENDING: &[Setting] = &[
    Setting::new(
        "net.ipv4.tcp_limit_output_bytes",
        Kind::Number,
        Unit::Bytes,
        "Bytes that one socket may have in this host's queues (TCP small queues)",
    )
    .on_path()
    .own(4, 15)
    .changed(&[
        (OLDEST, "131072"),
        (release(4, 2), "262144"),
        (release(5, 0), "1048576"),
        (release(6, 16), "4194304"),
    ]),
    Setting::new(
        "net.ipv4.tcp_notsent_lowat",
        Kind::Number,
        Unit::Bytes,
        "Unsent bytes above which a socket is not writable; 4294967295 for no limit",
    )
    .on_path()
    .since(3, 12)
    .own(4, 6)
    .always("4294967295"),
    Setting::new(
        "net.ipv4.tcp_pacing_ss_ratio",
        Kind::Number,
        Unit::Percent,
        "Pacing rate in slow start, in % of window per round trip",
    )
    .since(4, 3)
    .own(4, 15)
    .always("200"),
    Setting::new(
        "net.ipv4.tcp_pacing_ca_ratio",
        Kind::Number,
        Unit::Percent,
        "Pacing rate in congestion avoidance, in % of window per round trip",
    )
    .since(4, 3)
    .own(4, 15)
    .always("120"),
    Setting::new(
        "net.ipv4.tcp_min_tso_segs",
        Kind::Number,
        Unit::Segments,
        "Fewest segments passed to the network card at once",
    )
    .since(3, 12)
    .own(4, 15)
    .always("2"),
    Setting::new(
        "net.ipv4.tcp_tso_win_divisor",
        Kind::Number,
        Unit::None,
        "Most that is passed to the network card at once: congestion window divided by this",
    )
    .own(4, 15)
    .always("3"),
    Setting::flag(
        "net.ipv4.tcp_autocorking",
        "Coalesces small writes while a packet of the connection is queued",
        OFF_ON,
    )
    .since(3, 14)
    .own(4, 15)
    .always("1"),
    Setting::flag("net.ipv4.tcp_low_latency", "Receives without the prequeue", OFF_ON)
        .ignored(4, 14, "the prequeue that it switched off is gone")
        .always("0"),
];

const MTU: &[Setting] = &[
    Setting::flag(
        "net.ipv4.tcp_mtu_probing",
        "Finds the path's MTU by probes (RFC 4821), without ICMP",
        &[("0", "off"), ("1", "on once segments of full size vanish"), ("2", "always on")],
    )
    .on_path()
    .own(4, 1)
    .always("0"),
    Setting::new("net.ipv4.tcp_base_mss", Kind::Number, Unit::Bytes, "Initial MSS of MTU probing")
        .own(4, 1)
        .changed(&[(OLDEST, "512"), (release(4, 1), "1024")]),
];

const OPENING: &[Setting] = &[
    Setting::new(
        "net.ipv4.tcp_fastopen",
        Kind::Number,
        Unit::None,
        "Data in the SYN (RFC 7413): sum of 1 (client), 2 (server), and bits that relax the checks",
    )
    .own(4, 15)
    .changed(&[(OLDEST, "0"), (release(3, 13), "1")]),
    Setting::new(
        "net.ipv4.tcp_syn_retries",
        Kind::Number,
        Unit::None,
        "SYN retransmissions before connect fails; 6 take about 2 minutes",
    )
    .own(4, 6)
    .always("6"),
    Setting::new(
        "net.ipv4.tcp_synack_retries",
        Kind::Number,
        Unit::None,
        "SYN-ACK retransmissions before a half-open connection is dropped; 5 take about a minute",
    )
    .own(4, 6)
    .always("5"),
    Setting::flag(
        "net.ipv4.tcp_syncookies",
        "Answers SYNs statelessly when a listener's queue is full",
        &[("0", "off"), ("1", "when the queue is full"), ("2", "always")],
    )
    .own(4, 6)
    .always("1"),
    Setting::new(
        "net.ipv4.tcp_max_syn_backlog",
        Kind::Number,
        Unit::Connections,
        "Largest number of half-open connections per listener",
    )
    .own(4, 11)
    .computed(default::max_syn_backlog),
    Setting::new("net.core.somaxconn", Kind::Number, Unit::Connections, "Largest accept queue of a listener")
        .own(3, 10)
        .changed(&[(OLDEST, "128"), (release(5, 4), "4096")]),
    Setting::flag(
        "net.ipv4.tcp_abort_on_overflow",
        "Resets connections that do not fit into a full accept queue",
        OFF_ON,
    )
    .own(4, 15)
    .always("0"),
    Setting::new(
        "net.ipv4.tcp_fin_timeout",
        Kind::Number,
        Unit::Seconds,
        "Seconds that a connection stays in FIN-WAIT-2",
    )
    .own(4, 6)
    .always("60"),
    Setting::flag(
        "net.ipv4.tcp_tw_reuse",
        "Reuses the port of a TIME-WAIT connection for a new outgoing one",
        &[("0", "off"), ("1", "on"), ("2", "on loopback alone")],
    )
    .own(4, 11)
    .changed(&[(OLDEST, "0"), (release(4, 19), "2")]),
    Setting::flag("net.ipv4.tcp_tw_recycle", "Ends TIME-WAIT early", OFF_ON)
        .own(4, 11)
        .gone(4, 12, "it dropped connections of clients behind one address")
        .always("0"),
];

const MACHINE: &[Setting] = &[
    Setting::new(
        "net.core.default_qdisc",
        Kind::Name,
        Unit::None,
        "Queueing discipline of devices that come up, and of each queue of those with several; systemd sets fq_codel on most \
         distributions",
    )
    .on_path()
    .since(3, 12)
    .usually("pfifo_fast"),
    Setting::new(
        "net.core.netdev_max_backlog",
        Kind::Number,
        Unit::Packets,
        "Backlog per processor for packets from RPS, tunnels and loopback",
    )
    .on_path()
    .always("1000"),
    Setting::new(
        "net.core.netdev_budget",
        Kind::Number,
        Unit::Packets,
        "Packets that the network softirq handles in one round",
    )
    .always("300"),
    Setting::new(
        "net.core.busy_poll",
        Kind::Number,
        Unit::Microseconds,
        "Microseconds that poll and select busy-poll the network card before they sleep",
    )
    .since(3, 11)
    .always("0"),
    Setting::new(
        "net.core.busy_read",
        Kind::Number,
        Unit::Microseconds,
        "Microseconds that a socket read busy-polls the network card before it sleeps",
    )
    .since(3, 11)
    .always("0"),
];
