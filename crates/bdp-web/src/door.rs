//! Who may ask. The token is the authority; a browser trades it for a cookie, which counts only together with what the
//! browser itself says of the request, since a cookie is sent to every port of its host.

use std::collections::BTreeSet;
use std::net::IpAddr;

use axum::http::{HeaderMap, Method, header};

use crate::{Refused, RefusedBy};

/// Header of every request that changes something. Another site can't send it without being asked first.
pub const REQUEST_HEADER: &str = "bdp-request";

/// The authority over one server.
#[derive(Debug, Clone)]
pub struct Door {
    token: String,
    session: String,
    cookie: String,
    names: BTreeSet<String>,
}

impl Door {
    /// A door that `token` opens. `session` is a second secret, the value of the cookie. `names` are the host names by
    /// which browsers may address the server, apart from `localhost` and plain addresses.
    pub fn new(token: String, session: String, port: u16, names: impl IntoIterator<Item = String>) -> Self {
        let names = names.into_iter().map(|name| name.to_ascii_lowercase()).collect();
        Self { token, session, cookie: format!("bdp-{port}"), names }
    }

    /// Refuses a request for a host that is not this server: a foreign name that was made to resolve to it.
    pub fn check_host(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let host = text(headers, header::HOST.as_str()).unwrap_or_default();
        let name = without_port(host);
        let is_known = name.eq_ignore_ascii_case("localhost")
            || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
            || self.names.contains(&name.to_ascii_lowercase());
        if is_known {
            return Ok(());
        }
        Err(denied(format!(
            "this server is not known as '{}': use its address, or start 'bdp page --name {0}'",
            tame(name)
        )))
    }

    /// Refuses a request that neither has the token nor comes from the page.
    pub fn check(&self, method: &Method, headers: &HeaderMap) -> Result<(), Refused> {
        self.check_origin(headers)?;
        if self.has_token(headers) {
            return Ok(());
        }
        if !self.has_cookie(headers) {
            return Err(denied(
                "this link is not valid any more: every start of 'bdp page' prints a new one; open that",
            ));
        }
        match text(headers, "sec-fetch-site") {
            Some("same-origin") => {}
            Some(_) => return Err(denied("another site may not use the page of bdp")),
            None => {
                return Err(denied(
                    "this browser does not say which page a request comes from; use a newer one, for example Firefox 90",
                ));
            }
        }
        if !method.is_safe() && text(headers, REQUEST_HEADER).is_none() {
            return Err(denied(format!(
                "a request that changes something needs the header {REQUEST_HEADER}"
            )));
        }
        Ok(())
    }

    /// Trades the token for the cookie.
    pub fn enter(&self, headers: &HeaderMap) -> Result<String, Refused> {
        self.check_origin(headers)?;
        if !self.has_token(headers) {
            return Err(denied(
                "this link is not valid any more: every start of 'bdp page' prints a new one; open that",
            ));
        }
        Ok(format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie, self.session))
    }

    /// A browser names the page that a request comes from; it must be this server's own.
    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let Some(origin) = text(headers, header::ORIGIN.as_str()) else { return Ok(()) };
        let host = text(headers, header::HOST.as_str()).unwrap_or_default();
        let own = origin.split_once("://").is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(host));
        if own { Ok(()) } else { Err(denied("another site may not use the page of bdp")) }
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        text(headers, header::AUTHORIZATION.as_str())
            .and_then(|value| value.strip_prefix("Bearer "))
            .is_some_and(|given| same(given.trim(), &self.token))
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        cookies
            .flat_map(|line| line.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .any(|(name, value)| name == self.cookie && same(value, &self.session))
    }
}

/// Whether two texts are equal, in a time that depends only on their lengths.
fn same(given: &str, own: &str) -> bool {
    let differing = given.bytes().zip(own.bytes()).fold(0, |bits, (a, b)| bits | (a ^ b));
    given.len() == own.len() && differing == 0 && !own.is_empty()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // An IPv6 address has its port after the bracket.
        Some((name, port)) if !port.contains(']') && (!name.contains(':') || name.ends_with(']')) => name,
        _ => host,
    }
}

/// The text with only what a host name has.
fn tame(name: &str) -> String {
    name.chars().filter(|c| c.is_ascii_alphanumeric() || ".-_[]:".contains(*c)).take(80).collect()
}

fn denied(message: impl Into<String>) -> Refused {
    Refused::new(RefusedBy::Access, message)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn door() -> Door {
        Door::new("secret".to_owned(), "session".to_owned(), 5299, ["Lab-1.example".to_owned()])
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
    fn the_token_is_enough_and_a_wrong_one_is_not() {
        let given =
            |token: &str| headers(&[("host", "localhost"), ("authorization", &format!("Bearer {token}"))]);
        assert!(door().check(&Method::POST, &given("secret")).is_ok());
        for wrong in ["", "secre", "secrets", "SECRET"] {
            assert!(door().check(&Method::POST, &given(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_cookie_counts_only_from_the_page_itself() {
        let cookie = ("cookie", "other=1; bdp-5299=session");
        let own = [("host", "localhost:5299"), cookie, ("sec-fetch-site", "same-origin")];
        assert!(door().check(&Method::GET, &headers(&own)).is_ok());
        // Another port of the same host is the same site, and gets the cookie.
        for site in ["same-site", "cross-site", "none"] {
            let given = [("host", "localhost:5299"), cookie, ("sec-fetch-site", site)];
            assert!(door().check(&Method::GET, &headers(&given)).is_err(), "{site}");
        }
        assert!(door().check(&Method::GET, &headers(&own[..2])).is_err());
        assert!(door().check(&Method::POST, &headers(&own)).is_err(), "no header of its own");
        let mut with_header = own.to_vec();
        with_header.push((REQUEST_HEADER, "1"));
        assert!(door().check(&Method::POST, &headers(&with_header)).is_ok());
        with_header.push(("origin", "http://localhost:8080"));
        assert!(door().check(&Method::POST, &headers(&with_header)).is_err(), "another origin");
        with_header.pop();
        with_header.push(("origin", "https://localhost:5299"));
        assert!(door().check(&Method::POST, &headers(&with_header)).is_ok(), "behind a proxy with TLS");
    }

    #[test]
    fn a_foreign_origin_gets_no_cookie() {
        let mut given = vec![("host", "localhost:5299"), ("authorization", "Bearer secret")];
        let cookie = door().enter(&headers(&given)).unwrap();
        assert_eq!(cookie, "bdp-5299=session; HttpOnly; SameSite=Strict; Path=/");
        given.push(("origin", "http://evil.example"));
        assert!(door().enter(&headers(&given)).is_err());
    }
}
