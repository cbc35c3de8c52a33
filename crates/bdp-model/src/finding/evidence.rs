//! What was observed: a fact, its numbers with their units, the predicate that they meet and the samples that do.

use serde::{Deserialize, Serialize};

use super::named::named;
use crate::units::Nanos;

named! {
    /// What was observed. After each stands its value, and after `with` the further ones, in their order.
    pub enum Fact {
        /// Goodput / what the receive window carries in a round trip; with the window, the round trip, that rate, and of several streams, each of which has such a window, their number.
        OfWindowRate = "of_window_rate",
        /// Goodput / what is in flight carries in a round trip; with the bytes in flight, the round trip, that rate, and of several streams, each of which has so much in flight, their number.
        OfFlightRate = "of_flight_rate",
        /// Share of samples in which the receive window is full; with the window and what it would carry, where it is not the limit, and of several streams their number.
        WindowFull = "window_full",
        /// Share of samples in which the receive window of `host` is below half of its largest; with the largest and the smallest.
        WindowShrunk = "window_shrunk",
        /// Bytes that had come and the program on `host` had not read, median; with the receive window.
        Unread = "unread",
        /// Share of samples in which the congestion window of the congestion control `name` is full.
        CongestionWindowFull = "congestion_window_full",
        /// The same where it is not the limit; with the receive window, which has room as well.
        WindowsHaveRoom = "windows_have_room",
        /// Share of samples in which the sender had nothing to send, though both windows had room.
        Starved = "starved",
        /// The kernel's count of the time limited by the receive window / busy time.
        KernelCountsWindow = "kernel_counts_window",
        /// The kernel's count of the time limited by the send buffer / busy time.
        KernelCountsSendBuffer = "kernel_counts_send_buffer",
        /// Payload in flight / send buffer; with the buffer.
        BufferPayload = "buffer_payload",
        /// Send buffer; with the goodput of a stream, the idle round trip, what that goodput needs in it, and of several streams their number.
        BufferBelowNeed = "buffer_below_need",
        /// What a window of few segments carries where acknowledgements wait for the next one (RFC 9293, section 3.8.6.3).
        DelayedAckRate = "delayed_ack_rate",
        /// Receive window, which holds no whole segment; with the segment size.
        NoWholeSegment = "no_whole_segment",
        /// Queue of the other direction in the round trip.
        OtherWayQueue = "other_way_queue",
        /// The largest value of the setting `name` at `host`.
        SettingMaximum = "setting_maximum",
        /// Receive buffer of `host`, which is below what `tcp_rmem` allows; with that.
        BufferBelowMaximum = "buffer_below_maximum",
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

        /// Goodput / ceiling; with the goodput, the ceiling; `name` is what it is the ceiling of.
        OfCeiling = "of_ceiling",
        /// The same of datagrams of this size.
        OfCeilingInDatagrams = "of_ceiling_in_datagrams",
        /// Goodput / ceiling, where that is more than the device can carry.
        AboveCeiling = "above_ceiling",
        /// Goodput / rate asked for; with the goodput, that rate; `name` is the setting that asks.
        OfAskedRate = "of_asked_rate",
        /// Lower / upper quartile of the goodput; with the goodput.
        Steady = "steady",

        /// What load adds to the round trip at the 95th percentile.
        LoadAdds = "load_adds",
        /// The same where it is so little that no queue was full.
        NoQueue = "no_queue",
        /// What load adds to the median one-way delay of the data; with the idle round trip.
        QueueOneWay = "queue_one_way",
        /// What load adds to the median round trip; with the idle one.
        QueueRoundTrip = "queue_round_trip",
        /// What load adds to the median delay of the way of the acknowledgements; with what it adds to the data's own way.
        QueueWayBack = "queue_way_back",
        /// The same at the 95th percentile of both ways.
        QueueWayBackP95 = "queue_way_back_p95",

        /// Retransmitted segments; with those that carried the data, and retransmitted / those.
        Retransmitted = "retransmitted",
        /// Of the retransmitted such as the receiver had already (DSACK, RFC 2883).
        NeedlessRetransmits = "needless_retransmits",
        /// Retransmitted / delivered segments.
        RetransmittedShare = "retransmitted_share",
        /// Segments retransmitted while nothing arrived.
        RetransmittedMeanwhile = "retransmitted_meanwhile",
        /// Variation of the rates (in flight / round trip) at which losses came, at a threshold; with the number of losses, the median rate.
        LossesAtOneRate = "losses_at_one_rate",
        /// The same, at any rate; `name` is the congestion control.
        LossesAtAnyRate = "losses_at_any_rate",
        /// Segments that a loss cost at a time, median; with the number of losses.
        LostEach = "lost_each",
        /// Share of the segments in flight that were lost when slow start met a threshold; with the segments.
        Overshoot = "overshoot",
        /// By how much round trips were above the least just before losses, median; with the least.
        QueueBeforeLosses = "queue_before_losses",
        /// Segments with a Congestion Experienced mark / delivered ones; with the marked, the delivered.
        Marked = "marked",
        /// Times that the congestion control `name` reduced its window for marks; with the times that it did so for losses.
        WindowReductions = "window_reductions",
        /// Lower / higher rate before and after a moment; with the rate before, the rate after, the moment, distance / scatter.
        RateStep = "rate_step",
        /// Shorter / longer round trip before and after a moment; likewise.
        RoundTripStep = "round_trip_step",
        /// Goodput / highest rate of delivery that the sender's kernel saw; with the goodput, that rate.
        OfPeakRate = "of_peak_rate",
        /// Share of the time in which the connection waited for the program on `host`; with that time, and into how many waits it falls.
        WaitedForProgram = "waited_for_program",
        /// Share of the time that went to round trips of questions and answers; with that time, their number, and the round trip.
        TurnsTook = "turns_took",
        /// Times that what is in flight stopped at the same amount until the other program sent something; with that amount.
        StoppedAtAmount = "stopped_at_amount",
        /// Times that data was sent again in vain at the end; with for how long.
        SentInVain = "sent_in_vain",
        /// SYNs that were sent to `host`; with for how long it was tried.
        SynsSent = "syns_sent",
        /// Share of the time in which nothing was asked or answered any more, and the connection was left open; with that time.
        LeftOpen = "left_open",
        /// Bytes that the capture lacks / those that passed.
        CaptureLacks = "capture_lacks",
        /// Share of the time in which the state `name` of the time line holds.
        TimeShare = "time_share",
        /// Share of the time in which the kernel of the sender `host` had nothing to send.
        NothingToSend = "nothing_to_send",
        /// Share of the time in which the program of the receiver `host` did not read, of its own accord.
        ReadingPaused = "reading_paused",
        /// Share of samples in which less than a segment was held back though both windows had room; with its bytes, the segment size.
        SmallWriteHeld = "small_write_held",
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
        MathisRate = "mathis_rate",
        /// What CUBIC's response function gives for such losses (RFC 9438, section 5); likewise.
        CubicRate = "cubic_rate",
        /// Times that reordering was seen / segments delivered; with the times; `name` is the congestion control.
        Reordered = "reordered",
        /// Share of probes lost under load; with the share before it.
        ProbesLost = "probes_lost",
        /// Retransmissions of full segments, none of which was acknowledged; with the segment size.
        FullSegmentsLost = "full_segments_lost",
        /// The longest that a small probe took; `samples` are those answered.
        ProbesAnswered = "probes_answered",
        /// The segment size, which no ICMP message lowered.
        SegmentSizeKept = "segment_size_kept",
        /// Payload of a segment that was never acknowledged; with the largest that was.
        LargerThanPassed = "larger_than_passed",
        /// The longest time in which nothing arrived; with round trips of it.
        Gap = "gap",
        /// The same / the whole time.
        GapShare = "gap_share",

        /// Probes answered while nothing arrived; `samples` are those that were not.
        ProbesMeanwhile = "probes_meanwhile",

        /// Round trips that the transfer took; with its bytes, the idle round trip, the goodput.
        TookRoundTrips = "took_round_trips",
        /// Window that was asked for; `name` is the setting that asks.
        WindowAsked = "window_asked",
        /// 1: the congestion window had not left slow start.
        StillInSlowStart = "still_in_slow_start",
        /// Congestion window at the end, segments; with that at the beginning.
        WindowGrew = "window_grew",

        /// Processor time of a sending thread / wall clock, of a thread that has none left.
        SendingThread = "sending_thread",
        /// The same of a receiving thread.
        ReceivingThread = "receiving_thread",
        /// Processor time of the busiest thread / wall clock; `name` is how it moves bytes.
        BusiestThread = "busiest_thread",
        /// Time in which the sending thread of `host` ran or was ready to / time; with the part in which it ran.
        SendingThreadReady = "sending_thread_ready",
        /// The same of the receiving thread.
        ReceivingThreadReady = "receiving_thread_ready",
        /// Share of the time in which the quota of its control group held back the process on `host`.
        Throttled = "throttled",
        /// Share of the processor time of `host` that its hypervisor took.
        Stolen = "stolen",
        /// The longest that the receiving process took no sample; with the interval.
        ReceiverPaused = "receiver_paused",
        /// The longest that a host kept a program of the test from running, where what is seen may be of that: then the finding is `low` at most.
        HostPaused = "host_paused",
        /// 1: data went through a connection of ssh's.
        ThroughTunnel = "through_tunnel",

        /// Rate of datagrams that was held; with for how long, how many were lost, and the share that was allowed.
        RateHeld = "rate_held",
        /// Next rate above it, which lost; with the lost, the sent, lost / sent.
        LostAtRate = "lost_at_rate",
        /// Datagrams that came, which are all; with the goodput, the payload of each.
        AllArrived = "all_arrived",
        /// Datagrams lost; with those sent, lost / sent.
        DatagramsLost = "datagrams_lost",
        /// Lost / sent, where no more was allowed than `at_most`; with the lost, the sent.
        LostAsAllowed = "lost_as_allowed",
        /// Of the lost such as the socket of `host` dropped; with the lost.
        DroppedBySocket = "dropped_by_socket",
        /// Packets that the device `name` of `host` dropped; with the datagrams lost, or of TCP the segments retransmitted.
        DroppedByDevice = "dropped_by_device",
        /// Packets that the kernel of `host` dropped of its backlog; of TCP with the segments retransmitted.
        DroppedByBacklog = "dropped_by_backlog",
        /// Segments that had come to `host` and found no room in its sockets; with the segments retransmitted.
        DroppedByStack = "dropped_by_stack",
        /// Datagrams that `host` skipped because it was late.
        Skipped = "skipped",
        /// Rate received; with the rate sent, and the datagrams lost.
        Received = "received",
        /// Sent / asked rate; with the rate sent, the rate asked for.
        SentOfAsked = "sent_of_asked",
        /// Rate sent as fast as possible.
        SentUnbounded = "sent_unbounded",
        /// Delay above the least of half of the datagrams: a queue.
        DatagramQueue = "datagram_queue",
        /// Delay above the least at the 95th percentile.
        DatagramDelay = "datagram_delay",

        /// Data that was received and not read / what the socket of `host` holds, median; with the bytes.
        UnreadData = "unread_data",
        /// The same where so little waits that the program reads what comes.
        ReaderKeepsUp = "reader_keeps_up",
        /// Median round trip above the least that the kernel remembers, by the connection's own segments; with that round trip, the least.
        RoundTripAboveLeast = "round_trip_above_least",
        /// Goodput / what the receive window of `host` would carry, which is not the limit; with the window, the round trip, that rate.
        WindowHasRoom = "window_has_room",
        /// Segments that came out of order.
        CameOutOfOrder = "came_out_of_order",
        /// Losses of a short flow after the test that was held below its goodput; with that rate, and the losses that those of the test lead to expect.
        LossesWhilePaced = "losses_while_paced",
        /// Goodput of more connections after the test / goodput of the test; with their goodput, their number, and what they added to the round trip.
        MoreStreams = "more_streams",
        /// Delay that a burst of datagrams after the test added; with the round trip, their number, how many were lost, and the rate at which they arrived.
        BurstDelay = "burst_delay",
    }
}

