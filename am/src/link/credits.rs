//! Credits of a link, and the receives that stand behind them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use doorbell_verbs::Buf;

use super::{Answer, Link, SendSide, Sending};
use crate::costs::{Cost, span};
use crate::error::{Credits, SendError};
use crate::wire::MOST_CREDITS;

impl Link {
    /// Takes a credit, and a receive for the answer, if there are both. Returns whether there were.
    #[inline]
    pub fn admit(self: &Arc<Self>, out: &mut SendSide) -> Result<bool, SendError> {
        let _flow = span(Cost::FlowControl);
        self.check_stands(out)?;
        Ok(self.takes_credit(out, out.left_for_answers))
    }

    /// Takes a credit for the request of a call, if there is one, and a number for the call.
    #[inline]
    pub fn admit_call(self: &Arc<Self>, out: &mut SendSide) -> Result<bool, SendError> {
        Ok(self.admit(out)? && (out.calls.has_room() || self.has_no_number(out)))
    }

    /// Gives back the credit of a call for which there is no number, and waits for one.
    #[cold]
    fn has_no_number(&self, out: &mut SendSide) -> bool {
        out.credits += 1;
        out.under_way -= 1;
        out.asked = out.asked.wrapping_sub(1);
        false
    }

    /// Takes a credit, but leaves so many, and a receive for the answer, if there are both.
    #[inline]
    pub(super) fn takes_credit(self: &Arc<Self>, out: &mut SendSide, leaves: u16) -> bool {
        let takes = out.credits > leaves && (out.under_way < out.leases || self.lease(out));
        if takes {
            out.credits -= 1;
            out.under_way += 1;
            out.asked = out.asked.wrapping_add(1);
        }
        takes
    }

    /// Has a receive promised for one more answer. If there is none, the link is told when there
    /// may be one.
    #[cold]
    fn lease(self: &Arc<Self>, out: &mut SendSide) -> bool {
        if usize::from(out.leases) >= self.most_credits() {
            return false;
        }
        let mut found = self.buffers.promise_for_answers(1);
        if found == 0 {
            self.endpoint.starving.add(self.clone());
            // A receive that was released before the link was on the list has told nobody.
            found = self.buffers.promise_for_answers(1);
        }
        out.leases += found as u16;
        if found > 0 {
            self.has_leased(out);
        }
        found > 0
    }

    /// Wakes a task that waits for a credit, since there may be a receive for one more answer.
    fn fed(self: &Arc<Self>) {
        let out = &mut *self.send_side();
        self.uses_credits(out, 1);
        self.changed(out);
    }

    /// Tells the links that lack a receive for an answer that there may be one.
    fn feed_starving(&self) {
        self.endpoint.starving.take().into_iter().for_each(|link| link.fed());
    }

    /// Returns whether messages to the peer leave from buffers, and are not copied straight into the
    /// device.
    pub fn leaves_from_buffers(&self) -> bool {
        let out = self.send_side();
        out.outbox.as_ref().is_some_and(super::outbox::Outbox::leaves_from_buffers)
    }

    /// Gives back a credit that was not used.
    pub fn put_back(self: &Arc<Self>) {
        let mut out = self.send_side();
        out.credits += 1;
        out.asked = out.asked.wrapping_sub(1);
        self.come_back(out, 1);
    }

    /// Takes in credits that come back with answers, as far as so many requests that no caller
    /// awaits are under way. Returns whether a task was woken.
    #[inline]
    pub fn credit(self: &Arc<Self>, count: u16) -> bool {
        let mut out = self.send_side();
        let count = count.min(out.one_way);
        out.one_way -= count;
        out.credits += count;
        self.come_back(out, count)
    }

    /// Takes in the credit that comes back with the answer to a request that no caller awaits.
    /// Returns whether a task was woken; `None` if no such request is under way, so that the peer
    /// answers what it was not asked.
    #[inline]
    pub fn answered_one_way(self: &Arc<Self>) -> Option<bool> {
        let mut out = self.send_side();
        out.one_way = out.one_way.checked_sub(1)?;
        out.credits += 1;
        Some(self.come_back(out, 1))
    }

    /// Takes in credits that the peer grants beyond those it has granted before. Returns whether a
    /// task was woken.
    #[cold]
    pub fn granted(self: &Arc<Self>, count: u16) -> bool {
        let mut out = self.send_side();
        out.credits = (out.credits + count).min(MOST_CREDITS as u16 - out.under_way);
        let woke = self.uses_credits(&mut out, count.into());
        self.changed(&mut out);
        woke
    }

    /// Takes in the answer to a call, and with it the call's credit. The answer is put `here` if
    /// the looking task waits for it, and into the reply table otherwise. Returns whether a task
    /// was woken.
    #[inline]
    pub fn answered(
        self: &Arc<Self>,
        call: u16,
        answer: impl FnOnce() -> Answer,
        here: Option<&mut Option<Answer>>,
    ) -> bool {
        let (mut out, mut later) = (self.send_side(), None);
        let here = here.filter(|_| out.calls.hand_over(call));
        // Called in one place, so that it is inlined here and writes the answer where it belongs.
        *here.unwrap_or(&mut later) = Some(answer());
        let woke = match later {
            None => false,
            Some(answer) => {
                if out.awaits_credit {
                    Self::is_not_told(&mut out, call);
                }
                match out.calls.complete(call, answer) {
                    Some(woke) => woke,
                    None => return false,
                }
            }
        };
        out.credits += 1;
        woke | self.come_back(out, 1)
    }

