//! Listening to services, as one of several processes on an interface.
//!
//! Every process on an interface sees every datagram for queue pair 1, and one of them, the owner,
//! answers what concerns no process. A REQ for a service that this manager does not listen to is
//! rejected only by the owner, and only if the owner was not told that another process listens to
//! the service. A message about a connection of another process, which the tag in the
//! communication ID tells, is answered only by the owner, and only if the owner was told that this
//! process does not exist.
//!
//! So the driver of the managers keeps the owner informed: of services before their listeners count
//! as listening, and of processes after they have ended. If the owner hears of a service too late, a
//! peer that asks at that very moment is told that no process serves it, as if it had asked a moment
//! earlier. If the owner hears of an ended process too late, a peer waits for its time-out.

use crate::wire::ServiceId;

use super::config::Config;
use super::error::ListenError;
use super::manager::ConnectionManager;
use super::services::Listener;

/// Checks that a manager may know another service beside the `taken` that it knows.
fn check_room(config: &Config, service: ServiceId, taken: usize) -> Result<(), ListenError> {
    let limit = config.services;
    if taken < limit { Ok(()) } else { Err(ListenError::Full { service, limit }) }
}

/// The calls that change which services are listened to.
impl<W> ConnectionManager<W> {
    /// Listens to a service. Each request for it becomes an [`Event::Asked`](super::Event::Asked),
    /// and up to `backlog` requests wait for the program's decision at a time.
    ///
    /// A request beyond the backlog takes the place of an undecided one, if that came by a way which
    /// has more requests, or has had its [grace](super::Config::grace). Otherwise the new request
    /// is dropped. The sender of the request that goes hears nothing, repeats its request, and may
    /// find room then. A request that finds the manager's table full of established connections is
    /// rejected for good.
    ///
    /// # Errors
    /// When the service is listened to already, the backlog is 0, or there are too many services.
    pub fn listen(&mut self, service: ServiceId, backlog: usize) -> Result<(), ListenError> {
        let services = &mut self.services;
        if services.listeners.contains_key(&service) || services.others.contains(&service) {
            return Err(ListenError::Taken(service));
        }
        if backlog == 0 {
            return Err(ListenError::NoBacklog(service));
        }
        check_room(&self.context.config, service, services.listeners.len())?;
        services.numbered += 1;
        let number = services.numbered;
        services.listeners.insert(service, Listener { number, backlog, undecided: 0 });
        Ok(())
    }

    /// Stops listening to a service. Requests that came before may still be decided.
    ///
    /// # Errors
    /// When this manager does not listen to the service.
    pub fn stop(&mut self, service: ServiceId) -> Result<(), ListenError> {
        let stopped = self.services.listeners.remove(&service);
        stopped.map(drop).ok_or(ListenError::NotListening(service))
    }

    /// Sets whether this manager is the owner, which answers for the whole interface. Exactly one
    /// manager of an interface should be its owner. Without an owner, peers that request a service
    /// which no process serves wait until they time out; with two owners, peers are answered
    /// twice.
    pub fn set_owner(&mut self, owner: bool) {
        self.services.owner = owner;
    }

    /// Notes that another process on the interface begins or stops listening to a service. The owner
    /// needs this now, the other managers need it in case they become the owner.
    ///
    /// # Errors
    /// When this manager listens to the service, or there are too many services.
    pub fn others_listen(&mut self, service: ServiceId, listen: bool) -> Result<(), ListenError> {
        let services = &mut self.services;
        if !listen {
            services.others.remove(&service);
        } else if services.listeners.contains_key(&service) {
            return Err(ListenError::Taken(service));
        } else if !services.others.contains(&service) {
            check_room(&self.context.config, service, services.others.len())?;
            services.others.insert(service);
        }
        Ok(())
    }

    /// Notes that no process on the interface has this tag, or that one has. The owner tells peers
    /// that the connections of a process that does not exist are over. Until it is told otherwise,
    /// a manager assumes that every process exists.
    ///
    /// # Errors
    /// When the tag has too many bits, or is this manager's own.
    pub fn set_vacant(&mut self, tag: u32, vacant: bool) -> Result<(), ListenError> {
        let Config { tag: own, tag_bits, .. } = self.context.config;
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
