//! RSA keys by AWS-LC, whose arithmetic is constant-time.

use std::fmt;

use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey, Pkcs1PrivateDecryptingKey,
    Pkcs1PublicEncryptingKey, PrivateDecryptingKey, PublicEncryptingKey,
};
use bdp_wire::iperf3::auth::Login;
use bdp_wire::iperf3::base64;
use rustls::pki_types::pem::{self, SectionKind};

use super::Padding;

/// The key with which a server decrypts logins.
pub struct PrivateKey {
    oaep: OaepPrivateDecryptingKey,
    pkcs1: Pkcs1PrivateDecryptingKey,
}

impl PrivateKey {
    /// Parses a PEM text, PKCS#8 or PKCS#1; the error says what it is instead.
    pub fn from_pem(text: &[u8]) -> Result<Self, String> {
        const WAY_OUT: &str = "'openssl genrsa -out private.pem 2048' makes one";
        let pkcs8 = match section(text) {
            Some((SectionKind::PrivateKey, der)) => der,
            Some((SectionKind::RsaPrivateKey, der)) => wrapped(&der),
            Some((SectionKind::PublicKey, _)) => {
                return Err("it contains a public key, which is for the clients".to_owned());
            }
            _ if contains(text, "ENCRYPTED") => {
                return Err("it is encrypted; 'openssl rsa -in FILE -out OPEN' decrypts it".to_owned());
            }
            _ => return Err(format!("it contains no PEM private key; {WAY_OUT}")),
        };
        let refused = |_| format!("its key is not an RSA key of 2048 to 8192 bits; {WAY_OUT}");
        let key = || PrivateDecryptingKey::from_pkcs8(&pkcs8).map_err(refused);
        Ok(Self {
            oaep: OaepPrivateDecryptingKey::new(key()?).map_err(|e| e.to_string())?,
            pkcs1: Pkcs1PrivateDecryptingKey::new(key()?).map_err(|e| e.to_string())?,
        })
    }

    /// Decrypts a login with this padding; `None` if it is invalid.
    pub(crate) fn open(&self, padding: Padding, sealed: &[u8]) -> Option<Login> {
        // Nothing else is as long, and the primitives need not see it.
        if sealed.len() != self.oaep.key_size_bytes() {
            return None;
        }
        let mut room = vec![0; self.oaep.min_output_size()];
        let opened = match padding {
            Padding::Oaep => self.oaep.decrypt(&OAEP_SHA1_MGF1SHA1, sealed, &mut room, None),
            Padding::Pkcs1 => self.pkcs1.decrypt(sealed, &mut room),
        };
        Login::parse(std::str::from_utf8(opened.ok()?).ok()?)
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(...)")
    }
}

/// The key with which a client encrypts its login.
#[derive(Clone)]
pub struct PublicKey(PublicEncryptingKey);

impl PublicKey {
    /// Parses a PEM text; the error says what it is instead.
    pub fn from_pem(text: &[u8]) -> Result<Self, String> {
        const WAY_OUT: &str =
            "'openssl rsa -in private.pem -pubout -out public.pem' extracts it from the server's";
        match section(text) {
            Some((SectionKind::PublicKey, der)) => PublicEncryptingKey::from_der(&der)
                .map(Self)
                .map_err(|_| "its key is not an RSA key of 2048 to 8192 bits".to_owned()),
            Some((SectionKind::PrivateKey | SectionKind::RsaPrivateKey, _)) => {
                Err(format!("it contains a private key, which must stay on the server; {WAY_OUT}"))
            }
            _ => Err(format!("it contains no PEM public key; {WAY_OUT}")),
        }
    }

    /// Returns a login as transmitted: encrypted, base64. `None` if it is too long for the key and padding.
    pub(crate) fn seal(&self, padding: Padding, login: &Login) -> Option<String> {
        let text = login.to_text();
        let mut room = vec![0; self.0.key_size_bytes()];
        let sealed = match padding {
            Padding::Oaep => OaepPublicEncryptingKey::new(self.0.clone()).ok()?.encrypt(
                &OAEP_SHA1_MGF1SHA1,
                text.as_bytes(),
                &mut room,
                None,
            ),
            Padding::Pkcs1 => {
                Pkcs1PublicEncryptingKey::new(self.0.clone()).ok()?.encrypt(text.as_bytes(), &mut room)
            }
        };
        Some(base64::encode(sealed.ok()?))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PublicKey(...)")
    }
}

