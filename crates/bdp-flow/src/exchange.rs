//! Requests and responses: clients that ask, receive the answer, think and ask again, each over its own connections.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use bdp_model::case::traffic::Pattern;
use bdp_model::units::Nanos;
use bdp_sys::socket::{self, TcpOptions};
use bdp_sys::{clock, process};
use bdp_wire::control::{ExchangeOrder, Exchanged};

use crate::error::{FlowError, Result};
use crate::worker::{self, Worker};

/// A request begins with its length and that of the answer, in bytes.
const HEADER_BYTES: usize = 16;
/// Bytes of one read or write.
const PIECE: usize = 1 << 16;
/// Connections that may wait to be taken.
const BACKLOG: i32 = 512;

/// Returns a listener for [`respond`], whose connections send with this congestion control.
pub fn listen(address: SocketAddr, congestion: Option<String>) -> Result<TcpListener> {
    let options = TcpOptions { congestion, nodelay: true, ..TcpOptions::default() };
    Ok(socket::listen(address, &options, BACKLOG)?)
}

/// Answers the requests of every connection, for as long as the process lives.
pub fn respond(listener: &TcpListener) {
    loop {
        match listener.accept() {
            // Without a thread for it the connection closes, which its client notices.
            Ok((stream, _)) => drop(worker::start(move || answer_all(stream))),
            Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Answers the requests of one connection until it ends.
fn answer_all(mut stream: TcpStream) {
    let mut room = vec![0; PIECE];
    loop {
        let mut header = [0; HEADER_BYTES];
        if stream.read_exact(&mut header).is_err() {
            return;
        }
        let number = |at: usize| header[at..at + 8].iter().fold(0, |all, &byte| all << 8 | u64::from(byte));
        let rest = number(0).saturating_sub(HEADER_BYTES as u64);
        if take(&mut stream, rest, &mut room).is_err() || give(&mut stream, number(8), &room).is_err() {
            return;
        }
    }
}

/// Reads this many bytes.
fn take(stream: &mut TcpStream, mut bytes: u64, room: &mut [u8]) -> std::io::Result<()> {
    while bytes > 0 {
        let most = room.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
        match stream.read(&mut room[..most]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => bytes -= read as u64,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Writes this many arbitrary bytes.
fn give(stream: &mut TcpStream, mut bytes: u64, room: &[u8]) -> std::io::Result<()> {
    while bytes > 0 {
        let most = room.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
        stream.write_all(&room[..most])?;
        bytes -= most as u64;
    }
    Ok(())
}

/// Runs all clients of an order until its end.
pub fn run(order: &ExchangeOrder) -> Result<Exchanged> {
    let begun = clock::monotonic_ns() + order.start.as_ns();
    let Pattern::RequestResponse { clients, .. } = order.traffic.pattern else {
        return Err(FlowError::Refused("this traffic type has no requests".to_owned()));
    };
    thread::scope(|scope| {
        let all: Vec<_> =
            (0..clients).map(|client| Worker::start(scope, move || Ok(ask(order, client, begun)))).collect();
        let mut sum = Exchanged::default();
        for client in all {
            let one = client?.join()?;
            sum.took_ns.extend(one.took_ns);
            sum.unfinished += one.unfinished;
            sum.received_bytes += one.received_bytes;
        }
        Ok(sum)
    })
}

/// One client.
fn ask(order: &ExchangeOrder, client: u32, begun: u64) -> Exchanged {
    process::sharpen_timers();
    let mut outcome = Exchanged::default();
    let Pattern::RequestResponse { kept, .. } = order.traffic.pattern else { return outcome };
    let end = begun + order.traffic.duration.as_ns();
    let last = end + order.patience.as_ns();
    let mut room = vec![0; PIECE];
    let mut connection = None;
    let mut at = begun;
    for asked in order.traffic.exchanges(order.seed, order.place, client) {
        let bytes = asked.answer_bytes;
        at = at.max(clock::monotonic_ns()) + asked.think.as_ns();
        if at >= end {
            break;
        }
        while let left @ 1.. = at.saturating_sub(clock::monotonic_ns()) {
            thread::sleep(Duration::from_nanos(left));
        }
        let answered =
            connection.take().map_or_else(|| connect(order.to, last), Ok).and_then(|mut stream| {
                let left = last.saturating_sub(clock::monotonic_ns()).max(1);
                stream.set_read_timeout(Some(Duration::from_nanos(left)))?;
                let length = asked.request_bytes.max(HEADER_BYTES as u64);
                room[..8].copy_from_slice(&length.to_be_bytes());
                room[8..HEADER_BYTES].copy_from_slice(&bytes.to_be_bytes());
                // The content after the header is arbitrary.
                give(&mut stream, length, &room)?;
                take(&mut stream, bytes, &mut room)?;
                Ok(stream)
            });
        match answered {
            Ok(stream) => {
                outcome.took_ns.push(clock::monotonic_ns() - at);
                outcome.received_bytes += bytes;
                connection = Some(stream).filter(|_| kept);
            }
            Err(_) => outcome.unfinished += 1,
        }
    }
    outcome
}

fn connect(to: SocketAddr, last: u64) -> std::io::Result<TcpStream> {
    let left = Nanos(last.saturating_sub(clock::monotonic_ns()).max(1)).to_duration();
    let options = TcpOptions { nodelay: true, ..TcpOptions::default() };
    socket::connect(to, &options, left).map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use bdp_model::case::traffic::{Size, Traffic};

    use super::*;

    #[test]
    fn every_request_has_its_answer() {
        let listener = listen((Ipv4Addr::LOCALHOST, 0).into(), None).unwrap();
        let to = listener.local_addr().unwrap();
        thread::spawn(move || respond(&listener));
        for kept in [true, false] {
            let pattern = Pattern::RequestResponse {
                think: Nanos::millis(5),
                clients: 3,
                think_fixed: true,
                request: Size::Fixed { bytes: 100_000 },
                kept,
            };
            let traffic = Traffic {
                name: "t".to_owned(),
                from: "a".to_owned(),
                to: "b".to_owned(),
                congestion: None,
                start: Nanos::ZERO,
                duration: Nanos::millis(200),
                pattern,
                size: Size::Fixed { bytes: 70_000 },
            };
            let order = ExchangeOrder {
                traffic,
                seed: 1,
                place: 0,
                to,
                start: Nanos::ZERO,
                patience: Nanos::secs(20),
            };
            let came = run(&order).unwrap();
            assert_eq!(came.unfinished, 0);
            assert!(came.took_ns.len() >= 3, "{}", came.took_ns.len());
            assert_eq!(came.received_bytes, came.took_ns.len() as u64 * 70_000);
        }
    }

    #[test]
    fn a_server_that_is_gone_leaves_all_unfinished() {
        let listener = listen((Ipv4Addr::LOCALHOST, 0).into(), None).unwrap();
        let to = listener.local_addr().unwrap();
        drop(listener);
        let pattern = Pattern::RequestResponse {
            think: Nanos::millis(5),
            think_fixed: false,
            clients: 1,
            request: Size::Fixed { bytes: 1 },
            kept: true,
        };
        let traffic = Traffic {
            name: "t".to_owned(),
            from: "a".to_owned(),
            to: "b".to_owned(),
            congestion: None,
            start: Nanos::ZERO,
            duration: Nanos::millis(100),
            pattern,
            size: Size::Fixed { bytes: 1 },
        };
        let order =
            ExchangeOrder { traffic, seed: 1, place: 0, to, start: Nanos::ZERO, patience: Nanos::secs(5) };
        let came = run(&order).unwrap();
        assert_eq!((came.took_ns.len(), came.received_bytes), (0, 0));
        assert!(came.unfinished >= 1);
    }
}
