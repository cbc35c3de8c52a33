//! `TCP_INFO`, decoded by the length that the kernel returned: a field unknown to the kernel is absent, not zero.

use std::os::fd::{AsFd, AsRawFd};

use crate::{Result, SysError};

/// The fields of `struct tcp_info` that bdp reads. Times in nanoseconds, sizes in bytes unless a name says segments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TcpInfo {
    /// TCP state, numbered as in `include/net/tcp_states.h`.
    pub state: Option<u8>,
    /// Whether window scaling is in use on this connection: both handshake segments that this end saw had the option (RFC 7323,
    /// section 2.2).
    pub window_scaling: Option<bool>,
    /// State of congestion control: 0 open, 1 disorder, 2 window reduced, 3 recovery, 4 loss (`enum tcp_ca_state`).
    pub congestion_state: Option<u8>,
    /// Whether the delivery rate was sampled while the sender was limited by the application (4.9).
    pub app_limited: Option<bool>,
    /// Whether this connection uses selective acknowledgements.
    pub sack: Option<bool>,
    /// Whether it uses timestamps.
    pub timestamps: Option<bool>,
    /// Whether it negotiated ECN.
    pub ecn: Option<bool>,
    /// Shift count that the peer announced.
    pub snd_wscale: Option<u8>,
    /// Shift count that this end announced.
    pub rcv_wscale: Option<u8>,
    /// MSS for sending, payload bytes.
    pub snd_mss: Option<u32>,
    /// Segments in flight.
    pub unacked_segments: Option<u32>,
    /// Segments thought lost and not yet retransmitted or acknowledged.
    pub lost_segments: Option<u32>,
    /// Slow start threshold in segments; `None` before the first congestion event.
    pub ssthresh_segments: Option<u32>,
    /// Reordering distance in segments beyond which a gap counts as a loss.
    pub reordering: Option<u32>,
    /// Congestion window in segments.
    pub cwnd_segments: Option<u32>,
    /// Smoothed round trip.
    pub rtt_ns: Option<u64>,
    /// Mean deviation of the round trip.
    pub rtt_variation_ns: Option<u64>,
    /// Path MTU.
    pub pmtu: Option<u32>,
    /// Segments retransmitted so far.
    pub total_retrans: Option<u32>,
    /// Bytes acknowledged (4.1).
    pub bytes_acked: Option<u64>,
    /// Bytes sent, including retransmissions (4.19).
    pub bytes_sent: Option<u64>,
    /// Bytes retransmitted (4.19).
    pub bytes_retrans: Option<u64>,
    /// Bytes in the send buffer not sent yet (4.6).
    pub notsent_bytes: Option<u64>,
    /// Bytes received (4.1).
    pub bytes_received: Option<u64>,
    /// Smallest round trip (4.6).
    pub min_rtt_ns: Option<u64>,
    /// Pacing rate of the kernel, bit/s; `None` without pacing (3.15).
    pub pacing_rate_bps: Option<u64>,
    /// Maximum pacing rate set by the program, bit/s (`SO_MAX_PACING_RATE`); `None` if unset (3.15).
    pub max_pacing_rate_bps: Option<u64>,
    /// Latest sample of the delivery rate, bit/s (4.9).
    pub delivery_rate_bps: Option<u64>,
    /// Segments delivered (4.18).
    pub delivered_segments: Option<u32>,
    /// Segments delivered with a Congestion Experienced mark (4.18).
    pub delivered_ce_segments: Option<u32>,
    /// Retransmission timeouts so far (6.7).
    pub timeouts: Option<u32>,
    /// Time with data in flight or to send (4.10).
    pub busy_ns: Option<u64>,
    /// Time limited by the receive window (4.10); known to under-report.
    pub rwnd_limited_ns: Option<u64>,
    /// Time limited by the send buffer (4.10).
    pub sndbuf_limited_ns: Option<u64>,
    /// Segments that the peer had already received, by its reports (DSACK, RFC 2883; 4.19).
    pub dsack_dups: Option<u32>,
    /// Reordering events seen (4.19).
    pub reorder_seen: Option<u32>,
    /// Segments received out of order (5.4).
    pub rcv_out_of_order: Option<u32>,
    /// Receive window last advertised by the peer (5.4).
    pub snd_wnd: Option<u32>,
    /// Receive window that this end intends to advertise (6.2); may differ from the wire.
    pub rcv_wnd: Option<u32>,
    /// Round trip as estimated by the receiver (`tcpi_rcv_rtt`); `None` before the first estimate.
    pub rcv_rtt_ns: Option<u64>,
}

/// Most bytes of a kernel's answer.
pub const MOST_BYTES: usize = 512;

/// Reads it from a TCP socket.
pub fn read(socket: impl AsFd) -> Result<TcpInfo> {
    let mut room = [0; MOST_BYTES];
    let length = read_bytes(socket, &mut room)?;
    Ok(decode(&room[..length]))
}

/// Reads it as the kernel has it; returns how many bytes that are.
pub fn read_bytes(socket: impl AsFd, room: &mut [u8; MOST_BYTES]) -> Result<usize> {
    let mut length = room.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `room` and stores how many.
    let done = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            room.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if done < 0 {
        return Err(SysError::last("read", "TCP_INFO"));
    }
    Ok((length as usize).min(room.len()))
}

