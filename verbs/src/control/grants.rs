//! Grants: memory that peers let this process map.
//!
//! Grants that nobody has mapped yet are kept by link, which is by peer: each link has a bound of
//! its own, so that a peer which grants more than this program maps pushes out none but its own.
//! A grant that somebody waits for is never pushed out. Of those that were, the latest keys are
//! remembered, so that whoever asks for one is told at once, and does not wait for ever.
//!
//! A link that has pushed out more keys than are remembered leaves a doubt: a key that a task asks
//! for may be one of those, or its grant may be under way. Such a task waits for [`PATIENCE`], and
//! is then told that the grant may have been dropped. A task that has waited since before the link
//! first forgot a key waits without a bound, since no grant that was awaited is dropped.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use doorbell_core::encap::PathId;
use doorbell_core::memory::Region;
use doorbell_core::time::Time;
use doorbell_core::wire::{RemoteAddr, Rkey};
use doorbell_transports::Grant;
use tokio::sync::Notify;

use crate::sync::contained;
use crate::work::RemoteMemory;

/// A grant of a peer's memory, which is mapped here.
pub(crate) struct Granted {
    rkey: Rkey,
    /// The address at which the memory begins, for the peer.
    pub base: RemoteAddr,
    pub region: Region,
}

/// Returns the tag of a grant: the address of the memory, and below it the key.
pub(crate) fn granted_as(memory: &RemoteMemory) -> u128 {
    u128::from(memory.address().0) << u32::BITS | u128::from(memory.rkey().0)
}

/// Why a grant can't be taken.
pub(crate) enum Absent {
    /// The grant has not arrived. The task that waits is notified when it does.
    NotYet,
    /// The grant was pushed out by later ones of the same peer, or may have been and has not come
    /// for [`PATIENCE`].
    PushedOut,
}

/// A task that waits for a grant, for as long as somebody holds what it is notified by.
struct Waiting {
    link: PathId,
    rkey: Rkey,
    task: Weak<Notify>,
    term: Term,
}

/// How long a task waits for a grant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Term {
    /// As long as the grant takes, which was not dropped.
    Unlimited,
    /// For [`PATIENCE`] from the next look at the clock on, since the grant may have been dropped.
    Begins,
    /// Until then, since the grant may have been dropped.
    Ends(Time),
    /// No longer.
    Over,
}

impl Waiting {
    fn is_alive(&self) -> bool {
        self.task.strong_count() > 0
    }

    /// Notifies the task. Its waker is the program's code, and may panic.
    fn notify(&self) {
        if let Some(task) = self.task.upgrade() {
            contained("a waker", || task.notify_one());
        }
    }

    fn is_for(&self, link: PathId, rkey: Rkey) -> bool {
        (self.link, self.rkey) == (link, rkey) && self.is_alive()
    }
}

/// The grants that have arrived, and the tasks that wait for grants.
#[derive(Default)]
pub(crate) struct Grants {
    links: HashMap<PathId, OfLink>,
    waiting: Vec<Waiting>,
}

/// The grants of one link that no task has taken yet.
#[derive(Default)]
struct OfLink {
    /// The grants that wait, oldest first: at most [`MOST_UNTAKEN`], and one for each task that
    /// waits for a grant of this link.
    arrived: VecDeque<Granted>,
    /// The keys of grants that were pushed out, oldest first.
    pushed_out: VecDeque<Rkey>,
    /// Whether more were pushed out than are remembered.
    forgot: bool,
}

/// The most grants of a link that are kept while nobody waits for them. Each is a mapping, of which
/// the kernel gives a process some 65,000.
pub(crate) const MOST_UNTAKEN: usize = 64;

/// The most keys of a link that are remembered of grants that were pushed out.
const MOST_REMEMBERED: usize = 256;

/// How long a task waits for a grant that may have been pushed out and forgotten. A peer that grants
/// memory and tells of it does so within moments.
const PATIENCE: Duration = Duration::from_secs(3);

impl Grants {
    /// Takes in a grant, and notifies the tasks that wait for it.
    pub fn arrive(&mut self, Grant { from: link, tag, memory: region }: Grant) {
        let (base, rkey) = (RemoteAddr((tag >> u32::BITS) as u64), Rkey(tag as u32));
        let of_link = self.links.entry(link).or_default();
        of_link.pushed_out.retain(|other| *other != rkey);
        of_link.arrived.push_back(Granted { rkey, base, region });
        if of_link.arrived.len() > MOST_UNTAKEN {
            of_link.push_one_out(|rkey| {
                self.waiting.iter().filter(|waiting| waiting.is_for(link, rkey)).count()
            });
        }
        let waiting = self.waiting.iter().filter(|waiting| waiting.is_for(link, rkey));
        waiting.for_each(Waiting::notify);
    }

