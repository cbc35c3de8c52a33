//! Control messages that a kernel reports with a message: times, addresses, hop limits, extended errors (cmsg(3)).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

/// Room for control messages: three times of 16 bytes, a hop limit, and an extended error with an IPv6 address.
const CONTROL_BYTES: usize = 256;

/// Buffer aligned as the header of a control message.
#[repr(C, align(8))]
struct Room([MaybeUninit<u8>; CONTROL_BYTES]);

/// The name and control messages received with a message.
pub(crate) struct Beside {
    /// The sender, or the destination of the packet reported on; none if the length is 0.
    pub(crate) name: libc::sockaddr_storage,
    pub(crate) name_length: libc::socklen_t,
    room: Room,
    length: usize,
}

/// Receives one message into `room`; returns its length, name and control messages.
pub(crate) fn receive(
    socket: &impl AsRawFd,
    room: &mut [u8],
    flags: libc::c_int,
) -> io::Result<(usize, Beside)> {
    // SAFETY: all-zero is valid for both structures.
    let (name, mut message): (libc::sockaddr_storage, libc::msghdr) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    let control = Room([MaybeUninit::uninit(); CONTROL_BYTES]);
    let mut beside = Beside { name, name_length: 0, room: control, length: 0 };
    let mut part = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
    message.msg_name = (&raw mut beside.name).cast();
    message.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = beside.room.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_BYTES as _;
    // SAFETY: every pointer of the message is to a live buffer of the length beside it.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    if got < 0 {
        return Err(io::Error::last_os_error());
    }
    beside.name_length = message.msg_namelen;
    beside.length = message.msg_controllen as _;
    Ok((got as usize, beside))
}

impl Beside {
    /// Calls `take` with each control message.
    pub(crate) fn each(&self, take: impl FnMut(ControlMessage<'_>)) {
        // SAFETY: all-zero is valid.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_control = self.room.0.as_ptr().cast_mut().cast();
        message.msg_controllen = self.length as _;
        // SAFETY: the kernel has filled the room up to this length.
        unsafe { each(&message, take) }
    }
}

/// Calls `take` with each control message of a received message.
///
/// # Safety
///
/// The kernel has filled the message's control buffer, which is live, up to `msg_controllen`.
pub(crate) unsafe fn each(message: &libc::msghdr, mut take: impl FnMut(ControlMessage<'_>)) {
    // SAFETY: the macros stay within what the kernel has filled, and so does the length in each header.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&raw const *message);
        while !header.is_null() {
            let length = ((*header).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
            let data = std::slice::from_raw_parts(libc::CMSG_DATA(header), length);
            take(ControlMessage { level: (*header).cmsg_level, kind: (*header).cmsg_type, data });
            header = libc::CMSG_NXTHDR(&raw const *message, header);
        }
    }
}

/// One control message.
#[derive(Clone, Copy)]
pub(crate) struct ControlMessage<'a> {
    pub(crate) level: libc::c_int,
    pub(crate) kind: libc::c_int,
    data: &'a [u8],
}

impl ControlMessage<'_> {
    /// Its value, or the first of several; `None` if it is shorter.
    pub(crate) fn read<T: Plain>(&self) -> Option<T> {
        (self.data.len() >= size_of::<T>()).then(|| begin(self.data))
    }

    /// The value behind its first one; missing bytes are zero.
    pub(crate) fn read_behind<T, U: Plain>(&self) -> U {
        begin(self.data.get(size_of::<T>()..).unwrap_or_default())
    }

    /// A time as nanoseconds since 1970.
    pub(crate) fn read_time_ns(&self) -> Option<u64> {
        self.read::<libc::timespec>().map(nanoseconds)
    }
}

/// A time in nanoseconds.
pub(crate) fn nanoseconds(time: libc::timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Reads a value from its first bytes; missing bytes are zero.
fn begin<T: Plain>(bytes: &[u8]) -> T {
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: no more is copied than either has, and whatever the bytes are, they are a value.
    unsafe {
        let length = bytes.len().min(size_of::<T>());
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), value.as_mut_ptr().cast::<u8>(), length);
        value.assume_init()
    }
}

/// A type for which any bytes are a valid value.
///
/// # Safety
///
/// All bits may have any value, all zero included.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: numbers, and structures of the kernel that consist of them.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for libc::c_int {}
// SAFETY: as above.
unsafe impl Plain for libc::timespec {}
// SAFETY: as above.
unsafe impl Plain for [libc::timespec; 3] {}
// SAFETY: as above.
unsafe impl Plain for libc::in_pktinfo {}
// SAFETY: as above.
unsafe impl Plain for libc::in6_pktinfo {}
// SAFETY: as above.
unsafe impl Plain for libc::sock_extended_err {}
// SAFETY: as above.
unsafe impl Plain for libc::sockaddr_storage {}
