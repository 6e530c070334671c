//! All links of a device, by their numbers.

use std::collections::VecDeque;

use doorbell_core::encap::PathId;

use super::link::{Link, PeerState};
use super::ring::Spare;
use super::sleep::{self, Shared};

/// The bits of a link's number that say in which slot the link is kept. The others count how often
/// the slot was used, so that a number does not come back before all other numbers of the slot did.
const SLOT_BITS: u32 = 12;

/// The most links that a device can have.
pub(super) const MOST: usize = 1 << SLOT_BITS;

/// How many links are looked at in each turn, however silent they are. Where there are more, silent
/// links doze.
pub(super) const AWAKE: usize = 64;

/// The links of a device.
pub(super) struct Links {
    /// Links by their slots, with as many slots as were ever in use at once.
    slots: Vec<Option<Link>>,
    most: usize,
    /// The slots of the links that are polled in turn. Links that have been idle for long are not.
    live: Vec<u16>,
    /// How many links there are.
    count: usize,
    /// The numbers of the next links in slots that were used before, the slots longest out of use
    /// first.
    free: VecDeque<PathId>,
    spare: Spare,
}

impl Links {
    pub fn new(most: usize, spare: Spare) -> Self {
        let (slots, live, free) = (Vec::new(), Vec::new(), VecDeque::new());
        Self { slots, most, live, count: 0, free, spare }
    }

    pub fn is_full(&self) -> bool {
        self.count >= self.most
    }

    /// Returns how many links there may be.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Returns how many links there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns how many links do not doze.
    #[inline]
    pub fn awake(&self) -> usize {
        self.live.len()
    }

    /// Returns whether any links doze, so that only their sockets tell when they have something.
    pub fn any_doze(&self) -> bool {
        self.live.len() < self.count
    }

    /// Returns the link in a place among those that do not doze, and its slot.
    #[inline]
    pub fn at(&mut self, place: usize) -> (u16, &mut Link) {
        let slot = self.live[place];
        (slot, self.slot(slot).expect("a live slot has a link"))
    }

    /// Returns the links that do not doze.
    pub fn all_awake(&self) -> impl Iterator<Item = &Link> {
        self.live.iter().filter_map(|&slot| self.slots.get(usize::from(slot))?.as_ref())
    }

    /// Puts links to doze from which nothing has come since the last call, while more than
    /// [`AWAKE`] are awake. Their writers are told that the reader sleeps, and ring the bell with
    /// what they write.
    #[cold]
    pub fn doze(&mut self) {
        let Self { slots, live, .. } = self;
        let mut beyond = live.len().saturating_sub(AWAKE);
        let mut dozing = Vec::new();
        for &slot in &*live {
            let Some(link) = slots[usize::from(slot)].as_mut() else { continue };
            let silent = link.is_silent() && link.state == PeerState::Up;
            if silent && beyond > 0 {
                beyond -= 1;
                dozing.push(slot);
            }
        }
        let link = |slot: &u16| slots[usize::from(*slot)].as_ref();
        sleep::fall_asleep::<Shared>(dozing.iter().filter_map(link).map(|l| l.reader.sleeping()));
        // A record may have been written before its writer could know that the reader sleeps.
        dozing.retain(|slot| link(slot).is_some_and(|link| !link.reader.has_some()));
        for slot in &dozing {
            if let Some(link) = slots[usize::from(*slot)].as_mut() {
                link.dozes = true;
            }
        }
        live.retain(|slot| {
            let link = slots[usize::from(*slot)].as_ref();
            let dozes = link.is_some_and(|link| link.dozes);
            if let Some(link) = link.filter(|link| !link.dozes) {
                sleep::wake_up::<Shared>(std::iter::once(link.reader.sleeping()));
            }
            !dozes
        });
    }

    /// Ends the doze of a link, if it dozes.
    pub fn end_doze(&mut self, slot: u16) {
        let Some(link) = self.slots.get_mut(usize::from(slot)).and_then(Option::as_mut) else {
            return;
        };
        if std::mem::take(&mut link.dozes) {
            sleep::wake_up::<Shared>(std::iter::once(link.reader.sleeping()));
            self.live.push(slot);
        }
    }

    #[inline]
    pub fn slot(&mut self, slot: u16) -> Option<&mut Link> {
        self.slots.get_mut(usize::from(slot))?.as_mut()
    }

    #[inline]
    pub fn get(&mut self, id: PathId) -> Option<&mut Link> {
        self.slot(slot(id)).filter(|link| link.id == id)
    }

    /// Returns the link to a peer by the peer's name.
    pub fn named(&self, name: &str) -> Option<&Link> {
        let mut links = self.slots.iter().flatten();
        links.find(|link| link.state == PeerState::Up && *link.name == *name)
    }

    /// Adds the link that `make` makes for a number. There must be room for a link.
    pub fn add<E>(&mut self, make: impl FnOnce(PathId) -> Result<Link, E>) -> Result<&mut Link, E> {
        assert!(!self.is_full(), "room for a link");
        let id = self.free.front().copied().unwrap_or(PathId(self.slots.len() as u32));
        let mut link = make(id)?;
        link.writer.may_take(self.spare.clone());
        if self.free.pop_front().is_none() {
            self.slots.push(None);
        }
        self.count += 1;
        self.live.push(slot(id));
        Ok(self.slots[usize::from(slot(id))].insert(link))
    }

    pub fn remove(&mut self, slot: u16) -> Option<Link> {
        let link = self.slots.get_mut(usize::from(slot))?.take()?;
        self.count -= 1;
        self.live.retain(|live| *live != slot);
        self.free.push_back(PathId(link.id.0.wrapping_add(1 << SLOT_BITS)));
        Some(link)
    }
}

/// Returns the slot in which a link is kept.
#[inline]
pub(super) fn slot(id: PathId) -> u16 {
    (id.0 % MOST as u32) as u16
}
