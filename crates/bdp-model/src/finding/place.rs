//! Where a limit is.

use serde::{Deserialize, Serialize};

use super::named::named;

named! {
    /// Where a limit is.
    pub enum At {
        /// At the end that sends.
        Sender = "sender",
        /// At the end that receives.
        Receiver = "receiver",
        /// On the way of the data.
        Path = "path",
        /// On the way of the acknowledgements.
        WayBack = "way_back",
        /// In what was asked for.
        Request = "request",
    }
}

/// Where a limit is, by name where it has one: of an end the host, of the path a hop or a device.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// Which part.
    pub at: At,
    /// Its name.
    pub name: Option<String>,
}

impl Place {
    /// The end that sends.
    pub fn sender(name: &str) -> Self {
        Self { at: At::Sender, name: Some(name.to_owned()) }
    }

    /// The end that receives.
    pub fn receiver(name: &str) -> Self {
        Self { at: At::Receiver, name: Some(name.to_owned()) }
    }

    /// Somewhere between the two.
    pub const fn path() -> Self {
        Self { at: At::Path, name: None }
    }

    /// A hop or a device between the two.
    pub fn hop(name: &str) -> Self {
        Self { at: At::Path, name: Some(name.to_owned()) }
    }

    /// The way of the acknowledgements.
    pub const fn way_back() -> Self {
        Self { at: At::WayBack, name: None }
    }

    /// What was asked for.
    pub const fn request() -> Self {
        Self { at: At::Request, name: None }
    }
}
