//! Logins of iperf3's protocol: a client's user and password, encrypted with the server's key
//! (`docs/decisions/0004-rsa-of-logins.md`).

pub(crate) mod rsa;

use std::fmt;

use bdp_wire::iperf3::auth::Login;

pub use rsa::{PrivateKey, PublicKey};

/// How a text is padded before encryption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// RSAES-OAEP with SHA-1 (RFC 8017, section 7.1), used by iperf3 since 3.17.
    Oaep,
    /// RSAES-PKCS1-v1_5 (RFC 8017, section 7.2), used by earlier iperf3.
    Pkcs1,
}

/// The login of an iperf3 client.
#[derive(Clone)]
pub struct ClientLogin {
    /// The user's name.
    pub user: String,
    /// The password.
    pub password: String,
    /// The server's key.
    pub key: PublicKey,
    /// The padding that the server expects.
    pub padding: Padding,
}

impl ClientLogin {
    /// Returns the token of a test that begins now; `None` if name and password are too long for the key.
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
