//! Users of iperf3's protocol: its client logs in at `bdp serve`, `bdp measure` at its server, and whoever may not is
//! told so in one way and no other.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::machine::has;
use crate::support::serving::{Serving, free_port, is_listening, serve};
use crate::support::untested::skip;
use crate::support::{Bench, Ended, start};
use bdp_wire::iperf3::base64;
use serde_json::Value;

/// The users: `printf '{mario}rossi' | sha256sum`, and one more.
const USERS: &str = "\
# those who may
mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b
luigi,0000000000000000000000000000000000000000000000000000000000000000
";
const RIGHT: &str = "rossi";
/// The answer to whoever is not let in.
const REFUSED: [u8; 9] = [0xfe, 0, 0, 0, 142, 0, 0, 0, 0];
/// From a login to its answer, at least.
const ANSWER: Duration = Duration::from_millis(100);

/// A bench with users, the server's keys as `private.pem` (PKCS#8), `old.pem` (PKCS#1) and `public.pem`, and those of
/// another server; `None`, with the reason printed, where a program is missing.
fn keyed(programs: &[(&str, &str)]) -> Option<Bench> {
    for (program, question) in [("openssl", "version")].iter().chain(programs) {
        if !has(program, &[question]) {
            skip(&format!("{program} is not installed"));
            return None;
        }
    }
    let bench = Bench::new();
    bench.write("users.csv", USERS);
    let made = bench
        .shell(
            "umask 077; chmod 600 users.csv
             for name in private other; do openssl genpkey -quiet -algorithm RSA -out $name.pem 2>/dev/null ||
                 openssl genpkey -algorithm RSA -out $name.pem; done
             openssl rsa -in private.pem -traditional -out old.pem
             openssl rsa -in private.pem -pubout -out public.pem
             openssl rsa -in other.pem -pubout -out stranger.pem
             openssl rsa -in private.pem -aes128 -passout pass:abcd -out locked.pem",
        )
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    Some(bench)
}

const IPERF3: (&str, &str) = ("iperf3", "--version");

fn serve_users(bench: &Bench, options: &str) -> Serving {
    serve(bench, &format!("--iperf3-users users.csv --iperf3-key private.pem {options}"))
}

/// What its client says, as JSON.
fn client(bench: &Bench, port: u16, password: &str, options: &str) -> Value {
    let output = Command::new("iperf3")
        .args(["-c", "127.0.0.1", "-p", &port.to_string(), "-J", "-t", "1"])
        .args(options.split_whitespace())
        .env("IPERF3_PASSWORD", password)
        .current_dir(bench.folder())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{options}: {e}: {output:?}"))
}

/// What `bdp measure --iperf3` says that logs in.
fn measure(bench: &Bench, port: u16, password: &str, options: &str) -> Ended {
    let way = if options.contains("--bidir") { "" } else { "--forward" };
    let line = format!("measure --iperf3 127.0.0.1:{port} -t 0.5 {way} --json {options}");
    let mut command = bench.bdp(&line);
    command.env("IPERF3_PASSWORD", password);
    start(command).wait()
}

