//! Credits, and the receives that stand behind them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::task::Waker;

use super::{Answer, Link, Out};
use crate::costs::{Cost, span};
use crate::error::{Credits, SendError};
use crate::wire::MOST_CREDITS;

impl Link {
    /// Takes a credit, if there is one, and a receive for the answer. Whether there were.
    #[inline]
    pub fn admit(self: &Arc<Self>, out: &mut Out) -> Result<bool, SendError> {
        let _flow = span(Cost::FlowControl);
        self.stands(out)?;
        let admitted = out.credits > 0 && (out.taken < out.leases || self.leases(out));
        if admitted {
            out.credits -= 1;
            out.taken += 1;
        }
        Ok(admitted)
    }

    /// Looks for a receive for one more answer, or has this be told when there may be one.
    #[cold]
    fn leases(self: &Arc<Self>, out: &mut Out) -> bool {
        if usize::from(out.leases) >= self.credits() {
            return false;
        }
        let mut found = self.buffers.promise_for_answers(1);
        if found == 0 {
            self.endpoint.starves(self.clone());
            // What was released before that was known has told nobody.
            found = self.buffers.promise_for_answers(1);
        }
        out.leases += found as u16;
        found > 0
    }

    /// There may be a receive for one more answer.
    pub fn fed(&self) {
        let out = &mut *self.out();
        out.wake(1);
        self.changed(out);
    }

    /// Gives a credit back that was not used.
    pub fn put_back(&self) {
        let mut out = self.out();
        out.credits += 1;
        self.come_back(out, 1);
    }

    /// Credits come back with an answer. Whether somebody was woken.
    #[inline]
    pub fn credited(&self, count: u16) -> bool {
        let mut out = self.out();
        let count = count.min(out.plain);
        out.plain -= count;
        out.credits += count;
        self.come_back(out, count)
    }

    /// More requests may be under way than before. Whether somebody was woken.
    #[cold]
    pub fn granted(&self, count: u16) -> bool {
        let mut out = self.out();
        out.credits = (out.credits + count).min(MOST_CREDITS as u16 - out.taken);
        let woke = out.wake(count.into());
        self.changed(&mut out);
        woke
    }

    /// An answer to a call, and with it its credit; put here, if whoever looks waits for it.
    /// Whether somebody was woken.
    #[inline]
    pub fn answered(
        &self,
        call: u16,
        answer: impl FnOnce() -> Answer,
        here: Option<&mut Option<Answer>>,
    ) -> bool {
        let (mut out, mut later) = (self.out(), None);
        let here = here.filter(|_| out.calls.hand_over(call));
        // Made once, so that it is compiled in here, and lies where it is to be at once.
        *here.unwrap_or(&mut later) = Some(answer());
        let woke = match later {
            None => false,
            Some(answer) => match out.calls.came(call, answer) {
                Some(woke) => woke,
                None => return false,
            },
        };
        out.credits += 1;
        woke | self.come_back(out, 1)
    }

    /// So many requests are answered, or were not sent. Whether somebody was woken.
    #[inline]
    fn come_back(&self, mut out: MutexGuard<'_, Out>, count: u16) -> bool {
        let _flow = span(Cost::FlowControl);
        if out.ending.is_some() {
            return false;
        }
        out.taken -= count;
        let more = out.leases - out.lease.max(out.taken.min(out.leases));
        out.leases -= more;
        let woke = out.wake(count.into());
        self.changed(&mut out);
        drop(out);
        self.gives_back(more.into());
        woke
    }

    /// So many receives are promised no more: whoever waits for one is told.
    pub fn gives_back(&self, count: usize) {
        if count > 0 {
            self.buffers.release(count);
            self.endpoint.feed();
        }
    }

    /// The same of one that is over, of which all is handled that came.
    pub fn retired(&self, count: usize) {
        if count > 0 {
            self.buffers.retired(count);
            self.endpoint.feed();
        }
    }

    /// Whether credits may be recalled from the peer: not while it is being asked.
    pub fn can_be_recalled(&self) -> bool {
        self.is_open() && self.grants() > 1 && !self.is_recalled()
    }

    /// Whether the peer is just being asked for some.
    pub fn is_recalled(&self) -> bool {
        self.recalled.load(Ordering::Relaxed)
    }

    pub fn set_recalled(&self, recalled: bool) {
        self.recalled.store(recalled, Ordering::Relaxed);
    }

    /// Whether no request has come since this was asked before.
    pub fn is_idle(&self) -> bool {
        let came = self.came.load(Ordering::Relaxed);
        self.marked.swap(came, Ordering::Relaxed) == came
    }

    /// The peer gives up so many of its credits. How many it had beside one.
    pub fn gives_up(self: &Arc<Self>, count: usize) -> usize {
        let mut given = 0;
        let _ = self.grants.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |grants| {
            given = count.min(usize::from(grants.saturating_sub(1)));
            Some(grants - given as u16)
        });
        let mut out = self.out();
        if out.owed > 0 {
            // What was not worth telling of before may be all that is under way now.
            self.tells(&mut out);
        }
        given
    }

    /// Gives receives up that were promised for answers, and that nothing under way needs. How
    /// many.
    pub fn yields_leases(&self) -> usize {
        let out = &mut *self.out();
        // As many are kept as the peer may have answered without telling.
        out.lease = out.lease.min((self.limit / 4).max(1));
        let unused = out.leases.saturating_sub(out.taken.max(out.lease));
        out.leases -= unused;
        unused.into()
    }

    /// How many receives are promised for it. It needs none any more.
    pub fn promised(&self) -> usize {
        let out = &mut *self.out();
        out.lease = 0;
        let leases = usize::from(std::mem::take(&mut out.leases));
        let all = usize::from(self.grants.swap(0, Ordering::Relaxed)) + leases;
        if self.own.is_some() { 0 } else { all }
    }
}

impl Out {
    /// Who has the credits.
    #[cold]
    pub fn who_has_credits(&self) -> Credits {
        Credits { under_way: self.taken, given_up: self.calls.abandoned() as u16 }
    }

    /// Gives up all credits but one, which are wanted elsewhere. How many those were.
    pub fn yields(&mut self) -> usize {
        let kept = u16::from(self.taken == 0);
        let given = self.credits.saturating_sub(kept);
        self.credits -= given;
        given.into()
    }

    /// Has the waker called when there is a credit.
    pub fn wait(&mut self, place: &mut Option<u64>, waker: &Waker) {
        let waiting = self.waiting.get_or_insert_default();
        let number = *place.get_or_insert_with(|| {
            waiting.last += 1;
            waiting.last
        });
        match waiting.queue.iter_mut().find(|(place, _)| *place == number) {
            Some((_, there)) => there.clone_from(waker),
            None => waiting.queue.push_back((number, waker.clone())),
        }
    }

    /// Waits no more. If it was called and did not come, another is called.
    pub fn leave(&mut self, place: u64) {
        let Some(waiting) = &mut self.waiting else { return };
        let before = waiting.queue.len();
        waiting.queue.retain(|(number, _)| *number != place);
        if waiting.queue.len() == before && self.credits > 0 {
            self.wake(1);
        }
    }

    /// Calls so many who wait.
    #[inline]
    pub(super) fn wake(&mut self, count: usize) -> bool {
        self.waiting.is_some() && self.wake_some(count)
    }

    #[cold]
    fn wake_some(&mut self, count: usize) -> bool {
        let Some(waiting) = &mut self.waiting else { return false };
        let count = count.min(waiting.queue.len());
        waiting.queue.drain(..count).for_each(|(_, waker)| waker.wake());
        count > 0
    }
}
