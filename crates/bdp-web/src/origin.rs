//! Whether a request is to this server, and comes from one of its pages.

use std::net::IpAddr;

use axum::http::{HeaderMap, header};

/// Whether a browser sent the request from a page of the server that its `Host` names: by `Origin` (RFC 6454), whatever
/// the scheme, which a proxy may change, and by `Sec-Fetch-Site`. A program that is no browser sends neither.
pub(crate) fn is_own(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST);
    let by_origin = match headers.get(header::ORIGIN) {
        None => true,
        Some(origin) => {
            let named = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|parts| parts.1);
            named.is_some() && named == host
        }
    };
    let by_site = headers.get("sec-fetch-site").is_none_or(|site| site == "same-origin" || site == "none");
    by_origin && by_site
}

/// The host that a request is to, without its port.
pub(crate) fn named(headers: &HeaderMap) -> &str {
    without_port(headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default())
}

/// Whether a host is an address or `localhost`, or else one of the known names. Another name may have been made to
/// resolve to this server by whoever owns it.
pub(crate) fn is_address_or(name: &str, is_known: impl Fn(&str) -> bool) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
        || is_known(name)
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // An IPv6 address has its port after the bracket.
        Some((name, port)) if !port.contains(']') && (!name.contains(':') || name.ends_with(']')) => name,
        _ => host,
    }
}

/// The text with only what a host name has.
pub(crate) fn tame(name: &str) -> String {
    name.chars().filter(|c| c.is_ascii_alphanumeric() || ".-_[]:".contains(*c)).take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_page_is_not_own() {
        let is_own = |origin: Option<&str>, site: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "192.0.2.1:5201".parse().unwrap());
            origin.map(|origin| headers.insert(header::ORIGIN, origin.parse().unwrap()));
            site.map(|site| headers.insert("sec-fetch-site", site.parse().unwrap()));
            super::is_own(&headers)
        };
        assert!(is_own(None, None) && is_own(Some("http://192.0.2.1:5201"), Some("same-origin")));
        assert!(is_own(Some("https://192.0.2.1:5201"), None), "by a proxy with TLS");
        for foreign in ["http://192.0.2.1", "http://192.0.2.1:5202", "https://example.org", "null", ""] {
            assert!(!is_own(Some(foreign), None), "{foreign}");
        }
        assert!(!is_own(None, Some("same-site")) && !is_own(None, Some("cross-site")));
    }
}
