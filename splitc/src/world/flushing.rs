//! Flushing: sending everything that waits to be aggregated with more.
//!
//! A peer for which something waits is in the list `dirty` until that is sent. So whichever future
//! of this process flushes, and wherever it is dropped, none overlooks what another has left. What
//! can be sent at once is sent to all peers before a credit of any of them is waited for, and
//! whoever waits for something else sends meanwhile, so a peer that takes no messages holds up only
//! what goes to that peer.

use std::future::Future;
use std::pin::pin;

use doorbell_am::costs::{Cost, span};
use futures_util::future::{Either, select};

use super::sending::What;
use super::{Core, Waits};
use crate::error::Error;
use crate::peers::{Far, Peer};

impl Core {
    /// Notes that something waits to be sent to a peer, for the next flush.
    #[inline]
    pub fn waits(&self, peer: &Peer) {
        if !peer.dirty.replace(true) {
            self.dirty.borrow_mut().push(peer.rank);
        }
    }

    /// Whether operations, stores or counts wait to be sent to any peer.
    #[inline]
    pub fn has_to_flush(&self) -> bool {
        !self.dirty.borrow().is_empty()
    }

    /// Sends everything that waits, to all peers. The future waits for credits, and for nothing
    /// else. If a peer has gone, the other peers are still sent what waits for them, and the first
    /// error is returned.
    pub async fn flush(&self) -> Result<(), Error> {
        let mut gone = self.send_ready(Counts::Go)?;
        while let Some(peer) = self.next_dirty() {
            let sent = self.send_when_there_is_a_credit(peer).await;
            gone = gone.or(self.after(peer, sent)?);
            gone = gone.or(self.send_ready(Counts::Go)?);
        }
        gone.map_or(Ok(()), Err)
    }

    /// Sends everything that waits, to all peers, and blocks the thread while there is no credit.
    pub fn flush_now(&self) -> Result<(), Error> {
        let _semantics = span(Cost::Semantics);
        let mut gone = self.send_ready(Counts::Go)?;
        while let Some(peer) = self.next_dirty() {
            let sent = match &peer.far {
                Some(far) => self
                    .send_now((peer.rank, far), What::Stores)
                    .and_then(|()| self.send_now((peer.rank, far), What::Operations)),
                None => Ok(()),
            };
            gone = gone.or(self.after(peer, sent)?);
            gone = gone.or(self.send_ready(Counts::Go)?);
        }
        gone.map_or(Ok(()), Err)
    }

    /// Sends what can be sent without waiting, to all peers.
    #[inline]
    pub fn flush_ready(&self) -> Result<(), Error> {
        match self.has_to_flush() {
            true => self.send_ready(Counts::Go)?.map_or(Ok(()), Err),
            false => Ok(()),
        }
    }

    /// Sends what waits for one peer, and lets other tasks run while there is no credit. Before
    /// that, what can be sent without waiting is sent to all peers.
    pub async fn flush_to(&self, peer: (usize, &Far)) -> Result<(), Error> {
        self.flush_ready()?;
        self.send_soon(peer, What::Stores).await?;
        self.send_soon(peer, What::Operations).await
    }

    /// Awaits a future, and sends everything that waits meanwhile. A failure to send is an error
    /// at once.
    pub async fn while_flushing<T>(&self, future: impl Future<Output = T>) -> Result<T, Error> {
        let (mut future, flush) = (pin!(future), pin!(self.flush()));
        // Before the future is begun, whatever can be sent is.
        self.flush_ready()?;
        match select(future.as_mut(), flush).await {
            Either::Left((output, _)) => return Ok(output),
            Either::Right((flushed, _)) => flushed?,
        }
        Ok(future.await)
    }

