//! The roster: which processes share an interface, and which services each listens to, as far as
//! this process knows.

use std::collections::{BTreeMap, VecDeque};

use doorbell_core::wire::ServiceId;

use super::event::Event;
use super::message::Services;

/// Returns the bit of a tag in a set of tags.
pub(super) fn bit(tag: u32) -> u64 {
    1 << tag
}

/// Returns the tags in a set.
pub(super) fn tags(mut set: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let next = (set != 0).then(|| set.trailing_zeros())?;
        set &= set - 1;
        Some(next)
    })
}

/// The processes that share an interface, and the events that this one has yet to take.
pub(super) struct Roster {
    /// The tag of this process.
    pub own: u32,
    /// The services that this process wants to listen to.
    pub wanted: Services,
    /// The services that each process listens to, this one included.
    known: BTreeMap<u32, Services>,
    /// The set of tags of processes of which there is something new.
    pub changed: u64,
    pub events: VecDeque<Event>,
    welcomed: bool,
}

impl Roster {
    pub fn new(own: u32) -> Self {
        let known = BTreeMap::from([(own, Services::new())]);
        let (wanted, events) = (Services::new(), VecDeque::new());
        Self { own, wanted, known, changed: 0, events, welcomed: false }
    }

    /// Returns the services that a process listens to, if the process is there.
    pub fn of(&self, tag: u32) -> Option<&Services> {
        self.known.get(&tag)
    }

    /// Returns whether no other process than the one of this tag listens to a service.
    pub fn is_free_for(&self, tag: u32, service: ServiceId) -> bool {
        self.known.iter().all(|(&other, has)| other == tag || !has.contains(&service))
    }

    /// Adds the event, once, that the tag of this process may be used.
    pub fn welcome(&mut self) {
        if !std::mem::replace(&mut self.welcomed, true) {
            self.events.push_back(Event::Welcome);
        }
    }

    /// Records that another process is there, and listens to some services.
    pub fn enter(&mut self, tag: u32, services: Services) {
        let joins = !self.known.contains_key(&tag);
        let before = self.known.insert(tag, services.clone()).unwrap_or_default();
        if joins {
            self.events.push_back(Event::Joined(tag));
        }
        self.compare(tag, &before, &services);
        if joins || before != services {
            self.changed |= bit(tag);
        }
    }

    /// Records that no process has a tag.
    pub fn leave(&mut self, tag: u32) {
        let before = self.known.remove(&tag).unwrap_or_default();
        self.compare(tag, &before, &Services::new());
        self.events.push_back(Event::Left(tag));
        self.changed |= bit(tag);
    }

    /// Adds events for the services that another process has begun or ceased to listen to. Messages
    /// about several processes come in any order, so a service may seem to have two listeners while
    /// it passes from one to the other. That is no event.
    fn compare(&mut self, tag: u32, before: &Services, now: &Services) {
        for &service in before.difference(now) {
            if self.is_free_for(self.own, service) {
                self.events.push_back(Event::StopsListening(service));
            }
        }
        for &service in now.difference(before) {
            // If this process had the service, the owner did not hear of that in time. What the
            // owner says counts.
            self.judge(&[service].into(), |_, _| false);
            let others = self.known.iter().filter(|(other, _)| ![tag, self.own].contains(other));
            if others.into_iter().all(|(_, has)| !has.contains(&service)) {
                self.events.push_back(Event::Listens(service));
            }
        }
    }

    /// Records that this process no longer listens to a service.
    pub fn stop(&mut self, service: ServiceId) {
        self.wanted.remove(&service);
        if self.known.entry(self.own).or_default().remove(&service) {
            self.changed |= bit(self.own);
        }
    }

    /// Decides on the services that this process asked for and still wants. `granted` says which of
    /// them are granted; the others are another process's.
    pub fn judge(&mut self, asked: &Services, granted: impl Fn(&Self, ServiceId) -> bool) {
        for &service in asked.intersection(&self.wanted.clone()) {
            let granted = granted(self, service);
            let has = self.known.entry(self.own).or_default();
            let changes = if granted { has.insert(service) } else { has.remove(&service) };
            if changes {
                self.changed |= bit(self.own);
            }
            if !granted {
                self.wanted.remove(&service);
                self.events.push_back(Event::Taken(service));
            } else if changes {
                self.events.push_back(Event::Granted(service));
            }
        }
    }
}
