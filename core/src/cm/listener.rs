//! Who listens to which service: programs here, and other processes on the interface.
//!
//! Every process on an interface sees every datagram for queue pair 1, and one of them, the owner,
//! answers for what is nobody's. A REQ for a service that this manager does not listen to is
//! refused only by the owner, and only if it was not told that somebody else listens; a message
//! about a connection of another process, which the tag in its name tells, is answered only by the
//! owner, and only if it was told that there is no such process.
//!
//! So whoever drives the managers keeps the owner informed: of services before their listeners
//! count as listening, and of processes after they are gone. If it is late with the first, a peer
//! that asks at that very moment is told that nobody serves it, as if it had asked a moment before.
//! If it is late with the second, a peer waits for its time-out.

use std::collections::{BTreeMap, BTreeSet};

use crate::wire::ServiceId;

use super::ConnectionManager;
use super::config::Config;
use super::error::ListenError;

struct Listener {
    /// Tells this listener from an earlier one to the same service.
    number: u64,
    backlog: usize,
    /// How many requests are not decided.
    undecided: usize,
}

/// What a service's backlog says to another request.
pub(super) enum Room {
    /// Nobody listens here.
    NotHere,
    /// The number of the listener whose backlog is full.
    Full(u64),
    /// The number of the listener.
    Yes(u64),
}

#[derive(Default)]
pub(super) struct Services {
    listeners: BTreeMap<ServiceId, Listener>,
    numbered: u64,
    others: BTreeSet<ServiceId>,
    /// Tags of processes that are not there.
    vacant: BTreeSet<u32>,
    pub owner: bool,
}

impl Services {
    pub fn new(owner: bool) -> Self {
        Self { owner, ..Self::default() }
    }

    pub fn room(&self, service: ServiceId) -> Room {
        match self.listeners.get(&service) {
            None => Room::NotHere,
            Some(listener) if listener.undecided >= listener.backlog => Room::Full(listener.number),
            Some(listener) => Room::Yes(listener.number),
        }
    }

    /// Counts a request that is not decided.
    pub fn begin(&mut self, service: ServiceId) {
        if let Some(listener) = self.listeners.get_mut(&service) {
            listener.undecided += 1;
        }
    }

    /// A request is decided. Its listener may be gone since, or be another one.
    pub fn decided(&mut self, (service, number): (ServiceId, u64)) {
        let listener = self.listeners.get_mut(&service);
        if let Some(listener) = listener.filter(|listener| listener.number == number) {
            listener.undecided -= 1;
        }
    }

    /// Whether it is for this manager to say that nobody serves a service.
    pub fn is_nobodys(&self, service: ServiceId) -> bool {
        self.owner && !self.others.contains(&service)
    }

    /// Whether it is for this manager to answer for a process of this tag, which is not its own.
    pub fn answers_for(&self, tag: u32) -> bool {
        self.owner && self.vacant.contains(&tag)
    }

    /// How many services are listened to here.
    pub fn len(&self) -> usize {
        self.listeners.len()
    }
}

fn check_room(config: &Config, service: ServiceId, taken: usize) -> Result<(), ListenError> {
    let limit = config.services;
    if taken < limit { Ok(()) } else { Err(ListenError::Full { service, limit }) }
}

/// Who listens to what.
impl<W> ConnectionManager<W> {
    /// Listens to a service. Peers that ask for it are told of by
    /// [`Event::Asked`](super::Event::Asked), as many at a time as the backlog says.
    ///
    /// A request beyond that takes the place of an undecided one, if that came by a way which has
    /// asked for more, or has had its [grace](super::Config::grace). Otherwise it is dropped. Who
    /// sent the one that goes hears nothing, repeats it, and may find room then. A request that
    /// finds the manager's table full of connections that stand is refused for good.
    ///
    /// # Errors
    /// When it is listened to already, the backlog is 0, or there are too many services.
    pub fn listen(&mut self, service: ServiceId, backlog: usize) -> Result<(), ListenError> {
        let services = &mut self.services;
        if services.listeners.contains_key(&service) || services.others.contains(&service) {
            return Err(ListenError::Taken(service));
        }
        if backlog == 0 {
            return Err(ListenError::NoBacklog(service));
        }
        check_room(&self.common.config, service, services.listeners.len())?;
        services.numbered += 1;
        let number = services.numbered;
        services.listeners.insert(service, Listener { number, backlog, undecided: 0 });
        Ok(())
    }

    /// Listens no more. What was asked already may still be decided.
    ///
    /// # Errors
    /// When nobody listens.
    pub fn stop(&mut self, service: ServiceId) -> Result<(), ListenError> {
        let stopped = self.services.listeners.remove(&service);
        stopped.map(drop).ok_or(ListenError::NotListening(service))
    }

    /// Makes this manager the one that answers for the whole interface, or no longer so. Of all on
    /// an interface one should be: with none, peers wait for what nobody serves until they time
    /// out; with two, they are told the same twice.
    pub fn set_owner(&mut self, owner: bool) {
        self.services.owner = owner;
    }

    /// Tells of a service that another process on the interface begins or ceases to listen to. To
    /// the owner it matters now, to the others in case they become it.
    ///
    /// # Errors
    /// When this manager listens to it, or there are too many services.
    pub fn others_listen(&mut self, service: ServiceId, listen: bool) -> Result<(), ListenError> {
        let services = &mut self.services;
        if !listen {
            services.others.remove(&service);
        } else if services.listeners.contains_key(&service) {
            return Err(ListenError::Taken(service));
        } else if !services.others.contains(&service) {
            check_room(&self.common.config, service, services.others.len())?;
            services.others.insert(service);
        }
        Ok(())
    }

    /// Tells that a process on the interface is gone, or is there. The owner then tells peers that
    /// the connections of one that is gone are no more. Until told, it takes every process to be
    /// there.
    ///
    /// # Errors
    /// When the tag has too many bits, or is this manager's own.
    pub fn set_vacant(&mut self, tag: u32, vacant: bool) -> Result<(), ListenError> {
        let Config { tag: own, tag_bits, .. } = self.common.config;
        if u64::from(tag) >> tag_bits != 0 || tag == own {
            return Err(ListenError::Tag { tag, tag_bits, own });
        }
        match vacant {
            true => self.services.vacant.insert(tag),
            false => self.services.vacant.remove(&tag),
        };
        Ok(())
    }
}
