//! What the responder answers with more than an acknowledgement: reads and atomic operations.
//!
//! A read is not copied when it is asked for: its answers are made from memory when they are sent,
//! a packet at a time, with the key looked at each time. So a read that comes again, whole or from
//! its middle on, is carried out again. An atomic operation is carried out once, when it is
//! asked for first, and its result remembered: as many as the peer may have under way.

use std::collections::VecDeque;

use crate::encap::Full;
use crate::payload::WordBytes;
use crate::wire::{
    Aeth, AtomicEth, AtomicValue, Bth, Extensions, Headers, Nak, Opcode, Psn, RemoteAddr, Reth,
    Rkey, Syndrome,
};

use super::common::Common;
use super::completion::Cause;
use super::device::Outbox;
use super::keys::{KeyError, Keys};
use super::pair::{Blamed, QueuePair};
use super::responder::{Answered, Due, Refusal};
use super::rights::Rights;
use super::work::LONGEST_MESSAGE;
use crate::planted::{Bug, planted};

/// Something to be sent that was asked for.
#[derive(Clone, Copy)]
enum Answer {
    /// What is left of a read.
    Read { psn: Psn, address: RemoteAddr, rkey: Rkey, left: u32, begun: bool },
    /// The result of an atomic operation.
    Atomic { psn: Psn, before: u64 },
    /// That what was answered before is not to be had any more.
    Refusal { psn: Psn },
}

impl Answer {
    fn psn(&self) -> Psn {
        match *self {
            Self::Read { psn, .. } | Self::Atomic { psn, .. } | Self::Refusal { psn } => psn,
        }
    }
}

#[derive(Clone, Copy)]
struct Owed {
    answer: Answer,
    /// Whether all of it was sent before: the peer may have it, and go on.
    again: bool,
}

/// What is owed to the peer, in the order of its sequence numbers, and what was.
#[derive(Default)]
pub(super) struct Answers {
    /// The most that the peer may ask for at a time.
    most: usize,
    owed: VecDeque<Owed>,
    /// The results of the last atomic operations, each in the place of the one that it replaced.
    results: VecDeque<(Psn, u64)>,
}

impl Answers {
    pub fn start(&mut self, most: u8) {
        self.most = most.into();
    }

    /// Allocates the tables, with one more for what comes again while all are owed: when a peer
    /// asks for the first time, for many never do.
    #[cold]
    fn begin(&mut self) {
        self.owed.reserve(self.most + 1);
        self.results.reserve(self.most);
    }

    pub fn forget(&mut self) {
        self.owed.clear();
        self.results.clear();
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.owed.is_empty()
    }

    /// Whether the peer asks for more at a time than it may. What it asks for again, and perhaps
    /// only because the network was slow, does not count: if it asks for more, it has that.
    #[inline]
    fn are_full(&mut self) -> bool {
        if self.owed.capacity() == 0 {
            self.begin();
        }
        while self.owed.len() >= self.most && self.owed.front().is_some_and(|owed| owed.again) {
            self.owed.pop_front();
        }
        self.owed.len() >= self.most
    }

    #[inline]
    fn add(&mut self, answer: Answer) {
        self.owed.push_back(Owed { answer, again: false });
    }

    /// Adds something that was asked for again. Whatever is owed behind it will be asked for again
    /// as well: its peer has gone back.
    fn add_again(&mut self, answer: Answer, packets: u32) {
        let (psn, mut again) = (answer.psn(), true);
        // What ends before the first that is owed takes nothing from that: it is a late copy.
        let first = self.owed.front().map(|owed| owed.answer.psn());
        if first.is_some_and(|first| first.distance_from(psn) >= packets as i32) {
            if self.owed.len() <= self.most {
                self.owed.push_front(Owed { answer, again });
            }
            return;
        }
        while let Some(last) = self.owed.back()
            && let ahead = last.answer.psn().distance_from(psn)
            && ahead >= 0
        {
            // The rest of a read that was not all sent yet is none that was.
            again &= last.again || ahead >= packets as i32;
            self.owed.pop_back();
        }
        // A read that was only begun ends where this one begins, and comes whole with it.
        if self.owed.len() <= self.most {
            self.owed.push_back(Owed { answer, again });
        }
    }

