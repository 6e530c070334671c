//! Grants: memory that peers let this process map.
//!
//! Grants that nobody has mapped yet are kept by link, which is by peer: each link has a bound of
//! its own, so that a peer which grants more than this program maps pushes out none but its own.
//! A grant that somebody waits for is never pushed out, and of those that were, the keys are
//! remembered, so that whoever asks for one is told, and does not wait for ever.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use doorbell_core::encap::PathId;
use doorbell_core::memory::Region;
use doorbell_core::wire::{RemoteAddr, Rkey};
use doorbell_transports::Grant;
use tokio::sync::Notify;

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
    /// The grant was pushed out by later ones of the same peer.
    PushedOut,
}

/// A task that waits for a grant, for as long as somebody holds what it is notified by.
struct Waiting {
    link: PathId,
    rkey: Rkey,
    task: Weak<Notify>,
}

impl Waiting {
    fn is_for(&self, link: PathId, rkey: Rkey) -> bool {
        (self.link, self.rkey) == (link, rkey) && self.task.strong_count() > 0
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
        // Last, since wakers are the program's code, and may panic.
        let waiting = self.waiting.iter().filter(|waiting| waiting.is_for(link, rkey));
        waiting.filter_map(|waiting| waiting.task.upgrade()).for_each(|task| task.notify_one());
    }

    /// Forgets the grants of a link that has ended.
    pub fn forget(&mut self, link: PathId) {
        self.links.remove(&link);
    }

    /// Returns whether any task waits for a grant.
    pub fn are_awaited(&mut self) -> bool {
        self.waiting.retain(|waiting| waiting.task.strong_count() > 0);
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
        let task = Arc::downgrade(task);
        if !self.waiting.iter().any(|other| other.task.ptr_eq(&task)) {
            self.waiting.push(Waiting { link, rkey, task });
        }
        let lost = |of_link: &OfLink| of_link.forgot || of_link.pushed_out.contains(&rkey);
        Err(if self.links.get(&link).is_some_and(lost) {
            Absent::PushedOut
        } else {
            Absent::NotYet
        })
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

    #[test]
    fn a_link_keeps_64_grants_and_256_keys_and_what_it_forgot_is_not_waited_for() {
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
        assert_eq!(is_absent(&mut grants, FLOODER, 0), Some(true), "it was forgotten");
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
