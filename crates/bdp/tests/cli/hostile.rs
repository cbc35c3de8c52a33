//! Ends that mean it no good: what they can cost the other in memory, in places and in time, by figures.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bdp_sys::socket::{TcpOptions, start_connect};
use bdp_sys::udp::{self, UdpOptions};
use bdp_wire::proof::{hex, unhex};
use bdp_wire::session::{Key, Kind, Preamble, Probe, Ticket};
use serde_json::{Value, json};

use crate::support::cable::{lay, said};
use crate::support::serving::{Serving, free_port, is_listening, measure, serve};
use crate::support::{Bench, start, wait_for};

/// A control connection that was let in, from an address of loopback.
struct Control {
    stream: TcpStream,
    from: Ipv4Addr,
    port: u16,
    key: Key,
}

fn connect(from: Ipv4Addr, port: u16) -> TcpStream {
    let to = SocketAddr::from(([127, 0, 0, 1], port));
    let stream = start_connect(to, Some((from, 0).into()), &TcpOptions::default()).unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    wait_for("it is connected", || stream.peer_addr().is_ok());
    stream
}

fn write_frame(mut stream: &TcpStream, body: &Value) {
    let body = body.to_string();
    // The other end may have hung up.
    let _ = stream.write_all(&[&(body.len() as u32).to_be_bytes(), body.as_bytes()].concat());
}

fn read_frame(mut stream: &TcpStream) -> std::io::Result<Value> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut body = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}

impl Control {
    fn admitted(from: Ipv4Addr, port: u16) -> Self {
        let mut stream = connect(from, port);
        stream.write_all(&Preamble::new(Kind::Control).encode()).unwrap();
        stream.read_exact(&mut [0; 8]).unwrap();
        assert!(read_frame(&stream).unwrap()["challenge"].is_object());
        write_frame(&stream, &json!({"bdp": "x", "nonce": hex(&[9; 32]), "proof": null}));
        let welcome = read_frame(&stream).unwrap();
        let key = welcome["welcome"]["key"].as_str().unwrap_or_else(|| panic!("{welcome}"));
        Self { key: unhex(key).unwrap(), stream, from, port }
    }

    /// Orders a flow; the error where it is refused.
    fn prepare(&self, flow: u32, role: &str, streams: u32, more: &Value) -> Result<(), String> {
        let mut order = json!({
            "flow": flow, "role": role, "streams": streams, "duration": "30s", "omit": "0s", "interval": "100ms",
            "length_bytes": 131_072, "nodelay": false
        });
        for (member, value) in more.as_object().unwrap() {
            order[member] = value.clone();
        }
        write_frame(&self.stream, &json!({"id": flow, "body": {"prepare": order}}));
        let answer = read_frame(&self.stream).unwrap();
        match answer["body"]["failed"]["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(()),
        }
    }

    /// Brings the streams of a flow, and says the word.
    fn begin(&self, flow: u32, streams: u32) -> Vec<TcpStream> {
        let streams = (0..streams).map(|stream| {
            let connection = connect(self.from, self.port);
            let ticket = Ticket { key: self.key, flow, stream };
            (&connection).write_all(&ticket.encode(Kind::Data)).unwrap();
            connection
        });
        let streams = streams.collect();
        write_frame(&self.stream, &json!({"id": 100 + flow, "body": {"begin": {"flow": flow}}}));
        assert_eq!(read_frame(&self.stream).unwrap()["body"], "done");
        streams
    }
}

/// Memory of a process that is its own, and what it shares of files in memory.
fn memory_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse::<u64>().unwrap())
    };
    field("RssAnon:") + field("RssShmem:")
}

const fn loopback(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, last)
}

