//! Resolves host names and addresses by /etc/hosts and DNS.

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// The addresses of a host, in the system's order of preference (RFC 6724).
pub fn look_up(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    keep_to_builtin_services();
    match (host, port).to_socket_addrs() {
        Ok(addresses) => Ok(addresses.collect()),
        Err(error) => Err(plain(error)),
    }
}

/// The name of an address; `None` if the resolver knows none.
pub fn name_of(address: IpAddr) -> Option<String> {
    keep_to_builtin_services();
    let name = socket2::SockAddr::from(SocketAddr::new(address, 0));
    // NI_MAXHOST of netdb.h.
    let mut host = [0u8; 1025];
    // SAFETY: the kernel's name of an address with its length, and a live buffer with its own; no service is asked for.
    let done = unsafe {
        libc::getnameinfo(
            name.as_ptr().cast(),
            name.len(),
            host.as_mut_ptr().cast(),
            host.len() as _,
            std::ptr::null_mut(),
            0,
            libc::NI_NAMEREQD,
        )
    };
    let name = CStr::from_bytes_until_nul(&host).ok()?;
    (done == 0).then(|| name.to_string_lossy().into_owned())
}

/// Restricts glibc to the two services that a static program contains. Others named in /etc/nsswitch.conf (mdns,
/// resolve, myhostname) would be loaded as libraries of the machine's own glibc, beside the linked one, and may
/// end the process.
#[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
fn keep_to_builtin_services() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    unsafe extern "C" {
        /// glibc function (nss.h) that overrides /etc/nsswitch.conf for a database.
        fn __nss_configure_lookup(
            database: *const libc::c_char,
            services: *const libc::c_char,
        ) -> libc::c_int;
    }
    ONCE.call_once(|| {
        // SAFETY: both are NUL-terminated strings that live for ever; nothing looks names up meanwhile. If it is refused the file stays in force.
        unsafe { __nss_configure_lookup(c"hosts".as_ptr(), c"files dns".as_ptr()) };
    });
}

#[cfg(not(all(target_env = "gnu", target_feature = "crt-static")))]
fn keep_to_builtin_services() {}

/// The resolver's error without the prefix of the standard library.
fn plain(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.strip_prefix("failed to lookup address information: ") {
        Some(rest) => io::Error::new(error.kind(), rest.to_owned()),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn localhost_has_an_address_and_an_invalid_name_none() {
        assert!(look_up("localhost", 7).unwrap().iter().all(|a| a.ip().is_loopback() && a.port() == 7));
        let refused = look_up("no such host", 7).unwrap_err().to_string();
        assert!(!refused.contains("failed to lookup"), "{refused}");
    }
}
