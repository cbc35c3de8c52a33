//! Facts: possible observations, each with the names and units of its further numbers.

use super::named::named;
use super::quantity::{Quantity, Unit};
use crate::units::Nanos;

/// Declares the facts by kind, with their names in JSON and their further numbers in order, optional ones last. Each fact is a variant
/// of [`Fact`] and a type with these numbers as fields.
macro_rules! facts {
    ($(
        $(#[doc = $about:literal])+
        $kind:ident { $(
            $(#[doc = $doc:literal])+
            $fact:ident = $name:literal $({ $($figure:ident: $type:ty),+ })?,
        )+ }
    )+) => {
        named! {
            /// The observed fact. Each description gives its value first, and after `with` its further numbers in order.
            pub enum Fact { $($( $(#[doc = $doc])+ $fact = $name, )+)+ }
        }

        impl Fact {
            /// Names and units of the further numbers, in order.
            pub const fn figures(self) -> &'static [(&'static str, Unit)] {
                match self {
                    $($( Self::$fact => &[ $($( (stringify!($figure), <$type as Figure>::UNIT) ),+)? ], )+)+
                }
            }
        }

        $($( facts!(@type $(#[doc = $doc])+ $fact $({ $($figure: $type),+ })?); )+)+

        $(
            $(#[doc = $about])+
            #[derive(Debug, Clone, Copy, PartialEq)]
            pub enum $kind { $( $(#[doc = $doc])+ $fact($fact), )+ }
        )+

        /// A fact with its further numbers, by kind.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum Observed { $( $(#[doc = $about])+ $kind($kind), )+ }

        impl Observed {
            /// Reads a fact's further numbers as stored; `None` if a required one is missing.
            pub(super) fn read(fact: Fact, with: &[Quantity]) -> Option<Self> {
                match fact {
                    $($( Fact::$fact => <$fact as Figures>::read(with).map($kind::$fact).map(Self::$kind), )+)+
                }
            }
        }
    };
    (@type $(#[doc = $doc:literal])+ $fact:ident) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $fact;

        impl Figures for $fact {
            const FACT: Fact = Fact::$fact;

            fn stored(self) -> Vec<Quantity> {
                Vec::new()
            }

            fn read(_with: &[Quantity]) -> Option<Self> {
                Some(Self)
            }
        }
    };
    (@type $(#[doc = $doc:literal])+ $fact:ident { $($figure:ident: $type:ty),+ }) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq)]
        #[allow(missing_docs)]
        pub struct $fact { $( pub $figure: $type, )+ }

        impl Figures for $fact {
            const FACT: Fact = Fact::$fact;

            fn stored(self) -> Vec<Quantity> {
                [ $( self.$figure.stored() ),+ ].into_iter().flatten().collect()
            }

            fn read(with: &[Quantity]) -> Option<Self> {
                let mut with = with.iter().copied();
                Some(Self { $( $figure: Figure::read(with.next())?, )+ })
            }
        }
    };
}

/// A fact with its further numbers, by name.
pub trait Figures: Copy {
    /// The fact.
    const FACT: Fact;

    /// The numbers in the stored form.
    fn stored(self) -> Vec<Quantity>;

    /// Reads the stored numbers; `None` if a required one is missing.
    fn read(with: &[Quantity]) -> Option<Self>;
}

/// A further number of a fact.
trait Figure: Sized {
    const UNIT: Unit;

    fn stored(self) -> Option<Quantity>;

    fn read(stored: Option<Quantity>) -> Option<Self>;
}

/// Implements [`Figure`] for a type with a unit.
macro_rules! figure {
    ($type:ty, $unit:ident, $to:expr, $from:expr) => {
        impl Figure for $type {
            const UNIT: Unit = Unit::$unit;

            fn stored(self) -> Option<Quantity> {
                let value: fn($type) -> f64 = $to;
                Some(Quantity { value: value(self), unit: Self::UNIT })
            }

            fn read(stored: Option<Quantity>) -> Option<Self> {
                stored
                    .filter(|quantity| quantity.unit == Self::UNIT)
                    .map(|quantity| quantity.value)
                    .map($from)
            }
        }
    };
}

/// Bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bytes(pub f64);

/// A rate, bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bps(pub f64);

/// A share of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(pub f64);

/// A count that may be fractional, such as an expected one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Count(pub f64);

figure!(Bytes, Bytes, |bytes| bytes.0, Bytes);
figure!(Bps, Bps, |rate| rate.0, Bps);
figure!(Share, Share, |share| share.0, Share);
figure!(Count, Count, |count| count.0, Count);
figure!(u64, Count, |count| count as f64, |value| value.round() as u64);
figure!(Nanos, Ns, |time| time.0 as f64, |value| Nanos(value as u64));

/// An optional number: if it is absent, those after it are too.
impl<F: Figure> Figure for Option<F> {
    const UNIT: Unit = F::UNIT;

    fn stored(self) -> Option<Quantity> {
        self.and_then(F::stored)
    }

    fn read(stored: Option<Quantity>) -> Option<Self> {
        Some(F::read(stored))
    }
}

impl WindowFull {
    /// Without numbers: for a window that is the limit, or whose rate is unknown.
    pub const ALONE: Self = Self { window: None, carries: None, streams: None };
}

facts! {
    /// Windows and buffers.
    Windows {
        /// Goodput / what the receive window carries per round trip; with the window, the round trip, that rate and, if several, the number of
        /// streams.
        OfWindowRate = "of_window_rate" { window: Bytes, round_trip: Nanos, carries: Bps, streams: Option<u64> },
        /// Goodput / what the data in flight carries per round trip; with the bytes in flight, the round trip, that rate and, if several, the number
        /// of streams.
        OfFlightRate = "of_flight_rate" { in_flight: Bytes, round_trip: Nanos, carries: Bps, streams: Option<u64> },
        /// Share of samples in which the receive window is full; with the window and its rate, if it is not the limit, and, if several, the number of
        /// streams.
        WindowFull = "window_full" { window: Option<Bytes>, carries: Option<Bps>, streams: Option<u64> },
        /// Share of samples in which the receive window of `host` is below half of its largest; with the largest and the smallest.
        WindowShrunk = "window_shrunk" { largest: Bytes, smallest: Bytes },
        /// Bytes received that the program on `host` had not read, median; with the receive window.
        Unread = "unread" { window: Bytes },
        /// Share of samples in which the congestion window of the congestion control `name` is full.
        CongestionWindowFull = "congestion_window_full",
        /// Share of samples in which the congestion window is full, so few that both windows have room; with the receive window.
        WindowsHaveRoom = "windows_have_room" { window: Bytes },
        /// Share of samples in which the sender had nothing to send, though both windows had room.
        Starved = "starved",
        /// Time limited by the receive window, as counted by the kernel / busy time.
        KernelCountsWindow = "kernel_counts_window",
        /// Time limited by the send buffer, as counted by the kernel / busy time.
        KernelCountsSendBuffer = "kernel_counts_send_buffer",
        /// Payload in flight / send buffer; with the buffer.
        BufferPayload = "buffer_payload" { buffer: Bytes },
        /// Send buffer; with a stream's goodput, the idle round trip, the buffer that this goodput needs and, if several, the number of streams.
        BufferBelowNeed = "buffer_below_need" { goodput: Bps, round_trip: Nanos, needed: Bytes, streams: Option<u64> },
        /// What a window of few segments carries if acknowledgements are delayed until the next segment (RFC 9293, section 3.8.6.3).
        DelayedAckRate = "delayed_ack_rate",
        /// Receive window, smaller than a segment; with the segment size.
        NoWholeSegment = "no_whole_segment" { segment: Bytes },
        /// Part of the round trip that the other direction's queue adds.
        OtherWayQueue = "other_way_queue",
    }

    /// Settings of the hosts, and what the connection negotiated.
    Settings {
        /// Maximum of the setting `name` at `host`.
        SettingMaximum = "setting_maximum",
        /// Receive buffer of `host`, below what `tcp_rmem` allows; with that maximum.
        BufferBelowMaximum = "buffer_below_maximum" { maximum: Bytes },
        /// 0: `tcp_moderate_rcvbuf` is off at `host`.
        AutotuningSetting = "autotuning_setting",
        /// 0: `tcp_window_scaling` is off at `host`.
        ScalingSetting = "scaling_setting",
        /// 0: the connection has no window scaling, though both ends have it enabled.
        ScalingRemoved = "scaling_removed",
        /// 0: the connection has no window scaling.
        ScalingAgreed = "scaling_agreed",
        /// 1 or 0: whether `host` uses window scaling on this connection.
        ScalingUsed = "scaling_used",
        /// Receive window of `host` as the sender reads it.
        WindowAsRead = "window_as_read",
    }

    /// Goodput compared with what is possible.
    Rates {
        /// Goodput / ceiling; with the goodput and the ceiling; `name` is what sets the ceiling.
        OfCeiling = "of_ceiling" { goodput: Bps, ceiling: Bps },
        /// Goodput / ceiling for datagrams of this size; with the goodput and the ceiling.
        OfCeilingInDatagrams = "of_ceiling_in_datagrams" { goodput: Bps, ceiling: Bps },
        /// Goodput / ceiling, if the goodput is more than the device can carry.
        AboveCeiling = "above_ceiling",
        /// Goodput / requested rate; with the goodput and that rate; `name` is the setting that requests it.
        OfAskedRate = "of_asked_rate" { goodput: Bps, asked: Bps },
        /// Lower / upper quartile of the goodput; with the goodput.
        Steady = "steady" { goodput: Bps },
    }

    /// Delay added by load.
    Queues {
        /// Round trip added by load, 95th percentile.
        LoadAdds = "load_adds",
        /// Round trip added by load, 95th percentile, too little for a full queue.
        NoQueue = "no_queue",
        /// One-way delay of the data added by load, median; with the idle round trip.
        QueueOneWay = "queue_one_way" { idle: Option<Nanos> },
        /// Round trip added by load, median; with the idle round trip.
        QueueRoundTrip = "queue_round_trip" { idle: Nanos },
        /// One-way delay of the acknowledgements added by load, median; with that of the data.
        QueueWayBack = "queue_way_back" { there: Option<Nanos> },
        /// One-way delay of the acknowledgements added by load, 95th percentile; with that of the data.
        QueueWayBackP95 = "queue_way_back_p95" { there: Option<Nanos> },
    }

    /// Losses, and their effect and that of marks on the congestion window.
    Losses {
        /// Retransmitted segments; with the segments that carried data, and retransmitted / those.
        Retransmitted = "retransmitted" { segments: u64, share: Share },
        /// Retransmitted segments that the receiver already had (DSACK, RFC 2883).
        NeedlessRetransmits = "needless_retransmits",
        /// Retransmitted / delivered segments.
        RetransmittedShare = "retransmitted_share",
        /// Segments retransmitted while nothing arrived.
        RetransmittedMeanwhile = "retransmitted_meanwhile",
        /// Variation of the rates (in flight / round trip) at which losses occurred, at a threshold; with the number of losses and the median rate.
        LossesAtOneRate = "losses_at_one_rate" { losses: u64, rate: Bps },
        /// Variation of the rates at which losses occurred, at any rate; with the number of losses; `name` is the congestion control.
        LossesAtAnyRate = "losses_at_any_rate" { losses: u64 },
        /// Segments lost per loss event, median; with the number of losses.
        LostEach = "lost_each" { losses: u64 },
        /// Share of the segments in flight that were lost when slow start reached the bottleneck; with the segments.
        Overshoot = "overshoot" { segments: u64 },
        /// Round trip above the minimum just before losses, median; with the minimum.
        QueueBeforeLosses = "queue_before_losses" { least: Nanos },
        /// Segments with a Congestion Experienced mark / delivered segments; with the marked and the delivered.
        Marked = "marked" { marked: u64, delivered: u64 },
        /// Window reductions of the congestion control `name` for marks; with those for losses.
        WindowReductions = "window_reductions" { for_losses: u64 },
    }

    /// Changes of the path.
    Changes {
        /// Lower / higher rate before and after a moment; with the rate before, the rate after, the moment, and distance / scatter.
        RateStep = "rate_step" { before: Bps, after: Bps, at: Nanos, clearness: Count },
        /// Shorter / longer round trip before and after a moment; with the round trip before, that after, the moment, and distance / scatter.
        RoundTripStep = "round_trip_step" { before: Nanos, after: Nanos, at: Nanos, clearness: Count },
        /// Goodput / highest delivery rate seen by the sender's kernel; with the goodput and that rate.
        OfPeakRate = "of_peak_rate" { goodput: Bps, peak: Bps },
    }

    /// Where the time went.
    Time {
        /// Share of the time in which the connection waited for the program on `host`; with that time and the number of waits.
        WaitedForProgram = "waited_for_program" { time: Nanos, waits: u64 },
        /// Share of the time in round trips between requests and responses; with that time, their number and the round trip.
        TurnsTook = "turns_took" { time: Nanos, turns: u64, round_trip: Nanos },
        /// Times that the data in flight stopped at the same amount until the other program sent something; with that amount.
        StoppedAtAmount = "stopped_at_amount" { amount: Bytes },
        /// Retransmissions at the end that were never acknowledged; with how long they went on.
        SentInVain = "sent_in_vain" { time: Nanos },
        /// SYNs sent to `host`; with how long it was tried.
        SynsSent = "syns_sent" { time: Nanos },
        /// Share of the time in which the connection stayed open after the last request and response; with that time.
        LeftOpen = "left_open" { time: Nanos },
        /// Bytes missing from the capture / bytes that passed.
        CaptureLacks = "capture_lacks",
        /// Share of the time in which the timeline is in the state `name`.
        TimeShare = "time_share" { time: Option<Nanos> },
        /// Share of the time in which the kernel of the sender `host` had nothing to send.
        NothingToSend = "nothing_to_send",
        /// Share of the time in which the program of the receiver `host` did not read, by its own choice.
        ReadingPaused = "reading_paused",
        /// Share of samples in which less than a segment was held back though both windows had room; with its bytes and the segment size.
        SmallWriteHeld = "small_write_held" { held: Bytes, segment: Bytes },
    }

    /// What probes and acknowledgements show about the path.
    Path {
        /// Share of the time in which a queue stood on the path.
        QueuedMostly = "queued_mostly",
        /// Share of the probes under load that met a queue.
        ProbesQueued = "probes_queued",
        /// Longest time in which no probe was answered.
        ProbesSilent = "probes_silent",
        /// Share of the time spent in loss recovery, by fast retransmit or after a timeout.
        Repairing = "repairing",
        /// 0: the connection has no selective acknowledgements.
        SackUsed = "sack_used",
        /// 0: the connection has no timestamps.
        TimestampsUsed = "timestamps_used",
        /// Rate by a model of Reno for such losses (Mathis et al.); with window reductions after slow start / segments delivered, and the goodput.
        MathisRate = "mathis_rate" { loss: Share, goodput: Bps },
        /// Rate by CUBIC's response function for such losses (RFC 9438, section 5); with window reductions after slow start / segments delivered, and
        /// the goodput.
        CubicRate = "cubic_rate" { loss: Share, goodput: Bps },
        /// Reordering events / segments delivered; with the events; `name` is the congestion control.
        Reordered = "reordered" { times: u64 },
        /// Share of probes lost under load; with the share lost before it.
        ProbesLost = "probes_lost" { before: Option<Share> },
    }

    /// Times in which nothing got through.
    Gaps {
        /// Retransmissions of full-size segments, none of which was acknowledged; with the segment size.
        FullSegmentsLost = "full_segments_lost" { segment: Bytes },
        /// Longest round trip of a small probe; `samples` are the answered ones.
        ProbesAnswered = "probes_answered",
        /// Segment size, which no ICMP message reduced.
        SegmentSizeKept = "segment_size_kept",
        /// Payload of a segment that was never acknowledged; with the largest that was.
        LargerThanPassed = "larger_than_passed" { passed: Bytes },
        /// Longest time in which nothing arrived; with that time in round trips.
        Gap = "gap" { round_trips: u64 },
        /// Longest time in which nothing arrived / whole time.
        GapShare = "gap_share",
        /// Probes answered while nothing arrived; `samples` are the unanswered ones.
        ProbesMeanwhile = "probes_meanwhile",
    }

    /// The beginning of a transfer.
    Beginning {
        /// Round trips that the transfer took; with its bytes, the idle round trip and the goodput.
        TookRoundTrips = "took_round_trips" { transferred: Bytes, round_trip: Nanos, goodput: Bps },
        /// Requested window; `name` is the setting that requests it.
        WindowAsked = "window_asked",
        /// 1: the congestion window was still in slow start.
        StillInSlowStart = "still_in_slow_start",
        /// Congestion window at the end, segments; with the window at the beginning.
        WindowGrew = "window_grew" { from: u64 },
    }

    /// Processors and programs of the hosts.
    Processors {
        /// Processor time of a sending thread that uses all of its processor / wall clock.
        SendingThread = "sending_thread",
        /// Processor time of a receiving thread that uses all of its processor / wall clock.
        ReceivingThread = "receiving_thread",
        /// Processor time of the busiest thread / wall clock; `name` is how it moves the data.
        BusiestThread = "busiest_thread",
        /// Time in which the sending thread of `host` was running or runnable / time; with the part in which it ran.
        SendingThreadReady = "sending_thread_ready" { ran: Share },
        /// Time in which the receiving thread of `host` was running or runnable / time; with the part in which it ran.
        ReceivingThreadReady = "receiving_thread_ready" { ran: Share },
        /// Share of the time in which its control group's quota throttled the process on `host`.
        Throttled = "throttled",
        /// Share of the processor time of `host` taken by its hypervisor (steal).
        Stolen = "stolen",
        /// Longest time in which the receiving process took no sample; with the interval.
        ReceiverPaused = "receiver_paused" { interval: Nanos },
        /// Longest time in which a host paused a program of the test, if that may explain the result: the finding is then at most `low`.
        HostPaused = "host_paused",
        /// 1: the data went through an SSH connection.
        ThroughTunnel = "through_tunnel",
    }

    /// Datagrams.
    Datagrams {
        /// Datagram rate without excess loss; with the time, the datagrams lost and the share allowed.
        RateHeld = "rate_held" { time: Nanos, lost: u64, allowed: Share },
        /// Next higher rate, which lost datagrams; with the lost, the sent, and lost / sent.
        LostAtRate = "lost_at_rate" { lost: u64, sent: u64, share: Share },
        /// Datagrams that arrived, all of those sent; with the goodput and the payload of each.
        AllArrived = "all_arrived" { goodput: Bps, payload: Bytes },
        /// Datagrams lost; with those sent, and lost / sent.
        DatagramsLost = "datagrams_lost" { sent: u64, share: Share },
        /// Lost / sent, within the allowed loss `at_most`; with the lost and the sent.
        LostAsAllowed = "lost_as_allowed" { lost: u64, sent: u64 },
        /// Lost datagrams that the socket of `host` dropped; with all lost.
        DroppedBySocket = "dropped_by_socket" { lost: u64 },
        /// Packets that the device `name` of `host` dropped; with the datagrams lost, or the segments retransmitted for TCP.
        DroppedByDevice = "dropped_by_device" { missing: u64 },
        /// Packets that the kernel of `host` dropped from its backlog; with the segments retransmitted for TCP.
        DroppedByBacklog = "dropped_by_backlog" { retransmitted: Option<u64> },
        /// Segments that reached `host` but found no room in its sockets; with the segments retransmitted.
        DroppedByStack = "dropped_by_stack" { retransmitted: u64 },
        /// Datagrams that `host` skipped because it was behind schedule.
        Skipped = "skipped",
        /// Rate received; with the rate sent and the datagrams lost.
        Received = "received" { sent: Bps, lost: u64 },
        /// Rate sent / requested rate; with both rates.
        SentOfAsked = "sent_of_asked" { sent: Bps, asked: Bps },
        /// Rate sent as fast as possible.
        SentUnbounded = "sent_unbounded",
        /// Delay above the minimum, median of the datagrams: a queue.
        DatagramQueue = "datagram_queue",
        /// Delay above the minimum, 95th percentile.
        DatagramDelay = "datagram_delay",
    }

    /// Sockets observed from one end.
    Sockets {
        /// Unread data / what the socket of `host` can hold, median; with the unread bytes.
        UnreadData = "unread_data" { unread: Bytes },
        /// Unread data / what the socket of `host` can hold, so little that the program keeps up; with the unread bytes.
        ReaderKeepsUp = "reader_keeps_up" { unread: Bytes },
        /// Median round trip above the minimum, both of the connection's own segments as the kernel reports them; with that round trip and the
        /// minimum.
        RoundTripAboveLeast = "round_trip_above_least" { round_trip: Nanos, least: Nanos },
        /// Goodput / what the receive window of `host`, which is not the limit, would carry; with the window, the round trip and that rate.
        WindowHasRoom = "window_has_room" { window: Bytes, round_trip: Nanos, carries: Bps },
        /// Segments that arrived out of order.
        CameOutOfOrder = "came_out_of_order",
    }

    /// Experiments after a test.
    Experiments {
        /// Losses of a short flow after the test, paced below the test's goodput; with that rate, and the losses expected from those of the test.
        LossesWhilePaced = "losses_while_paced" { rate: Bps, expected: Count },
        /// Goodput of more connections after the test / goodput of the test; with their goodput, their number, and the round trip they added.
        MoreStreams = "more_streams" { goodput: Bps, streams: u64, queue: Option<Nanos> },
        /// Delay added by a burst of datagrams after the test; with the round trip, their number, how many were lost, and the rate at which they
        /// arrived.
        BurstDelay = "burst_delay" { round_trip: Nanos, sent: u64, lost: u64, arrived: Bps },
    }
}
