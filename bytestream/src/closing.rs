//! Closing an endpoint in order: peers have what was written before the connections end.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use doorbell_verbs::{CloseError, ConnectionState, GivenUp, WhyGivenUp};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use crate::endpoint::Endpoint;
use crate::hub::Hub;
use crate::link::Link;

/// The longest wait for a peer's answer to the end of a connection by which all was sent.
const ENDS: Duration = Duration::from_secs(1);

impl Endpoint {
    /// Closes the endpoint, once the peers' NICs have all that was written to streams, also to
    /// those that were dropped before. Listeners end, no stream is opened or accepted any more,
    /// each stream is shut down as by [`shutdown`](tokio::io::AsyncWriteExt::shutdown), and its
    /// connection ends. What has come and was not read can still be read; after that, reading
    /// fails.
    ///
    /// Several tasks may close the endpoint, at once or one after another: each gets the same
    /// outcome. If the future is dropped, nothing more can be written to the streams, and no
    /// connection is ended that stands then.
    ///
    /// ```
    /// use doorbell_bytestream::{Listener, ServiceId, Stream};
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anyhow::Result<()> {
    /// let mut listener = Listener::open("shm", ServiceId(7)).await?;
    /// let mut near = Stream::connect(listener.name()).await?;
    /// let mut far = listener.accept().await?;
    /// near.write_all(b"all of it").await?;
    /// near.endpoint().close().await?;
    /// let mut text = String::new();
    /// far.read_to_string(&mut text).await?;
    /// assert_eq!(text, "all of it");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When a connection ends before the peer has all that was written, or the peer has not all of
    /// it within the time that the endpoint is [configured](crate::Config::linger) to linger. The
    /// endpoint is closed all the same, and the error names the peers.
    pub async fn close(&self) -> Result<(), CloseError> {
        let hub = &self.0.hub;
        let mut outcome = hub.closed.lock().await;
        match &*outcome {
            Some(outcome) => outcome.clone(),
            None => outcome.insert(close(hub).await).clone(),
        }
    }
}

async fn close(hub: &Arc<Hub>) -> Result<(), CloseError> {
    let linger = hub.shared.config.linger;
    let until = Instant::now() + linger;
    hub.accept_no_more();
    let links: Vec<_> = hub.links().into_iter().filter(|link| link.is_open()).collect();
    links.iter().for_each(|link| link.outbound.finish(&link.common));
    let (peers, mut parting) = (links.len(), JoinSet::new());
    for link in links {
        parting.spawn_on(part(link, until, linger), &hub.shared.runtime);
    }
    let mut given_up = Vec::new();
    while let Some(parted) = parting.join_next().await {
        given_up.extend(parted.unwrap_or_else(|_| {
            let peer = "a peer".to_owned();
            Some(GivenUp { peer, why: WhyGivenUp::RuntimeEnded })
        }));
    }
    // Listeners have ended when their tasks have run once more.
    let _ = timeout_at(until.max(Instant::now() + ENDS), hub.accepts_nothing()).await;
    // An end is known here before the peer is told, and the process may be over right behind.
    hub.shared.nic.settle();
    CloseError::unless_all_is_done(peers, given_up, 0)
}

/// Waits until the peer's NIC has all that was written to a stream, and ends the connection.
/// Returns why the peer may not have all of it.
async fn part(link: Arc<Link>, until: Instant, linger: Duration) -> Option<GivenUp> {
    let why = match timeout_at(until, finished(&link)).await {
        Ok(true) => None,
        Ok(false) => Some(match link.common.connection.state() {
            ConnectionState::Ended(ending) => WhyGivenUp::Gone(ending),
            _ => WhyGivenUp::RuntimeEnded,
        }),
        Err(_) => Some(WhyGivenUp::Late(linger)),
    };
    // The only failure is that the connection is over already, or ends.
    let _ = timeout(ENDS, link.common.connection.disconnect(&[])).await;
    why.map(|why| GivenUp { peer: link.common.peer().to_owned(), why })
}

/// Waits until the stream is over in this direction. Returns whether the peer's NIC has all bytes.
async fn finished(link: &Link) -> bool {
    poll_fn(|context| {
        link.outbound.wait_for_end(context.waker());
        let finished = link.outbound.finished(&link.common, || link.inbound.has_ended());
        match finished {
            Some(finished) => Poll::Ready(finished.is_ok() || link.outbound.has_delivered_all()),
            None => Poll::Pending,
        }
    })
    .await
}
