//! Links by the numbers of their queue pairs.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use crate::link::Link;
use crate::news::is_past;

/// Links, of which the one that was looked up last is at hand: what comes next is its, as a rule.
#[derive(Default)]
pub(crate) struct Links {
    all: HashMap<u32, Arc<Link>, BuildHasherDefault<AsItIs>>,
    recent: Option<(u32, Arc<Link>)>,
    /// Those that are new, the oldest first: what is taken now may be another's that had the
    /// number.
    fresh: VecDeque<Fresh>,
}

/// A link, and how many completions of each queue were there before any of its own.
struct Fresh {
    link: Arc<Link>,
    since: [usize; 2],
}

impl Links {
    /// The link that has that number for what was taken of a queue behind so many others.
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

    /// Out of line, for what comes next is the same link's, as a rule.
    #[inline(never)]
    fn look_up(&mut self, number: u32) {
        self.recent = self.all.get(&number).map(|link| (number, link.clone()));
    }

    /// Puts one there, of which nothing is among so many completions of each queue.
    pub fn put(&mut self, link: Arc<Link>, since: [usize; 2]) {
        self.fresh.push_back(Fresh { link, since });
    }

    /// So many of each queue are taken: links that had nothing among these have their numbers to
    /// themselves.
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

    /// Forgets those of which this is not true.
    pub fn retain(&mut self, stays: impl Fn(&Arc<Link>) -> bool) {
        self.recent = None;
        self.all.retain(|_, link| stays(link));
        self.fresh.retain(|fresh| stays(&fresh.link));
    }

    /// Forgets one.
    pub fn remove(&mut self, gone: &Arc<Link>) {
        self.recent = None;
        let number = gone.qpn().get();
        if self.all.get(&number).is_some_and(|there| Arc::ptr_eq(there, gone)) {
            self.all.remove(&number);
        }
        self.fresh.retain(|fresh| !Arc::ptr_eq(&fresh.link, gone));
    }
}

/// Those numbers are the NIC's: nobody can choose them so that they collide.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
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
