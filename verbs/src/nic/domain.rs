//! Protection domains: what is made together, and reaches nothing else.

use std::sync::Arc;

use doorbell_core::memory::Region;
use doorbell_core::nic::{self, Change, QueuePairEnds, ResourceError, Transport};
use doorbell_core::wire::{Pkey, ServiceId};
use doorbell_transports::SharedMemory;

use crate::completions::CompletionQueue;
use crate::connect::{Connection, Pending, Unconnected};
use crate::error::{ConnectError, RegisterError};
use crate::memory::{Registered, Rights};
use crate::nic::Nic;
use crate::pair::{Link, Pair, QueuePair, QueuePairConfig, Terms};
use crate::queues::{Queues, QueuesConfig};
use crate::shared_receives::SharedReceiveQueue;

/// A protection domain: keys of memory that is registered in one are good for queue pairs of the
/// same only.
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

    /// The NIC that it is of.
    pub fn nic(&self) -> &Nic {
        &self.nic
    }

    /// Registers memory, with which peers may do what the rights say.
    ///
    /// # Errors
    /// When there are as many registrations as configured.
    pub fn register(&self, region: Region, rights: Rights) -> Result<Registered, RegisterError> {
        self.registered(region, rights, None)
    }

    /// Registers memory that peers of this machine can be [let to map](Connection::grant), too, if
    /// the rights let peers write there. What they have mapped can't be revoked, and rights and
    /// domain stand in nobody's way there.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    pub fn register_shared(
        &self,
        memory: impl Into<Arc<SharedMemory>>,
        rights: Rights,
    ) -> Result<Registered, RegisterError> {
        let memory = memory.into();
        self.registered(memory.region().clone(), rights, Some(memory))
    }

    fn registered(
        &self,
        region: Region,
        rights: Rights,
        shared: Option<Arc<SharedMemory>>,
    ) -> Result<Registered, RegisterError> {
        let registration = self
            .nic
            .shared()
            .with(|machine| machine.control().nic.register(self.domain, region.clone(), rights))?;
        Ok(Registered::new(self.nic.clone(), region, (registration, rights), shared))
    }

    /// Makes a queue pair whose requests are futures.
    ///
    /// # Errors
    /// When there are as many as configured.
    pub fn queue_pair(
        &self,
        config: &QueuePairConfig,
    ) -> Result<Unconnected<QueuePair>, ResourceError> {
        let core = |completions| nic::QueuePairConfig {
            send_depth: config.send_depth,
            receive_depth: config.receive_depth,
            shared_receives: config.shared_receives,
            ..nic::QueuePairConfig::new(self.domain, completions)
        };
        let &QueuePairConfig { rights, shared_receives, reads, rnr_retries, .. } = config;
        let terms = Terms::new(rights, shared_receives, reads, rnr_retries);
        self.nic.shared().with(|machine| {
            let control = machine.control();
            let ends = control.nic.queue_pair(&core(control.completions.0))?;
            let connection = self.connection(control, &ends, Link::new(ends.qpn, terms))?;
            let pair = Arc::new(Pair::new(ends, config.send_depth));
            control.pairs.insert(connection.qpn(), pair.clone());
            Ok(Unconnected::new(Pending(pair), connection))
        })
    }

    /// Makes a queue pair whose program posts to its queues, and reads a completion queue.
    ///
    /// # Errors
    /// When there are as many as configured, or a completion queue is too small for one more; when
    /// one is another NIC's; when the shared queue is of those for futures.
    pub fn queues(&self, config: &QueuesConfig) -> Result<Unconnected<Queues>, ResourceError> {
        let transport = match config.unreliable {
            true => Transport::Unreliable,
            false => Transport::Reliable,
        };
        let core = nic::QueuePairConfig {
            transport,
            receive_completions: config.receive_completions,
            send_depth: config.send_depth,
            receive_depth: config.receive_depth,
            shared_receives: config.shared_receives,
            ..nic::QueuePairConfig::new(self.domain, config.send_completions)
        };
        let &QueuesConfig { rights, shared_receives, reads, rnr_retries, .. } = config;
        let terms = Terms::new(rights, shared_receives, reads, rnr_retries);
        self.nic.shared().with(|machine| {
            let control = machine.control();
            if let Some(queue) = config.shared_receives
                && config.receive_completions == control.completions.0
            {
                return Err(ResourceError::OtherShared(queue));
            }
            let ends = control.nic.queue_pair(&core)?;
            let mut link = Link::new(ends.qpn, terms);
            link.unreliable = config.unreliable;
            let connection = self.connection(control, &ends, link)?;
            Ok(Unconnected::new(ends, connection))
        })
    }

    /// The connection that a queue pair will have, for which it takes receives already.
    pub(crate) fn connection(
        &self,
        control: &mut crate::progress::Control,
        ends: &QueuePairEnds,
        link: Link,
    ) -> Result<Connection, ResourceError> {
        let init = Change::Init { rights: link.terms.rights, pkey: Pkey::DEFAULT };
        let changed = control.nic.change(ends.qpn, init);
        debug_assert_eq!(changed, Ok(()), "a new queue pair goes to the init state");
        let link = Arc::new(link);
        control.links.insert(ends.qpn, link.clone());
        Ok(Connection::new(self.nic.clone(), link))
    }

    /// Makes a queue of receives that queue pairs draw from whose requests are futures.
    ///
    /// # Errors
    /// When the depth is none.
    pub fn shared_receive_queue(&self, depth: usize) -> Result<SharedReceiveQueue, ResourceError> {
        let (made, completions) = self.nic.shared().with(|machine| {
            let control = machine.control();
            let completions = control.completions.0;
            control
                .nic
                .shared_receive_queue(self.domain, completions, depth)
                .map(|made| (made, completions))
        })?;
        Ok(SharedReceiveQueue::new(self.nic.clone(), made, completions, true))
    }

    /// Makes a queue of receives whose completions go to a completion queue, for queue pairs whose
    /// program reads that.
    ///
    /// # Errors
    /// When the depth is none.
    pub fn shared_receives_to(
        &self,
        completions: &CompletionQueue,
        depth: usize,
    ) -> Result<SharedReceiveQueue, ResourceError> {
        let id = completions.id();
        let made = self
            .nic
            .shared()
            .with(|machine| machine.control().nic.shared_receive_queue(self.domain, id, depth))?;
        Ok(SharedReceiveQueue::new(self.nic.clone(), made, id, false))
    }

    /// Connects a new queue pair to whoever listens to a service at an address, such as
    /// `udp:192.0.2.8:5000`, `udp:node7` or `shm:job/1`: see
    /// [`Unconnected::connect`] for one that is there already, and with private data.
    ///
    /// # Errors
    /// As there, and when there is no room for a queue pair.
    pub async fn connect(&self, to: &str, service: ServiceId) -> Result<QueuePair, ConnectError> {
        let pair = self.queue_pair(&QueuePairConfig::default())?;
        pair.connect(to, service, &[]).await.map(|(pair, _)| pair)
    }
}
