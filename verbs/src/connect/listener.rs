//! Being asked for connections.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use doorbell_core::cm::{self, ConnectionId, Extensions, Request};
use doorbell_core::wire::cm::{RejectReason, TransportService};
use doorbell_core::wire::{PathMtu, ServiceId};
use tokio::sync::oneshot;

use super::Private;
use crate::domain::Domain;
use crate::error::{ConnectError, ListenRefused};
use crate::nic::Nic;
use crate::pair::{QueuePair, QueuePairConfig};
use crate::progress::{Control, Errand, Manager, Way};
use crate::sync::{Mutex, Ordering, fence, locked};
use crate::waiting::attend;
use crate::wakers::Wakers;

/// What a peer asks for.
pub(crate) struct Asked {
    pub id: ConnectionId,
    pub way: Way,
    pub request: Box<Request>,
    pub extensions: Extensions,
    pub private: Private,
}

/// The services that this NIC listens to.
#[derive(Default)]
pub(crate) struct Listeners(HashMap<ServiceId, Service>);

/// A listener, for whoever stops it.
pub(crate) struct Listening {
    pub service: ServiceId,
    asked: Arc<Queue>,
}

/// Those who ask, and who waits for them.
struct Queue {
    /// No more than the backlog: the manager bounds them, and whoever gives up is taken off.
    asked: Mutex<VecDeque<Asked>>,
    waiting: Wakers,
}

struct Service {
    backlog: usize,
    asked: Arc<Queue>,
    /// Until the other processes of the interface have agreed.
    granted: Option<oneshot::Sender<Result<(), ListenRefused>>>,
}

impl Listeners {
    /// Tells a listener what was asked; or says why that is refused.
    pub fn ask(&mut self, asked: Asked, mtu: PathMtu) -> Result<(), RejectReason> {
        if asked.request.transport != TransportService::RELIABLE {
            return Err(RejectReason::INVALID_TRANSPORT);
        }
        if asked.request.mtu > mtu {
            return Err(RejectReason::INVALID_MTU);
        }
        let service = asked.request.service;
        let listener = self.0.get(&service).ok_or(RejectReason::INVALID_SERVICE_ID)?;
        locked(&listener.asked.asked).push_back(asked);
        fence(Ordering::SeqCst);
        listener.asked.waiting.wake_all();
        Ok(())
    }

    /// Who has asked has given it up, or is refused for other reasons.
    pub fn forget(&self, id: ConnectionId) {
        for listener in self.0.values() {
            locked(&listener.asked.asked).retain(|asked| asked.id != id);
        }
    }

    /// A service is this process's.
    pub fn granted(&mut self, service: ServiceId, manager: &mut Manager) {
        let Some(listener) = self.0.get_mut(&service) else { return };
        let listens = manager.listen(service, listener.backlog).map_err(ListenRefused::from);
        if let Some(granted) = listener.granted.take() {
            let _ = granted.send(listens);
        }
    }

    /// A service is another's.
    pub fn taken(&mut self, service: ServiceId, manager: &mut Manager) {
        let _ = manager.stop(service);
        if let Some(granted) = self.0.remove(&service).and_then(|listener| listener.granted) {
            let _ = granted.send(Err(ListenRefused::Taken(service)));
        }
    }

    /// Nobody decides any more about those who have asked. Whether nobody listens to the service
    /// then: if the listener was stopped before, another may by now.
    pub fn stop(&mut self, which: &Listening, manager: &mut Manager) -> bool {
        let Listening { service, asked } = which;
        let is_there =
            self.0.get(service).is_some_and(|listener| Arc::ptr_eq(&listener.asked, asked));
        let Some(listener) = is_there.then(|| self.0.remove(service)).flatten() else {
            return !self.0.contains_key(service);
        };
        let _ = manager.stop(*service);
        for asked in locked(&listener.asked.asked).drain(..) {
            // Or they have given up.
            let _ = manager.reject(asked.id, RejectReason::CONSUMER, &[]);
        }
        true
    }
}

impl Control {
    fn listen(
        &mut self,
        service: ServiceId,
        backlog: usize,
        asked: Arc<Queue>,
    ) -> Result<Option<oneshot::Receiver<Result<(), ListenRefused>>>, ListenRefused> {
        if self.listeners.0.contains_key(&service) {
            return Err(cm::ListenError::Taken(service).into());
        }
        let Some(sharing) = &mut self.sharing else {
            self.manager.listen(service, backlog)?;
            self.listeners.0.insert(service, Service { backlog, asked, granted: None });
            return Ok(None);
        };
        if backlog == 0 {
            return Err(cm::ListenError::NoBacklog(service).into());
        }
        sharing.listen(service)?;
        let (granted, grants) = oneshot::channel();
        self.listeners.0.insert(service, Service { backlog, asked, granted: Some(granted) });
        Ok(Some(grants))
    }
}

