//! The page of `bdp serve --page`: whoever visits it tests the path to this server. Connections come from the server's
//! port with their first bytes; what is measured is `bdp_run::visit`'s.

mod asked;
mod ping;
mod routes;
mod transfer;

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::{Extension, Router};
use bdp_run::visit::Visits;
use bdp_sys::{random, socket};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time;

use asked::Shared;

/// How long a connection may last, beyond two directions: its client may read slowly on purpose.
const AROUND: Duration = Duration::from_secs(120);
/// Longest time that a client may take for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Most bytes of a head, and of one read or write.
const BUFFER: usize = 512 << 10;
/// A connection whose other end acknowledges nothing for this long is closed.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most threads that serve visitors.
const MOST_THREADS: usize = 4;
/// Most threads that make results.
const MOST_EXPLAINING: usize = 4;
/// Bytes that downloads consist of, repeatedly; random, so that nothing on the path compresses them.
const CHUNK_BYTES: usize = 256 << 10;

/// Serves visitors on threads of its own.
pub struct Visitors {
    visits: Arc<Visits>,
    router: Router,
    ends: watch::Sender<bool>,
    runtime: Runtime,
}

impl Visitors {
    /// Starts the threads.
    pub fn new(visits: Arc<Visits>) -> io::Result<Self> {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(MOST_THREADS));
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .max_blocking_threads(MOST_EXPLAINING)
            .thread_name("bdp-visitors")
            .enable_all()
            .build()?;
        let seed: [u8; 4096] = random::bytes().map_err(io::Error::other)?;
        let chunk = seed.iter().copied().cycle().take(CHUNK_BYTES).collect::<Vec<u8>>();
        let (ends, ending) = watch::channel(false);
        let router = routes::router(Shared { visits: Arc::clone(&visits), chunk: chunk.into(), ending });
        Ok(Self { visits, router, ends, runtime })
    }

    /// Serves a connection that has sent these bytes; never waits for it.
    pub fn take(&self, stream: TcpStream, peer: SocketAddr, begun: Vec<u8>) {
        let connection = match self.visits.connection(&stream, peer) {
            Ok(Some(connection)) => connection,
            Ok(None) => return socket::close_hard(stream),
            Err(_) => return,
        };
        // Pings and events are small, and each should be seen at once.
        let _ = stream.set_nodelay(true);
        let _ = socket::watch_peer(&stream, PATIENCE);
        let longest = (self.visits.options().limits.duration.to_duration() * 2).saturating_add(AROUND);
        let router = self.router.clone().layer(Extension(connection));
        let mut ending = self.ends.subscribe();
        self.runtime.spawn(async move {
            let Ok(stream) = tokio::net::TcpStream::from_std(stream) else { return };
            let io = TokioIo::new(Begun { begun, at: 0, stream });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(BUFFER);
            let service = TowerToHyperService::new(router);
            let served = http.serve_connection(io, service).with_upgrades();
            // A client that breaks off is no error of the server.
            tokio::select! {
                _ = served => {}
                _ = ending.wait_for(|ends| *ends) => {}
                () = time::sleep(longest) => {}
            }
        });
    }

    /// Ends all connections.
    pub fn hang_up(&self) {
        self.ends.send_replace(true);
    }
}

/// A connection whose first bytes were read before.
struct Begun {
    begun: Vec<u8>,
    at: usize,
    stream: tokio::net::TcpStream,
}

impl AsyncRead for Begun {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.at < this.begun.len() {
            let more = (this.begun.len() - this.at).min(room.remaining());
            room.put_slice(&this.begun[this.at..this.at + more]);
            this.at += more;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.stream).poll_read(context, room)
    }
}

impl AsyncWrite for Begun {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
