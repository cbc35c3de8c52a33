//! Proof of the token without sending it: HMAC-SHA256 (RFC 2104) over the nonces of both ends.

use std::fmt::Write;

use aws_lc_rs::hmac;

/// Length of a nonce and of a proof, bytes.
pub const PROOF_BYTES: usize = 32;

/// Author of a proof. A proof made by one end is not valid as the other's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prover {
    /// The end that connected.
    Client,
    /// The end that listens.
    Server,
    /// The end that connected, proving the tune token.
    TuneClient,
    /// The end that listens, proving the tune token.
    TuneServer,
}

/// Nonces exchanged before a proof is made.
#[derive(Debug, Clone, Copy)]
pub struct Exchange {
    /// The server's nonce.
    pub server_nonce: [u8; PROOF_BYTES],
    /// The client's nonce.
    pub client_nonce: [u8; PROOF_BYTES],
}

impl Exchange {
    /// Returns the proof of one end, in hexadecimal.
    pub fn prove(&self, token: &str, prover: Prover) -> String {
        hex(hmac::sign(&key(token), &self.said_by(prover)).as_ref())
    }

    /// Whether a proof is valid, compared in constant time.
    pub fn verify(&self, token: &str, prover: Prover, proof: &str) -> bool {
        unhex::<PROOF_BYTES>(proof)
            .is_some_and(|bytes| hmac::verify(&key(token), &self.said_by(prover), &bytes).is_ok())
    }

    /// Returns the seal of a message written by one end, bound to its request number; in hexadecimal.
    pub fn seal(&self, token: &str, prover: Prover, number: u64, text: &str) -> String {
        hex(hmac::sign(&key(token), &self.written_by(prover, number, text)).as_ref())
    }

    /// Whether a seal is valid.
    pub fn is_sealed(&self, token: &str, prover: Prover, number: u64, text: &str, seal: &str) -> bool {
        unhex::<PROOF_BYTES>(seal).is_some_and(|bytes| {
            hmac::verify(&key(token), &self.written_by(prover, number, text), &bytes).is_ok()
        })
    }

    fn said_by(&self, prover: Prover) -> Vec<u8> {
        let who: &[u8] = match prover {
            Prover::Client => b"bdp 1 client",
            Prover::Server => b"bdp 1 server",
            Prover::TuneClient => b"bdp 1 tune client",
            Prover::TuneServer => b"bdp 1 tune server",
        };
        [who, &self.server_nonce, &self.client_nonce].concat()
    }

    /// Returns the text under a seal; its prefix keeps a seal from being valid as a proof.
    fn written_by(&self, prover: Prover, number: u64, text: &str) -> Vec<u8> {
        let said = self.said_by(prover);
        [b"seal ", &said[..], &number.to_be_bytes(), text.as_bytes()].concat()
    }
}

fn key(token: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, token.as_bytes())
}

/// Returns lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Decodes exactly `N` bytes of hexadecimal; `None` for anything else.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXCHANGE: Exchange = Exchange { server_nonce: [1; 32], client_nonce: [2; 32] };

    #[test]
    fn a_proof_is_right_for_its_token_its_end_and_its_exchange_only() {
        let proof = EXCHANGE.prove("k7f3", Prover::Client);
        assert!(EXCHANGE.verify("k7f3", Prover::Client, &proof));
        assert!(!EXCHANGE.verify("k7f4", Prover::Client, &proof));
        assert!(!EXCHANGE.verify("k7f3", Prover::Server, &proof));
        for other in [Prover::TuneClient, Prover::TuneServer] {
            assert!(!EXCHANGE.verify("k7f3", other, &proof));
        }
        let another = Exchange { client_nonce: [3; 32], ..EXCHANGE };
        assert!(!another.verify("k7f3", Prover::Client, &proof));
        for broken in ["", "00", &proof[..62], &format!("{proof}00"), &proof.replace(&proof[..2], "é")] {
            assert!(!EXCHANGE.verify("k7f3", Prover::Client, broken), "{broken}");
        }
    }

    #[test]
    fn a_proof_is_what_other_implementations_compute() {
        // printf 'bdp 1 client' ... | openssl dgst -sha256 -hmac k7f3
        assert_eq!(
            EXCHANGE.prove("k7f3", Prover::Client),
            "439ba8347bd3898dab5d22491a156a38ce50f78a0aff4fbefd446dbbeeaabd13"
        );
    }

    #[test]
    fn hexadecimal_comes_back() {
        assert_eq!(hex(&[0, 0xab, 0xff]), "00abff");
        assert_eq!(unhex::<3>("00abFF"), Some([0, 0xab, 0xff]));
        assert_eq!(unhex::<3>("00abf"), None);
        assert_eq!(unhex::<1>("+f"), None);
        assert_eq!(unhex::<1>("é"), None);
    }
}