    #[inline]
    fn remember(&mut self, psn: Psn, before: u64) {
        if self.results.len() >= self.most {
            self.results.pop_front();
        }
        self.results.push_back((psn, before));
    }

    /// The result of the atomic operation of this number: the last, for numbers come again.
    fn result(&self, psn: Psn) -> Option<u64> {
        let found = self.results.iter().rev().find(|(other, _)| *other == psn);
        found.map(|&(_, before)| before)
    }
}

impl QueuePair {
    /// Takes a read of this side's memory, or refuses it.
    #[inline(always)]
    pub fn take_read(&mut self, headers: Headers, keys: &Keys) -> Result<(), Refusal> {
        let Extensions::Reth(reth) = headers.extensions else { return Err(Refusal::INVALID) };
        self.may_read(&reth, keys)?;
        let (psn, Reth { address, rkey, length }) = (headers.bth.psn(), reth);
        let read = Answer::Read { psn, address, rkey, left: length.0, begun: false };
        let r = &mut self.responder;
        if r.answers.are_full() {
            return Err(Refusal::INVALID);
        }
        r.answers.add(read);
        r.completed = r.completed.add(1);
        // It takes a number for each packet of its answer; the last is counted as others are.
        r.expected = r.expected.add(self.mtu.packets(length.0) - 1);
        Ok(())
    }

    #[inline(always)]
    fn may_read(&self, reth: &Reth, keys: &Keys) -> Result<(), Refusal> {
        let Reth { address, rkey, length } = *reth;
        if length.0 > LONGEST_MESSAGE {
            return Err(Refusal::INVALID);
        }
        self.granted(Rights::REMOTE_READ)?;
        // A read of nothing touches no memory, and its key is not looked at.
        if length.0 == 0 {
            return Ok(());
        }
        let len = u64::from(length.0);
        if keys.remote(self.domain, rkey, Rights::REMOTE_READ, address, len).is_err() {
            keys.lent(self.domain, rkey, address, len)
                .map_err(|why| Refusal::access_to((address, len), why))?;
        }
        Ok(())
    }

    /// Answers a read again, or a part of one: as much as was asked for before.
    pub fn read_again(&mut self, headers: Headers, common: &mut Common) {
        let (psn, Extensions::Reth(reth)) = (headers.bth.psn(), headers.extensions) else { return };
        let packets = self.mtu.packets(reth.length.0);
        let beyond = psn.add(packets);
        if reth.length.0 > LONGEST_MESSAGE || beyond.distance_from(self.responder.expected) > 0 {
            return;
        }
        // What looks like a repetition may be none: nothing is read without the right to.
        if reth.length.0 > 0 && !self.rights.include(Rights::REMOTE_READ) {
            return;
        }
        let Reth { address, rkey, length } = reth;
        let read = Answer::Read { psn, address, rkey, left: length.0, begun: false };
        self.responder.answers.add_again(read, packets);
        common.owe_answer(self);
    }

    /// Carries an atomic operation out, or refuses it.
    #[inline(always)]
    pub fn take_atomic(&mut self, headers: Headers, keys: &Keys) -> Result<(), Refusal> {
        let Extensions::Atomic(atomic) = headers.extensions else { return Err(Refusal::INVALID) };
        let AtomicEth { address, rkey, swap_or_add, compare } = atomic;
        self.granted(Rights::REMOTE_ATOMIC)?;
        let (region, offset) = keys
            .remote(self.domain, rkey, Rights::REMOTE_ATOMIC, address, 8)
            .map_err(|why| Refusal::access_to((address, 8), why))?;
        let answers = &mut self.responder.answers;
        if answers.are_full() {
            return Err(Refusal::INVALID);
        }
        let done = match headers.bth.opcode() {
            Opcode::RcCompareSwap => region.compare_swap(offset, compare.0, swap_or_add.0),
            _ => region.fetch_add(offset, swap_or_add.0),
        };
        // The range was found to be the region's, so it is the address that is none of a word.
        let before = done.map_err(|_| Refusal::INVALID)?;
        let psn = headers.bth.psn();
        answers.add(Answer::Atomic { psn, before });
        answers.remember(psn, before);
        self.responder.completed = self.responder.completed.add(1);
        Ok(())
    }

