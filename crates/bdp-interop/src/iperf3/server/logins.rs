//! Verifies the logins of iperf3's clients.
//!
//! A client learns only whether its login was accepted, at a time that reveals nothing more: each answer comes a
//! whole number of `ANSWER`s after its question, and a wrong password, an unknown user, a stale login, a replayed one
//! and bytes that are no login all get the same answer.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bdp_sys::clock;
use bdp_wire::iperf3::auth::{Login, Users};
use bdp_wire::iperf3::base64;

use crate::iperf3::login::{Padding, PrivateKey};
use bdp_agent::server::failures::{Failures, MOST_FAILURES, WINDOW};

use bdp_flow::lock::lock;

/// Time from a login to its answer: longer than the arithmetic takes.
const ANSWER: Duration = Duration::from_millis(100);

/// Who may log in, and how.
pub struct LoginRules {
    /// The known users.
    pub users: Users,
    /// The key for which logins are encrypted.
    pub key: PrivateKey,
    /// Largest difference of the clocks of client and server, seconds.
    pub skew_s: u64,
    /// Whether to refuse the older padding.
    pub oaep_only: bool,
}

/// The logins of a server.
pub(super) struct Logins {
    rules: Arc<LoginRules>,
    memory: Mutex<Memory>,
}

/// Memory of logins so far.
#[derive(Default)]
struct Memory {
    failures: Failures,
    /// Logins already used, with their times, to prevent replays.
    taken: HashMap<Vec<u8>, Instant>,
}

impl Logins {
    pub(super) fn new(rules: Arc<LoginRules>) -> Self {
        Self { rules, memory: Mutex::default() }
    }

    /// Returns the verified user, or why the login failed, for the log alone. Waits until an answer may be given.
    pub(super) fn check(&self, peer: IpAddr, token: Option<&str>) -> Result<String, String> {
        let asked = Instant::now();
        let judged = self.judge(peer, token, asked, clock::unix_ms() / 1000);
        let answers = asked.elapsed().as_nanos().div_ceil(ANSWER.as_nanos()).max(1);
        let due = ANSWER * u32::try_from(answers).unwrap_or(1);
        std::thread::sleep(due.saturating_sub(asked.elapsed()));
        judged
    }

    fn judge(&self, peer: IpAddr, token: Option<&str>, now: Instant, unix_s: u64) -> Result<String, String> {
        // One after the other: the key is not for a client to keep processors busy with.
        let mut memory = lock(&self.memory);
        if memory.failures.has_failed_often(peer, now) {
            return Err(format!(
                "{MOST_FAILURES} failed logins from its address within {} s",
                WINDOW.as_secs()
            ));
        }
        let judged = self.rules.judge(token, unix_s).and_then(|(login, sealed)| {
            let still_fresh = Duration::from_secs(2 * self.rules.skew_s + 1);
            memory
                .take(sealed, now, still_fresh)
                .then_some(login.user)
                .ok_or("its login was replayed".to_owned())
        });
        if judged.is_err() {
            memory.failures.note(peer, now);
        }
        judged
    }
}

impl LoginRules {
    /// The login of a token, with the token's bytes.
    fn judge(&self, token: Option<&str>, unix_s: u64) -> Result<(Login, Vec<u8>), String> {
        let token =
            token.ok_or("it sent no login (use --username there, with the public key of this server)")?;
        let sealed = base64::decode(token).ok_or("its login is not base64")?;
        // Both are tried, whatever the first gave.
        let oaep = self.key.open(Padding::Oaep, &sealed);
        let pkcs1 = self.key.open(Padding::Pkcs1, &sealed);
        let login = match (oaep, pkcs1) {
            (None, Some(_)) if self.oaep_only => {
                return Err(
                    "its login uses the padding of iperf3 before 3.17 (--iperf3-oaep-only)".to_owned()
                );
            }
            (None, None) => return Err("its login was not encrypted with this server's key".to_owned()),
            (Some(login), _) | (None, Some(login)) => login,
        };
        let known = self.users.know(&login);
        if !known {
            return Err(format!("unknown user '{}', or wrong password", login.user));
        }
        if !login.is_fresh(unix_s, self.skew_s) {
            let (apart, way) = match login.unix_s.checked_sub(unix_s) {
                Some(ahead) => (ahead, "after"),
                None => (unix_s - login.unix_s, "before"),
            };
            return Err(format!(
                "the login of '{}' is dated {apart} s {way} now; {} s are allowed (--iperf3-time-skew)",
                login.user, self.skew_s
            ));
        }
        Ok((login, sealed))
    }
}

