//! The receive window of one TCP socket, on the wire: a locked buffer larger than the window, and `TCP_WINDOW_CLAMP`.
//!
//! A locked buffer keeps autotuning away from the clamp. Linux 6.9 and later still widen the clamp when they
//! learn how much of a buffer the path's segments fill, so it is set again while data arrives ([`hold`]). On
//! kernels that don't lower an open window with the clamp (before 6.9) the window stays at what the handshake
//! advertised, about 64 KiB.

use std::os::fd::AsFd;

use socket2::SockRef;

use crate::socket_option::{get_number, set_number};
use crate::{Result, SysError};

/// Buffer bytes per byte of window: the kernel counts bookkeeping, which is most of a small segment.
const BUFFER_FOR_WINDOW: u64 = 4;
/// Smallest requested buffer.
const LEAST_BUFFER: u64 = 128 << 10;
/// Largest buffer of the kernel, after it has doubled the requested size.
const LARGEST_BUFFER: u64 = (i32::MAX / 2) as u64;

/// Sets this window on the socket, connected or not; before it connects, the window scale follows from it.
pub fn fix(socket: impl AsFd, window_bytes: u32) -> Result<()> {
    let buffer = (u64::from(window_bytes) * BUFFER_FOR_WINDOW).clamp(LEAST_BUFFER, LARGEST_BUFFER);
    if set_number(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, buffer as i32, "SO_RCVBUFFORCE").is_err() {
        // Without CAP_NET_ADMIN: as far as rmem_max goes.
        SockRef::from(&socket)
            .set_recv_buffer_size(buffer as usize)
            .map_err(|e| SysError::new("set", format!("SO_RCVBUF to {buffer}"), e))?;
    }
    clamp(&socket, window_bytes)
}

/// The clamp for a connected socket that allows as many whole segments as the window holds. The kernel rounds a
/// window up to the scale that the handshake fixed (RFC 7323, section 2.2), which can make room for one segment
/// more.
pub fn clamp_for(socket: impl AsFd, window_bytes: u32) -> u32 {
    let info = crate::tcp_info::read(socket).unwrap_or_default();
    round_to_scale(window_bytes, 1 << info.rcv_wscale.unwrap_or(0).min(14), info.snd_mss.unwrap_or(1).max(1))
}

fn round_to_scale(window: u32, unit: u32, segment: u32) -> u32 {
    let segments = window / segment;
    let up = window.div_ceil(unit).saturating_mul(unit);
    let down = window / unit * unit;
    if up / segment != segments && down > 0 && down / segment == segments { down } else { window }
}

/// Sets the clamp again if the kernel has changed it.
pub fn hold(socket: impl AsFd, window_bytes: u32) -> Result<()> {
    let now = get_number(&socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, "TCP_WINDOW_CLAMP")?;
    if now == as_option(window_bytes) { Ok(()) } else { clamp(&socket, window_bytes) }
}

fn clamp(socket: impl AsFd, window_bytes: u32) -> Result<()> {
    let value = as_option(window_bytes);
    set_number(&socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, value, "TCP_WINDOW_CLAMP")
}

fn as_option(window_bytes: u32) -> i32 {
    i32::try_from(window_bytes).unwrap_or(i32::MAX)
}

#[cfg(test)]
#[path = "../../bdp/tests/support/untested.rs"]
mod untested;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    use super::*;

    /// The last window that the sender sees, after some data, with the window fixed at either end of the handshake.
    fn seen(window_bytes: u32) -> u32 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        fix(&receiver, window_bytes).unwrap();
        sender.set_nonblocking(true).unwrap();
        receiver.set_nonblocking(true).unwrap();
        let (block, mut room) = ([0; 8192], [0; 65536]);
        let end = Instant::now() + Duration::from_millis(300);
        while Instant::now() < end {
            let _ = sender.write(&block);
            let _ = receiver.read(&mut room);
            hold(&receiver, window_bytes).unwrap();
        }
        crate::tcp_info::read(&sender).unwrap().snd_wnd.unwrap_or(0)
    }

    #[test]
    fn a_window_is_rounded_so_that_no_segment_is_added() {
        assert_eq!(round_to_scale(30_000, 1024, 1448), 29_696);
        assert_eq!(round_to_scale(2896, 1024, 1448), 2896);
        assert_eq!(round_to_scale(65_536, 1024, 1448), 65_536);
        assert_eq!(round_to_scale(30_000, 1, 1448), 30_000);
        assert_eq!(round_to_scale(500, 1024, 1448), 500);
    }

    #[test]
    fn a_fixed_window_is_what_the_sender_sees() {
        if !untested::kernel_lowers_windows() {
            return;
        }
        for window_bytes in [2896, 30_000, 65_536, 262_144] {
            let seen = seen(window_bytes);
            // Rounded up to the window scale, 1024 bytes if rmem_max is 32 MiB.
            assert!((window_bytes / 2..=window_bytes + 4096).contains(&seen), "{window_bytes}: {seen}");
        }
    }
}
