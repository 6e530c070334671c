//! The end of a stream that the program has dropped.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::time::timeout;

use crate::halves::Writer;
use crate::hub::Owner;
use crate::link::Link;

/// The longest wait for the poller to take the last completions of a connection that is over. They
/// are in the completion queue already, so the wait is short as a rule.
const LEFT_OVERS: Duration = Duration::from_secs(5);

/// The link of a stream that a program holds, with the endpoint that serves the link. Dropping it
/// closes the stream in the background.
pub(crate) struct Open {
    pub link: Arc<Link>,
    pub owner: Arc<Owner>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.link.close();
        let (link, owner) = (self.link.clone(), self.owner.clone());
        self.owner.hub.runtime.spawn(close(link, owner));
    }
}

/// Sends the end of a stream behind what was written, ends the connection when the peer has both,
/// and drops the queue pair.
async fn close(link: Arc<Link>, owner: Arc<Owner>) {
    let hub = &owner.hub;
    let mut writer = Writer::new(&link);
    let finished = poll_fn(|context| writer.poll_shutdown(&link, context));
    if timeout(hub.config.linger, finished).await.is_err() {
        tracing::debug!(peer = link.peer(), "a stream is broken off, whose peer takes nothing");
    }
    // What keeps this from being done is that the connection is over.
    let _ = link.connection.disconnect(&[]).await;
    let _ = timeout(LEFT_OVERS, drained(&link)).await;
    hub.forget(&link);
}

/// Waits until all completions of a link were handled.
async fn drained(link: &Link) {
    poll_fn(|context| {
        link.inbound.wait(context.waker());
        if link.is_drained() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
