//! A limit on the number of open connections. Beyond it, the one that has been silent longest ends.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout_at};

/// What a client may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// The time from the moment in which a connection can take a request to the end of the request's header.
    pub header: Duration,
    /// The time without a byte in either direction: a client that sends or reads nothing.
    pub silence: Duration,
    /// A connection that was silent for less than this is in use, and a new one waits. But it waits no longer than this:
    /// then the one that was silent longest ends, so that clients that ask all the time keep no other out.
    pub in_use: Duration,
}

impl Default for Limits {
    /// At most 256 connections, and no more than the limit of open files allows, since each can have a file. A browser
    /// uses 6.
    fn default() -> Self {
        Self {
            connections: connections(open_files()),
            header: Duration::from_secs(15),
            silence: Duration::from_secs(30),
            in_use: Duration::from_millis(100),
        }
    }
}

/// The connections for which this number of open files is enough: each has its socket and the file that it sends.
fn connections(open_files: usize) -> usize {
    // Those of the program itself: its streams, the listener, and what waits for all of them.
    const OTHER_FILES: usize = 16;
    (open_files.saturating_sub(OTHER_FILES) / 2).clamp(2, 256)
}

/// The number of files that this process may have open (`ulimit -n`).
fn open_files() -> usize {
    // That of macOS, which has no such file, and no more than other systems allow.
    const USUAL: usize = 256;
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    match line.and_then(|line| line.split_whitespace().next()) {
        Some("unlimited") => usize::MAX,
        Some(number) => number.parse().unwrap_or(USUAL),
        None => USUAL,
    }
}

/// The open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    limits: Limits,
    open: Mutex<Open>,
    /// Tells that a connection has ended.
    ended: Notify,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    tasks: HashMap<u64, (Activity, AbortHandle)>,
}

impl Connections {
    /// No connections yet.
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, open: Mutex::default(), ended: Notify::new() })
    }

    /// Waits until there is room for one more connection, and ends the one that was silent longest if there is none.
    pub(crate) async fn make_room(&self) {
        let longest_wait = Instant::now() + self.limits.in_use;
        loop {
            let ended = self.ended.notified();
            let longest = {
                let open = self.lock();
                if open.tasks.len() < self.limits.connections {
                    return;
                }
                open.tasks.values().min_by_key(|(activity, _)| activity.last()).cloned()
            };
            let Some((activity, task)) = longest else { return };
            let free = (activity.last() + self.limits.in_use).min(longest_wait);
            if Instant::now() >= free {
                // Its place is free when the task has dropped it.
                task.abort();
                ended.await;
            } else {
                let _ = timeout_at(free, ended).await;
            }
        }
    }

    /// Serves a connection in a task of its own, within the limits. `serve` answers its requests.
    pub(crate) fn start<F>(self: &Arc<Self>, stream: TcpStream, serve: impl FnOnce(Tracked) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let activity = Activity::now();
        let served = serve(Tracked { stream, activity: activity.clone() });
        let silence = self.limits.silence;
        // The task cannot leave the table before it stands there.
        let mut open = self.lock();
        open.next += 1;
        let place = Place { connections: Arc::clone(self), number: open.next };
        let (number, watched) = (open.next, activity.clone());
        let task = tokio::spawn(async move {
            let _place = place;
            tokio::select! {
                () = served => {}
                () = watched.silent_for(silence) => {}
            }
        });
        open.tasks.insert(number, (activity, task.abort_handle()));
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // No code panics while it holds the lock.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a connection in the table, which it leaves however it ends.
struct Place {
    connections: Arc<Connections>,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.lock().tasks.remove(&self.number);
        self.connections.ended.notify_waiters();
    }
}

/// When a connection has last sent or received a byte.
#[derive(Clone, Debug)]
struct Activity(Arc<Mutex<Instant>>);

impl Activity {
    fn now() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    fn last(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Waits until there was no byte for so long.
    async fn silent_for(&self, time: Duration) {
        loop {
            let end = self.last() + time;
            if Instant::now() >= end {
                return;
            }
            sleep_until(end).await;
        }
    }
}

/// A stream that records when bytes pass through it.
#[derive(Debug)]
pub(crate) struct Tracked {
    stream: TcpStream,
    activity: Activity,
}

impl AsyncRead for Tracked {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.activity.record();
        }
        result
    }
}

impl AsyncWrite for Tracked {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        if matches!(result, Poll::Ready(Ok(1..))) {
            self.activity.record();
        }
        result
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        if matches!(result, Poll::Ready(Ok(1..))) {
            self.activity.record();
        }
        result
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Starts a connection whose silence is short, and returns its other end.
    async fn connect<F>(connections: &Arc<Connections>, serve: impl FnOnce(Tracked) -> F) -> TcpStream
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        connections.start(listener.accept().await.unwrap().0, serve);
        client
    }

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
    }

    fn short_silence() -> Arc<Connections> {
        Connections::new(Limits { silence: Duration::from_millis(50), ..Limits::default() })
    }

    #[test]
    fn connections_leave_files_open_for_what_they_send() {
        assert_eq!([20, 64, 1024].map(connections), [2, 24, 256]);
        assert_eq!(connections(usize::MAX), 256);
    }

    #[test]
    fn a_client_that_sends_nothing_loses_its_connection() {
        run(async {
            let connections = short_silence();
            let mut client = connect(&connections, async |mut stream| {
                let _ = stream.read_u8().await;
            })
            .await;
            assert_eq!(client.read(&mut [0]).await.unwrap_or(0), 0);
            assert!(connections.lock().tasks.is_empty());
        });
    }

    #[test]
    fn a_client_that_reads_nothing_loses_its_connection() {
        run(async {
            let connections = short_silence();
            let sent = Arc::new(Mutex::new(None));
            let result = Arc::clone(&sent);
            // More than the buffers of the system hold.
            let _client = connect(&connections, async move |mut stream| {
                *result.lock().unwrap() = Some(stream.write_all(&vec![0; 64 << 20]).await);
            })
            .await;
            while !connections.lock().tasks.is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(sent.lock().unwrap().is_none(), "the connection ended by itself");
        });
    }
}
