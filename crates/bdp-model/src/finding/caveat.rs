//! What a reader should know before relying on the figures, as evidence; `bdp-report` puts it into words. A real path has
//! caveats, never INVALID.

use std::net::SocketAddr;

use serde::{Deserialize, Deserializer, Serialize};

use crate::flow::method::EndReason;
use crate::measurement::ends::{Direction, End, PeerProtocol, Task};

/// A reason for caution: its `kind`, its evidence, and `text`, the same in words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Caveat {
    /// A hypervisor took processor time from an end.
    HypervisorSteal {
        /// End that lost the time.
        end: End,
        /// Share of the time of all its processors, from 5 % on.
        share: f64,
    },
    /// The device of an end is half duplex.
    HalfDuplex {
        /// End with the device.
        end: End,
        /// Device name.
        device: Option<String>,
    },
    /// The device of an end dropped packets of this host; the path did not lose them.
    DeviceDrops {
        /// End with the device.
        end: End,
        /// Device name.
        device: Option<String>,
        /// Received packets that it dropped: from 10 and one in 10,000 on. Here and in the next members, 0 if they are too few to matter.
        rx_dropped: u64,
        /// Received packets for which it had no buffer.
        rx_missed: u64,
        /// Received packets lost by its FIFO.
        rx_fifo: u64,
        /// Outgoing packets that it dropped.
        tx_dropped: u64,
        /// Outgoing packets lost by its FIFO.
        tx_fifo: u64,
    },
    /// Other traffic shared the device of an end.
    CrossTraffic {
        /// End with the device.
        end: End,
        /// Device name.
        device: Option<String>,
        /// Whether the other traffic was sent or received.
        task: Task,
        /// Mean rate of the other traffic, from 1 Mbit/s on.
        rate_bps: f64,
        /// Share of the device's bytes, from 3 % on.
        share: f64,
    },
    /// The kernel of an end dropped received packets because its backlog was full.
    BacklogDrops {
        /// End that dropped them.
        end: End,
        /// Packets dropped.
        packets: u64,
    },
    /// The control group of an end used up its quota of processor time.
    CpuQuota {
        /// End with the quota.
        end: End,
        /// Periods in which the quota was used up.
        periods: u64,
        /// Throttled time, all processors added up.
        throttled_ns: Option<u64>,
    },
    /// The two hosts took a large part of the round trips of a direction's probes.
    HostLatency {
        /// Direction of the probes.
        direction: Direction,
        /// Time in the hosts at the 95th percentile, or the median of few probes.
        host_ns: u64,
        /// Whole round trip of the same probes at the same percentile; older versions wrote their median.
        rtt_ns: u64,
    },
    /// The kernel of an end made a socket buffer smaller than requested.
    SocketBufferCut {
        /// Direction of the socket's data.
        direction: Direction,
        /// Whether it is the socket of the sending or of the receiving end.
        task: Task,
        /// Size requested (`--sockbuf`); `net.core.rmem_max` or `wmem_max` limits it.
        asked_bytes: u64,
        /// Size granted by the kernel: half of what `SO_RCVBUF` or `SO_SNDBUF` reads.
        granted_bytes: u64,
    },
    /// A thread may have limited a direction.
    BusyThread {
        /// Direction of the thread.
        direction: Direction,
        /// Whether it was sending or receiving.
        task: Task,
        /// Share of a processor that it used.
        share: f64,
    },
    /// Fewer bytes were transferred than requested before the time limit.
    TimeRanOut {
        /// Direction of the transfer.
        direction: Direction,
        /// Bytes transferred.
        bytes: u64,
        /// Bytes requested.
        asked_bytes: u64,
        /// Time limit.
        after_ns: u64,
    },
    /// A direction ended early.
    EndedEarly {
        /// Direction that ended.
        direction: Direction,
        /// Why it ended.
        reason: EndReason,
    },
    /// A window was not the one requested.
    WindowNotReached {
        /// Direction of the data.
        direction: Direction,
        /// Why it was not reached.
        reason: WindowShortfall,
    },
    /// A sender of datagrams was slower than requested.
    RateNotReached {
        /// Direction of the datagrams.
        direction: Direction,
        /// Payload rate sent, bit/s.
        sent_bps: f64,
        /// Payload rate requested, bit/s.
        asked_bps: f64,
        /// Datagrams skipped because they were too late.
        left_out: u64,
    },
    /// The requested datagram rate lost many datagrams in the first second, so the test continued at a lower one.
    BackedOff {
        /// Direction of the datagrams.
        direction: Direction,
        /// Payload rate requested, bit/s; null for as fast as possible.
        asked_bps: Option<f64>,
        /// Share of datagrams lost in the first second.
        loss_ratio: f64,
        /// Payload rate sent from then on, bit/s.
        rate_bps: f64,
    },
    /// None of the rates that the search found could be sustained.
    SearchNotHeld {
        /// Direction of the search.
        direction: Direction,
    },
    /// Loss did not depend on the rate, so the search found none without loss.
    LossAtAnyRate {
        /// Direction of the search.
        direction: Direction,
    },
    /// A rate search was interrupted.
    SearchCutShort {
        /// Direction of the search.
        direction: Direction,
        /// Trials made.
        trials: u64,
        /// Trials passed.
        passed: u64,
        /// Rate whose figures are reported, bit/s.
        rate_bps: f64,
    },
    /// The receiving host dropped datagrams; the path did not lose them.
    ReceiverDrops {
        /// Direction of the datagrams.
        direction: Direction,
        /// Datagrams dropped because the socket was full.
        dropped: u64,
        /// All datagrams lost.
        lost: u64,
    },
    /// Datagrams exceeded the path MTU and were fragmented.
    Fragmented {
        /// Direction of the datagrams.
        direction: Direction,
        /// Payload of a datagram, bytes.
        datagram_bytes: u64,
        /// Path MTU, bytes.
        path_mtu: u32,
    },
    /// The server did not count the last datagrams, which may have arrived later.
    LastUncounted {
        /// Direction of the datagrams.
        direction: Direction,
        /// Datagrams not counted.
        datagrams: u64,
    },
    /// The server limits its rate (`--max-rate`).
    ServerRateLimit {
        /// Highest payload rate that it sends, bit/s.
        rate_bps: u64,
    },
    /// Requested directions that were not measured.
    NotMeasured {
        /// The directions.
        directions: Vec<Direction>,
        /// Why.
        reason: NotMeasured,
    },
    /// An experiment that would have identified a direction's limit was not run.
    NoExperiment {
        /// Direction of the experiment.
        direction: Direction,
        /// Why.
        reason: NoExperiment,
    },
    /// The measurement was interrupted; the figures cover the time until then.
    Interrupted {
        /// Directions that had not started.
        not_measured: Vec<Direction>,
    },
    /// A server that did not answer bdp's protocol was found to speak iperf3's.
    RecognisedIperf3,
    /// The server speaks another protocol, which reports less.
    ForeignServer {
        /// The protocol.
        protocol: PeerProtocol,
        /// Whether datagrams were measured.
        datagrams: bool,
    },
    /// The far end is a web server, which reports little.
    WebServer {
        /// Host name.
        host: String,
        /// Interval between the handshakes that measure round trips.
        handshake_interval_ns: u64,
    },
    /// A download ended early because its file was too short.
    FileTooShort {
        /// Duration of the download.
        after_ns: u64,
        /// Smallest file size that is downloaded repeatedly, bytes.
        repeated_from_bytes: u64,
    },
    /// No UDP probe was answered, so the round trips are those of messages on a TCP connection.
    ProbesOverTcp {
        /// UDP port of the server.
        port: u16,
    },
    /// The path silently drops packets that fit its known MTU.
    MtuBlackHole {
        /// Largest IP packet that passed, bytes.
        mtu: u32,
        /// Path MTU according to the near kernel, bytes.
        known_mtu: u32,
        /// Whether a packet one byte longer is known to be lost.
        exact: bool,
        /// Whether the path is IPv6.
        ipv6: bool,
        /// Payload of the largest datagram that fits, bytes.
        fits_bytes: u32,
        /// Requested payload of a datagram, bytes; null if none was requested.
        asked_bytes: Option<u32>,
    },
    /// No datagram as long as the path MTU came back, and no error reported why.
    MtuUnconfirmed {
        /// Payload of the datagrams, bytes.
        datagram_bytes: u32,
        /// Path MTU according to the near kernel, bytes.
        known_mtu: u32,
    },
    /// Both ends offer a TCP option but the connection does not use it: a middlebox strips it from handshakes.
    OptionStripped {
        /// `SACK` or `timestamps`.
        option: String,
    },
    /// Full segments are far shorter than the MTUs of both ends and of the path allow: a middlebox changes the MSS of handshakes.
    MssClamped {
        /// Payload of a full segment, bytes.
        mss_bytes: u64,
        /// Payload that the smallest MTU allows, bytes.
        fits_bytes: u64,
        /// The smallest MTU, bytes.
        mtu: u32,
    },
    /// Data went through the `ssh` connection.
    SshTunnel,
    /// This machine dropped answers to probes; the path did not lose them.
    AnswersDropped {
        /// Answers dropped because the socket was full.
        dropped: u64,
        /// All probes lost.
        lost: u64,
    },
    /// Handshakes were delayed by a second or more because the SYN was retransmitted.
    SynRetransmitted {
        /// Handshakes affected.
        handshakes: u64,
    },
    /// Probes were skipped.
    ProbesLeftOut {
        /// Probes that were due but not sent.
        probes: u64,
    },
    /// Not every probe was kept individually.
    SamplesCapped {
        /// Probes kept, from the first on.
        kept: u64,
    },
    /// This machine has only one processor.
    OneProcessor,
    /// The clocks of two processors disagree.
    ClockWentBack {
        /// Largest disagreement.
        by_ns: u64,
    },
    /// Threads that never sleep lost time on their processors.
    ProcessorsTaken {
        /// Share of the time lost.
        share: f64,
    },
    /// Text of a caveat written by an earlier version, or of a kind that only later versions have.
    #[serde(untagged)]
    Text(#[serde(deserialize_with = "text")] String),
}

