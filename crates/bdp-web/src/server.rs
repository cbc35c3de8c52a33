//! Connections of the page.

use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::{Semaphore, watch};
use tokio::time;

use crate::api;
use crate::shared::Shared;
use crate::{Door, Host};

/// Most connections at once; a browser opens six.
const MOST_CONNECTIONS: u32 = 256;
/// Longest time that a client may take for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(20);
/// Time that jobs, and then connections, get to end before the server does.
const LAST_MOMENTS: Duration = Duration::from_secs(3);

/// A server before it serves.
pub struct Server {
    /// Where it listens.
    pub listener: TcpListener,
    /// Who may ask.
    pub door: Door,
    /// What it serves.
    pub host: Arc<dyn Host>,
}

/// Serves until `until` returns, which is called on a thread of its own; then cancels the jobs and ends.
pub fn serve(server: Server, until: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let Server { listener, door, host } = server;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (ends, ending) = watch::channel(false);
        let shared = Shared::new(host, door, ending);
        let jobs = shared.jobs.clone();
        let ended = tokio::task::spawn_blocking(until);
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let asked_to_end = async { drop(ended.await) };
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS as usize));
        accept(listener, shared, places.clone(), asked_to_end).await;
        jobs.cancel_all();
        drop(time::timeout(LAST_MOMENTS, jobs.all_ended()).await);
        ends.send_replace(true);
        // Each connection ends after the answer that it carries, a stream after the outcome.
        drop(time::timeout(LAST_MOMENTS, places.acquire_many(MOST_CONNECTIONS)).await);
        Ok(())
    })
}

async fn accept(
    listener: tokio::net::TcpListener,
    shared: Shared,
    places: Arc<Semaphore>,
    until: impl Future<Output = ()>,
) {
    let ending = shared.ending.clone();
    let router = api::router(shared);
    tokio::pin!(until);
    loop {
        let place = tokio::select! {
            place = places.clone().acquire_owned() => place,
            () = &mut until => return,
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut until => return,
        };
        let Ok((stream, _)) = accepted else {
            // Out of file descriptors, for example: others are freed meanwhile.
            time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Events are small, and each should be seen at once.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        let mut ending = ending.clone();
        tokio::spawn(async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
            let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
            // A client that breaks off is no error of the server.
            tokio::select! {
                _ = connection.as_mut() => {}
                () = ended(&mut ending) => {
                    connection.as_mut().graceful_shutdown();
                    let _ = connection.await;
                }
            }
            drop(place);
        });
    }
}

async fn ended(ending: &mut watch::Receiver<bool>) {
    // Without a sender the server has ended.
    let _ = ending.wait_for(|&ends| ends).await;
}
