//! The mailbox of a group: what has arrived from members, until collectives take it.

pub(in crate::group) mod context;
mod failures;
mod peers;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use bytes::Bytes;
use doorbell_verbs::Name;
use doorbell_verbs::floor::locked;
use tokio::runtime::Handle;

use self::context::{Context, Wrong};
use crate::group::failure::{Cause, Failure};
use crate::group::team::Team;
use crate::group::wire::Label;
use crate::peer::Peer;
use crate::progress::{Bundle, Engine};

/// The most messages of each member that are held for teams which this member has not made yet.
const HELD_OF_EACH: usize = 64;
/// The number of left teams that a member remembers, so that late messages for them are not held.
const PAST: usize = 1024;

/// The content of a message for a team that this member has not made yet.
enum Held {
    Piece { sequence: u64, label: Label, total: u64, piece: Bytes },
    Broken(Failure),
    Leave { whole: u32, last: u64 },
}

/// A message that is held until this member makes the team that the message is for.
struct Early {
    context: u64,
    from: u32,
    held: Held,
}

/// The mailbox of a group at one member: messages for its collectives, connections to other
/// members, and failures. Handlers of messages fill the mailbox, and collectives empty it.
pub(in crate::group) struct Mailbox {
    /// The rank of this process in the whole group.
    pub own: u32,
    pub names: Arc<[Name]>,
    /// The most bytes of a message of a member.
    pub longest: u64,
    state: Mutex<State>,
    /// The number of changes of the state, which a waiting task reads without taking the lock.
    changes: AtomicU64,
    /// The number of messages that were dropped because they belonged nowhere.
    malformed: AtomicU64,
    /// The connection by which each member is sent to, by the member's rank in the whole group.
    peers: Box<[OnceLock<Peer>]>,
    /// The rank of the member at the other end of each connection.
    ranks: Mutex<HashMap<Peer, u32>>,
    bundle: Weak<Engine>,
    pub runtime: Handle,
}

#[derive(Default)]
struct State {
    /// The state of each team that this member is in.
    contexts: Vec<Context>,
    early: Vec<Early>,
    /// The numbers of teams that this member has left.
    past: VecDeque<u64>,
    /// The failures of members that have gone.
    gone: Vec<Failure>,
}

impl State {
    fn context(&mut self, number: u64) -> Option<&mut Context> {
        self.contexts.iter_mut().find(|context| context.team.context == number)
    }

    /// Holds a message for a team that this member may be about to make, unless too many of the
    /// same sender are held already.
    fn hold(&mut self, context: u64, from: u32, held: Held) -> Result<(), Wrong> {
        if self.past.contains(&context) {
            return Err(None);
        }
        if self.early.iter().filter(|early| early.from == from).count() >= HELD_OF_EACH {
            return Err(None);
        }
        self.early.push(Early { context, from, held });
        Ok(())
    }
}

impl Mailbox {
    pub fn new(own: usize, names: Arc<[Name]>, longest: u64, bundle: &Bundle) -> Self {
        Self {
            own: own as u32,
            longest,
            state: Mutex::default(),
            changes: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            peers: names.iter().map(|_| OnceLock::new()).collect(),
            ranks: Mutex::default(),
            bundle: bundle.downgrade(),
            runtime: bundle.runtime().clone(),
            names,
        }
    }

    pub fn size(&self) -> usize {
        self.names.len()
    }

    /// Returns a number that grows with each change of the state.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Returns the number of messages that were dropped because they belonged nowhere.
    pub fn malformed(&self) -> u64 {
        self.malformed.load(Ordering::Relaxed)
    }

    /// Changes the state in a handler of messages. The bundle wakes waiting tasks after a handler.
    #[inline]
    fn handle<R>(&self, changes: impl FnOnce(&mut State) -> R) -> R {
        let result = changes(&mut locked(&self.state));
        self.changes.fetch_add(1, Ordering::Release);
        result
    }

    /// Changes the state outside of a handler, and wakes all waiting tasks.
    fn change<R>(&self, changes: impl FnOnce(&mut State) -> R) -> R {
        let result = self.handle(changes);
        if let Some(bundle) = self.bundle.upgrade() {
            bundle.wake_waiting();
        }
        result
    }

    /// Calls a function with the state of a team. Returns `None` if this member is not in the team.
    #[inline]
    pub fn with<R>(&self, context: u64, does: impl FnOnce(&mut Context) -> R) -> Option<R> {
        locked(&self.state).context(context).map(does)
    }

    /// Ends a collective, successfully if `done`, and wakes the tasks that wait for its end.
    #[inline]
    pub fn end(&self, number: u64, sequence: u64, done: bool) {
        if self.with(number, |context| context.end(sequence, done)) == Some(true) {
            self.change(|_| ());
        }
    }

