//! Requested window of a flow.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::units::{ByteCount, UnitError};

/// A receive window on the wire: from 1 byte to the maximum that TCP can advertise (RFC 7323, section 2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "ByteCount", into = "ByteCount")]
pub struct WindowBytes(u32);

/// Error in a window size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// It is not a valid size.
    #[error(transparent)]
    Size(#[from] UnitError),
    /// It exceeds what TCP can advertise.
    #[error("a window must be 1 to {max} bytes, the maximum that TCP can advertise (RFC 7323), not {0}", max = WindowBytes::MAX)]
    Range(ByteCount),
}

impl WindowBytes {
    /// Largest window, bytes: the maximum window field at the largest scale.
    pub const MAX: u32 = 65_535 << 14;

    /// Creates a window; `None` if TCP cannot advertise it.
    pub const fn new(bytes: u64) -> Option<Self> {
        if bytes > 0 && bytes <= Self::MAX as u64 { Some(Self(bytes as u32)) } else { None }
    }

    /// Returns its bytes as `u32`, for the kernel.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns its bytes.
    pub const fn as_bytes(self) -> u64 {
        self.0 as u64
    }
}

impl TryFrom<ByteCount> for WindowBytes {
    type Error = WindowError;

    fn try_from(size: ByteCount) -> Result<Self, WindowError> {
        Self::new(size.as_bytes()).ok_or(WindowError::Range(size))
    }
}

impl From<WindowBytes> for ByteCount {
    fn from(window: WindowBytes) -> Self {
        Self::bytes(window.as_bytes())
    }
}

impl FromStr for WindowBytes {
    type Err = WindowError;

    fn from_str(text: &str) -> Result<Self, WindowError> {
        text.parse::<ByteCount>()?.try_into()
    }
}

impl fmt::Display for WindowBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ByteCount::from(*self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_tcp_can_not_advertise_is_refused() {
        for (text, bytes) in [("1", 1), ("64K", 65_536), ("1073725440", 65_535 << 14)] {
            assert_eq!(text.parse::<WindowBytes>().unwrap().as_bytes(), bytes, "{text}");
            assert_eq!(serde_json::from_str::<WindowBytes>(&bytes.to_string()).unwrap().as_bytes(), bytes);
        }
        for text in ["0", "1073725441", "1G", "4096G"] {
            let error = text.parse::<WindowBytes>().unwrap_err().to_string();
            assert!(error.contains("1 to 1073725440 bytes"), "{error}");
            assert!(serde_json::from_str::<WindowBytes>(&format!("\"{text}\"")).is_err(), "{text}");
        }
        assert!(matches!("64Q".parse::<WindowBytes>(), Err(WindowError::Size(_))));
        assert_eq!(serde_json::to_string(&WindowBytes::new(65_536)).unwrap(), "65536");
    }
}
