//! The closing of a stream that the program has dropped, in the background.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::time::timeout;

use super::halves::Writer;
use crate::hub::Owner;
use crate::link::Link;

/// The longest wait for the poller to take the last completions of a connection that is over. The
/// completions are in the queue already, so the wait is usually short.
const LEFT_OVERS: Duration = Duration::from_secs(5);

/// The link of a stream that a program holds, and the owner of the hub that serves the link.
/// Dropping an `Open` closes the stream in the background.
pub(crate) struct Open {
    pub link: Arc<Link>,
    pub owner: Arc<Owner>,
}

impl Drop for Open {
    fn drop(&mut self) {
        // At once, and not only when the task below runs: the program may end its runtime next.
        self.link.outbound.finish(&self.link.common);
        self.link.close();
        let (link, owner) = (self.link.clone(), self.owner.clone());
        self.owner.hub.shared.runtime.spawn(close(link, owner));
    }
}

/// Sends the end of a stream behind what was written, ends the connection when the peer has both,
/// and drops the queue pair.
async fn close(link: Arc<Link>, owner: Arc<Owner>) {
    let hub = &owner.hub;
    let mut writer = Writer::new(&link);
    let finished = poll_fn(|context| writer.poll_shutdown(hub, &link, context));
    if timeout(hub.shared.config.linger, finished).await.is_err() {
        tracing::debug!(
            peer = link.common.peer(),
            "a stream is broken off: its peer takes nothing"
        );
    }
    // The only failure is that the connection is over already.
    let _ = link.common.connection.disconnect(&[]).await;
    let _ = timeout(LEFT_OVERS, drained(&link)).await;
    hub.forget(&link);
}

/// Waits until all completions of a link were handled.
async fn drained(link: &Link) {
    poll_fn(|context| {
        link.inbound.wait(context.waker());
        if link.common.is_drained() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
