//! Access control of the server: greeting, challenge, proof.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bdp_sys::random;
use bdp_wire::frame;
use bdp_wire::proof::{Exchange, Prover, hex, unhex};
use bdp_wire::session::{
    Admission, Greeting, Hello, Key, Kind, LONGEST_GREETING, Preamble, Refusal, VERSION,
};

use super::access::{Proof, Protocol};
use super::counters::Reason;
use super::failures::{MOST_FAILURES, WINDOW};
use super::pending_handshakes::PendingHandshake;
use super::session::{Granted, Session};
use super::sessions::Sessions;
use super::state::ServerState;
use super::tuning::Unproven;
use bdp_flow::lock::lock;
use bdp_flow::session::deadline::{self, Until};

/// How long a client may take to answer the challenge.
const HELLO_DEADLINE: Duration = Duration::from_secs(5);

/// Greets a client on a new thread, which then serves its session.
pub(super) fn greet(sessions: &Arc<Sessions>, stream: TcpStream, peer: SocketAddr, version: u8) {
    let server = &sessions.server;
    let pending = match server.pending.enter(&stream, peer) {
        Ok(pending) => pending,
        Err(error) => return server.turn_away(peer, error),
    };
    let on_thread = Arc::clone(sessions);
    // Without a thread the connection closes, which the client notices.
    if let Err(error) = bdp_flow::worker::start(move || receive(&on_thread, &stream, peer, version, pending))
    {
        server.turn_away(peer, error);
    }
}

fn receive(
    sessions: &Sessions,
    stream: &TcpStream,
    peer: SocketAddr,
    version: u8,
    pending: PendingHandshake,
) {
    match admit(sessions, stream, peer, version) {
        Ok((key, session)) => {
            drop(pending);
            sessions.serve(&key, &session, stream);
        }
        Err(why) => sessions.server.turn_away(peer, why),
    }
}

/// Returns the session, or why it was refused; the client has been notified by then.
fn admit(
    sessions: &Sessions,
    stream: &TcpStream,
    peer: SocketAddr,
    version: u8,
) -> Result<(Key, Arc<Session>), String> {
    let server = &sessions.server;
    deadline::bound(stream, "greet").map_err(|e| e.to_string())?;
    (&mut &*stream).write_all(&Preamble::new(Kind::Control).encode()).map_err(|e| e.to_string())?;
    let access = server.options.access.check(peer.ip(), Protocol::Bdp);
    let early = if version != VERSION {
        Some(Refusal::Version { speaks: VERSION })
    } else if server.is_ending() {
        Some(Refusal::Ending)
    } else if let Err(denied) = &access {
        Some(denied.clone().into())
    } else if server.places.is_full(peer.ip()) {
        Some(Refusal::Busy { sessions: server.places.sessions() })
    } else {
        None
    };
    if let Some(refusal) = early {
        let reason = access.as_ref().err().map_or(Reason::of(&refusal), Reason::of_denied);
        return refuse(server, stream, Greeting::Refused(refusal.clone()), &refusal, reason);
    }
    let token_needed = access == Ok(Proof::Token);
    let server_nonce = random::bytes().map_err(|e| e.to_string())?;
    let greeting = Greeting::Challenge {
        bdp: env!("CARGO_PKG_VERSION").to_owned(),
        nonce: hex(&server_nonce),
        token_needed,
        tune: Some(server.tuner.is_some()),
    };
    frame::write(&mut &*stream, &greeting).map_err(|e| e.to_string())?;
    let hello: Hello = frame::read_bounded(&mut Until::new(stream, HELLO_DEADLINE), LONGEST_GREETING)
        .map_err(|e| format!("invalid answer during session setup: {e}"))?;
    let Some(client_nonce) = unhex(&hello.nonce) else {
        return Err("its nonce is not 32 hexadecimal bytes".to_owned());
    };
    let exchange = Exchange { server_nonce, client_nonce };
    let granted = match grant(server, peer, exchange, &hello, token_needed) {
        Ok(granted) => granted,
        Err(refusal) => {
            let reason = Reason::of(&refusal);
            return refuse(server, stream, Admission::Refused(refusal.clone()), &refusal, reason);
        }
    };
    let tune_proof =
        server.tuner.as_ref().zip(granted.tune.as_ref()).map(|(tuner, right)| tuner.prove(right));
    let key = random::bytes().map_err(|e| e.to_string())?;
    let session = match sessions.begin(key, stream, peer, &hello.bdp, granted) {
        Ok(session) => session,
        Err(refusal) => {
            let reason = Reason::of(&refusal);
            return refuse(server, stream, Admission::Refused(refusal.clone()), &refusal, reason);
        }
    };
    let welcome = Admission::Welcome {
        key: hex(&key),
        proof: server.options.token.as_ref().map(|token| exchange.prove(token, Prover::Server)),
        tune_proof,
        limits: server.options.limits,
    };
    // If the client has gone, the session's first read notices.
    let _ = frame::write(&mut &*stream, &welcome);
    Ok((key, session))
}

/// Returns what a client may do, based on what it has proven.
fn grant(
    server: &ServerState,
    peer: SocketAddr,
    exchange: Exchange,
    hello: &Hello,
    token_needed: bool,
) -> Result<Granted, Refusal> {
    let tune = match (&server.tuner, &hello.tune_proof) {
        (Some(tuner), Some(proof)) => match tuner.verify(peer, exchange, proof) {
            Ok(right) => Some(right),
            Err(Unproven::Wrong) => return Err(Refusal::TuneTokenWrong),
            Err(Unproven::TooMany) => return Err(Refusal::Other { text: Unproven::text() }),
        },
        _ => None,
    };
    let may_measure = match (&server.options.token, &hello.proof) {
        (Some(token), Some(proof)) => {
            verify(server, peer, || exchange.verify(token, Prover::Client, proof))?;
            true
        }
        (Some(_), None) | (None, _) if token_needed => false,
        _ => true,
    };
    // The tune token grants tuning alone.
    match may_measure || tune.is_some() {
        true => Ok(Granted { may_measure, tune }),
        false => Err(Refusal::TokenNeeded),
    }
}

/// Checks a client's proof of the token, unless its address has sent too many wrong ones.
fn verify(server: &ServerState, peer: SocketAddr, is_right: impl FnOnce() -> bool) -> Result<(), Refusal> {
    let now = Instant::now();
    let mut failures = lock(&server.failures);
    if failures.has_failed_often(peer.ip(), now) {
        let seconds = WINDOW.as_secs();
        let text = format!(
            "{MOST_FAILURES} wrong tokens came from this address within {seconds} s; try again later"
        );
        return Err(Refusal::Other { text });
    }
    if is_right() {
        return Ok(());
    }
    failures.note(peer.ip(), now);
    Err(Refusal::TokenWrong)
}

fn refuse<T>(
    server: &ServerState,
    stream: &TcpStream,
    message: impl serde::Serialize,
    refusal: &Refusal,
    reason: Reason,
) -> Result<T, String> {
    server.counters.give_reason(reason);
    // Whether or not that arrives, the client is refused.
    let _ = frame::write(&mut &*stream, &message);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    Err(match refusal {
        Refusal::Version { .. } => "it uses another version of the protocol".to_owned(),
        Refusal::TokenNeeded => "it gave no token".to_owned(),
        Refusal::TokenWrong => "its token is wrong".to_owned(),
        Refusal::TuneTokenWrong => "its tune token is wrong".to_owned(),
        Refusal::Busy { sessions } => format!("busy with {sessions} sessions"),
        Refusal::Ending => "about to end".to_owned(),
        Refusal::Other { text } => text.clone(),
    })
}
