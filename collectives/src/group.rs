//! The handle by which a program runs collectives.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;

use crate::algorithms::{self, Extremes};
use crate::call::Call;
use crate::communicator::{Communicator, Rounds, Wrong};
use crate::elements::{Each, Element, Whole, bytes, elements};
use crate::operation::Operation;

/// The future of a collective that was begun, or of the error: its algorithm runs to the end, or
/// until the group fails. A function makes something else of the result, if there is one.
macro_rules! run {
    ($begun:expr, |$rounds:ident| $algorithm:expr) => {
        run!($begun, |$rounds| $algorithm, |result| result)
    };
    ($begun:expr, |$rounds:ident| $algorithm:expr, $then:expr) => {{
        let begun = $begun;
        async move {
            let $rounds = begun?;
            let result = $rounds.watched($algorithm).await;
            $rounds.done(result).await.map($then)
        }
    }};
}
pub(crate) use run;

/// A process's place among the members of a group, by which the process runs collectives with the
/// others. See the [crate](crate).
///
/// Clones are handles to the same place.
pub struct Group<C>(pub(crate) Arc<C>);

impl<C> Clone for Group<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C: Communicator> fmt::Debug for Group<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("rank", &self.rank()).field("size", &self.size()).finish()
    }
}

/// The rank of this member, and its place.
impl<C: Communicator> Group<C> {
    /// Makes a group from a member's place.
    pub fn of(communicator: C) -> Self {
        Self(Arc::new(communicator))
    }

    /// Returns the member's place, which its collectives share.
    pub fn communicator(&self) -> &Arc<C> {
        &self.0
    }

    /// Returns the rank of this member: from 0, and below [`size`](Self::size).
    pub fn rank(&self) -> usize {
        self.0.rank()
    }

    /// Returns the number of members.
    pub fn size(&self) -> usize {
        self.0.size()
    }
}

/// Collectives that synchronise the members.
impl<C: Communicator> Group<C> {
    /// Waits until all members have begun the barrier.
    pub fn barrier(&self) -> impl Future<Output = Result<(), C::Error>> + Send + use<C> {
        self.barrier_of(Operation::Barrier)
    }

    /// Waits until all members have reached the fence: a barrier of its own kind, for libraries
    /// that synchronise something by it. A member in a fence does not meet a member in a
    /// [`barrier`](Self::barrier): that is a mismatch.
    pub fn fence(&self) -> impl Future<Output = Result<(), C::Error>> + Send + use<C> {
        self.barrier_of(Operation::Fence)
    }

    /// Waits until all members have reached the end of their program: a barrier of its own kind,
    /// for libraries that run programs. A member whose program has ended does not meet a member in
    /// a [`barrier`](Self::barrier): that is a mismatch.
    pub fn finish(&self) -> impl Future<Output = Result<(), C::Error>> + Send + use<C> {
        self.barrier_of(Operation::Finish)
    }

    fn barrier_of(
        &self,
        operation: Operation,
    ) -> impl Future<Output = Result<(), C::Error>> + Send + use<C> {
        run!(self.0.begin(Call::of(operation)), |rounds| algorithms::barrier(&rounds))
    }

    /// Compares numbers that all members pass. Returns the position of the first number that is not
    /// the same at all members, or `None` if all are; lists of different lengths differ where the
    /// shortest ends.
    ///
    /// An agreement is a collective of its own kind, for libraries that rest on what members have
    /// agreed about: a member in an agreement does not meet a member in an
    /// [`all_reduce`](Self::all_reduce), whatever that computes.
    ///
    /// ```
    /// use doorbell_collectives::{Communicator, Group};
    ///
    /// async fn is_same_everywhere<C: Communicator>(
    ///     group: &Group<C>,
    ///     version: u64,
    /// ) -> Result<bool, C::Error> {
    ///     Ok(group.agree(&[version]).await?.is_none())
    /// }
    /// ```
    pub fn agree(
        &self,
        numbers: &[u64],
    ) -> impl Future<Output = Result<Option<usize>, C::Error>> + Send + use<C> {
        let own = Extremes::of(numbers);
        run!(self.0.begin(Call::of(Operation::Agree)), |rounds| algorithms::agree(&rounds, own))
    }
}

/// Collectives that move data as it is.
impl<C: Communicator> Group<C> {
    /// Gives all members the `bytes` of the root. The `bytes` of the others are ignored.
    pub fn broadcast(
        &self,
        root: usize,
        bytes: Bytes,
    ) -> impl Future<Output = Result<Bytes, C::Error>> + Send + use<C> {
        run!(self.begin_at(Call::at(Operation::Broadcast, root), root), |rounds| {
            algorithms::broadcast(&rounds, root, bytes)
        })
    }

    /// Gives the root the `bytes` of all members, in the order of their ranks; the others get
    /// `None`.
    pub fn gather(
        &self,
        root: usize,
        bytes: Bytes,
    ) -> impl Future<Output = Result<Option<Vec<Bytes>>, C::Error>> + Send + use<C> {
        run!(self.begin_at(Call::at(Operation::Gather, root), root), |rounds| algorithms::gather(
            &rounds, root, bytes
        ))
    }

