//! Client authentication: the text encrypted for the server, and the file of users to check it against.

use aws_lc_rs::{digest, hmac};

/// Allowed clock difference between the two machines, seconds, as in iperf3.
pub const SKEW_SECONDS: u64 = 10;

/// Credentials of a client.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// User name.
    pub user: String,
    /// The password.
    pub password: String,
    /// Time at which the text was made, seconds since 1970.
    pub unix_s: u64,
}

impl Login {
    /// Returns the text to encrypt.
    pub fn to_text(&self) -> String {
        format!("user: {}\npwd:  {}\nts:   {}", self.user, self.password, self.unix_s)
    }

    /// Parses the text of [`Login::to_text`]; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.split('\n');
        let mut part =
            |label: &str| Some(lines.next()?.strip_prefix(label)?.trim_start_matches(' ').to_owned());
        let (user, password, unix_s) = (part("user:")?, part("pwd:")?, part("ts:")?.trim().parse().ok()?);
        Some(Self { user, password, unix_s })
    }

    /// Returns the entry in the file of users for this user and password: SHA-256 of `{user}password`.
    fn digest(&self) -> String {
        let text = format!("{{{}}}{}", self.user, self.password);
        crate::proof::hex(digest::digest(&digest::SHA256, text.as_bytes()).as_ref())
    }

    /// Whether the text was made within `skew_s` of `now`.
    pub fn is_fresh(&self, now_unix_s: u64, skew_s: u64) -> bool {
        self.unix_s.abs_diff(now_unix_s) <= skew_s
    }
}

/// Users of a server, from lines of `user,sha256`.
#[derive(Clone, Default)]
pub struct Users(Vec<(String, String)>);

impl Users {
    /// Parses the file's text; the error names the invalid line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut users = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let entry = line.rsplit_once(',').map(|(user, digest)| (user.trim(), digest.trim()));
            match entry {
                Some((user, digest))
                    if !user.is_empty()
                        && digest.len() == 64
                        && digest.bytes().all(|b| b.is_ascii_hexdigit()) =>
                {
                    users.push((user.to_owned(), digest.to_ascii_lowercase()));
                }
                _ => {
                    return Err(format!(
                        "line {}: expected 'user,sha256', with the 64 digits of printf '{{user}}password' | sha256sum",
                        number + 1
                    ));
                }
            }
        }
        if users.is_empty() { Err("it contains no user".to_owned()) } else { Ok(Self(users)) }
    }

    /// Whether the login is valid; takes the same time for every user.
    pub fn know(&self, login: &Login) -> bool {
        let digest = login.digest();
        self.0.iter().fold(false, |known, (user, right)| {
            known | (same(user.as_bytes(), login.user.as_bytes()) & same(right.as_bytes(), digest.as_bytes()))
        })
    }
}

/// Compares two texts in a time that does not reveal where they differ.
fn same(one: &[u8], other: &[u8]) -> bool {
    // Compares keyed codes of equal length, which reveal nothing about the texts.
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"equal");
    hmac::verify(&key, one, hmac::sign(&key, other).as_ref()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf '{mario}rossi' | sha256sum`.
    const MARIO: &str = "mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b";

    fn login(user: &str, password: &str) -> Login {
        Login { user: user.to_owned(), password: password.to_owned(), unix_s: 1_700_000_000 }
    }

    #[test]
    fn a_login_comes_back() {
        let one = login("mario", "a pass: word");
        assert_eq!(one.to_text(), "user: mario\npwd:  a pass: word\nts:   1700000000");
        assert!(Login::parse(&one.to_text()) == Some(one));
        for wrong in
            ["", "user: a", "user: a\npwd:  b", "user: a\npwd:  b\nts:   x", "pwd: a\nuser: b\nts: 1"]
        {
            assert!(Login::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn users_are_known_by_their_password() {
        let users = Users::parse(&format!("# users\n\n{MARIO}\n")).unwrap();
        assert!(users.know(&login("mario", "rossi")));
        assert!(!users.know(&login("mario", "rosso")) && !users.know(&login("maria", "rossi")));
        for wrong in ["", "mario", "mario,12", ",bf7a", &MARIO.replace("bf", "xx")] {
            assert!(Users::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_old_login_is_not_fresh() {
        let one = login("mario", "rossi");
        let fresh = |now| one.is_fresh(now, SKEW_SECONDS);
        assert!(fresh(one.unix_s + 10) && fresh(one.unix_s - 10));
        assert!(!fresh(one.unix_s + 11) && !fresh(one.unix_s - 11) && !fresh(0));
    }
}
