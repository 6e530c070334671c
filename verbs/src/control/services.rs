//! Services, which the processes of one interface divide among themselves.

use std::sync::Arc;

use doorbell_core::cm;
use doorbell_core::wire::ServiceId;
use doorbell_transports::sharing::{self, Membership};
use tokio::sync::oneshot;

use super::listeners::{Listening, RequestQueue, Service};
use super::state::Control;
use crate::error::ListenRefused;

impl Control {
    /// Starts listening to a service. If the interface is shared, returns a receiver of the other
    /// processes' decision.
    pub fn listen(
        &mut self,
        service: ServiceId,
        backlog: usize,
        requests: Arc<RequestQueue>,
    ) -> Result<Option<oneshot::Receiver<Result<(), ListenRefused>>>, ListenRefused> {
        if self.listeners.0.contains_key(&service) {
            return Err(cm::ListenError::Taken(service).into());
        }
        let Some(sharing) = &mut self.sharing else {
            self.manager.listen(service, backlog)?;
            self.listeners.0.insert(service, Service { backlog, requests, granted: None });
            return Ok(None);
        };
        if backlog == 0 {
            return Err(cm::ListenError::NoBacklog(service).into());
        }
        sharing.listen(service)?;
        let (granted, grants) = oneshot::channel();
        self.listeners.0.insert(service, Service { backlog, requests, granted: Some(granted) });
        Ok(Some(grants))
    }

    /// Stops a listener, and tells the other processes of the interface that its service is free.
    pub(super) fn stop(&mut self, listening: &Listening) {
        let is_free = self.listeners.stop(listening, &mut self.manager);
        if is_free && let Some(sharing) = &mut self.sharing {
            sharing.stop(listening.service);
        }
    }

    /// Handles the messages from other processes of the interface.
    #[cold]
    pub fn poll_sharing(&mut self) {
        use sharing::Event::{
            BecameOwner, Granted, Joined, Left, Listens, StopsListening, Taken, Welcome,
        };
        while let Some(event) = self.sharing.as_mut().and_then(Membership::turn) {
            let noted = match event {
                Welcome => Ok(()),
                BecameOwner => {
                    self.manager.set_owner(true);
                    Ok(())
                }
                Joined(tag) => self.manager.set_vacant(tag, false),
                Left(tag) => self.manager.set_vacant(tag, true),
                Listens(service) => self.manager.others_listen(service, true),
                StopsListening(service) => self.manager.others_listen(service, false),
                Granted(service) => {
                    self.listeners.granted(service, &mut self.manager);
                    Ok(())
                }
                Taken(service) => {
                    self.listeners.taken(service, &mut self.manager);
                    Ok(())
                }
            };
            if let Err(why) = noted {
                tracing::warn!(%why, "what another process of the interface says is not noted");
            }
        }
    }
}
