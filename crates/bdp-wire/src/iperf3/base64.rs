//! Base64 with padding and no other characters (RFC 4648, section 4), used for logins.

use base64ct::{Base64, Encoding};

/// Encodes bytes.
pub fn encode(bytes: &[u8]) -> String {
    Base64::encode_string(bytes)
}

/// Decodes a text; `None` unless it is exactly what [`encode`] returns, so that no two texts decode to the same bytes.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    Base64::decode_vec(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard() {
        // RFC 4648, section 10.
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
    }

    #[test]
    fn every_length_and_byte_comes_back() {
        let bytes: Vec<u8> = (0..=255).chain(3..70).collect();
        for from in 0..bytes.len() {
            assert_eq!(decode(&encode(&bytes[from..])).as_deref(), Some(&bytes[from..]));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for wrong in [
            "Z", "Zg", "Zg=", "Zh==", "Zm9=", "Zm8==", "Z===", "====", "Zm9v\n", "Zm-v", "Zm 9", "=Zm9",
            "Zg==Zg==",
        ] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