    /// Gives each member one of the parts that the root passes, which has one for each member in
    /// the order of ranks. The `parts` of the others are ignored.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use doorbell_collectives::{Communicator, Group};
    ///
    /// async fn share<C: Communicator>(group: &Group<C>) -> Result<Bytes, C::Error> {
    ///     let part = |rank| Bytes::from(format!("for member {rank}"));
    ///     let parts = (group.rank() == 0).then(|| (0..group.size()).map(part).collect());
    ///     group.scatter(0, parts).await
    /// }
    /// ```
    pub fn scatter(
        &self,
        root: usize,
        parts: Option<Vec<Bytes>>,
    ) -> impl Future<Output = Result<Bytes, C::Error>> + Send + use<C> {
        let parts = parts.unwrap_or_default();
        let fits = match root == self.rank() {
            true => self.fits(Operation::Scatter, &parts),
            false => Ok(()),
        };
        run!(
            fits.and_then(|()| self.begin_at(Call::at(Operation::Scatter, root), root)),
            |rounds| algorithms::scatter(&rounds, root, parts)
        )
    }

    /// Gives every member the `bytes` of all members, in the order of ranks.
    pub fn all_gather(
        &self,
        bytes: Bytes,
    ) -> impl Future<Output = Result<Vec<Bytes>, C::Error>> + Send + use<C> {
        run!(self.0.begin(Call::of(Operation::AllGather)), |rounds| algorithms::all_gather(
            &rounds, bytes
        ))
    }

    /// Exchanges a part between each two members. A member passes one part for each member, in the
    /// order of ranks, and gets one part from each member, in the same order.
    pub fn all_to_all(
        &self,
        parts: Vec<Bytes>,
    ) -> impl Future<Output = Result<Vec<Bytes>, C::Error>> + Send + use<C> {
        let fits = self.fits(Operation::AllToAll, &parts);
        run!(fits.and_then(|()| self.0.begin(Call::of(Operation::AllToAll))), |rounds| {
            algorithms::all_to_all(&rounds, parts)
        })
    }
}

/// Collectives that combine elements, each with those at the same place.
impl<C: Communicator> Group<C> {
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
    /// [operators]: crate::operators
    pub fn reduce<T, O>(
        &self,
        root: usize,
        elements: Vec<T>,
        operator: O,
    ) -> impl Future<Output = Result<Option<Vec<T>>, C::Error>> + Send + use<C, T, O>
    where
        T: Element,
        O: FnMut(T, T) -> T + Send,
    {
        let mut each = Each::new(operator);
        let call = Call { root: Some(root), ..call_of(Operation::Reduce, &each) };
        let rounds = self.begin_at(call, root);
        run!(
            rounds,
            |rounds| algorithms::reduce(&rounds, root, bytes(elements), &mut each),
            |combined: Option<Bytes>| combined.map(|all| self::elements(&all))
        )
    }

    /// Combines the `elements` of all members, as [`reduce`](Self::reduce) does, and gives the
    /// result to every member. The result is the same at all members to the last bit, even if the
    /// operator rounds.
    ///
    /// ```
    /// use doorbell_collectives::{Communicator, Group, operators};
    ///
    /// async fn mean<C: Communicator>(group: &Group<C>, own: f64) -> Result<f64, C::Error> {
    ///     let sum = group.all_reduce(vec![own], operators::sum).await?;
    ///     Ok(sum[0] / group.size() as f64)
    /// }
    /// ```
    pub fn all_reduce<T, O>(
        &self,
        elements: Vec<T>,
        operator: O,
    ) -> impl Future<Output = Result<Vec<T>, C::Error>> + Send + use<C, T, O>
    where
        T: Element,
        O: FnMut(T, T) -> T + Send,
    {
        let mut each = Each::new(operator);
        let rounds = self.0.begin(call_of(Operation::AllReduce, &each));
        run!(
            rounds,
            |rounds| algorithms::all_reduce(&rounds, bytes(elements), &mut each),
            |combined| self::elements(&combined)
        )
    }

    /// Gives each member the `elements` of the members up to and including itself, combined by an
    /// operator as by [`reduce`](Self::reduce).
    pub fn scan<T, O>(
        &self,
        elements: Vec<T>,
        operator: O,
    ) -> impl Future<Output = Result<Vec<T>, C::Error>> + Send + use<C, T, O>
    where
        T: Element,
        O: FnMut(T, T) -> T + Send,
    {
        let mut each = Each::new(operator);
        let rounds = self.0.begin(call_of(Operation::Scan, &each));
        let own_too = |(with, _): (Bytes, _)| self::elements(&with);
        run!(rounds, |rounds| algorithms::scan(&rounds, bytes(elements), &mut each), own_too)
    }

    /// Gives each member the `elements` of the members before itself, combined by an operator as by
    /// [`reduce`](Self::reduce). The member of rank 0 gets `None`.
    pub fn exclusive_scan<T, O>(
        &self,
        elements: Vec<T>,
        operator: O,
    ) -> impl Future<Output = Result<Option<Vec<T>>, C::Error>> + Send + use<C, T, O>
    where
        T: Element,
        O: FnMut(T, T) -> T + Send,
    {
        let mut each = Each::new(operator);
        let rounds = self.0.begin(call_of(Operation::ExclusiveScan, &each));
        let others = |(_, without): (_, Option<Bytes>)| without.map(|all| self::elements(&all));
        run!(rounds, |rounds| algorithms::scan(&rounds, bytes(elements), &mut each), others)
    }
}

