//! The keys of a bdp that was built without them: there are none.

use std::convert::Infallible;

use bdp_wire::iperf3::auth::Login;

use super::Padding;

const WITHOUT: &str = "this bdp was built without the logins of iperf3 (its feature 'iperf3-users')";

/// The key by which a server reads logins.
#[derive(Debug)]
pub struct PrivateKey(Infallible);

impl PrivateKey {
    /// Refuses: there is nothing to read it by.
    pub fn from_pem(_text: &[u8]) -> Result<Self, String> {
        Err(WITHOUT.to_owned())
    }

    pub(crate) fn open(&self, _padding: Padding, _sealed: &[u8]) -> Option<Login> {
        match self.0 {}
    }
}

/// The key by which a client seals its login.
#[derive(Debug, Clone)]
pub struct PublicKey(Infallible);

impl PublicKey {
    /// Refuses: there is nothing to seal by.
    pub fn from_pem(_text: &[u8]) -> Result<Self, String> {
        Err(WITHOUT.to_owned())
    }

    pub(crate) fn seal(&self, _padding: Padding, _login: &Login) -> Option<String> {
        match self.0 {}
    }
}
