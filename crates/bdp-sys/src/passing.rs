//! File descriptors handed from one process to another over a Unix socket (`SCM_RIGHTS`).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use crate::{Result, SysError};

/// As many descriptors as one message carries here.
const MOST: usize = 250;

/// Room for one `SCM_RIGHTS` header and [`MOST`] descriptors, aligned as control messages must be.
#[repr(C, align(8))]
struct ControlRoom([u8; 1056]);

/// Sends one byte and with it the descriptors, at most 250.
pub fn send_descriptors(socket: &UnixStream, descriptors: &[&OwnedFd]) -> Result<()> {
    if descriptors.len() > MOST {
        return Err(SysError::new("send", "descriptors", io::Error::other("more than 250 at once")));
    }
    let raw: Vec<RawFd> = descriptors.iter().map(|d| d.as_raw_fd()).collect();
    let mut byte = 0u8;
    let mut iov = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut room = ControlRoom([0; 1056]);
    let payload = u32::try_from(size_of_val(raw.as_slice())).unwrap_or(0);
    // SAFETY: msghdr is plain data for which all-zero is valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut iov;
    message.msg_iovlen = 1;
    message.msg_control = room.0.as_mut_ptr().cast();
    // SAFETY: CMSG_SPACE only computes; 250 descriptors need 1016 bytes, less than the room of 1056.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(payload) } as _;
    // SAFETY: the control buffer is aligned and large enough for the header and `payload` bytes.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(payload) as _;
        std::ptr::copy_nonoverlapping(raw.as_ptr().cast(), libc::CMSG_DATA(header), payload as usize);
    }
    // SAFETY: every pointer in `message` refers to a live local.
    if unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) } == 1 {
        Ok(())
    } else {
        Err(SysError::last("send", "descriptors"))
    }
}

/// Receives what [`send_descriptors`] sent; the descriptors close on exec. An ended stream gives `UnexpectedEof`.
pub fn receive_descriptors(socket: &UnixStream) -> Result<Vec<OwnedFd>> {
    let mut byte = 0u8;
    let mut iov = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut room = ControlRoom([0; 1056]);
    // SAFETY: msghdr is plain data for which all-zero is valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut iov;
    message.msg_iovlen = 1;
    message.msg_control = room.0.as_mut_ptr().cast();
    message.msg_controllen = room.0.len() as _;
    // SAFETY: every pointer in `message` refers to a live local.
    match unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) } {
        1 => {}
        0 => {
            return Err(SysError::new("receive", "descriptors", io::ErrorKind::UnexpectedEof.into()));
        }
        _ => return Err(SysError::last("receive", "descriptors")),
    }
    let mut received = Vec::new();
    // The kernel leaves out what this process has no room for, and says only that something is missing.
    let cut_short = message.msg_flags & libc::MSG_CTRUNC != 0;
    // SAFETY: the kernel wrote `msg_controllen` bytes of well-formed headers; each descriptor in them is new and ours.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                let data = libc::CMSG_DATA(header).cast::<RawFd>();
                for i in 0..bytes / size_of::<RawFd>() {
                    received.push(OwnedFd::from_raw_fd(data.add(i).read_unaligned()));
                }
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    if cut_short {
        let no_room = io::Error::from_raw_os_error(libc::EMFILE);
        return Err(SysError::new("receive", "descriptors", no_room));
    }
    Ok(received)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_descriptor_arrives_and_works() {
        let (here, there) = UnixStream::pair().unwrap();
        let (mut a, b) = UnixStream::pair().unwrap();
        let b: OwnedFd = b.into();
        send_descriptors(&here, &[&b]).unwrap();
        drop(b);
        let mut received = receive_descriptors(&there).unwrap();
        assert_eq!(received.len(), 1);
        let mut b = UnixStream::from(received.remove(0));
        a.write_all(b"x").unwrap();
        let mut byte = [0];
        b.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
    }

    #[test]
    fn an_ended_stream_is_told() {
        let (here, there) = UnixStream::pair().unwrap();
        drop(here);
        let error = receive_descriptors(&there).unwrap_err();
        assert_eq!(error.source.kind(), io::ErrorKind::UnexpectedEof);
    }
}
