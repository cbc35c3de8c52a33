//! Where a limit is.

use serde::{Deserialize, Serialize};

use super::named::named;

named! {
    /// Where a limit is.
    pub enum At {
        /// At the sending end.
        Sender = "sender",
        /// At the receiving end.
        Receiver = "receiver",
        /// On the path of the data.
        Path = "path",
        /// On the reverse path, which carries the acknowledgements.
        WayBack = "way_back",
        /// In the request: the limit was asked for.
        Request = "request",
    }
}

/// Where a limit is, with its name if it has one: a host, a hop or a device.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// The part of the connection.
    pub at: At,
    /// The name of the host, hop or device.
    pub name: Option<String>,
}

impl Place {
    /// The sending end.
    pub fn sender(name: &str) -> Self {
        Self { at: At::Sender, name: Some(name.to_owned()) }
    }

    /// The receiving end.
    pub fn receiver(name: &str) -> Self {
        Self { at: At::Receiver, name: Some(name.to_owned()) }
    }

    /// Somewhere between the two ends.
    pub const fn path() -> Self {
        Self { at: At::Path, name: None }
    }

    /// A hop or a device between the two ends.
    pub fn hop(name: &str) -> Self {
        Self { at: At::Path, name: Some(name.to_owned()) }
    }

    /// The reverse path.
    pub const fn way_back() -> Self {
        Self { at: At::WayBack, name: None }
    }

    /// The request.
    pub const fn request() -> Self {
        Self { at: At::Request, name: None }
    }
}
