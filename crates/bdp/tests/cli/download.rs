//! `bdp measure https://...`: downloads from a server of this test, over TLS and without.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use crate::support::machine::has;
use crate::support::untested::skip;
use crate::support::{Bench, Ended, start};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Bytes of the large file.
const LARGE: usize = 8 << 20;

/// A root, and a certificate of it for 127.0.0.1, in the bench's folder; nothing where openssl is missing.
fn certificates(bench: &Bench) -> Option<Arc<ServerConfig>> {
    if !has("openssl", &["version"]) {
        return None;
    }
    bench.write("leaf.ext", "subjectAltName=IP:127.0.0.1\nbasicConstraints=critical,CA:FALSE\n");
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    for line in [
        format!("req -x509 {key} -subj /CN=root -days 2 -keyout root.key -out root.pem"),
        format!("req -new {key} -subj /CN=leaf -keyout leaf.key -out leaf.csr"),
        "x509 -req -in leaf.csr -CA root.pem -CAkey root.key -CAcreateserial -days 2 -extfile leaf.ext -out leaf.pem"
            .to_owned(),
    ] {
        openssl(bench, &line);
    }
    Some(serving(bench, "leaf"))
}

fn openssl(bench: &Bench, line: &str) {
    let mut command = Command::new("openssl");
    command.args(line.split_whitespace()).current_dir(bench.folder());
    let done = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(done.success(), "{line}");
}

/// A server with the certificate and the key of this name.
fn serving(bench: &Bench, name: &str) -> Arc<ServerConfig> {
    let chain = vec![CertificateDer::from_pem_file(bench.path(&format!("{name}.pem"))).unwrap()];
    let key = PrivateKeyDer::from_pem_file(bench.path(&format!("{name}.key"))).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    Arc::new(config)
}

/// Serves on a port of loopback until the test ends.
fn serve_web(tls: Option<Arc<ServerConfig>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let tls = tls.clone();
            // Whoever goes away ends its thread.
            thread::spawn(move || match tls {
                None => drop(answer(stream)),
                Some(tls) => drop(answer(StreamOwned::new(ServerConnection::new(tls).unwrap(), stream))),
            });
        }
    });
    port
}

fn answer(mut stream: impl Read + Write) -> std::io::Result<()> {
    let body = vec![7; LARGE];
    loop {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read(&mut byte)? == 0 {
                return Ok(());
            }
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let path = head.split(' ').nth(1).unwrap();
        let sized =
            |status: &str, length: usize| format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n");
        match path {
            "/large" => {
                stream.write_all(sized("200 OK", LARGE).as_bytes())?;
                stream.write_all(&body)?;
            }
            "/small" => {
                stream.write_all(sized("200 OK", 1000).as_bytes())?;
                stream.write_all(&body[..1000])?;
            }
            "/slow" => {
                stream.write_all(sized("200 OK", 1000).as_bytes())?;
                trickle(&mut stream, &body[..1000])?;
            }
            "/cut" => {
                stream.write_all(sized("200 OK", 2000).as_bytes())?;
                trickle(&mut stream, &body[..1000])?;
                return Ok(());
            }
            "/endless" => {
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
                trickle(&mut stream, &body[..1000])?;
                return Ok(());
            }
            "/negative" => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n")?;
            }
            "/chunked" => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100000\r\n")?;
                trickle(&mut stream, &body[..1 << 20])?;
                stream.write_all(b"\r\n0\r\n\r\n")?;
            }
            "/trailers" => {
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Digest\r\n\r\n")?;
                for part in body[..1 << 20].chunks(256 << 10) {
                    stream.write_all(format!("{:X};part=1\r\n", part.len()).as_bytes())?;
                    trickle(&mut stream, part)?;
                    stream.write_all(b"\r\n")?;
                }
                stream.write_all(b"0\r\nDigest: x\r\nExpires: 0\r\n\r\n")?;
                stream.flush()?;
                // The connection stays: it is the trailer's end that ends the file.
                let _ = stream.read(&mut [0]);
                return Ok(());
            }
            "/moved" => {
                stream.write_all(b"HTTP/1.1 302 Found\r\nLocation: /large\r\nContent-Length: 0\r\n\r\n")?
            }
            "/round" => {
                stream.write_all(b"HTTP/1.1 302 Found\r\nLocation: /round\r\nContent-Length: 0\r\n\r\n")?
            }
            _ => stream.write_all(sized("404 Not Found", 0).as_bytes())?,
        }
        stream.flush()?;
    }
}

/// Sends it in more than the tenth of a second that a rate takes.
fn trickle(stream: &mut impl Write, bytes: &[u8]) -> std::io::Result<()> {
    for part in bytes.chunks(bytes.len() / 10) {
        stream.write_all(part)?;
        stream.flush()?;
        thread::sleep(std::time::Duration::from_millis(30));
    }
    Ok(())
}

