//! Logins of iperf3's protocol: who a client says it is, sealed for the server's key
//! (`docs/decisions/0004-rsa-of-logins.md`).

pub(crate) mod rsa;

use std::fmt;

use bdp_wire::iperf3::auth::Login;

pub use rsa::{PrivateKey, PublicKey};

/// How a text is padded before it is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// RSAES-OAEP with SHA-1 (RFC 8017, section 7.1), of iperf3 since 3.17.
    Oaep,
    /// RSAES-PKCS1-v1_5 (RFC 8017, section 7.2), of iperf3 before.
    Pkcs1,
}

/// Who a client of iperf3's protocol says it is.
#[derive(Clone)]
pub struct ClientLogin {
    /// The user's name.
    pub user: String,
    /// The password.
    pub password: String,
    /// The server's key.
    pub key: PublicKey,
    /// As the server expects it.
    pub padding: Padding,
}

impl ClientLogin {
    /// The token of a test that begins now; `None` where name and password are longer than the key has room for.
    pub(crate) fn token(&self, unix_s: u64) -> Option<String> {
        let login = Login { user: self.user.clone(), password: self.password.clone(), unix_s };
        self.key.seal(self.padding, &login)
    }
}

impl fmt::Debug for ClientLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientLogin").field("user", &self.user).finish_non_exhaustive()
    }
}