named! {
    /// The unit of a number.
    pub enum Unit {
        /// Bytes.
        Bytes = "bytes",
        /// Nanoseconds.
        Ns = "ns",
        /// Bit/s.
        Bps = "bps",
        /// A share: 1 is all.
        Share = "share",
        /// A number of things.
        Count = "count",
        /// 1 or 0, yes or no.
        Flag = "flag",
    }
}

/// A number with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quantity {
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
}

impl Quantity {
    /// Bytes.
    pub const fn bytes(value: f64) -> Self {
        Self { value, unit: Unit::Bytes }
    }

    /// A time.
    pub const fn time(value: Nanos) -> Self {
        Self { value: value.0 as f64, unit: Unit::Ns }
    }

    /// A rate, bit/s.
    pub const fn rate(bps: f64) -> Self {
        Self { value: bps, unit: Unit::Bps }
    }

    /// A share of one.
    pub const fn share(value: f64) -> Self {
        Self { value, unit: Unit::Share }
    }

    /// A number of things.
    pub const fn count(value: u64) -> Self {
        Self { value: value as f64, unit: Unit::Count }
    }
}

/// Samples of which some meet a predicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Samples {
    /// How many meet it.
    pub met: u64,
    /// Of how many.
    pub of: u64,
}

/// What was observed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// What.
    pub fact: Fact,
    /// The number that the predicate is about.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
    /// Further numbers, as [`Fact`] has them.
    pub with: Vec<Quantity>,
    /// The value is not below this: the threshold of the rule.
    pub at_least: Option<f64>,
    /// The value is not above this.
    pub at_most: Option<f64>,
    /// The samples that meet it, where it is a share of samples.
    pub samples: Option<Samples>,
    /// What it is of, where several things may be: a setting, a device, a congestion control.
    pub name: Option<String>,
    /// The host that it is of.
    pub host: Option<String>,
}

