//! A peer's request for a connection, as a program gets it.

use std::fmt;

use doorbell_core::cm::Request;
use doorbell_core::connect::Session;
use doorbell_core::wire::cm::RejectReason;

use super::reach::leads_to;
use crate::control::{ConnectionRequest, ControlOp, check_fits};
use crate::error::ConnectError;
use crate::link::Private;
use crate::nic::Nic;

/// A peer's request for a connection, which is rejected if this is dropped.
pub struct Incoming {
    nic: Nic,
    /// The request, which is taken out when the program decides.
    asked: Option<ConnectionRequest>,
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
    pub(super) fn new(nic: Nic, asked: ConnectionRequest) -> Self {
        Self { nic, asked: Some(asked) }
    }

    /// Returns the terms that the peer proposes.
    ///
    /// # Panics
    /// Never panics: the request is taken out only by methods that consume this value.
    pub fn request(&self) -> &Request {
        &self.asked.as_ref().expect("deciding consumes this value").request
    }

    /// Returns the private data of the peer's program, followed by zeros up to the size of the
    /// field.
    ///
    /// # Panics
    /// Never panics, for the same reason as [`request`](Self::request).
    pub fn private(&self) -> &Private {
        &self.asked.as_ref().expect("deciding consumes this value").private
    }

    /// Returns what the peer has proved by a handshake: its key, or that it knows the secret. `None`
    /// if the connection will not be encrypted.
    ///
    /// # Panics
    /// Never panics, for the same reason as [`request`](Self::request).
    pub fn proved(&self) -> Option<&str> {
        let asked = self.asked.as_ref().expect("deciding consumes this value");
        asked.session.as_ref().map(|session| &**session.peer())
    }

    /// Tells whether the request comes from the device at this address. For layers of this
    /// workspace, which must not take a peer's word for who it is.
    ///
    /// # Panics
    /// Never panics, for the same reason as [`request`](Self::request).
    #[doc(hidden)]
    pub async fn comes_from(&self, address: &str) -> Result<bool, ConnectError> {
        let asked = self.asked.as_ref().expect("deciding consumes this value");
        leads_to(&self.nic, asked.way.way(), address).await
    }

    /// Rejects the request, with up to 148 bytes of private data for the peer's program.
    ///
    /// # Errors
    /// Returns an error when the peer has given the request up already, or the private data is too
    /// long.
    pub fn reject(self, private: &[u8]) -> Result<(), ConnectError> {
        let nic = self.nic.clone();
        let asked = self.decide();
        let (id, reason) = (asked.id, RejectReason::CONSUMER);
        if asked.session.is_some() {
            check_fits(private, Session::MOST_IN_REFUSAL)?;
        }
        let sealed = asked.session.as_ref().map(|session| session.seal_refusal(private));
        let private = sealed.as_deref().unwrap_or(private);
        Ok(nic.engine().with(|adapter| adapter.control().manager.reject(id, reason, private))?)
    }

    pub(super) fn decide(mut self) -> ConnectionRequest {
        self.asked.take().expect("deciding consumes this value")
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(asked) = self.asked.take() {
            self.nic.engine().submit(ControlOp::Reject(asked.id));
        }
    }
}
