//! Socket options that the standard library lacks.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::{Result, SysError};

/// Options set before a TCP socket is connected or listens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// `TCP_CONGESTION`.
    pub congestion: Option<String>,
    /// `TCP_MAXSEG`.
    pub mss: Option<u32>,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// `SO_RCVBUF`; turns autotuning off.
    pub receive_buffer: Option<usize>,
}

impl TcpOptions {
    fn apply(&self, socket: &Socket) -> Result<()> {
        let set = |what: &'static str, value: String, done: io::Result<()>| {
            done.map_err(|e| SysError::new("set", format!("{what} to {value}"), e))
        };
        if let Some(name) = &self.congestion {
            let done = socket.set_tcp_congestion(name.as_bytes()).map_err(|e| unknown_congestion(name, e));
            set("TCP_CONGESTION", name.clone(), done)?;
        }
        if let Some(mss) = self.mss {
            set("TCP_MAXSEG", mss.to_string(), socket.set_tcp_mss(mss))?;
        }
        if self.nodelay {
            set("TCP_NODELAY", "1".to_owned(), socket.set_tcp_nodelay(true))?;
        }
        if let Some(bytes) = self.receive_buffer {
            set("SO_RCVBUF", bytes.to_string(), socket.set_recv_buffer_size(bytes))?;
        }
        Ok(())
    }
}

/// Says what there is instead, where the kernel does not know a congestion control.
fn unknown_congestion(name: &str, refused: io::Error) -> io::Error {
    if refused.kind() != io::ErrorKind::NotFound {
        return refused;
    }
    let offered = crate::sysctl::read("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
    let text = format!(
        "this kernel does not have it, it offers {}; 'modprobe tcp_{name}' loads it where it is a module",
        offered.split_whitespace().collect::<Vec<_>>().join(", ")
    );
    io::Error::new(io::ErrorKind::NotFound, text)
}

/// A listener with the options in force before it listens, so that they shape the handshake.
pub fn listen(address: SocketAddr, options: &TcpOptions, backlog: i32) -> Result<TcpListener> {
    let failed = |e| SysError::new("listen on", address.to_string(), e);
    let socket =
        Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP)).map_err(failed)?;
    socket.set_reuse_address(true).map_err(failed)?;
    options.apply(&socket)?;
    socket.bind(&address.into()).map_err(failed)?;
    socket.listen(backlog).map_err(failed)?;
    Ok(socket.into())
}

/// A connection with the options in force before its SYN, made within `deadline`.
pub fn connect(address: SocketAddr, options: &TcpOptions, deadline: Duration) -> Result<TcpStream> {
    let failed = |e| SysError::new("connect to", address.to_string(), e);
    let socket =
        Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP)).map_err(failed)?;
    options.apply(&socket)?;
    socket.connect_timeout(&address.into(), deadline).map_err(failed)?;
    Ok(socket.into())
}

/// The congestion control in use, as the kernel names it.
pub fn congestion(socket: impl AsFd) -> Result<String> {
    let name =
        SockRef::from(&socket).tcp_congestion().map_err(|e| SysError::new("read", "TCP_CONGESTION", e))?;
    Ok(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
}

/// `SO_RCVBUF` as the kernel reports it (twice what was set).
pub fn receive_buffer(socket: impl AsFd) -> Result<usize> {
    SockRef::from(&socket).recv_buffer_size().map_err(|e| SysError::new("read", "SO_RCVBUF", e))
}

/// Bounds a UDP socket's wait.
pub fn set_receive_deadline(socket: &UdpSocket, deadline: Duration) -> Result<()> {
    socket.set_read_timeout(Some(deadline)).map_err(|e| SysError::new("set", "SO_RCVTIMEO", e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_in_force_and_read_back() {
        let options = TcpOptions { congestion: Some("reno".into()), mss: Some(700), ..Default::default() };
        let listener = listen("127.0.0.1:0".parse().unwrap(), &TcpOptions::default(), 8).unwrap();
        let stream = connect(listener.local_addr().unwrap(), &options, Duration::from_secs(3)).unwrap();
        assert_eq!(congestion(&stream).unwrap(), "reno");
        let mss = crate::tcp_info::read(&stream).unwrap().snd_mss.unwrap();
        assert!(mss <= 700, "{mss}");
    }

    #[test]
    fn an_unknown_congestion_control_is_named() {
        let options = TcpOptions { congestion: Some("no_such_cc".into()), ..Default::default() };
        let error = connect("127.0.0.1:9".parse().unwrap(), &options, Duration::from_secs(1)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("no_such_cc") && text.contains("reno") && text.contains("modprobe"), "{text}");
    }
}
