//! The wording of caveats.

use std::fmt::Write as _;

use bdp_model::finding::caveat::{Caveat, NoExperiment, NotMeasured, WindowShortfall};
use bdp_model::flow::method::EndReason;
use bdp_model::measurement::ends::{Direction, End, PeerProtocol, Task};
use bdp_model::probes::mtu_search::IPV6_MINIMUM;
use bdp_model::tuning::setting::Setting;
use bdp_model::units::{ByteCount, Nanos, Rate, format_bps};

use crate::number::percent;

const SEARCH_NOT_HELD: &str =
    "no rate found by trials lasted for the whole duration; the figures are those of the last rate tried";
const LOSS_AT_ANY_RATE: &str =
    "loss does not depend on the rate; the figures are those of the lowest rate tried";
const ONE_PROCESSOR: &str = "there is one processor: floors are of threads that sleep and wake, and clocks were not \
     compared with one another";
const RECOGNISED_IPERF3: &str = "the server was recognised as one of iperf3; --iperf3 spares the wait";
const SSH_TUNNEL: &str = "data went through ssh's connection: goodput and round trips of the probes are the tunnel's; \
     windows, retransmits and path MTU are those between bdp and ssh on the same machine";

/// Returns a caveat in one or two sentences. Each kind is named here, so that a kind without wording does not compile.
#[deny(clippy::wildcard_enum_match_arm)]
pub fn text(caveat: &Caveat) -> String {
    match caveat {
        Caveat::HypervisorSteal { end, share } => at(*end) + &hypervisor_steal(share),
        Caveat::HalfDuplex { end, device } => at(*end) + &half_duplex(device),
        Caveat::DeviceDrops { end, device, .. } => at(*end) + &device_drops(caveat, device),
        Caveat::CrossTraffic { end, device, task, rate_bps, share } => {
            at(*end) + &cross_traffic(device, task, rate_bps, share)
        }
        Caveat::BacklogDrops { end, packets } => at(*end) + &backlog_drops(packets),
        Caveat::CpuQuota { end, periods, throttled_ns } => at(*end) + &cpu_quota(periods, throttled_ns),
        Caveat::HostLatency { direction, host_ns, rtt_ns } => of(*direction) + &host_latency(host_ns, rtt_ns),
        Caveat::SocketBufferCut { direction, task, asked_bytes, granted_bytes } => {
            of(*direction) + &socket_buffer_cut(task, asked_bytes, granted_bytes)
        }
        Caveat::BusyThread { direction, task, share } => of(*direction) + &busy_thread(task, share),
        Caveat::TimeRanOut { direction, bytes, asked_bytes, after_ns } => {
            of(*direction) + &time_ran_out(bytes, asked_bytes, after_ns)
        }
        Caveat::WindowNotReached { direction, reason } => of(*direction) + &window_not_reached(reason),
        Caveat::NoExperiment { direction, reason } => of(*direction) + &no_experiment(reason),
        Caveat::RateNotReached { direction, sent_bps, asked_bps, left_out } => {
            of(*direction) + &rate_not_reached(sent_bps, asked_bps, left_out)
        }
        Caveat::BackedOff { direction, asked_bps, loss_ratio, rate_bps } => {
            of(*direction) + &backed_off(asked_bps, loss_ratio, rate_bps)
        }
        Caveat::ReceiverDrops { direction, dropped, lost } => of(*direction) + &receiver_drops(dropped, lost),
        Caveat::Fragmented { direction, datagram_bytes, path_mtu } => {
            of(*direction) + &fragmented(datagram_bytes, path_mtu)
        }
        Caveat::LastUncounted { direction, datagrams } => of(*direction) + &last_uncounted(datagrams),
        Caveat::SearchNotHeld { direction } => of(*direction) + SEARCH_NOT_HELD,
        Caveat::LossAtAnyRate { direction } => of(*direction) + LOSS_AT_ANY_RATE,
        Caveat::SearchCutShort { direction, trials, passed, rate_bps } => {
            of(*direction) + &search_cut_short(trials, passed, rate_bps)
        }
        Caveat::OneProcessor => ONE_PROCESSOR.to_owned(),
        Caveat::ClockWentBack { by_ns } => clock_went_back(by_ns),
        Caveat::ProcessorsTaken { share } => processors_taken(share),
        Caveat::RecognisedIperf3 => RECOGNISED_IPERF3.to_owned(),
        Caveat::ForeignServer { protocol, datagrams } => foreign_server(*protocol, *datagrams).to_owned(),
        Caveat::WebServer { host, handshake_interval_ns } => web_server(host, handshake_interval_ns),
        Caveat::FileTooShort { after_ns, repeated_from_bytes } => {
            file_too_short(after_ns, repeated_from_bytes)
        }
        Caveat::SshTunnel => SSH_TUNNEL.to_owned(),
        Caveat::ProbesOverTcp { port } => probes_over_tcp(port),
        Caveat::MtuBlackHole { .. } => black_hole(caveat),
        Caveat::MtuUnconfirmed { datagram_bytes, known_mtu } => mtu_unconfirmed(datagram_bytes, known_mtu),
        Caveat::AnswersDropped { dropped, lost } => answers_dropped(dropped, lost),
        Caveat::SynRetransmitted { handshakes } => syn_retransmitted(handshakes),
        Caveat::ProbesLeftOut { probes } => probes_left_out(probes),
        Caveat::SamplesCapped { kept } => samples_capped(kept),
        Caveat::EndedEarly { direction, reason } => ended_early(*direction, reason),
        Caveat::ServerRateLimit { rate_bps } => of(Direction::From) + &server_rate_limit(rate_bps),
        Caveat::NotMeasured { directions, reason } => not_measured(directions, reason),
        Caveat::Interrupted { not_measured } => interrupted(not_measured),
        Caveat::OptionStripped { option } => option_stripped(option),
        Caveat::MssClamped { mss_bytes, fits_bytes, mtu } => mss_clamped(mss_bytes, fits_bytes, mtu),
        Caveat::Text(text) => text.clone(),
    }
}

