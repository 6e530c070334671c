//! Protection domains.

use doorbell_core::nic;

use super::handle::Nic;

/// A protection domain: the keys of memory that is registered in a domain are valid for queue pairs
/// of the same domain only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Domain {
    nic: Nic,
    domain: nic::Domain,
}

impl Domain {
    pub(crate) fn new(nic: Nic, domain: nic::Domain) -> Self {
        Self { nic, domain }
    }

    pub(crate) fn id(&self) -> nic::Domain {
        self.domain
    }

    /// Returns the NIC of the domain.
    pub fn nic(&self) -> &Nic {
        &self.nic
    }
}

impl Nic {
    /// Makes a protection domain.
    pub fn domain(&self) -> Domain {
        let domain = self.engine().with(|adapter| adapter.control().nic.domain());
        Domain::new(self.clone(), domain)
    }
}