fn download(bench: &Bench, url: &str, options: &str) -> Ended {
    let mut command = bench.bdp(&format!("measure {url} {options}"));
    command.env("SSL_CERT_FILE", bench.path("root.pem"));
    start(command).wait()
}

#[test]
fn a_download_over_tls_is_measured_at_the_receiver() {
    let bench = Bench::new();
    let Some(tls) = certificates(&bench) else { return };
    let port = serve_web(Some(tls));
    let url = format!("https://127.0.0.1:{port}/moved");
    let ended = download(&bench, &url, "-t 1 --idle 0.6 -P 2 --json");
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let document = ended.json();
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../../../docs/measurement.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let complaints: Vec<String> = validator.iter_errors(&document).map(|e| e.to_string()).collect();
    assert_eq!(complaints, Vec::<String>::new());
    assert_eq!(document["request"]["url"], url);
    let directions = document["directions"].as_array().unwrap();
    assert_eq!(directions.len(), 1);
    let from = &directions[0];
    assert_eq!((&from["direction"], &from["ended"]), (&"from".into(), &"duration".into()));
    assert_eq!(from["receive_method"], "read, TLS");
    // The file came more than once: it is asked for again.
    assert!(from["bytes"].as_u64().unwrap() > 2 * LARGE as u64, "{}", from["bytes"]);
    assert_eq!(from["stream_goodput_bps"].as_array().unwrap().len(), 2);
    let samples = from["received"].as_array().unwrap();
    // A window may be full at any of them.
    let windows = samples.iter().filter_map(|sample| sample["rcv_wnd_bytes"].as_u64());
    assert!(samples.len() > 3 && windows.max() > Some(0), "{samples:?}");
    assert!(document["rtt_idle_ns"]["received"].as_u64().unwrap() > 0);
    assert!(document["caveats"].to_string().contains("is no bdp"));
    // And it is shown without a word about a bdp at the other end.
    let text = download(&bench, &url, "-n 1M --idle 0.2");
    assert!(
        text.out.split_whitespace().collect::<Vec<_>>().join(" ").contains("near alone"),
        "{}{}",
        text.out,
        text.err
    );
    // Another root: the certificate is nobody's.
    let refused = bench.run(&format!("measure {url} -t 1"));
    let line = refused.refusal(3);
    assert!(line.contains("certificate") && line.contains("SSL_CERT_FILE"), "{line}");
}

#[test]
fn a_download_without_tls_ends_as_its_file_does() {
    let bench = Bench::new();
    let port = serve_web(None);
    for (path, bytes, whole) in [
        ("slow", 1000, true),
        ("chunked", 1 << 20, true),
        ("trailers", 1 << 20, true),
        ("endless", 1000, true),
        ("cut", 1000, false),
    ] {
        let url = format!("http://127.0.0.1:{port}/{path}");
        let ended = bench.run(&format!("measure {url} -t 20 --idle 0.1 --json"));
        assert_eq!(ended.code(), 0, "{}", ended.err);
        let document = ended.json();
        let from = &document["directions"][0];
        assert_eq!(from["ended"], if whole { "bytes" } else { "closed" }, "{path}");
        let caveats = document["caveats"].to_string();
        assert_eq!(caveats.contains("ended early"), !whole, "{path}: {caveats}");
        assert_eq!(caveats.contains("the file was over after"), whole, "{path}: {caveats}");
        let got = from["bytes"].as_u64().unwrap();
        assert_eq!(got, bytes, "{path}: what frames the chunks is not the file");
    }
}

#[test]
fn a_window_is_held_while_a_download_runs() {
    let bench = Bench::new();
    let url = format!("http://127.0.0.1:{}/large", serve_web(None));
    let ended = download(&bench, &url, "-w 64K -t 1 --idle 0.1 --json");
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let document = ended.json();
    let samples = document["directions"][0]["received"].as_array().unwrap();
    let mut windows: Vec<u64> =
        samples.iter().filter_map(|sample| sample["rcv_wnd_bytes"].as_u64()).collect();
    windows.sort_unstable();
    // A kernel that does not tell it is of no use here; one that widens a window does so at once, and keeps it.
    if let Some(&median) = windows.get(windows.len() / 2) {
        assert!(median <= 66 << 10, "{windows:?}");
    }
}