/// The most memory that strangers get of a server that serves so many sessions of two for each address, each with all flows that it
/// grants, in writes of 64 MiB, with samples of a millisecond where it gets them.
fn worst_of(server: &Serving, sessions: u8) -> u64 {
    let mut refused = 0;
    let (mut sessions_held, mut streams_held) = (Vec::new(), Vec::new());
    for session in 0..sessions {
        let control = Control::admitted(loopback(2 + session), server.port);
        for flow in 1..=4 {
            let order = |interval: &str| json!({"length_bytes": 64 << 20, "interval": interval});
            let of_1ms = control.prepare(flow, "send", 8, &order("1ms"));
            if let Err(error) = of_1ms {
                assert!(error.contains("the flow needs") && error.contains("--max-memory"), "{error}");
                refused += 1;
                if control.prepare(flow, "send", 8, &order("100ms")).is_err() {
                    continue;
                }
            }
            let streams = control.begin(flow, 8);
            streams_held.extend(streams);
        }
        sessions_held.push(control);
    }
    println!("{refused} orders of 1 ms refused, {} streams", streams_held.len());
    assert!(streams_held.len() >= 24 * usize::from(sessions), "{}", streams_held.len());
    // All of them are read for a while, and so have samples.
    let until = Instant::now() + Duration::from_secs(3);
    let mut room = vec![0; 1 << 20];
    let mut most = 0;
    while Instant::now() < until {
        for stream in &mut streams_held {
            stream.set_nonblocking(true).unwrap();
            match stream.read(&mut room) {
                Err(e) if e.kind() != ErrorKind::WouldBlock => panic!("{e}"),
                _ => {}
            }
        }
        most = memory_kib(server.process.pid()).max(most);
    }
    most
}

#[test]
fn strangers_take_no_more_memory_than_is_stated() {
    let bench = Bench::new();
    let open = serve(&bench, "--open");
    let most = worst_of(&open, 4);
    println!("--open: {most} KiB");
    assert!(most <= 64 << 10, "{most} KiB");
    let trusted = serve(&bench, "");
    let most = worst_of(&trusted, 16);
    println!("--token: {most} KiB");
    assert!(most <= 256 << 10, "{most} KiB");
}

#[test]
fn log_that_nobody_reads_stops_nobody() {
    let bench = Bench::new();
    let port = free_port();
    // A pipe with little room left, that nobody reads.
    let (unread, mut full) = std::io::pipe().unwrap();
    for _ in 0..15 {
        full.write_all(&[b'.'; 4096]).unwrap();
    }
    full.write_all(&[b'.'; 2600]).unwrap();
    let mut command = bench.bdp(&format!("serve --listen {port}"));
    let mut server = command.stderr(full).stdout(Stdio::null()).spawn().unwrap();
    // Its own copies of the pipe's end.
    drop(command);
    wait_for("it listens", || is_listening(port));
    // 538 sessions were the most that it took.
    for _ in 0..1_500 {
        drop(Control::admitted(loopback(1), port));
    }
    for _ in 0..60 {
        let mut stranger = connect(loopback(1), port);
        let _ = stranger.write_all(b"GET / HTTP/1.1\r\n\r\n");
    }
    let ended = bench.run(&measure(port));
    assert_eq!(ended.code(), 0, "{}", ended.err);
    Command::new("kill").arg(server.id().to_string()).status().unwrap();
    let since = Instant::now();
    wait_for("it ends", || server.try_wait().unwrap().is_some());
    assert_eq!(server.try_wait().unwrap().unwrap().code(), Some(0));
    println!("ended {:?} after SIGTERM", since.elapsed());
    drop(unread);
}

#[test]
fn flood_of_sessions_is_some_lines_and_a_count() {
    let bench = Bench::new();
    let mut server = serve(&bench, "");
    for _ in 0..200 {
        drop(Control::admitted(loopback(1), server.port));
    }
    let began = server.process.err().matches(" started, bdp").count();
    // As many again where a while has ended among them.
    assert!((1..=60).contains(&began), "{began} lines");
    server
        .process
        .wait_until("the rest is counted", |p| p.err().contains(" more sessions started in the last 10 s"));
}

#[test]
fn datagram_from_the_servers_own_port_gets_no_answer() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let control = Control::admitted(loopback(1), server.port);
    let probe = Probe { key: control.key, number: 1, sent_ns: 7 }.encode();
    let to = SocketAddr::from((loopback(3), server.port));
    let answered = |socket: &UdpSocket| {
        socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        socket.send_to(&probe, to).unwrap();
        socket.recv(&mut [0; 64]).is_ok()
    };
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    wait_for("a client is answered", || answered(&client));
    // What was sent to this very address comes here; the server's own socket hears what is sent to another.
    let options = UdpOptions { share_port: true, ..Default::default() };
    for from in [loopback(1), loopback(3)] {
        let own = udp::bind((from, server.port).into(), &options).unwrap();
        let to = SocketAddr::from((loopback(5), server.port));
        own.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        for _ in 0..20 {
            own.send_to(&probe, to).unwrap();
        }
        assert!(own.recv(&mut [0; 64]).is_err(), "an answer to itself from {from}");
    }
    wait_for("others are answered", || answered(&client));
}

