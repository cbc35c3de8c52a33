//! Why a limit is what it is.

use super::named::named;

named! {
    /// Why a limit is what it is.
    pub enum Cause {
        /// The last number of `tcp_rmem` at the receiver.
        RmemMaximum = "rmem_maximum",
        /// The last number of `tcp_wmem` at the sender.
        WmemMaximum = "wmem_maximum",
        /// The window that was asked for.
        WindowAsked = "window_asked",
        /// The socket buffer that was asked for (`SO_RCVBUF`, `SO_SNDBUF`).
        SocketBufferAsked = "socket_buffer_asked",
        /// Autotuning is off: the buffer stays at its first size.
        AutotuningOff = "autotuning_off",
        /// The buffer could still grow: autotuning that was still growing, or a middlebox that rewrites the window.
        BelowMaximum = "below_maximum",
        /// Window scaling is off at a host (RFC 7323).
        ScalingOff = "scaling_off",
        /// Both hosts offer window scaling, and a middlebox removed the option from the handshake.
        ScalingStripped = "scaling_stripped",
        /// The option was removed from one of the handshake's two segments: one end scales, the other does not.
        ScalingHalfStripped = "scaling_half_stripped",
        /// No window scaling, and one host does not report whether it offers it.
        ScalingMissing = "scaling_missing",
        /// Large writes pass a small buffer at once, and the sender has nothing to send until all of it is acknowledged.
        BufferRunsDry = "buffer_runs_dry",
        /// A thread used up the processor that it ran on.
        ThreadFull = "thread_full",
        /// A control group's quota held the process back.
        Throttled = "throttled",
        /// A hypervisor took processor time.
        Stolen = "stolen",
        /// Other programs had the processor that a thread was ready to run on.
        ProcessorShared = "processor_shared",
        /// The process did not run for a while.
        Paused = "paused",
        /// The network device dropped packets, for want of buffers or of room in its queue.
        DeviceDrops = "device_drops",
        /// The kernel dropped packets of its receive backlog (softnet).
        BacklogDrops = "backlog_drops",
        /// The receiving socket was full (`SO_RXQ_OVFL`).
        SocketDrops = "socket_drops",
        /// The sending host keeps the rate by itself: a shaper or a limit of its device's queue, or a rate that its program asked its socket for.
        KeptByHost = "kept_by_host",
        /// The server was asked and had not begun to answer: its response time.
        ResponseTime = "response_time",
        /// TLS agreed on its keys.
        TlsSetup = "tls_setup",
        /// The connection was being made.
        Handshake = "handshake",
        /// Nobody answered the SYN.
        NoAnswer = "no_answer",
        /// The host refused the connection by a reset.
        Refused = "refused",
        /// ICMP said that the connection was prohibited, or its destination unreachable.
        Unreachable = "unreachable",
        /// A program on the way ends TCP's connections.
        Tunnel = "tunnel",
    }
}