/// The first key of a PEM text.
fn section(text: &[u8]) -> Option<(SectionKind, Vec<u8>)> {
    let mut left = text;
    // Sections other than keys, such as parameters, may precede it.
    while let Ok(Some((kind, der))) = pem::from_buf(&mut left) {
        if matches!(kind, SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::PublicKey) {
            return Some((kind, der));
        }
    }
    None
}

fn contains(text: &[u8], part: &str) -> bool {
    text.windows(part.len()).any(|window| window == part.as_bytes())
}

/// An `RSAPrivateKey` of PKCS#1 (RFC 8017, appendix A.1.2) as a `PrivateKeyInfo` of PKCS#8 (RFC 5208, section 5).
fn wrapped(pkcs1: &[u8]) -> Vec<u8> {
    // Version 0, and rsaEncryption (1.2.840.113549.1.1.1) with NULL.
    const HEAD: &[u8] = &[2, 1, 0, 0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
    let mut body = HEAD.to_vec();
    body.extend(element(4, pkcs1));
    element(0x30, &body)
}

/// An element of DER (X.690, section 8.1).
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    if content.len() < 0x80 {
        bytes.push(content.len() as u8);
    } else {
        let length = content.len().to_be_bytes();
        let digits = &length[length.iter().take_while(|&&byte| byte == 0).count()..];
        bytes.push(0x80 | digits.len() as u8);
        bytes.extend(digits);
    }
    bytes.extend(content);
    bytes
}

#[cfg(test)]
pub(crate) mod tests {
    use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
    use aws_lc_rs::rsa::KeySize;

    use super::super::ClientLogin;
    use super::*;

    /// Returns a new key pair.
    pub(crate) fn pair() -> (PrivateKey, PublicKey) {
        let key = PrivateDecryptingKey::generate(KeySize::Rsa2048).unwrap();
        let private = AsDer::<Pkcs8V1Der<'_>>::as_der(&key).unwrap();
        let public = AsDer::<PublicKeyX509Der<'_>>::as_der(&key.public_key()).unwrap();
        let pem = |kind: &str, der: &[u8]| {
            format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", base64::encode(der))
        };
        (
            PrivateKey::from_pem(pem("PRIVATE KEY", private.as_ref()).as_bytes()).unwrap(),
            PublicKey::from_pem(pem("PUBLIC KEY", public.as_ref()).as_bytes()).unwrap(),
        )
    }

    pub(crate) fn login(password: &str) -> Login {
        Login { user: "mario".to_owned(), password: password.to_owned(), unix_s: 1_700_000_000 }
    }

    #[test]
    fn a_login_comes_back_by_its_own_padding_and_key_alone() {
        let ((private, public), (other, _)) = (pair(), pair());
        for (padding, unlike) in [(Padding::Oaep, Padding::Pkcs1), (Padding::Pkcs1, Padding::Oaep)] {
            let token = public.seal(padding, &login("rossi")).unwrap();
            let sealed = base64::decode(&token).unwrap();
            assert!(private.open(padding, &sealed) == Some(login("rossi")), "{padding:?}");
            assert!(private.open(unlike, &sealed).is_none() && other.open(padding, &sealed).is_none());
            assert!(private.open(padding, &sealed[1..]).is_none() && private.open(padding, &[]).is_none());
            assert_ne!(public.seal(padding, &login("rossi")).unwrap(), token, "no two are alike");
            assert!(public.seal(padding, &login(&"long".repeat(60))).is_none());
        }
    }

    #[test]
    fn what_is_no_key_is_named() {
        for (text, part) in [
            ("", "no PEM private key"),
            ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "2048"),
            ("-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n", "2048"),
            ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "public key"),
            (
                "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
                "encrypted",
            ),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "no PEM private key"),
        ] {
            let refused = PrivateKey::from_pem(text.as_bytes()).unwrap_err();
            assert!(refused.contains(part), "{text}: {refused}");
        }
        let refused = |text: &str| PublicKey::from_pem(text.as_bytes()).unwrap_err();
        assert!(
            refused("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").contains("private key")
        );
        assert!(refused("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n").contains("2048"));
        assert!(refused("a key").contains("no PEM public key"));
    }

    #[test]
    fn secrets_are_not_shown() {
        let (private, public) = pair();
        let login = ClientLogin {
            user: "mario".to_owned(),
            password: "rossi".to_owned(),
            key: public,
            padding: Padding::Oaep,
        };
        assert!(!format!("{login:?}{private:?}").contains("rossi"));
    }
}