/// Why requested directions were not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NotMeasured {
    /// The server accepted only one test.
    NoSecondTest {
        /// Address of the server.
        address: SocketAddr,
    },
    /// No datagram was answered.
    NoAnswer {
        /// Address that the datagrams were sent to.
        address: SocketAddr,
        /// How long the client waited.
        waited_ns: u64,
    },
    /// The server was asked for datagrams, but none arrived.
    NoDatagrams {
        /// Address of the server.
        address: SocketAddr,
        /// How long the client waited.
        waited_ns: u64,
    },
}

/// Why an experiment that would have distinguished limits was not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NoExperiment {
    /// The server's protocol does not support a second test.
    OtherProtocol,
    /// It was run, but a host paused during it.
    HostPaused {
        /// Length of the pause.
        pause_ns: u64,
    },
    /// It failed, or the server rejected it.
    Failed {
        /// The error.
        error: String,
    },
}

/// Why a window was not the one requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WindowShortfall {
    /// The sender's kernel does not report the window that it sees.
    Unreported,
    /// The handshake's window scale allows only multiples of a unit.
    ScaleRounding {
        /// Window on the wire, bytes.
        seen_bytes: u64,
        /// The unit, bytes.
        unit_bytes: u64,
    },
    /// The receiver's kernel does not shrink an open window.
    NotShrunk {
        /// Window on the wire.
        seen_bytes: u64,
    },
    /// The receiver's buffer is large enough, but its kernel did not advertise more.
    NotOffered {
        /// Window on the wire.
        seen_bytes: u64,
        /// `SO_RCVBUF`.
        buffer_bytes: u64,
    },
    /// The receiver's buffer is too small.
    BufferTooSmall {
        /// Window on the wire.
        seen_bytes: u64,
        /// `SO_RCVBUF`, if known.
        buffer_bytes: Option<u64>,
    },
    /// In the lab: the sender saw no receive window after omit.
    NoneSeen,
    /// In the lab: calibration found no buffer that produces the window.
    NotCalibrated {
        /// Window on the wire.
        seen_bytes: u64,
        /// Closest window that calibration reached, bytes.
        best_bytes: u64,
        /// Buffer that produced it, bytes.
        buffer_bytes: u64,
    },
    /// In the lab: calibration reached the window, but the case did not.
    BelowTwin {
        /// Window on the wire.
        seen_bytes: u64,
        /// Window in the calibration twin, which has no delay.
        twin_bytes: u64,
    },
    /// In the lab: the sender saw a window other than the path's clamp.
    BesideClamp {
        /// Window that the sender saw, bytes.
        seen_bytes: u64,
    },
    /// Text written by an earlier version, or of a kind that only later versions have.
    #[serde(untagged)]
    Text(#[serde(deserialize_with = "text")] String),
}

