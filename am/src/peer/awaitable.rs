//! What a task may wait for on a link: a credit, the answer to a call, memory that was placed.

use std::marker::PhantomData;
use std::sync::Arc;
use std::task::Waker;

use doorbell_verbs::Memory;

use super::waiting::Awaited;
use crate::error::{SendError, Undeliverable};
use crate::link::{Answer, Awaiting, Link, SendSide};

/// A wait for a credit.
#[derive(Default)]
pub(super) struct Admission {
    /// The ticket among the tasks that wait, once this one does.
    ticket: Option<u64>,
    /// Whether the credit is for a call, which needs a number, too.
    is_for_call: bool,
}

impl Admission {
    /// Makes a wait for the credit of a call.
    pub fn of_call() -> Self {
        Self { ticket: None, is_for_call: true }
    }
}

impl Awaited for Admission {
    type Output = Result<(), SendError>;

    #[inline]
    fn find(&mut self, link: &Arc<Link>, out: &mut SendSide) -> Option<Self::Output> {
        let admitted = if self.is_for_call { link.admit_call(out) } else { link.admit(out) };
        match admitted {
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

    fn leave(&mut self, _link: &Arc<Link>, out: &mut SendSide) {
        self.ticket.take().into_iter().for_each(|ticket| out.leave(ticket));
    }
}

/// The result of an operation in one of a link's tables of pending operations.
pub(super) trait Pending: Sized {
    /// The result, or why it does not come.
    type Output;

    /// Takes the result of an operation, if it has come. The number may change, since a call that is
    /// answered late is known by a ticket.
    fn take(link: &Arc<Link>, out: &mut SendSide, number: &mut u64) -> Option<Self>;

    /// Has `waker` woken when the result of an operation may have come.
    fn wait(out: &mut SendSide, number: u64, waker: &Waker);

    /// Notes that no task waits for the result any more.
    fn abandon(link: &Arc<Link>, out: &mut SendSide, number: u64);

    /// Returns the result that has come.
    fn found(self) -> Self::Output;

    /// Returns where the answer to a call is put at once, if the result is one.
    #[inline]
    fn answer(_kept: &mut Option<Self::Output>) -> Option<&mut Option<Answer>> {
        None
    }

    /// Returns whether no result comes any more by a link that is over.
    fn is_lost(link: &Link) -> bool;

    /// Returns the result of an operation that was lost with its link.
    fn lost(why: SendError) -> Self::Output;
}

impl Pending for Answer {
    type Output = Self;

    #[inline]
    fn take(link: &Arc<Link>, out: &mut SendSide, number: &mut u64) -> Option<Self> {
        link.take_answer(out, number)
    }

    fn wait(out: &mut SendSide, number: u64, waker: &Waker) {
        Link::wait_for_answer(out, number, waker);
    }

    fn abandon(link: &Arc<Link>, out: &mut SendSide, number: u64) {
        link.abandon_call(out, number);
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
    type Output = Result<Self, SendError>;

    fn take(_: &Arc<Link>, out: &mut SendSide, number: &mut u64) -> Option<Self> {
        out.placements.as_mut()?.take(*number as u16)
    }

    fn wait(out: &mut SendSide, number: u64, waker: &Waker) {
        out.placements.iter_mut().for_each(|all| all.wait(number as u16, waker));
    }

    fn abandon(_: &Arc<Link>, out: &mut SendSide, number: u64) {
        out.placements.iter_mut().for_each(|all| {
            all.abandon(number as u16);
        });
    }

    fn found(self) -> Self::Output {
        Ok(self)
    }

    fn is_lost(_: &Link) -> bool {
        true
    }

    fn lost(why: SendError) -> Self::Output {
        Err(why)
    }
}

/// A wait for the result of an operation, until the result has come.
pub(super) struct Coming<T> {
    number: Option<u64>,
    what: PhantomData<T>,
}

impl<T> Coming<T> {
    /// Makes a wait for the operation of this number.
    #[inline]
    pub fn by(number: u16) -> Self {
        Self { number: Some(number.into()), what: PhantomData }
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
    type Output = T::Output;

    #[inline]
    fn here<'k>(
        &self,
        link: &'k Arc<Link>,
        kept: &'k mut Option<T::Output>,
    ) -> Option<Awaiting<'k>> {
        // A call with a ticket has no number, and its answer comes by the table.
        let call = u16::try_from(self.number?).unwrap_or(0);
        Some(Awaiting { link, call, answer: T::answer(kept)? })
    }

    #[inline]
    fn came(&mut self) {
        self.number = None;
    }

    #[inline]
    fn find(&mut self, link: &Arc<Link>, out: &mut SendSide) -> Option<T::Output> {
        match T::take(link, out, self.number.as_mut()?) {
            Some(what) => {
                self.number = None;
                Some(what.found())
            }
            None => link.gone(out).filter(|_| T::is_lost(link)).map(T::lost),
        }
    }

    fn wait(&mut self, out: &mut SendSide, waker: &Waker) {
        self.number.into_iter().for_each(|number| T::wait(out, number, waker));
    }

    #[inline]
    fn is_due(&self) -> bool {
        self.number.is_some()
    }

    fn leave(&mut self, link: &Arc<Link>, out: &mut SendSide) {
        self.number.take().into_iter().for_each(|number| T::abandon(link, out, number));
    }
}
