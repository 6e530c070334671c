//! What a task may wait for on a link: a credit, the answer to a call, memory that was placed.

use std::marker::PhantomData;
use std::sync::Arc;
use std::task::Waker;

use doorbell_verbs::Memory;

use super::waiting::Awaited;
use crate::credits::PendingTable;
use crate::error::{SendError, Undeliverable};
use crate::link::{Answer, Awaiting, Link, SendSide};

/// A credit.
#[derive(Default)]
pub(crate) struct Admission {
    /// Among those who wait.
    place: Option<u64>,
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
        out.wait(&mut self.place, waker);
    }

    #[inline]
    fn is_due(&self) -> bool {
        self.place.is_some()
    }

    fn leave(&mut self, out: &mut SendSide) {
        self.place.take().into_iter().for_each(|place| out.leave(place));
    }
}

/// What has a number by which it comes.
pub(crate) trait Numbered: Sized {
    type Found;

    fn table(out: &mut SendSide) -> &mut PendingTable<Self>;

    fn found(self) -> Self::Found;

    /// Where an answer is put, if it is one.
    #[inline]
    fn answer(_kept: &mut Option<Self::Found>) -> Option<&mut Option<Answer>> {
        None
    }

    /// The link is over.
    fn lost(why: SendError) -> Self::Found;
}

/// The answer to a call.
impl Numbered for Answer {
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

    fn lost(_: SendError) -> Self {
        Err(Undeliverable::PeerGone)
    }
}

/// Memory that is being placed.
impl Numbered for Memory {
    type Found = Result<Self, SendError>;

    fn table(out: &mut SendSide) -> &mut PendingTable<Self> {
        out.placements.get_or_insert_default()
    }

    fn found(self) -> Self::Found {
        Ok(self)
    }

    fn lost(why: SendError) -> Self::Found {
        Err(why)
    }
}

/// What comes by its number, until it has.
pub(crate) struct Coming<T> {
    number: Option<u16>,
    what: PhantomData<T>,
}

impl<T> Coming<T> {
    #[inline]
    pub fn by(number: u16) -> Self {
        Self { number: Some(number), what: PhantomData }
    }

    /// There is nothing to wait for.
    pub const fn nothing() -> Self {
        Self { number: None, what: PhantomData }
    }

    /// It is waited for elsewhere from here on.
    pub fn hand_on(&mut self) -> Self {
        Self { number: self.number.take(), what: PhantomData }
    }
}

impl<T: Numbered> Awaited for Coming<T> {
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
            None => link.gone(out).map(T::lost),
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
