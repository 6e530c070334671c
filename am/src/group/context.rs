//! The state of a team: which collectives this process has begun, and what has come for them.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::collective::{Collective, Operation};
use super::failure::{Cause, Failure};
use super::team::Team;
use super::wire::Label;

/// How many collectives may be called without one that synchronises all members. Then a barrier is
/// put in between.
pub(super) const MOST_AHEAD: u64 = 16;
/// How far the sequence numbers of what has come may be beyond this member's own: what is sent
/// waits for the completion of a collective that synchronises, and one is among each `MOST_AHEAD +
/// 1`.
const WINDOW: u64 = 2 * (MOST_AHEAD + 1);
/// How many collectives that are done are remembered, to tell members that are in others what is
/// wrong.
const REMEMBERED: usize = 64;
/// The most messages that a member sends to another within a collective, in any schedule.
const MOST_FROM_ONE: usize = 2;

/// What a message of a team is known by: the collective's number, and who has sent it in which
/// round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key {
    pub sequence: u64,
    pub from: u32,
    pub round: u32,
}

impl Key {
    fn of(sequence: u64, label: Label) -> Self {
        Self { sequence, from: label.from, round: label.round }
    }
}

/// A message of which the first piece has come.
#[derive(Debug)]
pub(super) struct Arrived {
    key: Key,
    collective: Collective,
    /// The length of the whole message.
    pub total: u64,
    /// The first piece.
    pub piece: Bytes,
}

/// A longer message that this member is receiving.
#[derive(Debug)]
struct Inflow {
    key: Key,
    total: u64,
    bytes: Vec<u8>,
}

/// A collective that this member has begun.
#[derive(Clone, Copy, Debug)]
struct Begun {
    sequence: u64,
    collective: Collective,
}

/// The number of a collective that begins, and of the one before that must be done first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ticket {
    pub sequence: u64,
    /// Of a collective that synchronises; 0 if none must be done.
    pub fence: u64,
}

/// What is wrong with something that has come. `None` if it is only to be counted.
pub(super) type Wrong = Option<Failure>;

/// The state of a team at one of its members.
pub(super) struct Context {
    pub team: Arc<Team>,
    /// The number of the last collective that was begun.
    last: u64,
    /// How many were begun since the last that synchronises.
    since: u64,
    /// The numbers of those that synchronise and are too new to be waited for.
    synchronising: VecDeque<u64>,
    /// What must be done before anything else is sent.
    fence: u64,
    /// The highest number of one that synchronises and is done.
    synchronised: u64,
    /// What was begun and is not done, by number.
    open: VecDeque<Begun>,
    /// What was begun last, done or not.
    recent: VecDeque<Begun>,
    arrived: Vec<Arrived>,
    inflows: Vec<Inflow>,
    /// Messages of this member's of which the receivers have asked for the rest. `from` is the
    /// receiver.
    cleared: Vec<Key>,
    /// Whether this member is about to leave, and begins nothing more.
    leaving: bool,
    /// Members that have left.
    left: Vec<u32>,
    /// Why collectives behind [some number](Failure::after) fail.
    broken: Option<Failure>,
    /// The least number behind which this member has told others that collectives fail because one
    /// has left.
    told: u64,
}

impl Context {
    pub fn new(team: Arc<Team>) -> Self {
        Self {
            team,
            last: 0,
            since: 0,
            synchronising: VecDeque::new(),
            fence: 0,
            synchronised: 0,
            open: VecDeque::new(),
            recent: VecDeque::new(),
            arrived: Vec::new(),
            inflows: Vec::new(),
            cleared: Vec::new(),
            leaving: false,
            left: Vec::new(),
            broken: None,
            told: u64::MAX,
        }
    }

    /// The number of the last collective that this member has begun.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Whether nothing that was begun is still to be done.
    pub fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Begins the barrier that must come before the next collective, if one must.
    pub fn begin_fence(&mut self) -> Option<Ticket> {
        if self.since < MOST_AHEAD || self.team.size() == 1 {
            return None;
        }
        let sequence = self.begin_any(Collective::of(Operation::Barrier));
        let ticket = Ticket { sequence, fence: self.fence };
        self.fence = sequence;
        self.since = 0;
        self.synchronising.clear();
        Some(ticket)
    }

