//! How a stream ends whose program has dropped it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::time::timeout;

use crate::halves::Writer;
use crate::hub::Owner;
use crate::link::Link;

/// The longest that is waited for what has come of a connection that is over: it is there already,
/// and only has to be taken.
const LEFT_OVERS: Duration = Duration::from_secs(5);

/// A link that a program has, and the endpoint that it needs.
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

/// Sends what was written and the end of the stream, and ends the connection when the peer has it.
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

/// Waits until nothing of a link is in the completion queue any more.
async fn drained(link: &Link) {
    poll_fn(|context| {
        link.inbound.wait(context.waker());
        if link.is_drained() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