fn hypervisor_steal(share: &f64) -> String {
    let share = percent(*share);
    format!("its hypervisor took {share} of its processor time; the path may carry more")
}

fn half_duplex(device: &Option<String>) -> String {
    format!(
        "{} is half duplex: acknowledgements compete with data; check its cable and the settings of the switch",
        name(device)
    )
}

fn device_drops(caveat: &Caveat, device: &Option<String>) -> String {
    format!(
        "{} lost packets of this host: {}; they are no loss of the path",
        name(device),
        drop_counts(caveat)
    )
}

fn cross_traffic(device: &Option<String>, task: &Task, rate_bps: &f64, share: &f64) -> String {
    format!(
        "other traffic shared {} while it was {}: {} on average, {} of its bytes",
        name(device),
        task.name(),
        format_bps(*rate_bps),
        percent(*share)
    )
}

fn backlog_drops(packets: &u64) -> String {
    format!(
        "the kernel's backlog dropped {packets} received packets before TCP saw them; a larger \
             {}, or receive queues on more processors, helps",
        Setting::NetdevMaxBacklog
    )
}

fn cpu_quota(periods: &u64, throttled_ns: &Option<u64>) -> String {
    let total = throttled_ns.map_or_else(String::new, |ns| format!(", {} in total", Nanos(ns)));
    format!("the CPU quota of its control group throttled it {periods} times{total}; raise the limit")
}

fn host_latency(host_ns: &u64, rtt_ns: &u64) -> String {
    // Older versions compared a high percentile of the hosts with the overall median.
    if host_ns > rtt_ns {
        format!(
            "the two hosts themselves took up to {} of a probe's round trip, and half of the round trips \
             were {} or shorter: scheduling, not the path; see latency_parts_ns in the JSON",
            Nanos(*host_ns),
            Nanos(*rtt_ns)
        )
    } else {
        format!(
            "the two hosts themselves took up to {} of the probes' round trips of up to {}: scheduling, \
             not the path; see latency_parts_ns in the JSON",
            Nanos(*host_ns),
            Nanos(*rtt_ns)
        )
    }
}

fn socket_buffer_cut(task: &Task, asked_bytes: &u64, granted_bytes: &u64) -> String {
    let (end, setting) = match task {
        Task::Sending => ("sender", Setting::WmemMax),
        Task::Receiving => ("receiver", Setting::RmemMax),
    };
    format!(
        "the kernel of the {end} cut the socket buffer of {} asked for (--sockbuf) to {}: raise {setting} there",
        ByteCount::bytes(*asked_bytes),
        ByteCount::bytes(*granted_bytes)
    )
}