    /// Begins a collective, for which nothing else must have been begun.
    pub fn begin(&mut self, collective: Collective) -> Ticket {
        let sequence = self.begin_any(collective);
        while let Some(&old) = self.synchronising.front()
            && old + MOST_AHEAD <= sequence
        {
            self.fence = self.fence.max(old);
            self.synchronising.pop_front();
        }
        let fence = self.fence;
        self.since += 1;
        if collective.operation.synchronises() {
            self.since = 0;
            self.synchronising.push_back(sequence);
        }
        Ticket { sequence, fence }
    }

    fn begin_any(&mut self, collective: Collective) -> u64 {
        self.last += 1;
        let begun = Begun { sequence: self.last, collective };
        self.open.push_back(begun);
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(begun);
        self.last
    }

    /// A member is in another collective than this one, which this member has just begun.
    pub fn mismatch(&self, sequence: u64, collective: Collective) -> Option<Failure> {
        let other = |arrived: &&Arrived| {
            arrived.key.sequence == sequence && arrived.collective != collective
        };
        let arrived = self.arrived.iter().find(other)?;
        let cause = Cause::Mismatch { here: collective, there: arrived.collective };
        Some(Failure { whole: arrived.key.from, after: sequence - 1, cause })
    }

    /// A collective is done, or has failed. Whether anybody may wait for that.
    pub fn end(&mut self, sequence: u64, done: bool) -> bool {
        let before = self.synchronised;
        if let Ok(at) = self.open.binary_search_by_key(&sequence, |begun| begun.sequence) {
            let begun = self.open.remove(at);
            if done && begun.is_some_and(|begun| begun.collective.operation.synchronises()) {
                self.synchronised = before.max(sequence);
            }
        }
        self.arrived.retain(|arrived| arrived.key.sequence != sequence);
        self.inflows.retain(|inflow| inflow.key.sequence != sequence);
        self.cleared.retain(|key| key.sequence != sequence);
        (before < self.fence && self.synchronised > before) || (self.leaving && self.is_idle())
    }

    pub fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// This member begins nothing more. Whether that is new.
    pub fn begins_to_leave(&mut self) -> bool {
        !std::mem::replace(&mut self.leaving, true)
    }

    /// Whether others are to be told that collectives behind a number fail because a member has
    /// left: once, unless it is fewer that they know of.
    pub fn is_to_tell(&mut self, after: u64) -> bool {
        let is_news = after < self.told;
        self.told = self.told.min(after);
        is_news
    }

    /// Whether what must be done before a collective is done.
    #[inline]
    pub fn is_past(&self, fence: u64) -> bool {
        self.synchronised >= fence
    }

    /// Why a collective fails, if it does.
    #[inline]
    pub fn failure(&self, sequence: u64) -> Option<&Failure> {
        self.broken.as_ref().filter(|failure| sequence > failure.after)
    }

    /// Why collectives fail from some number on, if any do.
    pub fn broken(&self) -> Option<&Failure> {
        self.broken.as_ref()
    }

    /// Has collectives fail. Whether some do that did not before.
    pub fn fail(&mut self, failure: &Failure) -> bool {
        let worse = self.broken.as_ref().is_none_or(|before| failure.after < before.after);
        if worse {
            self.broken = Some(failure.clone());
        }
        worse
    }

    /// A member has left behind its collective `last`.
    pub fn leaves(&mut self, whole: u32, last: u64) {
        if !self.has_left(whole) {
            self.left.push(whole);
        }
        self.fail(&Failure { whole, after: last, cause: Cause::Left });
    }

    pub fn has_left(&self, whole: u32) -> bool {
        self.left.contains(&whole)
    }

    /// Takes the message that has come from a member in a round.
    #[inline]
    pub fn take(&mut self, key: Key) -> Option<Arrived> {
        let at = self.arrived.iter().position(|arrived| arrived.key == key)?;
        Some(self.arrived.swap_remove(at))
    }

    /// Goes on to receive a message of which the first piece is all that has come.
    pub fn receive_rest(&mut self, arrived: &Arrived) {
        let &Arrived { key, total, ref piece, .. } = arrived;
        self.inflows.push(Inflow { key, total, bytes: piece.to_vec() });
    }

