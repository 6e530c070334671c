//! What is to come, and who waits for it.

use std::task::Waker;

/// Things that are to come, each with a number that a message carries: from 1 on, and no more of
/// them than were begun at a time.
pub(crate) struct Expected<T> {
    places: Vec<Place<T>>,
    /// The number of the free place that is next, which knows the one behind it; 0 if there is
    /// none.
    free: u16,
}

enum Place<T> {
    Free {
        next: u16,
    },
    Awaited(Option<Waker>),
    Here(T),
    /// Nobody waits for it any more.
    Abandoned,
}

impl<T> Default for Expected<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: 0 }
    }
}

impl<T> Expected<T> {
    /// Expects one more.
    #[inline]
    pub fn begin(&mut self) -> u16 {
        let number = self.free;
        if let Some(place @ &mut Place::Free { next }) = self.place(number) {
            *place = Place::Awaited(None);
            self.free = next;
            return number;
        }
        // An idle peer keeps room for no more than it had to.
        if self.places.len() == self.places.capacity() {
            self.places.reserve_exact(self.places.len().max(1));
        }
        self.places.push(Place::Awaited(None));
        self.places.len() as u16
    }

    /// What is at a place, which is free from here on.
    #[inline]
    fn leave(&mut self, number: u16) -> Option<Place<T>> {
        let free = Place::Free { next: self.free };
        let left = std::mem::replace(self.place(number)?, free);
        self.free = number;
        Some(left)
    }

    #[inline]
    fn place(&mut self, number: u16) -> Option<&mut Place<T>> {
        self.places.get_mut(usize::from(number).checked_sub(1)?)
    }

    /// Keeps what has come for who waits for it. Whether that was woken; none if it is not
    /// expected.
    #[inline]
    pub fn came(&mut self, number: u16, what: T) -> Option<bool> {
        let place = self.place(number)?;
        match place {
            Place::Awaited(waker) => {
                let waker = waker.take();
                *place = Place::Here(what);
                let woke = waker.is_some();
                waker.into_iter().for_each(Waker::wake);
                Some(woke)
            }
            Place::Abandoned => {
                self.leave(number);
                Some(false)
            }
            Place::Free { .. } | Place::Here(_) => None,
        }
    }

    /// Whether it is awaited, by whoever has it: nothing of it is kept here any more.
    #[inline]
    pub fn hand_over(&mut self, number: u16) -> bool {
        let next = self.free;
        let Some(place @ Place::Awaited(_)) = self.place(number) else { return false };
        *place = Place::Free { next };
        self.free = number;
        true
    }

    /// What has come, if it has.
    #[inline]
    pub fn take(&mut self, number: u16) -> Option<T> {
        self.place(number).filter(|place| matches!(place, Place::Here(_)))?;
        let Some(Place::Here(what)) = self.leave(number) else { return None };
        Some(what)
    }

    /// Has the waker called when it comes.
    pub fn wait(&mut self, number: u16, waker: &Waker) {
        if let Some(Place::Awaited(there)) = self.place(number) {
            there.get_or_insert_with(|| waker.clone()).clone_from(waker);
        }
    }

    /// Nobody waits for it any more.
    pub fn abandon(&mut self, number: u16) {
        match self.place(number) {
            Some(place @ Place::Awaited(_)) => *place = Place::Abandoned,
            _ => drop(self.take(number)),
        }
    }

    /// Whether it is still to come.
    pub fn is_to_come(&self, number: u16) -> bool {
        let place = usize::from(number).checked_sub(1).and_then(|at| self.places.get(at));
        matches!(place, Some(Place::Awaited(_) | Place::Abandoned))
    }

    /// Whether it is still to come, and nobody waits for it any more.
    pub fn is_abandoned(&self, number: u16) -> bool {
        let place = usize::from(number).checked_sub(1).and_then(|at| self.places.get(at));
        matches!(place, Some(Place::Abandoned))
    }

    /// How many are still to come that nobody waits for any more.
    pub fn abandoned(&self) -> usize {
        self.places.iter().filter(|place| matches!(place, Place::Abandoned)).count()
    }

    /// Nothing comes any more: who waits is to see why.
    #[cold]
    pub fn end(&mut self) {
        let waits = |place| {
            if let &mut Place::Awaited(ref mut waker) = place { waker.take() } else { None }
        };
        self.places.iter_mut().filter_map(waits).for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_awaited_is_handed_over_and_once() {
        let mut expected = Expected::default();
        let [here, abandoned, awaited] = [(); 3].map(|()| expected.begin());
        assert_eq!(expected.came(here, "here"), Some(false));
        expected.abandon(abandoned);
        let others = [0, here, abandoned, awaited + 1];
        assert!(!others.iter().any(|&number| expected.hand_over(number)));
        assert!(expected.hand_over(awaited) && !expected.hand_over(awaited));
        assert_eq!(expected.begin(), awaited, "it serves again");
        assert_eq!(
            (expected.take(here), expected.came(abandoned, "late")),
            (Some("here"), Some(false))
        );
    }

    #[test]
    fn what_is_expected_comes_once_and_its_number_serves_again() {
        let mut expected = Expected::default();
        let (one, two) = (expected.begin(), expected.begin());
        assert_eq!((one, two), (1, 2));
        assert_eq!((expected.take(one), expected.came(one, 'a')), (None, Some(false)));
        assert_eq!(expected.came(one, 'b'), None, "it is there already");
        assert_eq!((expected.take(one), expected.take(one)), (Some('a'), None));
        assert_eq!((expected.came(one, 'c'), expected.came(3, 'c')), (None, None));
        assert_eq!(expected.begin(), one);
    }

    #[test]
    fn what_nobody_waits_for_any_more_goes_when_it_comes() {
        let mut expected = Expected::default();
        let number = expected.begin();
        expected.abandon(number);
        let other = expected.begin();
        assert_ne!(other, number, "it may still come");
        assert!(expected.is_abandoned(number) && !expected.is_abandoned(other));
        assert!([number, other].iter().all(|&number| expected.is_to_come(number)));
        assert!(!expected.is_to_come(0) && !expected.is_to_come(other + 1));
        assert_eq!(expected.abandoned(), 1);
        assert_eq!((expected.came(number, ()), expected.take(number)), (Some(false), None));
        assert_eq!(expected.begin(), number);
        expected.came(other, ());
        expected.abandon(other);
        assert_eq!(expected.begin(), other, "it had come");
    }
}
