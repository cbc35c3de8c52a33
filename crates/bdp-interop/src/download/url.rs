//! URLs (RFC 3986), as far as a download needs them.

use std::fmt;

/// A parsed `http://` or `https://` URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Whether it uses TLS.
    pub secure: bool,
    /// A name, or an address without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Path and query, starting with a slash.
    pub path: String,
}

impl Url {
    /// Parses a URL; the error says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
        let (secure, rest) = if lower.starts_with("https://") {
            (true, &text[8..])
        } else if lower.starts_with("http://") {
            (false, &text[7..])
        } else {
            return Err(format!("'{text}' does not start with https:// or http://"));
        };
        if rest.bytes().any(|b| b.is_ascii_control() || b == b' ' || !b.is_ascii()) {
            return Err(format!(
                "'{text}' contains characters that must be escaped in a URL (%20 for a space)"
            ));
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(format!("'{text}' contains a user name, which is not supported"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(inner) => {
                inner.split_once(']').ok_or_else(|| format!("'{text}' lacks the closing bracket"))?
            }
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        let usual = if secure { 443 } else { 80 };
        let port = match port.strip_prefix(':') {
            None | Some("") => usual,
            Some(port) => port.parse().map_err(|_| format!("'{port}' is not a port, 1 to 65535"))?,
        };
        if host.is_empty() || port == 0 {
            return Err(format!("'{text}' contains no host"));
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Self { secure, host: host.to_owned(), port, path: format!("{slash}{path}") })
    }

    /// Resolves a `Location` relative to this URL (RFC 9110, section 10.2.2).
    pub fn join(&self, location: &str) -> Result<Self, String> {
        if location.contains("://") {
            return Self::parse(location);
        }
        let scheme = if self.secure { "https" } else { "http" };
        if let Some(rest) = location.strip_prefix("//") {
            return Self::parse(&format!("{scheme}://{rest}"));
        }
        let path = if location.starts_with('/') {
            location.to_owned()
        } else {
            let folder =
                self.path.split('?').next().unwrap_or("/").rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/{location}")
        };
        Self::parse(&format!("{scheme}://{}{path}", self.authority()))
    }

    /// Returns host and port as in the `Host` field.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = if self.secure { 443 } else { 80 };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart_and_put_together() {
        for (text, again) in [
            ("https://ams1", "https://ams1/"),
            ("HTTPS://ams1:443/a?b#c", "https://ams1/a?b"),
            ("http://ams1:8080?x", "http://ams1:8080/?x"),
            ("http://[2001:db8::1]:81/", "http://[2001:db8::1]:81/"),
        ] {
            assert_eq!(Url::parse(text).unwrap().to_string(), again);
        }
        for wrong in [
            "ams1",
            "ftp://a/",
            "http://",
            "http://a:0/",
            "http://a:x/",
            "http://[::1",
            "http://a/ b",
            "http://u@a/",
        ] {
            assert!(Url::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn locations_are_relative_to_where_they_were_told() {
        let url = Url::parse("https://ams1:444/a/b?c").unwrap();
        for (location, target) in [
            ("http://fra1/x", "http://fra1/x"),
            ("//fra1/x", "https://fra1/x"),
            ("/x", "https://ams1:444/x"),
            ("x?y", "https://ams1:444/a/x?y"),
        ] {
            assert_eq!(url.join(location).unwrap().to_string(), target);
        }
    }
}