    /// Answers an atomic operation again, if its result is remembered.
    pub fn atomic_again(&mut self, headers: Headers, common: &mut Common) {
        if planted(Bug::RepeatsAtomics) {
            let _ = self.take_atomic(headers, &common.keys);
            return common.owe_answer(self);
        }
        let (psn, answers) = (headers.bth.psn(), &mut self.responder.answers);
        let Some(before) = answers.result(psn) else { return };
        answers.add_again(Answer::Atomic { psn, before }, 1);
        common.owe_answer(self);
    }

    /// Sends some of what was asked for.
    pub fn send_answers<O: Outbox>(
        &mut self,
        common: &mut Common,
        outbox: &mut O,
        most: u32,
    ) -> Answered {
        for _ in 0..most {
            let Some(&Owed { answer, again }) = self.responder.answers.owed.front() else { break };
            let sent = match answer {
                Answer::Atomic { psn, before } => self.send_result(psn, before, outbox),
                Answer::Read { psn, address, rkey, left, begun } => {
                    self.send_data(psn, (address, rkey, left), begun, &common.keys, outbox)
                }
                Answer::Refusal { psn } => self.send_refusal(psn, outbox),
            };
            match sent {
                Ok(rest) => self.sent_answer(answer.psn(), rest, common),
                Err(Stop::DeviceFull) => return Answered::DeviceFull,
                Err(Stop::Refused(_)) if again => self.refuse_again(common),
                Err(Stop::Refused(why)) => self.withdraw(answer.psn(), why, common),
            }
        }
        match self.responder.answers.is_empty() {
            true => Answered::All,
            false => Answered::Some,
        }
    }

    fn sent_answer(&mut self, psn: Psn, rest: Option<Answer>, common: &mut Common) {
        common.counters.sent += 1;
        common.counters.answers_sent += 1;
        let r = &mut self.responder;
        match (rest, r.answers.owed.front_mut()) {
            (Some(rest), Some(front)) => front.answer = rest,
            _ => drop(r.answers.owed.pop_front()),
        }
        // The last packet that was taken is answered, and so are all before it.
        if r.due == Due::Ack && psn.add(1) == r.expected {
            r.said();
        }
    }

    /// Refuses to read again. The peer may have been answered the first time, and its request only
    /// have been under way for long: then the memory is rightly taken back, the peer passes over
    /// the refusal, and nothing is broken.
    #[cold]
    fn refuse_again(&mut self, common: &mut Common) {
        if let Some(front) = self.responder.answers.owed.front_mut() {
            common.counters.fatal_naks_sent += 1;
            front.answer = Answer::Refusal { psn: front.answer.psn() };
        }
    }

    /// Refuses a read after it was taken: the memory was taken from it meanwhile.
    #[cold]
    fn withdraw(&mut self, psn: Psn, why: KeyError, common: &mut Common) {
        self.responder.answers.owed.clear();
        self.responder.expected = psn;
        common.counters.fatal_naks_sent += 1;
        common.owe(self, Due::Nak(Syndrome::nak(Nak::RemoteAccess)));
        self.break_with(Cause::Access(why), Blamed::Nothing, common);
    }

    /// Drops what is owed to the peer. One whose device can't lose would wait for it for ever: it
    /// is told.
    pub fn leave_unanswered(&mut self, common: &mut Common) {
        let first = self.responder.answers.owed.front().map(|owed| owed.answer.psn());
        self.responder.answers.forget();
        if let Some(psn) = first.filter(|_| common.lossless) {
            self.responder.expected = psn;
            common.owe(self, Due::Nak(Syndrome::nak(Nak::RemoteOperation)));
        }
    }

    fn aeth(&self) -> Aeth {
        Aeth { syndrome: self.responder.syndrome(), msn: self.responder.completed }
    }

