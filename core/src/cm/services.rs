//! The services that programs listen to: on this manager, and in other processes on the interface.

use std::collections::{BTreeMap, BTreeSet};

use crate::wire::ServiceId;

/// Identifies a listener, and tells it from an earlier listener to the same service.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ListenerKey {
    pub service: ServiceId,
    /// The number of the listener, counted from the first that the manager ever had.
    pub number: u64,
}

/// A listener of this manager, and how full its backlog is.
pub(super) struct Listener {
    /// The number of this listener, see [`ListenerKey`].
    pub number: u64,
    /// The most requests that may wait for the program's decision.
    pub backlog: usize,
    /// How many requests wait for the program's decision.
    pub undecided: usize,
}

/// Whether a listener's backlog has room for another request.
pub(super) enum Backlog {
    /// The manager has no listener for the service.
    NoListener,
    /// The backlog of this listener is full.
    Full(ListenerKey),
    /// The backlog of this listener has room.
    HasRoom(ListenerKey),
}

/// The services and processes that a manager knows.
#[derive(Default)]
pub(super) struct Services {
    /// The listeners of this manager.
    pub listeners: BTreeMap<ServiceId, Listener>,
    /// The number of listeners that there ever were.
    pub numbered: u64,
    /// Services that other processes listen to.
    pub others: BTreeSet<ServiceId>,
    /// Tags of processes that do not exist.
    pub vacant: BTreeSet<u32>,
    /// Whether the manager answers for the whole interface.
    pub owner: bool,
}

impl Services {
    /// Makes an empty set of services.
    pub fn new(owner: bool) -> Self {
        Self { owner, ..Self::default() }
    }

    /// Finds the listener for a service, and whether its backlog has room.
    pub fn backlog(&self, service: ServiceId) -> Backlog {
        let Some(listener) = self.listeners.get(&service) else { return Backlog::NoListener };
        let key = ListenerKey { service, number: listener.number };
        match listener.undecided >= listener.backlog {
            true => Backlog::Full(key),
            false => Backlog::HasRoom(key),
        }
    }

    /// Counts a request in the backlog of a service's listener.
    pub fn begin(&mut self, service: ServiceId) {
        if let Some(listener) = self.listeners.get_mut(&service) {
            listener.undecided += 1;
        }
    }

    /// Takes a request, which is decided, out of its listener's backlog. Nothing changes if the
    /// listener has stopped since.
    pub fn decided(&mut self, ListenerKey { service, number }: ListenerKey) {
        let listener = self.listeners.get_mut(&service);
        if let Some(listener) = listener.filter(|listener| listener.number == number) {
            listener.undecided -= 1;
        }
    }

    /// Whether the manager, as the owner, has to say that no process listens to a service.
    pub fn is_nobodys(&self, service: ServiceId) -> bool {
        self.owner && !self.others.contains(&service)
    }

    /// Whether the manager, as the owner, has to answer for the process with this tag, because that
    /// process does not exist.
    pub fn answers_for(&self, tag: u32) -> bool {
        self.owner && self.vacant.contains(&tag)
    }

    /// Returns the number of services that this manager listens to.
    pub fn len(&self) -> usize {
        self.listeners.len()
    }
}