/// Rounds a share to a whole per cent, as it is printed: runs that differ by less have the same caveat.
pub fn to_percent(share: f64) -> f64 {
    (share * 100.0).round() / 100.0
}

/// Deserialises the text of `bdp-report`: a string, or the `text` of an object.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Words {
        Bare(String),
        Beside { text: String },
    }
    Words::deserialize(deserializer).map(|words| match words {
        Words::Bare(text) | Words::Beside { text } => text,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: serde_json::Value) -> Caveat {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_caveat_is_an_object_with_its_kind_and_evidence() {
        let caveat = Caveat::BusyThread { direction: Direction::To, task: Task::Sending, share: 1.0 };
        let value = json!({ "kind": "busy_thread", "direction": "to", "task": "sending", "share": 1.0 });
        assert_eq!(serde_json::to_value(&caveat).unwrap(), value);
        assert_eq!(read(value), caveat);
        assert_eq!(read(json!({ "kind": "ssh_tunnel", "text": "in words" })), Caveat::SshTunnel);
        let reason = WindowShortfall::BufferTooSmall { seen_bytes: 1, buffer_bytes: None };
        let caveat = Caveat::WindowNotReached { direction: Direction::From, reason };
        assert_eq!(read(serde_json::to_value(&caveat).unwrap()), caveat);
    }

    #[test]
    fn words_of_older_versions_and_kinds_of_later_ones_are_kept_as_text() {
        let old = read(json!("the far end ran another measurement meanwhile"));
        assert_eq!(old, Caveat::Text("the far end ran another measurement meanwhile".to_owned()));
        assert_eq!(
            serde_json::to_value(&old).unwrap(),
            json!("the far end ran another measurement meanwhile")
        );
        let later = read(json!({ "kind": "eclipse", "share": 0.5, "text": "it got dark" }));
        assert_eq!(later, Caveat::Text("it got dark".to_owned()));
        assert!(serde_json::from_value::<Caveat>(json!({ "kind": "eclipse" })).is_err());
        let note: Option<WindowShortfall> = serde_json::from_value(json!("it ends at 208 KiB")).unwrap();
        assert_eq!(note, Some(WindowShortfall::Text("it ends at 208 KiB".to_owned())));
    }
}