#[test]
fn its_client_logs_in_and_nobody_else_is_let_in() {
    let Some(bench) = keyed(&[IPERF3]) else { return };
    for key in ["private.pem", "old.pem"] {
        let mut server = serve(&bench, &format!("--iperf3-users users.csv --iperf3-key {key}"));
        for options in ["", "-R", "--bidir -P 2"] {
            let options = format!("--username mario --rsa-public-key-path public.pem {options}");
            let said = client(&bench, server.port, RIGHT, &options);
            assert!(said.get("error").is_none(), "{options}: {said:#}");
            assert!(said["end"]["sum_received"]["bytes"].as_f64().unwrap() > 1e6, "{options}: {said:#}");
        }
        let log = server.process.err();
        assert!(log.contains("started, iperf3") && log.contains("user 'mario'"), "{log}");
        for (password, options, why) in [
            (
                "rosso",
                "--username mario --rsa-public-key-path public.pem",
                "unknown user 'mario', or wrong password",
            ),
            (
                RIGHT,
                "--username maria --rsa-public-key-path public.pem",
                "unknown user 'maria', or wrong password",
            ),
            (
                RIGHT,
                "--username mario --rsa-public-key-path stranger.pem",
                "not encrypted with this server's key",
            ),
            (RIGHT, "", "it sent no login"),
        ] {
            let told = client(&bench, server.port, password, options)["error"].to_string();
            assert!(told.contains("test authorization failed"), "{options}: {told}");
            server.process.wait_until(why, |p| p.err().contains(why));
            println!("login of its client, {key}, {options} ... refused");
        }
        // bdp's own clients are known as always.
        server.assert_unharmed(&bench);
    }
}

#[test]
fn its_server_lets_this_client_in() {
    let Some(bench) = keyed(&[IPERF3]) else { return };
    let port = free_port();
    let mut theirs = Command::new("iperf3");
    theirs
        .args(["-s", "-p", &port.to_string(), "--rsa-private-key-path", "private.pem"])
        .args(["--authorized-users-path", "users.csv"])
        .current_dir(bench.folder());
    let mut theirs = start(theirs);
    theirs.wait_until("it listens", |p| p.out().contains("listening") || is_listening(port));
    let login = "--user mario --iperf3-public-key public.pem";
    // The release of Debian 12 knows the older padding alone, later ones have a switch.
    let version = Command::new("iperf3").arg("--version").output().unwrap().stdout;
    let is_old = String::from_utf8_lossy(&version)
        .split(['.', ' '])
        .nth(2)
        .is_some_and(|minor| minor.parse::<u32>().unwrap_or(0) < 17);
    let (right, wrong) = if is_old { ("--iperf3-pkcs1", "") } else { ("", "--iperf3-pkcs1") };
    let ended = measure(&bench, port, RIGHT, &format!("{login} {right}"));
    assert_eq!(ended.code(), 0, "{}", ended.err);
    assert!(ended.json()["directions"][0]["goodput_bps"].as_f64().unwrap() > 1e6);
    assert!(!ended.out.contains(RIGHT), "the password is nowhere");
    for (what, password, options, part) in [
        (
            "wrong password",
            "rosso",
            format!("{login} {right}"),
            "name, password or public key, and for clocks",
        ),
        (
            "unknown user",
            RIGHT,
            format!("--user maria --iperf3-public-key public.pem {right}"),
            "name, password",
        ),
        ("wrong key", RIGHT, format!("--user mario --iperf3-public-key stranger.pem {right}"), "public key"),
        ("wrong padding", RIGHT, format!("{login} {wrong}"), "--iperf3-pkcs1"),
        ("no login", RIGHT, String::new(), "--user NAME"),
    ] {
        let ended = measure(&bench, port, password, &options);
        let line = ended.refusal(3);
        assert!(line.contains(part), "{what}: {line}");
        println!("login at its server, {what} ... refused");
    }
    // What was refused has done no harm.
    let again = measure(&bench, port, RIGHT, &format!("{login} {right} --bidir"));
    assert_eq!(again.code(), 0, "{}", again.err);
}

/// As the server of 3.22 refuses a login: it closes the connection, and says nothing.
#[test]
fn a_server_that_closes_on_the_request_has_refused_it() {
    let bench = Bench::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 37]).unwrap();
        stream.write_all(&[9]).unwrap();
        let mut length = [0; 4];
        stream.read_exact(&mut length).unwrap();
        stream.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize]).unwrap();
    });
    let ended = bench.run(&format!("measure --iperf3 127.0.0.1:{port} -t 1 --forward"));
    let line = ended.refusal(3);
    assert!(
        line.contains("closed the connection after the request without a reason")
            && line.contains("--user NAME"),
        "{line}"
    );
    assert!(!line.contains("the path"), "{line}");
    server.join().unwrap();
}

