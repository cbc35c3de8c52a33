//! Random bytes from the kernel.

use std::io;

use rustix::io::retry_on_intr;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::{Result, SysError};

/// Returns unpredictable bytes.
pub fn bytes<const N: usize>() -> Result<[u8; N]> {
    let failed = |e: io::Error| SysError::new("read", "random bytes", e);
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        let rest = &mut bytes[filled..];
        filled +=
            retry_on_intr(|| getrandom(&mut *rest, GetRandomFlags::empty())).map_err(|e| failed(e.into()))?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_draws_differ() {
        let (first, second): ([u8; 16], [u8; 16]) = (super::bytes().unwrap(), super::bytes().unwrap());
        assert_ne!(first, second);
    }
}
