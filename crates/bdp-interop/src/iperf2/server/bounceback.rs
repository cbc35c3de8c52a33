//! One `--bounceback` connection: every message is returned with the times of its arrival and of the reply.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bdp_model::units::Rate;
use bdp_sys::socket::{self, TcpOptions};
use bdp_sys::{clock, process};
use bdp_wire::iperf2::{BOUNCEBACK_BYTES, Bounceback, LONGEST_BOUNCEBACK};

use super::shared::{self, Membership, Shared};
use bdp_flow::error::{FlowError, Result};
use bdp_flow::pause::wait_until;
use bdp_flow::session::deadline::{self, PATIENCE};
use bdp_flow::stall::STALL;

/// How long a read waits before it checks whether the server stops or the client was evicted.
const LOOK: Duration = Duration::from_millis(250);

/// Serves a connection on a thread of its own; `first` is the beginning of its first message.
pub(super) fn serve(shared: &Arc<Shared>, stream: TcpStream, peer: SocketAddr, first: &[u8]) {
    if let Err(wrong) = Bounceback::decode(first) {
        let why = format!("invalid request for iperf2 --bounceback: {wrong}");
        shared.server.turn_away(peer, why);
        return socket::close_hard(stream);
    }
    let first = first.to_vec();
    shared::serve(shared, stream, peer, Ok(()), move |shared, stream, member| {
        let mut replies = Replies { shared, member, began: Instant::now(), received_bytes: 0, sent_bytes: 0 };
        let done = replies.run(stream, &first);
        shared.server.counters.add_received(replies.received_bytes);
        shared.server.counters.add_sent(replies.sent_bytes);
        done
    });
}

struct Replies<'a> {
    shared: &'a Shared,
    member: &'a Membership,
    began: Instant,
    received_bytes: u64,
    sent_bytes: u64,
}

impl Replies<'_> {
    fn run(&mut self, stream: TcpStream, first: &[u8]) -> Result<()> {
        let done = self.answer(&stream, first);
        if done.is_err() {
            // A client that waits for a reply learns at once that none comes.
            socket::close_hard(stream);
        }
        done
    }

    fn answer(&mut self, mut stream: &TcpStream, first: &[u8]) -> Result<()> {
        let failed = || FlowError::io("answer an iperf2 client");
        process::sharpen_timers();
        deadline::bound(stream, "answer an iperf2 client")?;
        stream.set_read_timeout(Some(LOOK)).map_err(failed())?;
        let longest = self.shared.server.options.limits.duration.to_duration();
        let began_ns = clock::monotonic_ns();
        let rate = self.shared.server.options.limits.rate;
        let mut room = vec![0; LONGEST_BOUNCEBACK];
        let mut filled = first.len().min(BOUNCEBACK_BYTES);
        room[..filled].copy_from_slice(&first[..filled]);
        while self.read(stream, &mut room, &mut filled)? {
            let received_us = clock::unix_ns() / 1000;
            let asked = Bounceback::decode_whole(&room[..filled])
                .map_err(|wrong| FlowError::Refused(wrong.to_owned()))?;
            self.received_bytes += filled as u64;
            self.member.activity.note_heard();
            if asked.is_last {
                return Ok(());
            }
            if let Some(type_of_service) = asked.type_of_service.filter(|_| self.sent_bytes == 0) {
                let dscp = Some(type_of_service >> 2);
                TcpOptions { dscp, nodelay: true, ..Default::default() }.apply_to(stream)?;
            }
            if self.began.elapsed() > longest {
                return Err(FlowError::Refused("it ran longer than allowed (--max-duration)".to_owned()));
            }
            let paced_ns = rate.map_or(0, |rate: Rate| rate.serialisation(self.sent_bytes).as_ns());
            let due_ns = (clock::monotonic_ns() + asked.hold.as_ns()).max(began_ns + paced_ns);
            if !wait_until(due_ns, self.shared.server.ending()) {
                return Ok(());
            }
            let reply = &mut room[..asked.reply_bytes];
            Bounceback::stamp(reply, received_us, clock::unix_ns() / 1000);
            match stream.write_all(reply) {
                Ok(()) => self.sent_bytes += asked.reply_bytes as u64,
                // The client has what it wants.
                Err(e) if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                    return Ok(());
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    return Err(FlowError::Stalled { within: PATIENCE.into() });
                }
                Err(e) => return Err(failed()(e)),
            }
            filled = 0;
        }
        Ok(())
    }

    /// Reads a whole message after what is already there; returns false if the client, or the server, ended between
    /// two messages.
    fn read(&self, mut stream: &TcpStream, room: &mut [u8], filled: &mut usize) -> Result<bool> {
        let since = Instant::now();
        loop {
            let wanted = match *filled {
                got if got < BOUNCEBACK_BYTES => BOUNCEBACK_BYTES,
                got => {
                    let asked = Bounceback::decode(&room[..got])
                        .map_err(|wrong| FlowError::Refused(wrong.to_owned()))?;
                    if got >= asked.bytes {
                        return Ok(true);
                    }
                    asked.bytes
                }
            };
            match stream.read(&mut room[*filled..wanted]) {
                Ok(0) => return Ok(false),
                Ok(length) => *filled += length,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    if self.shared.server.is_ending() || self.member.activity.is_evicted() {
                        return Ok(false);
                    }
                    if since.elapsed() >= STALL.to_duration() {
                        return Err(FlowError::Stalled { within: STALL });
                    }
                }
                Err(e) if matches!(e.kind(), ErrorKind::ConnectionReset | ErrorKind::TimedOut) => {
                    return Ok(false);
                }
                Err(e) => return Err(FlowError::io("answer an iperf2 client")(e)),
            }
        }
    }
}
