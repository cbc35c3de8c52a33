//! Who may ask. The token is the authority; a browser trades it for a secret of this server, keeps that in the storage of
//! its origin, and sends it with each request.
//!
//! Not a cookie: a browser sends those to every port of 127.0.0.1, so that whoever serves another port could use them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use axum::http::{HeaderMap, header};

use crate::origin::{is_address_or, named, tame};
use crate::{Refused, RefusedBy};

/// Headers by which a proxy says for whom it asks.
const PASSED_ON: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

/// The authority over one server.
#[derive(Debug, Clone)]
pub struct Door {
    token: String,
    session: String,
    names: BTreeSet<String>,
    is_loopback: bool,
}

impl Door {
    /// A door that `token` opens. `session` is a second secret, which ends with the server. `names` are the host names
    /// by which browsers may address the server, apart from `localhost` and plain addresses. `is_loopback`: whether
    /// only this machine reaches it.
    pub fn new(
        token: String,
        session: String,
        names: impl IntoIterator<Item = String>,
        is_loopback: bool,
    ) -> Self {
        let names = names.into_iter().map(|name| name.to_ascii_lowercase()).collect();
        Self { token, session, names, is_loopback }
    }

    /// Whether the request comes from this machine, not through a proxy. A page with names expects one, and a proxy
    /// need not add headers: then no request is.
    pub fn is_local(&self, headers: &HeaderMap) -> bool {
        let name = named(headers);
        let address = name.trim_matches(['[', ']']).parse::<IpAddr>();
        let is_own =
            name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback());
        let is_passed_on = PASSED_ON.iter().any(|name| headers.contains_key(*name));
        self.is_loopback && self.names.is_empty() && is_own && !is_passed_on
    }

    /// Refuses a request for a host that is not this server: a foreign name that was made to resolve to it.
    pub fn check_host(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let name = named(headers);
        if is_address_or(name, |name| self.names.contains(&name.to_ascii_lowercase())) {
            return Ok(());
        }
        Err(denied(format!(
            "this server is not known as '{}': use its address, or start 'bdp page --name {0}'",
            tame(name)
        )))
    }

    /// Refuses a request without the token or the secret, and one from another site.
    pub fn check(&self, headers: &HeaderMap) -> Result<(), Refused> {
        check_origin(headers)?;
        if given(headers).is_some_and(|given| same(given, &self.token) || same(given, &self.session)) {
            return Ok(());
        }
        Err(old())
    }

    /// Trades the token for the secret.
    pub fn enter(&self, headers: &HeaderMap) -> Result<String, Refused> {
        check_origin(headers)?;
        if given(headers).is_some_and(|given| same(given, &self.token)) {
            return Ok(self.session.clone());
        }
        Err(old())
    }
}

/// A browser names the page that a request comes from; it must be this server's own.
fn check_origin(headers: &HeaderMap) -> Result<(), Refused> {
    let Some(origin) = text(headers, header::ORIGIN.as_str()) else { return Ok(()) };
    let host = text(headers, header::HOST.as_str()).unwrap_or_default();
    let own = origin.split_once("://").is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(host));
    if own { Ok(()) } else { Err(denied("another site may not use the page of bdp")) }
}

fn given(headers: &HeaderMap) -> Option<&str> {
    text(headers, header::AUTHORIZATION.as_str())?.strip_prefix("Bearer ").map(str::trim)
}

fn old() -> Refused {
    denied("this link is not valid any more: every start of 'bdp page' prints a new one; open that")
}

/// Whether two texts are equal, in a time that depends only on their lengths.
fn same(given: &str, own: &str) -> bool {
    let differing = given.bytes().zip(own.bytes()).fold(0, |bits, (a, b)| bits | (a ^ b));
    given.len() == own.len() && differing == 0 && !own.is_empty()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn denied(message: impl Into<String>) -> Refused {
    Refused::new(RefusedBy::Access, message)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn door() -> Door {
        Door::new("secret".to_owned(), "session".to_owned(), ["Lab-1.example".to_owned()], true)
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn only_own_names_and_addresses_are_answered() {
        let known =
            ["localhost:5299", "127.0.0.1:5299", "[::1]:5299", "[fe80::1]", "192.0.2.7", "lab-1.EXAMPLE"];
        for host in known {
            assert!(door().check_host(&headers(&[("host", host)])).is_ok(), "{host}");
        }
        for host in ["evil.example:5299", "localhost.evil.example", "127.0.0.1.evil.example", "", "a:b:c"] {
            assert!(door().check_host(&headers(&[("host", host)])).is_err(), "{host}");
        }
    }

    #[test]
    fn only_this_machine_is_local() {
        let is_local = |door: &Door, pairs: &[(&'static str, &str)]| door.is_local(&headers(pairs));
        let own = Door { names: BTreeSet::new(), ..door() };
        for host in ["localhost:5280", "127.0.0.1:5280", "[::1]:5280"] {
            assert!(is_local(&own, &[("host", host)]), "{host}");
            assert!(!is_local(&own, &[("host", host), ("x-forwarded-for", "192.0.2.7")]), "{host}");
            // A proxy that names the address it passes on to.
            assert!(!is_local(&door(), &[("host", host)]), "{host}");
        }
        for host in ["lab-1.example", "192.0.2.7:5280", ""] {
            assert!(!is_local(&own, &[("host", host)]), "{host}");
        }
        let open = Door::new("secret".to_owned(), "session".to_owned(), [], false);
        assert!(!is_local(&open, &[("host", "127.0.0.1:5280")]));
    }

    #[test]
    fn the_token_or_the_secret_is_enough_and_nothing_else() {
        let bearing =
            |word: &str| headers(&[("host", "localhost"), ("authorization", &format!("Bearer {word}"))]);
        for right in ["secret", "session"] {
            assert!(door().check(&bearing(right)).is_ok());
        }
        for wrong in ["", "secre", "secrets", "SECRET", "secret session"] {
            assert!(door().check(&bearing(wrong)).is_err(), "{wrong}");
        }
        let cookie = [("host", "localhost"), ("cookie", "bdp=session"), ("sec-fetch-site", "same-origin")];
        assert!(door().check(&headers(&cookie)).is_err());
        assert_eq!(door().enter(&bearing("secret")), Ok("session".to_owned()));
        assert!(door().enter(&bearing("session")).is_err());
    }

    #[test]
    fn a_foreign_origin_is_refused_whatever_it_has() {
        let from = |origin| {
            let bearer = ("authorization", "Bearer secret");
            headers(&[("host", "localhost:5299"), bearer, ("origin", origin)])
        };
        for foreign in ["http://localhost:8080", "http://evil.example", "null"] {
            assert!(door().check(&from(foreign)).is_err(), "{foreign}");
            assert!(door().enter(&from(foreign)).is_err(), "{foreign}");
        }
        for own in ["http://localhost:5299", "https://localhost:5299"] {
            assert!(door().check(&from(own)).is_ok(), "{own}");
        }
    }
}