    fn send_refusal<O: Outbox>(&self, psn: Psn, outbox: &mut O) -> Result<Option<Answer>, Stop> {
        let path = self.path.as_ref().ok_or(Stop::DeviceFull)?;
        let bth = Bth::new(Opcode::RcAcknowledge, self.peer, psn).with_pkey(self.pkey);
        let aeth =
            Aeth { syndrome: Syndrome::nak(Nak::RemoteAccess), msn: self.responder.completed };
        outbox.push(path, Headers { bth, extensions: Extensions::Aeth(aeth) }, &[][..])?;
        Ok(None)
    }

    fn send_result<O: Outbox>(
        &self,
        psn: Psn,
        before: u64,
        outbox: &mut O,
    ) -> Result<Option<Answer>, Stop> {
        let path = self.path.as_ref().ok_or(Stop::DeviceFull)?;
        let bth = Bth::new(Opcode::RcAtomicAcknowledge, self.peer, psn).with_pkey(self.pkey);
        let extensions = Extensions::AethAtomicAck(self.aeth(), AtomicValue(before));
        outbox.push(path, Headers { bth, extensions }, &[][..])?;
        Ok(None)
    }

    /// Sends the next packet of a read: what is left of it then.
    fn send_data<O: Outbox>(
        &self,
        psn: Psn,
        (address, rkey, left): (RemoteAddr, Rkey, u32),
        begun: bool,
        keys: &Keys,
        outbox: &mut O,
    ) -> Result<Option<Answer>, Stop> {
        let path = self.path.as_ref().ok_or(Stop::DeviceFull)?;
        let len = left.min(self.mtu.bytes() as u32);
        let rest = left - len;
        let opcode = match (begun, rest > 0) {
            (false, false) => Opcode::RcReadResponseOnly,
            (false, true) => Opcode::RcReadResponseFirst,
            (true, true) => Opcode::RcReadResponseMiddle,
            (true, false) => Opcode::RcReadResponseLast,
        };
        let extensions = match opcode {
            Opcode::RcReadResponseMiddle => Extensions::None,
            _ => Extensions::Aeth(self.aeth()),
        };
        let bth = Bth::new(opcode, self.peer, psn).with_pkey(self.pkey);
        let headers = Headers { bth, extensions };
        match len {
            0 => outbox.push(path, headers, &[][..])?,
            _ => {
                let (needed, long) = (Rights::REMOTE_READ, u64::from(len));
                if let Ok((region, start)) = keys.remote(self.domain, rkey, needed, address, long) {
                    let range = start..start + len as usize;
                    let bytes =
                        WordBytes::new(region.words(), range).ok_or(KeyError::Bounds(rkey.0))?;
                    outbox.push(path, headers, bytes)?
                } else {
                    outbox.push(path, headers, keys.lent(self.domain, rkey, address, long)?)?
                }
            }
        };
        let address = RemoteAddr(address.0.wrapping_add(u64::from(len)));
        let (psn, begun) = (psn.add(1), true);
        Ok((rest > 0).then_some(Answer::Read { psn, address, rkey, left: rest, begun }))
    }
}

/// Why an answer was not sent.
enum Stop {
    DeviceFull,
    Refused(KeyError),
}

impl From<Full> for Stop {
    fn from(_: Full) -> Self {
        Self::DeviceFull
    }
}

impl From<KeyError> for Stop {
    fn from(why: KeyError) -> Self {
        Self::Refused(why)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_a_connection_take_as_much_as_is_documented() {
        let mut answers = Answers::default();
        answers.start(16);
        answers.begin();
        let owed = answers.owed.capacity() * size_of::<Owed>();
        let results = answers.results.capacity() * size_of::<(Psn, u64)>();
        assert!(owed + results <= 800, "{owed} and {results} bytes");
    }

    /// Who does few atomic operations among many other requests comes back to a number while the
    /// result from a whole circle before is remembered, and was once told that one.
    #[test]
    fn of_two_atomics_of_one_number_the_later_is_answered() {
        let mut answers = Answers::default();
        answers.start(3);
        for (psn, before) in [(5, 10), (6, 11), (5, 12)] {
            answers.remember(Psn::new(psn), before);
        }
        assert_eq!([5, 6, 7].map(|psn| answers.result(Psn::new(psn))), [Some(12), Some(11), None]);
    }
}
