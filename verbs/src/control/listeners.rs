//! The table of services that a NIC listens to, and the requests for connections.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use doorbell_core::cm::{ConnectionId, Extensions, Request};
use doorbell_core::connect::Session;
use doorbell_core::wire::cm::{RejectReason, TransportService};
use doorbell_core::wire::{PathMtu, ServiceId};
use tokio::sync::oneshot;

use super::connections::Manager;
use crate::error::{ListenRefused, ListenerEnded};
use crate::link::{Private, Way};
use crate::sync::wakers::Wakers;
use crate::sync::{Mutex, Ordering, fence, locked};

/// A peer's request for a connection.
pub(crate) struct ConnectionRequest {
    pub id: ConnectionId,
    pub way: Way,
    pub request: Box<Request>,
    pub extensions: Extensions,
    pub private: Private,
    /// The outcome of the handshake, if the connection is to be encrypted.
    pub session: Option<Session>,
}

/// The services that this NIC listens to.
#[derive(Default)]
pub(crate) struct Listeners(pub(super) HashMap<ServiceId, Service>);

/// The identity of a listener, by which it is stopped.
pub(crate) struct Listening {
    pub service: ServiceId,
    pub requests: Arc<RequestQueue>,
}

/// The requests that a listener has not taken yet, and the tasks that wait for requests.
#[derive(Default)]
pub(crate) struct RequestQueue {
    /// At most as many as the backlog: the connection manager refuses more, and requests that are
    /// given up are removed.
    undecided: Mutex<VecDeque<ConnectionRequest>>,
    /// Why no request comes any more.
    ended: OnceLock<ListenerEnded>,
    pub waiting: Wakers,
}

impl RequestQueue {
    /// Takes the next request, or the reason why none comes any more.
    pub fn next(&self) -> Option<Result<ConnectionRequest, ListenerEnded>> {
        let next = locked(&self.undecided).pop_front().map(Ok);
        next.or_else(|| self.ended.get().copied().map(Err))
    }

    /// Notes that no request comes any more, and wakes the tasks that wait for one.
    fn end(&self, why: ListenerEnded) {
        let _ = self.ended.set(why);
        fence(Ordering::SeqCst);
        self.waiting.wake_all();
    }
}

/// A service that this NIC listens to, or wants to listen to.
pub(super) struct Service {
    pub backlog: usize,
    pub requests: Arc<RequestQueue>,
    /// The sender of the outcome, until the other processes of the interface have agreed.
    pub granted: Option<oneshot::Sender<Result<(), ListenRefused>>>,
}

impl Listeners {
    /// Hands a request to the listener of its service, or returns the reason to reject the request.
    pub fn ask(&mut self, asked: ConnectionRequest, mtu: PathMtu) -> Result<(), RejectReason> {
        let listener = self.can_ask(&asked.request, mtu)?;
        locked(&listener.requests.undecided).push_back(asked);
        fence(Ordering::SeqCst);
        listener.requests.waiting.wake_all();
        Ok(())
    }

    /// Finds the listener of a request, or returns the reason to reject the request.
    pub(super) fn can_ask(
        &self,
        request: &Request,
        mtu: PathMtu,
    ) -> Result<&Service, RejectReason> {
        if request.transport != TransportService::RELIABLE {
            return Err(RejectReason::INVALID_TRANSPORT);
        }
        if request.mtu > mtu {
            return Err(RejectReason::INVALID_MTU);
        }
        self.0.get(&request.service).ok_or(RejectReason::INVALID_SERVICE_ID)
    }

    /// Removes a request that the peer has given up, or that was rejected.
    pub fn forget(&self, id: ConnectionId) {
        for listener in self.0.values() {
            locked(&listener.requests.undecided).retain(|asked| asked.id != id);
        }
    }

    /// Starts listening to a service that the other processes of the interface leave to this one.
    pub fn granted(&mut self, service: ServiceId, manager: &mut Manager) {
        let Some(listener) = self.0.get_mut(&service) else { return };
        let listens = manager.listen(service, listener.backlog).map_err(ListenRefused::from);
        if let Some(granted) = listener.granted.take() {
            let _ = granted.send(listens);
        }
    }

    /// Gives up a service that another process of the interface has.
    pub fn taken(&mut self, service: ServiceId, manager: &mut Manager) {
        let _ = manager.stop(service);
        if let Some(granted) = self.0.remove(&service).and_then(|listener| listener.granted) {
            let _ = granted.send(Err(ListenRefused::Taken(service)));
        }
    }

    /// Stops a listener, and rejects the requests that it has not taken. Returns whether the
    /// service is free then: another listener may have it, if this one was stopped before.
    pub fn stop(&mut self, which: &Listening, manager: &mut Manager) -> bool {
        let Listening { service, requests } = which;
        let is_there =
            self.0.get(service).is_some_and(|listener| Arc::ptr_eq(&listener.requests, requests));
        let Some(listener) = is_there.then(|| self.0.remove(service)).flatten() else {
            return !self.0.contains_key(service);
        };
        listener.stop(*service, ListenerEnded::Stopped, manager);
        true
    }

    /// Stops all listeners, since their NIC is closed.
    pub fn stop_all(&mut self, manager: &mut Manager) {
        for (service, listener) in self.0.drain() {
            listener.stop(service, ListenerEnded::NicClosed, manager);
        }
    }
}

impl Service {
    /// Stops the listener of this service, and rejects the requests that it has not taken.
    fn stop(self, service: ServiceId, why: ListenerEnded, manager: &mut Manager) {
        let _ = manager.stop(service);
        for asked in locked(&self.requests.undecided).drain(..) {
            // The call fails if the peer has given the request up.
            let _ = manager.reject(asked.id, RejectReason::CONSUMER, &[]);
        }
        if let Some(granted) = self.granted {
            let _ = granted.send(Err(ListenRefused::NicClosed(service)));
        }
        self.requests.end(why);
    }
}
