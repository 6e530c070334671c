//! The messages of a collective: in one piece, or in several if the receiver asks for the rest.

use std::future::ready;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use doorbell_collectives::schedule::Exchange;
use doorbell_collectives::{Fault, Rounds};
use futures_util::future::{join, try_join_all};

use crate::arguments::Arguments;
use crate::error::SendError;
use crate::group::collectives::run::Run;
use crate::group::error::GroupError;
use crate::group::failure::{Cause, Failure};
use crate::group::mailbox::context::Arrived;
use crate::group::wire::{CLEAR, MORE, PIECE};
use crate::kinds::Notice;
use crate::peer::Peer;

impl Rounds for Run {
    /// The mailbox keeps two messages of a member for each collective at the most.
    const DIVIDES: bool = false;

    type Failure = Failure;
    type Error = GroupError;

    fn rank(&self) -> usize {
        self.team.rank
    }

    fn size(&self) -> usize {
        self.team.size()
    }

    /// Sends a message to a member, and waits until all of it is sent.
    async fn send(&self, to: usize, round: u32, body: Bytes) -> Result<(), Failure> {
        let sent = self.send_first(to, round, &body).await?;
        if sent == body.len() {
            return Ok(());
        }
        Box::pin(self.send_rest(to, round, &body, sent)).await
    }

    /// Receives a message from a member, with all its pieces.
    async fn receive(&self, from: usize, round: u32) -> Result<Bytes, Failure> {
        let key = self.key(from, round);
        let arrived = self.expect(from, round, |context| context.take(key)).await?;
        if arrived.piece.len() as u64 == arrived.total {
            return Ok(arrived.piece);
        }
        Box::pin(self.receive_rest(from, round, arrived)).await
    }

    /// Receives the message of the first round, since long data is never divided.
    async fn receive_next(&self, from: usize) -> Result<(u32, Bytes), Failure> {
        Ok((0, self.receive(from, 0).await?))
    }

    async fn exchange(&self, exchange: Exchange, body: Bytes) -> Result<Bytes, Failure> {
        let Exchange { round, to, from } = exchange;
        let sent = self.send_first(to, round, &body).await?;
        if sent == body.len() {
            return self.receive(from, round).await;
        }
        let both = join(self.send_rest(to, round, &body, sent), self.receive(from, round));
        let (sent, received) = Box::pin(both).await;
        sent?;
        received
    }

    /// Sends an empty message to one member, and waits for an empty message of another. The future
    /// for the rare case, a message that can't be sent at once, is allocated, so that the future of
    /// a barrier stays small.
    async fn meet(&self, Exchange { round, to, from }: Exchange) -> Result<(), Failure> {
        if !self.try_send_nothing(to, round)? {
            Box::pin(self.send(to, round, Bytes::new())).await?;
        }
        self.receive_nothing(from, round).await
    }

    async fn send_all(
        &self,
        messages: impl Iterator<Item = (usize, Bytes)> + Send,
        round: u32,
    ) -> Result<(), Failure> {
        let mut longer = Vec::new();
        for (to, bytes) in messages {
            let sent = self.send_first(to, round, &bytes).await?;
            if sent < bytes.len() {
                longer.push(async move { self.send_rest(to, round, &bytes, sent).await });
            }
        }
        match longer.is_empty() {
            true => Ok(()),
            false => Box::pin(try_join_all(longer)).await.map(drop),
        }
    }

    fn done<T: Send>(
        self,
        result: Result<T, Failure>,
    ) -> impl Future<Output = Result<T, GroupError>> + Send {
        ready(self.end(result))
    }

    fn failure(&self, rank: usize, fault: Fault) -> Failure {
        let cause = match fault {
            Fault::Malformed => Cause::Malformed,
            unlike => Cause::Unlike(unlike.to_string().into()),
        };
        self.failure_of(rank, cause)
    }
}

impl Run {
    /// Returns whether the collective may send, because no member is too far behind.
    #[inline]
    fn may_send(&self) -> bool {
        if self.may_send.load(Ordering::Relaxed) {
            return true;
        }
        let is_past =
            self.core.mailbox.with(self.team.context, |context| context.is_past(self.fence));
        let may_send = is_past == Some(true);
        self.may_send.store(may_send, Ordering::Relaxed);
        may_send
    }

