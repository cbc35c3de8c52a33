//! Base64 with padding and nothing else (RFC 4648, section 4), which a login travels in.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text of some bytes.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().enumerate().fold(0_u32, |bits, (i, &b)| bits | u32::from(b) << (16 - 8 * i));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// The bytes of a text; `None` where it is anything but what [`encode`] gives, so that no two texts are of the same bytes.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take(2).take_while(|&&b| b == b'=').count();
    let digits = &text[..text.len() - padding];
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in digits.chunks(4) {
        let mut bits = 0;
        for (place, digit) in group.iter().enumerate() {
            let value = DIGITS.iter().position(|d| d == digit)? as u32;
            bits |= value << (18 - 6 * place);
        }
        let whole = group.len() - 1;
        if bits & (0xff_ffff >> (8 * whole)) != 0 {
            return None;
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..=whole]);
    }
    Some(bytes)
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
