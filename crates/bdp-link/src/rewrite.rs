//! A middlebox that changes TCP headers. No packet grows or shrinks; checksum errors are neither made nor repaired.

use bdp_model::link::{HeaderRewrite, WindowScaleRewrite};

use crate::packet::Packet;
use crate::tcp::{NO_OPERATION, TcpHeader};

/// Applies the rewrite to a TCP segment; anything else, and malformed packets, pass unchanged.
pub(crate) fn apply(rewrite: &HeaderRewrite, packet: &mut Packet) {
    if rewrite.is_none() {
        return;
    }
    let Some(mut header) = packet.tcp_header_mut() else { return };
    if header.is_syn() {
        if let Some(rewrite) = rewrite.window_scale {
            rewrite_window_scale(rewrite, &mut header);
        }
    } else if let Some(max) = rewrite.window_field_max
        && header.window() > max
    {
        header.set_window(max);
    }
}

/// Strips or replaces every window scale option (RFC 7323, section 2.2). An absent one is not added.
///
/// A shift count is written as configured; receivers treat more than 14 as 14 (RFC 7323, section 2.3). A box that
/// strips the option from a SYN-ACK alone leaves the two ends with different ideas of the window, as such
/// middleboxes do.
fn rewrite_window_scale(rewrite: WindowScaleRewrite, header: &mut TcpHeader<'_>) {
    let mut from = 0;
    while let Some(option) = header.window_scale_from(from) {
        match rewrite {
            WindowScaleRewrite::Strip => header.replace(option, &[NO_OPERATION; 3]),
            WindowScaleRewrite::Set(shift) => header.replace(option + 2, &[shift]),
        }
        from = option + 3;
    }
}
