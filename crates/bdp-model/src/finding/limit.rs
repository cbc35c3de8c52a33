//! The limits of a flow, each with its name in JSON, its noun for a sentence, the kinds of waiting that it explains, and what follows
//! from it.

use super::named::{named, named_kinds};
use crate::facts::Waits;

/// What follows from a limit, besides its remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consequence {
    /// An experiment may decide between it and another limit.
    Experiment,
    /// Experiments may replace it instead of confirming it.
    Replaceable,
    /// Another known limit binds once it is gone.
    Next,
    /// A program is the limit, or what it requested: a plan leaves the buffers alone.
    OfPrograms,
    /// It hides the path's capacity, which more streams show.
    HidesCapacity,
    /// The goodput is the path's capacity.
    IsCapacity,
    /// Losses occur at the rate of the bottleneck.
    AtBottleneck,
}

/// Declares the limits, grouped by kind.
macro_rules! limits {
    ($(
        $(#[doc = $about:literal])+
        $kind:ident { $(
            $(#[doc = $doc:literal])+
            $limit:ident = $name:literal, $noun:literal, [$($waits:ident),*], [$($follows:ident),*],
        )+ }
    )+) => {
        named_kinds! {
            /// What limits a flow.
            pub enum Limit { $( $(#[doc = $about])+ $kind { $( $(#[doc = $doc])+ $limit = $name, )+ } )+ }
        }

        impl Limit {
            /// The limit as a noun, for use in a sentence.
            pub const fn noun(self) -> &'static str {
                match self { $($( Self::$limit => $noun, )+)+ }
            }

            /// The kinds of waiting that it explains.
            const fn waits(self) -> &'static [Waits] {
                match self { $($( Self::$limit => &[$(Waits::$waits),*], )+)+ }
            }

            /// What follows from it.
            const fn consequences(self) -> &'static [Consequence] {
                match self { $($( Self::$limit => &[$(Consequence::$follows),*], )+)+ }
            }
        }
    };
}

impl Limit {
    /// Whether the limit explains this kind of waiting; [`Limit::Unknown`] may explain any.
    pub fn names(self, waits: Waits) -> bool {
        self == Self::Unknown || self.waits().contains(&waits)
    }

    /// Whether this follows from the limit.
    pub fn has(self, consequence: Consequence) -> bool {
        self.consequences().contains(&consequence)
    }
}

limits! {
    /// Windows and buffers.
    Windows {
        /// The window that the receiver advertises.
        ReceiveWindow = "receive_window", "the receive window", [ReceiveWindow], [HidesCapacity],
        /// The sending socket's buffer.
        SendBuffer = "send_buffer", "the send buffer", [SendBuffer], [HidesCapacity],
    }
    /// The path and its queues.
    Path {
        /// The capacity of the medium, which no TCP setting can raise.
        Ceiling = "ceiling", "the ceiling", [Path], [IsCapacity],
        // A transfer that ends before its window has grown spends its time in slow start, though the path may have been full since its first window.
        /// The path's bottleneck is full: a queue stands before it.
        PathRate = "path_rate", "the path's bottleneck", [Path, SlowStart], [Experiment, IsCapacity, AtBottleneck],
        /// A queue before the bottleneck that is too short for the bursts that arrive.
        ShallowQueue = "shallow_queue", "the short queue", [Path], [Experiment, Replaceable, AtBottleneck],
        /// A medium that carries one direction at a time: acknowledgements use part of its capacity.
        HalfDuplex = "half_duplex", "the half-duplex medium", [Path], [IsCapacity, AtBottleneck],
        /// Other traffic that uses part of the bottleneck's capacity.
        CrossTraffic = "cross_traffic", "other traffic", [Path], [Experiment, AtBottleneck],
        /// A queue on the path that marks packets instead of dropping them (ECN, RFC 3168).
        EcnMarks = "ecn_marks", "congestion marks (ECN)", [Path], [AtBottleneck],
    }
    /// What happens to packets on the path.
    Packets {
        /// Losses at a full queue, for which the congestion control reduces its window.
        CongestionLoss = "congestion_loss", "losses of a full queue", [Path], [Experiment, Replaceable, HidesCapacity, AtBottleneck],
        /// Losses that do not depend on the load: they occur at any rate.
        RandomLoss = "random_loss", "random loss", [Path], [Experiment, Replaceable, Next, HidesCapacity],
        /// Loss recovery without selective acknowledgements: one segment per round trip (RFC 2018).
        SackMissing = "sack_missing", "recovery without SACK", [Path], [Experiment, Next],
        /// No timestamps with retransmissions (RFC 7323); reported in addition to what limits the flow.
        TimestampsMissing = "timestamps_missing", "retransmission without timestamps", [], [],
        /// A policer on the path: it drops what exceeds a rate, without a queue.
        Policer = "policer", "the policer", [Path], [Experiment, IsCapacity],
        /// Segments that arrive out of order, which the sender takes for lost.
        Reordering = "reordering", "reordering", [Path], [Experiment, Next, HidesCapacity],
        /// The reverse path, which loses or delays acknowledgements.
        ReversePath = "reverse_path", "the way back", [Path], [],
        /// Full-size packets vanish while smaller ones get through.
        MtuBlackHole = "mtu_black_hole", "the MTU black hole", [Path, SlowStart, ReceiveWindow, SendBuffer], [],
        /// The path changed during the test: an outage, or another rate.
        PathChanged = "path_changed", "the change of the path", [Path], [Experiment, Replaceable, AtBottleneck],
    }
    /// Programs and their connections.
    Programs {
        /// The transfer ended before slow start did.
        SlowStart = "slow_start", "slow start", [SlowStart], [],
        /// The requested rate, which was reached.
        AskedRate = "asked_rate", "the asked rate", [Pacing], [Next, OfPrograms],
        /// The sending program, which writes more slowly than the path can carry.
        SlowWriter = "slow_writer", "the sending program", [Writer, Server], [Next, OfPrograms],
        /// The receiving program, which reads more slowly than data arrives.
        SlowReader = "slow_reader", "the receiving program", [Reader], [Next, OfPrograms],
        /// The client, which has no request outstanding: the connection waits for a program or a person.
        ClientIdle = "client_idle", "the client, which had not asked", [Client, Server, Nothing], [OfPrograms],
        /// Round trips between requests and responses, one after the other.
        RoundTrips = "round_trips", "round trips", [RoundTrips, Connection], [OfPrograms],
        /// The window of the programs' own protocol, such as SSH channels, SMB credits or HTTP/2 flow control.
        ProgramWindow = "program_window", "the programs' own window", [ProgramWindow], [OfPrograms],
        /// The other end, which no longer answers.
        PeerGone = "peer_gone", "the other end, which answers no more", [Path], [],
        /// The connection, which was never established.
        NotEstablished = "not_established", "a connection that was never made", [Connection, RoundTrips], [],
        /// Small writes that wait for the acknowledgement of the previous one (Nagle's algorithm, RFC 896).
        Nagle = "nagle", "Nagle's algorithm", [Nagle], [OfPrograms],
    }
    /// Processors and devices of hosts.
    Hosts {
        /// The processor of one end.
        Cpu = "cpu", "the processor", [Processor], [Next, OfPrograms],
        /// One end, whose device or kernel dropped packets.
        HostDrops = "host_drops", "packet drops of the host", [Path], [Next],
    }
    /// Datagrams.
    Datagrams {
        /// Datagrams lost on the path.
        PathLoss = "path_loss", "loss on the path", [], [],
        /// The receiving host, whose socket dropped datagrams that had arrived.
        ReceivingHost = "receiving_host", "the receiving host", [], [],
        /// The sending host, which could send no faster, or dropped datagrams before they left.
        SendingHost = "sending_host", "the sending host", [], [],
    }
    /// Limits that are not known.
    NotKnown {
        /// No rule explains the limit.
        Unknown = "unknown", "something unknown", [], [Experiment, Replaceable],
    }
}
