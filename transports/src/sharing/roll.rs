//! The roll: who shares an interface, and who listens to what, as far as this process knows.

use std::collections::{BTreeMap, VecDeque};

use doorbell_core::wire::ServiceId;

use super::Event;
use super::message::Services;

/// The bit of a tag in a set of tags.
pub(super) fn bit(tag: u32) -> u64 {
    1 << tag
}

/// The tags in a set.
pub(super) fn tags(mut set: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let next = (set != 0).then(|| set.trailing_zeros())?;
        set &= set - 1;
        Some(next)
    })
}

pub(super) struct Roll {
    /// This process's tag.
    pub own: u32,
    /// What this process wants to listen to.
    pub wanted: Services,
    /// What each process listens to, this one included.
    known: BTreeMap<u32, Services>,
    /// The tags of those of whom there is something new.
    pub changed: u64,
    pub events: VecDeque<Event>,
    welcomed: bool,
}

impl Roll {
    pub fn new(own: u32) -> Self {
        let known = BTreeMap::from([(own, Services::new())]);
        let (wanted, events) = (Services::new(), VecDeque::new());
        Self { own, wanted, known, changed: 0, events, welcomed: false }
    }

    /// What a process listens to, if it is there.
    pub fn of(&self, tag: u32) -> Option<&Services> {
        self.known.get(&tag)
    }

    /// Whether nobody but the process of this tag listens to a service.
    pub fn is_free_for(&self, tag: u32, service: ServiceId) -> bool {
        self.known.iter().all(|(&other, has)| other == tag || !has.contains(&service))
    }

    /// Tells the program, once, that its tag may be used.
    pub fn welcome(&mut self) {
        if !std::mem::replace(&mut self.welcomed, true) {
            self.events.push_back(Event::Welcome);
        }
    }

    /// Another process is there, and listens to all of this.
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

    /// Nobody has this tag.
    pub fn leave(&mut self, tag: u32) {
        let before = self.known.remove(&tag).unwrap_or_default();
        self.compare(tag, &before, &Services::new());
        self.events.push_back(Event::Left(tag));
        self.changed |= bit(tag);
    }

    /// Tells what another process has begun and ceased to listen to. News of several processes come
    /// in any order, so a service may seem to have two listeners while it passes from one to the
    /// other: that is no event.
    fn compare(&mut self, tag: u32, before: &Services, now: &Services) {
        for &service in before.difference(now) {
            if self.is_free_for(self.own, service) {
                self.events.push_back(Event::StopsListening(service));
            }
        }
        for &service in now.difference(before) {
            // If it was ours, nobody told the owner in time. What the owner says counts.
            self.judge(&[service].into(), |_, _| false);
            let others = self.known.iter().filter(|(other, _)| ![tag, self.own].contains(other));
            if others.into_iter().all(|(_, has)| !has.contains(&service)) {
                self.events.push_back(Event::Listens(service));
            }
        }
    }

    /// This process listens no more.
    pub fn stop(&mut self, service: ServiceId) {
        self.wanted.remove(&service);
        if self.known.entry(self.own).or_default().remove(&service) {
            self.changed |= bit(self.own);
        }
    }

    /// Of what this process asked for and still wants, some is granted and the rest another's.
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