#[test]
fn both_ends_of_ours_log_in_with_either_padding() {
    let Some(bench) = keyed(&[]) else { return };
    let server = serve_users(&bench, "");
    let mut strict = serve_users(&bench, "--iperf3-oaep-only");
    let login = "--user mario --iperf3-public-key public.pem";
    for (server, padding, code) in [(&server, "", 0), (&server, "--iperf3-pkcs1", 0), (&strict, "", 0)] {
        let ended = measure(&bench, server.port, RIGHT, &format!("{login} {padding}"));
        assert_eq!(ended.code(), code, "{padding}: {}", ended.err);
    }
    let old = measure(&bench, strict.port, RIGHT, &format!("{login} --iperf3-pkcs1"));
    assert!(old.refusal(3).contains("without --iperf3-pkcs1"), "{}", old.err);
    strict.process.wait_until("it says why", |p| p.err().contains("--iperf3-oaep-only"));
    let stranger = measure(&bench, server.port, RIGHT, "");
    assert!(stranger.refusal(3).contains("--user NAME"), "{}", stranger.err);
    // Whoever logs in means a server of iperf3's protocol, and needs not say so.
    let mut command = bench.bdp(&format!("measure 127.0.0.1:{} -t 0.5 -R {login}", server.port));
    command.env("IPERF3_PASSWORD", RIGHT);
    assert_eq!(start(command).wait().code(), 0);
}

