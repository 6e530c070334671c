//! Tables that grow with the number of queue pairs, so that a NIC of a few takes little memory and
//! one of many needs no configuration.

use super::Nic;

/// The places of queue pairs that a NIC begins with.
///
/// So many, since places are drawn at random, and their bits are among those that strangers have to
/// guess.
pub(super) const FIRST_PLACES: usize = 2048;

/// The number of the timer of the queue pair at a place. Peers have the odd numbers.
#[inline]
pub(super) const fn timer_of(place: u32) -> u32 {
    2 * place
}

impl Nic {
    /// Makes room for twice as many queue pairs if less than a quarter of the places are free, as
    /// far as there may be more of them.
    pub(super) fn grow_if_crowded(&mut self) {
        let places = self.pairs.len();
        if self.free.len() < places / 4 || self.free.is_empty() {
            self.grow(places.saturating_mul(2).min(self.most_pairs));
        }
    }

    /// Makes the tables hold `places` queue pairs, if they hold fewer.
    pub(super) fn grow(&mut self, places: usize) {
        let Self { common, pairs, free, numbers, doorbells, fired, .. } = self;
        let before = pairs.len();
        if places <= before {
            return;
        }
        pairs.resize_with(places, || None);
        let fresh = before as u32..places as u32;
        free.extend(fresh.filter(|&place| numbers.can_number(place)));
        doorbells.use_up_to(places);
        common.timers.grow(2 * places);
        fired.reserve(places.saturating_sub(fired.len()));
        common.make_room(places);
    }
}
