//! The state of a team: which collectives this process has begun, and what has come for them.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use doorbell_collectives::Operation;

use crate::group::collective::Collective;
use crate::group::failure::{Cause, Failure};
use crate::group::team::Team;
use crate::group::wire::Label;

/// The most collectives that a program may call in a row without one that synchronises all
/// members. Before the next one, the team runs a barrier by itself.
pub(in crate::group) const MOST_AHEAD: u64 = 16;
/// The most by which the sequence number of a message may exceed that of the last collective that
/// this member has begun. A sender waits for a synchronising collective at least `MOST_AHEAD` back,
/// and one of each `MOST_AHEAD + 1` collectives synchronises.
const WINDOW: u64 = 2 * (MOST_AHEAD + 1);
/// The number of past collectives that a member remembers. A message of another collective with the
/// same number is reported as a mismatch, even if this member is done already.
const REMEMBERED: usize = 64;
/// The most messages that one member sends to another in one collective, by any schedule.
const MOST_FROM_ONE: usize = 2;

/// The identity of a message within a team: the collective's sequence number, the rank in the whole
/// group of the member at the other end, and the round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::group) struct Key {
    pub sequence: u64,
    pub from: u32,
    pub round: u32,
}

impl Key {
    fn of(sequence: u64, label: Label) -> Self {
        Self { sequence, from: label.from, round: label.round }
    }
}

/// A message whose first piece has arrived.
#[derive(Debug)]
pub(in crate::group) struct Arrived {
    key: Key,
    collective: Collective,
    /// The length of the whole message.
    pub total: u64,
    /// The bytes of the first piece.
    pub piece: Bytes,
}

/// A message of several pieces that this member is receiving.
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

/// The sequence number of a new collective, and the earlier collective that it must wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::group) struct Ticket {
    pub sequence: u64,
    /// The sequence number of the synchronising collective that must be done before this one
    /// sends; 0 if there is none.
    pub fence: u64,
}

/// The reason to refuse a message: the failure of its sender, or `None` for a message that is only
/// dropped and counted.
pub(in crate::group) type Wrong = Option<Failure>;

/// The state of a team at one of its members.
pub(in crate::group) struct Context {
    pub team: Arc<Team>,
    /// The number of the last collective that was begun.
    last: u64,
    /// The number of collectives begun since the last one that synchronises.
    since: u64,
    /// The sequence numbers of recent synchronising collectives, which new collectives do not wait
    /// for yet.
    synchronising: VecDeque<u64>,
    /// The sequence number of the synchronising collective that new collectives wait for.
    fence: u64,
    /// The highest sequence number of a synchronising collective that is done.
    synchronised: u64,
    /// The collectives that are begun and not done, in the order of their sequence numbers.
    open: VecDeque<Begun>,
    /// The collectives that were begun last, done or not: at most [`REMEMBERED`].
    recent: VecDeque<Begun>,
    arrived: Vec<Arrived>,
    inflows: Vec<Inflow>,
    /// The messages of this member whose receivers have asked for the rest. The member in such a
    /// key is the receiver.
    cleared: Vec<Key>,
    /// Set once this member leaves the team: from then on it begins no further collective.
    leaving: bool,
    /// The members that have left the team, by their ranks in the whole group.
    left: Vec<u32>,
    /// The failure by which all collectives behind [its number](Failure::after) fail.
    broken: Option<Failure>,
    /// The lowest sequence number from which this member has told others that collectives fail
    /// because a member has left.
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

    /// The sequence number of the last collective that this member has begun; 0 before the first.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns whether all collectives that this member has begun are done.
    pub fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Begins the barrier that the next collective must wait for, if too many collectives have gone
    /// without one that synchronises. Must be called before each [`begin`](Self::begin).
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

    /// Begins a collective, and returns its sequence number with the one that it must wait for.
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

    /// Returns the failure of a member whose message has arrived for another collective than the
    /// one that this member has just begun with the same sequence number. Messages for another
    /// collective are dropped, so that the begun one takes none of them for its own.
    pub fn mismatch(&mut self, sequence: u64, collective: Collective) -> Option<Failure> {
        let other = |arrived: &Arrived| {
            arrived.key.sequence == sequence && arrived.collective != collective
        };
        let arrived = self.arrived.iter().find(|arrived| other(arrived))?;
        let cause = Cause::Mismatch { here: collective, there: arrived.collective };
        let failure = Failure { whole: arrived.key.from, after: sequence - 1, cause };
        let failure = failure.blamed(self.own());
        self.arrived.retain(|arrived| !other(arrived));
        Some(failure)
    }

    /// Ends a collective, successfully if `done`, and drops all that has arrived for it. Returns
    /// whether another task may be waiting for the end.
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

