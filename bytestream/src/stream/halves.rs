//! The reading and the writing half of a stream: each moves bytes between the program and the link,
//! and waits in its own way. While a half waits, it has the hub serve all streams of the endpoint.

use std::io::{self, IoSlice};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use doorbell_verbs::Buf;
use doorbell_verbs::floor::{HeldNic, Look, PolledWait, watch_over};
use tokio::io::ReadBuf;

use crate::hub::Hub;
use crate::link::{Link, Next};

/// Returns `Pending`, and wakes the task again, if the task has used up its budget of Tokio's
/// cooperative scheduling.
fn proceed(context: &mut Context<'_>) -> Poll<()> {
    pin!(tokio::task::coop::consume_budget()).poll(context)
}

/// The reading half of a stream.
pub(crate) struct Reader {
    wait: PolledWait,
    /// The received bytes that are being read.
    bytes: Option<Buf>,
    /// How many of these bytes were read already.
    at: usize,
}

impl Reader {
    pub fn new(link: &Link) -> Self {
        Self { wait: PolledWait::new(link.common.shared.nic.clone()), bytes: None, at: 0 }
    }

    /// Reads as many bytes as have come and `into` has room for, and waits if none have come. Reads
    /// nothing at the end of the stream.
    pub fn poll_read(
        &mut self,
        hub: &Hub,
        link: &Arc<Link>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(proceed(context));
        let before = into.filled().len();
        loop {
            self.copy(link, into);
            if into.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            let any = into.filled().len() > before;
            match link.inbound.next() {
                Some(Next::Bytes(bytes)) => (self.bytes, self.at) = (Some(bytes), 0),
                None if !any => {
                    ready!(self.wait.poll(context, |_| Reading { hub, link, woke: false }));
                }
                Some(Next::Over(over)) if !any => {
                    return Poll::Ready(Err(over.error(link.common.peer(), false)));
                }
                None | Some(Next::End | Next::Over(_)) => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Copies received bytes to the program, and gives their buffer back when all are read.
    fn copy(&mut self, link: &Arc<Link>, into: &mut ReadBuf<'_>) {
        let Some(bytes) = &self.bytes else { return };
        let rest = &bytes[self.at..];
        let len = rest.len().min(into.remaining());
        into.put_slice(&rest[..len]);
        self.at += len;
        if self.at == bytes.len() {
            self.bytes.take().into_iter().for_each(|bytes| link.give(bytes));
        }
        link.has_read(len);
    }
}

/// The wait of a reader: looks whether its stream has something to be read, and serves all streams
/// meanwhile.
struct Reading<'l> {
    hub: &'l Hub,
    link: &'l Link,
    woke: bool,
}

impl Look for Reading<'_> {
    type Output = ();

    #[inline]
    fn look(&mut self, _: HeldNic<'_>) -> Option<()> {
        self.woke |= self.hub.look();
        self.link.inbound.is_ready().then_some(())
    }

    fn register(&mut self, waker: &Waker) {
        self.link.inbound.wait(waker);
    }

    #[inline]
    fn woke(&mut self) -> bool {
        std::mem::take(&mut self.woke)
    }
}

/// The writing half of a stream.
pub(crate) struct Writer {
    wait: PolledWait,
}

impl Writer {
    pub fn new(link: &Link) -> Self {
        Self { wait: PolledWait::new(link.common.shared.nic.clone()) }
    }

    /// Repeats `attempt` after each change of the link's outbound direction, until it returns
    /// something.
    fn poll<R>(
        &mut self,
        hub: &Hub,
        link: &Link,
        context: &mut Context<'_>,
        attempt: impl Fn() -> Option<R>,
    ) -> Poll<R> {
        loop {
            let seen = link.outbound.changes();
            if let Some(result) = attempt() {
                return Poll::Ready(result);
            }
            ready!(self.wait.poll(context, |_| Writing { hub, link, seen, woke: false }));
        }
    }

    /// Sends as many bytes as the peer and the send queue have room for, and waits if there is too
    /// little room. Returns how many bytes were sent.
    pub fn poll_write(
        &mut self,
        hub: &Arc<Hub>,
        link: &Arc<Link>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(proceed(context));
        self.poll(hub, link, context, || {
            let written = link.outbound.write(&link.common, slices);
            if written.ring_later {
                hub.ring_later(link.clone());
            }
            if matches!(written.result, Some(Ok(1..))) {
                watch_over(hub, &hub.shared.nic, &hub.shared.runtime);
            }
            written.result
        })
    }

    /// Sends the end of the stream, and waits until the peer's NIC has acknowledged it.
    pub fn poll_shutdown(
        &mut self,
        hub: &Hub,
        link: &Link,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        link.outbound.finish(&link.common);
        self.poll(hub, link, context, || {
            link.outbound.finished(&link.common, || link.inbound.has_ended())
        })
    }
}

/// The wait of a writer: looks whether its link's outbound direction has changed, and serves all
/// streams meanwhile.
struct Writing<'l> {
    hub: &'l Hub,
    link: &'l Link,
    /// The number of changes that the writer has seen.
    seen: u32,
    woke: bool,
}

impl Look for Writing<'_> {
    type Output = ();

    #[inline]
    fn look(&mut self, _: HeldNic<'_>) -> Option<()> {
        self.woke |= self.hub.look();
        (self.link.outbound.changes() != self.seen).then_some(())
    }

    fn register(&mut self, waker: &Waker) {
        self.link.outbound.wait(waker);
    }

    #[inline]
    fn woke(&mut self) -> bool {
        std::mem::take(&mut self.woke)
    }
}