#[test]
fn certificates_and_roots_that_will_not_do_are_told_in_plain_words() {
    let bench = Bench::new();
    if certificates(&bench).is_none() {
        return;
    }
    // What 'openssl req -x509' makes by itself is a CA, and with CA:FALSE a server's, be it signed by itself.
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    let own = format!(
        "req -x509 {key} -subj /CN=own -days 2 -addext subjectAltName=IP:127.0.0.1 -keyout own.key -out own.pem"
    );
    let through = |refused: bool| {
        let port = serve_web(Some(serving(&bench, "own")));
        let mut command = bench.bdp(&format!("measure https://127.0.0.1:{port}/large -n 1M --idle 0.1"));
        command.env("SSL_CERT_FILE", bench.path("own.pem"));
        let ended = start(command).wait();
        if refused { ended.refusal(3).to_owned() } else { format!("{}{}", ended.code(), ended.err) }
    };
    openssl(&bench, &own);
    let line = through(true);
    assert!(line.contains("a CA certificate") && line.contains("CA:FALSE"), "{line}");
    assert!(!line.contains("Error("), "{line}");
    openssl(&bench, &format!("{own} -addext basicConstraints=critical,CA:FALSE"));
    let line = through(false);
    assert!(line.starts_with('0'), "{line}");
    bench.write("garbage.pem", "no certificate\n");
    for (file, told) in [("none.pem", "No such file"), ("garbage.pem", "no readable certificate")] {
        let mut command = bench.bdp("measure https://127.0.0.1:1/ -t 1");
        command.env("SSL_CERT_FILE", bench.path(file));
        let ended = start(command).wait();
        let line = ended.refusal(3);
        assert!(line.contains(told) && line.contains(file) && line.contains("SSL_CERT_FILE"), "{line}");
    }
    // Who asks for no TLS needs no roots.
    let port = serve_web(None);
    let mut command = bench.bdp(&format!("measure http://127.0.0.1:{port}/large -n 1M --idle 0.1"));
    command.env("SSL_CERT_FILE", bench.path("none.pem"));
    let ended = start(command).wait();
    assert_eq!(ended.code(), 0, "{}", ended.err);
}

#[test]
fn a_url_without_a_port_leads_to_the_usual_one() {
    let bench = Bench::new();
    for (scheme, port) in [("http", 80), ("https", 443)] {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            skip(&format!("something listens on port {port}"));
            continue;
        }
        let ended = bench.run(&format!("measure {scheme}://127.0.0.1/ -t 1"));
        let line = ended.refusal(3);
        assert!(line.contains(&format!("127.0.0.1:{port}: connection refused")), "{line}");
        assert!(!line.contains("bdp serve"), "{line}");
    }
}

#[test]
fn what_a_server_will_not_give_is_told_in_a_line() {
    let bench = Bench::new();
    let port = serve_web(None);
    let refused = |path: &str, code| bench.run(&format!("measure {path}")).refusal(code).to_owned();
    assert!(refused(&format!("http://127.0.0.1:{port}/none"), 3).contains("answered 404"));
    assert!(refused(&format!("http://127.0.0.1:{port}/round"), 3).contains("redirects"));
    let small = refused(&format!("http://127.0.0.1:{port}/small --idle 0"), 3);
    assert!(small.contains("1000 B arrived within") && small.contains("a larger file"), "{small}");
    assert!(
        refused(&format!("http://127.0.0.1:{port}/negative"), 3)
            .contains("Content-Length of its response, '-5'")
    );
    for option in [
        "--check-payload",
        "--iperf3",
        "--iperf2",
        "--zerocopy off",
        "--dscp ef",
        "-N",
        "--notsent-lowat 64K",
        "--cpu 0",
        "-l 64K",
        "--token x",
        "-C reno",
        "-b 10M",
    ] {
        // Nothing is asked: nothing listens there.
        let line = refused(&format!("http://127.0.0.1:1/ {option}"), 2);
        let flag = option.split(' ').next().unwrap();
        assert!(line.contains(&format!("{flag} ")) && line.contains("download"), "{line}");
    }
    assert!(
        refused(&format!("ftp://127.0.0.1:{port}/"), 2).contains("does not start with https:// or http://")
    );
    assert!(
        refused(&format!("http://127.0.0.1:{port}/large --forward"), 2).contains("--forward needs a bdp")
    );
    // A server that speaks no TLS, and one that says nothing of HTTP.
    let line = refused(&format!("https://127.0.0.1:{port}/large"), 3);
    assert!(line.contains("TLS") || line.contains("handshake"), "{line}");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = listener.local_addr().unwrap().port();
    let speaking = thread::spawn(move || {
        let (mut stream, _): (TcpStream, _) = listener.accept().unwrap();
        stream.write_all(b"SSH-2.0-x\r\n\r\n\r\n").unwrap();
        let _ = stream.read(&mut [0; 2000]);
    });
    assert!(refused(&format!("http://127.0.0.1:{other}/"), 3).contains("response is not HTTP/1.1"));
    speaking.join().unwrap();
}