    /// Takes a longer message, if all of it has come.
    pub fn take_whole(&mut self, key: Key) -> Option<Vec<u8>> {
        let whole =
            |inflow: &Inflow| inflow.key == key && inflow.bytes.len() as u64 == inflow.total;
        let at = self.inflows.iter().position(whole)?;
        Some(self.inflows.swap_remove(at).bytes)
    }

    /// Takes the request for the rest of a message that this member sends: the `key` has the
    /// receiver.
    pub fn take_cleared(&mut self, key: Key) -> bool {
        let at = self.cleared.iter().position(|cleared| *cleared == key);
        at.map(|at| self.cleared.swap_remove(at)).is_some()
    }

    /// The first piece of a message has come.
    pub fn arrives(
        &mut self,
        sequence: u64,
        label: Label,
        total: u64,
        piece: Bytes,
    ) -> Result<(), Wrong> {
        self.belongs(sequence, label)?;
        let key = Key::of(sequence, label);
        let of_one =
            |arrived: &&Arrived| arrived.key.sequence == sequence && arrived.key.from == label.from;
        let before = self.arrived.iter().filter(of_one);
        let twice = before.clone().any(|arrived| arrived.key.round == label.round);
        if twice || before.count() >= MOST_FROM_ONE || piece.len() as u64 > total {
            return Err(malformed(label.from));
        }
        self.arrived.push(Arrived { key, collective: label.collective, total, piece });
        Ok(())
    }

    /// A further piece of a message has come: of one that this member has asked for.
    pub fn goes_on(
        &mut self,
        sequence: u64,
        label: Label,
        offset: u64,
        piece: &[u8],
    ) -> Result<(), Wrong> {
        self.belongs(sequence, label)?;
        let key = Key::of(sequence, label);
        let inflow = self.inflows.iter_mut().find(|inflow| inflow.key == key);
        let inflow = inflow.ok_or_else(|| malformed(label.from))?;
        let end = offset.checked_add(piece.len() as u64);
        if offset != inflow.bytes.len() as u64 || end.is_none_or(|end| end > inflow.total) {
            return Err(malformed(label.from));
        }
        inflow.bytes.extend_from_slice(piece);
        Ok(())
    }

    /// A member asks for the rest of a message that this member sends.
    pub fn clears(&mut self, sequence: u64, label: Label) -> Result<(), Wrong> {
        self.belongs(sequence, label)?;
        let key = Key::of(sequence, label);
        // Nobody is asked who has not sent.
        let of_one = |clear: &&Key| clear.sequence == sequence && clear.from == label.from;
        let before = self.cleared.iter().filter(of_one);
        let twice = before.clone().any(|clear| clear.round == label.round);
        if sequence > self.last || twice || before.count() >= MOST_FROM_ONE {
            return Err(malformed(label.from));
        }
        self.cleared.push(key);
        Ok(())
    }

    /// Whether a message of a collective may be kept: one that this member is in, or will soon be.
    /// If not, the failure of the sender, if it is one and not only late.
    pub fn belongs(&self, sequence: u64, label: Label) -> Result<(), Wrong> {
        if self.failure(sequence).is_some() || self.team.rank_of(label.from).is_none() {
            return Err(None);
        }
        if sequence > self.last {
            let within = sequence - self.last <= WINDOW;
            return if within { Ok(()) } else { Err(malformed(label.from)) };
        }
        let oldest = self.recent.front().map_or(u64::MAX, |begun| begun.sequence);
        let recent = sequence.checked_sub(oldest).and_then(|at| self.recent.get(at as usize));
        let open = || {
            let at = self.open.binary_search_by_key(&sequence, |begun| begun.sequence);
            at.ok().map(|at| &self.open[at])
        };
        match recent.or_else(open) {
            Some(begun) if begun.collective != label.collective => {
                let cause = Cause::Mismatch { here: begun.collective, there: label.collective };
                Err(Some(Failure { whole: label.from, after: sequence - 1, cause }))
            }
            Some(begun) if self.is_open(begun.sequence) => Ok(()),
            _ => Err(None),
        }
    }

    fn is_open(&self, sequence: u64) -> bool {
        self.open.binary_search_by_key(&sequence, |begun| begun.sequence).is_ok()
    }
}

fn malformed(whole: u32) -> Wrong {
    Some(Failure { whole, after: 0, cause: Cause::Malformed })
}