#[test]
fn evicted_client_hears_busy() {
    let bench = Bench::new();
    let mut server = serve(&bench, "--exclusive");
    let idle = Control::admitted(loopback(1), server.port);
    wait_for("it gives way", || bench.run(&measure(server.port)).code() == 0);
    let farewell = read_frame(&idle.stream).unwrap();
    assert_eq!(farewell["id"], 0, "{farewell}");
    let error = farewell["body"]["failed"]["error"].as_str().unwrap();
    assert!(error.starts_with("busy: ") && error.contains("evicted while idle"), "{error}");
    server.process.wait_until("it is logged", |p| p.err().contains("evicted while idle to make room"));
    // The same of iperf3's protocol: its word for it is -1.
    let mut iperf3 = crate::support::iperf3::greeted(server.port, b'a');
    wait_for("it gives way", || bench.run(&measure(server.port)).code() == 0);
    let mut heard = Vec::new();
    let _ = iperf3.read_to_end(&mut heard);
    assert_eq!(heard.last(), Some(&0xff), "{heard:?}");
}

#[test]
fn next_to_nothing_keeps_no_place_of_an_open_server() {
    let bench = Bench::new();
    let mut server = serve(&bench, "--open");
    let slow: Vec<(Control, Vec<TcpStream>)> = [2, 2, 3, 3]
        .map(|last| {
            let control = Control::admitted(loopback(last), server.port);
            control.prepare(1, "receive", 1, &json!({})).unwrap();
            let streams = control.begin(1, 1);
            (control, streams)
        })
        .into();
    let honest = format!("{} -B 127.0.0.4", measure(server.port));
    let (mut refusals, since) = (0, Instant::now());
    loop {
        for (_, streams) in &slow {
            // It may have lost its place.
            let _ = (&streams[0]).write_all(b"slow");
        }
        let ended = bench.run(&honest);
        if ended.code() == 0 {
            break;
        }
        assert!(ended.err.contains("busy") && !ended.err.contains("lost the connection"), "{}", ended.err);
        refusals += 1;
        assert!(since.elapsed() < Duration::from_secs(25), "{}", ended.err);
        thread::sleep(Duration::from_millis(500));
    }
    println!("a place after {:?} and {refusals} refusals", since.elapsed());
    assert!(refusals > 0, "all places were taken");
    server
        .process
        .wait_until("it is logged", |p| p.err().contains("it transferred less than 1000 bytes per second"));
}

/// A server that lets everybody in and answers as it likes: to the request for a flow, or for its outcome.
fn lying_server(prepared: Option<&'static str>, outcome: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let outcome = outcome.clone();
            thread::spawn(move || lie(stream, prepared, &outcome));
        }
    });
    port
}