    /// Takes in the time, and notifies the tasks that have waited long enough for grants which may
    /// have been pushed out.
    #[inline]
    pub fn advance(&mut self, now: Time) {
        if !self.waiting.is_empty() {
            self.end_terms(now);
        }
    }

    #[cold]
    fn end_terms(&mut self, now: Time) {
        for waiting in &mut self.waiting {
            match waiting.term {
                Term::Begins => waiting.term = Term::Ends(now + PATIENCE),
                Term::Ends(end) if end <= now => {
                    waiting.term = Term::Over;
                    waiting.notify();
                }
                Term::Unlimited | Term::Ends(_) | Term::Over => {}
            }
        }
    }

    /// Returns when the next task will have waited long enough, or a time that has passed if a task
    /// is to begin to.
    pub fn next_timeout(&self) -> Option<Time> {
        let alive = self.waiting.iter().filter(|waiting| waiting.is_alive());
        let end = |waiting: &Waiting| match waiting.term {
            Term::Begins => Some(Time::ZERO),
            Term::Ends(end) => Some(end),
            Term::Unlimited | Term::Over => None,
        };
        alive.filter_map(end).min()
    }

    /// Forgets the grants of a link that has ended.
    pub fn forget(&mut self, link: PathId) {
        self.links.remove(&link);
    }

    /// Returns whether any task waits for a grant.
    pub fn are_awaited(&mut self) -> bool {
        self.waiting.retain(Waiting::is_alive);
        !self.waiting.is_empty()
    }

    /// Takes the grant of a key that came by a link, or has the task notified when it comes.
    pub fn take(
        &mut self,
        link: PathId,
        rkey: Rkey,
        task: &Arc<Notify>,
    ) -> Result<Granted, Absent> {
        if let Some(of_link) = self.links.get_mut(&link) {
            let found = of_link.arrived.iter().position(|granted| granted.rkey == rkey);
            if let Some(granted) = found.and_then(|found| of_link.arrived.remove(found)) {
                return Ok(granted);
            }
        }
        let of_link = self.links.get(&link);
        let task = Arc::downgrade(task);
        let term = match self.waiting.iter().find(|other| other.task.ptr_eq(&task)) {
            Some(waiting) => waiting.term,
            None => {
                let doubted = of_link.is_some_and(|of_link| of_link.forgot);
                let term = if doubted { Term::Begins } else { Term::Unlimited };
                self.waiting.push(Waiting { link, rkey, task, term });
                term
            }
        };
        let pushed_out = of_link.is_some_and(|of_link| of_link.pushed_out.contains(&rkey));
        Err(if pushed_out || term == Term::Over { Absent::PushedOut } else { Absent::NotYet })
    }
}

impl OfLink {
    /// Drops the oldest grant that nobody waits for, if there is one. `awaited` says how many tasks
    /// wait for a key, of whose grants as many are kept.
    fn push_one_out(&mut self, awaited: impl Fn(Rkey) -> usize) {
        let spare = (0..self.arrived.len()).find(|&place| {
            let rkey = self.arrived[place].rkey;
            let earlier = self.arrived.range(..place).filter(|other| other.rkey == rkey);
            earlier.count() >= awaited(rkey)
        });
        let Some(pushed_out) = spare.and_then(|place| self.arrived.remove(place)) else { return };
        // Another grant of the same key serves whoever asks for it.
        if self.arrived.iter().any(|other| other.rkey == pushed_out.rkey) {
            return;
        }
        if self.pushed_out.len() == MOST_REMEMBERED {
            self.pushed_out.pop_front();
            self.forgot = true;
        }
        self.pushed_out.push_back(pushed_out.rkey);
    }
}

#[cfg(all(test, not(verbs_loom)))]
mod tests {
    use super::*;

    const FLOODER: PathId = PathId(1);
    const HONEST: PathId = PathId(2);

    fn grant(from: PathId, rkey: u32) -> Grant {
        Grant { from, tag: rkey.into(), memory: Region::new(8) }
    }

    fn is_absent(grants: &mut Grants, link: PathId, rkey: u32) -> Option<bool> {
        match grants.take(link, Rkey(rkey), &Arc::new(Notify::new())) {
            Ok(_) => None,
            Err(why) => Some(matches!(why, Absent::PushedOut)),
        }
    }