    /// Waits until the collective may send.
    #[cold]
    async fn enter(&self) -> Result<(), Failure> {
        self.until(|context| context.is_past(self.fence).then_some(())).await?;
        self.may_send.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Sends an empty message to a member if that needs no waiting, and returns whether it was
    /// sent.
    pub(super) fn try_send_nothing(&self, to: usize, round: u32) -> Result<bool, Failure> {
        let (mailbox, context, whole) =
            (&self.core.mailbox, self.team.context, self.team.whole(to));
        let Some(peer) = mailbox.peer(whole).filter(|_| self.may_send()) else {
            return Ok(false);
        };
        let arguments = (context, self.sequence, self.label(round).word(), 0, Bytes::new());
        peer.try_notify(PIECE, &arguments).map_err(|why| self.not_sent(whole, &why))
    }

    /// Receives an empty message from a member.
    async fn receive_nothing(&self, from: usize, round: u32) -> Result<(), Failure> {
        let key = self.key(from, round);
        self.expect(from, round, |context| context.take(key).map(drop)).await
    }

    /// Sends the first piece of a message, and returns the piece's length. Connects to the member
    /// first, if there is no connection.
    async fn send_first(&self, to: usize, round: u32, bytes: &Bytes) -> Result<usize, Failure> {
        let (len, longest) = (bytes.len() as u64, self.core.mailbox.longest);
        if len > longest {
            let cause = Cause::TooLong { len, longest };
            return Err(self.failure_of(self.team.rank, cause));
        }
        if !self.may_send() {
            Box::pin(self.enter()).await?;
        }
        let whole = self.team.whole(to);
        match self.core.mailbox.peer(whole) {
            Some(peer) => self.send_piece(whole, peer, round, bytes).await,
            None => {
                let later = async {
                    let peer = self.peer(whole).await?;
                    self.send_piece(whole, &peer, round, bytes).await
                };
                Box::pin(later).await
            }
        }
    }

    /// Sends as much of a message as the receiver takes at once, and returns how much that was.
    #[inline]
    async fn send_piece(
        &self,
        whole: u32,
        peer: &Peer,
        round: u32,
        bytes: &Bytes,
    ) -> Result<usize, Failure> {
        let piece = bytes.slice(..peer.part_of(bytes.len(), 4));
        let (sent, total) = (piece.len(), bytes.len() as u64);
        let arguments = (self.team.context, self.sequence, self.label(round).word(), total, piece);
        self.notify(whole, peer, PIECE, arguments).await?;
        Ok(sent)
    }

    /// Sends what follows the first piece of a message, once the receiver asks for it.
    async fn send_rest(
        &self,
        to: usize,
        round: u32,
        bytes: &Bytes,
        mut sent: usize,
    ) -> Result<(), Failure> {
        if sent == bytes.len() {
            return Ok(());
        }
        let key = self.key(to, round);
        self.expect(to, round, |context| context.take_cleared(key).then_some(())).await?;
        let peer = self.peer(key.from).await?;
        let label = self.label(round).word();
        while sent < bytes.len() {
            let end = sent + peer.part_of(bytes.len() - sent, 4);
            let piece = bytes.slice(sent..end);
            let arguments = (self.team.context, self.sequence, label, sent as u64, piece);
            self.notify(key.from, &peer, MORE, arguments).await?;
            sent = end;
        }
        Ok(())
    }

    /// Asks the sender for what follows the first piece of a message, and waits for the whole
    /// message.
    async fn receive_rest(
        &self,
        from: usize,
        round: u32,
        arrived: Arrived,
    ) -> Result<Bytes, Failure> {
        let key = self.key(from, round);
        let context = self.team.context;
        self.core.mailbox.with(context, |context| context.receive_rest(&arrived));
        drop(arrived);
        let peer = self.peer(key.from).await?;
        let arguments = (context, self.sequence, self.label(round).word());
        self.notify(key.from, &peer, CLEAR, arguments).await?;
        let whole = self.expect(from, round, |context| context.take_whole(key)).await?;
        Ok(whole.into())
    }

    /// Returns the connection to a member, after making one if there is none, unless the team fails
    /// meanwhile.
    async fn peer(&self, whole: u32) -> Result<Peer, Failure> {
        if let Some(peer) = self.core.mailbox.peer(whole) {
            return Ok(peer.clone());
        }
        let reached = self.unless_failed(self.core.peer(whole)).await?;
        reached.map_err(|failure| self.here(failure))
    }

    /// Sends a notice to a member, without waiting if there is a credit.
    #[inline]
    async fn notify<A: Arguments>(
        &self,
        whole: u32,
        peer: &Peer,
        notice: Notice<A>,
        arguments: A,
    ) -> Result<(), Failure> {
        match peer.try_notify(notice, &arguments) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let sent = Box::pin(self.unless_failed(peer.notify(notice, arguments))).await?;
                sent.map_err(|why| self.not_sent(whole, &why))
            }
            Err(why) => Err(self.not_sent(whole, &why)),
        }
    }

    /// Handles the failure to send to a member, and returns the failure that the collective ends
    /// with.
    #[cold]
    fn not_sent(&self, whole: u32, why: &SendError) -> Failure {
        let mailbox = &self.core.mailbox;
        mailbox.not_sent(whole, why);
        let known = mailbox.with(self.team.context, |context| {
            context.failure(self.sequence).or(context.broken()).cloned()
        });
        let gone = || Failure { whole, after: 0, cause: Cause::Gone(why.to_string().into()) };
        known.flatten().unwrap_or_else(gone)
    }
}
