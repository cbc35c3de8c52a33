//! Caveats in words.

use std::fmt::Write as _;

use bdp_explain::experiment;
use bdp_model::finding::Fact;
use bdp_model::finding::caveat::{Caveat, NoExperiment, NotMeasured, WindowShortfall};
use bdp_model::measurement::ends::{Direction, End, PeerProtocol, Task};

use bdp_model::flow::method::EndReason;
use bdp_model::measurement::Measurement;
use bdp_model::probes::mtu_search::IPV6_MINIMUM;
use bdp_model::tuning::setting::Setting;
use bdp_model::units::{ByteCount, Nanos, Rate, format_bps};
use serde_json::{Value, json};

use crate::number::percent;

/// Returns the caveats of these measurements without repetition: of caveats that differ only in a figure, the one with the
/// largest; those already covered by a finding are omitted.
pub(crate) fn said(measurements: &[&Measurement], is_said: impl Fn(&Caveat) -> bool) -> Vec<String> {
    let mut all: Vec<Caveat> = Vec::new();
    for m in measurements {
        for caveat in m.caveats.iter().filter(|&caveat| !is_said(caveat) && !is_found(m, caveat)) {
            if !all.iter_mut().any(|known| holds(known, caveat)) {
                all.push(caveat.clone());
            }
        }
    }
    let mut texts: Vec<String> = Vec::new();
    for caveat in &all {
        let text = shared_device(caveat, &all).unwrap_or_else(|| text(caveat));
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

/// Whether a caveat is shown only with details: a skipped experiment would only have confirmed the finding.
pub(crate) fn is_detail(measurements: &[&Measurement], caveat: &Caveat) -> bool {
    let Caveat::NoExperiment { direction, reason: NoExperiment::OtherProtocol } = caveat else {
        return false;
    };
    let directions = measurements.iter().flat_map(|m| &m.directions).filter(|d| d.direction == *direction);
    let mut found = directions.filter_map(|d| d.findings.first());
    !found.any(|first| experiment::may_replace(first.limit))
}

/// Whether a caveat is already known; if so, keeps the larger figure.
fn holds(known: &mut Caveat, caveat: &Caveat) -> bool {
    match (known, caveat) {
        (
            Caveat::BusyThread { direction, task, share },
            Caveat::BusyThread { direction: way, task: other, share: more },
        ) if direction == way && task == other => *share = share.max(*more),
        (Caveat::HypervisorSteal { end, share }, Caveat::HypervisorSteal { end: other, share: more })
            if end == other =>
        {
            *share = share.max(*more);
        }
        (known, caveat) => return known == caveat,
    }
    true
}

/// Whether a finding already has the busy thread among its evidence.
fn is_found(m: &Measurement, caveat: &Caveat) -> bool {
    let Caveat::BusyThread { direction, task, .. } = caveat else { return false };
    let thread = match task {
        Task::Sending => Fact::SendingThread,
        Task::Receiving => Fact::ReceivingThread,
    };
    let of_way = m.directions.iter().filter(|d| d.direction == *direction);
    of_way.flat_map(|d| &d.findings).any(|finding| finding.observed(thread).is_some())
}

/// Returns one sentence on other traffic of a device that covers several caveats: both directions, both ends of a loopback
/// device, several runs.
fn shared_device(caveat: &Caveat, all: &[Caveat]) -> Option<String> {
    let Caveat::CrossTraffic { end, device, .. } = caveat else { return None };
    let is_loopback = device.as_deref() == Some("lo");
    let figures = all.iter().filter_map(|other| match other {
        Caveat::CrossTraffic { end: its, device: of, rate_bps, share, .. }
            if of == device && (is_loopback || its == end) =>
        {
            Some((*rate_bps, *share))
        }
        _ => None,
    });
    let figures: Vec<_> = figures.collect();
    if figures.len() < 2 {
        return None;
    }
    let (rate_bps, share) = figures
        .into_iter()
        .fold((0.0_f64, 0.0_f64), |(rate, share), (its, of)| (rate.max(its), share.max(of)));
    let end = if is_loopback { String::new() } else { at(*end) };
    let (name, rate, share) = (name(device), format_bps(rate_bps), percent(share));
    Some(format!("{end}other traffic shared {name}: up to {rate} on average, {share} of its bytes"))
}

/// Returns the caveats as JSON, each with its wording beside its evidence, so that readers need no table of kinds.
pub(crate) fn worded(caveats: &[Caveat]) -> Value {
    caveats.iter().map(|caveat| beside(json!(caveat), text(caveat))).collect()
}

/// Returns why a window was not reached, with its wording, as JSON; null if it was reached.
pub(crate) fn worded_shortfall(shortfall: Option<&WindowShortfall>) -> Value {
    shortfall.map_or(Value::Null, |shortfall| beside(json!(shortfall), window_shortfall(shortfall)))
}

fn beside(evidence: Value, text: String) -> Value {
    let mut value = if evidence.is_object() { evidence } else { json!({ "kind": "text" }) };
    value["text"] = text.into();
    value
}

/// Returns a caveat in one or two sentences. Each kind has its own arm, so that a kind without wording does not compile.
#[deny(clippy::wildcard_enum_match_arm)]
pub fn text(caveat: &Caveat) -> String {
    match caveat {
        // Disturbances and limits of a machine.
        Caveat::HypervisorSteal { end, share } => {
            let share = percent(*share);
            format!("{}its hypervisor took {share} of its processor time; the path may carry more", at(*end))
        }
        Caveat::HalfDuplex { end, device } => format!(
            "{}{} is half duplex: acknowledgements compete with data; check its cable and the settings of the switch",
            at(*end),
            name(device)
        ),
        Caveat::DeviceDrops { end, device, .. } => format!(
            "{}{} lost packets of this host: {}; they are no loss of the path",
            at(*end),
            name(device),
            device_drops(caveat)
        ),
        Caveat::CrossTraffic { end, device, task, rate_bps, share } => format!(
            "{}other traffic shared {} while it was {}: {} on average, {} of its bytes",
            at(*end),
            name(device),
            task.name(),
            format_bps(*rate_bps),
            percent(*share)
        ),
        Caveat::BacklogDrops { end, packets } => format!(
            "{}the kernel's backlog dropped {packets} received packets before TCP saw them; a larger \
             {}, or receive queues on more processors, helps",
            at(*end),
            Setting::NetdevMaxBacklog
        ),
        Caveat::CpuQuota { end, periods, throttled_ns } => {
            let total = throttled_ns.map_or_else(String::new, |ns| format!(", {} in total", Nanos(ns)));
            let end = at(*end);
            format!("{end}the CPU quota of its control group throttled it {periods} times{total}; raise the limit")
        }
        Caveat::OneProcessor => {
            "there is one processor: floors are of threads that sleep and wake, and clocks were not compared with one \
             another"
                .to_owned()
        }
        Caveat::ClockWentBack { by_ns } => format!(
            "the clock went back by up to {by_ns} ns from one processor to another: one-way times below that are not \
             reliable"
        ),
        Caveat::ProcessorsTaken { share } => format!(
            "threads missed {} of their processors: another program, or the hypervisor, took them",
            percent(*share)
        ),
        // Results of a direction.
        // Older versions compared a high percentile of the hosts with the overall median.
        Caveat::HostLatency { direction, host_ns, rtt_ns } if host_ns > rtt_ns => format!(
            "direction '{}': the two hosts themselves took up to {} of a probe's round trip, and half of the round trips \
             were {} or shorter: scheduling, not the path; see latency_parts_ns in the JSON",
            direction.name(),
            Nanos(*host_ns),
            Nanos(*rtt_ns)
        ),
        Caveat::HostLatency { direction, host_ns, rtt_ns } => format!(
            "direction '{}': the two hosts themselves took up to {} of the probes' round trips of up to {}: scheduling, \
             not the path; see latency_parts_ns in the JSON",
            direction.name(),
            Nanos(*host_ns),
            Nanos(*rtt_ns)
        ),
        Caveat::SocketBufferCut { direction, task, asked_bytes, granted_bytes } => {
            let (end, setting) = match task {
                Task::Sending => ("sender", Setting::WmemMax),
                Task::Receiving => ("receiver", Setting::RmemMax),
            };
            format!(
                "{}the kernel of the {end} cut the socket buffer of {} asked for (--sockbuf) to {}: raise {setting} there",
                of(*direction),
                ByteCount::bytes(*asked_bytes),
                ByteCount::bytes(*granted_bytes)
            )
        }
        Caveat::BusyThread { direction, task, share } => format!(
            "{}a {} thread used {} of a processor; the path may carry more",
            of(*direction),
            task.name(),
            percent(*share)
        ),
        Caveat::TimeRanOut { direction, bytes, asked_bytes, after_ns } => format!(
            "{}{} of {} passed in the {} granted",
            of(*direction),
            ByteCount::bytes(*bytes),
            ByteCount::bytes(*asked_bytes),
            Nanos(*after_ns)
        ),
        Caveat::EndedEarly { direction, reason: EndReason::Silence } => {
            format!("direction '{}' ended early: nothing came through", direction.name())
        }
        Caveat::EndedEarly { direction, reason } => {
            format!("direction '{}' ended early: the connections were {reason}", direction.name())
        }
        Caveat::WindowNotReached { direction, reason } => {
            let why = window_shortfall(reason);
            format!("{}the window asked for was not reached: {why}", of(*direction))
        }
        Caveat::RateNotReached { direction, sent_bps, asked_bps, left_out } => format!(
            "{}the sender reached {} of the {} asked for{}",
            of(*direction),
            format_bps(*sent_bps),
            format_bps(*asked_bps),
            match left_out {
                0 => String::new(),
                n => format!(", and skipped {n} datagrams that were too late for their schedule"),
            }
        ),
        Caveat::BackedOff { direction, asked_bps, loss_ratio, rate_bps } => format!(
            "{}{} of the datagrams were lost in the first second at {}, which nobody knew this path to carry: backed off to {}; \
             --flood sends as asked",
            of(*direction),
            percent(*loss_ratio),
            asked_bps.map_or_else(|| "full speed".to_owned(), |bps| format_bps(bps).to_string()),
            format_bps(*rate_bps)
        ),
        Caveat::ReceiverDrops { direction, dropped, lost } => format!(
            "{}{dropped} of the {lost} lost datagrams were dropped by the receiving host, whose socket was full: they \
             are no loss of the path",
            of(*direction)
        ),
        Caveat::Fragmented { direction, datagram_bytes, path_mtu } => format!(
            "{}datagrams of {datagram_bytes} B went as fragments, since the path's MTU is {path_mtu}: one lost fragment \
             loses the datagram",
            of(*direction)
        ),
        Caveat::LastUncounted { direction, datagrams } => format!(
            "{}the server counted none of the last {datagrams} datagrams: they were lost, or arrived after it stopped \
             counting",
            of(*direction)
        ),
        Caveat::ServerRateLimit { rate_bps } => {
            let rate = Rate::bps(*rate_bps);
            format!("{}the server sends no more than {rate} (--max-rate there)", of(Direction::From))
        }
        // Results of a search.
        Caveat::SearchNotHeld { direction } => format!(
            "{}no rate found by trials lasted for the whole duration; the figures are those of the last rate tried",
            of(*direction)
        ),
        Caveat::LossAtAnyRate { direction } => format!(
            "{}loss does not depend on the rate; the figures are those of the lowest rate tried",
            of(*direction)
        ),
        Caveat::SearchCutShort { direction, trials, passed, rate_bps } => format!(
            "{}the search was cut short after {}{}, and no rate was held for the whole duration; the figures are those \
             at {}",
            of(*direction),
            if *trials == 1 { "one trial".to_owned() } else { format!("{trials} trials") },
            if *passed == 0 { ", none of which passed" } else { "" },
            format_bps(*rate_bps)
        ),
        // The remote end, and what was not measured.
        Caveat::NotMeasured { directions, reason } => {
            let names: Vec<_> = directions.iter().map(|way| way.name()).collect();
            format!("direction '{}' was not measured: {}", names.join("', '"), not_measured(reason))
        }
        Caveat::NoExperiment { direction, reason } => {
            let why = match reason {
                NoExperiment::OtherProtocol => "that needs 'bdp serve' at the far end".to_owned(),
                NoExperiment::HostPaused { pause_ns } => {
                    return format!(
                        "direction '{}': an experiment is void, a host paused for {} meanwhile",
                        direction.name(),
                        Nanos(*pause_ns)
                    );
                }
                NoExperiment::Failed { error } => error.clone(),
            };
            format!("direction '{}': no experiment was run to decide what limits it: {why}", direction.name())
        }
        Caveat::Interrupted { not_measured } => {
            let mut text = "interrupted before its end: the figures are of the time until then".to_owned();
            for way in not_measured {
                let _ = write!(text, "; direction '{}' was not measured", way.name());
            }
            text
        }
        Caveat::RecognisedIperf3 => {
            "the server was recognised as one of iperf3; --iperf3 spares the wait".to_owned()
        }
        Caveat::ForeignServer { protocol, datagrams } => foreign_server(*protocol, *datagrams).to_owned(),
        Caveat::WebServer { host, handshake_interval_ns } => format!(
            "{host} is no bdp: what the sender did is unknown, and round trips are those of TCP handshakes, one every {}",
            Nanos(*handshake_interval_ns)
        ),
        Caveat::FileTooShort { after_ns, repeated_from_bytes } => format!(
            "the file was over after {}, before the time was; one whose length is given as {} or more is requested again",
            Nanos(*after_ns),
            ByteCount::bytes(*repeated_from_bytes)
        ),
        Caveat::OptionStripped { option } => format!(
            "both ends offer {option}, and the connection has none: a middlebox removes the option from handshakes"
        ),
        Caveat::MssClamped { mss_bytes, fits_bytes, mtu } => format!(
            "segments carry {mss_bytes} B, and an MTU of {mtu} holds {fits_bytes}: something on the path clamps the MSS, \
             as before a tunnel"
        ),
        Caveat::SshTunnel => {
            "data went through ssh's connection: goodput and round trips of the probes are the tunnel's; windows, \
             retransmits and path MTU are those between bdp and ssh on the same machine"
                .to_owned()
        }
        // Results of probes.
        Caveat::ProbesOverTcp { port } => format!(
            "no UDP datagram came back from port {port}, so round trips are those of small messages on a TCP \
             connection: a lost one shows as a slow one"
        ),
        Caveat::MtuBlackHole { .. } => black_hole(caveat),
        Caveat::MtuUnconfirmed { datagram_bytes, known_mtu } => format!(
            "no datagram of {datagram_bytes} B came back, and no router said why: the path may not hold the MTU of \
             {known_mtu} that the kernel assumes; -l sets smaller datagrams"
        ),
        Caveat::AnswersDropped { dropped, lost } => format!(
            "{dropped} of the {lost} lost answers were dropped by this machine, whose socket was full: they are no loss \
             of the path"
        ),
        Caveat::SynRetransmitted { handshakes } => format!(
            "{handshakes} of the handshakes had their SYN retransmitted: their round trips include the second that Linux \
             waits before"
        ),
        Caveat::ProbesLeftOut { probes } => format!(
            "{probes} probes were skipped, because others were under way or this machine paused; a longer interval \
             leaves room for them"
        ),
        Caveat::SamplesCapped { kept } => {
            format!("single round trips were kept of the first {kept} probes only")
        }
        Caveat::Text(text) => text.clone(),
    }
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

fn not_measured(reason: &NotMeasured) -> String {
    match reason {
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
    }
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

fn device_drops(caveat: &Caveat) -> String {
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

fn at(end: End) -> String {
    format!("{} end: ", end.name())
}

fn of(direction: Direction) -> String {
    format!("direction '{}': ", direction.name())
}

fn name(device: &Option<String>) -> &str {
    device.as_deref().unwrap_or("its device")
}

#[cfg(test)]
mod tests {
    use bdp_model::finding::fact;
    use bdp_model::finding::{Confidence, Evidence, Finding, Limit, Place};
    use bdp_model::measurement::MeasureRequest;

    use super::*;

    #[test]
    fn a_window_that_is_not_reached_says_why() {
        for (reason, why) in [
            (WindowShortfall::ScaleRounding { seen_bytes: 1152, unit_bytes: 128 }, "units of 128 bytes"),
            (WindowShortfall::NotShrunk { seen_bytes: 131_072 }, "does not shrink"),
            (
                WindowShortfall::BufferTooSmall { seen_bytes: 212_992, buffer_bytes: Some(425_984) },
                "is 425984 bytes (net.core.rmem_max",
            ),
            (WindowShortfall::NotOffered { seen_bytes: 1024, buffer_bytes: 524_288 }, "has room for it"),
        ] {
            let told = window_shortfall(&reason);
            assert!(told.contains("bytes were on the wire: ") && told.contains(why), "{told}");
        }
    }

    #[test]
    fn evidence_stands_in_the_words() {
        let device = || Some("eth0".to_owned());
        let drops = Caveat::DeviceDrops {
            end: End::Near,
            device: device(),
            rx_dropped: 200,
            rx_missed: 9,
            rx_fifo: 0,
            tx_dropped: 0,
            tx_fifo: 0,
        };
        let cross = Caveat::CrossTraffic {
            end: End::Far,
            device: device(),
            task: Task::Receiving,
            rate_bps: 4e8,
            share: 0.5,
        };
        let quota = Caveat::CpuQuota { end: End::Near, periods: 7, throttled_ns: Some(70_000_000) };
        let hole = |ipv6, asked_bytes| Caveat::MtuBlackHole {
            mtu: 1270,
            known_mtu: 1500,
            exact: false,
            ipv6,
            fits_bytes: 1222,
            asked_bytes,
        };
        for (caveat, words) in [
            (Caveat::HypervisorSteal { end: End::Near, share: 0.31 }, "near end: its hypervisor took 31 %"),
            (drops, "eth0 lost packets of this host: 200 received packets dropped, 9 missed for lack"),
            (
                cross,
                "far end: other traffic shared eth0 while it was receiving: 400 Mbit/s on average, 50 % of",
            ),
            (quota, "7 times, 70 ms in total"),
            (Caveat::BacklogDrops { end: End::Near, packets: 3 }, "dropped 3 received"),
            (hole(true, None), "MTU of at least 1270, the kernel knows of 1500, and"),
            (hole(true, None), "carry 1280 B (RFC 8200, section 5). Datagrams have the 1222 B"),
            (hole(false, Some(1400)), "at both ends. Datagrams of 1400 B (-l) are longer than the 1222 B"),
            (
                Caveat::Interrupted { not_measured: vec![Direction::From] },
                "; direction 'from' was not measured",
            ),
            (
                Caveat::TimeRanOut {
                    direction: Direction::To,
                    bytes: 1 << 20,
                    asked_bytes: 1 << 40,
                    after_ns: 200_000_000,
                },
                "direction 'to': 1 MiB of 1 TiB passed in the 200 ms granted",
            ),
            (
                Caveat::HostLatency { direction: Direction::To, host_ns: 281_000_000, rtt_ns: 311_000_000 },
                "took up to 281 ms of the probes' round trips of up to 311 ms:",
            ),
            (
                Caveat::HostLatency { direction: Direction::To, host_ns: 281_000_000, rtt_ns: 30_260_000 },
                "took up to 281 ms of a probe's round trip, and half of the round trips were 30.26 ms or shorter:",
            ),
            (
                Caveat::SocketBufferCut {
                    direction: Direction::To,
                    task: Task::Receiving,
                    asked_bytes: 4 << 20,
                    granted_bytes: 212_992,
                },
                "the kernel of the receiver cut the socket buffer of 4 MiB asked for (--sockbuf) to 208 KiB: raise \
                 net.core.rmem_max there",
            ),
        ] {
            let told = text(&caveat);
            assert!(told.contains(words), "no '{words}' in '{told}'");
        }
    }

    #[test]
    fn a_thing_is_said_once() {
        let cross = |end, device: &str, task, rate_bps, share| Caveat::CrossTraffic {
            end,
            device: Some(device.to_owned()),
            task,
            rate_bps,
            share,
        };
        let busy = |share| Caveat::BusyThread { direction: Direction::To, task: Task::Sending, share };
        let of = |caveats| Measurement { caveats, ..Measurement::of(&MeasureRequest::to("ams1")) };
        let one = of(vec![
            cross(End::Near, "lo", Task::Sending, 1e6, 0.1),
            cross(End::Near, "lo", Task::Receiving, 2e6, 0.1),
            cross(End::Far, "lo", Task::Sending, 1e6, 0.3),
            busy(0.95),
        ]);
        let other = of(vec![
            cross(End::Far, "eth0", Task::Sending, 3e6, 0.5),
            cross(End::Far, "eth0", Task::Receiving, 4e6, 0.2),
            cross(End::Near, "eth0", Task::Receiving, 5e6, 0.2),
            busy(0.99),
        ]);
        assert_eq!(
            said(&[&one, &other], |_| false),
            [
                "other traffic shared lo: up to 2 Mbit/s on average, 30 % of its bytes",
                "direction 'to': a sending thread used 99 % of a processor; the path may carry more",
                "far end: other traffic shared eth0: up to 4 Mbit/s on average, 50 % of its bytes",
                "near end: other traffic shared eth0 while it was receiving: 5 Mbit/s on average, 20 % of its bytes",
            ]
        );
        let json = include_str!("../../bdp-store/tests/it/measurement.json");
        let mut found: Measurement = serde_json::from_str(json).unwrap();
        found.directions.truncate(1);
        found.directions[0].direction = Direction::To;
        found.caveats = vec![busy(0.95)];
        assert_eq!(said(&[&found], |_| false).len(), 1);
        assert!(said(&[&found], |_| true).is_empty());
        let finding = Finding::new(Limit::Unknown, Place::path(), Confidence::Low);
        let thread = Evidence::share(fact::SendingThread, 0.95).at_least(0.9);
        found.directions[0].findings = vec![finding.evidence([thread])];
        assert!(said(&[&found], |_| false).is_empty());
    }

    #[test]
    fn json_has_the_words_beside_the_evidence() {
        let caveats = [
            Caveat::ServerRateLimit { rate_bps: 1_000_000 },
            Caveat::Text("as an older version said it".to_owned()),
        ];
        assert_eq!(
            worded(&caveats),
            json!([
                {
                    "kind": "server_rate_limit",
                    "rate_bps": 1_000_000,
                    "text": "direction 'from': the server sends no more than 1 Mbit/s (--max-rate there)",
                },
                { "kind": "text", "text": "as an older version said it" },
            ])
        );
        assert_eq!(worded_shortfall(None), Value::Null);
        assert_eq!(worded_shortfall(Some(&WindowShortfall::NoneSeen))["kind"], "none_seen");
        let read: Vec<Caveat> = serde_json::from_value(worded(&caveats)).unwrap();
        assert_eq!(read, caveats);
    }
}
