//! Closing an endpoint in order: peers have what was sent before the connections end.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::core::Core;
use crate::error::{CloseError, GivenUp, WhyGivenUp};
use crate::link::Link;
use crate::peer::settle_last;

impl Core {
    /// Waits until all peers have handled what was sent to them, for a time of at most the
    /// endpoint's patience, and closes the endpoint.
    pub async fn close_in_order(self: &Arc<Self>) -> Result<(), CloseError> {
        self.stop_listening();
        let links = self.links_that(|link| !link.is_for_shorter());
        let peers = links.len();
        let mut asked = JoinSet::new();
        for link in links.clone() {
            let core = self.clone();
            asked.spawn_on(async move { core.part(&link).await.err() }, &self.local.runtime);
        }
        let mut given_up = Vec::new();
        while let Some(parted) = asked.join_next().await {
            // A task of a runtime that ends is stopped, and nobody is there to be told.
            given_up.extend(parted.ok().flatten());
        }
        self.close();
        // Answers to the peers' last questions are under way, for as long as the endpoint lingers.
        let linger = self.local.config.linger;
        for link in &links {
            let _ = timeout(linger, link.connection.ended()).await;
        }
        if given_up.is_empty() { Ok(()) } else { Err(CloseError { peers, given_up }) }
    }

    /// Waits until a peer has handled what was sent to it.
    async fn part(&self, link: &Arc<Link>) -> Result<(), GivenUp> {
        let patience = self.local.config.patience;
        let why = match timeout(patience, settle_last(link)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(_)) => match link.ending() {
                Some(ending) => WhyGivenUp::Gone(ending),
                // The peer has sent the question back, and that comes in its turn, too.
                None => return Ok(()),
            },
            Err(_) => WhyGivenUp::Late(patience),
        };
        Err(GivenUp { peer: link.peer_text().into(), why })
    }
}
