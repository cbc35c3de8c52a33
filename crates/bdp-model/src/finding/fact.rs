//! Facts: what may be observed, each with the names and units of its further numbers.

use super::named::named;
use super::quantity::{Quantity, Unit};
use crate::units::Nanos;

/// What may be observed, in kinds: each fact with its name in JSON, and its further numbers in their order, those that may be absent last. A fact is a variant of
/// [`Fact`], and a type of that name whose fields are these numbers.
macro_rules! facts {
    ($(
        $(#[doc = $about:literal])+
        $kind:ident { $(
            $(#[doc = $doc:literal])+
            $fact:ident = $name:literal $({ $($figure:ident: $type:ty),+ })?,
        )+ }
    )+) => {
        named! {
            /// What was observed. After each stands its value, and after `with` the further ones, in their order.
            pub enum Fact { $($( $(#[doc = $doc])+ $fact = $name, )+)+ }
        }

        impl Fact {
            /// Names and units of the further numbers, in their order.
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

        /// Any fact with its further numbers, by kind.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum Observed { $( $(#[doc = $about])+ $kind($kind), )+ }

        impl Observed {
            /// Of a fact and its further numbers as they are stored; `None` if some are absent that the fact declares.
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

/// A fact and its further numbers, by name.
pub trait Figures: Copy {
    /// Which fact.
    const FACT: Fact;

    /// The numbers as they are stored.
    fn stored(self) -> Vec<Quantity>;

    /// Of the numbers that are stored; `None` if one is absent that is always there.
    fn read(with: &[Quantity]) -> Option<Self>;
}

/// One further number of a fact.
trait Figure: Sized {
    const UNIT: Unit;

    fn stored(self) -> Option<Quantity>;

    fn read(stored: Option<Quantity>) -> Option<Self>;
}

/// Numbers of one unit as a type.
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

/// A number of things that may be a fraction, as one that is expected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Count(pub f64);

figure!(Bytes, Bytes, |bytes| bytes.0, Bytes);
figure!(Bps, Bps, |rate| rate.0, Bps);
figure!(Share, Share, |share| share.0, Share);
figure!(Count, Count, |count| count.0, Count);
figure!(u64, Count, |count| count as f64, |value| value.round() as u64);
figure!(Nanos, Ns, |time| time.0 as f64, |value| Nanos(value as u64));

/// A number that may be absent: those behind it are then, too.
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
    /// Where it is the limit, or no rate is known that it would carry.
    pub const ALONE: Self = Self { window: None, carries: None, streams: None };
}

facts! {
    /// Windows and buffers.
    Windows {
        /// Goodput / what the receive window carries in a round trip; with the window, the round trip, that rate, and of several streams, each of which has such a window, their number.
        OfWindowRate = "of_window_rate" { window: Bytes, round_trip: Nanos, carries: Bps, streams: Option<u64> },
        /// Goodput / what is in flight carries in a round trip; with the bytes in flight, the round trip, that rate, and of several streams, each of which has so much in flight, their number.
        OfFlightRate = "of_flight_rate" { in_flight: Bytes, round_trip: Nanos, carries: Bps, streams: Option<u64> },
        /// Share of samples in which the receive window is full; with the window and what it would carry, where it is not the limit, and of several streams their number.
        WindowFull = "window_full" { window: Option<Bytes>, carries: Option<Bps>, streams: Option<u64> },
        /// Share of samples in which the receive window of `host` is below half of its largest; with the largest and the smallest.
        WindowShrunk = "window_shrunk" { largest: Bytes, smallest: Bytes },
        /// Bytes that had come and the program on `host` had not read, median; with the receive window.
        Unread = "unread" { window: Bytes },
        /// Share of samples in which the congestion window of the congestion control `name` is full.
        CongestionWindowFull = "congestion_window_full",
        /// The same where it is not the limit; with the receive window, which has room as well.
        WindowsHaveRoom = "windows_have_room" { window: Bytes },
        /// Share of samples in which the sender had nothing to send, though both windows had room.
        Starved = "starved",
        /// The kernel's count of the time limited by the receive window / busy time.
        KernelCountsWindow = "kernel_counts_window",
        /// The kernel's count of the time limited by the send buffer / busy time.
        KernelCountsSendBuffer = "kernel_counts_send_buffer",
        /// Payload in flight / send buffer; with the buffer.
        BufferPayload = "buffer_payload" { buffer: Bytes },
        /// Send buffer; with the goodput of a stream, the idle round trip, what that goodput needs in it, and of several streams their number.
        BufferBelowNeed = "buffer_below_need" { goodput: Bps, round_trip: Nanos, needed: Bytes, streams: Option<u64> },
        /// What a window of few segments carries where acknowledgements wait for the next one (RFC 9293, section 3.8.6.3).
        DelayedAckRate = "delayed_ack_rate",
        /// Receive window, which holds no whole segment; with the segment size.
        NoWholeSegment = "no_whole_segment" { segment: Bytes },
        /// Queue of the other direction in the round trip.
        OtherWayQueue = "other_way_queue",
    }

    /// How hosts are set, and what a connection agreed on.
    Settings {
        /// The largest value of the setting `name` at `host`.
        SettingMaximum = "setting_maximum",
        /// Receive buffer of `host`, which is below what `tcp_rmem` allows; with that.
        BufferBelowMaximum = "buffer_below_maximum" { maximum: Bytes },
        /// 0: `tcp_moderate_rcvbuf` is off at `host`.
        AutotuningSetting = "autotuning_setting",
        /// 0: `tcp_window_scaling` is off at `host`.
        ScalingSetting = "scaling_setting",
        /// 0: the connection has no window scaling, though both ends have it on.
        ScalingRemoved = "scaling_removed",
        /// 0: the connection has no window scaling.
        ScalingAgreed = "scaling_agreed",
        /// 1 or 0: whether `host` uses window scaling on this connection.
        ScalingUsed = "scaling_used",
        /// Receive window as the sender `host` reads it.
        WindowAsRead = "window_as_read",
    }

    /// Goodput, beside what it might be.
    Rates {
        /// Goodput / ceiling; with the goodput, the ceiling; `name` is what it is the ceiling of.
        OfCeiling = "of_ceiling" { goodput: Bps, ceiling: Bps },
        /// The same of datagrams of this size.
        OfCeilingInDatagrams = "of_ceiling_in_datagrams" { goodput: Bps, ceiling: Bps },
        /// Goodput / ceiling, where that is more than the device can carry.
        AboveCeiling = "above_ceiling",
        /// Goodput / rate asked for; with the goodput, that rate; `name` is the setting that asks.
        OfAskedRate = "of_asked_rate" { goodput: Bps, asked: Bps },
        /// Lower / upper quartile of the goodput; with the goodput.
        Steady = "steady" { goodput: Bps },
    }

    /// Delay that load adds.
    Queues {
        /// What load adds to the round trip at the 95th percentile.
        LoadAdds = "load_adds",
        /// The same where it is so little that no queue was full.
        NoQueue = "no_queue",
        /// What load adds to the median one-way delay of the data; with the idle round trip.
        QueueOneWay = "queue_one_way" { idle: Option<Nanos> },
        /// What load adds to the median round trip; with the idle one.
        QueueRoundTrip = "queue_round_trip" { idle: Nanos },
        /// What load adds to the median delay of the way of the acknowledgements; with what it adds to the data's own way.
        QueueWayBack = "queue_way_back" { there: Option<Nanos> },
        /// The same at the 95th percentile of both ways.
        QueueWayBackP95 = "queue_way_back_p95" { there: Option<Nanos> },
    }

    /// Losses, and what they and marks do to a congestion window.
    Losses {
        /// Retransmitted segments; with those that carried the data, and retransmitted / those.
        Retransmitted = "retransmitted" { segments: u64, share: Share },
        /// Of the retransmitted such as the receiver had already (DSACK, RFC 2883).
        NeedlessRetransmits = "needless_retransmits",
        /// Retransmitted / delivered segments.
        RetransmittedShare = "retransmitted_share",
        /// Segments retransmitted while nothing arrived.
        RetransmittedMeanwhile = "retransmitted_meanwhile",
        /// Variation of the rates (in flight / round trip) at which losses came, at a threshold; with the number of losses, the median rate.
        LossesAtOneRate = "losses_at_one_rate" { losses: u64, rate: Bps },
        /// The same, at any rate; `name` is the congestion control.
        LossesAtAnyRate = "losses_at_any_rate" { losses: u64 },
        /// Segments that a loss cost at a time, median; with the number of losses.
        LostEach = "lost_each" { losses: u64 },
        /// Share of the segments in flight that were lost when slow start met a threshold; with the segments.
        Overshoot = "overshoot" { segments: u64 },
        /// By how much round trips were above the least just before losses, median; with the least.
        QueueBeforeLosses = "queue_before_losses" { least: Nanos },
        /// Segments with a Congestion Experienced mark / delivered ones; with the marked, the delivered.
        Marked = "marked" { marked: u64, delivered: u64 },
        /// Times that the congestion control `name` reduced its window for marks; with the times that it did so for losses.
        WindowReductions = "window_reductions" { for_losses: u64 },
    }

    /// What changed on the way.
    Changes {
        /// Lower / higher rate before and after a moment; with the rate before, the rate after, the moment, distance / scatter.
        RateStep = "rate_step" { before: Bps, after: Bps, at: Nanos, clearness: Count },
        /// Shorter / longer round trip before and after a moment; likewise.
        RoundTripStep = "round_trip_step" { before: Nanos, after: Nanos, at: Nanos, clearness: Count },
        /// Goodput / highest rate of delivery that the sender's kernel saw; with the goodput, that rate.
        OfPeakRate = "of_peak_rate" { goodput: Bps, peak: Bps },
    }

    /// What the time went to.
    Time {
        /// Share of the time in which the connection waited for the program on `host`; with that time, and into how many waits it falls.
        WaitedForProgram = "waited_for_program" { time: Nanos, waits: u64 },
        /// Share of the time that went to round trips of questions and answers; with that time, their number, and the round trip.
        TurnsTook = "turns_took" { time: Nanos, turns: u64, round_trip: Nanos },
        /// Times that what is in flight stopped at the same amount until the other program sent something; with that amount.
        StoppedAtAmount = "stopped_at_amount" { amount: Bytes },
        /// Times that data was sent again in vain at the end; with for how long.
        SentInVain = "sent_in_vain" { time: Nanos },
        /// SYNs that were sent to `host`; with for how long it was tried.
        SynsSent = "syns_sent" { time: Nanos },
        /// Share of the time in which nothing was asked or answered any more, and the connection was left open; with that time.
        LeftOpen = "left_open" { time: Nanos },
        /// Bytes that the capture lacks / those that passed.
        CaptureLacks = "capture_lacks",
        /// Share of the time in which the state `name` of the time line holds.
        TimeShare = "time_share" { time: Option<Nanos> },
        /// Share of the time in which the kernel of the sender `host` had nothing to send.
        NothingToSend = "nothing_to_send",
        /// Share of the time in which the program of the receiver `host` did not read, of its own accord.
        ReadingPaused = "reading_paused",
        /// Share of samples in which less than a segment was held back though both windows had room; with its bytes, the segment size.
        SmallWriteHeld = "small_write_held" { held: Bytes, segment: Bytes },
    }

    /// What probes and acknowledgements show of a path.
    Path {
        /// Share of the time in which a queue stood on the path.
        QueuedMostly = "queued_mostly",
        /// Share of the probes under load that met a queue.
        ProbesQueued = "probes_queued",
        /// The longest time in which no probe was answered.
        ProbesSilent = "probes_silent",
        /// Share of the time in which losses were repaired, by fast retransmit or after a timeout.
        Repairing = "repairing",
        /// 0: the connection has no selective acknowledgements.
        SackUsed = "sack_used",
        /// 0: the connection has no timestamps.
        TimestampsUsed = "timestamps_used",
        /// What a model of Reno gives for such losses (Mathis et al.); with the losses after slow start, in times that they reduced the window, / segments delivered, and the goodput.
        MathisRate = "mathis_rate" { loss: Share, goodput: Bps },
        /// What CUBIC's response function gives for such losses (RFC 9438, section 5); likewise.
        CubicRate = "cubic_rate" { loss: Share, goodput: Bps },
        /// Times that reordering was seen / segments delivered; with the times; `name` is the congestion control.
        Reordered = "reordered" { times: u64 },
        /// Share of probes lost under load; with the share before it.
        ProbesLost = "probes_lost" { before: Option<Share> },
    }

    /// Times in which nothing came through.
    Gaps {
        /// Retransmissions of full segments, none of which was acknowledged; with the segment size.
        FullSegmentsLost = "full_segments_lost" { segment: Bytes },
        /// The longest that a small probe took; `samples` are those answered.
        ProbesAnswered = "probes_answered",
        /// The segment size, which no ICMP message lowered.
        SegmentSizeKept = "segment_size_kept",
        /// Payload of a segment that was never acknowledged; with the largest that was.
        LargerThanPassed = "larger_than_passed" { passed: Bytes },
        /// The longest time in which nothing arrived; with round trips of it.
        Gap = "gap" { round_trips: u64 },
        /// The same / the whole time.
        GapShare = "gap_share",
        /// Probes answered while nothing arrived; `samples` are those that were not.
        ProbesMeanwhile = "probes_meanwhile",
    }

    /// The beginning of a transfer.
    Beginning {
        /// Round trips that the transfer took; with its bytes, the idle round trip, the goodput.
        TookRoundTrips = "took_round_trips" { transferred: Bytes, round_trip: Nanos, goodput: Bps },
        /// Window that was asked for; `name` is the setting that asks.
        WindowAsked = "window_asked",
        /// 1: the congestion window had not left slow start.
        StillInSlowStart = "still_in_slow_start",
        /// Congestion window at the end, segments; with that at the beginning.
        WindowGrew = "window_grew" { from: u64 },
    }

    /// Processors and programs of hosts.
    Processors {
        /// Processor time of a sending thread / wall clock, of a thread that has none left.
        SendingThread = "sending_thread",
        /// The same of a receiving thread.
        ReceivingThread = "receiving_thread",
        /// Processor time of the busiest thread / wall clock; `name` is how it moves bytes.
        BusiestThread = "busiest_thread",
        /// Time in which the sending thread of `host` ran or was ready to / time; with the part in which it ran.
        SendingThreadReady = "sending_thread_ready" { ran: Share },
        /// The same of the receiving thread.
        ReceivingThreadReady = "receiving_thread_ready" { ran: Share },
        /// Share of the time in which the quota of its control group held back the process on `host`.
        Throttled = "throttled",
        /// Share of the processor time of `host` that its hypervisor took.
        Stolen = "stolen",
        /// The longest that the receiving process took no sample; with the interval.
        ReceiverPaused = "receiver_paused" { interval: Nanos },
        /// The longest that a host kept a program of the test from running, where what is seen may be of that: then the finding is `low` at most.
        HostPaused = "host_paused",
        /// 1: data went through a connection of ssh's.
        ThroughTunnel = "through_tunnel",
    }

    /// Datagrams.
    Datagrams {
        /// Rate of datagrams that was held; with for how long, how many were lost, and the share that was allowed.
        RateHeld = "rate_held" { time: Nanos, lost: u64, allowed: Share },
        /// Next rate above it, which lost; with the lost, the sent, lost / sent.
        LostAtRate = "lost_at_rate" { lost: u64, sent: u64, share: Share },
        /// Datagrams that came, which are all; with the goodput, the payload of each.
        AllArrived = "all_arrived" { goodput: Bps, payload: Bytes },
        /// Datagrams lost; with those sent, lost / sent.
        DatagramsLost = "datagrams_lost" { sent: u64, share: Share },
        /// Lost / sent, where no more was allowed than `at_most`; with the lost, the sent.
        LostAsAllowed = "lost_as_allowed" { lost: u64, sent: u64 },
        /// Of the lost such as the socket of `host` dropped; with the lost.
        DroppedBySocket = "dropped_by_socket" { lost: u64 },
        /// Packets that the device `name` of `host` dropped; with the datagrams lost, or of TCP the segments retransmitted.
        DroppedByDevice = "dropped_by_device" { missing: u64 },
        /// Packets that the kernel of `host` dropped of its backlog; of TCP with the segments retransmitted.
        DroppedByBacklog = "dropped_by_backlog" { retransmitted: Option<u64> },
        /// Segments that had come to `host` and found no room in its sockets; with the segments retransmitted.
        DroppedByStack = "dropped_by_stack" { retransmitted: u64 },
        /// Datagrams that `host` skipped because it was late.
        Skipped = "skipped",
        /// Rate received; with the rate sent, and the datagrams lost.
        Received = "received" { sent: Bps, lost: u64 },
        /// Sent / asked rate; with the rate sent, the rate asked for.
        SentOfAsked = "sent_of_asked" { sent: Bps, asked: Bps },
        /// Rate sent as fast as possible.
        SentUnbounded = "sent_unbounded",
        /// Delay above the least of half of the datagrams: a queue.
        DatagramQueue = "datagram_queue",
        /// Delay above the least at the 95th percentile.
        DatagramDelay = "datagram_delay",
    }

    /// Sockets that are watched from one end.
    Sockets {
        /// Data that was received and not read / what the socket of `host` holds, median; with the bytes.
        UnreadData = "unread_data" { unread: Bytes },
        /// The same where so little waits that the program reads what comes.
        ReaderKeepsUp = "reader_keeps_up" { unread: Bytes },
        /// Median round trip above the least that the kernel remembers, by the connection's own segments; with that round trip, the least.
        RoundTripAboveLeast = "round_trip_above_least" { round_trip: Nanos, least: Nanos },
        /// Goodput / what the receive window of `host` would carry, which is not the limit; with the window, the round trip, that rate.
        WindowHasRoom = "window_has_room" { window: Bytes, round_trip: Nanos, carries: Bps },
        /// Segments that came out of order.
        CameOutOfOrder = "came_out_of_order",
    }

    /// Experiments after a test.
    Experiments {
        /// Losses of a short flow after the test that was held below its goodput; with that rate, and the losses that those of the test lead to expect.
        LossesWhilePaced = "losses_while_paced" { rate: Bps, expected: Count },
        /// Goodput of more connections after the test / goodput of the test; with their goodput, their number, and what they added to the round trip.
        MoreStreams = "more_streams" { goodput: Bps, streams: u64, queue: Option<Nanos> },
        /// Delay that a burst of datagrams after the test added; with the round trip, their number, how many were lost, and the rate at which they arrived.
        BurstDelay = "burst_delay" { round_trip: Nanos, sent: u64, lost: u64, arrived: Bps },
    }
}