fn busy_thread(task: &Task, share: &f64) -> String {
    format!("a {} thread used {} of a processor; the path may carry more", task.name(), percent(*share))
}

fn time_ran_out(bytes: &u64, asked_bytes: &u64, after_ns: &u64) -> String {
    format!(
        "{} of {} passed in the {} granted",
        ByteCount::bytes(*bytes),
        ByteCount::bytes(*asked_bytes),
        Nanos(*after_ns)
    )
}

fn window_not_reached(reason: &WindowShortfall) -> String {
    let why = window_shortfall(reason);
    format!("the window asked for was not reached: {why}")
}

fn no_experiment(reason: &NoExperiment) -> String {
    let why = match reason {
        NoExperiment::HostPaused { pause_ns } => {
            return format!("an experiment is void, a host paused for {} meanwhile", Nanos(*pause_ns));
        }
        NoExperiment::Failed { error } => error,
        NoExperiment::OtherProtocol => "that needs 'bdp serve' at the far end",
    };
    format!("no experiment was run to decide what limits it: {why}")
}

fn rate_not_reached(sent_bps: &f64, asked_bps: &f64, left_out: &u64) -> String {
    format!(
        "the sender reached {} of the {} asked for{}",
        format_bps(*sent_bps),
        format_bps(*asked_bps),
        match left_out {
            0 => String::new(),
            n => format!(", and skipped {n} datagrams that were too late for their schedule"),
        }
    )
}

fn backed_off(asked_bps: &Option<f64>, loss_ratio: &f64, rate_bps: &f64) -> String {
    format!(
        "{} of the datagrams were lost in the first second at {}, which nobody knew this path to carry: backed off to {}; \
             --flood sends as asked",
        percent(*loss_ratio),
        asked_bps.map_or_else(|| "full speed".to_owned(), |bps| format_bps(bps).to_string()),
        format_bps(*rate_bps)
    )
}

fn receiver_drops(dropped: &u64, lost: &u64) -> String {
    format!(
        "{dropped} of the {lost} lost datagrams were dropped by the receiving host, whose socket was full: they \
             are no loss of the path"
    )
}

fn fragmented(datagram_bytes: &u64, path_mtu: &u32) -> String {
    format!(
        "datagrams of {datagram_bytes} B went as fragments, since the path's MTU is {path_mtu}: one lost fragment \
             loses the datagram"
    )
}

fn last_uncounted(datagrams: &u64) -> String {
    format!(
        "the server counted none of the last {datagrams} datagrams: they were lost, or arrived after it stopped \
             counting"
    )
}

fn search_cut_short(trials: &u64, passed: &u64, rate_bps: &f64) -> String {
    format!(
        "the search was cut short after {}{}, and no rate was held for the whole duration; the figures are those \
             at {}",
        if *trials == 1 { "one trial".to_owned() } else { format!("{trials} trials") },
        if *passed == 0 { ", none of which passed" } else { "" },
        format_bps(*rate_bps)
    )
}

fn clock_went_back(by_ns: &u64) -> String {
    format!(
        "the clock went back by up to {by_ns} ns from one processor to another: one-way times below that are not \
             reliable"
    )
}

fn processors_taken(share: &f64) -> String {
    format!(
        "threads missed {} of their processors: another program, or the hypervisor, took them",
        percent(*share)
    )
}

fn web_server(host: &String, handshake_interval_ns: &u64) -> String {
    format!(
        "{host} is no bdp: what the sender did is unknown, and round trips are those of TCP handshakes, one every {}",
        Nanos(*handshake_interval_ns)
    )
}

fn file_too_short(after_ns: &u64, repeated_from_bytes: &u64) -> String {
    format!(
        "the file was over after {}, before the time was; one whose length is given as {} or more is requested again",
        Nanos(*after_ns),
        ByteCount::bytes(*repeated_from_bytes)
    )
}

fn probes_over_tcp(port: &u16) -> String {
    format!(
        "no UDP datagram came back from port {port}, so round trips are those of small messages on a TCP \
             connection: a lost one shows as a slow one"
    )
}

fn mtu_unconfirmed(datagram_bytes: &u32, known_mtu: &u32) -> String {
    format!(
        "no datagram of {datagram_bytes} B came back, and no router said why: the path may not hold the MTU of \
             {known_mtu} that the kernel assumes; -l sets smaller datagrams"
    )
}