    /// Waits until `condition` returns a value, as [`until`](Self::until) does, and sends everything
    /// that waits meanwhile. A failure to send is an error at once.
    pub async fn flush_until<T>(
        &self,
        waits: impl Fn(&Self) -> Waits,
        mut condition: impl FnMut(&Self) -> Option<T>,
    ) -> Result<T, Error> {
        let found = self.until(waits, |core| match core.has_to_flush() {
            false => condition(core).map(Ok),
            // Other messages than those that the flush waits with may be ready. Counts may have to
            // wait for the NIC, which a condition must not.
            true => match core.send_ready(Counts::Stay) {
                Ok(None) => condition(core).map(Ok),
                Ok(Some(why)) | Err(why) => Some(Err(why)),
            },
        });
        self.flush_ready()?;
        match self.has_to_flush() {
            false => found.await,
            // On the heap, so that the futures of reads and writes stay small.
            true => Box::pin(self.while_flushing(found)).await?,
        }
    }

    /// A peer for which something waits to be sent.
    fn next_dirty(&self) -> Option<&Peer> {
        let rank = self.dirty.borrow().last().copied()?;
        Some(&self.peers[rank])
    }

    /// Sends what can be sent without waiting, to all peers, and takes off the list those for which
    /// nothing waits any more. Returns the first error of peers that have gone; after another error
    /// everything that was not sent still waits.
    fn send_ready(&self, counts: Counts) -> Result<Option<Error>, Error> {
        let _amid = self.amid();
        let mut pass = Pass { core: self, ranks: self.dirty.take() };
        let mut gone = None;
        for at in 0..pass.ranks.len() {
            let peer = &self.peers[pass.ranks[at]];
            let sent = self.send_what_is_ready(peer, counts);
            gone = gone.or(self.after(peer, sent)?);
            if !peer.holds_back() {
                peer.dirty.set(false);
            }
        }
        pass.end();
        Ok(gone)
    }

    fn send_what_is_ready(&self, peer: &Peer, counts: Counts) -> Result<(), Error> {
        if let Some(far) = &peer.far {
            let peer = (peer.rank, far);
            if !self.send_at_once(peer, What::Stores)?
                || !self.send_at_once(peer, What::Operations)?
            {
                return Ok(());
            }
        }
        match counts {
            Counts::Go => self.tell(peer),
            Counts::Stay => Ok(()),
        }
    }

    async fn send_when_there_is_a_credit(&self, peer: &Peer) -> Result<(), Error> {
        let Some(far) = &peer.far else { return Ok(()) };
        self.send_soon((peer.rank, far), What::Stores).await?;
        self.send_soon((peer.rank, far), What::Operations).await
    }

    /// Gives up what could not be sent to a peer that has gone, and returns the error. After any
    /// other error, what waits for the peer still does.
    #[inline]
    fn after(&self, peer: &Peer, sent: Result<(), Error>) -> Result<Option<Error>, Error> {
        match sent {
            Ok(()) => Ok(None),
            Err(why) => self.after_failure(peer, why),
        }
    }

    #[cold]
    fn after_failure(&self, peer: &Peer, why: Error) -> Result<Option<Error>, Error> {
        if !self.departures.has_gone(peer.rank) {
            return Err(why);
        }
        peer.untold.set(0);
        if peer.far.as_ref().is_some_and(|far| self.give_up(far, || why.clone())) {
            self.note(why.clone());
        }
        Ok(Some(why))
    }
}

/// Whether peers are told how many bytes were stored at them without messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Counts {
    Go,
    Stay,
}

/// The list of peers for which something waits, taken out for one pass through it. Its end, or its
/// drop where a waker of the program's has panicked, puts back those for which something still
/// waits.
struct Pass<'c> {
    core: &'c Core,
    ranks: Vec<usize>,
}

impl Pass<'_> {
    fn end(&mut self) {
        self.ranks.retain(|&rank| self.core.peers[rank].dirty.get());
        let mut dirty = self.core.dirty.borrow_mut();
        // Others were added meanwhile only if code of the program's ran. The longer memory is kept.
        if dirty.is_empty() {
            *dirty = std::mem::take(&mut self.ranks);
        } else {
            dirty.append(&mut self.ranks);
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if !self.ranks.is_empty() {
            self.end();
        }
    }
}
