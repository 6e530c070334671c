//! Memory that is being placed at a peer, until it comes back.

use std::task::Waker;

use doorbell_verbs::Memory;

/// Which memory is under way, by numbers that their requests carry: from 1 on, and no more of them than
/// there are credits, and completions that nobody has looked at.
#[derive(Default)]
pub(crate) struct Sources {
    places: Vec<Place>,
    free: Vec<u16>,
}

enum Place {
    Free,
    UnderWay(Option<Waker>),
    Back(Memory),
    /// Nobody waits for it any more.
    Abandoned,
}

impl Sources {
    pub fn begin(&mut self) -> u16 {
        let source = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::Free);
            self.places.len() as u16
        });
        self.places[usize::from(source) - 1] = Place::UnderWay(None);
        source
    }

    fn place(&mut self, source: u16) -> Option<&mut Place> {
        self.places.get_mut(usize::from(source).checked_sub(1)?)
    }

    /// Memory has come back. Whether somebody was woken.
    pub fn came_back(&mut self, source: u16, memory: Memory) -> bool {
        let Some(place) = self.place(source) else { return false };
        match std::mem::replace(place, Place::Back(memory)) {
            Place::UnderWay(waker) => {
                let woke = waker.is_some();
                waker.into_iter().for_each(Waker::wake);
                woke
            }
            _ => {
                self.take(source);
                false
            }
        }
    }

    /// The memory, if it is back.
    pub fn take(&mut self, source: u16) -> Option<Memory> {
        let place = self.place(source)?;
        match std::mem::replace(place, Place::Free) {
            Place::Back(memory) => {
                self.free.push(source);
                Some(memory)
            }
            other => {
                *place = other;
                None
            }
        }
    }

    /// Has the waker called when it is back.
    pub fn wait(&mut self, source: u16, waker: &Waker) {
        if let Some(Place::UnderWay(there)) = self.place(source) {
            there.get_or_insert_with(|| waker.clone()).clone_from(waker);
        }
    }

    /// None will come back any more: who waits is to see why.
    pub fn end(&mut self) {
        let waits = |place| if let Place::UnderWay(waker) = place { waker } else { None };
        self.places.drain(..).filter_map(waits).for_each(Waker::wake);
        self.free.clear();
    }

    /// Nobody waits for it any more.
    pub fn abandon(&mut self, source: u16) {
        match self.place(source) {
            Some(place @ Place::UnderWay(_)) => *place = Place::Abandoned,
            _ => drop(self.take(source)),
        }
    }
}
