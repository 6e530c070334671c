//! The timers of stations, one for each.

use crate::Time;

/// The time at which a timer goes off, its turn among timers at the same time, and the number of
/// its station.
type Key = (Time, u64, u32);

const NEVER: Key = (Time::from_nanos(u64::MAX), u64::MAX, u32::MAX);

/// A tournament tree of timers: each station's timer is a leaf of a binary tree, and each inner
/// node is the earlier of its two children. Timers are replaced far more often than they go off,
/// and a replaced timer leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Timers {
    /// The nodes of the tree: the root at 1, the children of `n` at `2 n` and `2 n + 1`, and the
    /// leaves in the second half.
    tree: Vec<Key>,
    stations: usize,
}

impl Timers {
    pub(crate) fn new() -> Self {
        Self { tree: vec![NEVER; 2], stations: 0 }
    }

    pub(crate) fn add_station(&mut self) {
        let leaves = self.tree.len() / 2;
        if self.stations == leaves {
            let mut tree = vec![NEVER; 4 * leaves];
            tree[2 * leaves..3 * leaves].copy_from_slice(&self.tree[leaves..]);
            self.tree = tree;
            for node in (1..2 * leaves).rev() {
                self.play(node);
            }
        }
        self.stations += 1;
    }

    /// Sets a station's timer. `turn` orders timers at the same time.
    pub(crate) fn set(&mut self, station: u32, at: Time, turn: u64) {
        self.replace(station, (at, turn, station));
    }

    pub(crate) fn clear(&mut self, station: u32) {
        self.replace(station, NEVER);
    }

    /// The timer that goes off next: its time, its turn, and its station.
    pub(crate) fn first(&self) -> Option<Key> {
        Some(self.tree[1]).filter(|key| *key != NEVER)
    }

    fn replace(&mut self, station: u32, key: Key) {
        let mut node = self.tree.len() / 2 + station as usize;
        self.tree[node] = key;
        while node > 1 {
            node /= 2;
            self.play(node);
        }
    }

    fn play(&mut self, node: usize) {
        self.tree[node] = self.tree[2 * node].min(self.tree[2 * node + 1]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Luck;

    #[test]
    fn the_first_is_the_earliest_of_all_however_they_are_set_and_cleared() {
        let mut luck = Luck::new(5);
        let (mut timers, mut model) = (Timers::new(), Vec::new());
        for turn in 0..5_000 {
            if turn % 100 == 0 {
                timers.add_station();
                model.push(None);
            }
            let station = luck.below(model.len() as u64) as u32;
            let at = Time::from_nanos(luck.below(50));
            if luck.below(3) == 0 {
                timers.clear(station);
                model[station as usize] = None;
            } else {
                timers.set(station, at, turn);
                model[station as usize] = Some((at, turn, station));
            }
            assert_eq!(timers.first(), model.iter().flatten().min().copied());
        }
    }
}