fn answers_dropped(dropped: &u64, lost: &u64) -> String {
    format!(
        "{dropped} of the {lost} lost answers were dropped by this machine, whose socket was full: they are no loss \
             of the path"
    )
}

fn syn_retransmitted(handshakes: &u64) -> String {
    format!(
        "{handshakes} of the handshakes had their SYN retransmitted: their round trips include the second that Linux \
             waits before"
    )
}

fn probes_left_out(probes: &u64) -> String {
    format!(
        "{probes} probes were skipped, because others were under way or this machine paused; a longer interval \
             leaves room for them"
    )
}

fn samples_capped(kept: &u64) -> String {
    format!("single round trips were kept of the first {kept} probes only")
}

fn ended_early(direction: Direction, reason: &EndReason) -> String {
    let way = direction.name();
    match reason {
        EndReason::Silence => format!("direction '{way}' ended early: nothing came through"),
        reason => format!("direction '{way}' ended early: the connections were {reason}"),
    }
}

fn server_rate_limit(rate_bps: &u64) -> String {
    format!("the server sends no more than {} (--max-rate there)", Rate::bps(*rate_bps))
}

fn interrupted(not_measured: &[Direction]) -> String {
    let mut text = "interrupted before its end: the figures are of the time until then".to_owned();
    for way in not_measured {
        let _ = write!(text, "; direction '{}' was not measured", way.name());
    }
    text
}

fn option_stripped(option: &str) -> String {
    format!(
        "both ends offer {option}, and the connection has none: a middlebox removes the option from handshakes"
    )
}

fn mss_clamped(mss_bytes: &u64, fits_bytes: &u64, mtu: &u32) -> String {
    format!(
        "segments carry {mss_bytes} B, and an MTU of {mtu} holds {fits_bytes}: something on the path clamps the MSS, \
         as before a tunnel"
    )
}

/// Returns why a window was not reached.
pub fn window_shortfall(reason: &WindowShortfall) -> String {
    let on_the_wire = |seen: &u64, why: String| format!("{seen} bytes were on the wire: {why}");
    match reason {
        WindowShortfall::Unreported => {
            "the sender's kernel does not report the window that it sees (Linux 5.4 does)".to_owned()
        }
        WindowShortfall::ScaleRounding { seen_bytes, unit_bytes } => on_the_wire(
            seen_bytes,
            format!(
                "the window's scale was fixed by the handshake, and the receiver's kernel rounds up in units of \
                 {unit_bytes} bytes"
            ),
        ),
        WindowShortfall::NotShrunk { seen_bytes } => on_the_wire(
            seen_bytes,
            "the receiver's kernel does not shrink an open window (Linux 6.9 does), or the flow was too short for that"
                .to_owned(),
        ),
        WindowShortfall::NotOffered { seen_bytes, buffer_bytes } => on_the_wire(
            seen_bytes,
            format!("the receiver's buffer of {buffer_bytes} bytes has room for it, and its kernel offered no more"),
        ),
        WindowShortfall::BufferTooSmall { seen_bytes, buffer_bytes } => on_the_wire(
            seen_bytes,
            format!(
                "the receiver's buffer {} ({} bounds it), and the window's scale was fixed by the handshake",
                buffer_bytes.map_or("has an unknown size".to_owned(), |bytes| format!("is {bytes} bytes")),
                Setting::RmemMax
            ),
        ),
        WindowShortfall::NoneSeen => "the sender never saw a window after omit".to_owned(),
        WindowShortfall::NotCalibrated { seen_bytes, best_bytes, buffer_bytes } => format!(
            "this kernel gave {best_bytes} bytes at best, with a buffer of {buffer_bytes}; {seen_bytes} were on the wire"
        ),
        WindowShortfall::BelowTwin { seen_bytes, twin_bytes } => format!(
            "{seen_bytes} bytes on the wire where the twin without delay had {twin_bytes}: the receiver did not keep \
             up, or the flow was too short for its window to open"
        ),
        WindowShortfall::BesideClamp { seen_bytes } => {
            format!("the sender saw {seen_bytes} bytes behind the clamp")
        }
        WindowShortfall::Text(text) => text.clone(),
    }
}

