//! Calls: requests whose answers somebody waits for.

use std::task::Waker;

use crate::error::Undeliverable;
use crate::message::Reply;

/// What answers a call.
pub(crate) type Answer = Result<Reply, Undeliverable>;

/// The calls of a link, each with a number that its request carries: from 1 on, and no more of them
/// than there are credits.
#[derive(Default)]
pub(crate) struct Calls {
    places: Vec<Place>,
    free: Vec<u16>,
}

enum Place {
    Free,
    Waits(Option<Waker>),
    Answered(Answer),
    /// Nobody waits for it any more.
    Abandoned,
}

impl Calls {
    /// Begins one, for which there was a credit.
    #[inline]
    pub fn begin(&mut self) -> u16 {
        let call = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::Free);
            self.places.len() as u16
        });
        self.places[usize::from(call) - 1] = Place::Waits(None);
        call
    }

    #[inline]
    fn place(&mut self, call: u16) -> Option<&mut Place> {
        self.places.get_mut(usize::from(call).checked_sub(1)?)
    }

    /// Keeps an answer for who waits for it. Whether that was woken; none if nobody has asked.
    #[inline]
    pub fn answer(&mut self, call: u16, answer: Answer) -> Option<bool> {
        let place = self.place(call)?;
        match std::mem::replace(place, Place::Free) {
            Place::Waits(waker) => {
                *place = Place::Answered(answer);
                let woke = waker.is_some();
                waker.into_iter().for_each(Waker::wake);
                Some(woke)
            }
            Place::Abandoned => {
                self.free.push(call);
                Some(false)
            }
            other => {
                *place = other;
                None
            }
        }
    }

    /// The answer, if it is there.
    #[inline]
    pub fn take(&mut self, call: u16) -> Option<Answer> {
        let place = self.place(call)?;
        match std::mem::replace(place, Place::Free) {
            Place::Answered(answer) => {
                self.free.push(call);
                Some(answer)
            }
            other => {
                *place = other;
                None
            }
        }
    }

    /// Has the waker called when the answer is there.
    pub fn wait(&mut self, call: u16, waker: &Waker) {
        if let Some(Place::Waits(there)) = self.place(call) {
            there.get_or_insert_with(|| waker.clone()).clone_from(waker);
        }
    }

    /// Nobody waits for it any more.
    pub fn abandon(&mut self, call: u16) {
        match self.place(call) {
            Some(place @ Place::Waits(_)) => *place = Place::Abandoned,
            _ => drop(self.take(call)),
        }
    }

    /// None will be answered any more.
    pub fn end(&mut self) {
        for call in 1..=self.places.len() as u16 {
            self.answer(call, Err(Undeliverable::PeerGone));
        }
    }
}