/// Decodes the bytes of an older or newer kernel.
pub fn decode(bytes: &[u8]) -> TcpInfo {
    let word = |at: usize| bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_ne_bytes);
    let long = |at: usize| bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_ne_bytes);
    let micros = |us: u32| u64::from(us) * 1_000;
    /// `TCPI_OPT_WSCALE` of `tcpi_options`.
    const WINDOW_SCALE: u8 = 4;
    /// `TCPI_OPT_TIMESTAMPS`.
    const TIMESTAMPS: u8 = 1;
    /// `TCPI_OPT_SACK`.
    const SACK: u8 = 2;
    /// `TCPI_OPT_ECN`.
    const ECN: u8 = 8;
    /// `TCP_INFINITE_SSTHRESH`.
    const INFINITE: u32 = 0x7fff_ffff;
    let option = |bit: u8| bytes.get(5).map(|options| options & bit != 0);
    // The rates are in bytes per second; all ones without a rate.
    let bits_per_second = |at: usize| long(at).filter(|&rate| rate < u64::MAX / 8).map(|rate| rate * 8);
    // Two bit-fields of four bits: the first is in the low half on little-endian machines.
    let scales = bytes.get(6).copied();
    let (first, second) = (scales.map(|b| b & 0xf), scales.map(|b| b >> 4));
    let (snd_wscale, rcv_wscale) =
        if cfg!(target_endian = "little") { (first, second) } else { (second, first) };
    let first_bit: u8 = if cfg!(target_endian = "little") { 1 } else { 0x80 };
    TcpInfo {
        state: bytes.first().copied(),
        congestion_state: bytes.get(1).copied(),
        app_limited: bytes.get(7).filter(|_| bytes.len() >= 168).map(|bits| bits & first_bit != 0),
        window_scaling: option(WINDOW_SCALE),
        sack: option(SACK),
        timestamps: option(TIMESTAMPS),
        ecn: option(ECN),
        snd_wscale,
        rcv_wscale,
        snd_mss: word(16),
        unacked_segments: word(24),
        lost_segments: word(32),
        ssthresh_segments: word(76).filter(|&segments| segments < INFINITE),
        reordering: word(88),
        pmtu: word(60),
        rtt_ns: word(68).map(micros),
        rtt_variation_ns: word(72).map(micros),
        cwnd_segments: word(80),
        total_retrans: word(100),
        bytes_acked: long(120),
        bytes_sent: long(200),
        bytes_retrans: long(208),
        notsent_bytes: word(144).map(u64::from),
        bytes_received: long(128),
        min_rtt_ns: word(148).map(micros),
        pacing_rate_bps: bits_per_second(104),
        max_pacing_rate_bps: bits_per_second(112).filter(|rate| (1..u64::from(u32::MAX) * 8).contains(rate)),
        delivery_rate_bps: bits_per_second(160),
        delivered_segments: word(192),
        delivered_ce_segments: word(196),
        timeouts: bytes.get(240..242).and_then(|b| b.try_into().ok()).map(u16::from_ne_bytes).map(u32::from),
        busy_ns: long(168).map(|us| us.saturating_mul(1_000)),
        rwnd_limited_ns: long(176).map(|us| us.saturating_mul(1_000)),
        sndbuf_limited_ns: long(184).map(|us| us.saturating_mul(1_000)),
        dsack_dups: word(216),
        reorder_seen: word(220),
        rcv_out_of_order: word(224),
        snd_wnd: word(228),
        rcv_wnd: word(232),
        rcv_rtt_ns: word(92).filter(|&us| us > 0).map(micros),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_is_not_zero() {
        let mut bytes = [0u8; 232];
        bytes[228..232].copy_from_slice(&30_408u32.to_ne_bytes());
        let info = decode(&bytes);
        assert_eq!(info.snd_wnd, Some(30_408));
        assert_eq!(info.rcv_wnd, None);
        assert_eq!(decode(&bytes[..104]).snd_wnd, None);
        assert_eq!(decode(&[]), TcpInfo::default());
    }

    #[test]
    fn no_threshold_is_not_an_endless_one_and_rates_are_of_bits() {
        let mut bytes = [0u8; 248];
        bytes[1] = 3;
        bytes[5] = 2 | 8;
        bytes[7] = if cfg!(target_endian = "little") { 1 } else { 0x80 };
        bytes[76..80].copy_from_slice(&0x7fff_ffffu32.to_ne_bytes());
        bytes[104..112].copy_from_slice(&u64::MAX.to_ne_bytes());
        bytes[160..168].copy_from_slice(&1_250_000u64.to_ne_bytes());
        bytes[240..242].copy_from_slice(&7u16.to_ne_bytes());
        let info = decode(&bytes);
        assert_eq!((info.ssthresh_segments, info.pacing_rate_bps), (None, None));
        assert_eq!((info.delivery_rate_bps, info.timeouts), (Some(10_000_000), Some(7)));
        assert_eq!((info.congestion_state, info.app_limited), (Some(3), Some(true)));
        assert_eq!((info.sack, info.timestamps, info.ecn), (Some(true), Some(false), Some(true)));
        bytes[76..80].copy_from_slice(&12u32.to_ne_bytes());
        assert_eq!(decode(&bytes).ssthresh_segments, Some(12));
        // Older kernels have neither the rate nor its flag.
        assert_eq!((decode(&bytes[..104]).app_limited, decode(&bytes[..104]).timeouts), (None, None));
    }

    #[test]
    fn window_scaling_is_an_option_and_not_a_shift_of_zero() {
        let with = |options: u8| decode(&[1, 0, 0, 0, 0, options, 0, 0]);
        assert_eq!((with(4).window_scaling, with(4).snd_wscale), (Some(true), Some(0)));
        assert_eq!(with(1 | 2 | 8).window_scaling, Some(false));
        assert_eq!(decode(&[1, 0, 0, 0, 0]).window_scaling, None);
    }

    #[test]
    fn a_live_socket_tells_its_segment_size() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let info = read(&client).unwrap();
        assert!(info.snd_mss.unwrap() > 500, "{info:?}");
        assert!(info.cwnd_segments.unwrap() >= 1);
    }
}