    /// Floods a link, so that it has forgotten the keys before 100.
    fn flooded() -> Grants {
        let mut grants = Grants::default();
        let all = (MOST_UNTAKEN + MOST_REMEMBERED) as u32 + 100;
        (0..all).for_each(|rkey| grants.arrive(grant(FLOODER, rkey)));
        grants
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// Regression test for a bug: once a link had forgotten a key, each task that asked for a grant
    /// before it came was told that it was dropped, for as long as the link lived.
    #[test]
    fn a_grant_that_comes_after_its_key_is_asked_for_is_taken_however_many_keys_were_forgotten() {
        let (mut grants, task) = (flooded(), Arc::new(Notify::new()));
        assert_eq!(grants.next_timeout(), None);
        for millis in [0, 1000, 2900] {
            let absent = grants.take(FLOODER, Rkey(9999), &task).err();
            assert!(matches!(absent, Some(Absent::NotYet)), "after {millis} ms");
            grants.advance(at(10_000 + millis));
        }
        grants.arrive(grant(FLOODER, 9999));
        assert!(grants.take(FLOODER, Rkey(9999), &task).is_ok());
        assert_eq!(is_absent(&mut grants, FLOODER, 101), Some(true), "its key is remembered");
    }

    #[test]
    fn who_asks_for_a_grant_that_was_forgotten_is_told_so_after_three_seconds() {
        let (mut grants, task) = (flooded(), Arc::new(Notify::new()));
        assert!(matches!(grants.take(FLOODER, Rkey(99), &task), Err(Absent::NotYet)));
        assert_eq!(grants.next_timeout(), Some(Time::ZERO), "the clock is to be looked at");
        grants.advance(at(10_000));
        assert_eq!(grants.next_timeout(), Some(at(13_000)));
        grants.advance(at(12_999));
        assert!(matches!(grants.take(FLOODER, Rkey(99), &task), Err(Absent::NotYet)));
        grants.advance(at(13_000));
        assert!(matches!(grants.take(FLOODER, Rkey(99), &task), Err(Absent::PushedOut)));
        assert_eq!(grants.next_timeout(), None);
        let mut notified = Box::pin(task.notified());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(notified.as_mut().poll(&mut context).is_ready(), "it was notified");
    }

    #[test]
    fn who_has_waited_since_before_the_link_forgot_a_key_waits_without_a_bound() {
        let (mut grants, task) = (Grants::default(), Arc::new(Notify::new()));
        assert!(grants.take(FLOODER, Rkey(9999), &task).is_err());
        (0..1000).for_each(|rkey| grants.arrive(grant(FLOODER, rkey)));
        grants.advance(at(0));
        grants.advance(at(1_000_000));
        assert_eq!(grants.next_timeout(), None);
        assert!(matches!(grants.take(FLOODER, Rkey(9999), &task), Err(Absent::NotYet)));
    }

    #[test]
    fn a_link_keeps_64_grants_and_256_keys() {
        let mut grants = Grants::default();
        grants.arrive(grant(HONEST, 7));
        let all = (MOST_UNTAKEN + MOST_REMEMBERED) as u32;
        for rkey in 0..all {
            grants.arrive(grant(FLOODER, rkey));
        }
        let kept = |grants: &Grants| {
            let link = &grants.links[&FLOODER];
            (link.arrived.len(), link.pushed_out.len())
        };
        assert_eq!(kept(&grants), (MOST_UNTAKEN, MOST_REMEMBERED));
        assert_eq!(is_absent(&mut grants, FLOODER, all), Some(false), "it may come yet");
        grants.arrive(grant(FLOODER, all));
        assert_eq!(kept(&grants), (MOST_UNTAKEN, MOST_REMEMBERED));
        assert_eq!(is_absent(&mut grants, FLOODER, 0), Some(false), "it was forgotten");
        assert_eq!(is_absent(&mut grants, FLOODER, 1), Some(true), "it is remembered");
        assert_eq!(is_absent(&mut grants, FLOODER, all), None);
        assert_eq!(
            (is_absent(&mut grants, HONEST, 7), is_absent(&mut grants, HONEST, 8)),
            (None, Some(false))
        );
    }

    #[test]
    fn of_each_key_as_many_grants_are_kept_as_tasks_wait_for() {
        let (mut grants, tasks) = (Grants::default(), [(); 100].map(|()| Arc::new(Notify::new())));
        for (task, rkey) in tasks.iter().zip(0..) {
            assert!(grants.take(FLOODER, Rkey(rkey), task).is_err());
        }
        for rkey in (0..100).chain(1000..2000).chain([5; 200]) {
            grants.arrive(grant(FLOODER, rkey));
        }
        for (task, rkey) in tasks.iter().zip(0..) {
            assert!(grants.take(FLOODER, Rkey(rkey), task).is_ok(), "grant {rkey}");
        }
        assert!(grants.links[&FLOODER].arrived.len() <= MOST_UNTAKEN);
        drop(tasks);
        assert!(!grants.are_awaited());
    }
}
