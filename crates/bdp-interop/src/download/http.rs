//! HTTP/1.1 (RFC 9112) as far as a download needs it, over TCP or TLS on our own socket.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bdp_sys::poll::is_wait;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::url::Url;

/// How long a handshake, or the head of an answer, may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest wait for bytes before other work is checked.
const GLANCE: Duration = Duration::from_millis(50);
/// Longest head of an answer.
const LONGEST_HEAD: usize = 32 << 10;
/// Most fields of its header.
const MOST_FIELDS: usize = 256;

/// Names a file of roots, instead of the system's.
const ROOTS_FILE: &str = "SSL_CERT_FILE";

/// TLS state shared by all connections: the root certificates, read when the first connection needs them.
#[derive(Default)]
pub struct Tls(OnceLock<Result<Arc<ClientConfig>, String>>);

impl Tls {
    /// Returns the configuration; the error says what is missing.
    pub fn config(&self) -> Result<Arc<ClientConfig>, String> {
        self.0.get_or_init(configure).clone()
    }
}

fn configure() -> Result<Arc<ClientConfig>, String> {
    let named = std::env::var_os(ROOTS_FILE).map(PathBuf::from);
    let way_out = "set it to a PEM file of root certificates, or unset it to use the system's";
    if let Some(path) = &named {
        // Next to a folder in SSL_CERT_DIR it would be ignored.
        File::open(path)
            .map_err(|e| format!("open {}, set by {ROOTS_FILE}: {e}; {way_out}", path.display()))?;
        let found = rustls_native_certs::load_certs_from_paths(Some(path), None);
        if RootCertStore::empty().add_parsable_certificates(found.certs).0 == 0 {
            return Err(format!(
                "{}, set by {ROOTS_FILE}, contains no readable certificate; {way_out}",
                path.display()
            ));
        }
    }
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (trusted, _) = roots.add_parsable_certificates(found.certs);
    if trusted == 0 {
        return Err(format!(
            "this machine has no root certificates; install ca-certificates, or set {ROOTS_FILE} to a file of them"
        ));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// A connection to a web server.
pub enum Connection {
    /// Without TLS.
    Plain(TcpStream),
    /// With TLS.
    Secure(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// The head of a response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// Status code.
    pub status: u16,
    /// Target of a redirection.
    pub location: Option<String>,
    /// Length of the body.
    pub length: Option<u64>,
    /// Whether the body is chunked.
    pub chunked: bool,
    /// Whether the connection closes after the body.
    pub closes: bool,
}

impl Connection {
    /// Opens it over a connected socket, including the TLS handshake.
    pub fn open(stream: TcpStream, url: &Url, tls: &Tls) -> Result<Self, String> {
        stream.set_nonblocking(false).map_err(|e| e.to_string())?;
        stream.set_nodelay(true).map_err(|e| e.to_string())?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(|e| e.to_string())?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(|e| e.to_string())?;
        if !url.secure {
            return Ok(Self::Plain(stream));
        }
        let name = ServerName::try_from(url.host.clone())
            .map_err(|_| format!("'{}' is not a name that a certificate can contain", url.host))?;
        let session = ClientConnection::new(tls.config()?, name).map_err(|e| e.to_string())?;
        let mut secure = StreamOwned::new(session, stream);
        let until = Instant::now() + PATIENCE;
        while secure.conn.is_handshaking() {
            secure.conn.complete_io(&mut secure.sock).map_err(|e| handshake_failure(&e))?;
            if Instant::now() >= until {
                return Err("the TLS handshake timed out".to_owned());
            }
        }
        Ok(Self::Secure(Box::new(secure)))
    }

    /// Requests the URL.
    pub fn ask(&mut self, url: &Url) -> io::Result<()> {
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: bdp/{}\r\nAccept: */*\r\nAccept-Encoding: identity\r\n\r\n",
            url.path,
            url.authority(),
            env!("CARGO_PKG_VERSION")
        );
        self.write_all(request.as_bytes())?;
        self.flush()
    }

    /// Reads the head of the response, and returns it with the first bytes of the body.
    pub fn read_head(&mut self) -> Result<(Head, Vec<u8>), String> {
        let until = Instant::now() + PATIENCE;
        let mut arrived = Vec::new();
        let mut room = [0; 4096];
        loop {
            if let Some((head, length)) = parse_head(&arrived)? {
                return Ok((head, arrived.split_off(length)));
            }
            if arrived.len() > LONGEST_HEAD {
                return Err("its response header is too long".to_owned());
            }
            match self.read(&mut room) {
                Ok(0) => return Err("it closed the connection before it answered".to_owned()),
                Ok(length) => arrived.extend_from_slice(&room[..length]),
                Err(e) if is_wait(&e) && Instant::now() < until => {}
                Err(e) if is_wait(&e) => return Err("it did not respond in time".to_owned()),
                Err(e) => return Err(e.to_string()),
            }
        }
    }

    /// Makes reads return after a short wait from now on.
    pub fn set_glances(&self) -> io::Result<()> {
        self.socket().set_read_timeout(Some(GLANCE))
    }

    /// Returns the underlying socket.
    pub fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Secure(secure) => &secure.sock,
        }
    }
}

impl Read for Connection {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let done = match self {
            Self::Plain(stream) => stream.read(room),
            Self::Secure(secure) => secure.read(room),
        };
        match done {
            // Many servers end TLS without a close notification; a truncated download shows by its length.
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => Ok(0),
            other => other,
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Secure(secure) => secure.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Secure(secure) => secure.flush(),
        }
    }
}

fn handshake_failure(error: &io::Error) -> String {
    let way_out = match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(why)) if is_ca(why) => {
            return "TLS: the server presents a CA certificate (CA:TRUE, the default of 'openssl req \
                    -x509'), which is not accepted for a server; use a certificate signed by this CA, or \
                    one made with -addext basicConstraints=critical,CA:FALSE"
                .to_owned();
        }
        Some(rustls::Error::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. },
        )) => "; renew the server's certificate, or set this machine's clock",
        Some(rustls::Error::InvalidCertificate(_)) => {
            "; this machine does not trust its certificate for that name: check the name, or set \
             SSL_CERT_FILE to a file with its root"
        }
        Some(rustls::Error::InvalidMessage(_)) => "; if the server has no TLS, use http://",
        _ if is_wait(error) => return "the TLS handshake timed out".to_owned(),
        _ => "",
    };
    format!("TLS: {error}{way_out}")
}

/// Whether a certificate was refused because it may sign others.
fn is_ca(why: &CertificateError) -> bool {
    // The verifier's own error has no public name here.
    matches!(why, CertificateError::Other(inner) if format!("{inner:?}").contains("CaUsedAsEndEntity"))
}

/// Parses the head of a response, and returns it with its length; `None` if it is incomplete.
fn parse_head(bytes: &[u8]) -> Result<Option<(Head, usize)>, String> {
    // A parser of messages passes over empty lines, which no answer begins with (RFC 9112, section 2.2).
    if bytes.starts_with(b"\r") || bytes.starts_with(b"\n") {
        return Err("its response is not HTTP/1.1".to_owned());
    }
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut answer = httparse::Response::new(&mut fields);
    let wrong = |e| match e {
        httparse::Error::TooManyHeaders => format!("its response has more than {MOST_FIELDS} header fields"),
        e => format!("its response is not HTTP/1.1: {e}"),
    };
    let httparse::Status::Complete(length) = answer.parse(bytes).map_err(wrong)? else { return Ok(None) };
    let status = answer.code.unwrap_or_default();
    let mut head = Head { status, closes: answer.version == Some(0), ..Head::default() };
    for field in answer.headers.iter() {
        let value = String::from_utf8_lossy(field.value);
        match field.name.to_ascii_lowercase().as_str() {
            "location" => head.location = Some(value.into_owned()),
            "content-length" => head.length = Some(parse_length(&value)?),
            "transfer-encoding" => head.chunked = value.to_ascii_lowercase().ends_with("chunked"),
            "connection" => head.closes = value.eq_ignore_ascii_case("close"),
            _ => {}
        }
    }
    Ok(Some((head, length)))
}

/// A length, which a careless intermediary may have repeated (RFC 9110, section 8.6).
fn parse_length(value: &str) -> Result<u64, String> {
    let mut lengths = value.split(',').map(str::trim);
    let first = lengths.next().unwrap_or_default();
    let is_length = first.bytes().all(|b| b.is_ascii_digit()) && lengths.all(|other| other == first);
    first
        .parse()
        .ok()
        .filter(|_| is_length)
        .ok_or_else(|| format!("the Content-Length of its response, '{value}', is invalid"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_whatever_the_case_of_their_names() {
        let parse_head = |bytes: &[u8]| parse_head(bytes).map(|found| found.expect("a whole head").0);
        let head = parse_head(b"HTTP/1.1 200 OK\r\ncontent-LENGTH: 12\r\nConnection: close\r\n\r\n").unwrap();
        assert_eq!(head, Head { status: 200, length: Some(12), closes: true, ..Head::default() });
        let moved = parse_head(b"HTTP/1.1 301 Moved\r\nLocation: /x\r\n\r\n").unwrap();
        assert_eq!((moved.status, moved.location.as_deref()), (301, Some("/x")));
        let repeated = parse_head(b"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n").unwrap();
        assert_eq!(repeated.length, Some(5));
        for length in ["-5", "+5", "", "5, 6", "five", "99999999999999999999"] {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            let refused = parse_head(head.as_bytes()).unwrap_err();
            assert!(refused.contains(&format!("'{length}', is invalid")), "{refused}");
        }
        for wrong in ["SSH-2.0-x\r\n\r\n", "HTTP/1.1\r\n\r\n", "HTTP/2 200\r\n\r\n", "\r\n\r\n"] {
            assert!(parse_head(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_bytes_of_a_server_make_it_panic() {
        let good = b"HTTP/1.1 302 Found\r\nLocation: //ams1:81/x\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nabcde\r\n0\r\n\r\n";
        let url = Url::parse("https://ams1/a/b").unwrap();
        for (at, with) in (0..good.len()).flat_map(|at| (0..=u8::MAX).map(move |with| (at, with))) {
            let mut bytes = good.to_vec();
            bytes[at] = with;
            for bytes in [&bytes[..], &bytes[..=at]] {
                let Ok(Some((head, length))) = parse_head(bytes) else { continue };
                let _ = head.location.is_some_and(|location| url.join(&location).is_ok());
                let body = &bytes[length..];
                let content = super::super::chunks::Chunks::default().take(body);
                assert!(content.is_ok_and(|c| c as usize <= body.len()) || content.is_err());
            }
        }
    }
}
