//! Closing an endpoint in order: peers have what was sent before the connections end.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::core::Core;
use crate::error::{CloseError, GivenUp, WhyGivenUp};
use crate::link::Link;
use crate::peer::settle_last;

impl Core {
    /// Waits until all peers have handled what was sent to them, and closes the endpoint then, or
    /// when the time is over.
    pub async fn close_in_order(self: &Arc<Self>, until: Instant) -> Result<(), CloseError> {
        self.stop_listening();
        let links = self.links_that(|link| !link.is_for_shorter());
        let mut asked = JoinSet::new();
        for link in links.clone() {
            let core = self.clone();
            let parts = async move { core.part(&link, until).await.err() };
            asked.spawn_on(parts, &self.local.runtime);
        }
        let mut given_up: Vec<GivenUp> = Vec::new();
        while let Some(parted) = asked.join_next().await {
            given_up.extend(parted.unwrap_or_else(|_| {
                let peer = "a peer".to_owned();
                Some(GivenUp { peer, why: WhyGivenUp::RuntimeEnded })
            }));
        }
        for lost in self.take_lost() {
            // A connection that broke meanwhile has been told of by who waited for its peer.
            if given_up.iter().all(|known| known.peer != lost.peer) {
                given_up.push(lost);
            }
        }
        self.close();
        // Answers to the peers' last questions are under way, for as long as the endpoint lingers.
        let linger = self.local.config.linger;
        for link in &links {
            let _ = timeout(linger, link.connection.ended()).await;
        }
        // An end is known here before the peer is told, and the process may be over right behind.
        self.engine.nic.settle();
        let peers = links.len().max(given_up.len());
        CloseError::unless_all_is_done(peers, given_up, 0)
    }

    /// Waits until a peer has handled what was sent to it.
    async fn part(&self, link: &Arc<Link>, until: Instant) -> Result<(), GivenUp> {
        let why = match timeout_at(until, settle_last(link)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(_)) => match link.ending() {
                Some(ending) => self.why_given_up(&ending),
                // The peer has sent the question back, and that comes in its turn, too.
                None => return Ok(()),
            },
            Err(_) => WhyGivenUp::Late(self.local.config.patience),
        };
        Err(GivenUp { peer: link.peer_text().into(), why })
    }
}
