//! Groups over links, and the messages that their members send to each other.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::communicator::{Communicator, Rounds};
use crate::error::GroupError;
use crate::group::{Group, run};
use crate::linked::{Linked, LinkedRounds};
use crate::links::Links;
use crate::operation::Operation;
use crate::schedule::Exchange;

/// Groups over links, whose members send messages to each other by tags, beside the collectives.
impl<L: Links> Group<Linked<L>> {
    /// Makes a group over links to the other members, all of which do so.
    pub fn over(links: L) -> Self {
        Self(Arc::new(Linked::new(links)))
    }

    /// Returns the links to the other members.
    pub fn links(&self) -> &L {
        &self.0.links
    }

    /// Sends a message to another member, which receives it by the same `tag`. It is done when the
    /// message has left.
    pub fn send(
        &self,
        to: usize,
        tag: u32,
        bytes: Bytes,
    ) -> impl Future<Output = Result<(), GroupError>> + Send + use<L> {
        run!(self.other(to).map(|()| self.direct(tag)), |rounds| rounds.send(to, 0, bytes))
    }

    /// Receives the first message that another member has sent with a `tag`.
    pub fn receive(
        &self,
        from: usize,
        tag: u32,
    ) -> impl Future<Output = Result<Bytes, GroupError>> + Send + use<L> {
        run!(self.other(from).map(|()| self.direct(tag)), |rounds| rounds.receive(from, 0))
    }

    /// Sends a message to one member, and receives a message from another at the same time. Either
    /// may be this member, if both are.
    pub fn send_receive(
        &self,
        to: usize,
        from: usize,
        tag: u32,
        bytes: Bytes,
    ) -> impl Future<Output = Result<Bytes, GroupError>> + Send + use<L> {
        let is_own = to == self.rank() && from == to;
        let others = || self.other(to).and_then(|()| self.other(from));
        let fits = if is_own { Ok(()) } else { others() };
        let rounds = fits.map(|()| self.direct(tag));
        async move {
            let rounds = rounds?;
            if is_own {
                return Ok(bytes);
            }
            let exchange = rounds.exchange(Exchange { round: 0, to, from }, bytes);
            let result = rounds.watched(exchange).await;
            rounds.done(result).await
        }
    }

    /// Sends a message to each of some members, and receives one from each of them, all at the same
    /// time. Returns the messages that came, in the order of `messages`.
    pub fn exchange(
        &self,
        tag: u32,
        messages: Vec<(usize, Bytes)>,
    ) -> impl Future<Output = Result<Vec<Bytes>, GroupError>> + Send + use<L> {
        let others = messages.iter().try_for_each(|(with, _)| self.other(*with));
        run!(others.map(|()| self.direct(tag)), |rounds| exchanged(&rounds, messages))
    }

    fn direct(&self, tag: u32) -> LinkedRounds<L> {
        self.0.direct(tag)
    }

    fn other(&self, rank: usize) -> Result<(), GroupError> {
        let (operation, size) = (Operation::Direct, self.size());
        match rank {
            _ if rank == self.0.rank() => Err(GroupError::Itself { rank }),
            _ if rank < size => Ok(()),
            _ => Err(GroupError::NoMember { operation, rank, size }),
        }
    }
}

/// Sends messages to some members, and receives one from each of them.
async fn exchanged<L: Links>(
    rounds: &LinkedRounds<L>,
    messages: Vec<(usize, Bytes)>,
) -> Result<Vec<Bytes>, GroupError> {
    let receives = try_join_all(messages.iter().map(|(from, _)| rounds.receive(*from, 0)));
    let sends = try_join_all(messages.iter().map(|(to, bytes)| rounds.send(*to, 0, bytes.clone())));
    let (received, _) = tokio::try_join!(receives, sends)?;
    Ok(received)
}
