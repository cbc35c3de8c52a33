//! Linux releases, to the precision that settings depend on.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Major and minor version of a kernel: `6.1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// Major version.
    pub major: u16,
    /// Minor version.
    pub minor: u16,
}

impl Release {
    /// The oldest kernel whose settings the catalogue describes.
    pub const OLDEST: Self = Self::new(3, 10);

    /// Creates a release from its two numbers.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    /// Parses the output of `uname -r`: `6.1.192-2-amd64` is 6.1. None if it does not begin with two numbers.
    pub fn of_kernel(release: &str) -> Option<Self> {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        let mut next = || numbers.next().and_then(|number| number.parse().ok());
        Some(Self { major: next()?, minor: next()? })
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Release {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::of_kernel(text).ok_or_else(|| format!("'{text}' is not a Linux release such as 6.1"))
    }
}

impl Serialize for Release {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Release {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_distributions_are_read_and_ordered() {
        let of = |text: &str| Release::of_kernel(text);
        assert_eq!(of("6.1.192-2-amd64"), Some(Release::new(6, 1)));
        assert_eq!(of("5.15.0-91-generic"), Some(Release::new(5, 15)));
        assert_eq!(of("6.18-rc3"), Some(Release::new(6, 18)));
        assert_eq!(of("3.10.0-1160.el7.x86_64"), Some(Release::OLDEST));
        for bad in ["", "linux", "6", "6.", "99999999.1", "-6.1"] {
            assert_eq!(of(bad), None, "{bad}");
        }
        assert!(Release::new(4, 9) < Release::new(4, 15) && Release::new(4, 20) < Release::new(5, 0));
    }
}
