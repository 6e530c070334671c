//! Links by the numbers of their queue pairs.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use crate::link::Link;

/// Links, of which the one that was looked up last is at hand: what comes next is its, as a rule.
#[derive(Default)]
pub(crate) struct Links {
    all: HashMap<u32, Arc<Link>, BuildHasherDefault<AsItIs>>,
    recent: Option<(u32, Arc<Link>)>,
}

impl Links {
    /// The link of that number.
    #[inline]
    pub fn get(&mut self, number: u32) -> Option<&Arc<Link>> {
        if !matches!(self.recent, Some((recent, _)) if recent == number) {
            self.look_up(number);
        }
        self.recent.as_ref().map(|(_, link)| link)
    }

    /// Out of line, for what comes next is the same link's, as a rule.
    #[inline(never)]
    fn look_up(&mut self, number: u32) {
        self.recent = self.all.get(&number).map(|link| (number, link.clone()));
    }

    /// Puts one there, in the place of another that had its number.
    pub fn put(&mut self, link: Arc<Link>) {
        self.recent = None;
        self.all.insert(link.qpn.get(), link);
    }

    /// Forgets those of which this is not true.
    pub fn retain(&mut self, stays: impl Fn(&Arc<Link>) -> bool) {
        self.recent = None;
        self.all.retain(|_, link| stays(link));
    }

    /// Forgets one, if its number is not another's by now.
    pub fn remove(&mut self, gone: &Arc<Link>) {
        self.recent = None;
        let number = gone.qpn.get();
        if self.all.get(&number).is_some_and(|there| Arc::ptr_eq(there, gone)) {
            self.all.remove(&number);
        }
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
