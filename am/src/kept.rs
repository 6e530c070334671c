//! Requests that handlers have kept, and how long.

use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::wire::Header;

/// Which of a link's kept requests it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptId {
    place: usize,
    round: u32,
}

/// The requests of a link that handlers have kept, each until it is answered, or its time is over: no
/// more than its peer has credits.
#[derive(Default)]
pub(crate) struct KeptRequests {
    places: Vec<Place>,
    /// The free place that is next, which knows the one behind it.
    free: Option<u16>,
    /// What sees to it that their time ends, if something does.
    timed: Option<AbortHandle>,
}

struct Place {
    /// Counts who had the place before.
    round: u32,
    kept: Option<(Header, Instant)>,
    /// The free place behind it, if it is one.
    next: Option<u16>,
}

impl KeptRequests {
    pub fn keep(&mut self, header: Header, until: Instant) -> KeptId {
        let place = self.free.map_or(self.places.len(), usize::from);
        if place == self.places.len() {
            self.places.push(Place { round: 0, kept: None, next: None });
        }
        let Place { round, kept, next } = &mut self.places[place];
        (*kept, self.free) = (Some((header, until)), next.take());
        KeptId { place, round: *round }
    }

    /// Has something see to it that their time ends, if nothing does.
    pub fn time(&mut self, sees: impl FnOnce() -> AbortHandle) {
        self.timed.get_or_insert_with(sees);
    }

    /// When the next one's time is over. If none is kept, nothing sees to it any more.
    pub fn timed(&mut self) -> Option<Instant> {
        let next = self.next();
        if next.is_none() {
            self.timed = None;
        }
        next
    }

    /// The time of none is looked at any more.
    pub fn end(&mut self) {
        self.timed.take().iter().for_each(AbortHandle::abort);
    }

    /// Takes one off. Whether it still was there.
    pub fn release(&mut self, id: KeptId) -> bool {
        let place = &mut self.places[id.place];
        let there = place.round == id.round && place.kept.is_some();
        if there {
            self.vacate(id.place);
        }
        there
    }

    fn vacate(&mut self, place: usize) {
        let at = &mut self.places[place];
        at.kept = None;
        at.round = at.round.wrapping_add(1);
        at.next = self.free.replace(place as u16);
    }

    /// Takes off one whose time is over.
    pub fn overdue(&mut self, now: Instant) -> Option<Header> {
        let over = |place: &Place| place.kept.is_some_and(|(_, until)| until <= now);
        let place = self.places.iter().position(over)?;
        let (header, _) = self.places[place].kept?;
        self.vacate(place);
        Some(header)
    }

    /// When the next one's time is over.
    fn next(&self) -> Option<Instant> {
        self.places.iter().filter_map(|place| place.kept).map(|(_, until)| until).min()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::wire::Kind;

    #[test]
    fn a_request_is_released_or_overdue_but_not_both() {
        let header = |call| Header { kind: Kind::Request, words: 0, handler: 0, call };
        let mut kept = KeptRequests::default();
        let now = Instant::now();
        let late = now + Duration::from_secs(1);
        let (one, other) = (kept.keep(header(1), now), kept.keep(header(2), late));
        assert_eq!((kept.next(), kept.overdue(now)), (Some(now), Some(header(1))));
        assert_eq!((kept.overdue(now), kept.next()), (None, Some(late)));
        let next = kept.keep(header(3), late);
        assert!(!kept.release(one), "its place is another's");
        assert!(kept.release(other) && !kept.release(other) && kept.release(next));
        assert_eq!(kept.next(), None);
    }
}
