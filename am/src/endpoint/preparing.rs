//! Preparing links: a queue pair, receives, and a place among the endpoint's links.

use std::sync::Arc;
use std::time::Duration;

use doorbell_verbs::floor::locked;
use doorbell_verbs::{Queues, QueuesConfig, ResourceError, Unconnected};
use tokio::time::Instant;

use super::core::{Core, left};
use super::recall::{BETWEEN_RECALLS, PATIENCE, recall};
use crate::config::Flow;
use crate::error::OpenError;
use crate::link::Link;
use crate::receives::Buffers;
use crate::wire::{MOST_CREDITS, Size, buffer_len};

/// How long a new link waits for a queue pair, while the numbers of some still rest.
const REST_PATIENCE: Duration = Duration::from_secs(5);

/// A link whose connection is being made. If the value is dropped before that is done, the link is
/// over.
pub(super) struct Fresh {
    pub link: Arc<Link>,
    core: Arc<Core>,
    stays: bool,
}

impl Fresh {
    /// Returns the link, whose connection stands.
    pub fn stays(mut self) -> Arc<Link> {
        self.stays = true;
        self.link.clone()
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if !self.stays {
            self.core.end(&self.link, left());
        }
    }
}

impl Core {
    /// Makes a queue pair, and a link that its first messages find.
    pub(super) async fn prepare(
        self: &Arc<Self>,
        size: Size,
    ) -> Result<(Unconnected<Queues>, Fresh), OpenError> {
        let buffers = self.buffers_for(size)?;
        let unconnected = self.connectable(size, &buffers).await?;
        let receives = self.receives_in_time(&buffers, size).await?;
        let connection = unconnected.connection().clone();
        let link = Arc::new(Link::new(self.local.clone(), connection, (size, buffers), receives));
        let fresh = Fresh { link: link.clone(), core: self.clone(), stays: false };
        self.add_link(&link, || self.engine.tell_of_link(link.clone()))?;
        Ok((unconnected, fresh))
    }

    /// Returns the receives for a size class, and buffers of the same length.
    fn buffers_for(&self, size: Size) -> Result<Arc<Buffers>, OpenError> {
        let Some(at) = Size::LESS.iter().position(|less| *less == size) else {
            return Ok(self.buffers.clone());
        };
        if let Some(there) = &locked(&self.shorter)[at] {
            return Ok(there.clone());
        }
        // Not under the lock, since this waits for the poller, whose handlers may want the lock.
        let config = &self.local.config;
        let depth = config.receives + config.peers;
        let queue = self.engine.shared_receives(&self.domain, depth)?;
        let len = buffer_len(config.payload_of(size));
        let spares = self.engine.spares.of(len);
        let limits = (config.receives, config.peers);
        let new = || Arc::new(Buffers::new(queue, spares, limits, false));
        Ok(locked(&self.shorter)[at].get_or_insert_with(new).clone())
    }

    /// Makes a queue pair for a link of this size class, with receives of its own if the NIC
    /// controls the flow.
    async fn connectable(
        &self,
        size: Size,
        buffers: &Arc<Buffers>,
    ) -> Result<Unconnected<Queues>, OpenError> {
        /// A number of requests that idle peers are not to take more room than.
        const FEW: usize = 8;
        let endpoint = &self.local.config;
        // Requests without room wait in the backlog. A lossless NIC reports completed sends when it
        // has nothing else to do, which may be later than its program answers them.
        let credits = endpoint.first_credits_of(size);
        let late = if self.engine.nic.capabilities().lossless { credits } else { 0 };
        let send_depth = (credits + late.saturating_sub(FEW)).max(2);
        let config = QueuesConfig { send_depth, ..self.engine.queues.clone() };
        match endpoint.flow {
            Flow::Credits => self.queue_pair(&config.share(buffers.queue())).await,
            Flow::Nic { receives } => {
                let own = QueuesConfig { receive_depth: receives, ..config };
                let mut unconnected = self.queue_pair(&own).await?;
                for _ in 0..receives {
                    let posted = unconnected.post_receive(0, buffers.take());
                    debug_assert!(posted.is_ok(), "the queue has room for as many");
                }
                Ok(unconnected)
            }
        }
    }

    /// Makes a queue pair to ask a peer for a challenge by. It never gets a connection.
    pub(super) async fn knocker(&self) -> Result<Unconnected<Queues>, OpenError> {
        // Of its own, since the queue pair takes up room of a completion queue while it rests.
        let completions = self.engine.nic.completion_queue(2)?;
        let shallow = QueuesConfig::new(&completions);
        self.queue_pair(&QueuesConfig { send_depth: 1, receive_depth: 1, ..shallow }).await
    }

    /// Makes a queue pair. If all are taken, some by connections that are over, this waits until
    /// the numbers of one have rested.
    async fn queue_pair(&self, config: &QueuesConfig) -> Result<Unconnected<Queues>, OpenError> {
        let deadline = Instant::now() + REST_PATIENCE;
        let mut hope = true;
        loop {
            let full = match self.domain.queues(config) {
                Err(full @ ResourceError::QueuePairsFull(_)) => full,
                Err(ResourceError::QueueTooSmall { has, .. }) => {
                    return Err(OpenError::Promised {
                        what: "entries of the bundle",
                        has,
                        advice: "unmap some, or configure more (`BundleConfig::receives`)",
                    });
                }
                found => return Ok(found?),
            };
            if !hope || Instant::now() >= deadline {
                return Err(full.into());
            }
            // Another try follows in any case, since a queue pair may have become free meanwhile.
            let rests = self.engine.nic.resting_queue_pairs() > 0;
            hope = rests || self.links().iter().any(|link| link.is_leaving());
            if hope {
                tokio::time::sleep(BETWEEN_RECALLS).await;
            }
        }
    }

    /// Has receives promised for a new link, for which other links may have to give up some.
    async fn receives_in_time(
        self: &Arc<Self>,
        buffers: &Arc<Buffers>,
        size: Size,
    ) -> Result<(usize, usize), OpenError> {
        let deadline = Instant::now() + PATIENCE;
        let mut hope = true;
        loop {
            if let Some(found) = self.receives(buffers, size) {
                return Ok(found);
            }
            if !hope || Instant::now() >= deadline {
                return Err(OpenError::Promised {
                    what: "receives of the endpoint",
                    has: self.local.config.receives,
                    advice: "unmap some, or configure more (`EndpointConfig::receives`)",
                });
            }
            // A task, so that the recall goes on to its end if this future is dropped.
            let (core, buffers) = (self.clone(), buffers.clone());
            let recalled = async move { recall(&core, &buffers, true).await };
            hope = self.local.runtime.spawn(recalled).await.unwrap_or(false);
        }
    }

    /// Has receives promised for a new link: for its peer's requests, and for the answers to its
    /// own. While there are plenty, these are as many as a new peer is to have; otherwise one, and
    /// more as the link uses them. Returns `None` if there is not even one.
    fn receives(&self, buffers: &Buffers, size: Size) -> Option<(usize, usize)> {
        let config = &self.local.config;
        if config.flow != Flow::Credits {
            return Some((MOST_CREDITS, config.credits_of(size)));
        }
        let first = config.first_credits_of(size).min(config.first_receives);
        buffers.link_comes();
        let plenty = buffers.is_plenty(2 * first);
        let grants = buffers.promise_to_peer(if plenty { first } else { 1 });
        if grants == 0 {
            buffers.link_goes();
            return None;
        }
        let leases = match plenty && buffers.is_awake() {
            true => buffers.promise_for_answers(first),
            false => 0,
        };
        Some((grants, leases))
    }
}