impl Evidence {
    /// Of a number with its unit; methods add the rest.
    pub const fn new(fact: Fact, Quantity { value, unit }: Quantity) -> Self {
        Self {
            fact,
            value,
            unit,
            with: Vec::new(),
            at_least: None,
            at_most: None,
            samples: None,
            name: None,
            host: None,
        }
    }

    /// Of bytes.
    pub const fn bytes(fact: Fact, value: f64) -> Self {
        Self::new(fact, Quantity::bytes(value))
    }

    /// Of a time.
    pub const fn time(fact: Fact, value: Nanos) -> Self {
        Self::new(fact, Quantity::time(value))
    }

    /// Of a rate, bit/s.
    pub const fn rate(fact: Fact, bps: f64) -> Self {
        Self::new(fact, Quantity::rate(bps))
    }

    /// Of a share of one.
    pub const fn share(fact: Fact, value: f64) -> Self {
        Self::new(fact, Quantity::share(value))
    }

    /// Of a number of things.
    pub const fn count(fact: Fact, value: u64) -> Self {
        Self::new(fact, Quantity::count(value))
    }

    /// Of yes or no.
    pub const fn flag(fact: Fact, holds: bool) -> Self {
        Self::new(fact, Quantity { value: if holds { 1.0 } else { 0.0 }, unit: Unit::Flag })
    }