    /// Has this member begin no further collective. Returns whether it was allowed to until now.
    pub fn begins_to_leave(&mut self) -> bool {
        !std::mem::replace(&mut self.leaving, true)
    }

    /// Records that others are told that collectives behind the number `after` fail because a
    /// member has left. Returns whether that is more than they were told before.
    pub fn is_to_tell(&mut self, after: u64) -> bool {
        let is_news = after < self.told;
        self.told = self.told.min(after);
        is_news
    }

    /// Returns whether the collective that a [`Ticket`] names as its fence is done.
    #[inline]
    pub fn is_past(&self, fence: u64) -> bool {
        self.synchronised >= fence
    }

    /// Returns the failure by which a collective fails, if there is one.
    #[inline]
    pub fn failure(&self, sequence: u64) -> Option<&Failure> {
        self.broken.as_ref().filter(|failure| sequence > failure.after)
    }

    /// Returns the failure of the team, if there is one, whichever collectives it concerns.
    pub fn broken(&self) -> Option<&Failure> {
        self.broken.as_ref()
    }

    /// Records a failure of the team. Returns whether more collectives fail than before.
    pub fn fail(&mut self, failure: &Failure) -> bool {
        let worse = self.broken.as_ref().is_none_or(|before| failure.after < before.after);
        if worse {
            self.broken = Some(failure.clone());
        }
        worse
    }

    /// Records that a member has left the team after the collective with the number `last`.
    pub fn leaves(&mut self, whole: u32, last: u64) {
        if !self.has_left(whole) {
            self.left.push(whole);
        }
        self.fail(&Failure { whole, after: last, cause: Cause::Left });
    }

    pub fn has_left(&self, whole: u32) -> bool {
        self.left.contains(&whole)
    }

    /// Takes a message, of which there is at least the first piece, if it has arrived.
    #[inline]
    pub fn take(&mut self, key: Key) -> Option<Arrived> {
        let at = self.arrived.iter().position(|arrived| arrived.key == key)?;
        Some(self.arrived.swap_remove(at))
    }

    /// Prepares to receive the rest of a message after its first piece.
    pub fn receive_rest(&mut self, arrived: &Arrived) {
        let &Arrived { key, total, ref piece, .. } = arrived;
        self.inflows.push(Inflow { key, total, bytes: piece.to_vec() });
    }

    /// Takes a message of several pieces, if all of them have arrived.
    pub fn take_whole(&mut self, key: Key) -> Option<Vec<u8>> {
        let whole =
            |inflow: &Inflow| inflow.key == key && inflow.bytes.len() as u64 == inflow.total;
        let at = self.inflows.iter().position(whole)?;
        Some(self.inflows.swap_remove(at).bytes)
    }

    /// Takes the request for the rest of a message that this member sends to the member in `key`.
    /// Returns whether there was such a request.
    pub fn take_cleared(&mut self, key: Key) -> bool {
        let at = self.cleared.iter().position(|cleared| *cleared == key);
        at.map(|at| self.cleared.swap_remove(at)).is_some()
    }

    /// Keeps the first piece of a message for the collective that will take the message.
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

    /// Appends a further piece to a message whose rest this member has asked for.
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

    /// Records that a member asks for the rest of a message that this member sends.
    pub fn clears(&mut self, sequence: u64, label: Label) -> Result<(), Wrong> {
        self.belongs(sequence, label)?;
        let key = Key::of(sequence, label);
        // Only a member that has begun the collective has sent anything, and can be asked for the
        // rest.
        let of_one = |clear: &&Key| clear.sequence == sequence && clear.from == label.from;
        let before = self.cleared.iter().filter(of_one);
        let twice = before.clone().any(|clear| clear.round == label.round);
        if sequence > self.last || twice || before.count() >= MOST_FROM_ONE {
            return Err(malformed(label.from));
        }
        self.cleared.push(key);
        Ok(())
    }

    /// Checks that a message is of a collective that this member is in or may soon begin. The error
    /// is the failure of a sender that is in another collective or too far ahead, and `None` for a
    /// message that is merely late.
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
                let failure = Failure { whole: label.from, after: sequence - 1, cause };
                Err(Some(failure.blamed(self.own())))
            }
            Some(begun) if self.is_open(begun.sequence) => Ok(()),
            _ => Err(None),
        }
    }

    /// The rank of this member in the whole group.
    fn own(&self) -> u32 {
        self.team.whole(self.team.rank)
    }

    fn is_open(&self, sequence: u64) -> bool {
        self.open.binary_search_by_key(&sequence, |begun| begun.sequence).is_ok()
    }
}

fn malformed(whole: u32) -> Wrong {
    Some(Failure { whole, after: 0, cause: Cause::Malformed })
}