fn lie(mut stream: TcpStream, prepared: Option<&str>, outcome: &str) -> Option<()> {
    let mut first = [0; 8];
    stream.read_exact(&mut first).ok()?;
    if first[5] != 1 {
        // Streams and probes lead nowhere.
        std::io::copy(&mut stream, &mut std::io::sink()).ok()?;
        return None;
    }
    stream.write_all(&Preamble::new(Kind::Control).encode()).ok()?;
    let challenge = json!({"bdp": "x", "nonce": hex(&[7; 32]), "token_needed": false});
    write_frame(&stream, &json!({"challenge": challenge}));
    read_frame(&stream).ok()?;
    let limits = json!({"duration": "1h", "streams": 100});
    write_frame(&stream, &json!({"welcome": {"key": hex(&[5; 16]), "proof": null, "limits": limits}}));
    loop {
        let request = read_frame(&stream).ok()?;
        let id = &request["id"];
        let body = &request["body"];
        if body["prepare"].is_object() && prepared.is_some() {
            write_frame(&stream, &json!({"id": 0, "body": {"failed": {"error": prepared}}}));
            return None;
        } else if body["collect"].is_object() {
            let text = format!("{{\"id\":{id},\"body\":{{\"received\":{outcome}}}}}");
            let bytes = [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat();
            stream.write_all(&bytes).ok()?;
        } else {
            write_frame(&stream, &json!({"id": id, "body": "done"}));
        }
    }
}

fn received(streams: usize) -> String {
    let list = "7,".repeat(streams);
    format!(
        "{{\"first_byte_at_ns\":1,\"bytes\":1000000,\"duration_ns\":1000000000,\"counted_from\":{{\"at_ns\":0,\"bytes\":0}},\
         \"stream_bytes\":[{}],\"samples\":[],\"cpu\":0.0,\"ended\":\"duration\"}}",
        list.trim_end_matches(',')
    )
}

#[test]
fn answer_is_bounded_by_what_was_asked() {
    let bench = Bench::new();
    for (streams, said) in
        [(2, "reported 2 bytes of streams, more than the 1"), (31_000_000, "exceeds the maximum of")]
    {
        let port = lying_server(None, received(streams));
        let mut client = start(bench.bdp(&measure(port)));
        let mut most = 0;
        wait_for("it ends", || {
            most = memory_kib(client.pid()).max(most);
            client.has_ended()
        });
        let ended = client.wait();
        assert_eq!(ended.code(), 3, "{streams}: {}", ended.err);
        assert!(ended.err.contains(said), "{streams}: {}", ended.err);
        println!("{streams} streams for one: {most} KiB");
        assert!(most < 64 << 10, "{streams}: {most} KiB");
        assert!(
            std::fs::metadata(bench.store()).map_or(0, |store| store.len()) < 1 << 20,
            "nothing is stored"
        );
    }
}

#[test]
fn client_whose_session_is_given_to_another_says_busy() {
    let bench = Bench::new();
    let port = lying_server(Some("busy: this session was evicted to make room"), received(1));
    let ended = bench.run(&measure(port));
    assert_eq!(ended.code(), 3, "{}", ended.err);
    assert!(ended.err.contains("busy: this session was evicted"), "{}", ended.err);
    assert!(!ended.err.contains("lost the connection"), "{}", ended.err);
}

#[test]
fn link_local_addresses_with_their_device_work_everywhere() {
    let bench = Bench::new();
    let script = "
        local_of() { \"$@\" ip -6 -o addr show scope link | awk '{ sub(\"/.*\", \"\", $4); print $4; exit }'; }
        until [ -n \"$(local_of)\" ] && [ -n \"$(local_of far)\" ] && ! ip -6 addr show tentative | grep -q fe80 \
            && ! far ip -6 addr show tentative | grep -q fe80; do sleep 0.05; done
        here=$(local_of)%near0; faraway=$(local_of far)
        run() { name=$1; shift; code=0; \"$BDP\" \"$@\" >$name.out 2>$name.err || code=$?; echo $code >$name.code; }
        serve --listen \"[$faraway%far0]:5201\"
        cp serve.out told
        measure tcp \"[$faraway%near0]:5201\" -t 0.3 --idle 0.1
        measure udp \"$faraway%near0\" -u -b 1M --flood -t 0.3 --idle 0.1
        measure bound \"$faraway%near0\" -B \"$here\" -t 0.3 --idle 0.1
        measure bidir \"$faraway%near0\" --bidir -P 2 -t 0.3 --idle 0.1
        measure iperf3 \"$faraway%near0\" --iperf3 -t 1 --idle 0.1
        run ping ping \"$faraway%near0\" -c 3 -i 0.05
        run path path \"$faraway%near0\" --udp -c 3
        kill $server; wait $server || true
        serve --allow fe80::/10
        measure any \"$faraway%near0\" -t 0.3 --idle 0.1
        measure iperf3-udp \"$faraway%near0\" --iperf3 -u -b 1M --flood -t 1 --idle 0.1
        cp serve.out any-told";
    let script = script
        .replace("serve --listen", "serve --open --listen")
        .replace("serve --allow", "serve --open --allow");
    if lay(&bench, &script).is_none() {
        return;
    }
    let mut failed = Vec::new();
    for name in ["tcp", "udp", "bound", "bidir", "iperf3", "ping", "path", "any", "iperf3-udp"] {
        let (code, _, err) = said(&bench, name);
        if code != 0 {
            failed.push(format!("{name} ({code}): {err}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let told = std::fs::read_to_string(bench.path("told")).unwrap();
    assert!(told.starts_with("bdp measure fe80:") && told.contains("%far0"), "{told}");
    let told = std::fs::read_to_string(bench.path("any-told")).unwrap();
    assert!(told.starts_with("bdp measure 10.77.0.2"), "the address that the other side can reach: {told}");
}
