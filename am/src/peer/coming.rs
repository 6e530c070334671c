//! What a task may wait for on a link: a credit, the answer to a call, memory that was placed.

use std::marker::PhantomData;
use std::sync::Arc;
use std::task::Waker;

use doorbell_verbs::Memory;

use super::waiting::Awaited;
use crate::credits::PendingTable;
use crate::error::{SendError, Undeliverable};
use crate::link::{Answer, Awaiting, Link, SendSide};

/// A wait for a credit.
#[derive(Default)]
pub(super) struct Admission {
    /// The ticket among the tasks that wait, once this one does.
    ticket: Option<u64>,
}

impl Awaited for Admission {
    type Found = Result<(), SendError>;

    #[inline]
    fn find(&mut self, link: &Arc<Link>, out: &mut SendSide) -> Option<Self::Found> {
        match link.admit(out) {
            Ok(true) => Some(Ok(())),
            Ok(false) => None,
            Err(why) => Some(Err(why)),
        }
    }

    fn wait(&mut self, out: &mut SendSide, waker: &Waker) {
        out.wait(&mut self.ticket, waker);
    }

    #[inline]
    fn is_due(&self) -> bool {
        self.ticket.is_some()
    }

    fn leave(&mut self, out: &mut SendSide) {
        self.ticket.take().into_iter().for_each(|ticket| out.leave(ticket));
    }
}

/// The result of an operation in one of a link's tables of pending operations.
pub(super) trait Pending: Sized {
    /// The result, or why it does not come.
    type Found;

    /// Returns the table of such operations.
    fn table(out: &mut SendSide) -> &mut PendingTable<Self>;

    /// Returns the result that has come.
    fn found(self) -> Self::Found;

    /// Returns where the answer to a call is put at once, if the result is one.
    #[inline]
    fn answer(_kept: &mut Option<Self::Found>) -> Option<&mut Option<Answer>> {
        None
    }

    /// Returns whether no result comes any more by a link that is over.
    fn is_lost(link: &Link) -> bool;

    /// Returns the result of an operation that was lost with its link.
    fn lost(why: SendError) -> Self::Found;
}

impl Pending for Answer {
    type Found = Self;

    #[inline]
    fn table(out: &mut SendSide) -> &mut PendingTable<Self> {
        &mut out.calls
    }

    #[inline]
    fn found(self) -> Self {
        self
    }

    #[inline]
    fn answer(kept: &mut Option<Self>) -> Option<&mut Option<Self>> {
        Some(kept)
    }

    /// The answer may be among the last messages of the peer, which are handled behind the end.
    fn is_lost(link: &Link) -> bool {
        link.has_departed()
    }

    fn lost(_: SendError) -> Self {
        Err(Undeliverable::PeerGone)
    }
}

impl Pending for Memory {
    type Found = Result<Self, SendError>;

    fn table(out: &mut SendSide) -> &mut PendingTable<Self> {
        out.placements.get_or_insert_default()
    }

    fn found(self) -> Self::Found {
        Ok(self)
    }

    fn is_lost(_: &Link) -> bool {
        true
    }

    fn lost(why: SendError) -> Self::Found {
        Err(why)
    }
}

/// A wait for the result of an operation, until the result has come.
pub(super) struct Coming<T> {
    number: Option<u16>,
    what: PhantomData<T>,
}

impl<T> Coming<T> {
    /// Makes a wait for the operation of this number.
    #[inline]
    pub fn by(number: u16) -> Self {
        Self { number: Some(number), what: PhantomData }
    }

    /// Makes a wait that is over.
    pub const fn nothing() -> Self {
        Self { number: None, what: PhantomData }
    }

    /// Hands the wait on to another place, and leaves a wait that is over.
    pub fn hand_on(&mut self) -> Self {
        Self { number: self.number.take(), what: PhantomData }
    }
}

impl<T: Pending> Awaited for Coming<T> {
    type Found = T::Found;

    #[inline]
    fn here<'k>(
        &self,
        link: &'k Arc<Link>,
        kept: &'k mut Option<T::Found>,
    ) -> Option<Awaiting<'k>> {
        Some(Awaiting { link, call: self.number?, answer: T::answer(kept)? })
    }

    #[inline]
    fn came(&mut self) {
        self.number = None;
    }

    #[inline]
    fn find(&mut self, link: &Arc<Link>, out: &mut SendSide) -> Option<T::Found> {
        match T::table(out).take(self.number?) {
            Some(what) => {
                self.number = None;
                Some(what.found())
            }
            None => link.gone(out).filter(|_| T::is_lost(link)).map(T::lost),
        }
    }

    fn wait(&mut self, out: &mut SendSide, waker: &Waker) {
        self.number.into_iter().for_each(|number| T::table(out).wait(number, waker));
    }

    #[inline]
    fn is_due(&self) -> bool {
        self.number.is_some()
    }

    fn leave(&mut self, out: &mut SendSide) {
        self.number.take().into_iter().for_each(|number| T::table(out).abandon(number));
    }
}
