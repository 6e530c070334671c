//! The handle by which a program runs collectives.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use doorbell_am::Plain;
use doorbell_am::schedule::Exchange;
use futures_util::future::try_join_all;

use super::call::{Call, Calls};
use super::elements::{self, Each};
use super::error::GroupError;
use super::links::Links;
use super::members::Members;
use super::operation::Operation;
use super::run::{Place, Run};
use super::{broadcast, folds, moves};

/// A process's place among the members of a group, by which the process runs collectives with the
/// others. See the [module](super).
///
/// Clones are handles to the same place.
pub struct Group<L = Members>(Arc<Place<L>>);

impl<L> Clone for Group<L> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<L: Links> fmt::Debug for Group<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("rank", &self.rank()).field("size", &self.size()).finish()
    }
}

impl<L: Links> Group<L> {
    /// Makes a group over links to the other members, all of which do so.
    pub fn over(links: L) -> Self {
        Self(Arc::new(Place { links, calls: Calls::default() }))
    }

    /// Returns the rank of this member: from 0, and below [`size`](Self::size).
    pub fn rank(&self) -> usize {
        self.links().rank()
    }

    /// Returns the number of members.
    pub fn size(&self) -> usize {
        self.links().size()
    }

    /// Returns the links to the other members.
    pub fn links(&self) -> &L {
        &self.0.links
    }

    /// Waits until all members have begun the barrier.
    pub fn barrier(&self) -> impl Future<Output = Result<(), GroupError>> + Send + use<L> {
        let run = self.begin(Operation::Barrier);
        async move { run.end(moves::barrier(&run)).await }
    }

    /// Gives all members the `bytes` of the root. The `bytes` of the others are ignored.
    pub fn broadcast(
        &self,
        root: usize,
        bytes: Bytes,
    ) -> impl Future<Output = Result<Bytes, GroupError>> + Send + use<L> {
        let run = self.begin_at(Operation::Broadcast, root);
        async move {
            let run = run?;
            run.end(broadcast::broadcast(&run, root, bytes)).await
        }
    }

    /// Combines the `elements` of all members, each with those at the same place, and gives the
    /// result to the root; the others get `None`. All members must give as many elements.
    ///
    /// The operator gets what members of lower ranks gave on the left, and what members of higher
    /// ranks gave on the right. It must be associative, and need not be commutative: the order is
    /// always that of ranks.
    ///
    /// Members that give elements of different types, or pass different [operators], are told so.
    /// What a closure computes can't be compared: it counts as the same as any operator.
    ///
    /// [operators]: super::operators
    pub fn reduce<T, O>(
        &self,
        root: usize,
        elements: Vec<T>,
        operator: O,
    ) -> impl Future<Output = Result<Option<Vec<T>>, GroupError>> + Send + use<L, T, O>
    where
        T: Plain + Send,
        O: FnMut(T, T) -> T + Send,
    {
        let (operation, element) = (Operation::Reduce, Some(size_of::<T>()));
        let mut each = Each::new(operator);
        let is_member = self.member(operation, root);
        let call = Call { operation, root: Some(root), element, of_type: each.of_type() };
        let run = is_member.map(|()| Run::begin(&self.0, call));
        async move {
            let (run, own) = (run?, elements::bytes(elements));
            let combined = run.end(folds::reduce(&run, root, own, &mut each)).await?;
            Ok(combined.map(|combined| elements::elements(&combined)))
        }
    }

    /// Combines the `elements` of all members, as [`reduce`](Self::reduce) does, and gives the
    /// result to every member. The result is the same at all members to the last bit, even if the
    /// operator rounds.
    ///
    /// ```
    /// use doorbell_messages::collectives::{Group, GroupError, operators};
    ///
    /// async fn mean(group: &Group, own: f64) -> Result<f64, GroupError> {
    ///     let sum = group.all_reduce(vec![own], operators::sum).await?;
    ///     Ok(sum[0] / group.size() as f64)
    /// }
    /// ```
    pub fn all_reduce<T, O>(
        &self,
        elements: Vec<T>,
        operator: O,
    ) -> impl Future<Output = Result<Vec<T>, GroupError>> + Send + use<L, T, O>
    where
        T: Plain + Send,
        O: FnMut(T, T) -> T + Send,
    {
        let (operation, element) = (Operation::AllReduce, Some(size_of::<T>()));
        let mut each = Each::new(operator);
        let call = Call { operation, root: None, element, of_type: each.of_type() };
        let run = Run::begin(&self.0, call);
        async move {
            let own = elements::bytes(elements);
            let combined = run.end(folds::all_reduce(&run, own, &mut each)).await?;
            Ok(elements::elements(&combined))
        }
    }

