//! A collective under way at one member: its messages, and its end.

use std::sync::Arc;

use bytes::Bytes;

use crate::arguments::Arguments;
use crate::error::SendError;
use crate::group::collective::Collective;
use crate::group::collectives::together::{all, both};
use crate::group::error::GroupError;
use crate::group::failure::{Cause, Failure};
use crate::group::mailbox::context::{Arrived, Key, Ticket};
use crate::group::member::core::Core;
use crate::group::team::Team;
use crate::group::wire::{CLEAR, Label, MORE, PIECE};
use crate::kinds::Notice;
use crate::peer::Peer;
use doorbell_collectives::schedule::Exchange;

/// A collective that a member has begun. If the value is dropped before the collective is
/// [done](Self::done), the member has given the collective up, and the team's collectives fail.
pub(in crate::group) struct Run {
    pub core: Arc<Core>,
    pub team: Arc<Team>,
    pub collective: Collective,
    pub sequence: u64,
    /// The sequence number of the collective that must be done before this one sends.
    fence: u64,
    ended: bool,
}

impl Run {
    /// Begins a collective of a team, behind all collectives that the program has begun before.
    /// Returns a barrier, too, if one must come in between, which the caller is to run.
    pub fn begin(
        core: &Arc<Core>,
        team: &Arc<Team>,
        collective: Collective,
    ) -> Result<(Self, Option<Self>), GroupError> {
        let begun = core.mailbox.with(team.context, |context| {
            if context.is_leaving() {
                return Err(None);
            }
            if let Some(failure) = context.failure(context.last() + 1) {
                return Err(Some(failure.clone()));
            }
            let barrier = context.begin_fence();
            let ticket = context.begin(collective);
            let own = barrier.and_then(|own| context.mismatch(own.sequence, Collective::BARRIER));
            let mismatch = context.mismatch(ticket.sequence, collective);
            Ok((barrier, ticket, own.or(mismatch)))
        });
        let (barrier, ticket, mismatch) = begun.unwrap_or(Err(None)).map_err(|failure| {
            let Some(failure) = failure else { return core.own_leave().error(team) };
            core.mailbox.tell_once(team.context, &failure);
            failure.error(team)
        })?;
        let of = |collective, ticket: Ticket| Self {
            core: core.clone(),
            team: team.clone(),
            collective,
            sequence: ticket.sequence,
            fence: ticket.fence,
            ended: false,
        };
        let fence = barrier.map(|ticket| of(Collective::BARRIER, ticket));
        if let Some(failure) = mismatch {
            core.mailbox.fail(team.context, &failure);
        }
        Ok((of(collective, ticket), fence))
    }

    pub fn rank(&self) -> usize {
        self.team.rank
    }

    pub fn size(&self) -> usize {
        self.team.size()
    }

    /// Ends the collective with its result, success or failure, and tells all members of a failure.
    pub fn done<T>(mut self, result: Result<T, Failure>) -> Result<T, GroupError> {
        self.ended = true;
        let (mailbox, context) = (&self.core.mailbox, self.team.context);
        mailbox.end(context, self.sequence, result.is_ok());
        result.map_err(|failure| {
            mailbox.fail(context, &failure);
            mailbox.tell_once(context, &failure);
            failure.error(&self.team)
        })
    }

    /// The failure of a member of the team, from this collective on.
    pub fn failure_of(&self, rank: usize, cause: Cause) -> Failure {
        Failure { whole: self.team.whole(rank), after: self.sequence - 1, cause }
    }

    /// A failure that was noticed in this collective, and does not concern earlier ones.
    pub(in crate::group) fn here(&self, failure: Failure) -> Failure {
        Failure { after: self.sequence - 1, ..failure }
    }

    pub(in crate::group) fn label(&self, round: u32) -> Label {
        Label { collective: self.collective, round, from: self.core.mailbox.own }
    }

    fn key(&self, other: usize, round: u32) -> Key {
        Key { sequence: self.sequence, from: self.team.whole(other), round }
    }