    /// The threshold that the value is not below.
    #[must_use]
    pub const fn at_least(mut self, bound: f64) -> Self {
        self.at_least = Some(bound);
        self
    }

    /// The threshold that the value is not above.
    #[must_use]
    pub const fn at_most(mut self, bound: f64) -> Self {
        self.at_most = Some(bound);
        self
    }

    /// The samples that meet the predicate.
    #[must_use]
    pub const fn samples(mut self, met: u64, of: u64) -> Self {
        self.samples = Some(Samples { met, of });
        self
    }

    /// The samples of which the value is a share.
    #[must_use]
    pub fn share_of(self, samples: u64) -> Self {
        let met = (self.value * samples as f64).round() as u64;
        self.samples(met, samples)
    }

    /// A further number.
    #[must_use]
    pub fn with(mut self, quantity: Quantity) -> Self {
        self.with.push(quantity);
        self
    }

    /// Further numbers: a list of them, or an `Option`.
    #[must_use]
    pub fn with_all(mut self, quantities: impl IntoIterator<Item = Quantity>) -> Self {
        self.with.extend(quantities);
        self
    }

    /// What it is of.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// The host that it is of.
    #[must_use]
    pub fn on(mut self, host: &str) -> Self {
        self.host = Some(host.to_owned());
        self
    }

    /// The value of a further number; 0 where there is none, as in a finding that somebody changed by hand.
    pub fn other(&self, index: usize) -> f64 {
        self.with.get(index).map_or(0.0, |quantity| quantity.value)
    }
}
