//! The links of a bundle by the numbers of their queue pairs.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::updates::is_past;
use crate::link::Link;

/// A table of links by queue pair number.
#[derive(Default)]
pub(super) struct LinkTable {
    all: HashMap<u32, Arc<Link>, BuildHasherDefault<NumberHasher>>,
    /// The link that was looked up last, which the next completion belongs to as a rule.
    recent: Option<(u32, Arc<Link>)>,
    /// New links, the oldest first. Completions that come first may belong to another link, which
    /// had the number before.
    fresh: VecDeque<Fresh>,
}

/// A new link, and how many completions of each queue had come before any of its own.
struct Fresh {
    link: Arc<Link>,
    since: [usize; 2],
}

impl LinkTable {
    /// Returns the link with this number, for the completion that was taken from a queue behind
    /// `taken` others.
    #[inline]
    pub fn get(&mut self, number: u32, (queue, taken): (usize, usize)) -> Option<&Arc<Link>> {
        if !self.fresh.is_empty() {
            return self.seek(number, (queue, taken));
        }
        if !matches!(self.recent, Some((recent, _)) if recent == number) {
            self.look_up(number);
        }
        self.recent.as_ref().map(|(_, link)| link)
    }

    #[cold]
    fn seek(&mut self, number: u32, (queue, taken): (usize, usize)) -> Option<&Arc<Link>> {
        let is =
            |fresh: &&Fresh| fresh.link.qpn().get() == number && is_past(taken, fresh.since[queue]);
        let fresh = self.fresh.iter().rev().find(is).map(|fresh| &fresh.link);
        fresh.or_else(|| self.all.get(&number))
    }

    /// Looks a link up in the table. Out of line, since the next completion is the same link's as a
    /// rule.
    #[inline(never)]
    fn look_up(&mut self, number: u32) {
        self.recent = self.all.get(&number).map(|link| (number, link.clone()));
    }

    /// Adds a link that has none of the first `since` completions of each queue.
    pub fn put(&mut self, link: Arc<Link>, since: [usize; 2]) {
        self.fresh.push_back(Fresh { link, since });
    }

    /// Notes how many completions of each queue are taken. Links that could have none of these have
    /// their numbers to themselves from here on.
    #[inline]
    pub fn settle(&mut self, taken: [usize; 2]) {
        if !self.fresh.is_empty() {
            self.settle_fresh(taken);
        }
    }

    #[cold]
    fn settle_fresh(&mut self, taken: [usize; 2]) {
        let is = |fresh: &mut Fresh| (0..2).all(|queue| is_past(taken[queue], fresh.since[queue]));
        self.recent = None;
        while let Some(Fresh { link, .. }) = self.fresh.pop_front_if(is) {
            self.all.insert(link.qpn().get(), link);
        }
    }

    /// Keeps the links for which `stays` is true.
    pub fn retain(&mut self, stays: impl Fn(&Arc<Link>) -> bool) {
        self.recent = None;
        self.all.retain(|_, link| stays(link));
        self.fresh.retain(|fresh| stays(&fresh.link));
    }

    /// Removes a link that is over.
    pub fn remove(&mut self, gone: &Arc<Link>) {
        self.recent = None;
        let number = gone.qpn().get();
        if self.all.get(&number).is_some_and(|there| Arc::ptr_eq(there, gone)) {
            self.all.remove(&number);
        }
        self.fresh.retain(|fresh| !Arc::ptr_eq(&fresh.link, gone));
    }
}

/// A hasher of queue pair numbers. The NIC chooses them, so no peer can make them collide.
#[derive(Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        // A table looks at the upper bits, too.
        self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0 << 8 | u64::from(byte));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = number.into();
    }
}
