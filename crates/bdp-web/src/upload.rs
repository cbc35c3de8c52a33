//! Uploads of captures.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::captures::Capture;
use crate::shared::{Shared, apart};
use crate::{Refused, RefusedBy};

/// Header with the file's name, percent-encoded.
const NAME: &str = "bdp-name";
/// Pieces that wait for the disk.
const WAITING: usize = 8;
/// Longest wait for a piece.
const PATIENCE: Duration = Duration::from_secs(30);

/// Receives a capture, piece by piece.
pub async fn receive(
    State(shared): State<Shared>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name = decoded(text(NAME));
    let announced = text(header::CONTENT_LENGTH.as_str()).parse().ok();
    let captures = shared.captures.clone();
    let mut upload = apart(move || captures.begin(&name, announced)).await?;
    let (sender, mut pieces) = mpsc::channel::<axum::body::Bytes>(WAITING);
    let written = apart(move || {
        while let Some(piece) = pieces.blocking_recv() {
            upload.add(&piece)?;
        }
        Ok(upload)
    });
    let read = async move {
        let mut body = body.into_data_stream();
        while let Some(piece) = next(&mut body, PATIENCE).await? {
            // The writer has given up, and says why.
            if sender.send(piece).await.is_err() {
                break;
            }
        }
        Ok(())
    };
    let (upload, read) = tokio::join!(written, read);
    let upload = upload?;
    read?;
    let (id, capture) = shared.captures.keep(upload)?;
    Ok((StatusCode::CREATED, Json(row(&id, &capture))).into_response())
}

/// The captures that are there, oldest first.
pub async fn list(State(shared): State<Shared>) -> Json<Value> {
    Json(shared.captures.list().iter().map(|(id, capture)| row(id, capture)).collect())
}

fn row(id: &str, capture: &Capture) -> Value {
    json!({ "id": id, "name": capture.name, "bytes": capture.bytes })
}

/// The next piece of a body; `None` at its end. Refuses one that breaks off, or pauses for so long.
async fn next<P, E>(
    body: &mut (impl Stream<Item = Result<P, E>> + Unpin),
    patience: Duration,
) -> Result<Option<P>, Refused> {
    match tokio::time::timeout(patience, body.next()).await {
        Ok(piece) => piece.transpose().map_err(|_| "the upload broke off: choose the file again"),
        Err(_) => Err("the upload paused for too long: choose the file again"),
    }
    .map_err(|why| Refused::new(RefusedBy::Usage, why))
}

/// Removes a capture.
pub async fn remove(State(shared): State<Shared>, Path(id): Path<String>) -> Result<StatusCode, Refused> {
    shared.captures.remove(&id)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Percent-encoded text.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = || {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            u8::from_str_radix(digits, 16).ok()
        };
        match (first, code()) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use futures_util::stream;

    use super::*;

    #[test]
    fn a_body_that_pauses_or_breaks_off_is_refused() {
        let pieces = stream::iter([Ok("a"), Err(Error::other("reset"))]);
        let mut broken = pieces.chain(stream::pending());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let mut next = || runtime.block_on(next(&mut broken, Duration::from_millis(5)));
        assert_eq!(next(), Ok(Some("a")));
        assert!(next().expect_err("reset").message.contains("broke off"));
        assert!(next().expect_err("silent").message.contains("paused"));
        let mut over = stream::empty::<Result<&str, Error>>();
        assert_eq!(runtime.block_on(super::next(&mut over, PATIENCE)), Ok(None));
    }

    #[test]
    fn names_are_decoded_and_nothing_breaks() {
        for (text, name) in
            [("slow%20path.pcap", "slow path.pcap"), ("%C3%A9", "é"), ("100%", "100%"), ("%zz%4", "%zz%4")]
        {
            assert_eq!(decoded(text), name);
        }
    }
}
