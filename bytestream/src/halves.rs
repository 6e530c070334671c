//! What reads and what writes a link: the halves of a stream that each wait for themselves.

use std::io::{self, IoSlice};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use doorbell_verbs::Buf;
use doorbell_verbs::floor::{AtHand, Look, PolledWait};
use tokio::io::ReadBuf;

use crate::link::{Link, Next};

/// Lets other tasks run, if this one has found something for too long.
fn proceed(context: &mut Context<'_>) -> Poll<()> {
    pin!(tokio::task::coop::consume_budget()).poll(context)
}

/// The reading half: a wait, and the message that is just being read.
pub(crate) struct Reader {
    wait: PolledWait,
    message: Option<Buf>,
    /// How much of it is read.
    at: usize,
}

impl Reader {
    pub fn new(link: &Link) -> Self {
        Self { wait: PolledWait::new(&link.hub.nic), message: None, at: 0 }
    }

    /// Reads as much as there is and `into` has room for; at the end of the stream nothing.
    pub fn poll_read(
        &mut self,
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
                Some(Next::Bytes(message)) => (self.message, self.at) = (Some(message), 0),
                None if !any => {
                    ready!(self.wait.poll(context, &mut Reading { link, woke: false }));
                }
                Some(Next::Over(over)) if !any => {
                    return Poll::Ready(Err(over.error(link.peer(), false)));
                }
                None | Some(Next::End | Next::Over(_)) => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Copies what there is of the message that is just being read.
    fn copy(&mut self, link: &Arc<Link>, into: &mut ReadBuf<'_>) {
        let Some(message) = &self.message else { return };
        let rest = &message[self.at..];
        let len = rest.len().min(into.remaining());
        into.put_slice(&rest[..len]);
        self.at += len;
        if self.at == message.len() {
            self.message.take().into_iter().for_each(|message| link.has_read(message));
        }
    }
}

/// Looks for what is to be read.
struct Reading<'l> {
    link: &'l Link,
    woke: bool,
}

impl Look for Reading<'_> {
    type Found = ();

    #[inline]
    fn look(&mut self, _: AtHand<'_>) -> Option<()> {
        self.woke |= self.link.hub.look();
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

/// The writing half: a wait.
pub(crate) struct Writer {
    wait: PolledWait,
}

impl Writer {
    pub fn new(link: &Link) -> Self {
        Self { wait: PolledWait::new(&link.hub.nic) }
    }

    /// Waits until `attempt` gives something.
    fn poll<R>(
        &mut self,
        link: &Link,
        context: &mut Context<'_>,
        attempt: impl Fn() -> Option<R>,
    ) -> Poll<R> {
        loop {
            let seen = link.outbound.changes();
            if let Some(result) = attempt() {
                return Poll::Ready(result);
            }
            ready!(self.wait.poll(context, &mut Writing { link, seen, woke: false }));
        }
    }

    /// Sends bytes, as many as there is room for; at least some.
    pub fn poll_write(
        &mut self,
        link: &Arc<Link>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(proceed(context));
        self.poll(link, context, || link.outbound.write(link, slices))
    }

    /// Ends the stream, and waits until the peer has all that was written.
    pub fn poll_shutdown(
        &mut self,
        link: &Link,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        link.outbound.finish(link);
        self.poll(link, context, || link.outbound.finished(link))
    }
}

/// Looks for a change for which a writer waits.
struct Writing<'l> {
    link: &'l Link,
    seen: u32,
    woke: bool,
}

impl Look for Writing<'_> {
    type Found = ();

    #[inline]
    fn look(&mut self, _: AtHand<'_>) -> Option<()> {
        self.woke |= self.link.hub.look();
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
