//! From host names to addresses, by /etc/hosts and DNS.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// The addresses of a host, in the system's order of preference (RFC 6724).
pub fn look_up(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    keep_to_builtin_services();
    match (host, port).to_socket_addrs() {
        Ok(addresses) => Ok(addresses.collect()),
        Err(error) => Err(plain(error)),
    }
}

/// Keeps glibc to the two services that are in a static program. Others that /etc/nsswitch.conf names (mdns, resolve,
/// myhostname) would be loaded as libraries of the machine's own glibc, beside the one that is linked in, and may end
/// the process.
#[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
fn keep_to_builtin_services() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    unsafe extern "C" {
        /// Of nss.h: what /etc/nsswitch.conf would say of a database.
        fn __nss_configure_lookup(
            database: *const libc::c_char,
            services: *const libc::c_char,
        ) -> libc::c_int;
    }
    ONCE.call_once(|| {
        // SAFETY: both are NUL-terminated strings that live for ever; nothing looks names up meanwhile. Where it is
        // refused the file stays in force.
        unsafe { __nss_configure_lookup(c"hosts".as_ptr(), c"files dns".as_ptr()) };
    });
}

#[cfg(not(all(target_env = "gnu", target_feature = "crt-static")))]
fn keep_to_builtin_services() {}

/// The resolver's answer without the words that the standard library puts before it.
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