impl Memory {
    /// Takes a login, if that is its first time.
    fn take(&mut self, sealed: Vec<u8>, now: Instant, still_fresh: Duration) -> bool {
        self.taken.retain(|_, since| now.saturating_duration_since(*since) < still_fresh);
        self.taken.insert(sealed, now).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iperf3::login::rsa::tests::{login, pair};

    const NOW: u64 = 1_700_000_000;

    fn rules() -> (Logins, crate::iperf3::login::PublicKey) {
        let (key, public) = pair();
        // printf '{mario}rossi' | sha256sum
        let users = "mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b";
        let users = Users::parse(users).unwrap();
        (Logins::new(Arc::new(LoginRules { users, key, skew_s: 10, oaep_only: false })), public)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_login_is_taken_once_within_its_time() {
        let (logins, public) = rules();
        let now = Instant::now();
        let seal = |padding| public.seal(padding, &login("rossi")).unwrap();
        for padding in [Padding::Oaep, Padding::Pkcs1] {
            let token = seal(padding);
            let judge = |unix_s| logins.judge(ip("192.0.2.1"), Some(&token), now, unix_s);
            assert!(judge(NOW + 11).unwrap_err().contains("11 s before now"));
            assert!(judge(NOW - 11).unwrap_err().contains("11 s after now"));
            assert_eq!(judge(NOW - 10).as_deref(), Ok("mario"));
            assert!(judge(NOW).unwrap_err().contains("was replayed"));
        }
    }

    #[test]
    fn reason_of_a_refused_login_is_logged() {
        let ((logins, public), (_, other)) = (rules(), rules());
        let now = Instant::now();
        let seal =
            |key: &crate::iperf3::login::PublicKey, password| key.seal(Padding::Oaep, &login(password));
        for (i, (token, part)) in [
            (None, "no login"),
            (Some("a".to_owned()), "not base64"),
            (Some(base64::encode(&[7; 256])), "not encrypted with this server's key"),
            (seal(&other, "rossi"), "not encrypted with this server's key"),
            (seal(&public, "rosso"), "unknown user 'mario', or wrong password"),
        ]
        .into_iter()
        .enumerate()
        {
            let peer = ip(&format!("192.0.2.{i}"));
            let refused = logins.judge(peer, token.as_deref(), now, NOW).unwrap_err();
            assert!(refused.contains(part), "{refused}");
        }
    }

    #[test]
    fn the_older_padding_can_be_refused() {
        let (key, public) = pair();
        let users = Users::parse("mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b");
        let rules = LoginRules { users: users.unwrap(), key, skew_s: 10, oaep_only: true };
        let judge = |padding| rules.judge(public.seal(padding, &login("rossi")).as_deref(), NOW).map(drop);
        assert_eq!(judge(Padding::Oaep), Ok(()));
        assert!(judge(Padding::Pkcs1).unwrap_err().contains("--iperf3-oaep-only"));
    }

    #[test]
    fn an_address_that_fails_often_waits_and_no_other() {
        let (logins, public) = rules();
        let start = Instant::now();
        for _ in 0..MOST_FAILURES {
            assert!(logins.judge(ip("192.0.2.1"), None, start, NOW).unwrap_err().contains("no login"));
        }
        let token = public.seal(Padding::Oaep, &login("rossi"));
        let judge = |peer, at| logins.judge(ip(peer), token.as_deref(), at, NOW);
        assert!(
            judge("192.0.2.1", start).unwrap_err().contains("failed logins from its address within 60 s")
        );
        assert!(judge("::ffff:192.0.2.1", start + WINDOW / 2).is_err(), "the same one");
        assert!(judge("192.0.2.1", start + WINDOW).is_ok());
        assert!(judge("192.0.2.2", start).unwrap_err().contains("was replayed"), "read, and judged");
    }

    #[test]
    fn logins_are_remembered_as_long_as_they_are_fresh() {
        let mut memory = Memory::default();
        let start = Instant::now();
        assert!(memory.take(vec![1], start, WINDOW) && !memory.take(vec![1], start, WINDOW));
        assert!(memory.take(vec![2], start + WINDOW, WINDOW));
        assert_eq!(memory.taken.len(), 1, "what is stale can't be used again");
    }

    #[test]
    fn answers_come_at_their_time() {
        let (logins, public) = rules();
        let right = Login { unix_s: clock::unix_ms() / 1000, ..login("rossi") };
        for (i, token) in [None, Some(base64::encode(&[1; 256])), public.seal(Padding::Oaep, &right)]
            .into_iter()
            .enumerate()
        {
            let asked = Instant::now();
            assert_eq!(logins.check(ip("127.0.0.1"), token.as_deref()).is_ok(), i == 2);
            assert!(asked.elapsed() >= ANSWER, "{:?}", asked.elapsed());
        }
    }
}
