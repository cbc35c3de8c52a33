//! Round trips of visitors: each message is answered at once, with the kernel's round trip of the connection.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use axum::response::Response;
use bdp_run::visit::{Connection, Listener, Visit};
use serde_json::json;
use tokio::time;

use super::asked::{OnConnection, Refusal, Shared, visit};

/// Longest message.
const LONGEST: usize = 64;
/// How long a client may be silent.
const SILENCE: Duration = Duration::from_secs(60);
/// How long it may take to take an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval at which the end of the visit is noticed.
const TICK: Duration = Duration::from_secs(1);
/// Room for what a client sends ahead.
const BUFFER: usize = 4096;

pub(super) async fn ping(
    State(shared): State<Shared>,
    Path(id): Path<String>,
    Extension(connection): OnConnection,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, Refusal> {
    let visit = visit(&shared, &id, &connection)?;
    let upgrade = upgrade.map_err(|error| Refusal::Wrong(error.body_text().to_lowercase()))?;
    let listener = visit.listen_to_pings()?;
    // Room for frames of control too.
    let upgrade = upgrade.read_buffer_size(BUFFER).max_message_size(2 * LONGEST).max_frame_size(2 * LONGEST);
    Ok(upgrade.on_upgrade(move |socket| answer(socket, visit, connection, shared, listener)))
}

/// The connection keeps its place until this ends.
async fn answer(
    mut socket: WebSocket,
    visit: Arc<Visit>,
    connection: Arc<Connection>,
    shared: Shared,
    _listener: Listener,
) {
    let mut ending = shared.ending.clone();
    let mut heard = time::Instant::now();
    while !visit.is_over() && heard.elapsed() < SILENCE {
        let received = tokio::select! {
            received = time::timeout(TICK, socket.recv()) => received,
            _ = ending.wait_for(|ends| *ends) => return,
        };
        let text = match received {
            Err(_) => continue,
            Ok(Some(Ok(Message::Text(text)))) if text.len() <= LONGEST => text,
            Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => continue,
            _ => return,
        };
        heard = time::Instant::now();
        visit.note_heard();
        let trips = visit.round_trip(&connection);
        let answer = json!({
            "echo": text.as_str(),
            "tcp_rtt_ns": trips.map(|trips| trips.0),
            "tcp_min_rtt_ns": trips.map(|trips| trips.1),
        });
        let sent = time::timeout(PATIENCE, socket.send(Message::Text(answer.to_string().into()))).await;
        if !matches!(sent, Ok(Ok(()))) {
            return;
        }
    }
}
