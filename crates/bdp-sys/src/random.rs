//! The kernel's randomness.

use crate::{Result, SysError};

/// Bytes that nobody can guess.
pub fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        let rest = &mut bytes[filled..];
        // SAFETY: the pointer and length are those of a live buffer.
        let got = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        if got < 0 {
            let error = SysError::last("read", "random bytes");
            if error.source.kind() == std::io::ErrorKind::Interrupted {
                continue;
            }
            return Err(error);
        }
        filled += got as usize;
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