    /// Waits until the collective may send, because no member is too far behind.
    pub async fn enter(&self) -> Result<(), Failure> {
        if self.fence == 0 {
            return Ok(());
        }
        self.until(|context| context.is_past(self.fence).then_some(())).await
    }

    /// Sends a message to a member, and waits until all of it is sent.
    pub async fn send(&self, to: usize, round: u32, bytes: &Bytes) -> Result<(), Failure> {
        let rest = self.send_first(to, round, bytes).await?;
        if rest == bytes.len() {
            return Ok(());
        }
        Box::pin(self.send_rest(to, round, bytes, rest)).await
    }

    /// Sends messages to members. A member that is not ready does not delay the others.
    pub async fn send_all(
        &self,
        messages: impl Iterator<Item = (usize, Bytes)>,
        round: u32,
    ) -> Result<(), Failure> {
        let mut longer = Vec::new();
        for (to, bytes) in messages {
            let sent = self.send_first(to, round, &bytes).await?;
            if sent < bytes.len() {
                longer.push(async move { self.send_rest(to, round, &bytes, sent).await });
            }
        }
        if longer.is_empty() { Ok(()) } else { Box::pin(all(longer)).await }
    }

    /// Sends an empty message to a member if that needs no waiting, and returns whether it was
    /// sent.
    pub fn try_send_nothing(&self, to: usize, round: u32) -> Result<bool, Failure> {
        let (mailbox, context, whole) =
            (&self.core.mailbox, self.team.context, self.team.whole(to));
        let is_past = mailbox.with(context, |context| context.is_past(self.fence));
        let Some(peer) = mailbox.peer(whole).filter(|_| is_past == Some(true)) else {
            return Ok(false);
        };
        let arguments = (context, self.sequence, self.label(round).word(), 0, Bytes::new());
        peer.try_notify(PIECE, &arguments).map_err(|why| self.not_sent(whole, &why))
    }

    /// Receives an empty message from a member.
    pub async fn receive_nothing(&self, from: usize, round: u32) -> Result<(), Failure> {
        let key = self.key(from, round);
        self.expect(from, round, |context| context.take(key).map(drop)).await
    }

    /// Receives a message from a member, with all its pieces.
    pub async fn receive(&self, from: usize, round: u32) -> Result<Bytes, Failure> {
        let key = self.key(from, round);
        let arrived = self.expect(from, round, |context| context.take(key)).await?;
        if arrived.piece.len() as u64 == arrived.total {
            return Ok(arrived.piece);
        }
        Box::pin(self.receive_rest(from, round, arrived)).await
    }

    /// Sends a message to a member, and receives a message from another at the same time.
    pub async fn exchange(&self, exchange: Exchange, bytes: &Bytes) -> Result<Bytes, Failure> {
        let Exchange { round, to, from } = exchange;
        let rest = self.send_first(to, round, bytes).await?;
        if rest == bytes.len() {
            return self.receive(from, round).await;
        }
        let all = both(self.send_rest(to, round, bytes, rest), self.receive(from, round));
        let (sent, received) = Box::pin(all).await;
        sent?;
        received
    }

    /// Sends the first piece of a message, and returns the piece's length. Connects to the member
    /// first, if there is no connection.
    async fn send_first(&self, to: usize, round: u32, bytes: &Bytes) -> Result<usize, Failure> {
        let (len, longest) = (bytes.len() as u64, self.core.mailbox.longest);
        if len > longest {
            let cause = Cause::TooLong { len, longest };
            return Err(self.failure_of(self.rank(), cause));
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
        let piece = bytes.slice(..bytes.len().min(peer.longest_payload()));
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
            let end = bytes.len().min(sent + peer.longest_payload());
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

impl Drop for Run {
    fn drop(&mut self) {
        if !self.ended {
            let (mailbox, context) = (&self.core.mailbox, self.team.context);
            mailbox.end(context, self.sequence, false);
            mailbox.fail(context, &self.failure_of(self.rank(), Cause::GaveUp));
        }
    }
}
