//! Listening to a service.

use std::fmt;
use std::sync::Arc;

use doorbell_core::wire::ServiceId;

use super::incoming::Incoming;
use crate::control::{ControlOp, Listening, RequestQueue};
use crate::error::{ListenRefused, ListenerEnded};
use crate::name::Name;
use crate::nic::Nic;
use crate::waiting::with_progress;

impl Nic {
    /// Listens to a service, with a backlog of 128 requests that are not decided about.
    ///
    /// # Errors
    /// Returns an error when this process, or another one of the interface, listens to the service
    /// already.
    pub async fn listen(&self, service: ServiceId) -> Result<Listener, ListenRefused> {
        self.listen_with(service, 128).await
    }

    /// Listens to a service with the given backlog. A peer whose request finds the backlog full
    /// asks again by itself; or its request takes the place of one whose host has more of them, or
    /// which has waited for a while, and which is then repeated.
    ///
    /// The sender of a request is not proven until the sender has confirmed the connection. At most
    /// a quarter of the [queue pairs](crate::Config::queue_pairs) are given to connections that are
    /// not confirmed.
    ///
    /// # Errors
    /// Returns an error as [`listen`](Self::listen) does.
    pub async fn listen_with(
        &self,
        service: ServiceId,
        backlog: usize,
    ) -> Result<Listener, ListenRefused> {
        listen(self, service, backlog).await
    }
}

/// Listens to a service, and waits for the consent of the other processes of the interface, if
/// there are any.
async fn listen(nic: &Nic, service: ServiceId, backlog: usize) -> Result<Listener, ListenRefused> {
    let requests = Arc::<RequestQueue>::default();
    let engine = nic.engine();
    let grants = engine.with(|adapter| match nic.is_closed() {
        true => Err(ListenRefused::NicClosed(service)),
        false => adapter.control().listen(service, backlog, requests.clone()),
    })?;
    let listener = Listener { nic: nic.clone(), service, requests };
    if let Some(grants) = grants {
        // The channel closes without an answer only if the listener was stopped.
        with_progress(engine, grants).await.unwrap_or(Err(ListenRefused::Taken(service)))?;
    }
    Ok(listener)
}

/// A listener, which listens to a service until it is dropped.
pub struct Listener {
    nic: Nic,
    service: ServiceId,
    requests: Arc<RequestQueue>,
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
    /// Returns the name that peers [connect](crate::Domain::connect) to.
    pub fn name(&self) -> Name {
        Name::at(self.nic.address().to_string(), self.service.0)
    }

    /// Returns the service.
    pub fn service(&self) -> ServiceId {
        self.service
    }

    /// Returns a value that stops this listener from another task.
    #[doc(hidden)]
    pub fn stop(&self) -> StopListening {
        StopListening(self.nic.clone(), self.service, self.requests.clone())
    }

    /// Waits for the next request for a connection.
    ///
    /// This process may lose the service to another one, if two processes are stopped and killed in
    /// the worst moment. Then no request comes any more.
    ///
    /// # Errors
    /// Returns an error when no request comes any more, since the [NIC was closed](Nic::close).
    /// Every further call returns the same.
    pub async fn accept(&mut self) -> Result<Incoming, ListenerEnded> {
        let next = self.requests.waiting.until(|| self.requests.next());
        let asked = with_progress(self.nic.engine(), next).await?;
        Ok(Incoming::new(self.nic.clone(), asked))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop().stop();
    }
}

/// Stops a listener on which another task may be waiting. This is for layers of this workspace.
#[doc(hidden)]
pub struct StopListening(Nic, ServiceId, Arc<RequestQueue>);

impl fmt::Debug for StopListening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StopListening").field(&self.1).finish_non_exhaustive()
    }
}

impl StopListening {
    /// Stops listening. The service is free when this returns, unless another thread holds the NIC:
    /// then it is free before that thread releases the NIC. A task that waits on the listener gets
    /// [`ListenerEnded::Stopped`].
    pub fn stop(&self) {
        let Self(nic, service, requests) = self;
        let listening = Listening { service: *service, requests: requests.clone() };
        nic.engine().submit(ControlOp::StopListening(listening));
    }
}
