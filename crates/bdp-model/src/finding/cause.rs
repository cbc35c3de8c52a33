//! The causes of a limit.

use super::named::named;

named! {
    /// Why a limit has its value.
    pub enum Cause {
        /// The maximum of `tcp_rmem` (its third value) at the receiver.
        RmemMaximum = "rmem_maximum",
        /// The maximum of `tcp_wmem` (its third value) at the sender.
        WmemMaximum = "wmem_maximum",
        /// The requested window.
        WindowAsked = "window_asked",
        /// The requested socket buffer (`SO_RCVBUF`, `SO_SNDBUF`).
        SocketBufferAsked = "socket_buffer_asked",
        /// Autotuning is off: the buffer keeps its initial size.
        AutotuningOff = "autotuning_off",
        /// The buffer is below its maximum: autotuning was still growing it, or a middlebox rewrites the window.
        BelowMaximum = "below_maximum",
        /// Window scaling is off at a host (RFC 7323).
        ScalingOff = "scaling_off",
        /// Both hosts offer window scaling, but a middlebox removed the option from the handshake.
        ScalingStripped = "scaling_stripped",
        /// A middlebox removed the option from one segment of the handshake: one end scales, the other does not.
        ScalingHalfStripped = "scaling_half_stripped",
        /// Window scaling is not in use, and one host does not report whether it offers it.
        ScalingMissing = "scaling_missing",
        /// Large writes pass through a small buffer in one go, and the sender then has nothing to send until all of it is acknowledged.
        BufferRunsDry = "buffer_runs_dry",
        /// A thread used all of its processor.
        ThreadFull = "thread_full",
        /// A control group's quota throttled the process.
        Throttled = "throttled",
        /// A hypervisor took processor time (steal).
        Stolen = "stolen",
        /// Other programs occupied the processor that a runnable thread was waiting for.
        ProcessorShared = "processor_shared",
        /// The process was paused for a while.
        Paused = "paused",
        /// The network device dropped packets: it ran out of buffers, or its queue was full.
        DeviceDrops = "device_drops",
        /// The kernel dropped packets from its receive backlog (softnet).
        BacklogDrops = "backlog_drops",
        /// The receiving socket was full and dropped datagrams (`SO_RXQ_OVFL`).
        SocketDrops = "socket_drops",
        /// The sending host limits the rate itself: by a shaper or a limit of its device's queue, or by a pacing rate that its program requested.
        KeptByHost = "kept_by_host",
        /// The server had the request but had not begun to respond: its response time.
        ResponseTime = "response_time",
        /// The TLS handshake.
        TlsSetup = "tls_setup",
        /// The TCP handshake.
        Handshake = "handshake",
        /// The SYN was not answered.
        NoAnswer = "no_answer",
        /// The host refused the connection with a reset.
        Refused = "refused",
        /// ICMP reported that the connection is prohibited, or its destination unreachable.
        Unreachable = "unreachable",
        /// A program on the path terminates the TCP connections.
        Tunnel = "tunnel",
    }
}