    /// Gives the root the `bytes` of all members, in the order of their ranks; the others get
    /// `None`.
    pub fn gather(
        &self,
        root: usize,
        bytes: Bytes,
    ) -> impl Future<Output = Result<Option<Vec<Bytes>>, GroupError>> + Send + use<L> {
        let run = self.begin_at(Operation::Gather, root);
        async move {
            let run = run?;
            run.end(moves::gather(&run, root, bytes)).await
        }
    }

    /// Gives each member one of the parts that the root passes, which has one for each member in
    /// the order of ranks. The `parts` of the others are ignored.
    pub fn scatter(
        &self,
        root: usize,
        parts: Vec<Bytes>,
    ) -> impl Future<Output = Result<Bytes, GroupError>> + Send + use<L> {
        let run = match self.rank() == root {
            true => self.parts(Operation::Scatter, &parts),
            false => Ok(()),
        };
        let run = run.and_then(|()| self.begin_at(Operation::Scatter, root));
        async move {
            let run = run?;
            run.end(moves::scatter(&run, root, parts)).await
        }
    }

    /// Gives every member the `bytes` of all members, in the order of ranks.
    pub fn all_gather(
        &self,
        bytes: Bytes,
    ) -> impl Future<Output = Result<Vec<Bytes>, GroupError>> + Send + use<L> {
        let run = self.begin(Operation::AllGather);
        async move { run.end(moves::all_gather(&run, bytes)).await }
    }

    /// Exchanges a part between each two members. A member passes one part for each member, in the
    /// order of ranks, and gets one part from each member, in the same order.
    pub fn all_to_all(
        &self,
        parts: Vec<Bytes>,
    ) -> impl Future<Output = Result<Vec<Bytes>, GroupError>> + Send + use<L> {
        let fits = self.parts(Operation::AllToAll, &parts);
        let run = fits.map(|()| self.begin(Operation::AllToAll));
        async move {
            let run = run?;
            run.end(moves::all_to_all(&run, parts)).await
        }
    }

    /// Sends a message to another member, which receives it by the same `tag`. It is done when the
    /// message has left.
    pub fn send(
        &self,
        to: usize,
        tag: u32,
        bytes: Bytes,
    ) -> impl Future<Output = Result<(), GroupError>> + Send + use<L> {
        let run = self.other(to).map(|()| self.direct(tag));
        async move {
            let run = run?;
            run.end(run.send(to, 0, bytes)).await
        }
    }

    /// Receives the first message that another member has sent with a `tag`.
    pub fn receive(
        &self,
        from: usize,
        tag: u32,
    ) -> impl Future<Output = Result<Bytes, GroupError>> + Send + use<L> {
        let run = self.other(from).map(|()| self.direct(tag));
        async move {
            let run = run?;
            run.end(run.receive(from, 0)).await
        }
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
        let run = if is_own { Ok(()) } else { others() };
        let run = run.map(|()| self.direct(tag));
        async move {
            let run = run?;
            if is_own {
                return Ok(bytes);
            }
            run.end(run.exchange(Exchange { round: 0, to, from }, bytes)).await
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
        let run = others.map(|()| self.direct(tag));
        async move {
            let run = run?;
            let run = &run;
            let receives = try_join_all(messages.iter().map(|(from, _)| run.receive(*from, 0)));
            let sends =
                try_join_all(messages.iter().map(|(to, bytes)| run.send(*to, 0, bytes.clone())));
            let both = async {
                let (received, _) = tokio::try_join!(receives, sends)?;
                Ok(received)
            };
            run.end(both).await
        }
    }

    fn begin(&self, operation: Operation) -> Run<L> {
        Run::begin(&self.0, Call { operation, root: None, element: None, of_type: 0 })
    }

    fn begin_at(&self, operation: Operation, root: usize) -> Result<Run<L>, GroupError> {
        self.member(operation, root)?;
        let call = Call { operation, root: Some(root), element: None, of_type: 0 };
        Ok(Run::begin(&self.0, call))
    }

    fn direct(&self, tag: u32) -> Run<L> {
        Run::direct(&self.0, tag)
    }

    fn member(&self, operation: Operation, rank: usize) -> Result<(), GroupError> {
        let size = self.size();
        match rank < size {
            true => Ok(()),
            false => Err(GroupError::NoMember { operation, rank, size }),
        }
    }

    fn other(&self, rank: usize) -> Result<(), GroupError> {
        match rank == self.rank() {
            true => Err(GroupError::Itself { rank }),
            false => self.member(Operation::Direct, rank),
        }
    }

    fn parts(&self, operation: Operation, parts: &[Bytes]) -> Result<(), GroupError> {
        let (found, size) = (parts.len(), self.size());
        match found == size {
            true => Ok(()),
            false => Err(GroupError::Parts { operation, found, size }),
        }
    }
}