    /// Adds a team, and delivers the messages that were held for the team.
    pub fn make(&self, team: Arc<Team>) {
        let number = team.context;
        let wrong = self.change(|state| {
            let mut context = Context::new(team);
            for failure in &state.gone {
                if context.team.rank_of(failure.whole).is_some() {
                    context.fail(failure);
                }
            }
            let mut wrong = Vec::new();
            for early in state.early.extract_if(.., |early| early.context == number) {
                match early.held {
                    Held::Piece { sequence, label, total, piece } => {
                        wrong.extend(context.arrives(sequence, label, total, piece).err());
                    }
                    Held::Broken(failure) => drop(context.fail(&failure)),
                    Held::Leave { whole, last } => context.leaves(whole, last),
                }
            }
            state.contexts.push(context);
            wrong
        });
        wrong.into_iter().for_each(|wrong| self.wrong(number, wrong));
    }

    /// Returns the whole group as a team.
    pub fn whole(&self) -> Arc<Team> {
        let whole = |context: &mut Context| context.team.clone();
        self.with(0, whole).expect("the whole group is there until its member has left")
    }

    /// Has this member begin no further collective of a team. Returns whether it was allowed to
    /// until now.
    pub fn begins_to_leave(&self, number: u64) -> bool {
        self.with(number, Context::begins_to_leave).unwrap_or(false)
    }

    /// Removes a team that this member has left, and remembers the team's number.
    pub fn unmake(&self, number: u64) {
        self.change(|state| {
            state.contexts.retain(|context| context.team.context != number);
            if state.past.len() == PAST {
                state.past.pop_front();
            }
            state.past.push_back(number);
        });
    }

    /// Handles the refusal of a message: fails the team if a member is to blame, and otherwise
    /// counts the message as dropped.
    #[cold]
    fn wrong(&self, context: u64, wrong: Wrong) {
        match wrong {
            Some(failure) => self.fail(context, &failure),
            None => drop(self.malformed.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Returns whether this member is leaving all its teams, and so refuses new connections.
    pub fn is_leaving(&self) -> bool {
        locked(&self.state).contexts.iter().all(|context| context.is_leaving())
    }
}

/// Handling of messages, which the endpoint's handlers call.
impl Mailbox {
    /// Handles the first piece of a message.
    #[inline]
    pub fn arrives(&self, number: u64, sequence: u64, label: u64, total: u64, piece: Bytes) {
        let Some(label) = self.label(label) else { return };
        if total > self.longest {
            let cause = Cause::TooLong { len: total, longest: self.longest };
            return self.fail(
                number,
                &Failure { whole: label.from, after: sequence.saturating_sub(1), cause },
            );
        }
        let wrong = self.handle(|state| match state.context(number) {
            Some(context) => context.arrives(sequence, label, total, piece),
            None => {
                let held = Held::Piece { sequence, label, total, piece };
                state.hold(number, label.from, held)
            }
        });
        if let Err(wrong) = wrong {
            self.wrong(number, wrong);
        }
    }

    /// Handles a further piece of a message.
    pub fn goes_on(&self, number: u64, sequence: u64, label: u64, offset: u64, piece: &[u8]) {
        self.checked(number, label, |context, label| {
            context.goes_on(sequence, label, offset, piece)
        });
    }

    /// Handles a member's request for the rest of a message.
    pub fn clears(&self, number: u64, sequence: u64, label: u64) {
        self.checked(number, label, |context, label| context.clears(sequence, label));
    }

    /// Handles a member's notice that it waits for this one, and fails the team if this member is
    /// in another collective.
    pub fn hears_waiting(&self, number: u64, sequence: u64, label: u64) {
        self.checked(number, label, |context, label| match context.belongs(sequence, label) {
            // If this member has done the collective already, the awaited message or this notice is
            // late.
            Err(None) => Ok(()),
            found => found,
        });
    }

    fn checked(
        &self,
        number: u64,
        label: u64,
        takes: impl FnOnce(&mut Context, Label) -> Result<(), Wrong>,
    ) {
        let Some(label) = self.label(label) else { return };
        let wrong = self.handle(|state| match state.context(number) {
            Some(context) => takes(context, label),
            None => Ok(()),
        });
        if let Err(wrong) = wrong {
            self.wrong(number, wrong);
        }
    }

    #[inline]
    fn label(&self, word: u64) -> Option<Label> {
        // A member sends nothing to itself.
        let label = Label::from_word(word, self.size()).filter(|label| label.from != self.own);
        if label.is_none() {
            self.malformed.fetch_add(1, Ordering::Relaxed);
        }
        label
    }

    /// Handles a member's notice that it leaves a team after the collective with the number `last`.
    pub fn hears_leaving(&self, number: u64, whole: u32, last: u64) {
        // No other member may say that this one leaves.
        if whole as usize >= self.size() || whole == self.own {
            self.malformed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.change(|state| match state.context(number) {
            Some(context) => context.leaves(whole, last),
            None => drop(state.hold(number, whole, Held::Leave { whole, last })),
        });
    }
}