    /// Takes off requests that were answered or not sent, and releases receives that are not needed
    /// for their answers any more. Returns whether a task was woken.
    #[inline]
    pub(super) fn come_back(self: &Arc<Self>, mut out: Sending<'_>, count: u16) -> bool {
        let _flow = span(Cost::FlowControl);
        if out.ending.is_some() {
            return false;
        }
        out.under_way -= count;
        let needed = out.least_leases.max(out.under_way.min(out.leases));
        // While most receives are needed all of them stay, since the next request may need them
        // again, unless other links have none.
        let stay = 2 * out.under_way > out.leases && !self.endpoint.starving.any();
        let more = if stay { 0 } else { out.leases - needed };
        out.leases -= more;
        let woke = self.uses_credits(&mut out, count.into());
        self.changed(&mut out);
        drop(out);
        self.release_receives(more.into());
        woke
    }

    /// Releases receives that were promised for the link.
    pub fn release_receives(&self, count: usize) {
        if count > 0 {
            self.buffers.release(count);
            self.feed_starving();
        }
    }

    /// Releases the receives of a link that is over, all of whose messages are handled.
    pub fn retire_receives(&self, count: usize) {
        if count > 0 {
            self.buffers.retired(count);
            self.feed_starving();
        }
    }

    /// Returns whether credits may be recalled from the peer: not while it is being asked.
    pub fn can_be_recalled(&self) -> bool {
        self.is_open() && self.grants() > 1 && !self.is_recalled()
    }

    /// Returns whether the peer is being asked to give up credits.
    pub fn is_recalled(&self) -> bool {
        self.recalled.load(Ordering::Relaxed)
    }

    pub fn set_recalled(&self, recalled: bool) {
        self.recalled.store(recalled, Ordering::Relaxed);
    }

    /// Returns whether no request has come since this was asked before.
    pub fn is_idle(&self) -> bool {
        let received = self.received.load(Ordering::Relaxed);
        self.received_at_mark.swap(received, Ordering::Relaxed) == received
    }

    /// Takes back up to `count` credits that the peer gives up, but leaves it one. Returns how many
    /// were taken back.
    pub fn take_back(self: &Arc<Self>, count: usize) -> usize {
        let mut given = 0;
        let _ = self.grants.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |grants| {
            given = count.min(usize::from(grants.saturating_sub(1)));
            Some(grants - given as u16)
        });
        let mut out = self.send_side();
        // Too few to be reported before, the requests that are done may be all that the peer has
        // under way now.
        self.report_done(&mut out);
        self.relieve(&mut out);
        given
    }

    /// Gives up receives that are promised for answers and that no request under way needs. Returns
    /// how many.
    pub fn yield_leases(&self) -> usize {
        let out = &mut *self.send_side();
        // As many stay as the peer may have handled requests without reporting them.
        out.least_leases = out.least_leases.min((self.own_limit / 4).max(1));
        let unused = out.leases.saturating_sub(out.under_way.max(out.least_leases));
        out.leases -= unused;
        unused.into()
    }

    /// Takes all receives from the link, which is over. Returns how many of the shared receives
    /// were promised for it.
    pub fn take_promised(&self) -> usize {
        let out = &mut *self.send_side();
        out.least_leases = 0;
        let leases = usize::from(std::mem::take(&mut out.leases));
        let all = usize::from(self.grants.swap(0, Ordering::Relaxed)) + leases;
        if self.own_receives.is_some() { 0 } else { all }
    }

    /// Posts a buffer that was received into, or another in its place.
    #[inline]
    pub fn post(&self, buffer: Buf) {
        match &self.own_receives {
            None => self.buffers.post(buffer),
            Some(own) => own.post(buffer),
        }
    }

    /// Takes back a receive's buffer that the NIC has flushed. Returns the buffer if it is to be
    /// posted again, since other links share it.
    pub fn flushed(&self, buffer: Buf) -> Option<Buf> {
        if self.own_receives.is_none() {
            return Some(buffer);
        }
        self.buffers.give(buffer);
        None
    }
}

impl SendSide {
    /// Returns who has the credits, for errors.
    #[cold]
    pub fn who_has_credits(&self) -> Credits {
        Credits { under_way: self.under_way, given_up: self.calls.abandoned() as u16 }
    }

    /// Gives up all credits but one, since the peer recalls them. Returns how many were given up.
    pub fn yield_credits(&mut self) -> usize {
        let kept = u16::from(self.under_way == 0);
        let given = self.credits.saturating_sub(kept);
        self.credits -= given;
        self.leave_for_answers();
        given.into()
    }

    /// Has `waker` woken when there is a credit. The task gets a `ticket` when it first waits.
    pub fn wait(&mut self, ticket: &mut Option<u64>, waker: &Waker) {
        self.waiters.get_or_insert_default().wait(ticket, waker);
        self.awaits_credit = true;
    }

    /// Takes a task off those that wait for a credit. If it was woken and leaves a credit behind,
    /// the next task is woken.
    pub fn leave(&mut self, ticket: u64) {
        let Some(waiters) = &mut self.waiters else { return };
        if waiters.leave(ticket) && self.credits > 0 {
            self.wake(1);
        }
    }

    /// Wakes up to `count` tasks that wait for a credit. Returns whether there were any.
    #[inline]
    pub(super) fn wake(&mut self, count: usize) -> bool {
        self.awaits_credit && self.wake_some(count)
    }

    #[cold]
    pub(super) fn wake_some(&mut self, count: usize) -> bool {
        self.waiters.as_mut().is_some_and(|waiters| waiters.wake(count))
    }
}
