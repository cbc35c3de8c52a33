//! The data of visitors, in both directions.

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bdp_run::visit::VisitDirection;
use futures_util::{StreamExt, stream};
use tokio::time;

use super::asked::{OnConnection, Refusal, Shared, visit};

/// Sends until the time is up or the client has enough.
pub(super) async fn down(
    State(shared): State<Shared>,
    Path(id): Path<String>,
    Extension(connection): OnConnection,
) -> Result<Response, Refusal> {
    let visit = visit(&shared, &id, &connection)?;
    let transfer = visit.begin(VisitDirection::Down, &connection)?;
    let chunk = shared.chunk.clone();
    // Dropped with the connection: then the transfer ends.
    let data = stream::unfold(transfer, move |transfer| {
        let chunk = chunk.clone();
        async move { (!transfer.is_over()).then(|| (Ok::<Bytes, std::io::Error>(chunk), transfer)) }
    });
    let headers =
        [(header::CONTENT_TYPE, "application/octet-stream"), (header::CONTENT_ENCODING, "identity")];
    Ok((headers, Body::from_stream(data)).into_response())
}

/// Reads until the client has sent all, or the time is up.
pub(super) async fn up(
    State(shared): State<Shared>,
    Path(id): Path<String>,
    Extension(connection): OnConnection,
    request: Request,
) -> Result<Response, Refusal> {
    let visit = visit(&shared, &id, &connection)?;
    let mut transfer = visit.begin(VisitDirection::Up, &connection)?;
    let mut data = request.into_body().into_data_stream();
    let until = time::Instant::from_std(transfer.until);
    while !transfer.is_over() {
        match time::timeout_at(until, data.next()).await {
            Ok(Some(Ok(bytes))) => {
                let wait = transfer.wait_after(bytes.len());
                if !wait.is_zero() {
                    time::sleep_until(until.min(time::Instant::now() + wait)).await;
                }
            }
            Ok(None) => {
                transfer.is_whole = true;
                break;
            }
            Ok(Some(Err(_))) | Err(_) => break,
        }
    }
    let is_whole = transfer.is_whole;
    drop(transfer);
    // What is left of a body is not read.
    let headers = [(header::CONNECTION, if is_whole { "keep-alive" } else { "close" })];
    Ok((StatusCode::NO_CONTENT, headers).into_response())
}
