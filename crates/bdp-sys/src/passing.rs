//! File descriptors handed from one process to another over a Unix socket (`SCM_RIGHTS`).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::{Result, SysError};

/// Maximum number of descriptors in one message.
const MOST: usize = 250;
/// Room for their control message.
const ROOM: usize = rustix::cmsg_space!(ScmRights(MOST));

/// Sends one byte together with at most 250 descriptors.
pub fn send_descriptors(socket: &UnixStream, descriptors: &[&OwnedFd]) -> Result<()> {
    let failed = |e| SysError::new("send", "descriptors", e);
    let borrowed: Vec<_> = descriptors.iter().map(|d| d.as_fd()).collect();
    let mut room = [MaybeUninit::uninit(); ROOM];
    let mut control = SendAncillaryBuffer::new(&mut room);
    if descriptors.len() > MOST || !control.push(SendAncillaryMessage::ScmRights(&borrowed)) {
        return Err(failed(io::Error::other("more than 250 at once")));
    }
    retry_on_intr(|| sendmsg(socket, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL))
        .map_err(|e| failed(e.into()))
        .map(drop)
}

/// Receives descriptors that [`send_descriptors`] sent; they close on exec. Returns `UnexpectedEof` at the end of the stream.
pub fn receive_descriptors(socket: &UnixStream) -> Result<Vec<OwnedFd>> {
    let failed = |e| SysError::new("receive", "descriptors", e);
    let mut byte = [0];
    let mut room = [MaybeUninit::uninit(); ROOM];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let parts = &mut [IoSliceMut::new(&mut byte)];
    // Stopping and continuing a process interrupts a wait with a deadline.
    let message = retry_on_intr(|| recvmsg(socket, parts, &mut control, RecvFlags::CMSG_CLOEXEC))
        .map_err(|e| failed(e.into()))?;
    let received = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect(),
        _ => Vec::new(),
    });
    let received = received.collect();
    if message.bytes == 0 {
        return Err(failed(io::ErrorKind::UnexpectedEof.into()));
    }
    // The kernel omits descriptors that this process has no room for, and only reports the truncation.
    if message.flags.contains(ReturnFlags::CTRUNC) {
        return Err(failed(Errno::MFILE.into()));
    }
    Ok(received)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::thread::JoinHandleExt;

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
    fn a_signal_does_not_end_the_wait() {
        extern "C" fn nothing(_: libc::c_int) {}
        // SAFETY: the handler does nothing; without SA_RESTART a wait ends by it, as one with a deadline does after SIGCONT.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
            libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut());
        }
        let (here, there) = UnixStream::pair().unwrap();
        let waiting = std::thread::spawn(move || receive_descriptors(&there).map(|received| received.len()));
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_millis(5));
            // SAFETY: the thread is not joined yet, so that its handle is good.
            unsafe { libc::pthread_kill(waiting.as_pthread_t(), libc::SIGUSR1) };
        }
        let (_a, b) = UnixStream::pair().unwrap();
        send_descriptors(&here, &[&b.into()]).unwrap();
        assert_eq!(waiting.join().unwrap().unwrap(), 1);
    }

    #[test]
    fn an_ended_stream_is_told() {
        let (here, there) = UnixStream::pair().unwrap();
        drop(here);
        let error = receive_descriptors(&there).unwrap_err();
        assert_eq!(error.source.kind(), io::ErrorKind::UnexpectedEof);
    }
}