fn not_measured(directions: &[Direction], reason: &NotMeasured) -> String {
    let names: Vec<_> = directions.iter().map(|way| way.name()).collect();
    let why = match reason {
        NotMeasured::NoSecondTest { address } => {
            format!("{address} serves no second test; -R measures it alone")
        }
        NotMeasured::NoAnswer { address, waited_ns } => format!(
            "no datagram came back from {address} within {}; does a firewall let UDP port {} through? Without -u the \
             same is measured by TCP",
            Nanos(*waited_ns),
            address.port()
        ),
        NotMeasured::NoDatagrams { address, waited_ns } => format!(
            "{address} was asked for datagrams, and none came within {}; does a firewall let UDP port {} through both \
             ways? A 'bdp serve' there sends them to other machines with --iperf2-udp-reverse and --allow alone. Without \
             -u the same is measured by TCP",
            Nanos(*waited_ns),
            address.port()
        ),
    };
    format!("direction '{}' was not measured: {why}", names.join("', '"))
}

/// Returns what a server of another protocol reports, and where the other figures come from.
fn foreign_server(protocol: PeerProtocol, datagrams: bool) -> &'static str {
    match (protocol, datagrams) {
        (PeerProtocol::Iperf3, false) => {
            "the server speaks iperf3's protocol, which reports bytes and retransmits of its end alone, and it answers \
             no probes: idle round trips are those of handshakes, loaded ones the sending kernel's here"
        }
        (PeerProtocol::Iperf3, true) => {
            "the server speaks iperf3's protocol, which reports how many datagrams were missing and their jitter, but no \
             duplicates, reordering or drops of its own socket, and it answers no probes: idle round trips are those \
             of handshakes"
        }
        (PeerProtocol::Iperf2, false) => {
            "the server speaks iperf2's protocol: it reports nothing and answers no probes; what it received is what its \
             kernel acknowledged"
        }
        (PeerProtocol::Iperf2, true) => {
            "the server speaks iperf2's protocol: of datagrams it reports how many came, how many out of order, and \
             their jitter, and it answers no probes"
        }
    }
}

fn drop_counts(caveat: &Caveat) -> String {
    let Caveat::DeviceDrops { rx_dropped, rx_missed, rx_fifo, tx_dropped, tx_fifo, .. } = caveat else {
        return String::new();
    };
    let counts = [
        (rx_dropped, "received packets dropped"),
        (rx_missed, "missed for lack of a buffer"),
        (rx_fifo, "lost by its receive FIFO"),
        (tx_dropped, "dropped on the way out"),
        (tx_fifo, "lost by its send FIFO"),
    ];
    let some = counts.iter().filter(|(count, _)| **count > 0);
    some.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
}

fn black_hole(caveat: &Caveat) -> String {
    let Caveat::MtuBlackHole { mtu, known_mtu, exact, ipv6, fits_bytes, asked_bytes } = caveat else {
        return String::new();
    };
    let least = if *exact { "" } else { "at least " };
    let message = if *ipv6 { "ICMPv6 'packet too big'" } else { "ICMP 'fragmentation needed'" };
    let mut text = format!(
        "a path-MTU black hole: the path holds an MTU of {least}{mtu}, the kernel knows of {known_mtu}, and longer packets \
         vanish: no {message} arrives. TCP suffers too: let that message through, clamp the MSS at the router before the \
         narrow link, or set {}=1 at both ends",
        Setting::TcpMtuProbing
    );
    if *ipv6 && *mtu < IPV6_MINIMUM {
        let _ = write!(text, "; each link of IPv6 has to carry {IPV6_MINIMUM} B (RFC 8200, section 5)");
    }
    let _ = match asked_bytes {
        Some(asked) if asked > fits_bytes => write!(
            text,
            ". Datagrams of {asked} B (-l) are longer than the {fits_bytes} B that it holds: they are lost where nothing \
             fragments them"
        ),
        Some(_) => Ok(()),
        None => write!(text, ". Datagrams have the {fits_bytes} B that it holds"),
    };
    text
}

pub(super) fn at(end: End) -> String {
    format!("{} end: ", end.name())
}

fn of(direction: Direction) -> String {
    format!("direction '{}': ", direction.name())
}

pub(super) fn name(device: &Option<String>) -> &str {
    device.as_deref().unwrap_or("its device")
}