/// Listens to a service, for which the other processes of the interface may have to be asked.
pub(crate) async fn listen(
    nic: &Nic,
    service: ServiceId,
    backlog: usize,
) -> Result<Listener, ListenRefused> {
    let asked = Arc::new(Queue { asked: Mutex::new(VecDeque::new()), waiting: Wakers::default() });
    let shared = nic.shared();
    let grants =
        shared.with(|machine| machine.control().listen(service, backlog, asked.clone()))?;
    let listener = Listener { nic: nic.clone(), service, asked };
    if let Some(grants) = grants {
        // Dropped unanswered only if the listener is.
        attend(shared, grants).await.unwrap_or(Err(ListenRefused::Taken(service)))?;
    }
    Ok(listener)
}

/// A service that is listened to, until this is dropped.
pub struct Listener {
    nic: Nic,
    service: ServiceId,
    asked: Arc<Queue>,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("service", &self.service)
            .field("nic", &self.nic)
            .finish_non_exhaustive()
    }
}

impl Listener {
    /// The service.
    pub fn service(&self) -> ServiceId {
        self.service
    }

    /// What stops the listener, for whoever does not have it.
    #[doc(hidden)]
    pub fn stop(&self) -> StopListening {
        StopListening(self.nic.clone(), self.service, self.asked.clone())
    }

    /// The next peer that asks for a connection.
    ///
    /// If this process loses the service to another, which takes two of them stopped and killed in
    /// the worst moment, nobody asks here any more.
    pub async fn accept(&mut self) -> Incoming {
        let next = self.asked.waiting.until(|| locked(&self.asked.asked).pop_front());
        let asked = attend(self.nic.shared(), next).await;
        Incoming { nic: self.nic.clone(), asked: Some(asked) }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop().stop();
    }
}

/// Stops a listener that another task may be waiting with. For layers of this workspace.
#[doc(hidden)]
pub struct StopListening(Nic, ServiceId, Arc<Queue>);

impl fmt::Debug for StopListening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StopListening").field(&self.1).finish_non_exhaustive()
    }
}

impl StopListening {
    /// Listens no more: the service is free when this returns, unless another thread has the NIC in
    /// hand, which then sees to it before it lets the NIC go. The listener's task waits for ever.
    pub fn stop(&self) {
        let Self(nic, service, asked) = self;
        let listening = Listening { service: *service, asked: asked.clone() };
        nic.shared().run(Errand::Stop(listening));
    }
}

/// A peer that asks for a connection. It is refused if this is dropped.
pub struct Incoming {
    nic: Nic,
    /// There until it is decided.
    asked: Option<Asked>,
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Incoming");
        if let Some(asked) = &self.asked {
            shown.field("service", &asked.request.service).field("peer", &asked.request.qpn);
        }
        shown.field("nic", &self.nic).finish_non_exhaustive()
    }
}

impl Incoming {
    /// What the peer proposes.
    ///
    /// # Panics
    /// Never: it is there until it is decided, which consumes this.
    pub fn request(&self) -> &Request {
        &self.asked.as_ref().expect("it is there until it is decided").request
    }

    /// What the peer's program says, with zeros behind it as far as there was room.
    ///
    /// # Panics
    /// Never: as [`request`](Self::request).
    pub fn private(&self) -> &Private {
        &self.asked.as_ref().expect("it is there until it is decided").private
    }

    /// Takes it up with a queue pair of a domain, which is made for it: see
    /// [`Unconnected::accept`](super::Unconnected::accept) for one that is there already. Have it
    /// awaited in a task of its own, as is said there.
    ///
    /// # Errors
    /// As there, and when there is no room for a queue pair.
    pub async fn accept(self, domain: &Domain) -> Result<QueuePair, ConnectError> {
        let pair = domain.queue_pair(&QueuePairConfig::default())?;
        pair.accept(self, &[]).await.map(|(pair, _): (QueuePair, Private)| pair)
    }

    /// Refuses it, with up to 148 bytes for the peer's program.
    ///
    /// # Errors
    /// When the peer has given it up already, or there are more bytes.
    pub fn reject(self, private: &[u8]) -> Result<(), ConnectError> {
        let nic = self.nic.clone();
        let id = self.decide().id;
        let reason = RejectReason::CONSUMER;
        Ok(nic.shared().with(|machine| machine.control().manager.reject(id, reason, private))?)
    }

    pub(super) fn decide(mut self) -> Asked {
        self.asked.take().expect("it is there until it is decided")
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(asked) = self.asked.take() {
            self.nic.shared().run(Errand::Refuse(asked.id));
        }
    }
}