/// The answer to a token that is sent from an address of its own, and how long it took.
fn answer(port: u16, from: [u8; 4], token: Option<&str>) -> (Vec<u8>, Duration) {
    let to = SocketAddr::from(([127, 0, 0, 1], port));
    let options = bdp_sys::socket::TcpOptions::default();
    let mut stream: TcpStream =
        bdp_sys::socket::start_connect(to, Some(SocketAddr::from((from, 0))), &options).unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut cookie: Vec<u8> =
        from.iter().chain(token.unwrap_or_default().as_bytes()).map(|b| b'a' + b % 26).collect();
    cookie.resize(36, b'x');
    cookie.push(0);
    stream.write_all(&cookie).unwrap();
    let mut state = [0];
    stream.read_exact(&mut state).unwrap();
    assert_eq!(state, [9], "it is asked for parameters");
    let mut parameters = serde_json::json!({"tcp": true, "time": 1, "parallel": 1, "client_version": "3.12"});
    if let Some(token) = token {
        parameters["authtoken"] = token.into();
    }
    let body = parameters.to_string();
    let asked = Instant::now();
    stream.write_all(&(body.len() as u32).to_be_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = vec![0; 16];
    let length = stream.read(&mut answer).unwrap();
    let took = asked.elapsed();
    answer.truncate(length);
    if answer.len() > 1 {
        // Nothing comes behind it.
        stream.read_to_end(&mut answer).unwrap();
    }
    (answer, took)
}

/// A login that openssl has sealed.
fn sealed(bench: &Bench, key: &str, padding: &str, text: &str) -> String {
    bench.write("login.txt", text);
    let made = bench
        .shell(&format!(
            "openssl pkeyutl -encrypt -pubin -inkey {key} -pkeyopt rsa_padding_mode:{padding} -in login.txt"
        ))
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    base64::encode(&made.stdout)
}

fn text(user: &str, password: &str, seconds_ago: i64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    format!("user: {user}\npwd:  {password}\nts:   {}", now - seconds_ago)
}

#[test]
fn whatever_is_wrong_has_the_same_answer_at_no_earlier_time() {
    let Some(bench) = keyed(&[]) else { return };
    let mut server = serve_users(&bench, "");
    let right = sealed(&bench, "public.pem", "oaep", &text("mario", RIGHT, 0));
    let (word, took) = answer(server.port, [127, 3, 0, 1], Some(&right));
    assert!(word == [10] && took >= ANSWER, "asked for its streams: {word:?} after {took:?}");
    // At once: while the others are sealed it grows stale.
    let (word, took) = answer(server.port, [127, 3, 0, 2], Some(&right));
    assert!(word == REFUSED && took >= ANSWER, "used before: {word:?} after {took:?}");
    server.process.wait_until("it says why", |p| p.err().contains("was replayed"));
    let mut tokens = vec![
        ("no token".to_owned(), None),
        ("cut short".to_owned(), Some(right[..right.len() - 4].to_owned())),
        ("another letter".to_owned(), Some(right.replacen(['A', 'B'], "Z", 1))),
    ];
    for odd in ["=", "====", "AAA", "A A=", "\u{fc}\u{fc}", "AA==AA=="] {
        tokens.push((format!("'{odd}'"), Some(odd.to_owned())));
    }
    for padding in ["oaep", "pkcs1"] {
        for (what, key, text) in [
            ("wrong password", "public.pem", text("mario", "rosso", 0)),
            ("unknown user", "public.pem", text("maria", RIGHT, 0)),
            ("stale", "public.pem", text("mario", RIGHT, 60)),
            ("from the future", "public.pem", text("mario", RIGHT, -60)),
            ("wrong key", "stranger.pem", text("mario", RIGHT, 0)),
            ("another text", "public.pem", "let me in".to_owned()),
            ("nothing", "public.pem", String::new()),
        ] {
            tokens.push((format!("{what}, {padding}"), Some(sealed(&bench, key, padding, &text))));
        }
    }
    for length in (0..=8).chain([127, 128, 255, 256, 257, 384, 511, 512, 513, 1024, 3072]) {
        let bytes: Vec<u8> = (0..length).map(|i| (i * 7 + length) as u8).collect();
        tokens.push((format!("{length} bytes"), Some(base64::encode(&bytes))));
    }
    for (index, (what, token)) in tokens.iter().enumerate() {
        // One address may fail ten times.
        let from = [127, 3, 1, index as u8];
        let (word, took) = answer(server.port, from, token.as_deref());
        assert_eq!(word, REFUSED, "{what}");
        assert!(took >= ANSWER, "{what}: {took:?}");
    }
    println!("{} wrong logins ... one answer", tokens.len());
    // Of many strangers in a row the log names the first twenty.
    for why in [" s before now", " s after now", "not base64", "not encrypted with this server's key"] {
        server.process.wait_until(why, |p| p.err().contains(why));
    }
    server.assert_unharmed(&bench);
}

#[test]
fn who_guesses_is_not_listened_to_and_holds_up_nobody() {
    let Some(bench) = keyed(&[]) else { return };
    let mut server = serve_users(&bench, "");
    let guesses: Vec<_> = (0..10)
        .map(|i| {
            let token = sealed(&bench, "public.pem", "oaep", &text("mario", &format!("guess{i}"), 0));
            let port = server.port;
            thread::spawn(move || answer(port, [127, 4, 0, 1], Some(&token)).0)
        })
        .collect();
    for guess in guesses {
        assert_eq!(guess.join().unwrap(), REFUSED);
    }
    let right = |_| sealed(&bench, "public.pem", "oaep", &text("mario", RIGHT, 0));
    assert_eq!(answer(server.port, [127, 4, 0, 1], Some(&right(1))).0, REFUSED, "not read any more");
    server
        .process
        .wait_until("it says why", |p| p.err().contains("failed logins from its address within 60 s"));
    assert_eq!(answer(server.port, [127, 4, 0, 2], Some(&right(2))).0, [10], "others are");
}

#[test]
fn strangers_that_say_nothing_take_no_place() {
    let Some(bench) = keyed(&[]) else { return };
    let server = serve_users(&bench, "--max-sessions 1");
    let silent: Vec<TcpStream> = (0..20)
        .map(|i| {
            let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
            let mut cookie = [b'a' + i; 37];
            cookie[36] = 0;
            stream.write_all(&cookie).unwrap();
            stream
        })
        .collect();
    let ended = measure(&bench, server.port, RIGHT, "--user mario --iperf3-public-key public.pem");
    assert_eq!(ended.code(), 0, "{}", ended.err);
    server.assert_unharmed(&bench);
    drop(silent);
}

#[test]
fn the_password_is_asked_for_and_not_shown() {
    let Some(bench) = keyed(&[("script", "--version")]) else { return };
    let server = serve_users(&bench, "");
    let line = format!(
        "measure --iperf3 127.0.0.1:{} -t 0.3 --forward --user mario --iperf3-public-key public.pem",
        server.port
    );
    // The keys come once it asks, as those of a person do; what comes before is thrown away.
    let typed = |keys: &str| {
        let shell = format!(
            "(until grep -q 'password of' typescript 2>/dev/null; do sleep 0.05; done; printf '{keys}'; sleep 3) |
             script -qefc \"$BDP {line}\" typescript >/dev/null; echo code $?; cat typescript; rm typescript"
        );
        let mut command = bench.shell(&shell);
        command.env("BDP", crate::support::BDP).env_remove("IPERF3_PASSWORD");
        start(command).wait().out
    };
    let right = typed("rossx\\177i\\r");
    assert!(right.contains("code 0") && right.contains("password of mario: "), "{right}");
    assert!(!right.contains("ross"), "{right}");
    let left = typed("ross\\003");
    assert!(left.contains("code 3") && left.contains("no password was given"), "{left}");
    // Without a terminal it says where else it looks.
    let mut command = bench.shell(&format!("exec setsid -w $BDP {line}"));
    command.env("BDP", crate::support::BDP).env_remove("IPERF3_PASSWORD");
    let ended = start(command).wait();
    assert!(ended.refusal(3).contains("IPERF3_PASSWORD"), "{}", ended.err);
}

#[test]
fn files_that_are_none_are_named() {
    let Some(bench) = keyed(&[]) else { return };
    bench.write("bad.csv", "mario,12\n");
    for (options, code, part) in [
        ("--iperf3-users users.csv", 2, "--iperf3-key"),
        ("--iperf3-key private.pem", 2, "--iperf3-users"),
        ("--iperf3-users none.csv --iperf3-key private.pem", 3, "none.csv"),
        ("--iperf3-users bad.csv --iperf3-key private.pem", 3, "line 1"),
        ("--iperf3-users users.csv --iperf3-key users.csv", 3, "no PEM private key"),
        ("--iperf3-users users.csv --iperf3-key public.pem", 3, "public key"),
        ("--iperf3-users users.csv --iperf3-key locked.pem", 3, "encrypted"),
    ] {
        let ended = bench.run(&format!("serve --listen 127.0.0.1:1 {options}"));
        assert_eq!(ended.code(), code, "{options}: {}", ended.err);
        assert!(ended.err.contains(part), "{options}: {}", ended.err);
    }
    for (options, code, part) in [
        ("--user mario", 2, "--iperf3-public-key"),
        ("--iperf3-pkcs1", 2, "--user"),
        ("--user mario --iperf3-public-key none.pem", 3, "none.pem"),
        ("--user mario --iperf3-public-key private.pem", 3, "private key"),
        ("--user mario --iperf3-public-key users.csv", 3, "no PEM public key"),
    ] {
        let ended = measure(&bench, 1, RIGHT, options);
        assert_eq!(ended.code(), code, "{options}: {}", ended.err);
        assert!(ended.err.contains(part), "{options}: {}", ended.err);
    }
    // A key that everybody can read is told of.
    let open = bench.shell("chmod 644 private.pem").status().unwrap();
    assert!(open.success());
    let server = serve_users(&bench, "");
    assert!(server.process.err().contains("chmod 600 private.pem"), "{}", server.process.err());
}