/// Collectives that combine bytes of any length as a whole.
impl<C: Communicator> Group<C> {
    /// Combines the `bytes` of all members by an operator, and gives the result to the root; the
    /// others get `None`. What members give may have different lengths, and so may what the
    /// operator makes of two of them.
    ///
    /// The operator gets what members of lower ranks gave on the left, and what members of higher
    /// ranks gave on the right, and leaves the result on the left. It must be associative, and need
    /// not be commutative: the order is always that of ranks.
    pub fn reduce_bytes<O>(
        &self,
        root: usize,
        bytes: Bytes,
        operator: O,
    ) -> impl Future<Output = Result<Option<Bytes>, C::Error>> + Send + use<C, O>
    where
        O: FnMut(&mut Vec<u8>, &[u8]) + Send + 'static,
    {
        let mut whole = Whole(operator);
        let call = Call { root: Some(root), ..whole_of(Operation::Reduce) };
        run!(self.begin_at(call, root), |rounds| algorithms::reduce(
            &rounds, root, bytes, &mut whole
        ))
    }

    /// Combines the `bytes` of all members by an operator, as [`reduce_bytes`](Self::reduce_bytes)
    /// does, and gives the result to every member. The result is the same at all members to the
    /// last bit, even if the operator rounds.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use doorbell_collectives::{Communicator, Group};
    ///
    /// async fn all_names<C: Communicator>(group: &Group<C>, own: &str) -> Result<Bytes, C::Error> {
    ///     let append = |left: &mut Vec<u8>, right: &[u8]| left.extend_from_slice(right);
    ///     group.all_reduce_bytes(Bytes::from(format!("{own};")), append).await
    /// }
    /// ```
    pub fn all_reduce_bytes<O>(
        &self,
        bytes: Bytes,
        operator: O,
    ) -> impl Future<Output = Result<Bytes, C::Error>> + Send + use<C, O>
    where
        O: FnMut(&mut Vec<u8>, &[u8]) + Send + 'static,
    {
        let mut whole = Whole(operator);
        run!(self.0.begin(whole_of(Operation::AllReduce)), |rounds| algorithms::all_reduce(
            &rounds, bytes, &mut whole
        ))
    }

    /// Gives each member the `bytes` of the members up to and including itself, combined by an
    /// operator as by [`reduce_bytes`](Self::reduce_bytes).
    pub fn scan_bytes<O>(
        &self,
        bytes: Bytes,
        operator: O,
    ) -> impl Future<Output = Result<Bytes, C::Error>> + Send + use<C, O>
    where
        O: FnMut(&mut Vec<u8>, &[u8]) + Send + 'static,
    {
        let mut whole = Whole(operator);
        let rounds = self.0.begin(whole_of(Operation::Scan));
        run!(rounds, |rounds| algorithms::scan(&rounds, bytes, &mut whole), |(with, _)| with)
    }

    /// Gives each member the `bytes` of the members before itself, combined by an operator as by
    /// [`reduce_bytes`](Self::reduce_bytes). The member of rank 0 gets `None`.
    pub fn exclusive_scan_bytes<O>(
        &self,
        bytes: Bytes,
        operator: O,
    ) -> impl Future<Output = Result<Option<Bytes>, C::Error>> + Send + use<C, O>
    where
        O: FnMut(&mut Vec<u8>, &[u8]) + Send + 'static,
    {
        let mut whole = Whole(operator);
        let rounds = self.0.begin(whole_of(Operation::ExclusiveScan));
        run!(rounds, |rounds| algorithms::scan(&rounds, bytes, &mut whole), |(_, without)| without)
    }
}

impl<C: Communicator> Group<C> {
    fn begin_at(&self, call: Call, root: usize) -> Result<C::Rounds, C::Error> {
        let size = self.size();
        match root < size {
            true => self.0.begin(call),
            false => Err(self.0.refusal(call.operation, Wrong::NoMember { rank: root, size })),
        }
    }

    /// Checks that there are as many parts to send as members.
    fn fits(&self, operation: Operation, parts: &[Bytes]) -> Result<(), C::Error> {
        let (found, size) = (parts.len(), self.size());
        match found == size {
            true => Ok(()),
            false => Err(self.0.refusal(operation, Wrong::Parts { found, size })),
        }
    }
}

/// The call of a collective that combines elements of a type.
fn call_of<T: Element, O: FnMut(T, T) -> T + Send>(
    operation: Operation,
    each: &Each<T, O>,
) -> Call {
    Call { element: Some(size_of::<T>()), of_type: each.of_type(), ..Call::of(operation) }
}

/// The call of a collective that combines bytes as a whole, which have elements of no length.
fn whole_of(operation: Operation) -> Call {
    Call { element: Some(0), ..Call::of(operation) }
}
